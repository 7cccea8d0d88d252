//! Window functions.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_window::cume_dist::cume_dist_udwf;
use datafusion::functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf, nth_value_udwf};
use datafusion::functions_window::ntile::ntile_udwf;
use datafusion::functions_window::rank::{dense_rank_udwf, percent_rank_udwf, rank_udwf};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Case, Cast, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::logical_plan::Window;
use datafusion::logical_expr::{
    Expr as DfExpr, LogicalPlan, Operator, SortExpr, WindowFrame as DfFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, binary_expr, lit,
};
use highkey_types::{ColumnType, Date, Interval, IntervalUnit, Value, errors};

use super::expr::{apply, literal};
use super::{Lowered, Lowerer, Projecting, Scope};
use crate::df::error::user;
use crate::df::kernel::{Kernel, KernelFunction};
use crate::df::repr::{Repr, data_type};
use crate::expr::eval;
use crate::plan::{Expr, FrameBoundary, Rel, WindowExpr, WindowFrame, WindowFunc, window_name};

impl Lowerer {
    pub fn window(&self, input: &Rel, windows: &[WindowExpr]) -> Result<Lowered> {
        let lowered = self.rel(input, &[])?;
        let mut scope = Scope::of(input, &lowered);
        let plan = self.join_scalar_subqueries(lowered.plan, &mut scope, &mut [])?;
        // Everything that windows compute from becomes a column first, so that windows over the same keys sort once.
        let mut prepared = Projecting::default();
        let mut columns: Vec<DfExpr> = lowered.columns.into_iter().map(|c| prepared.push(self, c, "column")).collect();
        let mut groups: Vec<(Vec<DfExpr>, Vec<SortExpr>, Vec<DfExpr>)> = Vec::new();
        let mut shared_keys: Vec<(DfExpr, DfExpr)> = Vec::new();
        for window in windows {
            if self.is_null_count(window)? {
                columns.push(literal(ScalarValue::try_from(&data_type(&window.ty.ty))?));
                continue;
            }
            let mut key = |expr: DfExpr| match shared_keys.iter().find(|(e, _)| *e == expr) {
                Some((_, column)) => column.clone(),
                None => {
                    let column = prepared.push(self, expr.clone(), "key");
                    shared_keys.push((expr, column.clone()));
                    column
                }
            };
            let partition = window.partition_by.iter().map(|e| Ok(key(self.group_key(e, &scope)?))).collect::<Result<Vec<_>>>()?;
            let (frame, is_of_nulls) = self.frame(window, &scope)?;
            let order = window
                .order_by
                .iter()
                .map(|k| {
                    let order = match &window.frame {
                        _ if is_of_nulls => DfExpr::Cast(Cast::new(Box::new(self.number_key(&k.expr, false, &scope)?), DataType::Float64)),
                        Some(frame) if ranges_over_values(frame) => self.number_key(&k.expr, is_by_calendar(frame), &scope)?,
                        _ => self.order_key(&k.expr, &scope)?,
                    };
                    Ok(SortExpr::new(key(order), !k.desc, !k.desc))
                })
                .collect::<Result<Vec<_>>>()?;
            let (fun, args, default) = self.window_function(window, &scope)?;
            let args = args
                .into_iter()
                .map(|arg| match arg {
                    DfExpr::Literal(..) => arg,
                    other => prepared.push(self, other, "arg"),
                })
                .collect::<Vec<_>>();
            let default = default.map(|d| prepared.push(self, d, "default"));
            let mut call = |args: Vec<DfExpr>, hint: &str| {
                let function = DfExpr::WindowFunction(Box::new(WindowFunction {
                    fun: fun.clone(),
                    params: WindowFunctionParams {
                        args,
                        partition_by: partition.clone(),
                        order_by: order.clone(),
                        window_frame: frame.clone(),
                        filter: None,
                        null_treatment: None,
                        distinct: false,
                    },
                }));
                // DataFusion's optimizer refuses a plan that computes the same twice.
                let same = groups.iter().flat_map(|(.., functions)| functions).find_map(|known| match known {
                    DfExpr::Alias(alias) if *alias.expr == function => Some(alias.name.clone()),
                    _ => None,
                });
                if let Some(name) = same {
                    return Lowerer::named(name);
                }
                let name = self.shared.name(hint);
                let function = function.alias(name.clone());
                match groups.iter_mut().find(|(p, o, _)| *p == partition && *o == order) {
                    Some((.., functions)) => functions.push(function),
                    None => groups.push((partition.clone(), order.clone(), vec![function])),
                }
                Lowerer::named(name)
            };
            // EXPLAIN shows it.
            let hint = window_name(window.func);
            let result = match default {
                None => call(args, &hint),
                Some(default) => {
                    // LAG and LEAD with a default that is not constant: where there is no such row, LAG(1) is NULL.
                    let exists = call(vec![lit(1i64), args[1].clone()], "exists");
                    let value = call(vec![args[0].clone(), args[1].clone()], &hint);
                    let present = DfExpr::IsNotNull(Box::new(exists));
                    DfExpr::Case(Case::new(None, vec![(Box::new(present), Box::new(value))], Some(Box::new(default))))
                }
            };
            columns.push(self.in_type(window, result));
        }
        let mut plan = if prepared.is_empty() { plan } else { prepared.over(plan)? };
        for (_, _, functions) in groups {
            plan = LogicalPlan::Window(Window::try_new(functions, Arc::new(plan))?);
        }
        Ok(Lowered { plan, columns })
    }

