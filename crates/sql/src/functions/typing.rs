//! Result types of functions and operators, by MySQL's rules.

use highkey_types::{ALL_DIGITS, Charset, Collation, ColumnType, DateRules, MySqlError, SqlMode, TypeKind, Value, parse_datetime};

use super::FuncId;
use crate::plan::{Coercibility, Expr, ExprKind, ExprType};

/// What the types of results depend on besides the arguments.
pub(crate) struct Typing {
    /// collation_connection.
    pub connection: &'static Collation,
    /// The arguments' collation together, or the first one's.
    pub collation: &'static Collation,
    pub coercibility: Coercibility,
    pub div_precision_increment: u8,
    pub sql_mode: SqlMode,
    pub strict: bool,
}

/// What arithmetic makes of an operand's type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Numeric {
    Null,
    Int,
    Decimal,
    Real,
}

fn numeric(expr: &Expr) -> Numeric {
    let ty = &expr.ty;
    match ty.ty.kind {
        // A bare NULL computes as a double; a parameter takes the other side's kind.
        TypeKind::Null if matches!(expr.kind, ExprKind::Literal(_)) => Numeric::Real,
        TypeKind::Null => Numeric::Null,
        TypeKind::Decimal { .. } => Numeric::Decimal,
        TypeKind::Float | TypeKind::Double => Numeric::Real,
        TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp) | TypeKind::Time(fsp) if fsp > 0 => Numeric::Decimal,
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) | TypeKind::Time(_) => Numeric::Int,
        _ if ty.ty.is_string() => Numeric::Real,
        _ => Numeric::Int,
    }
}

fn is_unsigned(ty: &ExprType) -> bool {
    ty.ty.unsigned || matches!(ty.ty.kind, TypeKind::Bit(_) | TypeKind::Year)
}

fn integer(nullable: bool, width: u8) -> ExprType {
    let mut ty = ColumnType::bigint();
    ty.width = width;
    ExprType { ty, nullable, coercibility: Coercibility::Numeric, truth: false }
}

/// Text from JSON compares by its bytes whatever the connection's collation is.
fn json_text(length: u32) -> ExprType {
    ExprType::text(length, Collation::binary_of(Charset::Utf8mb4), true)
}

fn temporal(kind: TypeKind) -> ExprType {
    ExprType { ty: ColumnType::new(kind), nullable: true, coercibility: Coercibility::Numeric, truth: false }
}

fn constant_int(expr: &Expr) -> Option<i64> {
    match &expr.kind {
        ExprKind::Literal(Value::Int(n)) => Some(*n),
        ExprKind::Literal(Value::UInt(n)) => i64::try_from(*n).ok(),
        _ => None,
    }
}

/// Fractional digits of a temporal argument: a literal string has its own, other strings may have six.
fn fsp_of(expr: &Expr) -> u8 {
    if let ExprKind::Literal(Value::Text(text)) = &expr.kind {
        // A date before the time may have points between its parts.
        let clock = text.trim_start().split_once(' ').filter(|(date, _)| date.matches('.').count() > 1).map_or(&**text, |(_, clock)| clock);
        return clock.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count().min(6) as u8);
    }
    let ty = &expr.ty;
    match ty.ty.kind {
        TypeKind::DateTime(n) | TypeKind::Timestamp(n) | TypeKind::Time(n) => n,
        TypeKind::Decimal { scale, .. } => scale.min(6),
        TypeKind::Float | TypeKind::Double => 6,
        _ if ty.ty.is_string() => 6,
        _ => 0,
    }
}

/// Fractional digits of a number of seconds: strings may have six.
fn fsp_of_number(expr: &Expr) -> u8 {
    if expr.ty.ty.is_string() { 6 } else { fsp_of(expr) }
}

