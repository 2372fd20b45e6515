//! `ctx.trace`: the steps of a turn that clients may show.
//!
//! Invariant: every change leaves as one message of type `trace` on the client's stream, and so is in the run's trace as an
//! `output` event. Ids are unique in the turn tree. An operation on an unknown node or space is an error. Deliberately no
//! objects with methods, as in Yao: nodes and spaces are named by id.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use greenroom_boundary::isolate::OpError;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::output::{Author, OutputStream};
use super::verbs::TraceVerb;

/// The nodes and spaces of one turn tree.
#[derive(Debug, Default)]
pub struct TraceBoard(Mutex<Board>);

#[derive(Debug, Default)]
struct Board {
    nodes: BTreeMap<u64, Node>,
    current: u64,
    spaces: Vec<BTreeMap<String, Value>>,
    is_complete: bool,
}

#[derive(Debug)]
struct Node {
    is_closed: bool,
}

impl TraceBoard {
    pub(super) fn run(
        &self,
        stream: &OutputStream,
        author: Author<'_>,
        verb: TraceVerb,
        args: &Arguments,
    ) -> Result<Value, OpError> {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let show = |props: Value| stream.trace(author, props);
        match verb {
            TraceVerb::Add => board.add_one(args, &show),
            TraceVerb::Parallel => board.parallel(args, &show),
            TraceVerb::Info => board.note(args, "info", &show),
            TraceVerb::Debug => board.note(args, "debug", &show),
            TraceVerb::Warn => board.note(args, "warn", &show),
            TraceVerb::Error => board.note(args, "error", &show),
            TraceVerb::SetOutput => {
                let node = board.node(args, 1)?;
                show(json!({"action": "output", "node": node, "output": args.any(0)}));
                Ok(Value::Null)
            }
            TraceVerb::SetMetadata => {
                let (key, node) = (args.text(0, "key")?, board.node(args, 2)?);
                show(json!({"action": "metadata", "node": node, "key": key, "value": args.any(1)}));
                Ok(Value::Null)
            }
            TraceVerb::Complete => {
                let node = board.close(args)?;
                show(json!({"action": "complete", "node": node, "output": args.any(0)}));
                Ok(Value::Null)
            }
            TraceVerb::Fail => {
                let message = args.text(0, "message")?;
                let node = board.close(args)?;
                show(json!({"action": "fail", "node": node, "message": message}));
                Ok(Value::Null)
            }
            TraceVerb::MarkComplete => {
                if !std::mem::replace(&mut board.is_complete, true) {
                    show(json!({"action": "mark_complete"}));
                }
                Ok(Value::Null)
            }
            TraceVerb::IsComplete => Ok(json!(board.is_complete)),
            TraceVerb::CreateSpace => board.create_space(args, &show),
            _ => board.space_op(verb, args, &show),
        }
    }
}

/// The words about a node or space that a client shows.
fn described(args: &Arguments, input: &Value, option: Map<String, Value>, at: &str) -> Result<Map<String, Value>, OpError> {
    let mut props = Map::new();
    for key in ["label", "type", "icon", "description"] {
        if let Some(text) = args.key_optional_text(&option, at, key)? {
            props.insert(key.to_owned(), json!(text));
        }
    }
    if !input.is_null() {
        props.insert("input".to_owned(), input.clone());
    }
    Ok(props)
}

fn added(id: &str, parent: Option<&str>, props: Map<String, Value>) -> Value {
    let mut shown = json!({"action": "add", "node": id});
    if let Some(parent) = parent {
        shown["parent"] = json!(parent);
    }
    with(shown, props)
}

fn with(mut shown: Value, props: Map<String, Value>) -> Value {
    for (key, value) in props {
        shown[key] = value;
    }
    shown
}

/// The number of `N7` or `S7`.
fn number(id: &str, letter: char) -> Option<u64> {
    id.strip_prefix(letter)?.parse().ok().filter(|number| *number > 0)
}

fn unknown(args: &Arguments, what: &str, id: &str) -> OpError {
    OpError::new("ERR_UNKNOWN_NODE", format!("{}: no {what} has the id {id:?}", args.what))
}

impl Board {
    fn add(&mut self) -> String {
        let number = self.nodes.len() as u64 + 1;
        self.nodes.insert(number, Node { is_closed: false });
        self.current = number;
        format!("N{number}")
    }

    fn add_one(&mut self, args: &Arguments, show: &dyn Fn(Value)) -> Result<Value, OpError> {
        let parent = self.parent(args, 2)?;
        let props = described(args, args.any(0), args.object(1, "option")?, "option.")?;
        let id = self.add();
        show(added(&id, parent.as_deref(), props));
        Ok(json!({"id": id}))
    }