    /// DataFusion's rank functions have their own integer types.
    fn in_type(&self, window: &WindowExpr, result: DfExpr) -> DfExpr {
        let native = match window.func {
            WindowFunc::RowNumber | WindowFunc::Rank | WindowFunc::DenseRank | WindowFunc::Ntile => DataType::UInt64,
            _ => return result,
        };
        let wanted = data_type(&window.ty.ty);
        if wanted == native { result } else { DfExpr::Cast(Cast::new(Box::new(result), wanted)) }
    }

    /// The function, its arguments, and a default that must be applied outside of it.
    fn window_function(&self, window: &WindowExpr, scope: &Scope) -> Result<(WindowFunctionDefinition, Vec<DfExpr>, Option<DfExpr>)> {
        let of = |udwf| WindowFunctionDefinition::WindowUDF(udwf);
        let value = |i: usize| self.value_as(&window.args[i], &window.ty.ty, scope);
        Ok(match window.func {
            WindowFunc::RowNumber => (of(row_number_udwf()), Vec::new(), None),
            WindowFunc::Rank => (of(rank_udwf()), Vec::new(), None),
            WindowFunc::DenseRank => (of(dense_rank_udwf()), Vec::new(), None),
            WindowFunc::PercentRank => (of(percent_rank_udwf()), Vec::new(), None),
            WindowFunc::CumeDist => (of(cume_dist_udwf()), Vec::new(), None),
            WindowFunc::Ntile => (of(ntile_udwf()), vec![lit(self.count_from(1, &window.args[0], window.func)?)], None),
            WindowFunc::Lag | WindowFunc::Lead => {
                let udwf = if window.func == WindowFunc::Lag { lag_udwf() } else { lead_udwf() };
                let offset = window.args.get(1).map(|e| self.count_from(i64::MIN + 1, e, window.func)).transpose()?.unwrap_or(1);
                let default = window.args.get(2).filter(|d| !matches!(d.as_literal(), Some(Value::Null)));
                let default = default.map(|d| self.value_as(d, &window.ty.ty, scope)).transpose()?;
                (of(udwf), vec![value(0)?, lit(offset)], default)
            }
            WindowFunc::FirstValue => (of(first_value_udwf()), vec![value(0)?], None),
            WindowFunc::LastValue => (of(last_value_udwf()), vec![value(0)?], None),
            WindowFunc::NthValue => (of(nth_value_udwf()), vec![value(0)?, lit(self.count_from(1, &window.args[1], window.func)?)], None),
            WindowFunc::Aggregate(func) => {
                let call = self.call(func, window.distinct, &window.args, &[], &window.ty, scope)?;
                (WindowFunctionDefinition::AggregateUDF(call.udaf), call.args, None)
            }
        })
    }

    /// What says how many rows, before there are any.
    fn count(&self, expr: &Expr) -> Result<Count> {
        if !expr.columns().is_empty() || !expr.is_repeatable() {
            return Ok(Count::Other);
        }
        Ok(match self.value(expr, &Scope::empty())? {
            DfExpr::Literal(ScalarValue::Int64(Some(n)), _) => Count::Of(n.into()),
            DfExpr::Literal(ScalarValue::UInt64(Some(n)), _) => Count::Of(n.into()),
            DfExpr::Literal(value, _) if value.is_null() => Count::Null,
            DfExpr::Literal(..) => Count::Other,
            // A variable: what it is now.
            _ => {
                self.shared.plan_for_once();
                match eval(expr, &[], &mut *self.shared.unheard()).map_err(user)? {
                    Value::Null => Count::Null,
                    Value::Int(n) => Count::Of(n.into()),
                    Value::UInt(n) => Count::Of(n.into()),
                    _ => Count::Other,
                }
            }
        })
    }

    /// NTILE and NTH_VALUE of NULL are NULL for all rows.
    fn is_null_count(&self, window: &WindowExpr) -> Result<bool> {
        let count = match window.func {
            WindowFunc::Ntile => &window.args[0],
            WindowFunc::NthValue => &window.args[1],
            _ => return Ok(false),
        };
        Ok(matches!(self.count(count)?, Count::Null))
    }

