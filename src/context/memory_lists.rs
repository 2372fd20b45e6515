//! `ctx.memory`: lists.
//!
//! Invariant: a key that holds something else than a list is a TypeError and stays as it is; a missing key is an empty list.
//! Values are equal as JSON (`1` and `1.0` are). A list keeps its time to live. Deliberately no sets of their own:
//! `AddToSet` keeps a list free of repetitions.

use greenroom_boundary::isolate::OpError;
use serde_json::{Value, json};

use super::arguments::{Arguments, shown};
use super::memory::Entries;
use super::verbs::MemoryVerb;

/// Longest list.
const MAX_ITEMS: usize = 1_000_000;

pub(super) fn run(entries: &mut Entries, verb: MemoryVerb, key: &str, args: &Arguments) -> Result<Value, OpError> {
    match verb {
        MemoryVerb::Push => push(entries, key, args),
        MemoryVerb::Pop => pop(entries, key, args),
        MemoryVerb::Pull => remove(entries, key, args, std::slice::from_ref(args.any(1))),
        MemoryVerb::PullAll => remove(entries, key, args, args.list(1, "values")?),
        MemoryVerb::AddToSet => add_to_set(entries, key, args),
        MemoryVerb::ArrayLen => Ok(json!(items(entries, key, args)?.len())),
        MemoryVerb::ArrayGet => {
            let list = items(entries, key, args)?;
            Ok(place(args.whole(1, "index")?, list.len()).map(|at| list[at].clone()).unwrap_or_default())
        }
        MemoryVerb::ArraySet => set_at(entries, key, args),
        MemoryVerb::ArraySlice => {
            let list = items(entries, key, args)?;
            let skip = natural(args, 1, "skip")?;
            let limit = if args.any(2).is_null() { usize::MAX } else { natural(args, 2, "limit")? };
            Ok(json!(list.iter().skip(skip).take(limit).collect::<Vec<_>>()))
        }
        MemoryVerb::ArrayPage => {
            let list = items(entries, key, args)?;
            let (page, size) = (natural(args, 1, "page")?, natural(args, 2, "pageSize")?);
            if page == 0 || size == 0 {
                return Err(OpError::bad_argument(format!("{}: page and pageSize start at 1", args.what)));
            }
            Ok(json!(list.iter().skip((page - 1).saturating_mul(size)).take(size).collect::<Vec<_>>()))
        }
        _ => Ok(json!(items(entries, key, args)?)),
    }
}

fn no_list(args: &Arguments, key: &str, value: &Value) -> OpError {
    OpError::bad_argument(format!("{}: {key:?} holds {}, which is no list", args.what, shown(value)))
}

fn items<'e>(entries: &'e Entries, key: &str, args: &Arguments) -> Result<&'e [Value], OpError> {
    match entries.get(key) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(no_list(args, key, other)),
    }
}

/// The list, if there is one.
fn list<'e>(entries: &'e mut Entries, key: &str, args: &Arguments) -> Result<Option<&'e mut Vec<Value>>, OpError> {
    match entries.by_key.get_mut(key).map(|entry| &mut entry.value) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(no_list(args, key, other)),
    }
}

/// The list, made if it is missing.
fn made<'e>(entries: &'e mut Entries, key: &str, args: &Arguments) -> Result<&'e mut Vec<Value>, OpError> {
    match entries.slot(key, json!([])) {
        Value::Array(list) => Ok(list),
        other => Err(no_list(args, key, other)),
    }
}

/// An array means its elements, anything else itself.
fn several(args: &Arguments) -> &[Value] {
    match args.any(1) {
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    }
}

fn push(entries: &mut Entries, key: &str, args: &Arguments) -> Result<Value, OpError> {
    let values = several(args);
    let list = room(made(entries, key, args)?, values, key, args)?;
    list.extend(values.iter().cloned());
    Ok(json!(list.len()))
}

fn room<'l>(list: &'l mut Vec<Value>, values: &[Value], key: &str, args: &Arguments) -> Result<&'l mut Vec<Value>, OpError> {
    if list.len() + values.len() > MAX_ITEMS {
        return Err(OpError::new("ERR_LIST_LIMIT", format!("{}: {key:?} would have more than {MAX_ITEMS} items", args.what)));
    }
    Ok(list)
}

/// `1` (or nothing) takes the last, `-1` the first (Yao).
fn pop(entries: &mut Entries, key: &str, args: &Arguments) -> Result<Value, OpError> {
    let first = match args.optional_whole(1, "position")? {
        None | Some(1) => false,
        Some(-1) => true,
        Some(_) => return Err(args.wrong("position", "1 (the last) or -1 (the first)", args.any(1))),
    };
    let Some(list) = list(entries, key, args)? else { return Ok(Value::Null) };
    let taken = if first && !list.is_empty() { Some(list.remove(0)) } else { list.pop() };
    Ok(taken.unwrap_or_default())
}

fn remove(entries: &mut Entries, key: &str, args: &Arguments, gone: &[Value]) -> Result<Value, OpError> {
    let Some(list) = list(entries, key, args)? else { return Ok(json!(0)) };
    let before = list.len();
    list.retain(|item| !gone.iter().any(|value| equal(item, value)));
    Ok(json!(before - list.len()))
}

fn add_to_set(entries: &mut Entries, key: &str, args: &Arguments) -> Result<Value, OpError> {
    let values = several(args);
    let list = room(made(entries, key, args)?, values, key, args)?;
    let mut added = 0;
    for value in values {
        if !list.iter().any(|item| equal(item, value)) {
            list.push(value.clone());
            added += 1;
        }
    }
    Ok(json!(added))
}

fn set_at(entries: &mut Entries, key: &str, args: &Arguments) -> Result<Value, OpError> {
    let index = args.whole(1, "index")?;
    let length = items(entries, key, args)?.len();
    let Some(at) = place(index, length) else {
        let message = format!("{}: {key:?} has {length} items, there is none at {index}", args.what);
        return Err(OpError { code: "ERR_INDEX".to_owned(), message, class: "RangeError" });
    };
    if let Some(list) = list(entries, key, args)? {
        list[at] = args.any(2).clone();
    }
    Ok(Value::Null)
}

/// An index; below zero it counts from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn natural(args: &Arguments, index: usize, name: &str) -> Result<usize, OpError> {
    let number = args.whole(index, name)?;
    usize::try_from(number).map_err(|_| args.wrong(name, "a whole number from 0", args.any(index)))
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}
