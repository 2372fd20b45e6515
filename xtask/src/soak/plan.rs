//! What each session of the router's soak does.
//!
//! Invariant: it follows from the session's number alone, so that two runs do the same. Deliberately fixed shares.

use serde_json::{Value, json};

/// Which host a session talks to; each publishes other servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostKind {
    /// A built-in server and an external one in memory, with a hook.
    Plain,
    /// A script server and an external one in memory, with a hook.
    Script,
    /// A child process.
    Child,
}

/// How a session reaches the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Lines over a pipe in memory.
    Memory,
    /// Streamable HTTP on loopback.
    Http,
}

/// What goes wrong in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// The server crashes in the middle.
    Crash,
    /// One call never gets an answer.
    Hang,
    /// The client leaves while a call is under way.
    Leave,
}

/// A session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) host: HostKind,
    pub(crate) front: Front,
    pub(crate) trouble: Trouble,
}

impl Plan {
    /// Session `number`: 15 % with a child process, 15 % with scripts; 4 % over HTTP; 30 % with trouble.
    pub(crate) fn of(number: usize) -> Self {
        let host = match number % 20 {
            0..=2 => HostKind::Child,
            3..=5 => HostKind::Script,
            _ => HostKind::Plain,
        };
        let front = if number.is_multiple_of(23) { Front::Http } else { Front::Memory };
        let trouble = match (number / 20) % 10 {
            1 => Trouble::Crash,
            4 => Trouble::Hang,
            7 => Trouble::Leave,
            _ => Trouble::None,
        };
        Self { host, front, trouble }
    }

    /// The tool and arguments of call `index` of `calls`, and whether it must fail.
    pub(crate) fn call(self, index: usize, calls: usize) -> (&'static str, Value, bool) {
        match self.trouble {
            Trouble::Crash if index == calls / 2 => return ("fragile", json!({}), true),
            Trouble::Hang if index == calls / 2 => return ("stuck", json!({}), true),
            Trouble::Leave if index + 1 == calls => return ("stuck", json!({}), true),
            _ => {}
        }
        let (tool, arguments) = match (self.host, index % 4) {
            (HostKind::Child, 0..=2) => ("echo", json!({"n": index})),
            (HostKind::Script, 0 | 1) => ("add", json!({"a": index, "b": 1})),
            (HostKind::Plain, 0) | (HostKind::Child, _) => ("list_agents", json!({})),
            (HostKind::Plain | HostKind::Script, 3) => ("invoice", json!({"number": format!("A-{index}")})),
            _ => ("price", json!({"n": index})),
        };
        (tool, arguments, false)
    }
}
