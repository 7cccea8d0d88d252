//! Expressions of DataFusion's plans in MySQL's words: columns by their tables' names, constants as they were written, functions without what only brings
//! values into a form that compares.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal, NotExpr};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef, PhysicalSortExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::projection::ProjectionExec;
use highkey_types::{Decimal, Value, display_text};

use super::aggregate::Aggregate;
use super::explain::{plan_of_cte, without_timing};
use super::kernel::KernelFunction;
use super::lateral::ApplyExec;
use super::materialize::CteExec;
use super::repr::unpack_date;
use super::scan::ScanExec;
use super::subquery::SubqueryFunction;
use super::wrapped::Wrapped;
use crate::stack;

/// What is longer is not put in the place of a generated name.
const LONGEST_TEXT: usize = 400;

/// What the generated names of a plan's columns and its coded constants mean.
#[derive(Default)]
pub(super) struct Wording {
    columns: HashMap<String, String>,
    /// By their Debug form.
    constants: HashMap<String, String>,
}

impl Wording {
    /// `constants`: as `Shared::constants` has them.
    pub fn of(plan: &dyn ExecutionPlan, constants: HashMap<String, String>) -> Wording {
        let mut wording = Wording { columns: HashMap::new(), constants };
        wording.learn(plan, &mut Vec::new());
        wording
    }

