//! LIKE: `%` any characters, `_` one character, everything else equal under the collation, character by character.

use super::Collation;

/// One step of a pattern.
enum Step<'p> {
    Any,
    One,
    Char(&'p [u8]),
}

/// The step at the start of `pattern` and its length.  An escape at the very end stands for itself.
fn step<'p>(collation: &Collation, pattern: &'p [u8], escape: Option<char>) -> (Step<'p>, usize) {
    let length = collation.char_len(pattern);
    let first = &pattern[..length];
    if let Some(escape) = escape
        && first == escape.encode_utf8(&mut [0; 4]).as_bytes()
        && pattern.len() > length
    {
        let next = collation.char_len(&pattern[length..]);
        return (Step::Char(&pattern[length..length + next]), length + next);
    }
    match first {
        b"%" => (Step::Any, 1),
        b"_" => (Step::One, 1),
        _ => (Step::Char(first), length),
    }
}

/// LIKE of ASCII text and pattern: `fold` maps the bytes that are the same letter to one value.
pub(super) fn matches_ascii(text: &[u8], pattern: &[u8], escape: Option<u8>, fold: impl Fn(u8) -> u8) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = match pattern.get(p) {
            None if t == text.len() => return true,
            None => false,
            Some(&byte) => {
                let escaped = Some(byte) == escape && p + 1 < pattern.len();
                match byte {
                    b'%' if !escaped => {
                        p += 1;
                        if p == pattern.len() {
                            return true;
                        }
                        retry = Some((p, t));
                        true
                    }
                    _ if t >= text.len() => return false,
                    b'_' if !escaped => {
                        p += 1;
                        t += 1;
                        true
                    }
                    _ => {
                        let wanted = if escaped { pattern[p + 1] } else { byte };
                        let same = text[t] == wanted || fold(text[t]) == fold(wanted);
                        if same {
                            p += 1 + usize::from(escaped);
                            t += 1;
                        }
                        same
                    }
                }
            }
        };
        if !matched {
            let Some((after, from)) = retry else { return false };
            if from >= text.len() {
                return false;
            }
            (p, t) = (after, from + 1);
            retry = Some((after, from + 1));
        }
    }
}

/// Greedy matching that goes back to the last `%`: O(text * pattern) at worst, no recursion.
pub(super) fn matches(collation: &Collation, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
    let (mut t, mut p) = (0, 0);
    // Where to resume after the last `%`: pattern position behind it, text position to try next.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = if p < pattern.len() {
            let (step, length) = step(collation, &pattern[p..], escape);
            match step {
                Step::Any => {
                    p += length;
                    retry = Some((p, t));
                    true
                }
                _ if t >= text.len() => false,
                Step::One => {
                    p += length;
                    t += collation.char_len(&text[t..]);
                    true
                }
                Step::Char(wanted) => {
                    let have = collation.char_len(&text[t..]);
                    let same = collation.same_char(&text[t..t + have], wanted);
                    if same {
                        p += length;
                        t += have;
                    }
                    same
                }
            }
        } else if t == text.len() {
            return true;
        } else {
            false
        };
        if !matched {
            match retry {
                Some((after, from)) if from < text.len() => {
                    let from = from + collation.char_len(&text[from..]);
                    p = after;
                    t = from;
                    retry = Some((after, from));
                }
                _ => return false,
            }
        }
        if p == pattern.len() && retry.is_some_and(|(after, _)| after == p) {
            return true; // the pattern ends with `%`
        }
    }
}