/// The type of `func(args)`.
pub(crate) fn result_type(func: FuncId, args: &mut [Expr], typing: &Typing) -> Result<ExprType, MySqlError> {
    use FuncId as F;
    let nullable = args.iter().any(|a| a.ty.nullable);
    let length = |i: usize| args.get(i).map_or(0, |a| a.ty.char_length());
    let octets = |i: usize| if args[i].ty.ty.is_string() { length(i).saturating_mul(args[i].ty.ty.charset().max_bytes() as u32) } else { length(i) };
    // MySQL in strict mode: every function that makes text may come upon a character that it must refuse.
    let refuses = typing.strict;
    let text = |length: u32, nullable: bool| {
        ExprType::text(length, typing.collation, nullable || refuses).with_coercibility(typing.coercibility.min(Coercibility::Coercible))
    };
    // Text that a function makes itself: of the connection's collation.
    let own = |length: u32, nullable: bool| ExprType::text(length, typing.connection, nullable || refuses);
    let system = |length: u32, nullable: bool| ExprType::text(length, Collation::by_name("utf8_general_ci").unwrap_or(typing.connection), nullable).with_coercibility(Coercibility::SystemConstant);
    let bytes = |length: u32, nullable: bool| ExprType::text(length, Collation::binary(), nullable);
    Ok(match func {
        F::Add | F::Sub | F::Mul | F::Mod => arithmetic(func, args, typing),
        F::Div => division(args, typing),
        F::IntDiv => {
            let unsigned = args.iter().any(|a| is_unsigned(&a.ty));
            let mut ty = if unsigned { ExprType::ubigint(true) } else { ExprType::bigint(true) };
            if args[0].ty.ty.is_integer() {
                ty.ty.width = int_digits(&args[0]) + u8::from(!unsigned);
            }
            ty
        }
        F::Neg => match numeric(&args[0]) {
            Numeric::Int | Numeric::Null => match &args[0].kind {
                ExprKind::Literal(Value::UInt(n)) if *n > 1 << 63 => ExprType::decimal(20, 0, nullable),
                ExprKind::Literal(Value::Int(i64::MIN)) => ExprType::decimal(20, 0, nullable),
                _ if args[0].ty.is_null_type() => integer(nullable, 0),
                _ => integer(nullable, (args[0].ty.integer_length() as u8).saturating_add(1)),
            },
            Numeric::Decimal => {
                let (int, scale) = args[0].ty.decimal_digits();
                ExprType::decimal(int + scale, scale, nullable)
            }
            Numeric::Real => like_double(&args[0].ty, nullable),
        },
        F::BitAnd | F::BitOr | F::BitXor => {
            if args.iter().all(|a| a.ty.ty.is_binary()) && !args.is_empty() {
                bytes(length(0).max(length(1)), nullable)
            } else {
                ExprType::ubigint(nullable)
            }
        }
        F::BitNot | F::ShiftLeft | F::ShiftRight => {
            if args[0].ty.ty.is_binary() { bytes(length(0), nullable) } else { ExprType::ubigint(nullable) }
        }
        F::Xor => ExprType::boolean(nullable),
        F::DateAdd | F::DateSub => date_arithmetic(args, typing),
        F::Extract => match args[0].as_literal() {
            Some(Value::Text(unit)) if !unit.ends_with("MICROSECOND") => integer(true, 10),
            _ => ExprType::bigint(true),
        },
        F::TimestampDiff => ExprType::bigint(true),
        F::Coalesce | F::Greatest | F::Least => args[0].ty.clone(),
        F::Interval | F::Field => integer(false, 10),
        F::ComparedMoment => ExprType::column(ColumnType::new(TypeKind::DateTime(6)), true),
        F::ShownMoment => args[1].ty.clone(),
        F::IsNullFunc => ExprType::boolean(false),
        F::ConvertUsing | F::CutText | F::PadBytes | F::JsonValue => args[0].ty.clone(),

        F::Ascii | F::FindInSet => integer(nullable, 3),
        F::Instr | F::Locate => integer(nullable, 11),
        F::Ord | F::RegexpInstr => integer(nullable, LONGEST),
        F::BitLength | F::CharLength | F::Length => integer(nullable, 10),
        F::Strcmp => integer(nullable, 2),
        F::RegexpLike => ExprType::boolean(nullable),
        F::Coercibility => integer(false, 10),
        F::BitCount => integer(nullable, LONGEST),
        F::Crc32 => {
            let mut ty = integer(nullable, 10);
            ty.ty.unsigned = true;
            ty
        }
        F::Bin => own(64, true),
        F::Oct => own(64, true),
        F::Conv => own(64, true),
        F::Char => bytes(args.len() as u32 * 4, true),
        F::Concat => text(args.iter().map(|a| a.ty.char_length()).fold(0, u32::saturating_add), nullable),
        F::ConcatWs => {
            let parts = args[1..].iter().map(|a| a.ty.char_length()).fold(0, u32::saturating_add);
            text(parts.saturating_add(length(0).saturating_mul(args.len() as u32 - 2)), args[0].ty.nullable)
        }
        F::Elt => text(args[1..].iter().map(|a| a.ty.char_length()).max().unwrap_or(0), true),
        F::MakeSet => {
            let members = args[1..].iter().map(|a| a.ty.char_length().saturating_add(1)).fold(0, u32::saturating_add);
            text(members.saturating_sub(1), args[0].ty.nullable)
        }
        F::ExportSet => {
            let separator = if args.len() > 3 { length(3) } else { 1 };
            text(length(1).max(length(2)).saturating_mul(64).saturating_add(separator.saturating_mul(63)), nullable)
        }
        F::Format => own((length(0) / 3).saturating_add(length(0)).saturating_add(33), nullable),
        F::FromBase64 => bytes(u32::try_from(u64::from(octets(0)) * 3 / 4).unwrap_or(u32::MAX), true),
        F::Unhex => bytes(octets(0).div_ceil(2), true),
        F::ToBase64 => {
            let coded = octets(0).div_ceil(3).saturating_mul(4);
            // In lines of 76.
            own(coded.saturating_add(coded.saturating_sub(1) / 76), nullable)
        }
        F::Hex => {
            let bytes = if args[0].ty.ty.is_string() { args[0].ty.ty.charset().max_bytes() as u32 } else { 1 };
            let width = length(0).saturating_mul(2 * bytes);
            own(width, nullable)
        }
        F::Insert => text(length(0).saturating_add(length(3)), nullable),
        F::Left | F::Right => text(constant_int(&args[1]).map_or(length(0), |n| length(0).min(n.max(0) as u32)), nullable),
        F::Substring => {
            let whole = i64::from(length(0));
            let left = match constant_int(&args[1]) {
                Some(from) if from > 0 => (whole - from + 1).max(0),
                Some(from) => whole.min(from.saturating_neg()),
                None => whole,
            };
            text(args.get(2).and_then(constant_int).map_or(left, |n| left.min(n.max(0))) as u32, nullable)
        }
        F::Lower | F::Upper | F::Ltrim | F::Rtrim | F::Reverse | F::TrimBoth | F::TrimLeading | F::TrimTrailing | F::SubstringIndex => text(length(0), nullable),
        F::LoadFile => bytes(1 << 24, true),
        F::Lpad | F::Rpad => text(constant_int(&args[1]).map_or(1 << 24, |n| n.clamp(0, i64::from(u32::MAX)) as u32), true),
        F::Repeat => text(constant_int(&args[1]).map_or(1 << 24, |n| length(0).saturating_mul(n.clamp(0, i64::from(u32::MAX)) as u32)), true),
        F::Space => own(constant_int(&args[0]).map_or(1 << 24, |n| n.clamp(0, i64::from(u32::MAX)) as u32), true),
        F::Replace => {
            let shrink = args.get(1).and_then(Expr::as_literal).is_some() && length(1) >= length(2);
            text(if shrink { length(0) } else { length(0).saturating_mul(length(2).max(1)) }, nullable)
        }
        F::RegexpReplace | F::RegexpSubstr => text(length(0).max(length(2)).saturating_mul(if func == F::RegexpReplace { 4 } else { 1 }), true),
        F::Quote => text(length(0).saturating_mul(2).saturating_add(2), false),
        F::Soundex => text(length(0).max(4), nullable),
        F::WeightString => bytes(length(0).saturating_mul(8), true),
        F::Charset | F::Collation => system(64, false),

        F::Abs => match numeric(&args[0]) {
            Numeric::Real => like_double(&args[0].ty, nullable),
            Numeric::Decimal => args[0].ty.clone(),
            _ => rounded_integer(&args[0], nullable, 0),
        },
        F::Ceiling | F::Floor => match numeric(&args[0]) {
            Numeric::Real => fixed_double(0, nullable),
            Numeric::Decimal => {
                let (int, _) = args[0].ty.decimal_digits();
                if int < 18 { integer(nullable, (int + 3) as u8) } else { ExprType::decimal(int + 1, 0, nullable) }
            }
            _ => rounded_integer(&args[0], nullable, 2),
        },
        F::Round | F::Truncate => rounding(func, args),
        F::Sign => integer(nullable, LONGEST),
        F::Acos | F::Asin | F::Atan | F::Atan2 | F::Cos | F::Cot | F::Degrees | F::Exp | F::Ln | F::Log | F::Log10 | F::Log2 | F::Pow | F::Radians
        | F::Sin | F::Sqrt | F::Tan => ExprType::double(true),
        F::Pi => ExprType { ty: ColumnType { float_digits: Some((8, 6)), ..ColumnType::double() }, nullable: false, coercibility: Coercibility::Numeric, truth: false },
        F::Rand => ExprType::double(false),

        F::AddTime | F::SubTime => match args[0].ty.ty.kind {
            TypeKind::DateTime(_) | TypeKind::Timestamp(_) | TypeKind::Date => temporal(TypeKind::DateTime(fsp_of(&args[0]).max(fsp_of(&args[1])))),
            TypeKind::Time(_) => temporal(TypeKind::Time(fsp_of(&args[0]).max(fsp_of(&args[1])))),
            _ => char29(typing),
        },
        F::ConvertTz => temporal(TypeKind::DateTime(fsp_of(&args[0]))),
        F::CurDate | F::UtcDate => temporal(TypeKind::Date).with_nullable(false),
        F::CurTime | F::UtcTime => temporal(TypeKind::Time(constant_fsp(args))).with_nullable(false),
        F::Now | F::SysDate | F::UtcTimestamp => temporal(TypeKind::DateTime(constant_fsp(args))).with_nullable(false),
        F::DateFunc | F::FromDays | F::LastDay | F::MakeDate => temporal(TypeKind::Date),
        F::DateFormat | F::TimeFormat => own(format_length(args.get(1)), true),
        F::DayName | F::MonthName => own(9, true),
        F::GetFormat => own(17, true),
        F::DayOfWeek | F::Quarter | F::Weekday => integer(true, 1),
        F::DayOfMonth | F::Minute | F::Month | F::Second | F::Week | F::WeekOfYear => integer(true, 2),
        F::DayOfYear => integer(true, 3),
        F::Year => integer(true, 4),
        F::YearWeek => integer(true, 6),
        F::DateDiff | F::Hour | F::PeriodAdd | F::PeriodDiff | F::TimeToSec | F::ToDays => integer(true, 10),
        F::Microsecond => integer(true, LONGEST),
        F::ToSeconds => integer(true, 0),
        F::FromUnixtime => {
            if args.len() == 2 { own(format_length(args.get(1)), true) } else { temporal(TypeKind::DateTime(fsp_of_number(&args[0]))) }
        }
        F::MakeTime => temporal(TypeKind::Time(fsp_of_number(&args[2]))),
        F::SecToTime => temporal(TypeKind::Time(fsp_of_number(&args[0]))),
        F::StrToDate => str_to_date(args),
        F::TimeFunc | F::TimeDiff => temporal(TypeKind::Time(args.iter().map(fsp_of).max().unwrap_or(0))),
        F::TimestampFunc if no_moment(&args[0]) => temporal(TypeKind::DateTime(6)),
        F::TimestampFunc => temporal(TypeKind::DateTime(args.iter().map(fsp_of).max().unwrap_or(0))),
        F::UnixTimestamp => match args.first() {
            None => integer(false, 11),
            Some(arg) => match if no_moment(arg) { 6 } else { fsp_of(arg) } {
                0 => integer(true, 11),
                fsp => ExprType::decimal(11 + u32::from(fsp), u32::from(fsp), true),
            },
        },

        F::JsonValid | F::JsonContains | F::JsonContainsPath | F::JsonOverlaps | F::JsonMemberOf | F::JsonSchemaValid => ExprType::boolean(true),
        F::JsonLength | F::JsonDepth => integer(true, LONGEST),
        F::JsonStorageSize => integer(true, 10),
        F::JsonStorageFree => ExprType::bigint(true),
        F::JsonQuote => json_text(length(0).saturating_mul(6).saturating_add(2)),
        F::JsonUnquote => json_text(length(0)),
        F::JsonType => json_text(17),
        F::JsonPretty => json_text(u32::MAX),
        F::JsonExtract | F::JsonKeys | F::JsonSet | F::JsonInsert | F::JsonReplace | F::JsonRemove | F::JsonSearch | F::JsonMerge | F::JsonMergePatch
        | F::JsonMergePreserve | F::JsonSchemaValidationReport | F::JsonArrayAppend | F::JsonArrayInsert => temporal(TypeKind::Json).with_coercibility(Coercibility::Implicit),
        F::JsonOf | F::JsonTruth => temporal(TypeKind::Json).with_coercibility(Coercibility::Implicit).with_nullable(nullable),
        F::JsonArray | F::JsonObject => temporal(TypeKind::Json).with_coercibility(Coercibility::Implicit).with_nullable(false),

        // As long as whole blocks make it, and no longer than what was encrypted.
        F::AesEncrypt => bytes((octets(0) / 16).saturating_add(1).saturating_mul(16), true),
        F::AesDecrypt => bytes(octets(0), true),
        F::Md5 => own(32, nullable),
        F::Sha1 => own(40, nullable),
        F::StatementDigest => own(64, true),
        F::StatementDigestText => own(2048, true),
        F::Sha2 => own(128, true),
        F::Compress => {
            let width = if args[0].ty.ty.is_string() { args[0].ty.ty.charset().max_bytes() as u64 } else { 1 };
            let longest = u64::from(length(0)) * width * 120 / 100 + 12;
            bytes(u32::try_from(longest).unwrap_or(u32::MAX), true)
        }
        F::Uncompress => bytes(u32::MAX, true),
        F::ExtractValue | F::UpdateXml => {
            if !args[1].is_known() {
                return Err(highkey_types::errors::unknown_error("Only constant XPATH queries are supported"));
            }
            if typing.collation.charset.min_bytes() > 1 {
                return Err(highkey_types::errors::unknown_error(format!("Character set '{}' is not supported by XPATH", typing.collation.charset.name())));
            }
            text(u32::MAX, true)
        }
        F::UncompressedLength | F::ValidatePasswordStrength => integer(nullable, 10),
        F::InetAton => ExprType::ubigint(true),
        F::InetNtoa => own(15, true),
        F::Inet6Aton => bytes(16, true),
        F::Inet6Ntoa => own(39, true),
        F::IsIpv4 | F::IsIpv6 | F::IsIpv4Compat | F::IsIpv4Mapped => integer(func != F::IsIpv4 && func != F::IsIpv6, 1),
        F::IsUuid => integer(nullable, 1),
        F::BinToUuid => own(36, true),
        F::UuidToBin | F::RandomBytes => bytes(if func == F::UuidToBin { 16 } else { 1024 }, true),
        F::Uuid => system(36, false),
        F::UuidShort | F::ConnectionId | F::PsCurrentThreadId | F::LastInsertId | F::FoundRows => ExprType::ubigint(false),
        F::RowCount => ExprType::bigint(false),
        F::CurrentUser | F::User => system(288, false),
        F::CurrentRole => system(u32::MAX / 4, true),
        F::Database => system(64, true),
        F::Version => system(60, false),
        F::Benchmark | F::Sleep => integer(false, 1),
        F::GetLock | F::IsFreeLock | F::ReleaseLock => integer(true, 1),
        F::IsUsedLock | F::ReleaseAllLocks => ExprType::ubigint(true),
        F::GtidSubset => integer(nullable, 21),
        F::GtidSubtract => own(u32::MAX / 4, true),
        F::WaitForExecutedGtidSet | F::MasterPosWait | F::WaitUntilSqlThreadAfterGtids => integer(true, 21),
        F::NameConst => args[1].ty.clone(),
        F::PsThreadId => ExprType::ubigint(true),
        F::FormatBytes | F::FormatPicoTime => own(17, true),
        _ => super::spatial::result_type(func, args, |length| own(length, true)),
    })
}

