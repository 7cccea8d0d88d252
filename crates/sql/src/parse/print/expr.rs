//! Expressions as MySQL writes them down.

use highkey_types::{Charset, MySqlError};

use super::{Printer, chain, quote};
use crate::parse::ast::*;
use crate::parse::parser::Result;

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<()> {
        crate::stack::ensure(|| self.expr_here(expr))
    }

    fn infix(&mut self, left: &Expr, operator: &str, right: &Expr) -> Result<()> {
        self.put("(");
        self.operand(left)?;
        self.put(operator);
        self.operand(right)?;
        self.put(")");
        Ok(())
    }

    /// An operand of something that is no AND, OR or NOT: forms that MySQL writes without parentheses get some.
    fn operand(&mut self, expr: &Expr) -> Result<()> {
        let bare = matches!(expr.kind, ExprKind::InQuery { negated: false, .. } | ExprKind::MemberOf { .. } | ExprKind::Quantified { .. });
        self.put(if bare { "(" } else { "" });
        self.expr(expr)?;
        self.put(if bare { ")" } else { "" });
        Ok(())
    }

    fn call(&mut self, name: &str, args: &[&Expr]) -> Result<()> {
        self.put(name);
        self.put("(");
        self.list(args, |p, arg| p.expr(arg))?;
        self.put(")");
        Ok(())
    }

    fn expr_here(&mut self, expr: &Expr) -> Result<()> {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal),
            ExprKind::Column(name) => self.column(name, expr.span.start),
            ExprKind::Param(_) | ExprKind::UserVar(_) | ExprKind::SystemVar { .. } | ExprKind::Assign { .. } => {
                return Err(MySqlError::with_message(1351, "View's SELECT contains a variable or parameter"));
            }
            ExprKind::Default(_) | ExprKind::Values(_) => return Err(MySqlError::with_message(1351, "View's SELECT contains a variable or parameter")),
            ExprKind::Unary { op, expr } => match op {
                UnaryOp::Plus => self.expr(expr)?,
                UnaryOp::Minus | UnaryOp::BitNot => {
                    self.put(if *op == UnaryOp::Minus { "-(" } else { "~(" });
                    self.expr(expr)?;
                    self.put(")");
                }
                UnaryOp::Not => self.not(expr)?,
                UnaryOp::Binary => {
                    self.put("cast(");
                    self.expr(expr)?;
                    self.put(" as char charset binary)");
                }
            },
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right)?,
            ExprKind::IsNull { expr, negated } | ExprKind::IsBool { expr, value: None, negated } => {
                if *negated {
                    self.put("(");
                    self.operand(expr)?;
                    self.put(" is not null)");
                } else {
                    self.call("isnull", &[expr])?;
                }
            }
            ExprKind::IsBool { expr, value: Some(value), negated } => {
                self.put("(");
                self.operand(expr)?;
                self.put(&format!(" is {}{})", if *negated { "not " } else { "" }, if *value { "true" } else { "false" }));
            }
            ExprKind::Between { expr, low, high, negated } => {
                self.put("(");
                self.operand(expr)?;
                self.put(if *negated { " not between " } else { " between " });
                self.operand(low)?;
                self.put(" and ");
                self.operand(high)?;
                self.put(")");
            }
            ExprKind::InList { expr, list, negated } => match list.as_slice() {
                [one] => self.infix(expr, if *negated { " <> " } else { " = " }, one)?,
                list => {
                    self.put("(");
                    self.operand(expr)?;
                    self.put(if *negated { " not in (" } else { " in (" });
                    self.list(list, Self::expr)?;
                    self.put("))");
                }
            },
            ExprKind::InQuery { expr, query, negated } => {
                self.put(if *negated { "(not(" } else { "" });
                self.operand(expr)?;
                self.put(" in (");
                self.subquery(query)?;
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Like { expr, pattern, escape, negated } => {
                self.put(if *negated { "(not((" } else { "(" });
                self.operand(expr)?;
                self.put(" like ");
                self.operand(pattern)?;
                if let Some(escape) = escape {
                    self.put(" escape ");
                    self.expr(escape)?;
                }
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Regexp { expr, pattern, negated } => {
                self.put(if *negated { "(not(" } else { "" });
                self.call("regexp_like", &[expr, pattern])?;
                self.put(if *negated { "))" } else { "" });
            }
            ExprKind::SoundsLike { left, right } => {
                self.put("(");
                self.call("soundex", &[left])?;
                self.put(" = ");
                self.call("soundex", &[right])?;
                self.put(")");
            }
            ExprKind::MemberOf { value, array } => {
                self.operand(value)?;
                self.put(" member of (");
                self.expr(array)?;
                self.put(")");
            }
            ExprKind::Exists { query, negated } => {
                self.put(if *negated { "(not(exists(" } else { "exists(" });
                self.subquery(query)?;
                self.put(if *negated { ")))" } else { ")" });
            }
            ExprKind::Subquery(query) => {
                self.put("(");
                self.subquery(query)?;
                self.put(")");
            }
            ExprKind::Quantified { op: BinaryOp::Eq, quantifier: Quantifier::Any, expr: left, query } => {
                return self.expr(&Expr { kind: ExprKind::InQuery { expr: left.clone(), query: query.clone(), negated: false }, span: expr.span });
            }
            ExprKind::Quantified { op: BinaryOp::Ne, quantifier: Quantifier::All, expr: left, query } => {
                return self.expr(&Expr { kind: ExprKind::InQuery { expr: left.clone(), query: query.clone(), negated: true }, span: expr.span });
            }
            ExprKind::Quantified { op, quantifier, expr, query } => {
                self.operand(expr)?;
                self.put(&format!(" {} {} (", symbol(*op), if *quantifier == Quantifier::Any { "any" } else { "all" }));
                self.subquery(query)?;
                self.put(")");
            }
            ExprKind::Case { operand, branches, otherwise } => {
                self.put("(case ");
                if let Some(operand) = operand {
                    self.expr(operand)?;
                    self.put(" ");
                }
                for (when, then) in branches {
                    self.put("when ");
                    self.expr(when)?;
                    self.put(" then ");
                    self.expr(then)?;
                    self.put(" ");
                }
                if let Some(otherwise) = otherwise {
                    self.put("else ");
                    self.expr(otherwise)?;
                    self.put(" ");
                }
                self.put("end)");
            }
            ExprKind::Cast { expr, ty } => {
                self.put("cast(");
                self.expr(expr)?;
                let charset = self.names.filter(|_| matches!(ty, CastType::Char { charset: None, .. })).map_or(String::new(), |n| format!(" charset {}", n.charset));
                self.put(&format!(" as {}{charset})", cast_type(ty)));
            }
            ExprKind::ConvertUsing { expr, charset } => {
                self.put("convert(");
                self.expr(expr)?;
                self.put(&format!(" using {})", charset.to_ascii_lowercase()));
            }
            ExprKind::Collate { expr, collation } => {
                self.put("(");
                self.operand(expr)?;
                self.put(&format!(" collate {})", collation.to_ascii_lowercase()));
            }
            ExprKind::DateArith { date, value, unit, subtract } => {
                self.put("(");
                self.operand(date)?;
                self.put(if *subtract { " - interval " } else { " + interval " });
                self.expr(value)?;
                self.put(&format!(" {})", unit.name().to_ascii_lowercase()));
            }
            ExprKind::Extract { unit, date } => {
                self.put(&format!("extract({} from ", unit.name().to_ascii_lowercase()));
                self.expr(date)?;
                self.put(")");
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                self.put(&format!("timestampdiff({},", unit.name()));
                self.expr(from)?;
                self.put(",");
                self.expr(to)?;
                self.put(")");
            }
            ExprKind::Trim { side, what, text } => {
                self.put("trim(");
                match side {
                    TrimSide::Both if what.is_none() => {}
                    TrimSide::Both => self.put("both "),
                    TrimSide::Leading => self.put("leading "),
                    TrimSide::Trailing => self.put("trailing "),
                }
                if let Some(what) = what {
                    self.expr(what)?;
                    self.put(" ");
                }
                if what.is_some() || *side != TrimSide::Both {
                    self.put("from ");
                }
                self.expr(text)?;
                self.put(")");
            }
            ExprKind::Char { args, charset } => {
                self.put("char(");
                self.list(args, Self::expr)?;
                if let Some(charset) = charset {
                    self.put(&format!(" using {}", charset.to_ascii_lowercase()));
                }
                self.put(")");
            }
            ExprKind::WeightString { expr, cast } => {
                self.put("weight_string(");
                self.expr(expr)?;
                if let Some(ty) = cast {
                    self.put(&format!(" as {}", cast_type(ty)));
                }
                self.put(")");
            }
            ExprKind::GetFormat { kind, style } => {
                self.put(&format!("get_format({kind}, "));
                self.expr(style)?;
                self.put(")");
            }
            ExprKind::JsonValue(call) => {
                self.put("json_value(");
                self.expr(&call.document)?;
                self.put(",");
                self.expr(&call.path)?;
                if let Some(ty) = &call.returning {
                    self.put(&format!(" returning {}", cast_type(ty)));
                }
                self.json_otherwise(&call.on_empty, "empty")?;
                self.json_otherwise(&call.on_error, "error")?;
                self.put(")");
            }
            ExprKind::Match(call) => {
                self.put("(match ");
                self.list(&call.columns, Self::expr)?;
                self.put(" against (");
                self.expr(&call.query)?;
                self.put(call.mode.suffix());
                self.put("))");
            }
            ExprKind::Function(function) => self.function(function)?,
            ExprKind::Aggregate(call) => self.aggregate(call)?,
            ExprKind::Row(items) => {
                self.put("(");
                self.list(items, Self::expr)?;
                self.put(")");
            }
        }
        Ok(())
    }

    /// NOT, brought down to comparisons.
    fn not(&mut self, expr: &Expr) -> Result<()> {
        let here = |kind: ExprKind| Expr { kind, span: expr.span };
        let not = |e: &Expr| Box::new(here(ExprKind::Unary { op: UnaryOp::Not, expr: Box::new(e.clone()) }));
        let negated = match &expr.kind {
            ExprKind::Binary { op, left, right } => match op {
                BinaryOp::And => Some(ExprKind::Binary { op: BinaryOp::Or, left: not(left), right: not(right) }),
                BinaryOp::Or => Some(ExprKind::Binary { op: BinaryOp::And, left: not(left), right: not(right) }),
                _ => opposite(*op).map(|op| ExprKind::Binary { op, left: left.clone(), right: right.clone() }),
            },
            ExprKind::IsNull { expr, negated } => Some(ExprKind::IsNull { expr: expr.clone(), negated: !negated }),
            ExprKind::IsBool { expr, value, negated } => Some(ExprKind::IsBool { expr: expr.clone(), value: *value, negated: !negated }),
            ExprKind::Between { expr, low, high, negated: false } => Some(ExprKind::Between { expr: expr.clone(), low: low.clone(), high: high.clone(), negated: true }),
            ExprKind::InList { expr, list, negated: false } => Some(ExprKind::InList { expr: expr.clone(), list: list.clone(), negated: true }),
            _ => None,
        };
        if let Some(kind) = negated {
            return self.expr(&here(kind));
        }
        self.put("(not(");
        self.expr(expr)?;
        self.put("))");
        Ok(())
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<()> {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let mut parts = Vec::new();
                chain(op, left, &mut parts);
                chain(op, right, &mut parts);
                self.put("(");
                for (i, part) in parts.into_iter().enumerate() {
                    if i > 0 {
                        self.put(if op == BinaryOp::And { " and " } else { " or " });
                    }
                    self.expr(part)?;
                }
                self.put(")");
                Ok(())
            }
            BinaryOp::Concat => self.call("concat", &[left, right]),
            BinaryOp::JsonExtract => self.call("json_extract", &[left, right]),
            BinaryOp::JsonUnquote => {
                self.put("json_unquote(");
                self.call("json_extract", &[left, right])?;
                self.put(")");
                Ok(())
            }
            op => self.infix(left, &format!(" {} ", symbol(op)), right),
        }
    }

    fn function(&mut self, function: &FunctionCall) -> Result<()> {
        let name = function.name.name.to_ascii_lowercase();
        let args: Vec<&Expr> = function.args.iter().collect();
        if function.name.schema.is_some() || self.names.is_some_and(|names| names.stored.contains(&name)) {
            let schema = function.name.schema.as_deref().or(self.names.and_then(|names| names.schema.as_deref()));
            let shown = schema.filter(|schema| Some(*schema) != self.hidden_schema).map_or(String::new(), |schema| format!("{}.", quote(schema)));
            return self.call(&format!("{shown}{}", quote(&function.name.name)), &args);
        }
        match (name.as_str(), args.as_slice()) {
            ("mod", [a, b]) => return self.infix(a, " % ", b),
            ("instr", [text, what]) => return self.call("locate", &[what, text]),
            ("date" | "time", [arg]) => {
                self.put("cast(");
                self.expr(arg)?;
                self.put(&format!(" as {name})"));
                return Ok(());
            }
            ("name_const", _) => return self.call("NAME_CONST", &args),
            ("round", [arg]) => {
                self.put("round(");
                self.expr(arg)?;
                self.put(",0)");
                return Ok(());
            }
            _ => {}
        }
        self.call(usual_name(&name), &args)
    }

    /// What JSON_VALUE answers instead.
    fn json_otherwise(&mut self, otherwise: &JsonOtherwise, on: &str) -> Result<()> {
        match otherwise {
            JsonOtherwise::Null => self.put(" null"),
            JsonOtherwise::Error => self.put(" error"),
            JsonOtherwise::Default(value) => {
                self.put(" default ");
                self.expr(value)?;
            }
        }
        self.put(&format!(" on {on}"));
        Ok(())
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Result<()> {
        let name = call.name.to_ascii_lowercase();
        let name = usual_name(&name);
        self.put(&format!("{name}("));
        if call.distinct && !matches!(name, "min" | "max") {
            self.put("distinct ");
        }
        if call.star {
            self.put("0");
        }
        self.list(&call.args, Self::expr)?;
        if name == "group_concat" {
            if !call.order_by.is_empty() {
                self.put(" order by ");
                self.list(&call.order_by, |p, item| {
                    p.expr(&item.expr)?;
                    p.put(if item.desc { " DESC" } else { " ASC" });
                    Ok(())
                })?;
            }
            self.put(" separator ");
            self.string(call.separator.as_deref().unwrap_or(","));
        }
        self.put(")");
        match &call.over {
            None => Ok(()),
            Some(Over::Named(name)) => {
                self.put(" OVER ");
                self.name(name);
                Ok(())
            }
            Some(Over::Spec(spec)) => {
                self.put(" OVER ");
                self.window(spec)
            }
        }
    }

    pub(super) fn window(&mut self, spec: &WindowSpec) -> Result<()> {
        self.put("(");
        if let Some(base) = &spec.base {
            self.name(base);
            self.put(" ");
        }
        if !spec.partition_by.is_empty() {
            self.put("PARTITION BY ");
            self.list(&spec.partition_by, Self::expr)?;
            self.put(" ");
        }
        if !spec.order_by.is_empty() {
            self.put("ORDER BY ");
            self.list(&spec.order_by, |p, item| {
                p.expr(&item.expr)?;
                p.put(if item.desc { " desc" } else { "" });
                Ok(())
            })?;
            self.put(" ");
        }
        if let Some(frame) = &spec.frame {
            self.put(if frame.rows { "ROWS BETWEEN " } else { "RANGE BETWEEN " });
            self.frame_bound(&frame.start)?;
            self.put(" AND ");
            self.frame_bound(&frame.end)?;
        }
        self.put(") ");
        Ok(())
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> Result<()> {
        let (expr, side) = match bound {
            FrameBound::UnboundedPreceding => (None, "UNBOUNDED PRECEDING"),
            FrameBound::CurrentRow => (None, "CURRENT ROW"),
            FrameBound::UnboundedFollowing => (None, "UNBOUNDED FOLLOWING"),
            FrameBound::Preceding(expr) => (Some(expr), " PRECEDING"),
            FrameBound::Following(expr) => (Some(expr), " FOLLOWING"),
        };
        match expr.map(|e| &e.kind) {
            None => {}
            Some(ExprKind::DateArith { value, unit, .. }) => {
                self.put("INTERVAL ");
                self.expr(value)?;
                self.put(&format!(" {} ", unit.name().to_ascii_lowercase()));
            }
            Some(_) => self.expr(expr.expect("there is one"))?,
        }
        self.put(side);
        Ok(())
    }

    pub(super) fn string(&mut self, text: &str) {
        self.put("'");
        for c in text.chars() {
            match c {
                '\\' => self.put("\\\\"),
                '\'' => self.put("\\'"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\0' => self.put("\\0"),
                '\u{1a}' => self.put("\\Z"),
                c => self.out.push(c),
            }
        }
        self.put("'");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        self.put(&if digits.is_empty() { "x''".to_owned() } else { format!("0x{digits}") });
    }

    fn literal(&mut self, literal: &Literal) {
        let introduced = |introducer: &Option<String>| introducer.as_ref().map(|name| format!("_{}", name.to_ascii_lowercase()));
        match literal {
            Literal::Null => self.put("NULL"),
            Literal::Bool(truth) => self.put(if *truth { "TRUE" } else { "FALSE" }),
            Literal::Int(n) => self.put(&n.to_string()),
            Literal::Decimal(text) | Literal::Float(text) => self.put(text),
            Literal::String { value, introducer } => {
                let said = self.strings.map(|charset| format!("_{}", charset_of(charset, value)));
                self.put(&introduced(introducer).or(said).unwrap_or_default());
                self.string(value);
            }
            Literal::Hex { value, introducer } => {
                if let Some(introducer) = introduced(introducer) {
                    self.put(&format!("{introducer} "));
                }
                self.bytes(value);
            }
            Literal::Bit(bytes) => self.bytes(bytes),
            Literal::Date(text) => {
                self.put("DATE");
                self.string(text);
            }
            Literal::Time(text) => {
                self.put("TIME");
                self.string(text);
            }
            Literal::Timestamp(text) => {
                self.put("TIMESTAMP");
                self.string(text);
            }
        }
    }
}

/// The name of the character set that a string of a connection says. Behind the introducer of one that has other bytes for it, it would mean those that
/// it has here.
fn charset_of(connection: Charset, text: &str) -> &'static str {
    match connection {
        _ if connection.encode(text) != text.as_bytes() => Charset::Utf8mb4.name(),
        Charset::Utf8mb3 => "utf8mb3",
        charset => charset.name(),
    }
}

fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Ge => BinaryOp::Lt,
        _ => return None,
    })
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IntDiv => "DIV",
        BinaryOp::Mod => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Eq => "=",
        BinaryOp::NullSafeEq => "<=>",
        BinaryOp::Ne => "<>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Concat => "||",
        BinaryOp::JsonExtract => "->",
        BinaryOp::JsonUnquote => "->>",
    }
}