    /// A whole number from `least` on, or error 1210. LAG and LEAD may look beyond all rows, and the other way.
    fn count_from(&self, least: i64, expr: &Expr, func: WindowFunc) -> Result<i64> {
        match self.count(expr)? {
            Count::Of(n) if n > i128::from(i64::MAX) && matches!(func, WindowFunc::Lag | WindowFunc::Lead) => Ok(i64::MAX),
            Count::Of(n) if (i128::from(least)..=i128::from(i64::MAX)).contains(&n) => Ok(n as i64),
            _ => Err(user(errors::wrong_arguments(window_name(func)))),
        }
    }

    /// The frame, and whether it has no rows but those of all NULLs, for them: its key is then a double.
    fn frame(&self, window: &WindowExpr, scope: &Scope) -> Result<(DfFrame, bool)> {
        let Some(frame) = &window.frame else {
            return Ok((DfFrame::new((!window.order_by.is_empty()).then_some(false)), false));
        };
        let units = if frame.rows { WindowFrameUnits::Rows } else { WindowFrameUnits::Range };
        // A RANGE offset has the type of the order key it is added to.
        let key = match window.order_by.first() {
            Some(key) if !frame.rows => Some(Repr::of(&key.expr.ty.ty)),
            _ => None,
        };
        let offset = |expr: &Expr, unit: Option<IntervalUnit>| -> Result<ScalarValue> {
            let Some(key) = key else {
                return match self.count(expr)? {
                    Count::Of(n) if (0..=i128::from(i64::MAX)).contains(&n) => Ok(ScalarValue::UInt64(Some(n as u64))),
                    _ => Err(user(errors::window_frame_illegal("<unnamed window>"))),
                };
            };
            match unit {
                Some(unit) => self.interval(expr, unit, key, is_by_calendar(frame)),
                None => {
                    let ty = match key {
                        Repr::Date | Repr::DateTime | Repr::Time => return Err(user(errors::not_supported_yet("RANGE over a temporal key without INTERVAL"))),
                        // A YEAR among them, of which 1 would be 2001.
                        Repr::UInt => ColumnType::ubigint(),
                        _ => window.order_by[0].expr.ty.ty.clone(),
                    };
                    match self.value_as(expr, &ty, scope)? {
                        DfExpr::Literal(value, _) => Ok(value),
                        _ => Err(user(errors::not_supported_yet("a frame bound that is not constant"))),
                    }
                }
            }
        };
        let unbounded = || match key {
            Some(_) => ScalarValue::Null,
            None => ScalarValue::UInt64(None),
        };
        let bound = |boundary: &FrameBoundary| -> Result<WindowFrameBound> {
            Ok(match boundary {
                FrameBoundary::UnboundedPreceding => WindowFrameBound::Preceding(unbounded()),
                FrameBoundary::Preceding(e, unit) => WindowFrameBound::Preceding(offset(e, *unit)?),
                FrameBoundary::CurrentRow => WindowFrameBound::CurrentRow,
                FrameBoundary::Following(e, unit) => WindowFrameBound::Following(offset(e, *unit)?),
                FrameBoundary::UnboundedFollowing => WindowFrameBound::Following(unbounded()),
            })
        };
        let (start, end) = (bound(&frame.start)?, bound(&frame.end)?);
        let is_empty = match (&start, &end) {
            (WindowFrameBound::Preceding(from), WindowFrameBound::Preceding(to)) => !from.is_null() && is_shorter(from, to)?,
            (WindowFrameBound::Following(from), WindowFrameBound::Following(to)) => !to.is_null() && is_shorter(to, from)?,
            _ => false,
        };
        if is_empty {
            // DataFusion refuses such frames. Long before all rows there is none, either.
            let before = if key.is_some() { ScalarValue::Float64(Some(f64::INFINITY)) } else { ScalarValue::UInt64(Some(u64::from(u32::MAX) << 16)) };
            return Ok((DfFrame::new_bounds(units, WindowFrameBound::Preceding(before.clone()), WindowFrameBound::Preceding(before)), key.is_some()));
        }
        Ok((DfFrame::new_bounds(units, start, end), false))
    }

