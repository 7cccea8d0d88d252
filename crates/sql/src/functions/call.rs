//! From a function's id to its code.

use highkey_types::{MySqlError, Value};

use super::{FuncId, aes, arith, bits, compress, datetime, digest, encode, format_date, gtid, json, net, number, parse_date, regexp, search, session, spatial, string, xml};
use crate::expr::EvalContext;
use crate::plan::{Expr, ExprType};

/// Types of a call's arguments and result.
pub(crate) struct Types<'a> {
    args: &'a [Expr],
    pub result: &'a ExprType,
}

impl<'a> Types<'a> {
    pub fn exprs(args: &'a [Expr], result: &'a ExprType) -> Types<'a> {
        Types { args, result }
    }

    /// The type of argument `i`.
    pub fn arg(&self, i: usize) -> &'a ExprType {
        &self.args[i].ty
    }
}

pub(super) type Result<T> = std::result::Result<T, MySqlError>;

/// Applies `func` to values.
pub(crate) fn call(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    use FuncId as F;
    // All but these answer NULL if any argument is NULL.
    let takes_null = matches!(
        func,
        F::Coalesce | F::ConcatWs | F::Elt | F::Field | F::Interval | F::IsNullFunc | F::MakeSet | F::Char | F::Quote | F::Charset | F::Collation
            | F::Coercibility | F::Sleep | F::LastInsertId | F::NameConst | F::Xor | F::Rand | F::Benchmark | F::UuidToBin
            | F::BinToUuid | F::IsIpv4 | F::IsIpv6 | F::ExportSet | F::GetLock | F::IsFreeLock | F::IsUsedLock | F::ReleaseLock | F::WaitForExecutedGtidSet
            | F::AesDecrypt | F::AesEncrypt | F::Format | F::IsIpv4Compat | F::IsIpv4Mapped | F::ExtractValue | F::UpdateXml
    );
    if !takes_null && !func.is_json() && args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    match func {
        F::Add | F::Sub | F::Mul | F::Div | F::IntDiv | F::Mod | F::Neg => arith::operator(func, args, types, cx),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNot | F::ShiftLeft | F::ShiftRight | F::BitCount => bits::operator(func, args, types, cx),
        // Unlike AND and OR it takes its operands for integers: 0.4 is false.
        F::Xor => {
            let (a, b) = (crate::expr::convert::to_i64(&args[0], cx), crate::expr::convert::to_i64(&args[1], cx));
            Ok(a.zip(b).map_or(Value::Null, |(a, b)| Value::bool((a != 0) != (b != 0))))
        }
        F::Coalesce => Ok(args.iter().find(|a| !a.is_null()).cloned().unwrap_or_default()),
        F::Greatest | F::Least | F::Interval | F::Field | F::Strcmp | F::IsNullFunc => search::compare(func, args, types, cx),
        F::ComparedMoment => Ok(crate::expr::moment(&args[0], cx).map_or(Value::Null, Value::DateTime)),
        F::ShownMoment => Ok(search::shown_moment(args, types)),
        F::DateAdd | F::DateSub => datetime::date_add(args, func == F::DateSub, types, cx),
        F::Extract => datetime::extract(args, cx),
        F::TimestampDiff => datetime::timestamp_diff(args, cx),
        F::DateFormat | F::TimeFormat => format_date::date_format(args, func == F::TimeFormat, cx),
        F::StrToDate => parse_date::str_to_date(args, types, cx),
        F::AddTime | F::SubTime | F::ConvertTz | F::CurDate | F::CurTime | F::DateFunc | F::DateDiff | F::DayName | F::DayOfMonth | F::DayOfWeek | F::DayOfYear
        | F::FromDays | F::FromUnixtime | F::GetFormat | F::Hour | F::LastDay | F::MakeDate | F::MakeTime | F::Microsecond | F::Minute | F::Month | F::MonthName
        | F::Now | F::PeriodAdd | F::PeriodDiff | F::Quarter | F::SecToTime | F::Second | F::SysDate | F::TimeFunc | F::TimeDiff | F::TimeToSec
        | F::TimestampFunc | F::ToDays | F::ToSeconds | F::UnixTimestamp | F::UtcDate | F::UtcTime | F::UtcTimestamp | F::Week | F::Weekday | F::WeekOfYear
        | F::Year | F::YearWeek => datetime::function(func, args, types, cx),
        F::Abs | F::Acos | F::Asin | F::Atan | F::Atan2 | F::Ceiling | F::Conv | F::Cos | F::Cot | F::Crc32 | F::Degrees | F::Exp | F::Floor | F::Ln | F::Log
        | F::Log10 | F::Log2 | F::Pi | F::Pow | F::Radians | F::Rand | F::Round | F::Sign | F::Sin | F::Sqrt | F::Tan | F::Truncate | F::Bin | F::Oct => {
            number::function(func, args, types, cx)
        }
        F::RegexpInstr | F::RegexpLike | F::RegexpReplace | F::RegexpSubstr => regexp::function(func, args, types, cx),
        F::Instr | F::Locate | F::FindInSet | F::Replace | F::SubstringIndex => search::function(func, args, types, cx),
        F::ConvertUsing | F::CutText | F::PadBytes | F::Ascii | F::BitLength | F::Char | F::CharLength | F::Concat | F::ConcatWs | F::Elt | F::ExportSet | F::Insert | F::Left | F::Length
        | F::LoadFile | F::Lower | F::Lpad | F::Ltrim | F::MakeSet | F::Ord | F::Quote | F::Repeat | F::Reverse | F::Right | F::Rpad | F::Rtrim | F::Soundex
        | F::Space | F::Substring | F::TrimBoth | F::TrimLeading | F::TrimTrailing | F::Upper | F::WeightString | F::Charset | F::Collation | F::Coercibility => {
            string::function(func, args, types, cx)
        }
        F::Format | F::FromBase64 | F::ToBase64 | F::Hex | F::Unhex => encode::function(func, args, types, cx),
        F::JsonOf | F::JsonTruth | F::JsonMemberOf | F::JsonValue | F::JsonSchemaValid | F::JsonSchemaValidationReport | F::JsonValid | F::JsonQuote | F::JsonUnquote | F::JsonExtract | F::JsonArray | F::JsonObject
        | F::JsonLength | F::JsonType | F::JsonKeys | F::JsonContains | F::JsonContainsPath | F::JsonOverlaps | F::JsonSearch | F::JsonSet | F::JsonInsert
        | F::JsonReplace | F::JsonRemove | F::JsonArrayAppend | F::JsonArrayInsert | F::JsonMerge | F::JsonMergePatch | F::JsonMergePreserve
        | F::JsonDepth | F::JsonPretty | F::JsonStorageSize | F::JsonStorageFree => json::function(func, args, types, cx),
        F::Md5 | F::Sha1 | F::Sha2 | F::ValidatePasswordStrength | F::RandomBytes | F::StatementDigest | F::StatementDigestText => digest::function(func, args, types, cx),
        F::ExtractValue | F::UpdateXml => xml::function(func, args, types, cx),
        F::AesDecrypt | F::AesEncrypt => aes::function(func, args, types, cx),
        F::Compress | F::Uncompress | F::UncompressedLength => compress::function(func, args, types, cx),
        F::InetAton | F::InetNtoa | F::Inet6Aton | F::Inet6Ntoa | F::IsIpv4 | F::IsIpv6 | F::IsIpv4Compat | F::IsIpv4Mapped | F::IsUuid | F::BinToUuid
        | F::UuidToBin | F::Uuid | F::UuidShort => net::function(func, args, cx),
        F::GtidSubset | F::GtidSubtract | F::WaitForExecutedGtidSet | F::MasterPosWait | F::WaitUntilSqlThreadAfterGtids => gtid::function(func, args, cx),
        F::ConnectionId | F::PsCurrentThreadId | F::PsThreadId | F::CurrentUser | F::CurrentRole | F::Database | F::FoundRows | F::LastInsertId | F::RowCount | F::User | F::Version | F::Benchmark | F::Sleep
        | F::GetLock | F::IsFreeLock | F::IsUsedLock | F::ReleaseLock | F::ReleaseAllLocks | F::NameConst | F::FormatBytes | F::FormatPicoTime => {
            session::function(func, args, cx)
        }
        _ => spatial::function(func, args, types, cx),
    }
}
