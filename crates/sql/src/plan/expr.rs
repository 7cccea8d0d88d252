//! Bound expressions.

use std::sync::Arc;

use highkey_types::{Collation, MySqlError, Str, Value};

use super::{ExprType, Rel};
use crate::full_text::Search;
use crate::functions::FuncId;
use crate::parse::ast::VariableScope;
use crate::routine::StoredFunction;
use crate::stack;

/// A typed expression over the row of the operator that holds it.
#[derive(Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Its type.
    pub ty: ExprType,
}

impl Clone for Expr {
    fn clone(&self) -> Expr {
        stack::ensure(|| Expr { kind: self.kind.clone(), ty: self.ty.clone() })
    }
}

/// The forms of a bound expression.
///
/// Truth values are integers (0, 1, NULL); any value is a condition by MySQL's rule (`expr::truth`).
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// Field of the input row.
    Column(usize),
    /// Field of an enclosing query's row: `depth` 1 is the row of the operator that holds the subquery, 2 the one around that.
    Outer { depth: usize, index: usize },
    /// A constant, of the variant that `ty` says (or NULL).
    Literal(Value),
    /// The n-th `?`, its value known at execution; typed by its context or NULL-typed.
    Param(usize),
    /// `@name`, name in lower case.
    UserVar(Str),
    /// `@name := value`.
    AssignUserVar { name: Str, value: Box<Expr> },
    /// `@@name`, read at execution; name in lower case.
    SystemVar { scope: Option<VariableScope>, name: Str },
    /// A scalar function or arithmetic, bit and string operator.
    Call { func: FuncId, args: Vec<Expr> },
    /// A call of a stored function; `name` is what errors call its result.
    Stored { function: Arc<StoredFunction>, name: Str, args: Vec<Expr> },
    /// MATCH … AGAINST: the rank of a row by `columns`, those of the search's index in its order.
    Match { search: Arc<Search>, columns: Vec<Expr> },
    /// A comparison of two scalars, done as `by` says whatever the operands' own types.
    Compare { op: CompareOp, by: CompareBy, left: Box<Expr>, right: Box<Expr> },
    /// Conjunction of at least two conditions.
    And(Vec<Expr>),
    /// Disjunction of at least two conditions.
    Or(Vec<Expr>),
    /// Negation of a condition.
    Not(Box<Expr>),
    /// IS [NOT] NULL.
    IsNull { expr: Box<Expr>, negated: bool },
    /// IS [NOT] TRUE or FALSE; never NULL. (IS UNKNOWN is `IsNull`.)
    IsTruth { expr: Box<Expr>, value: bool, negated: bool },
    /// Membership in a list of scalars; each comparison as `by` says. `sorted`: the list is literals that ascend as `by` compares them, a NULL last.
    In { expr: Box<Expr>, list: Vec<Expr>, by: CompareBy, negated: bool, sorted: bool },
    /// Pattern match under `collation`; the escape is a constant of one character (`None`: the pattern has no escape).
    Like { expr: Box<Expr>, pattern: Box<Expr>, escape: Option<char>, collation: &'static Collation, negated: bool },
    /// CASE WHEN …, IF, NULLIF: the first branch whose condition is true; values are already of type `ty`.
    Case { branches: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>> },
    /// Conversion to `ty` by the rules of CAST (lenient, with warnings).
    Cast(Box<Expr>),
    /// `body`, where `Kept(id)` is the value of `value`, which is computed once, before: an operand that is compared several times, and may be another each time.
    Once { id: usize, value: Box<Expr>, body: Box<Expr> },
    /// See `Once`.
    Kept(usize),
    /// A subquery.
    Subquery(Box<Subquery>),
    /// Binder only: the n-th aggregate of the query being bound.
    AggregateRef(usize),
    /// Binder only: the n-th window function of the query being bound.
    WindowRef(usize),
}

impl ExprKind {
    /// A comparison, a test, or what joins or negates such: its value is a truth value. Calls and subqueries may have one too.
    pub fn is_predicate(&self) -> bool {
        use ExprKind::*;
        matches!(self, Compare { .. } | And(_) | Or(_) | Not(_) | IsNull { .. } | IsTruth { .. } | In { .. } | Like { .. })
    }
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    /// `<=>`
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// The operator with its operands swapped.
    pub fn flip(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            other => other,
        }
    }

    /// Whether an ordering satisfies it.
    pub fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }

    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::NullSafeEq => "<=>",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }
}

