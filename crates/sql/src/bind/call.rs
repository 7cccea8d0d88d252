//! Function calls by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use highkey_types::{Collation, ColumnType, DateRules, IntervalUnit, MySqlError, Str, TypeKind, Value, parse_datetime};

use super::binder::{Binder, Result};
use super::compare::comparison;
use super::errors;
use super::merge::{Rule, as_written, chosen_number, coerce, members_as_text, merge};
use crate::expr::convert::to_text;
use crate::functions::{FuncId, Typing, result_type, wants_geometries};
use crate::parse::ast::{self, FunctionCall, Literal};
use crate::plan::{Coercibility, CompareOp, Expr, ExprKind, ExprType};

/// Other names of functions.
const ALIASES: &[(&str, FuncId)] = &[
    ("ADDDATE", FuncId::DateAdd),
    ("CEIL", FuncId::Ceiling),
    ("CHARACTER_LENGTH", FuncId::CharLength),
    ("CURRENT_DATE", FuncId::CurDate),
    ("CURRENT_TIME", FuncId::CurTime),
    ("CURRENT_TIMESTAMP", FuncId::Now),
    ("DAY", FuncId::DayOfMonth),
    ("GEOMCOLLECTION", FuncId::GeometryCollection),
    ("LCASE", FuncId::Lower),
    ("LOCALTIME", FuncId::Now),
    ("LOCALTIMESTAMP", FuncId::Now),
    ("OCTET_LENGTH", FuncId::Length),
    ("POWER", FuncId::Pow),
    ("SCHEMA", FuncId::Database),
    ("SESSION_USER", FuncId::User),
    ("SHA", FuncId::Sha1),
    ("SOURCE_POS_WAIT", FuncId::MasterPosWait),
    ("SUBSTR", FuncId::Substring),
    ("ST_ASBINARY", FuncId::StAsBinary),
    ("ST_ASWKT", FuncId::StAsText),
    ("ST_NUMINTERIORRING", FuncId::StNumInteriorRings),
    ("SYSTEM_USER", FuncId::User),
    ("UCASE", FuncId::Upper),
];

static BY_NAME: LazyLock<HashMap<&'static str, FuncId>> = LazyLock::new(|| {
    let named = FuncId::ALL.iter().filter(|f| f.is_named()).map(|f| (f.name(), *f));
    named.chain(ALIASES.iter().copied()).collect()
});

/// A function of that name is built in.
pub(crate) fn is_native_function(name: &str) -> bool {
    BY_NAME.contains_key(name.to_ascii_uppercase().as_str())
}

/// The name of a unit, as MySQL writes it.
pub(super) fn unit_name(unit: IntervalUnit) -> &'static str {
    use IntervalUnit::*;
    match unit {
        Microsecond => "MICROSECOND",
        Second => "SECOND",
        Minute => "MINUTE",
        Hour => "HOUR",
        Day => "DAY",
        Week => "WEEK",
        Month => "MONTH",
        Quarter => "QUARTER",
        Year => "YEAR",
        SecondMicrosecond => "SECOND_MICROSECOND",
        MinuteMicrosecond => "MINUTE_MICROSECOND",
        MinuteSecond => "MINUTE_SECOND",
        HourMicrosecond => "HOUR_MICROSECOND",
        HourSecond => "HOUR_SECOND",
        HourMinute => "HOUR_MINUTE",
        DayMicrosecond => "DAY_MICROSECOND",
        DaySecond => "DAY_SECOND",
        DayMinute => "DAY_MINUTE",
        DayHour => "DAY_HOUR",
        YearMonth => "YEAR_MONTH",
    }
}

fn has_date(expr: &Expr) -> bool {
    matches!(expr.ty.ty.kind, TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_))
}

