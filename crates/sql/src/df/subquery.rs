//! Subqueries that are not joins: run for a row, remembered by what they depend on.
//!
//! A subquery that depends on no row runs once. A correlated one runs once for each combination of the enclosing row's values that it reads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::logical_expr::{ColumnarValue, Expr as DfExpr, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_plan::execute_stream;
use futures::TryStreamExt;
use highkey_types::{ColumnType, Value};
use parking_lot::Mutex;

use super::compact::used_bytes;
use super::context::EarlyFailure;
use super::error::{final_refusal, more_than_one_row, user};
use super::explain::{first_line, lines};
use super::lower::{KeyForm, Lowered, Lowerer, Scope, apply, key_form, literal, reads_recursion};
use super::parallel::first_rows_show_order;
use super::repr::{ColumnBuilder, ColumnReader, data_type, scalar};
use super::wrapped::any_arguments;
use super::{in_order_on_threads, measured, on_threads};
use crate::expr::{EvalContext, compare_values, deciding, row_bytes, value_bytes};
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, ExprType, Rel, Subquery, SubqueryKind};

impl Lowerer {
    /// A subquery as a function of the enclosing row.
    pub fn subquery(&self, sub: &Subquery, ty: &ExprType, scope: &Scope) -> Result<DfExpr> {
        self.shared.plan_runs_inside();
        let holder = Expr { kind: ExprKind::Subquery(Box::new(Subquery { kind: SubqueryKind::Scalar, ..sub.clone() })), ty: ty.clone() };
        let outer = holder.columns();
        let operands: Vec<Expr> = match &sub.kind {
            SubqueryKind::Scalar | SubqueryKind::Exists { .. } | SubqueryKind::Rows => Vec::new(),
            SubqueryKind::In { exprs, .. } => exprs.clone(),
            SubqueryKind::Quantified { expr, .. } => vec![(**expr).clone()],
        };
        let mut args: Vec<DfExpr> = outer.iter().map(|&i| scope.exprs[i].clone()).collect();
        let mut types: Vec<ColumnType> = outer.iter().map(|&i| scope.types[i].ty.clone()).collect();
        // A single operand in a form that compares as bytes makes sets of keys; others compare value by value.
        let form = self.single_form(sub, &operands);
        match form {
            Some(form) => {
                args.push(self.key(&operands[0], form, scope)?);
                types.push(operands[0].ty.ty.clone());
            }
            None => {
                for operand in &operands {
                    args.push(self.value(operand, scope)?);
                    types.push(operand.ty.ty.clone());
                }
            }
        }
        let mut function = SubqueryFunction {
            id: self.shared.next_id(),
            failed: sub.failed.map(|number| self.shared.early_failure(number)).transpose()?,
            attempt: self.shared.attempt(),
            lowerer: self.clone(),
            sub: sub.clone(),
            outer,
            types,
            form,
            output: ty.ty.clone(),
            answers: Mutex::new(Answers::new(self.shared.memory_pool())),
            only_answer: OnceLock::new(),
            asking: Mutex::new(()),
            // Without arguments it would be folded while planning: EXPLAIN must not run it.
            signature: any_arguments(args.len(), if args.is_empty() { Volatility::Volatile } else { Volatility::Immutable }),
        };
        // It reads nothing of this row: all that it depends on is known.
        if args.is_empty() && function.failed.is_none() && !self.shared.explain && !reads_recursion(&sub.plan) {
            match self.shared.run_early(&sub.plan, || function.ask(&[], 0))? {
                Ok(Answer::Value(value)) => return Ok(literal(scalar(&value, &ty.ty))),
                Ok(_) => {}
                // It fails for the row that needs it.
                Err(failure) => function.failed = Some(failure),
            }
        }
        Ok(apply(Arc::new(ScalarUDF::new_from_impl(function)), args))
    }

    fn single_form(&self, sub: &Subquery, operands: &[Expr]) -> Option<KeyForm> {
        let [operand] = operands else { return None };
        let [field] = &sub.plan.fields[..] else { return None };
        let by = match &sub.kind {
            SubqueryKind::In { by, .. } => *by.first()?,
            SubqueryKind::Quantified { by, own: None, .. } => *by,
            _ => return None,
        };
        key_form(by, &[operand, &Expr::column(0, field.ty.clone())])
    }

