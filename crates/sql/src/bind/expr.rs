//! Expressions: from syntax to typed, resolved trees.

use highkey_types::{Charset, Collation, MySqlError, Str, TypeKind, Value};

use super::binder::{Binder, Result};
use super::call::is_native_function;
use super::compare::{Comparison, between, comparison, comparison_of_members, comparison_of_only_members, comparison_of_text, unify_list};
use super::merge::{Rule, as_bytes, as_written, chosen_number, coerce, merge};
use super::subquery::lone_item;
use super::{TableSource, collation, errors, literal};
use crate::functions::FuncId;
use crate::parse::ast::{self, BinaryOp, ExprKind as Ast, UnaryOp};
use crate::plan::{Coercibility, CompareOp, Expr, ExprKind, ExprType, RelKind, SubqueryKind};

/// Rows of so many members are compared half by half, which makes few levels of them.
const LONG_ROW: usize = 16;

impl Binder<'_> {
    /// A scalar expression.
    pub fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.count_expr()?;
        if let Ast::Literal(value) = &expr.kind {
            return self.literal(value);
        }
        if !self.once.is_empty()
            && let Some((_, kept)) = self.once.iter().find(|(written, _)| *written == std::ptr::from_ref(expr).addr())
        {
            return Ok(kept.clone());
        }
        crate::stack::ensure(|| self.expr_inner(expr))
    }

    fn expr_inner(&mut self, expr: &ast::Expr) -> Result<Expr> {
        match &expr.kind {
            Ast::Literal(value) => self.literal(value),
            Ast::Column(name) => {
                let column = self.column(name)?;
                self.note_column(expr.span.start, &column);
                Ok(column)
            }
            Ast::Param(index) => Ok(self.param(*index)),
            Ast::UserVar(name) => Ok(self.user_variable(name)),
            Ast::SystemVar { scope, name } => {
                let value = self.cx.system_var(*scope, name)?;
                let ty = literal::type_of(&value, self.cx.collation());
                let ty = if value.is_null() { ExprType::text(0, self.cx.collation(), true) } else { ty }.with_coercibility(Coercibility::SystemConstant);
                Ok(Expr { kind: ExprKind::SystemVar { scope: *scope, name: Str::from(name.as_str()) }, ty })
            }
            Ast::Assign { name, value } => {
                let value = self.expr(value)?;
                let ty = value.ty.clone();
                Ok(Expr { kind: ExprKind::AssignUserVar { name: Str::from(name.to_lowercase()), value: Box::new(value) }, ty })
            }
            Ast::Unary { op, expr } => self.unary(*op, expr),
            Ast::Binary { op, left, right } => self.binary(*op, left, right),
            Ast::IsNull { expr, negated } => {
                let expr = self.expr(expr)?;
                Ok(self.is_null(expr, *negated))
            }
            Ast::IsBool { expr, value, negated } => {
                let expr = self.condition(expr)?;
                Ok(match value {
                    None => self.is_null(expr, *negated),
                    Some(value) => self.folder.fold(Expr {
                        kind: ExprKind::IsTruth { expr: Box::new(expr), value: *value, negated: *negated },
                        ty: ExprType::boolean(false),
                    }),
                })
            }
            Ast::Between { expr, low, high, negated } => self.comparing(expr, |binder| binder.between(expr, low, high, *negated)),
            Ast::InList { expr, list, negated } => self.comparing(expr, |binder| binder.in_list(expr, list, *negated)),
            Ast::InQuery { expr, query, negated } => self.in_query(expr, query, *negated),
            Ast::Like { expr, pattern, escape, negated } => self.like(expr, pattern, escape.as_deref(), *negated),
            Ast::Regexp { expr, pattern, negated } => {
                let args = vec![self.expr(expr)?, self.expr(pattern)?];
                let call = self.call(FuncId::RegexpLike, args)?;
                Ok(if *negated { self.not(call) } else { call })
            }
            Ast::SoundsLike { left, right } => {
                let left = self.expr(left)?;
                let left = self.call(FuncId::Soundex, vec![left])?;
                let right = self.expr(right)?;
                let right = self.call(FuncId::Soundex, vec![right])?;
                comparison(CompareOp::Eq, left, right, &self.folder)
            }
            Ast::MemberOf { value, array } => {
                let (array, value) = (self.expr(array)?, self.expr(value)?);
                self.call(FuncId::JsonMemberOf, vec![array, self.folder.fold(super::json::truth_as_json(value))])
            }
            Ast::Exists { query, negated } => {
                let plan = self.exists_plan(query)?;
                Ok(self.subquery(SubqueryKind::Exists { negated: *negated }, plan, ExprType::boolean(false)))
            }
            Ast::Subquery(query) => self.scalar_subquery(query),
            Ast::Quantified { op, quantifier, expr, query } => self.quantified(*op, *quantifier, expr, query),
            Ast::Case { operand, branches, otherwise } => match operand.as_deref() {
                Some(operand) => self.comparing(operand, |binder| binder.case(Some(operand), branches, otherwise.as_deref())),
                None => self.case(None, branches, otherwise.as_deref()),
            },
            Ast::Cast { expr, ty } => {
                let bound = match (&expr.kind, ty) {
                    (Ast::Literal(literal), ast::CastType::Signed | ast::CastType::Unsigned | ast::CastType::Decimal { .. } | ast::CastType::Double | ast::CastType::Float) => {
                        match self.numeric_literal(literal) {
                            Some(number) => number,
                            None => self.expr(expr)?,
                        }
                    }
                    _ => self.expr(expr)?,
                };
                self.cast(bound, ty)
            }
            Ast::ConvertUsing { expr, charset } => {
                let expr = self.expr(expr)?;
                self.convert_using(expr, collation::charset_by_name(charset)?)
            }
            Ast::Collate { expr, collation } => self.collate(expr, collation),
            Ast::DateArith { date, value, unit, subtract } => {
                let args = vec![self.expr(date)?, self.expr(value)?, self.unit(*unit)];
                self.call(if *subtract { FuncId::DateSub } else { FuncId::DateAdd }, args)
            }
            Ast::Extract { unit, date } => {
                let args = vec![self.unit(*unit), self.expr(date)?];
                self.call(FuncId::Extract, args)
            }
            Ast::TimestampDiff { unit, from, to } => {
                let args = vec![self.unit(*unit), self.expr(from)?, self.expr(to)?];
                self.call(FuncId::TimestampDiff, args)
            }
            Ast::Trim { side, what, text } => {
                let mut args = vec![self.expr(text)?];
                if let Some(what) = what {
                    args.push(self.expr(what)?);
                }
                let func = match side {
                    ast::TrimSide::Both => FuncId::TrimBoth,
                    ast::TrimSide::Leading => FuncId::TrimLeading,
                    ast::TrimSide::Trailing => FuncId::TrimTrailing,
                };
                self.call(func, args)
            }
            Ast::Char { args, charset } => {
                let args = args.iter().map(|a| self.expr(a).map(|bound| self.as_number(a, bound))).collect::<Result<Vec<_>>>()?;
                let bytes = self.call(FuncId::Char, args)?;
                match charset {
                    Some(name) => self.convert_using(bytes, collation::charset_by_name(name)?),
                    None => Ok(bytes),
                }
            }
            Ast::WeightString { expr, cast } => {
                let mut expr = self.expr(expr)?;
                if let Some(ty) = cast {
                    expr = self.cast(expr, ty)?;
                }
                self.call(FuncId::WeightString, vec![expr])
            }
            Ast::GetFormat { kind, style } => {
                let args = vec![self.text(kind), self.expr(style)?];
                self.call(FuncId::GetFormat, args)
            }
            Ast::JsonValue(call) => self.json_value(call),
            Ast::Match(call) => self.full_text(call),
            Ast::Function(function) => self.function(function),
            Ast::Aggregate(call) => self.aggregate(call),
            Ast::Row(_) => Err(errors::operand_columns(1)),
            Ast::Default(Some(column)) => self.default_of(column),
            Ast::Default(None) => Err(MySqlError::with_message(1221, "Incorrect usage of DEFAULT and expression")),
            Ast::Values(column) => match self.scope().values_base {
                Some(base) => {
                    let scope = self.scope();
                    let index = (0..base).find(|i| super::scope::same_name(&scope.from.fields[*i].name, &column.column));
                    let Some(index) = index else { return Err(errors::unknown_column(&column.to_string(), "field list")) };
                    let ty = scope.from.fields[index].ty.clone();
                    Ok(Expr::column(base + index, ty))
                }
                // Outside of ON DUPLICATE KEY UPDATE it is NULL.
                None => {
                    let bound = self.column(column)?;
                    Ok(Expr { ty: bound.ty.with_nullable(true), ..Expr::null() })
                }
            },
        }
    }

    /// DEFAULT(column): what a base table's column holds if nothing is given, be it under a view's name.
    fn default_of(&mut self, column: &ast::ColumnRef) -> Result<Expr> {
        let bound = self.column(column)?;
        let found = match bound.kind {
            ExprKind::Column(index) => Some((0, index)),
            ExprKind::Outer { depth, index } => Some((depth, index)),
            _ => None,
        };
        let field = found.and_then(|(depth, index)| self.scopes.iter().rev().nth(depth)?.from.fields.get(index).cloned());
        if let Some(field) = field.filter(|field| !field.schema.is_empty()) {
            let base = match self.source_of(&field.schema, &field.org_table)? {
                TableSource::Base(table) => table.def().column(&field.org_name).map(|position| (table, position)),
                TableSource::View(view) => self.base_column(&view, &field.org_name)?,
                TableSource::Virtual(_) => None,
            };
            if let Some((table, position)) = base {
                return self.default_value(table.def(), position);
            }
        }
        Err(highkey_types::errors::no_default_for_field(&column.column))
    }

    /// An expression used for its truth, which is that of a number.
    pub fn condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.operand(expr).map(chosen_number)
    }

    /// The whole condition of WHERE, ON or HAVING. MySQL asks it for an integer: '0.5' and 0.4 are false there, which they are nowhere else.
    pub fn whole_condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let mut condition = self.condition(expr)?;
        self.ask_extremes(&mut condition);
        let ty = &condition.ty.ty;
        let text = ty.is_text() || (ty.is_binary() && !ty.is_geometry());
        let fraction = ty.is_real() || matches!(ty.kind, TypeKind::Decimal { .. } | TypeKind::Json);
        match condition.kind {
            // A rank is no number to be rounded.
            ExprKind::Match { .. } => Ok(condition),
            // What computes a text does not warn of what is behind the number.
            ExprKind::Call { .. } | ExprKind::UserVar(_) | ExprKind::Param(_) if text => self.call(FuncId::Truncate, vec![condition, Expr::int(0)]),
            // Nor does what is kept as a TEXT.
            _ if text && ty.is_blob() => self.call(FuncId::Truncate, vec![condition, Expr::int(0)]),
            _ if text || fraction => {
                let ty = ExprType::bigint(condition.ty.nullable);
                Ok(self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(condition)), ty }))
            }
            _ => Ok(condition),
        }
    }

    /// The condition of WHERE. What a constant in it decides is decided here: nothing else is evaluated, whatever it would warn of.
    pub fn where_condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        self.whole_condition(expr).map(decided)
    }

    /// An operand of arithmetic: a hexadecimal literal is a number there.
    pub fn operand(&mut self, expr: &ast::Expr) -> Result<Expr> {
        if let Ast::Literal(literal) = &expr.kind
            && let Some(number) = self.numeric_literal(literal)
        {
            return Ok(number);
        }
        self.expr(expr)
    }

    fn user_variable(&mut self, name: &str) -> Expr {
        let name = name.to_lowercase();
        if let Some((_, collation)) = self.loaded.as_ref().filter(|(names, _)| names.iter().any(|loaded| **loaded == *name)) {
            let ty = ExprType::text(16_383, *collation, true).with_coercibility(Coercibility::Implicit);
            return Expr { kind: ExprKind::UserVar(Str::from(name)), ty };
        }
        let connection = self.cx.collation();
        let (value, collation) = self.cx.user_var(&name).unwrap_or((Value::Null, connection));
        // What is no text has none of its own.
        let collation = if collation.charset == Charset::Binary { connection } else { collation };
        let ty = match value {
            Value::Null => ExprType::text(16_383, collation, true),
            Value::Text(_) | Value::Bytes(_) => ExprType::text(16_383, literal::type_of(&value, collation).ty.collation, true),
            Value::Decimal(_) => {
                let (_, scale) = literal::type_of(&value, collation).decimal_digits();
                ExprType::decimal(65, scale, true)
            }
            value => literal::type_of(&value, collation),
        };
        Expr { kind: ExprKind::UserVar(Str::from(name)), ty: ty.with_nullable(true).with_coercibility(Coercibility::Implicit) }
    }

    fn unit(&self, unit: ast::IntervalUnit) -> Expr {
        self.text(super::call::unit_name(unit))
    }

    pub fn is_null(&self, expr: Expr, negated: bool) -> Expr {
        if !expr.ty.nullable && !matches!(expr.kind, ExprKind::Param(_)) && expr.as_literal().is_some() {
            return Expr::boolean(negated);
        }
        self.folder.fold(Expr { kind: ExprKind::IsNull { expr: Box::new(expr), negated }, ty: ExprType::boolean(false) })
    }

    pub fn not(&self, expr: Expr) -> Expr {
        let nullable = expr.ty.nullable;
        self.folder.fold(Expr { kind: ExprKind::Not(Box::new(expr)), ty: ExprType::boolean(nullable) })
    }

    fn unary(&mut self, op: UnaryOp, operand: &ast::Expr) -> Result<Expr> {
        match op {
            UnaryOp::Plus => self.operand(operand),
            UnaryOp::Minus => {
                let expr = self.operand(operand)?;
                self.call(FuncId::Neg, vec![expr])
            }
            UnaryOp::BitNot => {
                let expr = if is_number_or_bytes(operand) { self.operand(operand)? } else { self.expr(operand)? };
                self.call(FuncId::BitNot, vec![expr])
            }
            UnaryOp::Not => match &operand.kind {
                Ast::Exists { query, negated } => {
                    let plan = self.exists_plan(query)?;
                    Ok(self.subquery(SubqueryKind::Exists { negated: !negated }, plan, ExprType::boolean(false)))
                }
                Ast::InQuery { expr, query, negated } => self.in_query(expr, query, !negated),
                Ast::Binary { op: BinaryOp::Xor, left, right } => self.not_xor(left, right),
                _ => {
                    let expr = self.condition(operand)?;
                    Ok(self.not(expr))
                }
            },
            UnaryOp::Binary => {
                let expr = self.expr(operand)?;
                self.cast(expr, &ast::CastType::Binary(None))
            }
        }
    }

    /// NOT (a XOR b). MySQL negates one of the two, which shows where it is a fraction: XOR takes its integer, NOT asks whether it is zero.
    fn not_xor(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let args = if is_negated(right) && !is_negated(left) {
            vec![self.operand(left)?, self.unary(UnaryOp::Not, right)?]
        } else {
            vec![self.unary(UnaryOp::Not, left)?, self.operand(right)?]
        };
        self.call(FuncId::Xor, args)
    }

    fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let func = match op {
            BinaryOp::And | BinaryOp::Or => return self.logical(op == BinaryOp::And, left, right),
            BinaryOp::Eq => return self.compare(CompareOp::Eq, left, right),
            BinaryOp::NullSafeEq => return self.compare(CompareOp::NullSafeEq, left, right),
            BinaryOp::Ne => return self.compare(CompareOp::Ne, left, right),
            BinaryOp::Lt => return self.compare(CompareOp::Lt, left, right),
            BinaryOp::Le => return self.compare(CompareOp::Le, left, right),
            BinaryOp::Gt => return self.compare(CompareOp::Gt, left, right),
            BinaryOp::Ge => return self.compare(CompareOp::Ge, left, right),
            BinaryOp::Concat => {
                let args = vec![self.expr(left)?, self.expr(right)?];
                return self.call(FuncId::Concat, args);
            }
            BinaryOp::JsonExtract | BinaryOp::JsonUnquote => {
                let args = vec![self.expr(left)?, self.expr(right)?];
                let extracted = self.call(FuncId::JsonExtract, args)?;
                return if op == BinaryOp::JsonUnquote { self.call(FuncId::JsonUnquote, vec![extracted]) } else { Ok(extracted) };
            }
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Shl | BinaryOp::Shr => return self.bit_operation(op, left, right),
            BinaryOp::Add => FuncId::Add,
            BinaryOp::Sub => FuncId::Sub,
            BinaryOp::Mul => FuncId::Mul,
            BinaryOp::Div => FuncId::Div,
            BinaryOp::IntDiv => FuncId::IntDiv,
            BinaryOp::Mod => FuncId::Mod,
            BinaryOp::Xor => FuncId::Xor,
        };
        let args = vec![self.operand(left)?, self.operand(right)?];
        self.call(func, args)
    }

    fn bit_operation(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let func = match op {
            BinaryOp::BitAnd => FuncId::BitAnd,
            BinaryOp::BitOr => FuncId::BitOr,
            BinaryOp::BitXor => FuncId::BitXor,
            BinaryOp::Shl => FuncId::ShiftLeft,
            _ => FuncId::ShiftRight,
        };
        // Binary strings work bit by bit unless both sides are hexadecimal, bit or NULL literals.
        let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let numeric = is_number_or_bytes(left) && (shift || is_number_or_bytes(right));
        let args = if numeric {
            vec![self.operand(left)?, self.operand(right)?]
        } else {
            let (mut left_bound, mut right_bound) = (self.expr(left)?, self.expr(right)?);
            // One binary string makes hexadecimal literals strings too; otherwise they are numbers.
            let binary = left_bound.ty.ty.is_binary() && (shift || right_bound.ty.ty.is_binary());
            if !binary && is_number_or_bytes(left) {
                left_bound = self.operand(left)?;
            }
            if !binary || shift {
                right_bound = self.operand(right)?;
            }
            vec![left_bound, right_bound]
        };
        self.call(func, args)
    }

    fn logical(&mut self, and: bool, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let (left, right) = (self.condition(left)?, self.condition(right)?);
        let nullable = left.ty.nullable || right.ty.nullable;
        let mut parts = Vec::new();
        for side in [left, right] {
            match side.kind {
                ExprKind::And(inner) if and => parts.extend(inner),
                ExprKind::Or(inner) if !and => parts.extend(inner),
                _ => parts.push(side),
            }
        }
        let kind = if and { ExprKind::And(parts) } else { ExprKind::Or(parts) };
        Ok(self.folder.fold(Expr { kind, ty: ExprType::boolean(nullable) }))
    }

    /// Members of a row constructor; `None` for a scalar.
    pub fn row<'e>(&self, expr: &'e ast::Expr) -> Option<&'e [ast::Expr]> {
        match &expr.kind {
            Ast::Row(items) => Some(items),
            _ => None,
        }
    }

    fn compare(&mut self, op: CompareOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        self.compare_by(comparison, op, left, right)
    }

    fn compare_by(&mut self, comparison: Comparison, op: CompareOp, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        match (self.row(left), self.row(right)) {
            (None, None) => {
                let (left_bound, right_bound) = (self.expr(left)?, self.expr(right)?);
                self.compare_scalars(comparison, op, (left, left_bound), (right, right_bound))
            }
            (Some(left), Some(right)) => {
                if left.len() != right.len() {
                    return Err(errors::operand_columns(left.len()));
                }
                self.compare_rows(op, left, right)
            }
            (Some(items), None) => match &right.kind {
                Ast::Subquery(query) if matches!(op, CompareOp::Eq | CompareOp::Ne) => self.row_of_query(left, query, op == CompareOp::Ne),
                Ast::Subquery(query) => self.row_beside_query(op, items, query),
                _ => Err(errors::operand_columns(items.len())),
            },
            (None, Some(items)) => match &left.kind {
                Ast::Subquery(query) if matches!(op, CompareOp::Eq | CompareOp::Ne) => self.row_of_query(right, query, op == CompareOp::Ne),
                Ast::Subquery(query) => self.row_beside_query(op.flip(), items, query),
                _ => Err(errors::operand_columns(1)),
            },
        }
    }

    /// Two scalars, each as it is written and as it is bound.
    pub(super) fn compare_scalars(&self, comparison: Comparison, op: CompareOp, left: (&ast::Expr, Expr), right: (&ast::Expr, Expr)) -> Result<Expr> {
        let (left_bound, right_bound) = (without_select(left.1), without_select(right.1));
        // A hexadecimal literal against a number is a number.
        let left_bound = if right_bound.ty.ty.is_number() { self.as_number(left.0, left_bound) } else { left_bound };
        let right_bound = if left_bound.ty.ty.is_number() { self.as_number(right.0, right_bound) } else { right_bound };
        let (left_dated, right_dated) = (is_dated(&left_bound), is_dated(&right_bound));
        let left_bound = if right_dated { computed_text(left.0, left_bound) } else { left_bound };
        let right_bound = if left_dated { computed_text(right.0, right_bound) } else { right_bound };
        comparison(op, left_bound, right_bound, &self.folder)
    }

    /// A hexadecimal or bit literal as a number, also one that a query selects from no table; anything else as it is bound.
    pub fn as_number(&self, syntax: &ast::Expr, bound: Expr) -> Expr {
        match &syntax.kind {
            Ast::Literal(literal) => self.numeric_literal(literal).unwrap_or(bound),
            Ast::Subquery(query) => match lone_item(query) {
                Some(item) => self.as_number(item, bound),
                None => bound,
            },
            _ => bound,
        }
    }

    /// Rows compare member by member, the first difference deciding.
    fn compare_rows(&mut self, op: CompareOp, left: &[ast::Expr], right: &[ast::Expr]) -> Result<Expr> {
        let pairs: Vec<_> = left.iter().zip(right).collect();
        match op {
            CompareOp::Eq | CompareOp::NullSafeEq => {
                let parts = pairs.iter().map(|(l, r)| self.compare(op, l, r)).collect::<Result<Vec<_>>>()?;
                Ok(Expr::and(parts).expect("a row has members"))
            }
            CompareOp::Ne => {
                let equal = self.compare_rows(CompareOp::Eq, left, right)?;
                Ok(self.not(equal))
            }
            _ => {
                // (a, b) < (c, d) is a < c OR (a = c AND b < d), for members as for halves of longer rows.
                let strict = match op {
                    CompareOp::Le => CompareOp::Lt,
                    CompareOp::Ge => CompareOp::Gt,
                    other => other,
                };
                if let [(l, r)] = pairs[..] {
                    return self.compare(op, l, r);
                }
                let half = if pairs.len() < LONG_ROW { 1 } else { pairs.len() / 2 };
                let ((left, left_rest), (right, right_rest)) = (left.split_at(half), right.split_at(half));
                let first = self.compare_rows(strict, left, right)?;
                let equal = self.again(left, |binder| binder.compare_rows(CompareOp::Eq, left, right))?;
                let rest = self.compare_rows(op, left_rest, right_rest)?;
                let tail = Expr::and([equal, rest]).expect("two parts");
                let nullable = first.ty.nullable || tail.ty.nullable;
                Ok(Expr { kind: ExprKind::Or(vec![first, tail]), ty: ExprType::boolean(nullable) })
            }
        }
    }

    /// Binds a condition, or more, that compares `operand` several times. One that calls a stored function which may give another value each time, or do
    /// something, is computed once for all.
    fn comparing(&mut self, operand: &ast::Expr, bind: impl FnOnce(&mut Self) -> Result<Expr>) -> Result<Expr> {
        if self.row(operand).is_some() || !calls_function(operand) {
            return bind(self);
        }
        let value = self.again(std::slice::from_ref(operand), |binder| binder.expr(operand))?;
        if value.is_repeatable() {
            return bind(self);
        }
        let id = self.next_once;
        self.next_once += 1;
        self.once.push((std::ptr::from_ref(operand).addr(), Expr { kind: ExprKind::Kept(id), ty: value.ty.clone() }));
        let body = bind(self);
        self.once.pop();
        let body = body?;
        let ty = body.ty.clone();
        Ok(Expr { kind: ExprKind::Once { id, value: Box::new(value), body: Box::new(body) }, ty })
    }

    fn between(&mut self, expr: &ast::Expr, low: &ast::Expr, high: &ast::Expr, negated: bool) -> Result<Expr> {
        let first = self.expr(expr)?;
        let second = self.again(std::slice::from_ref(expr), |binder| binder.expr(expr))?;
        let (bound_low, bound_high) = (self.expr(low)?, self.expr(high)?);
        // A hexadecimal literal against a number is a number.
        let first = if bound_low.ty.ty.is_number() { self.as_number(expr, first) } else { first };
        let second = if bound_high.ty.ty.is_number() { self.as_number(expr, second) } else { second };
        let low = if first.ty.ty.is_number() { self.as_number(low, bound_low) } else { bound_low };
        let high = if second.ty.ty.is_number() { self.as_number(high, bound_high) } else { bound_high };
        let [low, high] = between(negated, [first, second], [low, high], &self.folder)?;
        if !negated {
            return Ok(self.folder.fold(Expr::and([low, high]).expect("two parts")));
        }
        let nullable = low.ty.nullable || high.ty.nullable;
        Ok(self.folder.fold(Expr { kind: ExprKind::Or(vec![low, high]), ty: ExprType::boolean(nullable) }))
    }

    fn in_list(&mut self, expr: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        if let Some(items) = self.row(expr) {
            let mut parts = Vec::new();
            for candidate in list {
                let Some(members) = self.row(candidate) else { return Err(errors::operand_columns(items.len())) };
                if members.len() != items.len() {
                    return Err(errors::operand_columns(items.len()));
                }
                let copied: &[ast::Expr] = if parts.is_empty() { &[] } else { items };
                let comparison: Comparison = if list.len() == 1 { comparison_of_only_members } else { comparison_of_members };
                parts.push(self.again(copied, |binder| {
                    let equal = items.iter().zip(members).map(|(item, member)| binder.compare_by(comparison, CompareOp::Eq, item, member));
                    Ok(Expr::and(equal.collect::<Result<Vec<_>>>()?).expect("a row has members"))
                })?);
            }
            return Ok(self.any_of(parts, negated));
        }
        let mut left = self.expr(expr)?;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            let bound = without_select(self.expr(item)?);
            items.push(if left.ty.ty.is_number() { self.as_number(item, bound) } else { bound });
        }
        // IN of one value is a comparison to MySQL, which JSON and YEAR show.
        let shows = |expr: &Expr| matches!(expr.ty.ty.kind, TypeKind::Json | TypeKind::Year);
        if items.len() == 1 && (shows(&left) || shows(&items[0])) {
            let equal = comparison(CompareOp::Eq, left, items.remove(0), &self.folder)?;
            return Ok(if negated { self.not(equal) } else { equal });
        }
        let nullable = left.ty.nullable || items.iter().any(|i| i.ty.nullable);
        match unify_list(&mut left, &mut items, &self.folder)? {
            Some(by) => Ok(self.folder.fold(Expr {
                kind: ExprKind::In { expr: Box::new(left), list: items, by, negated, sorted: false },
                ty: ExprType::boolean(nullable),
            })),
            None => {
                let parts = items.into_iter().map(|item| comparison_of_text(CompareOp::Eq, left.clone(), item, &self.folder)).collect::<Result<Vec<_>>>()?;
                Ok(self.any_of(parts, negated))
            }
        }
    }

    fn any_of(&self, mut parts: Vec<Expr>, negated: bool) -> Expr {
        let any = if parts.len() == 1 {
            parts.pop().expect("one part")
        } else {
            let nullable = parts.iter().any(|p| p.ty.nullable);
            Expr { kind: ExprKind::Or(parts), ty: ExprType::boolean(nullable) }
        };
        if negated { self.not(any) } else { any }
    }

    fn like(&mut self, expr: &ast::Expr, pattern: &ast::Expr, escape: Option<&ast::Expr>, negated: bool) -> Result<Expr> {
        let (expr, pattern) = (self.expr(expr)?, self.expr(pattern)?);
        let (expr, pattern) = (self.bits_as_bytes(expr), self.bits_as_bytes(pattern));
        let escape = match escape {
            None => Some('\\'),
            Some(escape) => {
                let bound = self.expr(escape)?;
                let text = match bound.as_literal() {
                    Some(Value::Null) => String::from("\\"),
                    Some(value) => highkey_types::display_text(value).unwrap_or_default(),
                    None => return Err(errors::wrong_arguments("ESCAPE")),
                };
                let mut chars = text.chars();
                let first = chars.next();
                if chars.next().is_some() {
                    return Err(errors::wrong_arguments("ESCAPE"));
                }
                first
            }
        };
        let (collation, _) = collation::aggregate(&[&expr, &pattern], self.cx.collation(), true, "like")?;
        let nullable = expr.ty.nullable || pattern.ty.nullable;
        let (mut expr, mut pattern) = (self.shown(expr), self.shown(pattern));
        if collation.charset == Charset::Binary {
            expr = as_bytes(expr, &self.folder);
            pattern = as_bytes(pattern, &self.folder);
        }
        Ok(self.folder.fold(Expr {
            kind: ExprKind::Like { expr: Box::new(expr), pattern: Box::new(pattern), escape, collation, negated },
            ty: ExprType::boolean(nullable),
        }))
    }

    fn case(&mut self, operand: Option<&ast::Expr>, branches: &[(ast::Expr, ast::Expr)], otherwise: Option<&ast::Expr>) -> Result<Expr> {
        let mut bound = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            let when = match operand {
                Some(operand) => {
                    let copied: &[ast::Expr] = if bound.is_empty() { &[] } else { std::slice::from_ref(operand) };
                    self.again(copied, |binder| binder.compare_by(comparison_of_text, CompareOp::Eq, operand, when))?
                }
                None => self.condition(when)?,
            };
            bound.push((when, self.expr(then)?));
        }
        let otherwise = otherwise.map(|e| self.expr(e)).transpose()?;
        self.make_case(bound, otherwise, "case")
    }

    /// CASE with its branches brought to one type.
    pub fn make_case(&mut self, branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>, operation: &str) -> Result<Expr> {
        let values: Vec<&Expr> = branches.iter().map(|(_, then)| then).chain(otherwise.as_ref()).collect();
        let mut ty = merge(&values, Rule::Branches, self.cx.collation(), operation)?;
        ty.nullable |= otherwise.is_none();
        let branches = branches.into_iter().map(|(when, then)| (when, coerce(as_written(then), &ty))).collect();
        let otherwise = otherwise.map(|e| Box::new(coerce(as_written(e), &ty)));
        Ok(self.folder.fold(Expr { kind: ExprKind::Case { branches, otherwise }, ty }))
    }

    /// CAST(expr AS ty).
    pub fn cast(&mut self, expr: Expr, ty: &ast::CastType) -> Result<Expr> {
        let expr = if matches!(ty, ast::CastType::Json) { self.folder.fold(super::json::truth_as_json(expr)) } else { expr };
        let target = super::types::cast_type(ty, &expr, self.cx.collation())?;
        let nullable = expr.ty.nullable || target.ty.is_temporal();
        let result = target.with_nullable(nullable);
        let cast = self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty: result.clone() });
        // A length cuts text, and pads bytes with zeros.
        let (func, length) = match ty {
            ast::CastType::Char { length: Some(n), .. } => (FuncId::CutText, *n),
            ast::CastType::Binary(Some(n)) => (FuncId::PadBytes, *n),
            _ => return Ok(cast),
        };
        Ok(self.folder.fold(Expr::call(func, vec![cast, Expr::int(i64::from(length))], result)))
    }

    pub fn convert_using(&mut self, expr: Expr, charset: Charset) -> Result<Expr> {
        let collation = Collation::default_of(charset);
        let ty = ExprType::text(expr.ty.char_length(), collation, true).with_coercibility(Coercibility::Implicit);
        let expr = self.shown(expr);
        let name = self.text(charset.name());
        Ok(self.folder.fold(Expr::call(FuncId::ConvertUsing, vec![expr, name], ty)))
    }

    fn collate(&mut self, expr: &ast::Expr, name: &str) -> Result<Expr> {
        let mut expr = self.expr(expr)?;
        let collation = collation::by_name(name)?;
        let numeric = !expr.ty.ty.is_string();
        let charset = if numeric { self.cx.collation().charset } else { expr.ty.ty.charset() };
        if collation.charset != charset && !expr.ty.is_null_type() {
            // A literal of ASCII characters may take any collation of a Unicode connection.
            return Err(errors::collation_mismatch(collation.name, charset.name()));
        }
        if numeric {
            let length = expr.ty.char_length();
            let ty = ExprType::text(length, collation, expr.ty.nullable).with_coercibility(Coercibility::Explicit);
            return Ok(self.folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty }));
        }
        if matches!(expr.ty.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
            let length = expr.ty.char_length();
            let ty = ExprType::text(length, collation, expr.ty.nullable).with_coercibility(Coercibility::Explicit);
            return Ok(Expr { kind: ExprKind::Cast(Box::new(expr)), ty });
        }
        expr.ty.ty.collation = collation;
        expr.ty.coercibility = Coercibility::Explicit;
        Ok(expr)
    }
}

