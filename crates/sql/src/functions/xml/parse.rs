//! MySQL's grammar of XPath. A rule that fails leaves what it has read behind, and the next one goes on from there: that decides which text error 1105 shows.

use highkey_types::{Decimal, MySqlError, Value};

use super::document::is_ident_start;
use super::wrong;
use crate::stack;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Child,
    Descendant,
    DescendantOrSelf,
    Parent,
    Ancestor,
    AncestorOrSelf,
    Attribute,
    ItSelf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// The same with its sides exchanged.
    fn swapped(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

/// Name, fewest and most arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
];

/// Those that MySQL does not have lead to children.
const AXES: &[(&str, Axis)] = &[
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    ("following", Axis::Child),
    ("following-sibling", Axis::Child),
    ("namespace", Axis::Child),
    ("parent", Axis::Parent),
    ("preceding", Axis::Child),
    ("preceding-sibling", Axis::Child),
    ("self", Axis::ItSelf),
];

/// Tokens of the longest expression: no path and no condition is nested more deeply.
const TOKENS: usize = 500;

const NODE_TYPES: &[&str] = &["comment", "node", "processing-instruction", "text"];

#[derive(Clone, Debug)]
pub(super) enum XPath {
    Root,
    /// The node that a predicate is asked of.
    Context,
    /// From nodes along an axis to those of a name, or of any.
    Step { from: Box<XPath>, axis: Axis, name: Option<String> },
    Union(Box<XPath>, Box<XPath>),
    /// The nodes for which the condition holds.
    Filter { from: Box<XPath>, condition: Box<XPath> },
    /// The nodes at that position, from 1.
    Index { from: Box<XPath>, position: Box<XPath> },
    Literal(Value),
    Call(Function, Vec<XPath>),
    Arithmetic(Arithmetic, Box<XPath>, Box<XPath>),
    Neg(Box<XPath>),
    And(Box<XPath>, Box<XPath>),
    Or(Box<XPath>, Box<XPath>),
    Compare(Comparison, Box<XPath>, Box<XPath>),
    /// Any text of the nodes compares so with the value.
    AnyText(Comparison, Box<XPath>, Box<XPath>),
}

impl XPath {
    pub(super) fn is_nodes(&self) -> bool {
        matches!(self, XPath::Root | XPath::Context | XPath::Step { .. } | XPath::Union(..) | XPath::Filter { .. } | XPath::Index { .. })
    }

    fn is_condition(&self) -> bool {
        use Function as F;
        self.is_nodes()
            || matches!(self, XPath::And(..) | XPath::Or(..) | XPath::Compare(..) | XPath::AnyText(..))
            || matches!(self, XPath::Call(F::Boolean | F::Contains | F::False | F::Not | F::True, _))
    }

    fn step(self, axis: Axis, name: Option<String>) -> XPath {
        XPath::Step { from: Box::new(self), axis, name }
    }
}

/// Error 1105 for an expression that has a mistake.
pub(super) fn parse(text: &str) -> Result<XPath, MySqlError> {
    let mut parser = Parser { text, next: Token { kind: Kind::End, start: 0, end: 0 }, taken: 0, problem: None };
    parser.next = parser.token(0);
    let path = parser.or(&XPath::Root, false);
    match (parser.problem.take(), path) {
        (Some(problem), _) => Err(problem),
        (None, Some(path)) if parser.next.kind == Kind::End => Ok(path),
        _ => Err(wrong("XPATH syntax error", parser.rest())),
    }
}