    /// The value of a scalar subquery that depends on no row but those known. `number`: which one it is.
    pub fn scalar_value(&self, plan: &Rel, number: usize) -> Result<Value> {
        let lowered = self.rel(plan, &[])?;
        let limited = LogicalPlanBuilder::from(lowered.plan).limit(0, Some(2))?.build()?;
        let batches = self.run(Lowered { plan: limited, columns: lowered.columns }, number, false)?;
        if batches.iter().map(RecordBatch::num_rows).sum::<usize>() > 1 {
            return Err(user(more_than_one_row()));
        }
        Ok(match batches.iter().find(|b| b.num_rows() > 0) {
            Some(batch) => ColumnReader::new(batch.column(0).as_ref(), &plan.fields[0].ty.ty).get(0),
            None => Value::Null,
        })
    }

    pub fn has_rows(&self, plan: &Rel, number: usize) -> Result<bool> {
        // No row behind the first is needed, and some could fail.
        let in_order = first_rows_show_order(plan);
        let lowered = self.rel(plan, &[])?;
        let plan = LogicalPlanBuilder::from(lowered.plan).limit(0, Some(1))?.build()?;
        Ok(self.run(Lowered { plan, columns: lowered.columns }, number, in_order)?.iter().any(|b| b.num_rows() > 0))
    }

    /// Runs a plan to its end. The thread is handed to nobody else meanwhile: it blocks, as the row that asked must wait. `in_order`: it reads what one thread
    /// would read.
    fn run(&self, lowered: Lowered, number: usize, in_order: bool) -> Result<Vec<RecordBatch>> {
        self.shared.check_killed()?;
        self.shared.plan_for_once();
        let names: Vec<String> = lowered.columns.iter().map(|_| self.shared.name("out")).collect();
        let plan = self.renamed(lowered, &names)?;
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            handle.block_on(async {
                // What runs once may take the query's workers; what runs for each row runs on the row's thread.
                let (physical, context, how) = if self.outer.is_empty() {
                    let plan = if in_order { in_order_on_threads(&self.shared, &plan).await? } else { on_threads(&self.shared, &plan, true).await? };
                    (plan.physical, plan.context, first_line(plan.degree))
                } else {
                    let state = self.shared.serial_state(&plan);
                    let physical = measured(&self.shared, state.create_physical_plan(&plan).await?)?;
                    (physical, self.shared.task_context(&state), "Serial execute".to_owned())
                };
                let told = self.shared.profile.as_ref().map(|profile| (profile, lines(physical.as_ref(), format!("Subquery: {how}"), &self.shared)));
                // Until they are an answer.
                let memory = MemoryConsumer::new("rows of a subquery").register(context.memory_pool());
                let mut produced = execute_stream(physical, context)?;
                let mut rows = Vec::new();
                while let Some(batch) = produced.try_next().await? {
                    memory.try_grow(used_bytes(&batch)).map_err(final_refusal)?;
                    rows.push(batch);
                }
                if let Some((profile, lines)) = told {
                    profile.add_subquery(number, lines);
                }
                Ok(rows)
            })
        })
    }
}

/// A subquery as a scalar function: the arguments are what it reads of the enclosing row, then the operands it is compared with.
#[derive(Debug)]
pub(super) struct SubqueryFunction {
    id: usize,
    /// It has been run before any row needed it.
    failed: Option<Arc<EarlyFailure>>,
    /// At the query.
    attempt: usize,
    lowerer: Lowerer,
    sub: Subquery,
    outer: Vec<usize>,
    types: Vec<ColumnType>,
    form: Option<KeyForm>,
    output: ColumnType,
    answers: Mutex<Answers>,
    /// Where it reads nothing of the enclosing row; with what it takes.
    only_answer: OnceLock<(Arc<Answer>, MemoryReservation)>,
    /// Held by who runs it for that.
    asking: Mutex<()>,
    signature: Signature,
}

