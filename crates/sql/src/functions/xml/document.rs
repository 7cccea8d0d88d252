//! XML as MySQL reads it: no declarations that mean anything, no entities, and closing tags that are checked by their length only.

/// The level of the innermost element or attribute at most.
const LEVELS: usize = 254;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// An element, a processing instruction or a declaration; the first node is the root, which has no name.
    Tag,
    Attribute,
    Text,
}

#[derive(Debug)]
pub(super) struct Node<'x> {
    pub kind: NodeKind,
    /// The root's is 0.
    pub level: usize,
    pub parent: usize,
    /// The name, or the text itself.
    pub text: &'x str,
    /// The node's bytes in the XML.
    pub start: usize,
    pub end: usize,
}

/// The nodes in the order in which they begin.
#[derive(Debug)]
pub(super) struct Document<'x> {
    pub nodes: Vec<Node<'x>>,
}

impl<'x> Document<'x> {
    /// `Err`: what is wrong and where, in MySQL's words.
    pub(super) fn parse(xml: &'x str) -> Result<Document<'x>, String> {
        let root = Node { kind: NodeKind::Tag, level: 0, parent: 0, text: "", start: 0, end: xml.len() };
        let mut parser = Parser { xml, at: 0, nodes: vec![root], open: vec![0] };
        parser.run()?;
        Ok(Document { nodes: parser.nodes })
    }

    /// The nodes below `node`, all of them.
    pub(super) fn below(&self, node: usize) -> impl Iterator<Item = usize> {
        let level = self.nodes[node].level;
        (node + 1..self.nodes.len()).take_while(move |other| self.nodes[*other].level > level)
    }

    /// The texts directly in `node`; an attribute's is its value.
    pub(super) fn texts(&self, node: usize) -> impl Iterator<Item = &'x str> {
        self.below(node).filter(move |other| self.nodes[*other].kind == NodeKind::Text && self.nodes[*other].parent == node).map(move |other| self.nodes[other].text)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Ident,
    Quoted,
    Cdata,
    Comment,
    /// One of `=/<>!?`.
    Mark(u8),
    Unknown,
}

impl Kind {
    fn name(self) -> String {
        match self {
            Kind::End => "END-OF-INPUT".to_owned(),
            Kind::Ident => "IDENT".to_owned(),
            Kind::Quoted => "STRING".to_owned(),
            Kind::Cdata => "CDATA".to_owned(),
            Kind::Comment => "COMMENT".to_owned(),
            Kind::Mark(mark) => format!("'{}'", char::from(mark)),
            Kind::Unknown => "unknown token".to_owned(),
        }
    }
}

/// A token and its text: of a string and of CDATA, what is between the marks.
#[derive(Clone, Copy)]
struct Token<'x> {
    kind: Kind,
    text: &'x str,
    start: usize,
}

struct Parser<'x> {
    xml: &'x str,
    at: usize,
    nodes: Vec<Node<'x>>,
    /// The root, and the nodes that are open in it.
    open: Vec<usize>,
}

impl<'x> Parser<'x> {
    fn run(&mut self) -> Result<(), String> {
        while self.at < self.xml.len() {
            if self.xml.as_bytes()[self.at] == b'<' {
                self.markup()?;
            } else {
                let xml = self.xml;
                let rest = &xml[self.at..];
                let text = &rest[..rest.find('<').unwrap_or(rest.len())];
                self.text(text, self.at);
                self.at += text.len();
            }
        }
        if self.open.len() > 1 { Err(self.wrong("unexpected END-OF-INPUT")) } else { Ok(()) }
    }

    /// From a `<` to the end of what it begins.
    fn markup(&mut self) -> Result<(), String> {
        let first = self.scan();
        match first.kind {
            Kind::Comment => return Ok(()),
            Kind::Cdata => {
                self.text(first.text, first.start);
                return Ok(());
            }
            _ => {}
        }
        let mut token = self.scan();
        if token.kind == Kind::Mark(b'/') {
            let name = self.scan();
            if name.kind != Kind::Ident {
                return Err(self.unexpected(name, "ident"));
            }
            self.leave(Some(name.text))?;
            token = self.scan();
            return self.close(token);
        }
        let (declaration, instruction) = (token.kind == Kind::Mark(b'!'), token.kind == Kind::Mark(b'?'));
        if declaration || instruction {
            token = self.scan();
        }
        if token.kind != Kind::Ident {
            return Err(self.unexpected(token, "ident or '/'"));
        }
        self.enter(NodeKind::Tag, token.text, first.start)?;
        token = self.attributes(declaration)?;
        if token.kind == Kind::Mark(b'/') {
            self.leave(None)?;
            token = self.scan();
        }
        if instruction {
            if token.kind != Kind::Mark(b'?') {
                return Err(self.unexpected(token, "'?'"));
            }
            self.leave(None)?;
            token = self.scan();
        }
        if declaration {
            self.leave(None)?;
        }
        self.close(token)
    }

