//! The shapes that answers must have, by method: what a hook may put in a result's place.
//!
//! Invariant: what passes here a client can read as the result of its request (MCP 2025-11-25). Deliberately the frame only:
//! what a block or a resource holds is the business of whoever reads it.

use serde_json::Value;

/// What is wrong with a new answer to a request of `method`.
pub(super) fn check(method: &str, result: Option<&Value>, error: Option<&Value>) -> Result<(), String> {
    if let Some(error) = error {
        let well_formed = error.get("code").is_some_and(Value::is_i64) && error.get("message").is_some_and(Value::is_string);
        return if well_formed {
            Ok(())
        } else {
            Err("the new error needs a whole number `code` and a text `message`".to_owned())
        };
    }
    let Some(result) = result else { return Ok(()) };
    let Value::Object(fields) = result else {
        return Err(format!("the new result of {method} is no object"));
    };
    if fields.get("_meta").is_some_and(|meta| !meta.is_object()) {
        return Err(format!("the new result of {method} has a `_meta` that is no object"));
    }
    let list = match method {
        "tools/call" => return call(result),
        "tools/list" => "tools",
        "prompts/list" => "prompts",
        "resources/list" => "resources",
        "resources/templates/list" => "resourceTemplates",
        "resources/read" => "contents",
        "prompts/get" => "messages",
        "roots/list" => "roots",
        _ => return Ok(()),
    };
    if fields.get(list).is_some_and(|items| items.as_array().is_some_and(|items| items.iter().all(Value::is_object))) {
        return Ok(());
    }
    Err(format!("the new result of {method} needs `{list}`, a list of objects"))
}

/// A tool may answer with content, with structure, or with both.
fn call(result: &Value) -> Result<(), String> {
    let block = |block: &Value| block.get("type").is_some_and(Value::is_string);
    let is_content = |content: &Value| content.as_array().is_some_and(|blocks| blocks.iter().all(block));
    if result.get("content").is_some_and(|content| !is_content(content)) {
        return Err("the new result has a `content` that is no list of blocks with a `type`".to_owned());
    }
    if result.get("structuredContent").is_some_and(|structure| !structure.is_object()) {
        return Err("the new result has a `structuredContent` that is no object".to_owned());
    }
    if result.get("isError").is_some_and(|is_error| !is_error.is_boolean()) {
        return Err("the new result has an `isError` that is no boolean".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case("tools/call", json!({"content": [{"type": "text", "text": "x"}], "isError": false}), true; "a call")]
    #[test_case("tools/call", json!({"structuredContent": {"a": 1}}), true; "structure alone")]
    #[test_case("tools/call", json!("boom"), false; "text")]
    #[test_case("tools/call", json!({"content": "boom"}), false; "content that is text")]
    #[test_case("tools/call", json!({"content": [{"text": "boom"}]}), false; "a block without type")]
    #[test_case("tools/call", json!({"structuredContent": []}), false; "structure that is a list")]
    #[test_case("tools/call", json!({"isError": "yes"}), false; "isError that is text")]
    #[test_case("tools/call", json!({"_meta": 1}), false; "meta that is a number")]
    #[test_case("tools/list", json!({"tools": [{"name": "a"}]}), true; "a list")]
    #[test_case("tools/list", json!({"tools": {}}), false; "a list that is none")]
    #[test_case("resources/read", json!({}), false; "no contents")]
    #[test_case("initialize", json!({"anything": 1}), true; "a method without a frame")]
    fn results_have_their_methods_shape(method: &str, result: Value, expected: bool) {
        assert_eq!(check(method, Some(&result), None).is_ok(), expected);
    }

    #[test_case(json!({"code": -1, "message": "no"}), true; "an error")]
    #[test_case(json!({"code": "no", "message": "no"}), false; "a code that is text")]
    #[test_case(json!({"code": 1}), false; "no message")]
    fn errors_have_code_and_message(error: Value, expected: bool) {
        assert_eq!(check("tools/call", None, Some(&error)).is_ok(), expected);
    }
}