    /// From the sources up: what an operator computes is of columns that are known. `made`: the common table expressions that have been looked into.
    fn learn(&mut self, plan: &dyn ExecutionPlan, made: &mut Vec<usize>) {
        let plan = without_timing(plan).0;
        if let Some(rows) = plan_of_cte(plan, made) {
            self.learn(rows.as_ref(), made);
        }
        if let Some(input) = plan.downcast_ref::<ApplyExec>().and_then(ApplyExec::input) {
            self.learn(input.as_ref(), made);
        }
        for child in plan.children() {
            self.learn(child.as_ref(), made);
        }
        if let Some(scan) = plan.downcast_ref::<ScanExec>() {
            self.name_of_table(plan, scan.alias());
        } else if let Some(cte) = plan.downcast_ref::<CteExec>() {
            self.name_of_table(plan, cte.alias());
        } else if let Some(apply) = plan.downcast_ref::<ApplyExec>() {
            for (field, alias) in plan.schema().fields().iter().zip(apply.aliases()) {
                self.add(field.name(), format!("{alias}.{}", plain_name(field.name())));
            }
        } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            for computed in projection.expr() {
                self.name(&computed.alias, &computed.expr);
            }
        } else if let Some(grouping) = plan.downcast_ref::<AggregateExec>() {
            for (expr, name) in grouping.group_expr().expr() {
                self.name(name, expr);
            }
            for aggregate in grouping.aggr_expr() {
                let text = self.aggregate(aggregate);
                self.add(aggregate.name(), text);
            }
        }
    }

    fn name_of_table(&mut self, plan: &dyn ExecutionPlan, alias: &str) {
        for field in plan.schema().fields() {
            let text = format!("{alias}.{}", plain_name(field.name()));
            self.add(field.name(), text);
        }
    }

    fn name(&mut self, name: &str, expr: &Arc<dyn PhysicalExpr>) {
        if expr.downcast_ref::<Column>().is_none_or(|column| column.name() != name) {
            let text = self.expr(expr);
            self.add(name, text);
        }
    }

    fn add(&mut self, name: &str, text: String) {
        if text.len() <= LONGEST_TEXT {
            self.columns.entry(name.to_owned()).or_insert(text);
        }
    }

    fn column(&self, name: &str) -> String {
        self.columns.get(name).cloned().unwrap_or_else(|| plain_name(name).to_owned())
    }

    /// Conditions that all have to be true, as one.
    pub fn all<'e>(&self, conditions: impl IntoIterator<Item = &'e Arc<dyn PhysicalExpr>>) -> String {
        let texts: Vec<String> = conditions.into_iter().map(|condition| self.expr(condition)).collect();
        if let [one] = &texts[..] { one.clone() } else { format!("({})", texts.join(" and ")) }
    }

    /// `(a.x = b.y), (a.z = b.z), extra conditions: …`; empty if nothing is asked.
    pub fn join(&self, on: &[(PhysicalExprRef, PhysicalExprRef)], filter: Option<&JoinFilter>) -> String {
        let mut texts: Vec<String> = on.iter().map(|(left, right)| format!("({} = {})", self.expr(left), self.expr(right))).collect();
        if let Some(filter) = filter {
            let condition = self.expr(filter.expression());
            texts.push(if texts.is_empty() { condition } else { format!("extra conditions: {condition}") });
        }
        texts.join(", ")
    }

    /// What rows are ordered by.
    pub fn keys<'k>(&self, keys: impl IntoIterator<Item = &'k PhysicalSortExpr>) -> String {
        let text = |key: &PhysicalSortExpr| format!("{}{}", self.expr(&key.expr), if key.options.descending { " DESC" } else { "" });
        keys.into_iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// The aggregates of a grouping. A value that all rows of a group have is none.
    pub fn aggregates(&self, grouping: &AggregateExec) -> String {
        let called = grouping.aggr_expr().iter().filter(|aggregate| plain_name(aggregate.name()) != "group");
        called.map(|aggregate| self.aggregate(aggregate)).collect::<Vec<_>>().join(", ")
    }

    fn aggregate(&self, aggregate: &AggregateFunctionExpr) -> String {
        let args = aggregate.expressions();
        let mut of_different = aggregate.is_distinct();
        let mut args = &args[..];
        let name = match aggregate.fun().inner().downcast_ref::<Aggregate>() {
            Some(own) => {
                let (name, distinct) = own.shown();
                // The key of DISTINCT comes first.
                if distinct && args.len() > 1 {
                    args = &args[1..];
                }
                of_different |= distinct;
                name
            }
            None => aggregate.fun().name(),
        };
        if plain_name(aggregate.name()) == "group" {
            return self.list(args);
        }
        let name = name.strip_prefix("mysql_").unwrap_or(name);
        if name == "count" && args.iter().all(|arg| arg.is::<Literal>()) {
            return "count(*)".to_owned();
        }
        format!("{name}({}{})", if of_different { "distinct " } else { "" }, self.list(args))
    }

    /// Window functions over the same rows.
    pub fn windows(&self, windows: &[Arc<dyn WindowExpr>]) -> String {
        let text = |window: &Arc<dyn WindowExpr>| {
            let partition = window.partition_by();
            let mut over = Vec::new();
            if !partition.is_empty() {
                over.push(format!("PARTITION BY {}", self.list(partition)));
            }
            if !window.order_by().is_empty() {
                over.push(format!("ORDER BY {}", self.keys(window.order_by())));
            }
            format!("{}({}) OVER ({})", plain_name(window.name()), self.list(&window.expressions()), over.join(" "))
        };
        windows.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    fn list(&self, exprs: &[Arc<dyn PhysicalExpr>]) -> String {
        exprs.iter().map(|expr| self.expr(expr)).collect::<Vec<_>>().join(",")
    }

    pub fn expr(&self, expr: &Arc<dyn PhysicalExpr>) -> String {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.column(column.name());
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return self.constant(literal.value());
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            let op = *binary.op();
            if matches!(op, Operator::And | Operator::Or) {
                let mut parts = Vec::new();
                self.parts(expr, op, &mut parts);
                return format!("({})", parts.join(if op == Operator::And { " and " } else { " or " }));
            }
            let symbol = match op {
                Operator::NotEq => "<>".to_owned(),
                Operator::IsNotDistinctFrom => "<=>".to_owned(),
                other => other.to_string(),
            };
            return format!("({} {symbol} {})", self.expr(binary.left()), self.expr(binary.right()));
        }
        if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
            return format!("({} is null)", self.expr(is_null.arg()));
        }
        if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
            return format!("({} is not null)", self.expr(is_not_null.arg()));
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return format!("(not {})", self.expr(not.arg()));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return format!("({} {}in ({}))", self.expr(list.expr()), if list.negated() { "not " } else { "" }, self.list(list.list()));
        }
        // Between forms of one value.
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            return self.expr(cast.expr());
        }
        if let Some(case) = expr.downcast_ref::<CaseExpr>() {
            let mut text = String::from("(case");
            if let Some(compared) = case.expr() {
                text += &format!(" {}", self.expr(compared));
            }
            for (when, then) in case.when_then_expr() {
                text += &format!(" when {} then {}", self.expr(when), self.expr(then));
            }
            if let Some(otherwise) = case.else_expr() {
                text += &format!(" else {}", self.expr(otherwise));
            }
            return text + " end)";
        }
        if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
            let args: Vec<String> = call.args().iter().map(|arg| self.expr(arg)).collect();
            let function = call.fun().inner();
            if let Some(kernel) = function.downcast_ref::<KernelFunction>() {
                return kernel.worded(&args);
            }
            if let Some(wrapped) = function.downcast_ref::<Wrapped>() {
                return wrapped.worded(args);
            }
            if let Some(subquery) = function.downcast_ref::<SubqueryFunction>() {
                return subquery.worded(&args);
            }
            return format!("{}({})", call.name(), args.join(","));
        }
        plain_names(&expr.to_string())
    }

    /// The conditions that `op` connects.
    fn parts(&self, expr: &Arc<dyn PhysicalExpr>, op: Operator, parts: &mut Vec<String>) {
        match expr.downcast_ref::<BinaryExpr>() {
            // As deep as there are conditions.
            Some(binary) if *binary.op() == op => stack::ensure(|| {
                self.parts(binary.left(), op, parts);
                self.parts(binary.right(), op, parts);
            }),
            _ => parts.push(self.expr(expr)),
        }
    }

    fn constant(&self, constant: &ScalarValue) -> String {
        if let Some(written) = self.constants.get(&format!("{constant:?}")) {
            return written.clone();
        }
        match constant {
            _ if constant.is_null() => "NULL".to_owned(),
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => format!("'{}'", text.replace('\'', "''")),
            ScalarValue::BinaryView(Some(bytes)) => bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
            ScalarValue::Decimal128(Some(value), _, scale) => {
                display_text(&Value::Decimal(Decimal::from_i128(*value, u8::try_from(*scale).unwrap_or(0)))).unwrap_or_default()
            }
            // The form of DATE.
            ScalarValue::Int32(Some(packed)) => format!("'{}'", display_text(&Value::Date(unpack_date(*packed))).unwrap_or_default()),
            other => other.to_string(),
        }
    }
}