    /// What is added to a `number_key` of the representation `key`, or subtracted from it.
    fn interval(&self, amount: &Expr, unit: IntervalUnit, key: Repr, by_calendar: bool) -> Result<ScalarValue> {
        use IntervalUnit::{Day, Hour, Microsecond, Minute, Month, Quarter, Week, Year};
        let interval = match amount.as_literal() {
            Some(Value::Null) => None,
            // A number's fraction is rounded, a text's cut.
            Some(Value::Text(text)) if matches!(unit, Microsecond | Minute | Hour | Day | Week | Month | Quarter | Year) => {
                Interval::parse(text.split('.').next().unwrap_or_default(), unit)
            }
            Some(Value::Text(text)) => Interval::parse(text, unit),
            Some(Value::Decimal(amount)) => Interval::parse(&amount.to_string(), unit),
            Some(Value::Double(amount)) => Interval::parse(&amount.to_string(), unit),
            _ => match self.count(amount)? {
                Count::Of(n) => Some(Interval::from_i64(i64::try_from(n).unwrap_or(i64::MAX), unit)),
                Count::Null => None,
                Count::Other => return Err(user(errors::window_range_bound_not_constant("<unnamed window>"))),
            },
        };
        let interval = interval.filter(|interval| !interval.negative).ok_or_else(|| user(errors::window_frame_illegal("<unnamed window>")))?;
        let seconds = interval.hours.saturating_mul(3600).saturating_add(interval.minutes.saturating_mul(60)).saturating_add(interval.seconds);
        let micros = seconds.saturating_mul(1_000_000).saturating_add(interval.micros).min(MOST_DAYS * DAY_MICROS) as i64;
        let days = interval.days.min(MOST_DAYS);
        if !by_calendar {
            return Ok(ScalarValue::Int64(Some((days * DAY_MICROS) as i64 + micros)));
        }
        if key == Repr::Time {
            return Err(user(errors::not_supported_yet("RANGE over times of day with an interval of months")));
        }
        let months = interval.years.saturating_mul(12).saturating_add(interval.months).min(MOST_MONTHS);
        Ok(ScalarValue::new_interval_mdn(months as i32, days as i32, micros.saturating_mul(1000)))
    }

    /// An order key that offsets can be added to: temporal values as microseconds, or as Arrow's timestamps, which know the calendar.
    fn number_key(&self, expr: &Expr, by_calendar: bool, scope: &Scope) -> Result<DfExpr> {
        match Repr::of(&expr.ty.ty) {
            from @ (Repr::Date | Repr::DateTime) => {
                let micros = apply(KernelFunction::udf(Kernel::Micros(from), None), vec![self.value(expr, scope)?]);
                if !by_calendar {
                    return Ok(micros);
                }
                let epoch = Date::new(1970, 1, 1).to_days() * DAY_MICROS as i64;
                let moment = binary_expr(micros, Operator::Minus, lit(epoch));
                Ok(DfExpr::Cast(Cast::new(Box::new(moment), DataType::Timestamp(TimeUnit::Microsecond, None))))
            }
            _ => self.order_key(expr, scope),
        }
    }
}

/// A number of rows.
enum Count {
    Null,
    Of(i128),
    /// No whole number, or none before there are rows.
    Other,
}

/// Whether one offset is shorter than another one of the same side. Of months and days only what holds for months of any length is known, and DataFusion has
/// to see it as well, who asks the months first.
fn is_shorter(one: &ScalarValue, other: &ScalarValue) -> Result<bool> {
    let (ScalarValue::IntervalMonthDayNano(Some(a)), ScalarValue::IntervalMonthDayNano(Some(b))) = (one, other) else { return Ok(one < other) };
    let nanos = |i: &IntervalMonthDayNano, month: i128| (i128::from(i.months) * month + i128::from(i.days)) * (i128::from(DAY_MICROS) * 1000) + i128::from(i.nanoseconds);
    let is_shorter = |a, b| nanos(a, 31) < nanos(b, 28);
    match (a.months == b.months, one < other) {
        (true, _) => Ok(nanos(a, 30) < nanos(b, 30)),
        (false, true) if is_shorter(a, b) => Ok(true),
        (false, false) if is_shorter(b, a) => Ok(false),
        _ => Err(user(errors::not_supported_yet("RANGE between an interval of months and another one on the same side"))),
    }
}

const DAY_MICROS: u64 = 86_400_000_000;
/// Longer offsets reach beyond all dates, too, and could not be added.
const MOST_DAYS: u64 = 36_525_000;
const MOST_MONTHS: u64 = 1_200_000;

fn ranges_over_values(frame: &WindowFrame) -> bool {
    let offset = |b: &FrameBoundary| matches!(b, FrameBoundary::Preceding(..) | FrameBoundary::Following(..));
    !frame.rows && (offset(&frame.start) || offset(&frame.end))
}

/// How long an offset of months is depends on the date that it is added to.
fn is_by_calendar(frame: &WindowFrame) -> bool {
    is_of_months(&frame.start) || is_of_months(&frame.end)
}

fn is_of_months(boundary: &FrameBoundary) -> bool {
    use IntervalUnit::{Month, Quarter, Year, YearMonth};
    let (FrameBoundary::Preceding(_, unit) | FrameBoundary::Following(_, unit)) = boundary else { return false };
    matches!(unit, Some(Month | Quarter | Year | YearMonth))
}