/// A literal that no date can be read from.
fn no_moment(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Literal(Value::Text(text)) if parse_datetime(text, DateRules::default()).is_err())
}

fn constant_fsp(args: &[Expr]) -> u8 {
    args.first().and_then(constant_int).map_or(0, |n| n.clamp(0, 6) as u8)
}

/// The most that a format can print, as MySQL counts it.
fn format_length(format: Option<&Expr>) -> u32 {
    let Some(format) = format else { return 0 };
    let Some(Value::Text(text)) = format.as_literal() else { return format.ty.char_length().saturating_mul(10) };
    let (mut length, mut chars) = (0, text.chars());
    while let Some(c) = chars.next() {
        let specifier = if c == '%' { chars.next() } else { None };
        length += match specifier {
            Some('M' | 'W') => 64,
            Some('a' | 'b') => 32,
            Some('r') => 11,
            Some('T') => 8,
            Some('H' | 'k') => 7,
            Some('f') => 6,
            Some('D' | 'X' | 'x' | 'Y') => 4,
            Some('j') => 3,
            Some('c' | 'd' | 'e' | 'h' | 'I' | 'i' | 'l' | 'm' | 'p' | 'S' | 's' | 'U' | 'u' | 'V' | 'v' | 'y') => 2,
            // Another character stands for itself.
            Some(other) => other.len_utf8() as u32,
            None => c.len_utf8() as u32,
        };
    }
    length
}