/// MySQL negates it without a NOT.
fn is_negated(expr: &ast::Expr) -> bool {
    match &expr.kind {
        Ast::Unary { op, .. } => *op == UnaryOp::Not,
        Ast::Binary { op, .. } => {
            use BinaryOp as Op;
            matches!(op, Op::And | Op::Or | Op::Xor | Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)
        }
        Ast::IsNull { .. } => true,
        _ => false,
    }
}

/// It has a date.
fn is_dated(expr: &Expr) -> bool {
    matches!(expr.ty.ty.kind, TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_))
}

/// A string beside a date. One that was computed before is no literal to MySQL: it is a moment whatever it says, as one with COLLATE is.
fn computed_text(syntax: &ast::Expr, mut bound: Expr) -> Expr {
    if matches!(bound.as_literal(), Some(Value::Text(_) | Value::Bytes(_))) && !is_written(syntax) {
        bound.ty.coercibility = Coercibility::Explicit;
    }
    bound
}

/// A literal or a parameter, or a query that selects nothing but one.
fn is_written(syntax: &ast::Expr) -> bool {
    match &syntax.kind {
        Ast::Literal(_) | Ast::Param(_) => true,
        Ast::Subquery(query) => lone_item(query).is_none_or(is_written),
        _ => false,
    }
}