impl PartialEq for SubqueryFunction {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for SubqueryFunction {}

impl std::hash::Hash for SubqueryFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl SubqueryFunction {
    /// In MySQL's words, of arguments in words.
    pub fn worded(&self, args: &[String]) -> String {
        let operands = args.get(self.outer.len()..).unwrap_or_default().join(",");
        match &self.sub.kind {
            SubqueryKind::Scalar | SubqueryKind::Rows => "(subquery)".to_owned(),
            SubqueryKind::Exists { negated } => format!("{}exists(subquery)", if *negated { "not " } else { "" }),
            SubqueryKind::In { negated, .. } => format!("({operands} {}in (subquery))", if *negated { "not " } else { "" }),
            SubqueryKind::Quantified { op, all, .. } => format!("({operands} {} {}(subquery))", op.symbol(), if *all { "all" } else { "any" }),
        }
    }
}

/// What a subquery gave for some enclosing row.
#[derive(Debug)]
enum Answer {
    Value(Value),
    /// The only column as keys, in the encoding of Arrow rows, which orders as the values do.
    Keys { keys: HashSet<Box<[u8]>>, least: Option<Box<[u8]>>, most: Option<Box<[u8]>>, null: bool },
    Rows(Vec<Vec<Value>>),
}

impl Answer {
    /// About what it takes.
    fn bytes(&self) -> usize {
        let row = |row: &Vec<Value>| size_of::<Vec<Value>>() + row_bytes(row);
        match self {
            Answer::Value(value) => value_bytes(value),
            Answer::Keys { keys, .. } => keys.iter().map(|key| key.len() + ENTRY_BYTES).sum(),
            Answer::Rows(rows) => rows.iter().map(row).sum(),
        }
    }
}

/// What an entry of a hash table takes beside its key's bytes, about.
const ENTRY_BYTES: usize = 48;

/// The part of the memory of queries that the answers of one subquery may take.
const ANSWERS_PART: usize = 16;

/// Those that are known, as long as there is memory for them.
#[derive(Debug)]
struct Answers {
    known: HashMap<Box<[u8]>, Arc<Answer>>,
    memory: MemoryReservation,
    most: usize,
}

impl Answers {
    fn new(pool: &Arc<dyn MemoryPool>) -> Answers {
        let most = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => limit / ANSWERS_PART,
            _ => usize::MAX,
        };
        Answers { known: HashMap::new(), memory: MemoryConsumer::new("answers of a subquery").with_can_spill(true).register(pool), most }
    }

    /// Where there is no room all others are forgotten: rows that want them ask again.
    fn keep(&mut self, key: Box<[u8]>, answer: Arc<Answer>) {
        let bytes = key.len() + ENTRY_BYTES + answer.bytes();
        if !self.has_room(bytes) {
            self.known = HashMap::new();
            self.memory.free();
            if !self.has_room(bytes) {
                return;
            }
        }
        if self.known.insert(key, answer).is_some() {
            // Another worker has asked for the same.
            self.memory.shrink(bytes);
        }
    }

    /// Takes it, if there is.
    fn has_room(&self, bytes: usize) -> bool {
        self.memory.size() + bytes <= self.most && self.memory.try_grow(bytes).is_ok()
    }
}

impl ScalarUDFImpl for SubqueryFunction {
    fn name(&self) -> &str {
        match self.sub.kind {
            SubqueryKind::Scalar | SubqueryKind::Rows => "subquery",
            SubqueryKind::Exists { .. } => "exists",
            SubqueryKind::In { .. } => "in_subquery",
            SubqueryKind::Quantified { .. } => "compare_subquery",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(&self.output))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays: Vec<ArrayRef> = args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<_>>()?;
        let rows = args.number_rows;
        let (outer, operands) = arrays.split_at(self.outer.len());
        let readers: Vec<ColumnReader> = outer.iter().zip(&self.types).map(|(a, ty)| ColumnReader::new(a.as_ref(), ty)).collect();
        let outer_rows = encode(outer)?;
        let operand_keys = if self.form.is_some() { encode(operands)? } else { None };
        let operand_readers: Vec<ColumnReader> = match self.form {
            Some(_) => Vec::new(),
            None => operands.iter().zip(&self.types[self.outer.len()..]).map(|(a, ty)| ColumnReader::new(a.as_ref(), ty)).collect(),
        };
        let answer_of = |row: usize| -> Result<Arc<Answer>> {
            let key: Box<[u8]> = outer_rows.as_ref().map_or(Box::default(), |r| r.row(row).as_ref().into());
            let known = self.answers.lock().known.get(&key).cloned();
            if let Some(answer) = known {
                return Ok(answer);
            }
            let answer = Arc::new(self.ask(&readers, row)?);
            self.answers.lock().keep(key, answer.clone());
            Ok(answer)
        };
        // Without columns of the enclosing row it is one answer.
        let only = if outer_rows.is_none() && rows > 0 { Some(self.only_answer()?) } else { None };
        let mut out = ColumnBuilder::new(&self.output, rows);
        for i in 0..rows {
            let answer = match &only {
                Some(answer) => answer.clone(),
                None => answer_of(i)?,
            };
            let operand: Option<Option<&[u8]>> = operand_keys.as_ref().map(|keys| (!operands[0].is_null(i)).then(|| keys.row(i).data()));
            let value = match (&*answer, operand) {
                (Answer::Value(value), _) => value.clone(),
                (Answer::Keys { keys, least, most, null }, Some(operand)) => {
                    let set = Keys { keys, least: least.as_deref(), most: most.as_deref(), null: *null };
                    truth(self.judge_keys(&set, operand))
                }
                (Answer::Rows(rows), _) => {
                    let operand: Vec<Value> = operand_readers.iter().map(|r| r.get(i)).collect();
                    truth(self.judge_rows(rows, &operand))
                }
                (Answer::Keys { .. }, None) => unreachable!("keys are made only for an operand in key form"),
            };
            out.push(&value);
        }
        Ok(ColumnarValue::Array(out.finish()))
    }
}

