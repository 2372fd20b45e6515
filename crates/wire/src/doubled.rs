//! Keys that an object has twice, at any depth.
//!
//! Invariant: text without one means the same to every reader. Deliberately no judgement of what is no JSON: the text has been
//! read before.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

/// Whether some object in a JSON text has a key twice. Readers differ in which of the two values they take, so whoever judges
/// such a text must pass on what was judged, not the text.
pub fn has_doubled_keys(json: &RawValue) -> bool {
    let text = json.get();
    let mut open: Vec<Option<BTreeSet<Cow<'_, str>>>> = Vec::new();
    let mut at = 0;
    let mut expects_key = false;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'{' => open.push(Some(BTreeSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = end_of_string(text, at);
                if let (true, Some(Some(keys))) = (expects_key, open.last_mut())
                    && !keys.insert(unescaped(&text[at..end]))
                {
                    return true;
                }
                at = end;
                expects_key = false;
                continue;
            }
            _ => {}
        }
        expects_key = match byte {
            b'{' | b',' => matches!(open.last(), Some(Some(_))),
            b' ' | b'\t' | b'\r' | b'\n' => expects_key,
            _ => false,
        };
        at += 1;
    }
    false
}

/// The place after the string that begins at `from`.
fn end_of_string(text: &str, from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn unescaped(quoted: &str) -> Cow<'_, str> {
    if quoted.contains('\\')
        && let Ok(key) = serde_json::from_str::<String>(quoted)
    {
        return Cow::Owned(key);
    }
    Cow::Borrowed(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or(quoted))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(r#"{"a":1,"a":2}"#, true; "outermost")]
    #[test_case(r#"{"a":{"b":[{"c":1, "d":2 , "c":3}]}}"#, true; "deep")]
    #[test_case(r#"{"a":1,"\u0061":2}"#, true; "spelled in another way")]
    #[test_case(r#"{"a":"a","b":["a","a"],"c":{"a":1}}"#, false; "the same word elsewhere")]
    #[test_case(r#"[{"a":1},{"a":1}]"#, false; "in two objects")]
    #[test_case(r#"{"a":{"x":1},"b":{"x":1}}"#, false; "in two members")]
    #[test_case(r#"{"a\"":1,"a":{"}":1,",":2}}"#, false; "marks in strings")]
    #[test_case(r#"{"a":{"b":1},"a":2}"#, true; "after an object")]
    #[test_case("{ \"a\" : 1 ,\n\t\"a\" : 1e400 }", true; "spaces and a number that nobody can hold")]
    #[test_case("3", false; "no object")]
    fn doubled_keys_are_seen(json: &str, expected: bool) {
        assert_eq!(has_doubled_keys(serde_json::from_str::<&RawValue>(json).unwrap()), expected);
    }

    #[test]
    fn nesting_beyond_readers_is_looked_through() {
        let deep = format!("{}{{\"a\":1,\"a\":2}}{}", "[".repeat(100), "]".repeat(100));
        assert!(has_doubled_keys(serde_json::from_str::<&RawValue>(&deep).unwrap()));
    }
}
