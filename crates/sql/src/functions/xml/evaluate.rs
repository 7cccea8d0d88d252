//! What an XPath comes to in a document: nodes, or a value of SQL.

use std::cmp::Ordering;

use highkey_types::{Collation, Decimal, Value};

use super::document::{Document, NodeKind};
use super::parse::{Arithmetic, Axis, Comparison, Function, XPath};
use crate::expr::convert::{division_by_zero, out_of_range, quiet_f64, to_decimal, to_f64, to_i64, to_text, truth};
use crate::expr::{EvalContext, Turn};
use crate::functions::FuncId;
use crate::functions::call::Result;
use crate::functions::string::too_long;
use crate::stack;

/// Nodes of the largest result: paths give a node as often as they come to it.
const HITS: usize = 1 << 20;

/// A node that was found, and its position among those found with it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub node: usize,
    position: usize,
}

/// The node that a predicate is asked of, and how many nodes it is asked of.
#[derive(Clone, Copy)]
pub(super) struct Context {
    hit: Hit,
    size: usize,
}

pub(super) struct Evaluation<'d, 'c> {
    pub document: &'d Document<'d>,
    /// Of the texts that are compared.
    pub collation: &'static Collation,
    /// Of the evaluation on its thread.
    pub turn: Turn,
    pub cx: &'c mut dyn EvalContext,
}

impl Evaluation<'_, '_> {
    /// The nodes of a path; none of anything else.
    pub(super) fn nodes(&mut self, path: &XPath, context: Option<Context>) -> Result<Vec<Hit>> {
        stack::ensure(|| match path {
            XPath::Root => Ok(vec![Hit { node: 0, position: 0 }]),
            XPath::Context => Ok(context.map(|context| context.hit).into_iter().collect()),
            XPath::Step { from, axis, name } => {
                let from = self.nodes(from, context)?;
                self.step(&from, *axis, name.as_deref())
            }
            XPath::Union(left, right) => {
                let both = [self.nodes(left, context)?, self.nodes(right, context)?].concat();
                Ok(in_order(both.into_iter().map(|hit| hit.node)))
            }
            XPath::Filter { from, condition } => self.chosen(from, context, |this, context| Ok(this.truth(condition, Some(context))?.unwrap_or(false))),
            XPath::Index { from, position } => self.chosen(from, context, |this, context| {
                let value = this.value(position, Some(context))?;
                let index = to_i64(&value, this.cx).unwrap_or(0);
                Ok(usize::try_from(index).is_ok_and(|index| index == context.hit.position + 1))
            }),
            _ => Ok(Vec::new()),
        })
    }

    /// The nodes of `from` of which `is_chosen`.
    fn chosen(&mut self, from: &XPath, context: Option<Context>, mut is_chosen: impl FnMut(&mut Self, Context) -> Result<bool>) -> Result<Vec<Hit>> {
        let from = self.nodes(from, context)?;
        let mut chosen = Vec::new();
        for hit in &from {
            self.turn.pass(self.cx)?;
            if is_chosen(self, Context { hit: *hit, size: from.len() })? {
                chosen.push(Hit { node: hit.node, position: chosen.len() });
            }
        }
        Ok(chosen)
    }

    fn step(&mut self, from: &[Hit], axis: Axis, name: Option<&str>) -> Result<Vec<Hit>> {
        let document = self.document;
        let nodes = &document.nodes;
        let is_named = |node: usize| name.is_none_or(|name| nodes[node].text == name);
        let is = |node: usize, kind: NodeKind| nodes[node].kind == kind && is_named(node);
        let parent = |node: usize| (node != 0).then(|| nodes[node].parent);
        match axis {
            Axis::Parent => return Ok(in_order(from.iter().filter_map(|hit| parent(hit.node)).filter(|node| is_named(*node)))),
            Axis::Ancestor | Axis::AncestorOrSelf => {
                let itself = axis == Axis::AncestorOrSelf;
                let own = from.iter().map(|hit| hit.node).filter(|_| itself);
                let above = from.iter().flat_map(|hit| std::iter::successors(parent(hit.node), move |node| parent(*node)).filter(|node| *node != 0));
                let mut found = in_order(own.chain(above).filter(|node| is_named(*node)));
                // The nearest is the first.
                let last = found.len().saturating_sub(1);
                found.iter_mut().for_each(|hit| hit.position = last - hit.position);
                return Ok(found);
            }
            _ => {}
        }
        let mut found = Vec::new();
        for hit in from {
            self.turn.pass(self.cx)?;
            let node = hit.node;
            let of_parent = |kind: NodeKind| document.below(node).filter(move |other| nodes[*other].parent == node && is(*other, kind)).collect::<Vec<usize>>();
            let here: Vec<usize> = match axis {
                Axis::Child => of_parent(NodeKind::Tag),
                Axis::Attribute => of_parent(NodeKind::Attribute),
                Axis::ItSelf => Some(node).filter(|node| is_named(*node)).into_iter().collect(),
                _ => {
                    let itself = Some(node).filter(|node| axis == Axis::DescendantOrSelf && is_named(*node));
                    itself.into_iter().chain(document.below(node).filter(|other| is(*other, NodeKind::Tag))).collect()
                }
            };
            found.extend(here.into_iter().enumerate().map(|(position, node)| Hit { node, position }));
            if found.len() > HITS {
                return Err(stack::overrun());
            }
        }
        Ok(found)
    }