/// In what domain two values compare: both operands are converted to it first.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum CompareBy {
    /// 64-bit integers; one operand may be signed and the other unsigned.
    Int,
    Decimal,
    Double,
    /// Strings under a collation (`binary` for bytes).
    Text(&'static Collation),
    Date,
    /// DATETIME and TIMESTAMP, and a DATE against one of them.
    DateTime,
    Time,
    Json,
    /// Neither type is known before execution (NULL or untyped parameters): by the values' own types.
    Dynamic,
}

/// A subquery inside an expression.
#[derive(Debug, Clone)]
pub struct Subquery {
    /// What is asked of it.
    pub kind: SubqueryKind,
    /// The query. Its `Outer { depth: 1, .. }` refer to the row of the operator holding this expression.
    pub plan: Rel,
    /// It refers to any enclosing row.
    pub correlated: bool,
    /// It has been run before any row needed it, and failed: the number of that, for who runs the plan.
    pub failed: Option<usize>,
}

/// What a subquery is asked.
#[derive(Debug, Clone)]
pub enum SubqueryKind {
    /// The value of its only row and column, NULL without a row, error 1242 with two.
    Scalar,
    /// Whether it has a row.
    Exists { negated: bool },
    /// Whether a row equals `exprs`, column by column, with NULL as in IN.
    In { exprs: Vec<Expr>, by: Vec<CompareBy>, negated: bool },
    /// `expr op ANY|ALL` over its only column. With `own`, the domain of the column's values among themselves, the greatest or the least of them decides for all.
    Quantified { op: CompareOp, all: bool, expr: Box<Expr>, by: CompareBy, own: Option<CompareBy> },
    /// All its rows, for [`super::RelKind::Apply`]: no value.
    Rows,
}

impl Expr {
    /// A constant.
    pub fn literal(value: Value, ty: ExprType) -> Expr {
        Expr { kind: ExprKind::Literal(value), ty }
    }

    /// Field `index` of the input, of type `ty`.
    pub fn column(index: usize, ty: ExprType) -> Expr {
        Expr { kind: ExprKind::Column(index), ty }
    }

    /// TRUE or FALSE.
    pub fn boolean(truth: bool) -> Expr {
        Expr::literal(Value::bool(truth), ExprType::boolean(false))
    }

    /// NULL.
    pub fn null() -> Expr {
        Expr::literal(Value::Null, ExprType::null())
    }

    /// A BIGINT constant.
    pub fn int(value: i64) -> Expr {
        Expr::literal(Value::Int(value), ExprType::bigint(false))
    }

    /// A function call.
    pub fn call(func: FuncId, args: Vec<Expr>, ty: ExprType) -> Expr {
        Expr { kind: ExprKind::Call { func, args }, ty }
    }

    /// The conjunction of `parts`, flattened; `None` if there are none.
    pub fn and(parts: impl IntoIterator<Item = Expr>) -> Option<Expr> {
        let mut flat = Vec::new();
        for part in parts {
            match part.kind {
                ExprKind::And(inner) => flat.extend(inner),
                _ => flat.push(part),
            }
        }
        if flat.len() <= 1 {
            return flat.pop();
        }
        let nullable = flat.iter().any(|e| e.ty.nullable);
        Some(Expr { kind: ExprKind::And(flat), ty: ExprType::boolean(nullable) })
    }

    /// The conjuncts of a condition.
    pub fn conjuncts(&self) -> &[Expr] {
        match &self.kind {
            ExprKind::And(parts) => parts,
            _ => std::slice::from_ref(self),
        }
    }

    /// The literal's value, if it is one.
    pub fn as_literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// A condition that no row satisfies, whatever it holds.
    pub fn is_never(&self) -> bool {
        matches!(self.as_literal(), Some(Value::Int(0) | Value::Null))
    }

    /// Its values may have more digits than its type, which whatever is computed from them sees: a quotient of exact numbers, and
    /// arithmetic over one. Only the evaluator keeps them (`expr::eval`); a column has the digits of its type.
    pub fn has_hidden_digits(&self) -> bool {
        matches!(self.ty.ty.kind, highkey_types::TypeKind::Decimal { .. })
            && match &self.kind {
                ExprKind::Call { func, args } => *func == FuncId::Div || (func.is_arithmetic() && args.iter().any(Expr::has_hidden_digits)),
                ExprKind::Case { branches, otherwise } => {
                    branches.iter().map(|(_, then)| then).chain(otherwise.as_deref()).any(Expr::has_hidden_digits)
                }
                _ => false,
            }
    }

