//! Generated configs: a target of any kind with up to eight hooks, whatever those do.
//!
//! Invariant: every config that is made is valid. Deliberately no outcome decided here: [`super::judge`] says what follows.

use greenroom::hooks::Side;
use proptest::prelude::*;

/// What a hook does with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// `{accept: true}`.
    Accepts,
    /// `{}`.
    SaysEmpty,
    /// Changes its copy, and does not say so.
    ChangesInSecret,
    Mutates,
    Rejects,
    Throws,
    Hangs,
    Answers(Wrong),
}

/// An answer of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Number,
    Text,
    List,
    No,
    AcceptText,
    MutatedNumber,
}

/// A param of a key that may match or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// No such param, or `*`.
    Any,
    Exact,
    Glob,
    /// Matches nothing that is called here.
    Other,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    External,
    Script,
    BuiltIn,
    Agent,
}

impl Target {
    /// Server and tool.
    pub(super) fn address(self) -> (&'static str, &'static str) {
        match self {
            Self::External => ("shop", "buy"),
            Self::Script => ("desk", "buy"),
            Self::BuiltIn => ("nanobot.meta", "list_agents"),
            Self::Agent => ("clerk", "chat-with-clerk"),
        }
    }

    /// Its boundary in the trace.
    pub(super) fn boundary(self) -> String {
        let kind = match self {
            Self::External => "mcp",
            Self::Script | Self::BuiltIn => "server",
            Self::Agent => "agent",
        };
        format!("{kind}.{}", self.address().0)
    }
}

/// One hook.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    pub(super) does: Does,
    /// Its function, `h3`. It stays the same when other hooks are added, removed or moved.
    pub(super) id: usize,
    pub(super) priority: i32,
    pub(super) may_mutate: bool,
    pub(super) audit: bool,
    pub(super) fail_open: bool,
    pub(super) latency_ms: u64,
    /// A tool of an external server instead of a script's function.
    pub(super) remote: bool,
    /// An `async` function.
    pub(super) is_async: bool,
    /// The object form of a target.
    pub(super) as_object: bool,
    /// One side, or both.
    pub(super) side: Option<Side>,
    pub(super) method: Key,
    pub(super) name: Key,
    pub(super) call_on_error: Option<bool>,
}

impl Hook {
    /// A hook with nothing special about it.
    pub(super) fn plain(id: usize, does: Does) -> Self {
        Self {
            does,
            id,
            priority: 0,
            may_mutate: true,
            audit: false,
            fail_open: false,
            latency_ms: 0,
            remote: false,
            is_async: false,
            as_object: false,
            side: Some(Side::Request),
            method: Key::Exact,
            name: Key::Any,
            call_on_error: None,
        }
    }

    /// Its `server/tool`, which is also its name in the trace.
    pub(super) fn target(&self) -> String {
        format!("{}/h{}", if self.remote { "remote" } else { "policy" }, self.id)
    }
}

/// A host and one call.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) target: Target,
    /// The target answers with an error.
    pub(super) fails: bool,
    /// In the order of their declaration.
    pub(super) hooks: Vec<Hook>,
}

impl World {
    /// The same with other hooks.
    pub(super) fn with(&self, hooks: Vec<Hook>) -> Self {
        Self { hooks, ..self.clone() }
    }
}

fn does() -> impl Strategy<Value = Does> {
    let wrong =
        prop::sample::select(vec![Wrong::Number, Wrong::Text, Wrong::List, Wrong::No, Wrong::AcceptText, Wrong::MutatedNumber]);
    prop_oneof![
        4 => Just(Does::Accepts),
        1 => Just(Does::SaysEmpty),
        2 => Just(Does::ChangesInSecret),
        6 => Just(Does::Mutates),
        1 => Just(Does::Rejects),
        1 => Just(Does::Throws),
        1 => Just(Does::Hangs),
        1 => wrong.prop_map(Does::Answers),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![3 => Just(Key::Any), 3 => Just(Key::Exact), 3 => Just(Key::Glob), 1 => Just(Key::Other)]
}

/// Any hook; its id is given later.
pub(super) fn hook() -> impl Strategy<Value = Hook> {
    let side = prop_oneof![3 => Just(Some(Side::Request)), 2 => Just(Some(Side::Response)), 1 => Just(None)];
    let on_error = prop_oneof![6 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    let flags = (any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.3), prop::bool::weighted(0.3));
    let forms = (any::<bool>(), prop::bool::weighted(0.3));
    (does(), -2..3_i32, flags, forms, 0..900_u64, side, (key(), key()), on_error).prop_map(
        |(
            does,
            priority,
            (may_mutate, audit, fail_open, remote),
            (is_async, as_object),
            latency_ms,
            side,
            keys,
            call_on_error,
        )| Hook {
            does,
            id: 0,
            priority,
            may_mutate,
            audit,
            fail_open,
            latency_ms,
            remote,
            is_async,
            as_object,
            side,
            method: keys.0,
            name: keys.1,
            call_on_error,
        },
    )
}

/// Numbers hooks by position.
fn numbered(hooks: Vec<Hook>) -> Vec<Hook> {
    hooks.into_iter().enumerate().map(|(id, hook)| Hook { id, ..hook }).collect()
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        3 => Just(Target::External),
        2 => Just(Target::Script),
        1 => Just(Target::BuiltIn),
        1 => Just(Target::Agent),
    ]
}

/// Any config with at most `most` hooks.
pub(super) fn world(most: usize) -> impl Strategy<Value = World> {
    (target(), prop::bool::weighted(0.2), prop::collection::vec(hook(), 0..=most)).prop_map(|(target, fails, hooks)| World {
        target,
        // The others have no error to give: an agent's failure is a result.
        fails: fails && matches!(target, Target::External | Target::Script),
        hooks: numbered(hooks),
    })
}

/// The same without hooks that refuse or fail.
pub(super) fn peaceful_world(most: usize) -> impl Strategy<Value = World> {
    world(most).prop_map(|world| {
        let hooks = world.hooks.iter().map(|hook| {
            let does = match hook.does {
                Does::Accepts | Does::ChangesInSecret | Does::Mutates => hook.does,
                _ => Does::Accepts,
            };
            Hook { does, may_mutate: hook.may_mutate || does == Does::Mutates, ..*hook }
        });
        world.with(hooks.collect())
    })
}