/// A generated name without its number: `l_orderkey#12` is `l_orderkey`.
fn plain_name(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((plain, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => plain,
        _ => name,
    }
}

/// A text without the numbers of generated names and of Arrow's columns: `l_orderkey#12@0` is `l_orderkey`.
pub(super) fn plain_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, '#' | '@') && chars.peek().is_some_and(char::is_ascii_digit) {
            while chars.peek().is_some_and(char::is_ascii_digit) {
                chars.next();
            }
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, in_list, is_null, lit, not};

    use super::*;

    #[test]
    fn names_have_no_numbers() {
        assert_eq!(plain_name("a#3"), "a");
        assert_eq!(plain_name("a#b"), "a#b");
        assert_eq!(plain_name("a#3#4"), "a#3");
        assert_eq!(plain_name("a#"), "a#");
        assert_eq!(plain_names("f(a#3@0) > b#12@1"), "f(a) > b");
    }

    #[test]
    fn columns_constants_and_connections() {
        let schema = Schema::new(vec![Field::new("a#1", DataType::Int64, true), Field::new("b#2", DataType::Utf8View, true)]);
        let mut wording = Wording::default();
        wording.add("a#1", "t.a".to_owned());
        wording.constants.insert(format!("{:?}", ScalarValue::Int64(Some(1 << 50))), "'2020-01-01'".to_owned());
        let a = || col("a#1", &schema).unwrap();
        let compare = |op, n: i64| binary(a(), op, lit(n), &schema).unwrap();
        let and = |left, right| binary(left, Operator::And, right, &schema).unwrap();
        let all = and(and(compare(Operator::NotEq, 1), compare(Operator::Lt, 1 << 50)), is_null(col("b#2", &schema).unwrap()).unwrap());
        assert_eq!(wording.expr(&all), "((t.a <> 1) and (t.a < '2020-01-01') and (b is null))");
        let list = in_list(col("b#2", &schema).unwrap(), vec![lit(ScalarValue::Utf8View(Some("it's".to_owned())))], &true, &schema).unwrap();
        assert_eq!(wording.all([&not(list).unwrap(), &compare(Operator::Gt, 2)]), "((not (b not in ('it''s'))) and (t.a > 2))");
        assert_eq!(wording.constant(&ScalarValue::Decimal128(Some(-125), 38, 2)), "-1.25");
    }
}