fn encode(arrays: &[ArrayRef]) -> Result<Option<datafusion::arrow::row::Rows>> {
    if arrays.is_empty() {
        return Ok(None);
    }
    let fields = arrays.iter().map(|a| SortField::new(a.data_type().clone())).collect();
    Ok(Some(RowConverter::new(fields)?.convert_columns(arrays)?))
}

fn truth(value: Option<bool>) -> Value {
    value.map_or(Value::Null, Value::bool)
}

struct Keys<'a> {
    keys: &'a HashSet<Box<[u8]>>,
    least: Option<&'a [u8]>,
    most: Option<&'a [u8]>,
    null: bool,
}

impl SubqueryFunction {
    /// The answer of a subquery that reads nothing of the enclosing row. The first worker that asks runs it, the others wait: each would take its time, and
    /// raise its warnings.
    fn only_answer(&self) -> Result<Arc<Answer>> {
        if let Some(failure) = &self.failed {
            return Err(self.lowerer.shared.fail(failure));
        }
        if let Some((answer, _)) = self.only_answer.get() {
            return Ok(answer.clone());
        }
        // Whoever waits leaves its other tasks to other threads: some may be those of the subquery.
        let _asking = self.asking.try_lock().unwrap_or_else(|| tokio::task::block_in_place(|| self.asking.lock()));
        if let Some((answer, _)) = self.only_answer.get() {
            return Ok(answer.clone());
        }
        let answer = Arc::new(self.ask(&[], 0)?);
        let memory = MemoryConsumer::new("answer of a subquery").register(self.lowerer.shared.memory_pool());
        memory.try_grow(answer.bytes()).map_err(final_refusal)?;
        Ok(self.only_answer.get_or_init(|| (answer, memory)).0.clone())
    }

    /// Runs the subquery for an enclosing row.
    fn ask(&self, readers: &[ColumnReader], row: usize) -> Result<Answer> {
        let mut lowerer = self.lowerer.clone();
        let mut outer_rows = (*self.lowerer.outer).clone();
        let mut enclosing = vec![Value::Null; self.outer.last().map_or(0, |last| last + 1)];
        for (reader, &index) in readers.iter().zip(&self.outer) {
            enclosing[index] = reader.get(row);
        }
        outer_rows.push(Arc::new(enclosing));
        lowerer.outer = Arc::new(outer_rows);
        let plan = &self.sub.plan;
        match &self.sub.kind {
            SubqueryKind::Scalar => Ok(Answer::Value(lowerer.scalar_value(plan, self.id)?)),
            SubqueryKind::Exists { negated } => Ok(Answer::Value(Value::bool(lowerer.has_rows(plan, self.id)? != *negated))),
            SubqueryKind::Rows => internal_err!("the rows of a subquery are no value"),
            SubqueryKind::In { .. } | SubqueryKind::Quantified { .. } => {
                let lowered = lowerer.rel(plan, &[])?;
                match self.form {
                    Some(form) => {
                        let scope = Scope::of(plan, &lowered);
                        let key = lowerer.key(&Expr::column(0, plan.fields[0].ty.clone()), form, &scope)?;
                        let batches = lowerer.run(Lowered { plan: lowered.plan, columns: vec![key] }, self.id, false)?;
                        keys_of(&batches)
                    }
                    None => {
                        let batches = lowerer.run(lowered, self.id, false)?;
                        let mut rows = Vec::new();
                        for batch in &batches {
                            let readers: Vec<ColumnReader> =
                                batch.columns().iter().zip(&plan.fields).map(|(a, f)| ColumnReader::new(a.as_ref(), &f.ty.ty)).collect();
                            rows.extend((0..batch.num_rows()).map(|i| readers.iter().map(|r| r.get(i)).collect::<Vec<_>>()));
                        }
                        Ok(Answer::Rows(rows))
                    }
                }
            }
        }
    }