fn arithmetic(func: FuncId, args: &[Expr], typing: &Typing) -> ExprType {
    let (a, b) = (&args[0].ty, &args[1].ty);
    let nullable = a.nullable || b.nullable || func == FuncId::Mod;
    match numeric(&args[0]).max(numeric(&args[1])) {
        Numeric::Real => shown_double(shown_digits(&args[0]).max(shown_digits(&args[1])), nullable),
        Numeric::Decimal => {
            let ((int_a, scale_a), (int_b, scale_b)) = (a.decimal_digits(), b.decimal_digits());
            match func {
                FuncId::Mul => ExprType::decimal(int_a + scale_a + int_b + scale_b, scale_a + scale_b, nullable),
                FuncId::Mod => {
                    let scale = scale_a.max(scale_b);
                    ExprType::decimal(int_a.max(int_b) + scale, scale, nullable)
                }
                _ => {
                    let scale = scale_a.max(scale_b);
                    ExprType::decimal(int_a.max(int_b) + 1 + scale, scale, nullable)
                }
            }
        }
        Numeric::Int | Numeric::Null => {
            let unsigned = match func {
                FuncId::Mod => is_unsigned(a),
                FuncId::Sub if typing.sql_mode.no_unsigned_subtraction => false,
                _ => is_unsigned(a) || is_unsigned(b),
            };
            let mut ty = if unsigned { ExprType::ubigint(nullable) } else { ExprType::bigint(nullable) };
            // As many characters as digits may come of it, and a sign: 1+1 is three characters wide.
            if !args.iter().any(|arg| arg.ty.is_null_type()) {
                let (one, other) = (int_digits(&args[0]), int_digits(&args[1]));
                let digits = match func {
                    FuncId::Mul => one.saturating_add(other),
                    FuncId::Mod => one.max(other),
                    _ => one.max(other).saturating_add(1),
                };
                ty.ty.width = digits.saturating_add(u8::from(!unsigned));
            }
            ty
        }
    }
}

