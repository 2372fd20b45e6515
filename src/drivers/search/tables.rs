//! Tables: files of rows, with conditions and orders.
//!
//! Invariant: rows are told apart by their place in the file, so that a table without keys works. Deliberately no joins.

use std::cmp::Ordering;
use std::io;
use std::path::Path;

use greenroom_boundary::search::{Order, SearchHit, Where};
use serde_json::{Map, Value};

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The rows of a file.
pub(super) fn rows(model: &str, file: &Path, key: &str) -> io::Result<Vec<SearchHit>> {
    if std::fs::metadata(file)?.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(file)?;
    let is_array = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let rows: Vec<Map<String, Value>> = if is_array {
        serde_json::from_str(&text).map_err(|error| io::Error::other(format!("it is no JSON array of objects: {error}")))?
    } else {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(at, line)| {
                serde_json::from_str(line)
                    .map_err(|error| io::Error::other(format!("line {} is no JSON object: {error}", at + 1)))
            })
            .collect::<Result<_, _>>()?
    };
    Ok(rows.into_iter().map(|row| hit(model, key, row)).collect())
}

fn hit(model: &str, key: &str, row: Map<String, Value>) -> SearchHit {
    SearchHit {
        title: ["title", "name", "label"].iter().find_map(|column| Some(row.get(*column)?.as_str()?.to_owned())),
        content: text(&row),
        model: Some(model.to_owned()),
        record_id: row.get(key).cloned(),
        data: Some(row),
        ..SearchHit::default()
    }
}

/// What of a row can be found: its columns, one a line.
fn text(row: &Map<String, Value>) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    row.iter().map(|(column, value)| format!("{column}: {}", plain(value))).collect::<Vec<_>>().join("\n")
}

/// Only these columns of a row.
pub(super) fn select(hit: &mut SearchHit, columns: &[String]) {
    if let (Some(row), false) = (&mut hit.data, columns.is_empty()) {
        row.retain(|column, _| columns.contains(column));
        hit.content = text(row);
    }
}

/// Whether all conditions hold for a row; an operator that does not exist is told.
pub(super) fn holds(hit: &SearchHit, wheres: &[Where]) -> Result<bool, String> {
    let mut all = true;
    for condition in wheres {
        let value = hit.data.as_ref().and_then(|row| row.get(&condition.column)).unwrap_or(&Value::Null);
        let order = || compare(value, &condition.value);
        all &= match condition.op.to_ascii_lowercase().as_str() {
            "=" | "==" => order() == Some(Ordering::Equal),
            "!=" | "<>" => order() != Some(Ordering::Equal),
            "<" => order() == Some(Ordering::Less),
            "<=" => order().is_some_and(Ordering::is_le),
            ">" => order() == Some(Ordering::Greater),
            ">=" => order().is_some_and(Ordering::is_ge),
            "in" => {
                condition.value.as_array().is_some_and(|any| any.iter().any(|one| compare(value, one) == Some(Ordering::Equal)))
            }
            "like" => value.as_str().zip(condition.value.as_str()).is_some_and(|(text, pattern)| like(pattern, text)),
            other => return Err(format!("there is no operator {other:?}; use =, !=, <, <=, >, >=, in or like")),
        };
    }
    Ok(all)
}

/// Numbers as numbers, texts as texts; what cannot be compared has no order.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (one, other) => (one == other).then_some(Ordering::Equal),
    }
}

/// `%` stands for any text; capitals count for nothing.
fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let parts: Vec<&str> = pattern.split('%').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Puts rows into an order; rows that are equal in it stay as they are.
pub(super) fn order(hits: &mut [SearchHit], orders: &[Order]) {
    hits.sort_by(|one, other| {
        orders.iter().fold(Ordering::Equal, |so_far, order| {
            let column =
                |hit: &SearchHit| hit.data.as_ref().and_then(|row| row.get(&order.column)).cloned().unwrap_or_default();
            let next = compare(&column(one), &column(other)).unwrap_or(Ordering::Equal);
            so_far.then(if order.desc { next.reverse() } else { next })
        })
    });
}