/// Which nodes a step leads to.
enum NodeTest {
    /// `text()` and the like: no type is told from another, and the nodes stay what they are, whatever the axis is.
    Type,
    /// Those of a name, or of any, along the axis.
    Name(Axis, Option<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    End,
    Name,
    Axis,
    Function,
    NodeType,
    Digits,
    Quoted,
    /// A character that is a token of its own.
    Mark(u8),
    DoubleDot,
    NotEqual,
    LessEqual,
    GreaterEqual,
    Unknown,
}

#[derive(Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

struct Parser<'t> {
    text: &'t str,
    /// The token that is looked at.
    next: Token,
    /// Tokens so far.
    taken: usize,
    /// The error, where no other rule is tried any more.
    problem: Option<MySqlError>,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        let text = self.text;
        &text[self.next.start..]
    }

    fn token(&self, from: usize) -> Token {
        let start = from + self.text[from..].bytes().take_while(|byte| *byte == b' ').count();
        let rest = &self.text[start..];
        let (kind, length) = match rest.as_bytes() {
            [] => (Kind::End, 0),
            [b'.', b'.', ..] => (Kind::DoubleDot, 2),
            [b'!', b'=', ..] => (Kind::NotEqual, 2),
            [b'<', b'=', ..] => (Kind::LessEqual, 2),
            [b'>', b'=', ..] => (Kind::GreaterEqual, 2),
            [quote @ (b'"' | b'\''), ..] => match rest[1..].find(char::from(*quote)) {
                Some(end) => (Kind::Quoted, end + 2),
                None => (Kind::Unknown, 0),
            },
            [first, ..] if first.is_ascii_digit() => (Kind::Digits, rest.bytes().take_while(u8::is_ascii_digit).count()),
            [first, ..] if is_ident_start(*first) && *first != b':' => {
                let is_part = |byte: &u8| is_ident_start(*byte) && *byte != b':' || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
                let length = rest.bytes().take_while(is_part).count();
                let (name, behind) = rest.split_at(length);
                let kind = if behind.starts_with('(') && FUNCTIONS.iter().any(|(known, ..)| *known == name) {
                    Kind::Function
                } else if behind.starts_with('(') && NODE_TYPES.contains(&name) {
                    Kind::NodeType
                } else if behind.starts_with("::") && AXES.iter().any(|(known, _)| *known == name) {
                    Kind::Axis
                } else {
                    Kind::Name
                };
                (kind, length)
            }
            [mark @ (b'!' | b'#' | b'%' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b'-' | b'.' | b'/' | b':' | b'<' | b'=' | b'>' | b'@' | b'[' | b']' | b'|' | b'$'), ..] => {
                (Kind::Mark(*mark), 1)
            }
            _ => (Kind::Unknown, 0),
        };
        Token { kind, start, end: start + length }
    }

    /// Takes the next token if it is of that kind.
    fn take(&mut self, kind: Kind) -> Option<&'t str> {
        if self.next.kind != kind {
            return None;
        }
        if self.taken == TOKENS {
            self.problem = Some(stack::overrun());
            return None;
        }
        self.taken += 1;
        let text = self.text;
        let taken = &text[self.next.start..self.next.end];
        self.next = self.token(self.next.end);
        Some(taken)
    }

    fn mark(&mut self, mark: u8) -> bool {
        self.take(Kind::Mark(mark)).is_some()
    }

    /// Takes the next token if it is that name: an operator that is a word.
    fn word(&mut self, word: &str) -> bool {
        let is_next = self.next.kind == Kind::Name && &self.text[self.next.start..self.next.end] == word;
        is_next && self.take(Kind::Name).is_some()
    }

    /// `context`: where relative paths begin. `inside`: within a predicate, where position() and the like mean something.
    fn or(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        stack::ensure(|| {
            let mut left = self.and(context, inside)?;
            while self.word("or") {
                left = XPath::Or(Box::new(left), Box::new(self.and(context, inside)?));
            }
            Some(left)
        })
    }

    fn and(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.equality(context, inside)?;
        while self.word("and") {
            left = XPath::And(Box::new(left), Box::new(self.equality(context, inside)?));
        }
        Some(left)
    }

    fn equality(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.relational(context, inside)?;
        loop {
            let operator = self.next.start;
            let comparison = match self.next.kind {
                Kind::Mark(b'=') => Comparison::Eq,
                Kind::NotEqual => Comparison::Ne,
                _ => return Some(left),
            };
            self.take(self.next.kind);
            let right = self.relational(context, inside)?;
            left = self.comparison(comparison, left, right, operator)?;
        }
    }

    fn relational(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.additive(context, inside)?;
        loop {
            let operator = self.next.start;
            let comparison = match self.next.kind {
                Kind::Mark(b'<') => Comparison::Lt,
                Kind::LessEqual => Comparison::Le,
                Kind::Mark(b'>') => Comparison::Gt,
                Kind::GreaterEqual => Comparison::Ge,
                _ => return Some(left),
            };
            self.take(self.next.kind);
            let right = self.additive(context, inside)?;
            left = self.comparison(comparison, left, right, operator)?;
        }
    }

    fn comparison(&mut self, comparison: Comparison, left: XPath, right: XPath, operator: usize) -> Option<XPath> {
        Some(match (left.is_nodes(), right.is_nodes()) {
            (true, true) => {
                self.problem = Some(wrong("XPATH error: comparison of two nodesets is not supported", &self.text[operator..]));
                return None;
            }
            (true, false) => XPath::AnyText(comparison, Box::new(left), Box::new(right)),
            (false, true) => XPath::AnyText(comparison.swapped(), Box::new(right), Box::new(left)),
            (false, false) => XPath::Compare(comparison, Box::new(left), Box::new(right)),
        })
    }

    fn additive(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.multiplicative(context, inside)?;
        loop {
            let operator = match () {
                () if self.mark(b'+') => Arithmetic::Add,
                () if self.mark(b'-') => Arithmetic::Sub,
                () => return Some(left),
            };
            left = XPath::Arithmetic(operator, Box::new(left), Box::new(self.multiplicative(context, inside)?));
        }
    }

    fn multiplicative(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.unary(context, inside)?;
        loop {
            let operator = match () {
                () if self.mark(b'*') => Arithmetic::Mul,
                () if self.word("div") => Arithmetic::Div,
                () if self.word("mod") => Arithmetic::Mod,
                () => return Some(left),
            };
            left = XPath::Arithmetic(operator, Box::new(left), Box::new(self.unary(context, inside)?));
        }
    }

    fn unary(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut minuses = 0;
        while self.mark(b'-') {
            minuses += 1;
        }
        let operand = self.union(context, inside)?;
        Some((0..minuses).fold(operand, |operand, _| XPath::Neg(Box::new(operand))))
    }

    fn union(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        let mut left = self.path(context, inside)?;
        while self.mark(b'|') {
            if !left.is_nodes() {
                return None;
            }
            let right = self.path(context, inside).filter(XPath::is_nodes)?;
            left = XPath::Union(Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn path(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        if self.mark(b'/') {
            if self.mark(b'/') {
                return self.relative(XPath::Root.step(Axis::DescendantOrSelf, None));
            }
            return Some(self.relative(XPath::Root).unwrap_or(XPath::Root)).filter(|_| self.problem.is_none());
        }
        if let Some(path) = self.relative(context.clone()) {
            return Some(path);
        }
        if self.problem.is_some() {
            return None;
        }
        let primary = self.primary(context, inside)?;
        if !primary.is_nodes() || !self.mark(b'/') {
            return Some(primary);
        }
        let from = if self.mark(b'/') { primary.step(Axis::DescendantOrSelf, None) } else { primary };
        self.relative(from)
    }

    fn relative(&mut self, from: XPath) -> Option<XPath> {
        let mut path = self.step(from)?;
        while self.mark(b'/') {
            if self.mark(b'/') {
                path = path.step(Axis::DescendantOrSelf, None);
            }
            path = self.step(path).or_else(|| self.fail())?;
        }
        Some(path)
    }

    fn step(&mut self, from: XPath) -> Option<XPath> {
        let mut path = match self.node_test() {
            Some(NodeTest::Type) => from,
            Some(NodeTest::Name(axis, name)) => from.step(axis, name),
            None if self.problem.is_some() => return None,
            None if self.mark(b'.') => return Some(from),
            None => return self.take(Kind::DoubleDot).map(|_| from.step(Axis::Parent, None)),
        };
        while self.mark(b'[') {
            let condition = self.or(&XPath::Context, true).or_else(|| self.fail())?;
            if !self.mark(b']') {
                return self.fail();
            }
            let (from, condition) = (Box::new(path), Box::new(condition));
            path = if condition.is_condition() { XPath::Filter { from, condition } } else { XPath::Index { from, position: condition } };
        }
        Some(path)
    }

    fn node_test(&mut self) -> Option<NodeTest> {
        let axis = match self.take(Kind::Axis) {
            Some(name) => {
                if !(self.mark(b':') && self.mark(b':')) {
                    return None;
                }
                AXES.iter().find(|(known, _)| *known == name).map(|(_, axis)| *axis)?
            }
            None if self.mark(b'@') => Axis::Attribute,
            None => Axis::Child,
        };
        if self.mark(b'*') {
            return Some(NodeTest::Name(axis, None));
        }
        if self.take(Kind::NodeType).is_some() {
            return (self.mark(b'(') && self.mark(b')')).then_some(NodeTest::Type);
        }
        let first = self.name()?;
        let name = if self.mark(b':') { format!("{first}:{}", self.name()?) } else { first.to_owned() };
        Some(NodeTest::Name(axis, Some(name)))
    }

    /// Error 1105 for what comes next.
    fn fail(&mut self) -> Option<XPath> {
        let here = wrong("XPATH syntax error", self.rest());
        self.problem.get_or_insert(here);
        None
    }

    fn name(&mut self) -> Option<&'t str> {
        self.take(Kind::Name)
    }

    fn primary(&mut self, context: &XPath, inside: bool) -> Option<XPath> {
        if self.next.kind == Kind::Mark(b'$') {
            return self.variable();
        }
        if self.mark(b'(') {
            let inner = self.or(context, inside)?;
            return self.mark(b')').then_some(inner);
        }
        if let Some(quoted) = self.take(Kind::Quoted) {
            return Some(XPath::Literal(Value::from(&quoted[1..quoted.len() - 1])));
        }
        if let Some(whole) = self.take(Kind::Digits) {
            let fraction = if self.mark(b'.') { self.take(Kind::Digits) } else { None };
            return Some(XPath::Literal(number(whole, fraction)));
        }
        let name = self.take(Kind::Function)?;
        self.call(name, context, inside)
    }

    fn variable(&mut self) -> Option<XPath> {
        let at = self.next.start;
        self.mark(b'$');
        let of_user = self.mark(b'@');
        self.name()?;
        self.problem = Some(if of_user {
            MySqlError::with_message(1235, "This version of MySQL doesn't yet support 'user variables in XPATH'")
        } else {
            wrong("Unknown XPATH variable at", &self.text[at..])
        });
        None
    }

    fn call(&mut self, name: &str, context: &XPath, inside: bool) -> Option<XPath> {
        let (_, function, fewest, most) = FUNCTIONS.iter().find(|(known, ..)| *known == name).copied()?;
        if !self.mark(b'(') {
            return None;
        }
        let mut args = Vec::new();
        if self.next.kind != Kind::Mark(b')') {
            while args.len() < most {
                args.push(self.or(context, inside)?);
                if !self.mark(b',') {
                    break;
                }
            }
        }
        if args.len() < fewest || !self.mark(b')') {
            return None;
        }
        if args.is_empty() && matches!(function, Function::Number | Function::StringLength) {
            args.push(context.clone());
            if function == Function::StringLength && !inside {
                return None;
            }
        }
        let fits = match function {
            Function::Count | Function::Sum => args.iter().all(XPath::is_nodes),
            Function::Last | Function::Position => inside,
            _ => true,
        };
        fits.then_some(XPath::Call(function, args))
    }
}

/// Digits and those behind a point, if there are any.
fn number(whole: &str, fraction: Option<&str>) -> Value {
    match fraction {
        // What is too large for 64 bits is all of them.
        None => Value::Int(whole.parse::<u64>().unwrap_or(u64::MAX) as i64),
        Some(fraction) => match format!("{whole}.{fraction}").parse::<Decimal>() {
            Ok(decimal) => Value::Decimal(decimal),
            Err(()) => Value::Double(format!("{whole}.{fraction}").parse().unwrap_or(f64::MAX)),
        },
    }
}