fn division(args: &[Expr], typing: &Typing) -> ExprType {
    let (a, b) = (&args[0].ty, &args[1].ty);
    if numeric(&args[0]).max(numeric(&args[1])) == Numeric::Real {
        let digits = shown_digits(&args[0]).max(shown_digits(&args[1]));
        return shown_double(digits.saturating_add(typing.div_precision_increment), true);
    }
    let ((int_a, scale_a), (_, scale_b)) = (a.decimal_digits(), b.decimal_digits());
    let increment = u32::from(typing.div_precision_increment);
    let scale = (scale_a + increment).min(30);
    let precision = int_a + scale_a + scale_b + increment;
    ExprType::decimal(precision.max(scale + 1), scale, true)
}

/// Digits after the point that an operand shows: ALL_DIGITS if they are as many as it has.
fn shown_digits(expr: &Expr) -> u8 {
    let ty = &expr.ty.ty;
    match ty.kind {
        TypeKind::Decimal { scale, .. } => scale,
        TypeKind::Float | TypeKind::Double => ty.fixed_digits().unwrap_or(ALL_DIGITS),
        TypeKind::Null if !matches!(expr.kind, ExprKind::Literal(_)) => ALL_DIGITS,
        _ if ty.is_string() => ALL_DIGITS,
        _ => ty.fsp(),
    }
}