    fn create_space(&mut self, args: &Arguments, show: &dyn Fn(Value)) -> Result<Value, OpError> {
        let props = described(args, &Value::Null, args.object(0, "option")?, "option.")?;
        self.spaces.push(BTreeMap::new());
        let id = format!("S{}", self.spaces.len());
        show(with(json!({"action": "space", "space": id}), props));
        Ok(json!({"id": id}))
    }

    fn parent(&self, args: &Arguments, index: usize) -> Result<Option<String>, OpError> {
        let Some(id) = args.optional_text(index, "parentId")? else { return Ok(None) };
        number(id, 'N').filter(|number| self.nodes.contains_key(number)).ok_or_else(|| unknown(args, "node", id))?;
        Ok(Some(id.to_owned()))
    }

    /// The node named by an argument, else the newest one.
    fn at(&self, args: &Arguments, index: usize) -> Result<u64, OpError> {
        let number = match args.optional_text(index, "nodeId")? {
            Some(id) => number(id, 'N').filter(|n| self.nodes.contains_key(n)).ok_or_else(|| unknown(args, "node", id))?,
            None => self.current,
        };
        if number == 0 {
            return Err(OpError::new("ERR_UNKNOWN_NODE", format!("{}: there is no node yet; Add one", args.what)));
        }
        Ok(number)
    }

    fn node(&self, args: &Arguments, index: usize) -> Result<String, OpError> {
        Ok(format!("N{}", self.at(args, index)?))
    }

    fn note(&self, args: &Arguments, level: &str, show: &dyn Fn(Value)) -> Result<Value, OpError> {
        let message = args.text(0, "message")?;
        // A note needs no node: it may be about the turn as a whole.
        let node = if self.current == 0 && args.any(1).is_null() { Value::Null } else { json!(self.node(args, 1)?) };
        show(json!({"action": "log", "level": level, "node": node, "message": message}));
        Ok(Value::Null)
    }

    fn parallel(&mut self, args: &Arguments, show: &dyn Fn(Value)) -> Result<Value, OpError> {
        let parent = self.parent(args, 1)?;
        let mut nodes = Vec::new();
        for (index, item) in args.list(0, "items")?.iter().enumerate() {
            let at = format!("items[{index}]");
            let Value::Object(item) = item else { return Err(args.wrong(&at, "an object", item)) };
            let option = args.object_of(item.get("option").unwrap_or(&Value::Null), &format!("{at}.option"))?;
            nodes.push(described(args, item.get("input").unwrap_or(&Value::Null), option, &format!("{at}.option."))?);
        }
        let mut ids = Vec::new();
        for props in nodes {
            let id = self.add();
            show(added(&id, parent.as_deref(), props));
            ids.push(json!({"id": id}));
        }
        Ok(Value::Array(ids))
    }

    fn close(&mut self, args: &Arguments) -> Result<String, OpError> {
        let number = self.at(args, 1)?;
        let closed = self.nodes.get_mut(&number).is_some_and(|node| std::mem::replace(&mut node.is_closed, true));
        if closed {
            return Err(OpError::new("ERR_NODE_CLOSED", format!("{}: node N{number} has ended already", args.what)));
        }
        Ok(format!("N{number}"))
    }

    fn space_op(&mut self, verb: TraceVerb, args: &Arguments, show: &dyn Fn(Value)) -> Result<Value, OpError> {
        let id = args.text(0, "spaceId")?;
        let index = number(id, 'S').and_then(|number| usize::try_from(number - 1).ok());
        let space = index.and_then(|index| self.spaces.get_mut(index)).ok_or_else(|| unknown(args, "space", id))?;
        match verb {
            TraceVerb::SpaceClear => {
                space.clear();
                show(json!({"action": "space_clear", "space": id}));
                return Ok(Value::Null);
            }
            TraceVerb::SpaceKeys => return Ok(json!(space.keys().collect::<Vec<_>>())),
            _ => {}
        }
        let key = args.text(1, "key")?;
        match verb {
            TraceVerb::SpaceSet => {
                space.insert(key.to_owned(), args.any(2).clone());
                show(json!({"action": "space_set", "space": id, "key": key, "value": args.any(2)}));
                Ok(Value::Null)
            }
            TraceVerb::SpaceDelete => {
                space.remove(key);
                show(json!({"action": "space_delete", "space": id, "key": key}));
                Ok(Value::Null)
            }
            TraceVerb::SpaceHas => Ok(json!(space.contains_key(key))),
            _ => Ok(space.get(key).cloned().unwrap_or_default()),
        }
    }
}
