//! Optimizer hints: `/*+ NAME(arg arg, …) NAME … */`.

use super::ast::OptimizerHint;

/// The hints of a hint comment's text. What is not a word stands alone as an argument, so that binding can judge it.
pub(super) fn parse_hints(text: &str) -> Vec<OptimizerHint> {
    let mut hints: Vec<OptimizerHint> = Vec::new();
    let mut inside = false;
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return hints };
        if first == '(' || first == ')' || first == ',' {
            inside = first != ')' && (inside || first == '(');
            rest = &rest[1..];
            continue;
        }
        let (word, length) = if matches!(first, '\'' | '"' | '`') {
            match rest[1..].find(first) {
                Some(end) => (rest[1..=end].to_string(), end + 2),
                None => (rest[1..].to_string(), rest.len()),
            }
        } else if first == '=' {
            ("=".to_string(), 1)
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '=')).unwrap_or(rest.len());
            (rest[..end].to_string(), end)
        };
        rest = &rest[length..];
        match hints.last_mut() {
            Some(hint) if inside => hint.args.push(word),
            _ => hints.push(OptimizerHint { name: word.to_ascii_uppercase(), args: Vec::new() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arguments() {
        let hints = parse_hints(" PQ(t1 8) NO_PQ SET_VAR(sort_buffer_size = 16M) ");
        assert_eq!(hints.len(), 3);
        assert_eq!(hints[0].args, ["t1", "8"]);
        assert_eq!(hints[2].args, ["sort_buffer_size", "=", "16M"]);
        assert_eq!(parse_hints("QB_NAME('é' \"x")[0].args, ["é", "x"]);
    }
}
