//! Aggregates and window functions.

use highkey_types::errors::invalid_bitwise_aggregate_operands_size;
use highkey_types::{ALL_DIGITS, Collation, ColumnType, IntervalUnit, MySqlError, Str, TypeKind, Value};

use super::binder::{Binder, Result};
use super::errors;
use super::merge::{Rule, bare_number, chosen_number, coerce, coerce_stored, members_as_text, merge};
use super::scope::{Clause, same_expr};
use crate::functions::FuncId;
use crate::parse::ast::{self, AggregateCall, ExprKind as Ast, Over, WindowSpec};
use crate::plan::{
    Aggregate, AggregateFunc, Expr, ExprKind, ExprType, FrameBoundary, SortKey, WindowExpr, WindowFrame, WindowFunc,
};

/// The longest byte string that BIT_AND, BIT_OR and BIT_XOR take.
const BIT_OPERAND_BYTES: u32 = 511;

/// Characters of a double.
const DOUBLE_LENGTH: u8 = 22;

/// What errors call a window.
const UNNAMED: &str = "<unnamed window>";

impl Binder<'_> {
    pub fn aggregate(&mut self, call: &AggregateCall) -> Result<Expr> {
        match &call.over {
            Some(over) => self.window_function(call, over),
            None => self.plain_aggregate(call),
        }
    }

    fn plain_aggregate(&mut self, call: &AggregateCall) -> Result<Expr> {
        self.scope().check_aggregate()?;
        self.scope().in_aggregate = true;
        // To MySQL ANY_VALUE is no aggregate: names in it mean what they mean beside it.
        let aliases_first = self.scope().aliases_first;
        self.scope().aliases_first = aliases_first && call.name == "ANY_VALUE";
        let bound = self.aggregate_of(call);
        self.scope().in_aggregate = false;
        self.scope().aliases_first = aliases_first;
        let aggregate = bound?;
        let ty = aggregate.ty.clone();
        let known = self.scope().aggregates.iter().position(|a| same_aggregate(a, &aggregate));
        let index = known.unwrap_or_else(|| {
            let aggregates = &mut self.scope().aggregates;
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        Ok(Expr { kind: ExprKind::AggregateRef(index), ty })
    }

    fn aggregate_of(&mut self, call: &AggregateCall) -> Result<Aggregate> {
        let func = aggregate_func(call)?;
        let of_numbers = matches!(func, AggregateFunc::BitAnd | AggregateFunc::BitOr | AggregateFunc::BitXor);
        let argument = |binder: &mut Self, arg: &ast::Expr| match &arg.kind {
            // Hexadecimal digits are a number here.
            Ast::Literal(literal) if of_numbers => binder.numeric_literal(literal).map_or_else(|| binder.expr(arg), Ok),
            _ => binder.expr(arg),
        };
        let mut args = call.args.iter().map(|a| argument(self, a)).collect::<Result<Vec<_>>>()?;
        let most = match func {
            AggregateFunc::Count | AggregateFunc::GroupConcat => usize::MAX,
            AggregateFunc::CountStar => 0,
            AggregateFunc::JsonObjectAgg => 2,
            _ => 1,
        };
        let wrong_count = args.len() > most || (func == AggregateFunc::JsonObjectAgg && args.len() != 2);
        let several_need_distinct = func == AggregateFunc::Count && args.len() > 1 && !call.distinct;
        if wrong_count || several_need_distinct {
            return Err(errors::parameter_count(&call.name));
        }
        let computes = !matches!(
            func,
            AggregateFunc::Count | AggregateFunc::CountStar | AggregateFunc::GroupConcat | AggregateFunc::AnyValue | AggregateFunc::JsonArrayAgg | AggregateFunc::JsonObjectAgg
        );
        if computes && args.iter().any(|arg| arg.ty.ty.is_geometry()) {
            return Err(errors::wrong_arguments(&call.name.to_ascii_lowercase()));
        }
        let mut order_by = self.sort_keys(&call.order_by)?;
        // GROUP_CONCAT(a, b ORDER BY 2): a number is an argument's place.
        for (key, item) in order_by.iter_mut().zip(&call.order_by) {
            if let Some(position) = item.expr.ordinal() {
                key.expr = position
                    .checked_sub(1)
                    .and_then(|i| args.get(i as usize).cloned())
                    .ok_or_else(|| errors::unknown_column(&position.to_string(), "order clause"))?;
            }
        }
        // MySQL keeps the distinct rows in a tree, and gives them in its order.
        if func == AggregateFunc::GroupConcat && call.distinct && order_by.is_empty() {
            order_by = args.iter().map(|expr| SortKey { expr: expr.clone(), desc: false }).collect();
        }
        // (A window function reads what has been kept of them, which is text.)
        if matches!(func, AggregateFunc::Sum | AggregateFunc::Avg | AggregateFunc::StddevPop | AggregateFunc::StddevSamp | AggregateFunc::VarPop | AggregateFunc::VarSamp) {
            args = args.into_iter().map(chosen_number).collect();
        }
        let mut ty = match func {
            // A group's extreme of a column is kept in a column of that type; which one it is, the text says.
            AggregateFunc::Min | AggregateFunc::Max if args[0].as_column().is_some_and(|column| self.scope().kept_members.contains(&column)) => {
                args[0].ty.clone().with_nullable(true)
            }
            _ => self.aggregate_type(func, &mut args, false)?,
        };
        if func == AggregateFunc::GroupConcat {
            if call.distinct || !order_by.is_empty() {
                // The rows that are sorted keep BIT as a number.
                args = args.into_iter().map(|arg| if matches!(arg.ty.ty.kind, TypeKind::Bit(_)) { bare_number(arg) } else { arg }).collect();
            }
            let text = if args.len() == 1 { self.bits_as_bytes(args.pop().expect("one argument")) } else { self.call(FuncId::Concat, args)? };
            let length = self.cx.group_concat_max_len().min(u64::from(u32::MAX)) as u32;
            let (collation, coercibility) = super::collation::of(&text.ty, self.cx.collation());
            ty = ExprType::text(length, collation, true).with_coercibility(coercibility);
            let as_text = ExprType::text(text.ty.char_length(), collation, text.ty.nullable);
            let separator = self.text(call.separator.as_deref().unwrap_or(","));
            args = vec![coerce(text, &as_text), separator];
        }
        if !matches!(func, AggregateFunc::GroupConcat) {
            order_by.clear();
        }
        // DISTINCT changes nothing for these.
        let idempotent = matches!(func, AggregateFunc::Min | AggregateFunc::Max | AggregateFunc::BitAnd | AggregateFunc::BitOr | AggregateFunc::AnyValue);
        Ok(Aggregate { func, distinct: call.distinct && !idempotent, args, order_by, ty })
    }

    /// A value that is given back as it is by what is no column: of a FLOAT it is a double, of a BIT its number, of ENUM and SET the text.
    fn given_back(&self, expr: Expr) -> Result<Expr> {
        let expr = members_as_text(expr);
        Ok(match expr.ty.ty.kind {
            TypeKind::Bit(_) => bare_number(expr),
            TypeKind::Float => {
                let ty = merge(&[&expr], Rule::Values, self.cx.collation(), "value")?;
                coerce(expr, &ty)
            }
            _ => expr,
        })
    }

    /// Result type of an aggregate, of a window if it is `over` one; its arguments are converted to what it adds up.
    fn aggregate_type(&mut self, func: AggregateFunc, args: &mut [Expr], over: bool) -> Result<ExprType> {
        use AggregateFunc as F;
        Ok(match func {
            F::CountStar | F::Count => ExprType::bigint(false),
            F::Sum | F::Avg => {
                let argument = &mut args[0];
                let exact = argument.ty.ty.is_integer()
                    || matches!(argument.ty.ty.kind, TypeKind::Decimal { .. } | TypeKind::Year | TypeKind::Bit(_))
                    || argument.ty.ty.is_temporal();
                if !exact && !argument.ty.is_null_type() {
                    let mut ty = ExprType::double(true);
                    ty.ty.float_digits = self.summed_digits(func, &argument.ty.ty);
                    *argument = coerce(argument.clone(), &ExprType::double(true));
                    return Ok(ty);
                }
                let (int, scale) = argument.ty.decimal_digits();
                // The digits of a quotient are added up before the sum is rounded.
                *argument = match argument.has_hidden_digits() {
                    true => argument.clone().summed(),
                    false => coerce(argument.clone(), &ExprType::decimal((int + scale).min(65), scale, true)),
                };
                if func == F::Sum {
                    ExprType::decimal(int + scale + 22, scale, true)
                } else {
                    let extra = u32::from(self.cx.div_precision_increment());
                    ExprType::decimal(int + scale + extra, scale + extra, true)
                }
            }
            F::AnyValue => {
                args[0] = self.given_back(args[0].clone())?;
                args[0].ty.clone().with_nullable(true)
            }
            F::Min | F::Max if over => {
                args[0] = self.given_back(args[0].clone())?;
                args[0].ty.clone().with_nullable(true)
            }
            F::Min | F::Max => {
                // ENUM and SET compare as text here, not by their numbers. Groups are kept with columns of the arguments' types; the only one is computed.
                let argument = members_as_text(args[0].clone());
                let computed = !self.scope().grouped;
                args[0] = if computed && matches!(argument.ty.ty.kind, TypeKind::Bit(_)) { bare_number(argument) } else { argument };
                let mut ty = args[0].ty.clone().with_nullable(true);
                if computed && ty.ty.kind == TypeKind::Float && ty.ty.fixed_digits().is_none() {
                    ty.ty.float_digits = Some((ty.ty.display_length() as u8, ALL_DIGITS));
                }
                ty
            }
            F::BitAnd | F::BitOr | F::BitXor => {
                let argument = &mut args[0];
                if argument.ty.ty.is_binary() {
                    let length = argument.ty.char_length();
                    if length > BIT_OPERAND_BYTES {
                        return Err(invalid_bitwise_aggregate_operands_size());
                    }
                    // MySQL keeps a byte for whether there was a row.
                    ExprType::text(length + 1, Collation::binary(), false).with_coercibility(argument.ty.coercibility)
                } else if matches!(argument.ty.ty.kind, TypeKind::Decimal { .. } | TypeKind::Float | TypeKind::Double) {
                    // The bits of a signed number.
                    let signed = coerce(argument.clone(), &ExprType::bigint(argument.ty.nullable));
                    *argument = self.call(FuncId::BitOr, vec![signed, Expr::int(0)])?;
                    ExprType::ubigint(false)
                } else {
                    *argument = coerce(argument.clone(), &ExprType::ubigint(argument.ty.nullable));
                    ExprType::ubigint(false)
                }
            }
            F::StddevPop | F::StddevSamp | F::VarPop | F::VarSamp => {
                args[0] = coerce(args[0].clone(), &ExprType::double(true));
                ExprType::double(true)
            }
            F::GroupConcat => ExprType::text(1024, self.cx.collation(), true),
            F::JsonArrayAgg | F::JsonObjectAgg => {
                let last = args.len() - 1;
                args[last] = super::json::as_json(args[last].clone());
                ExprType::column(ColumnType::new(TypeKind::Json), true)
            }
        })
    }

    /// The digits of the sum or the mean of doubles that have a fixed number of them behind the point.
    fn summed_digits(&self, func: AggregateFunc, argument: &ColumnType) -> Option<(u8, u8)> {
        let (total, digits) = (argument.display_length(), argument.fixed_digits()?);
        if func == AggregateFunc::Sum {
            return Some((DOUBLE_LENGTH, digits));
        }
        let more = self.cx.div_precision_increment();
        let digits = digits.saturating_add(more);
        (digits < ALL_DIGITS).then_some((u8::try_from(total).unwrap_or(DOUBLE_LENGTH).saturating_add(more), digits))
    }

    /// `expr [DESC], …` over the current scope.
    pub fn sort_keys(&mut self, items: &[ast::OrderItem]) -> Result<Vec<SortKey>> {
        items.iter().map(|item| Ok(SortKey { expr: self.expr(&item.expr)?, desc: item.desc })).collect()
    }

    fn window_function(&mut self, call: &AggregateCall, over: &Over) -> Result<Expr> {
        self.scope().check_window(&call.name)?;
        if call.distinct && !matches!(call.name.as_str(), "MIN" | "MAX") {
            return Err(highkey_types::errors::not_supported_yet("<window function>(DISTINCT ..)"));
        }
        let spec = match over {
            Over::Spec(spec) => self.resolve_window(spec, 0)?,
            Over::Named(name) => {
                let named = self.named_window(name)?;
                self.resolve_window(&named, 1)?
            }
        };
        let clause = self.scope().clause;
        self.scope().clause = Some(Clause::Partition);
        let bound = self.window_of(call, &spec);
        self.scope().clause = clause;
        let window = bound?;
        let ty = window.ty.clone();
        let windows = &mut self.scope().windows;
        windows.push(window);
        Ok(Expr { kind: ExprKind::WindowRef(windows.len() - 1), ty })
    }

    /// What WINDOW says of a name.
    fn named_window(&mut self, name: &str) -> Result<WindowSpec> {
        let scope = self.scope();
        let named = scope.named_windows.iter().find(|(known, _)| super::scope::same_name(known, name)).map(|(_, spec)| spec.clone());
        let named = named.ok_or_else(|| highkey_types::errors::window_no_such_window(name))?;
        scope.used_windows.push(name.to_owned());
        Ok(named)
    }

    /// The windows of WINDOW that no function uses have to be right, too.
    pub fn check_unused_windows(&mut self) -> Result<()> {
        for (name, spec) in self.scope().named_windows.clone() {
            let is_used = self.scope().used_windows.iter().any(|used| super::scope::same_name(used, &name));
            // Circles are among those that are used only by each other.
            let spec = self.resolve_window(&spec, 1)?;
            if is_used {
                continue;
            }
            let clause = self.scope().clause.replace(Clause::Partition);
            let bound = self.window_keys(&spec);
            self.scope().clause = clause;
            bound?;
        }
        Ok(())
    }

    /// A window with what it inherits.
    fn resolve_window(&mut self, spec: &WindowSpec, depth: usize) -> Result<WindowSpec> {
        let Some(base) = &spec.base else { return Ok(spec.clone()) };
        let named = self.named_window(base)?;
        if depth > 32 {
            return Err(MySqlError::with_message(3580, "There is a circularity in the window dependency graph."));
        }
        let mut resolved = self.resolve_window(&named, depth + 1)?;
        if resolved.frame.is_some() {
            return Err(highkey_types::errors::window_no_inherit_frame(base));
        }
        if !spec.partition_by.is_empty() {
            return Err(MySqlError::with_message(3581, "A window which depends on another cannot define partitioning."));
        }
        if !spec.order_by.is_empty() {
            if !resolved.order_by.is_empty() {
                return Err(MySqlError::with_message(3583, format!("Window '<unnamed window>' cannot inherit '{base}' since both contain an ORDER BY clause.")));
            }
            resolved.order_by = spec.order_by.clone();
        }
        if spec.frame.is_some() {
            resolved.frame = spec.frame.clone();
        }
        Ok(resolved)
    }

    fn window_of(&mut self, call: &AggregateCall, spec: &WindowSpec) -> Result<WindowExpr> {
        let func = window_func(call)?;
        let mut args = call.args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>>>()?;
        let ty = match func {
            WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank => {
                self.arguments(call, &args, 0, 0)?;
                ExprType::ubigint(false)
            }
            WindowFunc::PercentRank | WindowFunc::CumeDist => {
                self.arguments(call, &args, 0, 0)?;
                ExprType::double(false)
            }
            WindowFunc::Ntile => {
                self.arguments(call, &args, 1, 1)?;
                if is_no_count(&args[0]) {
                    return Err(errors::wrong_arguments("ntile"));
                }
                ExprType::ubigint(true)
            }
            WindowFunc::Lag | WindowFunc::Lead => {
                self.arguments(call, &args, 1, 3)?;
                if args.len() == 1 {
                    args.push(Expr::int(1));
                }
                if args.len() == 2 {
                    args.push(Expr { ty: args[0].ty.clone().with_nullable(true), ..Expr::null() });
                }
                let ty = merge(&[&args[0], &args[2]], Rule::Values, self.cx.collation(), "lag")?;
                args[0] = coerce_stored(args[0].clone(), &ty);
                args[2] = coerce_stored(args[2].clone(), &ty);
                ty.with_nullable(true)
            }
            WindowFunc::FirstValue | WindowFunc::LastValue => {
                self.arguments(call, &args, 1, 1)?;
                args[0] = self.given_back(args[0].clone())?;
                args[0].ty.clone().with_nullable(true)
            }
            WindowFunc::NthValue => {
                self.arguments(call, &args, 2, 2)?;
                if is_no_count(&args[1]) {
                    return Err(errors::wrong_arguments("nth_value"));
                }
                args[0] = self.given_back(args[0].clone())?;
                args[0].ty.clone().with_nullable(true)
            }
            WindowFunc::Aggregate(func) => {
                if matches!(func, AggregateFunc::GroupConcat) {
                    return Err(highkey_types::errors::not_supported_yet("group_concat as window function"));
                }
                self.aggregate_type(func, &mut args, true)?
            }
        };
        let (partition_by, order_by, frame) = self.window_keys(spec)?;
        // Ranking functions ignore the frame.
        let frame = frame.filter(|_| matches!(func, WindowFunc::FirstValue | WindowFunc::LastValue | WindowFunc::NthValue | WindowFunc::Aggregate(_)));
        Ok(WindowExpr { func, args, distinct: false, partition_by, order_by, frame, ty })
    }

    /// PARTITION BY, ORDER BY and the frame of a window.
    fn window_keys(&mut self, spec: &WindowSpec) -> Result<(Vec<Expr>, Vec<SortKey>, Option<WindowFrame>)> {
        let nested = |error: MySqlError| if error.code == 3593 { highkey_types::errors::window_nested_window_func_use_in_window_spec(UNNAMED) } else { error };
        let partition_by = spec.partition_by.iter().map(|e| self.expr(e)).collect::<Result<Vec<_>>>().map_err(nested)?;
        let mut order_by = self.sort_keys(&spec.order_by).map_err(nested)?;
        if spec.partition_by.iter().chain(spec.order_by.iter().map(|item| &item.expr)).any(|expr| expr.ordinal().is_some()) {
            return Err(highkey_types::errors::window_illegal_order_by(UNNAMED));
        }
        let frame = spec.frame.as_ref().map(|f| self.frame(f)).transpose()?;
        if let Some(frame) = &frame {
            check_range(frame, &order_by)?;
            self.widen_key(frame, &mut order_by)?;
        }
        Ok((partition_by, order_by, frame))
    }

    /// The key of RANGE in a type that can tell it from the key plus an offset with a fraction.
    fn widen_key(&self, frame: &WindowFrame, order_by: &mut [SortKey]) -> Result<()> {
        let numbers = [&frame.start, &frame.end].into_iter().filter_map(|bound| match bound {
            FrameBoundary::Preceding(offset, None) | FrameBoundary::Following(offset, None) => Some(offset),
            _ => None,
        });
        let fractions: Vec<&Expr> = numbers.filter(|offset| !offset.ty.ty.is_integer()).collect();
        if let [key] = order_by
            && !frame.rows
            && !fractions.is_empty()
        {
            let values: Vec<&Expr> = std::iter::once(&key.expr).chain(fractions).collect();
            let ty = merge(&values, Rule::Values, self.cx.collation(), "range")?;
            key.expr = coerce(key.expr.clone(), &ty);
        }
        Ok(())
    }

    fn arguments(&self, call: &AggregateCall, args: &[Expr], least: usize, most: usize) -> Result<()> {
        if args.len() < least || args.len() > most { Err(errors::parameter_count(&call.name)) } else { Ok(()) }
    }

    fn frame(&mut self, frame: &ast::Frame) -> Result<WindowFrame> {
        let (start, end) = (self.frame_bound(&frame.start)?, self.frame_bound(&frame.end)?);
        for bound in [&start, &end] {
            if frame.rows && matches!(bound, FrameBoundary::Preceding(_, Some(_)) | FrameBoundary::Following(_, Some(_))) {
                return Err(highkey_types::errors::window_rows_interval_use(UNNAMED));
            }
            if let FrameBoundary::Preceding(offset, _) | FrameBoundary::Following(offset, _) = bound
                && offset.as_literal().is_some_and(|value| !is_offset(value, frame.rows))
            {
                return Err(highkey_types::errors::window_frame_illegal(UNNAMED));
            }
        }
        if matches!(start, FrameBoundary::UnboundedFollowing) {
            return Err(highkey_types::errors::window_frame_start_illegal(UNNAMED));
        }
        if matches!(end, FrameBoundary::UnboundedPreceding) {
            return Err(highkey_types::errors::window_frame_end_illegal(UNNAMED));
        }
        let crossed = matches!(
            (&start, &end),
            (FrameBoundary::CurrentRow, FrameBoundary::Preceding(..)) | (FrameBoundary::Following(..), FrameBoundary::CurrentRow | FrameBoundary::Preceding(..))
        );
        if crossed {
            return Err(highkey_types::errors::window_frame_illegal(UNNAMED));
        }
        Ok(WindowFrame { rows: frame.rows, start, end })
    }

    fn frame_bound(&mut self, bound: &ast::FrameBound) -> Result<FrameBoundary> {
        let mut offset = |expr: &ast::Expr| -> Result<(Expr, Option<IntervalUnit>)> {
            match &expr.kind {
                Ast::DateArith { value, unit, .. } => {
                    let amount = self.expr(value)?;
                    let whole = amount.as_literal().and_then(Value::as_str).and_then(|text| text.trim().parse::<i64>().ok());
                    Ok((whole.map_or(amount, Expr::int), Some(*unit)))
                }
                _ => Ok((self.expr(expr)?, None)),
            }
        };
        Ok(match bound {
            ast::FrameBound::UnboundedPreceding => FrameBoundary::UnboundedPreceding,
            ast::FrameBound::UnboundedFollowing => FrameBoundary::UnboundedFollowing,
            ast::FrameBound::CurrentRow => FrameBoundary::CurrentRow,
            ast::FrameBound::Preceding(expr) => {
                let (expr, unit) = offset(expr)?;
                FrameBoundary::Preceding(expr, unit)
            }
            ast::FrameBound::Following(expr) => {
                let (expr, unit) = offset(expr)?;
                FrameBoundary::Following(expr, unit)
            }
        })
    }
}

/// RANGE with an offset: it is added to one key, a number, or as INTERVAL to a moment, a date or a time of day.
fn check_range(frame: &WindowFrame, order_by: &[SortKey]) -> Result<()> {
    if frame.rows {
        return Ok(());
    }
    for bound in [&frame.start, &frame.end] {
        let (FrameBoundary::Preceding(_, unit) | FrameBoundary::Following(_, unit)) = bound else { continue };
        let [key] = order_by else { return Err(highkey_types::errors::window_range_frame_order_type(UNNAMED)) };
        let ty = &key.expr.ty.ty;
        match (ty.is_temporal(), ty.is_number(), unit) {
            (true, _, None) => return Err(highkey_types::errors::window_range_frame_temporal_type(UNNAMED)),
            (false, true, Some(_)) => return Err(highkey_types::errors::window_range_frame_numeric_type(UNNAMED)),
            (false, false, _) => return Err(highkey_types::errors::window_range_frame_order_type(UNNAMED)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a literal counts rows, or can be added to the key of a RANGE.
fn is_offset(value: &Value, rows: bool) -> bool {
    match value {
        Value::Null => false,
        Value::Int(n) => *n >= 0,
        Value::UInt(n) => i64::try_from(*n).is_ok(),
        Value::Decimal(n) => !rows && !n.is_negative(),
        Value::Double(n) => !rows && *n >= 0.0,
        _ => !rows,
    }
}

/// A literal that is no positive number.
fn is_no_count(expr: &Expr) -> bool {
    matches!(expr.as_literal(), Some(Value::Int(n)) if *n <= 0)
}

fn same_aggregate(a: &Aggregate, b: &Aggregate) -> bool {
    a.func == b.func
        && a.distinct == b.distinct
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(|(x, y)| same_expr(x, y))
        && a.order_by.is_empty()
        && b.order_by.is_empty()
}

fn aggregate_func(call: &AggregateCall) -> Result<AggregateFunc> {
    use AggregateFunc as F;
    Ok(match call.name.as_str() {
        "COUNT" if call.star => F::CountStar,
        "COUNT" => F::Count,
        "SUM" => F::Sum,
        "AVG" => F::Avg,
        "MIN" => F::Min,
        "MAX" => F::Max,
        "BIT_AND" => F::BitAnd,
        "BIT_OR" => F::BitOr,
        "BIT_XOR" => F::BitXor,
        "STDDEV_POP" => F::StddevPop,
        "STDDEV_SAMP" => F::StddevSamp,
        "VAR_POP" => F::VarPop,
        "VAR_SAMP" => F::VarSamp,
        "GROUP_CONCAT" => F::GroupConcat,
        "ANY_VALUE" => F::AnyValue,
        "JSON_ARRAYAGG" => F::JsonArrayAgg,
        "JSON_OBJECTAGG" => F::JsonObjectAgg,
        other => return Err(highkey_types::errors::not_supported_yet(other)),
    })
}

fn window_func(call: &AggregateCall) -> Result<WindowFunc> {
    Ok(match call.name.as_str() {
        "ROW_NUMBER" => WindowFunc::RowNumber,
        "RANK" => WindowFunc::Rank,
        "DENSE_RANK" => WindowFunc::DenseRank,
        "PERCENT_RANK" => WindowFunc::PercentRank,
        "CUME_DIST" => WindowFunc::CumeDist,
        "NTILE" => WindowFunc::Ntile,
        "LAG" => WindowFunc::Lag,
        "LEAD" => WindowFunc::Lead,
        "FIRST_VALUE" => WindowFunc::FirstValue,
        "LAST_VALUE" => WindowFunc::LastValue,
        "NTH_VALUE" => WindowFunc::NthValue,
        _ => WindowFunc::Aggregate(aggregate_func(call)?),
    })
}

/// An empty text, for fields without a name of their own.
pub(super) fn empty() -> Str {
    Str::from("")
}