/// How many digits of a second a moment shows that is chosen among `expr` and others: of a literal string as many as it has, if it is a date.
fn shown_fsp(expr: &Expr) -> u8 {
    match &expr.ty.ty.kind {
        TypeKind::Decimal { scale, .. } => (*scale).min(6),
        TypeKind::Float | TypeKind::Double => 6,
        _ if expr.ty.ty.is_string() => {
            let text = expr.as_literal().and_then(to_text);
            text.and_then(|text| parse_datetime(&text, DateRules::default()).ok()).map_or(6, |read| read.fraction_digits)
        }
        _ => expr.ty.ty.fsp(),
    }
}

impl Binder<'_> {
    /// A call of `func` with bound arguments: typed, and folded if it can be.
    pub fn call(&mut self, func: FuncId, mut args: Vec<Expr>) -> Result<Expr> {
        if func == FuncId::Xor {
            let nullable = args.iter().any(|a| a.ty.nullable);
            let args = args.into_iter().map(chosen_number).collect();
            return Ok(self.folder.fold(Expr::call(func, args, ExprType::boolean(nullable))));
        }
        if matches!(func, FuncId::Coalesce | FuncId::Greatest | FuncId::Least) {
            return self.merging_call(func, args, Rule::Values);
        }
        if func.reads_text() {
            args = args.into_iter().enumerate().map(|(i, arg)| if func.reads_number_as_text(i) { self.bits_as_bytes(arg) } else { arg }).collect();
        }
        let is_number = |argument| func.is_arithmetic() || func.wants_number(argument);
        if args.iter().enumerate().any(|(i, arg)| arg.ty.ty.is_geometry() && (is_number(i) || func == FuncId::Point)) {
            return Err(errors::wrong_arguments(&func.name().to_ascii_lowercase()));
        }
        args = args.into_iter().enumerate().map(|(i, arg)| if is_number(i) { chosen_number(arg) } else { arg }).collect();
        let strings: Vec<&Expr> = args.iter().enumerate().filter(|(i, arg)| !arg.ty.is_null_type() && !func.wants_number(*i)).map(|(_, arg)| arg).collect();
        let collation = if func.merges_collations() {
            super::collation::aggregate(&strings, self.cx.collation(), func.compares_strings(), &func.name().to_ascii_lowercase())?
        } else {
            match args.first() {
                Some(first) => super::collation::of(&first.ty, self.cx.collation()),
                None => (self.cx.collation(), Coercibility::Coercible),
            }
        };
        let typing = Typing {
            connection: self.cx.collation(),
            collation: collation.0,
            coercibility: collation.1,
            div_precision_increment: self.cx.div_precision_increment(),
            sql_mode: self.cx.sql_mode(),
            strict: self.cx.strict(),
        };
        let ty = result_type(func, &mut args, &typing)?;
        if func.reads_text() {
            args = args.into_iter().enumerate().map(|(i, arg)| if arg.ty.ty.is_number() && !func.reads_number_as_text(i) { arg } else { self.shown(arg) }).collect();
        }
        Ok(self.folder.fold(Expr::call(func, args, ty)))
    }

    /// What shows more than its value has, as the text that shows it: a moment or time of day with digits of a second, a YEAR, a number with ZEROFILL, a
    /// FLOAT or DOUBLE with a number of digits of its own. Any other value as it is.
    pub fn shown(&self, expr: Expr) -> Expr {
        let ty = &expr.ty.ty;
        let padded = ty.zerofill && (ty.is_integer() || ty.is_real());
        let digits = ty.is_real() && ty.float_digits.is_some();
        if ty.kind == TypeKind::Year || padded || digits { self.as_text(expr) } else { self.shown_moment(expr) }
    }

    /// The same of what is stored into a string column, which takes a number by its digits.
    pub fn shown_moment(&self, expr: Expr) -> Expr {
        if !expr.ty.ty.is_temporal() || expr.ty.ty.fsp() == 0 {
            return expr;
        }
        self.as_text(expr)
    }

    fn as_text(&self, expr: Expr) -> Expr {
        let ty = ExprType::text(expr.ty.char_length(), self.cx.collation(), expr.ty.nullable).with_coercibility(expr.ty.coercibility);
        self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty })
    }

    /// BIT as the bytes that it is where a string is wanted; any other value as it is.
    pub fn bits_as_bytes(&self, expr: Expr) -> Expr {
        let TypeKind::Bit(bits) = expr.ty.ty.kind else { return expr };
        let ty = ExprType::text(u32::from(bits).div_ceil(8), Collation::binary(), expr.ty.nullable).with_coercibility(Coercibility::Implicit);
        self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty })
    }

    /// COALESCE, GREATEST and LEAST: all arguments become one type, in which they compare.
    fn merging_call(&mut self, func: FuncId, args: Vec<Expr>, rule: Rule) -> Result<Expr> {
        if func != FuncId::Coalesce && args.iter().any(|arg| arg.ty.ty.is_geometry()) {
            return Err(errors::wrong_arguments(&func.name().to_ascii_lowercase()));
        }
        let refs: Vec<&Expr> = args.iter().collect();
        let mut ty = merge(&refs, rule, self.cx.collation(), &func.name().to_ascii_lowercase())?;
        if func == FuncId::Coalesce {
            // Of COALESCE MySQL does not ask whether an argument that is never NULL ends it: what may be NULL in any of them makes a column that takes NULL.
            if rule == Rule::IfNull {
                ty.nullable = args[1].ty.nullable;
            }
        } else if ty.ty.is_string() && args.iter().any(has_date) && args.iter().all(Expr::is_repeatable) {
            return Ok(self.chosen_moment(func, args, ty));
        }
        let args = args.into_iter().map(|a| coerce(a, &ty)).collect();
        Ok(self.folder.fold(Expr::call(func, args, ty)))
    }

    /// GREATEST and LEAST of a date and what is neither date nor time, which are text of type `ty`: all compare as moments, numbers as what their text is, and the
    /// chosen one shows as a DATETIME if there is one, else as the first date. If it is the zero date, as what is no date is, the texts are compared: each argument
    /// is evaluated twice.
    fn chosen_moment(&self, func: FuncId, args: Vec<Expr>, ty: ExprType) -> Expr {
        let moment = ExprType::column(ColumnType::new(TypeKind::DateTime(6)), true);
        let fsp = args.iter().map(shown_fsp).max().unwrap_or(0);
        let has_datetime = args.iter().any(|arg| matches!(arg.ty.ty.kind, TypeKind::DateTime(_)));
        let first_is_date = args.iter().find(|arg| has_date(arg)).is_some_and(|arg| arg.ty.ty.kind == TypeKind::Date);
        let shown = ColumnType::new(if first_is_date && !has_datetime { TypeKind::Date } else { TypeKind::DateTime(fsp) });
        let length = ty.char_length().max(shown.display_length());
        let ty = ExprType::text(length, ty.ty.collation, ty.nullable).with_coercibility(ty.coercibility);
        let moments = args.iter().map(|arg| {
            let arg = self.bits_as_bytes(arg.clone());
            let arg = if arg.ty.ty.is_number() { self.as_text(arg) } else { arg };
            self.folder.fold(Expr::call(FuncId::ComparedMoment, vec![arg], moment.clone()))
        });
        let chosen = self.folder.fold(Expr::call(func, moments.collect(), moment.clone()));
        let chosen = self.folder.fold(coerce(chosen, &ExprType::column(shown, true)));
        let texts = args.into_iter().map(|arg| coerce(arg, &ty)).collect();
        let text = self.folder.fold(Expr::call(func, texts, ty.clone()));
        self.folder.fold(Expr::call(FuncId::ShownMoment, vec![chosen, text], ty))
    }

    /// A function by its name.
    pub fn function(&mut self, call: &FunctionCall) -> Result<Expr> {
        // It is for the whole expression, not for what is in it.
        let result_name = self.result_name.take();
        if let Some(schema) = &call.name.schema {
            return self.stored_function(&Str::from(schema.as_str()), call, result_name);
        }
        let name = call.name.name.to_ascii_uppercase();
        match (name.as_str(), call.args.as_slice()) {
            ("IF", [condition, then, otherwise]) => {
                let condition = self.condition(condition)?;
                let (then, otherwise) = (self.expr(then)?, self.expr(otherwise)?);
                return self.make_case(vec![(condition, then)], Some(otherwise), "if");
            }
            ("IFNULL", [value, otherwise]) => {
                let args = vec![self.expr(value)?, self.expr(otherwise)?];
                return self.merging_call(FuncId::Coalesce, args, Rule::IfNull);
            }
            ("NULLIF", [left, right]) => {
                let value = self.expr(left)?;
                let other = self.expr(right)?;
                // A hexadecimal literal against a number is a number.
                let compared = if other.ty.ty.is_number() { self.as_number(left, value.clone()) } else { value.clone() };
                let other = if compared.ty.ty.is_number() { self.as_number(right, other) } else { other };
                let equal = comparison(CompareOp::Eq, compared, other, &self.folder)?;
                let value = members_as_text(as_written(value));
                // A FLOAT that is computed is a double.
                let value = if value.ty.ty.is_real() { coerce(value.clone(), &merge(&[&value], Rule::Branches, self.cx.collation(), "nullif")?) } else { value };
                let ty = value.ty.clone().with_nullable(true);
                let null = Expr { ty: ty.clone(), ..Expr::null() };
                let kind = ExprKind::Case { branches: vec![(equal, null)], otherwise: Some(Box::new(value)) };
                return Ok(self.folder.fold(Expr { kind, ty }));
            }
            ("ISNULL", [value]) => {
                let value = self.expr(value)?;
                return Ok(self.is_null(value, false));
            }
            ("GROUPING", args) if !args.is_empty() => return self.grouping(args),
            ("IF", _) | ("IFNULL", _) | ("NULLIF", _) | ("ISNULL", _) => return Err(errors::parameter_count(&call.name.name)),
            ("VALUES", _) => return Err(errors::parameter_count("VALUES")),
            ("PASSWORD", _) | ("ENCODE", _) | ("DECODE", _) | ("ENCRYPT", _) => {
                let schema = self.cx.current_schema().unwrap_or_else(|| Str::from(""));
                return Err(errors::unknown_function(&schema, &call.name.name));
            }
            _ => {}
        }
        let Some(func) = BY_NAME.get(name.as_str()).copied() else {
            let Some(schema) = self.cx.current_schema() else { return Err(errors::no_database()) };
            return self.stored_function(&schema, call, result_name);
        };
        let (least, most) = func.arity();
        if call.args.len() < least || call.args.len() > most || super::json::is_unpaired(func, call.args.len()) {
            return Err(errors::parameter_count(&call.name.name));
        }
        let mut args = Vec::with_capacity(call.args.len());
        for (i, arg) in call.args.iter().enumerate() {
            let bound = match &arg.kind {
                // Nothing has no digits: it is no number in any base.
                ast::ExprKind::Literal(Literal::Hex { value, .. } | Literal::Bit(value)) if value.is_empty() && matches!(func, FuncId::Bin | FuncId::Oct | FuncId::Conv) => None,
                ast::ExprKind::Literal(literal) if func == FuncId::Conv && i == 0 => self.numeric_literal(literal).map(as_bits),
                ast::ExprKind::Literal(literal) if func.wants_number(i) => self.numeric_literal(literal),
                _ => None,
            };
            args.push(match bound {
                Some(number) => number,
                None if super::json::takes_value(func, i) => {
                    let value = self.expr(arg)?;
                    self.folder.fold(super::json::truth_as_json(value))
                }
                None => self.expr(arg)?,
            });
        }
        match func {
            FuncId::Now | FuncId::CurTime | FuncId::SysDate | FuncId::UtcTime | FuncId::UtcTimestamp => self.check_fsp(&args, &call.name.name)?,
            FuncId::Mod => return self.call(FuncId::Mod, args),
            FuncId::Atan if args.len() == 2 => return self.call(FuncId::Atan2, args),
            FuncId::Field | FuncId::Interval => return self.field_like(func, args),
            _ if wants_geometries(func) => {
                if let Some(at) = args.iter().position(|arg| !arg.ty.ty.is_geometry()) {
                    return Err(highkey_types::errors::illegal_value_for_type("non geometric", crate::parse::print::expression(&call.args[at])?));
                }
            }
            _ => {}
        }
        self.call(func, args)
    }

    fn check_fsp(&self, args: &[Expr], name: &str) -> Result<()> {
        match args.first().map(Expr::as_literal) {
            Some(Some(Value::Int(n))) if *n > 6 => {
                Err(MySqlError::with_message(1426, format!("Too-big precision {n} specified for '{}'. Maximum is 6.", name.to_ascii_lowercase())))
            }
            Some(Some(Value::Int(_))) | None => Ok(()),
            _ => Err(errors::wrong_arguments(&name.to_ascii_lowercase())),
        }
    }

    /// FIELD and INTERVAL compare all arguments in one domain: strings, integers or doubles. To FIELD dates and times are strings.
    fn field_like(&mut self, func: FuncId, args: Vec<Expr>) -> Result<Expr> {
        let refs: Vec<&Expr> = args.iter().filter(|a| !a.ty.is_null_type()).collect();
        let ty = if func == FuncId::Field && !refs.is_empty() && refs.iter().all(|a| a.ty.ty.is_string() || a.ty.ty.is_temporal()) {
            let (collation, coercibility) = super::collation::aggregate(&refs, self.cx.collation(), true, "field")?;
            let length = args.iter().map(|a| a.ty.char_length()).max().unwrap_or(0);
            ExprType::text(length, collation, true).with_coercibility(coercibility)
        } else {
            let refs: Vec<&Expr> = args.iter().collect();
            let merged = merge(&refs, Rule::Values, self.cx.collation(), &func.name().to_ascii_lowercase())?;
            if merged.ty.is_integer() || matches!(merged.ty.kind, TypeKind::Decimal { .. }) { merged } else { ExprType::double(true) }
        };
        let args = args.into_iter().map(|a| coerce(a, &ty)).collect();
        let mut result = ExprType::bigint(false);
        result.ty.width = if func == FuncId::Field { 3 } else { 2 };
        Ok(self.folder.fold(Expr::call(func, args, result)))
    }

    /// GROUPING(a, …): bits saying which of the group expressions are rolled up, the last argument lowest.
    fn grouping(&mut self, args: &[ast::Expr]) -> Result<Expr> {
        if !self.scope().rollup {
            return Err(errors::invalid_group_use());
        }
        let mut result: Option<Expr> = None;
        for arg in args {
            let bound = self.expr(arg)?;
            let groups = &self.scope().groups;
            let Some(position) = groups.iter().position(|g| super::scope::same_expr(g, &bound)) else {
                return Err(MySqlError::with_message(3580, "Argument #1 of GROUPING function is not in GROUP BY"));
            };
            // The rollup set is the column after groups and aggregates: `usize::MAX` until the aggregate is built.
            let set = Expr::column(super::group::ROLLUP_SET, ExprType::ubigint(false));
            let shifted = Expr::call(FuncId::ShiftRight, vec![set, Expr::int(position as i64)], ExprType::ubigint(false));
            let bit = Expr::call(FuncId::BitAnd, vec![shifted, Expr::int(1)], ExprType::ubigint(false));
            result = Some(match result {
                None => bit,
                Some(before) => {
                    let before = Expr::call(FuncId::ShiftLeft, vec![before, Expr::int(1)], ExprType::ubigint(false));
                    Expr::call(FuncId::BitOr, vec![before, bit], ExprType::ubigint(false))
                }
            });
        }
        let set = result.expect("checked by the caller");
        Ok(Expr { kind: ExprKind::Cast(Box::new(set)), ty: ExprType::bigint(false) })
    }
}

/// A number as a column of bits has it.
fn as_bits(mut number: Expr) -> Expr {
    number.ty = ExprType::column(ColumnType::new(TypeKind::Bit(64)), false);
    number
}