/// A DOUBLE that shows so many digits after the point.
fn shown_double(digits: u8, nullable: bool) -> ExprType {
    if digits < ALL_DIGITS { fixed_double(digits, nullable) } else { ExprType::double(nullable) }
}

/// A DOUBLE with the digits after the point of `ty`, if that has a fixed number of them.
fn like_double(ty: &ExprType, nullable: bool) -> ExprType {
    shown_double(ty.ty.fixed_digits().unwrap_or(ALL_DIGITS), nullable)
}

fn fixed_double(digits: u8, nullable: bool) -> ExprType {
    let ty = ColumnType { float_digits: Some((22, digits)), ..ColumnType::double() };
    ExprType { ty, nullable, coercibility: Coercibility::Numeric, truth: false }
}

fn rounding(func: FuncId, args: &[Expr]) -> ExprType {
    let nullable = args.iter().any(|a| a.ty.nullable);
    let digits = match args.get(1) {
        None => Some(0),
        Some(expr) => match expr.as_literal() {
            Some(Value::Decimal(digits)) => digits.to_i64(),
            Some(Value::Double(digits)) => Some(digits.round_ties_even() as i64),
            _ => constant_int(expr),
        },
    };
    match numeric(&args[0]) {
        // A constant number of digits is printed in full.
        Numeric::Real => match digits {
            Some(digits) if digits < 31 => fixed_double(digits.max(0) as u8, nullable),
            _ => ExprType::double(nullable),
        },
        Numeric::Decimal => {
            let (int, scale) = args[0].ty.decimal_digits();
            let kept = digits.map_or(scale, |d| d.clamp(0, 30) as u32);
            let carry = u32::from(func == FuncId::Round && kept < scale);
            ExprType::decimal(int + carry + kept, kept, nullable)
        }
        _ => rounded_integer(&args[0], nullable, u32::from(digits.is_none_or(|digits| digits < 0))),
    }
}