/// A literal that is a number or bytes by what it meets: hexadecimal, bits, NULL.
fn is_number_or_bytes(expr: &ast::Expr) -> bool {
    matches!(expr.kind, Ast::Literal(ast::Literal::Hex { introducer: None, .. } | ast::Literal::Bit(_) | ast::Literal::Null))
}

/// It may call a stored function, in arguments and operands of functions and operators.
fn calls_function(expr: &ast::Expr) -> bool {
    crate::stack::ensure(|| match &expr.kind {
        Ast::Function(call) => call.name.schema.is_some() || !is_native_function(&call.name.name) || call.args.iter().any(calls_function),
        Ast::Unary { expr, .. } => calls_function(expr),
        Ast::Binary { left, right, .. } => calls_function(left) || calls_function(right),
        _ => false,
    })
}

/// The constant that a subquery is which selects it from no table: to MySQL `(SELECT '9:00')` is '9:00'.
fn without_select(expr: Expr) -> Expr {
    if let ExprKind::Subquery(sub) = &expr.kind
        && matches!(sub.kind, SubqueryKind::Scalar)
        && let RelKind::Project { input, exprs } = &sub.plan.kind
        && matches!(&input.kind, RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty())
        && let [constant] = exprs.as_slice()
        && matches!(constant.kind, ExprKind::Literal(_) | ExprKind::Param(_))
    {
        return constant.clone();
    }
    expr
}

/// A condition that only rows for which it is true pass, without the operands of AND and OR that a literal beside them decides.
fn decided(mut condition: Expr) -> Expr {
    let (parts, decider) = match &mut condition.kind {
        ExprKind::And(parts) => (parts, false),
        ExprKind::Or(parts) => (parts, true),
        _ => return condition,
    };
    for part in parts.iter_mut() {
        let inner = std::mem::replace(part, Expr::null());
        *part = decided(inner);
    }
    let decides = |part: &Expr| match part.as_literal() {
        Some(Value::Null) => !decider,
        Some(Value::Int(n)) => (*n != 0) == decider,
        Some(Value::UInt(n)) => (*n != 0) == decider,
        _ => false,
    };
    let idle = parts.iter().all(|part| part.is_repeatable() && !part.has_subquery());
    if idle && parts.iter().any(decides) { Expr::boolean(decider) } else { condition }
}