    fn close(&self, token: Token<'x>) -> Result<(), String> {
        if token.kind == Kind::Mark(b'>') { Ok(()) } else { Err(self.unexpected(token, "'>'")) }
    }

    /// Attributes up to the first token that is none, which is the answer. A name without a value is one only before another name.
    fn attributes(&mut self, declaration: bool) -> Result<Token<'x>, String> {
        loop {
            let name = self.scan();
            if name.kind != Kind::Ident && !(declaration && name.kind == Kind::Quoted) {
                return Ok(name);
            }
            let next = self.scan();
            match next.kind {
                Kind::Mark(b'=') => {
                    let value = self.scan();
                    if !matches!(value.kind, Kind::Ident | Kind::Quoted) {
                        return Err(self.unexpected(value, "ident or string"));
                    }
                    self.enter(NodeKind::Attribute, name.text, name.start)?;
                    self.text(value.text, value.start);
                    self.leave_node(self.at);
                }
                Kind::Ident => {
                    self.enter(NodeKind::Attribute, name.text, name.start)?;
                    self.leave_node(self.at);
                }
                Kind::Quoted if declaration => {}
                _ => return Ok(next),
            }
        }
    }

    fn enter(&mut self, kind: NodeKind, text: &'x str, start: usize) -> Result<(), String> {
        if self.open.len() > LEVELS {
            return Err(self.wrong(""));
        }
        let node = self.node(kind, text, start, start);
        self.open.push(node);
        Ok(())
    }

    fn text(&mut self, text: &'x str, start: usize) {
        self.node(NodeKind::Text, text, start, start + text.len());
    }

    fn node(&mut self, kind: NodeKind, text: &'x str, start: usize, end: usize) -> usize {
        let parent = self.open.last().copied().unwrap_or(0);
        self.nodes.push(Node { kind, level: self.open.len(), parent, text, start, end });
        self.nodes.len() - 1
    }

    fn leave_node(&mut self, end: usize) {
        if let Some(node) = self.open.pop() {
            self.nodes[node].end = end;
        }
    }

    /// The end of the tag that is open, one byte behind what has been read. `name`: what the closing tag says.
    fn leave(&mut self, name: Option<&str>) -> Result<(), String> {
        let shown = name.unwrap_or_default();
        if self.open.len() < 2 {
            return Err(self.wrong(&format!("'</{shown}>' unexpected (END-OF-INPUT wanted)")));
        }
        let open = self.nodes[self.open[self.open.len() - 1]].text;
        if name.is_some_and(|name| name.len() != open.len()) {
            let wanted = if self.open.len() == 2 { "" } else { open };
            return Err(self.wrong(&format!("'</{shown}>' unexpected ('</{wanted}>' wanted)")));
        }
        self.leave_node((self.at + 1).min(self.xml.len()));
        Ok(())
    }

    fn scan(&mut self) -> Token<'x> {
        let xml = self.xml;
        while xml.as_bytes().get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        let start = self.at;
        let rest = &xml[start..];
        let (kind, text, length) = match rest.as_bytes().first() {
            None => (Kind::End, "", 0),
            Some(_) if rest.starts_with("<!--") => (Kind::Comment, "", rest.find("-->").map_or(rest.len(), |end| end + 3)),
            Some(_) if rest.starts_with("<![CDATA[") => {
                let end = rest.find("]]>");
                (Kind::Cdata, &rest[9..end.unwrap_or(rest.len())], end.map_or(rest.len(), |end| end + 3))
            }
            Some(mark @ (b'=' | b'/' | b'<' | b'>' | b'!' | b'?')) => (Kind::Mark(*mark), "", 1),
            Some(quote @ (b'"' | b'\'')) => match rest[1..].find(char::from(*quote)) {
                Some(end) => (Kind::Quoted, &rest[1..1 + end], end + 2),
                None => (Kind::Quoted, &rest[1..], rest.len()),
            },
            Some(first) if is_ident_start(*first) => {
                let end = rest.bytes().position(|byte| !is_ident(byte)).unwrap_or(rest.len());
                (Kind::Ident, &rest[..end], end)
            }
            Some(_) => (Kind::Unknown, "", 0),
        };
        self.at += length;
        Token { kind, text, start }
    }

    fn unexpected(&self, token: Token<'x>, wanted: &str) -> String {
        self.wrong(&format!("{} unexpected ({wanted} wanted)", token.kind.name()))
    }

    fn wrong(&self, what: &str) -> String {
        let before = &self.xml.as_bytes()[..self.at];
        let newlines = before.iter().filter(|byte| **byte == b'\n').count();
        // Behind the first line MySQL counts the newline, too.
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1 + newlines.min(1);
        let line = newlines + 1;
        format!("parse error at line {line} pos {column}: {what}")
    }
}

/// Bytes that begin names, in XML and in XPath.
pub(super) fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || byte >= 0x80
}

/// Bytes of names, in XML.
fn is_ident(byte: u8) -> bool {
    is_ident_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}