    fn judge_keys(&self, set: &Keys, operand: Option<&[u8]>) -> Option<bool> {
        let empty = set.keys.is_empty() && !set.null;
        let (op, all, negated) = match &self.sub.kind {
            SubqueryKind::In { negated, .. } => (CompareOp::Eq, false, *negated),
            SubqueryKind::Quantified { op, all, .. } => (*op, *all, false),
            _ => unreachable!("only comparisons have operands"),
        };
        if empty {
            return Some(all != negated);
        }
        let answer = operand.and_then(|x| {
            // ALL holds unless some value refutes it: x op ALL is NOT (x inverse-op ANY).
            let any = |op: CompareOp| match op {
                CompareOp::Eq | CompareOp::NullSafeEq => set.keys.contains(x),
                CompareOp::Ne => set.keys.len() > 1 || set.keys.iter().any(|k| **k != *x),
                CompareOp::Lt => set.most.is_some_and(|m| x < m),
                CompareOp::Le => set.most.is_some_and(|m| x <= m),
                CompareOp::Gt => set.least.is_some_and(|m| x > m),
                CompareOp::Ge => set.least.is_some_and(|m| x >= m),
            };
            let decided = if all { any(inverse(op)) } else { any(op) };
            if decided {
                Some(!all)
            } else if set.null {
                None
            } else {
                Some(all)
            }
        });
        answer.map(|a| a != negated)
    }

    fn judge_rows(&self, rows: &[Vec<Value>], operand: &[Value]) -> Option<bool> {
        self.lowerer.shared.evaluate(self.attempt, |cx| self.judge_rows_in(rows, operand, cx))
    }

    fn judge_rows_in(&self, rows: &[Vec<Value>], operand: &[Value], cx: &mut dyn EvalContext) -> Option<bool> {
        let mut compare = |op: CompareOp, by: CompareBy, a: &Value, b: &Value| compare_values(op, by, a, b, cx);
        match &self.sub.kind {
            SubqueryKind::In { by, negated, .. } => {
                let mut unknown = false;
                for row in rows {
                    // A row equals if all columns do; it is unknown if some are and none differs.
                    let mut equal = Some(true);
                    for ((a, b), by) in operand.iter().zip(row).zip(by) {
                        match compare(CompareOp::Eq, *by, a, b) {
                            Some(false) => {
                                equal = Some(false);
                                break;
                            }
                            None => equal = None,
                            Some(true) => {}
                        }
                    }
                    match equal {
                        Some(true) => return Some(!negated),
                        None => unknown = true,
                        Some(false) => {}
                    }
                }
                if unknown { None } else { Some(*negated) }
            }
            SubqueryKind::Quantified { op, all, by, own: Some(own), .. } => {
                let Some(decides) = deciding(rows.iter().map(|row| &row[0]), *op, *all, *own, cx) else {
                    return if rows.is_empty() { Some(*all) } else { None };
                };
                let unknown = rows.iter().any(|row| row[0].is_null());
                compare_values(*op, *by, &operand[0], decides, cx).filter(|holds| holds != all || !unknown)
            }
            SubqueryKind::Quantified { op, all, by, .. } => {
                let mut unknown = false;
                for row in rows {
                    match compare(*op, *by, &operand[0], &row[0]) {
                        Some(holds) if holds != *all => return Some(holds),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                if unknown { None } else { Some(*all) }
            }
            _ => unreachable!("only comparisons have operands"),
        }
    }
}

fn inverse(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq | CompareOp::NullSafeEq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}

fn keys_of(batches: &[RecordBatch]) -> Result<Answer> {
    let (mut keys, mut null) = (HashSet::<Box<[u8]>>::new(), false);
    for batch in batches {
        let column = batch.column(0);
        let Some(rows) = encode(std::slice::from_ref(column))? else { continue };
        for (i, row) in rows.iter().enumerate() {
            if column.is_null(i) {
                null = true;
            } else {
                keys.insert(row.as_ref().into());
            }
        }
    }
    let least = keys.iter().min().cloned();
    let most = keys.iter().max().cloned();
    Ok(Answer::Keys { keys, least, most, null })
}