fn cast_type(ty: &CastType) -> String {
    let fsp = |name: &str, fsp: u8| if fsp == 0 { name.to_owned() } else { format!("{name}({fsp})") };
    let length = |n: &Option<u32>| n.map_or(String::new(), |n| format!("({n})"));
    match ty {
        CastType::Signed => "signed".to_owned(),
        CastType::Unsigned => "unsigned".to_owned(),
        CastType::Binary(n) => format!("char{} charset binary", length(n)),
        CastType::Char { length: n, charset: Some(charset) } => format!("char{} charset {}", length(n), charset.to_ascii_lowercase()),
        CastType::Char { length: n, charset: None } => format!("char{}", length(n)),
        CastType::Date => "date".to_owned(),
        CastType::DateTime(n) => fsp("datetime", *n),
        CastType::Time(n) => fsp("time", *n),
        CastType::Year => "year".to_owned(),
        CastType::Decimal { precision, scale } => format!("decimal({},{})", precision.unwrap_or(10), scale.unwrap_or(0)),
        CastType::Float => "float".to_owned(),
        CastType::Double => "double".to_owned(),
        CastType::Json => "json".to_owned(),
    }
}

/// The name under which MySQL writes a function.
fn usual_name(name: &str) -> &str {
    SYNONYMS.iter().find(|(synonym, _)| *synonym == name).map_or(name, |(_, usual)| usual)
}

/// Functions that MySQL writes under another name of theirs.
const SYNONYMS: &[(&str, &str)] = &[
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("current_date", "curdate"),
    ("current_time", "curtime"),
    ("current_timestamp", "now"),
    ("day", "dayofmonth"),
    ("lcase", "lower"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("mid", "substr"),
    ("octet_length", "length"),
    ("power", "pow"),
    ("schema", "database"),
    ("session_user", "user"),
    ("sha1", "sha"),
    ("stddev", "std"),
    ("stddev_pop", "std"),
    ("substring", "substr"),
    ("system_user", "user"),
    ("ucase", "upper"),
    ("var_pop", "variance"),
];