    /// The value of an expression: of nodes the text in them, of conditions 1 or 0.
    pub(super) fn value(&mut self, path: &XPath, context: Option<Context>) -> Result<Value> {
        stack::ensure(|| match path {
            XPath::Literal(value) => Ok(value.clone()),
            XPath::Call(function, args) => self.call(*function, args, context),
            XPath::Arithmetic(operator, left, right) => {
                let (left, right) = (self.value(left, context)?, self.value(right, context)?);
                self.arithmetic(*operator, left, right)
            }
            XPath::Neg(operand) => {
                let operand = self.value(operand, context)?;
                Ok(match operand {
                    Value::Null => Value::Null,
                    Value::Int(n) => Value::Int(n.checked_neg().ok_or_else(|| out_of_range("BIGINT", &format!("-({n})")))?),
                    Value::Decimal(n) => Value::Decimal(n.neg()),
                    other => to_f64(&other, self.cx).map_or(Value::Null, |n| Value::Double(-n)),
                })
            }
            XPath::And(left, right) => Ok(match (self.truth(left, context)?, self.truth(right, context)?) {
                (Some(false), _) | (_, Some(false)) => Value::bool(false),
                (Some(true), Some(true)) => Value::bool(true),
                _ => Value::Null,
            }),
            XPath::Or(left, right) => Ok(match (self.truth(left, context)?, self.truth(right, context)?) {
                (Some(true), _) | (_, Some(true)) => Value::bool(true),
                (Some(false), Some(false)) => Value::bool(false),
                _ => Value::Null,
            }),
            XPath::Compare(comparison, left, right) => {
                let (left, right) = (self.value(left, context)?, self.value(right, context)?);
                Ok(self.compares(*comparison, &left, &right).map_or(Value::Null, Value::bool))
            }
            XPath::AnyText(comparison, nodes, value) => {
                let (nodes, value) = (self.nodes(nodes, context)?, self.value(value, context)?);
                let texts: Vec<Value> = nodes.iter().flat_map(|hit| self.document.texts(hit.node)).map(Value::from).collect();
                Ok(Value::bool(texts.iter().any(|text| self.compares(*comparison, text, &value) == Some(true))))
            }
            nodes => {
                let nodes = self.nodes(nodes, context)?;
                Ok(Value::from(self.text(&nodes)))
            }
        })
    }

    /// The texts in nodes, in the document's order, with blanks between them.
    fn text(&self, nodes: &[Hit]) -> String {
        let nodes = in_order(nodes.iter().map(|hit| hit.node));
        let mut texts: Vec<usize> = Vec::new();
        for hit in &nodes {
            let is_text = |other: &usize| self.document.nodes[*other].kind == NodeKind::Text && self.document.nodes[*other].parent == hit.node;
            texts.extend(self.document.below(hit.node).filter(is_text));
        }
        texts.sort_unstable();
        let mut joined = String::new();
        for node in texts {
            // Not before the first that is not empty.
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(self.document.nodes[node].text);
        }
        joined
    }

    /// Nodes are true if there is exactly one. `None` is NULL.
    fn truth(&mut self, path: &XPath, context: Option<Context>) -> Result<Option<bool>> {
        if path.is_nodes() {
            return Ok(Some(self.nodes(path, context)?.len() == 1));
        }
        let value = self.value(path, context)?;
        Ok(truth(&value, self.cx))
    }

