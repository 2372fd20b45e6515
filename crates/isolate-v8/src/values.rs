//! Values across the bridge, as JSON text.
//!
//! Invariant: V8's own JSON functions are used, never the script's globals, and a text over the limit crosses in no direction.
//! Lossy as JSON is: functions inside objects vanish, `NaN` becomes `null`; a function at top level is `undefined`, a symbol is refused.

use greenroom_boundary::RawJson;
use serde_json::value::RawValue;

/// Why a script's value did not become JSON text.
#[derive(Debug)]
pub(crate) enum ToTextError {
    /// An exception is pending in V8 (a cycle, a BigInt, a `toJSON` that threw).
    Threw,
    /// Longer than the limit.
    TooLarge,
    /// A kind of value that has no JSON form.
    NoForm(&'static str),
}

/// JSON text of a value; `None` for `undefined` and functions. Runs script code (`toJSON`, getters).
pub(crate) fn to_text(
    scope: &mut v8::PinScope<'_, '_>,
    value: v8::Local<'_, v8::Value>,
    limit_bytes: usize,
) -> Result<Option<RawJson>, ToTextError> {
    if value.is_undefined() || value.is_function() {
        return Ok(None);
    }
    if value.is_symbol() {
        return Err(ToTextError::NoForm("a symbol"));
    }
    let text = v8::json::stringify(scope, value).ok_or(ToTextError::Threw)?;
    if text.length() > limit_bytes || text.utf8_length(scope) > limit_bytes {
        return Err(ToTextError::TooLarge);
    }
    let text = text.to_rust_string_lossy(scope);
    // The engine's way to say that the value has no text; real JSON text never reads so.
    if text == "undefined" {
        return Ok(None);
    }
    RawValue::from_string(well_formed(text)).map(Some).map_err(|_| ToTextError::NoForm("not JSON"))
}

/// Text of JSON as every reader takes it. A script that cuts a text inside a character leaves half of a surrogate pair; it
/// becomes U+FFFD, as wherever text is encoded. The engine writes `\ud…` for such halves and for nothing else.
fn well_formed(text: String) -> String {
    if !text.contains("\\ud") {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let is_half = escape.starts_with("\\ud")
            && escape.as_bytes().get(3).is_some_and(|digit| !digit.is_ascii_digit() || *digit >= b'8');
        let (written, length) = if is_half { ("\\ufffd", 6) } else { (escape.get(..2).unwrap_or(escape), 2) };
        whole.push_str(before);
        whole.push_str(written);
        rest = escape.get(length..).unwrap_or_default();
    }
    whole.push_str(rest);
    whole
}

/// A value of JSON text; `None` with an exception pending.
pub(crate) fn from_text<'s>(scope: &mut v8::PinScope<'s, '_>, text: &RawValue) -> Option<v8::Local<'s, v8::Value>> {
    let text = v8::String::new(scope, text.get())?;
    v8::json::parse(scope, text)
}

/// A property of an object, `None` if it throws or is absent. Runs script code (getters); the exception stays pending.
pub(crate) fn property<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'_, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Value>> {
    let key = v8::String::new(scope, name)?;
    object.get(scope, key.into())
}

/// JSON `null`.
pub(crate) fn null_text() -> RawJson {
    RawValue::NULL.to_owned()
}

#[cfg(test)]
mod tests {
    use super::well_formed;
    use test_case::test_case;

    #[test_case(r#""plain \n \\ud800 text""#, r#""plain \n \\ud800 text""# ; "an escaped backslash before ud")]
    #[test_case(r#"["\ud83d","x\udfff\\"]"#, r#"["\ufffd","x\ufffd\\"]"# ; "halves of a pair")]
    #[test_case(r#""\\\udabc é""#, r#""\\\ufffd é""# ; "after a backslash")]
    fn halves_of_characters_are_replaced(text: &str, wanted: &str) {
        assert_eq!(well_formed(text.to_owned()), wanted);
        assert!(serde_json::from_str::<serde_json::Value>(&well_formed(text.to_owned())).is_ok());
    }
}