    /// It has more than so many levels.
    pub fn is_taller_than(&self, levels: usize) -> bool {
        levels == 0 || self.children().into_iter().any(|child| child.is_taller_than(levels - 1))
    }

    /// The input column it is, if it is one and nothing else.
    pub fn as_column(&self) -> Option<usize> {
        match self.kind {
            ExprKind::Column(index) => Some(index),
            _ => None,
        }
    }

    /// This node, whatever its operands are, does something or may give another value each time: an assignment, RAND().
    pub fn is_volatile_itself(&self) -> bool {
        match &self.kind {
            // A kept value is not to be moved away from where it is computed.
            ExprKind::AssignUserVar { .. } | ExprKind::Kept(_) => true,
            ExprKind::Call { func, .. } => func.is_volatile(),
            ExprKind::Stored { function, .. } => function.is_volatile(),
            _ => false,
        }
    }

    /// This node, whatever its operands are, is a subquery, or a function that runs queries.
    pub fn runs_query_itself(&self) -> bool {
        match &self.kind {
            ExprKind::Subquery(_) => true,
            ExprKind::Stored { function, .. } => function.runs_queries(),
            _ => false,
        }
    }

    /// This node, whatever its operands are, calls a function that the session runs.
    pub fn calls_session_itself(&self) -> bool {
        matches!(&self.kind, ExprKind::Stored { function, .. } if function.runs_in_session())
    }

    /// A COALESCE with an argument that is never NULL, so that it is never NULL either; its type, as MySQL's, may say otherwise.
    pub fn coalesces_to_value(&self) -> bool {
        let ExprKind::Call { func: FuncId::Coalesce, args } = &self.kind else { return false };
        args.iter().any(|arg| !arg.ty.nullable || arg.coalesces_to_value())
    }

    /// Evaluating it does nothing, and it may be evaluated again.
    pub fn is_repeatable(&self) -> bool {
        let mut repeatable = true;
        self.walk(&mut |e| repeatable &= !e.is_volatile_itself());
        repeatable
    }

    /// Repeatable, and the same whenever it is computed for a row, whatever else the statement does: it may be moved and shared.
    pub fn is_steady(&self) -> bool {
        let mut steady = true;
        self.walk(&mut |e| steady &= !e.is_volatile_itself() && !matches!(e.kind, ExprKind::UserVar(_)));
        steady
    }

    /// The same value for every row of one execution: no column of the input, nothing random, no assignment, no subquery.
    /// Parameters, variables, NOW() and enclosing rows are constant in this sense.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |e| {
            constant &= match &e.kind {
                ExprKind::Column(_) | ExprKind::AssignUserVar { .. } | ExprKind::Subquery(_) | ExprKind::AggregateRef(_) | ExprKind::WindowRef(_) => false,
                ExprKind::UserVar(_) | ExprKind::Kept(_) => false,
                ExprKind::Call { func, .. } => !func.is_volatile(),
                ExprKind::Stored { function, .. } => !function.is_volatile(),
                _ => true,
            };
        });
        constant
    }

    /// Constant, where user variables count as constants too: what an index can be asked for. (A statement that assigns
    /// a variable while it reads by it has no defined order in MySQL either.)
    pub fn is_known(&self) -> bool {
        self.is_known_given(&|_| false)
    }

    /// Known once the fields of the row that `has_value` says have their values.
    pub fn is_known_given(&self, has_value: &dyn Fn(usize) -> bool) -> bool {
        match &self.kind {
            ExprKind::UserVar(_) => true,
            ExprKind::Column(i) => has_value(*i),
            ExprKind::Cast(inner) => inner.is_known_given(has_value),
            ExprKind::Call { func, args } => !func.is_volatile() && args.iter().all(|arg| arg.is_known_given(has_value)),
            _ => self.is_constant(),
        }
    }

    /// Foldable at bind time: made of literals and deterministic functions only.
    pub fn is_foldable(&self) -> bool {
        let mut foldable = true;
        self.walk(&mut |e| {
            foldable &= match &e.kind {
                ExprKind::Literal(_) | ExprKind::Case { .. } | ExprKind::Cast(_) => true,
                ExprKind::Call { func, .. } => func.is_deterministic(),
                kind => kind.is_predicate(),
            };
        });
        foldable
    }
}

/// What finished plans never hold: a bug, not a user's mistake.
pub fn unresolved(what: &str) -> MySqlError {
    MySqlError::with_message(1105, format!("{what} left in a bound plan"))
}