/// What a function that rounds makes of an integer: a BIGINT of as many characters, and maybe `more`.
fn rounded_integer(expr: &Expr, nullable: bool, more: u32) -> ExprType {
    let mut ty = ExprType::bigint(nullable);
    ty.ty.unsigned = is_unsigned(&expr.ty);
    if expr.ty.ty.is_integer() {
        ty.ty.width = (expr.ty.integer_length() + more) as u8;
    }
    ty
}

/// Characters of the results of functions that do not know better.
const LONGEST: u8 = 21;

/// Digits of an integer operand. What is computed has room for a sign among its characters.
fn int_digits(expr: &Expr) -> u8 {
    let (digits, _) = expr.ty.decimal_digits();
    let ty = &expr.ty.ty;
    let signed = ty.width > 0 && !ty.unsigned && !ty.zerofill && matches!(ty.kind, TypeKind::Int | TypeKind::BigInt) && !matches!(expr.kind, ExprKind::Literal(_));
    (digits as u8).saturating_sub(u8::from(signed)).max(1)
}

fn date_arithmetic(args: &[Expr], typing: &Typing) -> ExprType {
    let unit = match args[2].as_literal() {
        Some(Value::Text(unit)) => unit.clone(),
        _ => "DAY".into(),
    };
    let micros = unit.ends_with("MICROSECOND");
    let time_part = ["SECOND", "MINUTE", "HOUR"].iter().any(|u| unit.ends_with(u)) || micros;
    let fraction = if micros { 6 } else if &*unit == "SECOND" { fsp_of_number(&args[1]) } else { 0 };
    let _ = typing;
    match args[0].ty.ty.kind {
        TypeKind::Date if !time_part => temporal(TypeKind::Date),
        TypeKind::Date => temporal(TypeKind::DateTime(fraction)),
        TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp) => temporal(TypeKind::DateTime(fsp.max(fraction))),
        TypeKind::Time(fsp) => temporal(TypeKind::Time(fsp.max(fraction))),
        // A string stays one: the result looks like a date or a datetime by its value.
        _ => char29(typing),
    }
}

/// The text of a date that may have a time of day: CHAR(29), as MySQL announces it.
fn char29(typing: &Typing) -> ExprType {
    ExprType::new(ColumnType::with_collation(TypeKind::Char(29), typing.connection))
}

/// STR_TO_DATE's type follows the format when it is a constant.
fn str_to_date(args: &[Expr]) -> ExprType {
    let Some(Value::Text(format)) = args[1].as_literal() else { return temporal(TypeKind::DateTime(6)) };
    let specifiers: Vec<char> = format.chars().zip(format.chars().skip(1)).filter(|(percent, _)| *percent == '%').map(|(_, c)| c).collect();
    let time = specifiers.iter().any(|c| "fHhIiklprSsT".contains(*c));
    let date = specifiers.iter().any(|c| "abcDdejMmUuVvWwXxYy".contains(*c));
    let fsp = if specifiers.contains(&'f') { 6 } else { 0 };
    match (date, time) {
        (_, false) => temporal(TypeKind::Date),
        (false, true) => temporal(TypeKind::Time(fsp)),
        (true, true) => temporal(TypeKind::DateTime(fsp)),
    }
}