    fn compares(&mut self, comparison: Comparison, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::Null, _) | (_, Value::Null) => None,
            (Value::Text(left), Value::Text(right)) => Some(self.collation.compare(left.as_bytes(), right.as_bytes())),
            (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
            _ => to_f64(left, self.cx).zip(to_f64(right, self.cx)).and_then(|(left, right)| left.partial_cmp(&right)),
        };
        order.map(|order| match comparison {
            Comparison::Eq => order == Ordering::Equal,
            Comparison::Ne => order != Ordering::Equal,
            Comparison::Lt => order == Ordering::Less,
            Comparison::Le => order != Ordering::Greater,
            Comparison::Gt => order == Ordering::Greater,
            Comparison::Ge => order != Ordering::Less,
        })
    }

    fn arithmetic(&mut self, operator: Arithmetic, left: Value, right: Value) -> Result<Value> {
        use Arithmetic as A;
        let is_exact = |value: &Value| matches!(value, Value::Int(_) | Value::Decimal(_));
        let too_large = |ty: &str| {
            let sign = match operator {
                A::Add => "+",
                A::Sub => "-",
                A::Mul => "*",
                A::Div => "DIV",
                A::Mod => "%",
            };
            let shown = |value: &Value| to_text(value).unwrap_or_default().into_owned();
            out_of_range(ty, &format!("({} {sign} {})", shown(&left), shown(&right)))
        };
        if let (Value::Int(a), Value::Int(b)) = (&left, &right) {
            let result = match operator {
                A::Add => a.checked_add(*b),
                A::Sub => a.checked_sub(*b),
                A::Mul => a.checked_mul(*b),
                _ if *b == 0 => return division_by_zero(self.cx),
                A::Div => a.checked_div(*b),
                A::Mod => a.checked_rem(*b).or(Some(0)),
            };
            return Ok(Value::Int(result.ok_or_else(|| too_large("BIGINT"))?));
        }
        if is_exact(&left) && is_exact(&right) {
            let (Some(a), Some(b)) = (to_decimal(&left, self.cx), to_decimal(&right, self.cx)) else { return Ok(Value::Null) };
            let result = match operator {
                A::Add => a.add(&b),
                A::Sub => a.sub(&b),
                A::Mul => a.mul(&b),
                _ if b.is_zero() => return division_by_zero(self.cx),
                A::Div => a.div_unrounded(&b, 4).map(|quotient| quotient.truncate(0)),
                A::Mod => a.rem(&b),
            };
            let result: Decimal = result.ok_or_else(|| too_large("DECIMAL"))?;
            return match operator {
                A::Div => Ok(Value::Int(result.to_i64().ok_or_else(|| too_large("BIGINT"))?)),
                _ => Ok(Value::Decimal(result)),
            };
        }
        let (Some(a), Some(b)) = (to_f64(&left, self.cx), to_f64(&right, self.cx)) else { return Ok(Value::Null) };
        let result = match operator {
            A::Add => a + b,
            A::Sub => a - b,
            A::Mul => a * b,
            _ if b == 0.0 => return division_by_zero(self.cx),
            A::Div => a / b,
            A::Mod => a % b,
        };
        match operator {
            _ if !result.is_finite() => Err(too_large("DOUBLE")),
            A::Div if result.abs() < 9.2e18 => Ok(Value::Int(result.trunc() as i64)),
            A::Div => Err(too_large("BIGINT")),
            _ => Ok(Value::Double(result)),
        }
    }

    fn call(&mut self, function: Function, args: &[XPath], context: Option<Context>) -> Result<Value> {
        use Function as F;
        match (function, args) {
            (F::True, _) => return Ok(Value::bool(true)),
            (F::False, _) => return Ok(Value::bool(false)),
            (F::Position, _) => return Ok(context.map_or(Value::Null, |context| Value::Int(context.hit.position as i64 + 1))),
            (F::Last, _) => return Ok(context.map_or(Value::Null, |context| Value::Int(context.size as i64))),
            (F::Boolean, [arg]) => return Ok(self.truth(arg, context)?.map_or(Value::Null, Value::bool)),
            (F::Not, [arg]) => return Ok(self.truth(arg, context)?.map_or(Value::Null, |truth| Value::bool(!truth))),
            (F::Count, [arg]) => return Ok(Value::Int(self.nodes(arg, context)?.len() as i64)),
            (F::Sum, [arg]) => {
                let nodes = self.nodes(arg, context)?;
                let texts = nodes.iter().flat_map(|hit| self.document.texts(hit.node));
                let cx = &*self.cx;
                return Ok(Value::Double(texts.filter_map(|text| quiet_f64(&Value::from(text), cx)).fold(0.0, |sum, number| sum + number)));
            }
            _ => {}
        }
        let values: Vec<Value> = args.iter().map(|arg| self.value(arg, context)).collect::<Result<_>>()?;
        let text = |i: usize| values.get(i).and_then(to_text).unwrap_or_default();
        if values.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        Ok(match function {
            // Of more than two texts MySQL joins the first two.
            F::Concat if text(0).len() + text(1).len() > self.cx.max_allowed_packet() => too_long(FuncId::Concat, self.cx),
            F::Concat => Value::from(format!("{}{}", text(0), text(1))),
            F::Contains => Value::bool(self.collation.find(text(0).as_bytes(), text(1).as_bytes()).is_some()),
            F::StringLength => Value::Int(text(0).chars().count() as i64),
            F::Substring => {
                let total = text(0).chars().count() as i64;
                let position = to_i64(&values[1], self.cx).unwrap_or(0);
                let count = values.get(2).map_or(i64::MAX, |count| to_i64(count, self.cx).unwrap_or(0)).max(0);
                let start = if position < 0 { total + position } else { position - 1 };
                let part = if position == 0 || start < 0 { String::new() } else { text(0).chars().skip(start as usize).take(count as usize).collect() };
                Value::from(part)
            }
            _ => {
                let number = to_f64(&values[0], self.cx).unwrap_or(0.0);
                Value::Double(match function {
                    F::Ceiling => number.ceil(),
                    F::Floor => number.floor(),
                    F::Round => number.round_ties_even(),
                    _ => number,
                })
            }
        })
    }
}

/// Each node once, in the document's order.
fn in_order(nodes: impl Iterator<Item = usize>) -> Vec<Hit> {
    let mut nodes: Vec<usize> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.into_iter().enumerate().map(|(position, node)| Hit { node, position }).collect()
}
