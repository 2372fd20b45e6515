//! Scripts as engines get them: plain JavaScript, with everything that it imports.
//!
//! Invariant: an engine finds an imported module in the script itself or not at all; which text of an `import` means which
//! module is decided before. Frames of errors are places in the files that the user wrote. Deliberately no reading of files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::isolate::{IsolateError, JsException, StackFrame};

/// A script: plain JavaScript whose lines and columns are those of the source file it was made from, unless [`Places`] says
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The file as the user knows it, `agents/travel.ts`; shown in errors.
    pub name: String,
    /// The code. Top-level functions, and `export`ed ones (`export default` is named `default`), can be called.
    pub code: Arc<str>,
    /// What its imports mean; a script with imports is a module.
    #[serde(default)]
    pub links: Links,
    /// All modules that it imports, and that those import.
    #[serde(default)]
    pub modules: Arc<[Module]>,
    /// Where its code comes from, if not from the same places of the file.
    #[serde(default)]
    pub places: Option<Arc<Places>>,
}

/// A module that a script imports, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its file as the user knows it; no other module of the script has this name.
    pub name: String,
    /// Its code: a module of JavaScript.
    pub code: Arc<str>,
    /// What its imports mean.
    pub links: Links,
    /// Where its code comes from, if not from the same places of the file.
    #[serde(default)]
    pub places: Option<Arc<Places>>,
}

/// What the texts of a module's imports mean.
pub type Links = BTreeMap<String, LinkTarget>;

/// What an import means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkTarget {
    /// The script itself.
    Script,
    /// One of [`Script::modules`].
    Module(usize),
}

/// Stands between the code of a file and what the host has added behind it.
pub const ADDED: &str = "\n// $greenroom$";

impl Script {
    /// A script without imports.
    pub fn new(name: impl Into<String>, code: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), code: code.into(), ..Self::default() }
    }

    /// The links of the script itself or of one of its modules.
    pub fn links_of(&self, target: LinkTarget) -> &Links {
        static NONE: Links = Links::new();
        match target {
            LinkTarget::Script => &self.links,
            LinkTarget::Module(index) => self.modules.get(index).map_or(&NONE, |module| &module.links),
        }
    }

    /// The name of the script itself or of one of its modules.
    pub fn name_of(&self, target: LinkTarget) -> &str {
        match target {
            LinkTarget::Script => &self.name,
            LinkTarget::Module(index) => self.modules.get(index).map_or("", |module| &module.name),
        }
    }

    /// The code of the script or of one of its modules, by its name, as it stands at its places in the file; none if it is not known or
    /// has been generated.
    pub fn code_of_file(&self, name: &str) -> Option<Arc<str>> {
        if name == self.name {
            return match self.code.split_once(ADDED) {
                _ if self.places.is_some() => None,
                Some((own, _)) => Some(Arc::from(own)),
                None => Some(Arc::clone(&self.code)),
            };
        }
        let module = self.modules.iter().find(|module| module.name == name)?;
        module.places.is_none().then(|| Arc::clone(&module.code))
    }

    /// The error with its frames at the places that the user wrote; engines know the places of the code alone.
    pub fn at_source(&self, error: IsolateError) -> IsolateError {
        if self.places.is_none() && self.modules.iter().all(|module| module.places.is_none()) {
            return error;
        }
        match error {
            IsolateError::Load(thrown) => IsolateError::Load(self.thrown_at_source(thrown)),
            IsolateError::Js(thrown) => IsolateError::Js(self.thrown_at_source(thrown)),
            IsolateError::UnhandledRejection(thrown) => IsolateError::UnhandledRejection(self.thrown_at_source(thrown)),
            other => other,
        }
    }

    fn thrown_at_source(&self, mut thrown: JsException) -> JsException {
        for frame in &mut thrown.frames {
            self.move_frame(frame);
        }
        thrown.cause = thrown.cause.map(|cause| Box::new(self.thrown_at_source(*cause)));
        thrown
    }

    fn move_frame(&self, frame: &mut StackFrame) {
        let places = if frame.file == self.name {
            self.places.as_ref()
        } else {
            self.modules.iter().find(|module| module.name == frame.file).and_then(|module| module.places.as_ref())
        };
        if let Some(places) = places {
            (frame.line, frame.column) = places.source_of(frame.line, frame.column);
        }
    }
}

/// Where generated code comes from: lines and columns count from 1, columns in UTF-16 units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Place in the code and place in the source, in the order of the code.
    pairs: Vec<((u32, u32), (u32, u32))>,
}

impl Places {
    /// From pairs of a place in the code and one in the source.
    pub fn new(mut pairs: Vec<((u32, u32), (u32, u32))>) -> Self {
        pairs.sort_unstable();
        Self { pairs }
    }

    /// The place in the source of a place in the code: that of the last known place before it, on the same line if there is one.
    pub fn source_of(&self, line: u32, column: u32) -> (u32, u32) {
        let after = self.pairs.partition_point(|(code, _)| *code <= (line, column));
        let before = after.checked_sub(1).and_then(|index| self.pairs.get(index));
        let next = self.pairs.get(after).filter(|((next, _), _)| *next == line);
        match (before, next) {
            (Some(((known, _), source)), _) if *known == line => *source,
            (_, Some((_, source))) | (Some((_, source)), None) => *source,
            (None, None) => (line, column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_that_of_the_last_known_one() {
        let places = Places::new(vec![((1, 1), (1, 1)), ((2, 3), (7, 5)), ((2, 9), (8, 1)), ((5, 2), (9, 9))]);
        let table = [
            ((1, 40), (1, 1)),
            ((2, 1), (7, 5)),
            ((2, 3), (7, 5)),
            ((2, 8), (7, 5)),
            ((2, 90), (8, 1)),
            ((4, 1), (8, 1)),
            ((6, 1), (9, 9)),
        ];
        for ((line, column), wanted) in table {
            assert_eq!(places.source_of(line, column), wanted, "{line}:{column}");
        }
        assert_eq!(Places::default().source_of(3, 4), (3, 4));
    }

    #[test]
    fn frames_move_to_the_file_they_belong_to() {
        let places = Some(Arc::new(Places::new(vec![((1, 1), (10, 20))])));
        let module = Module { name: "b.ts".to_owned(), code: "".into(), links: Links::new(), places };
        let script = Script { modules: Arc::from([module]), ..Script::new("a.ts", "") };
        let frame = |file: &str, line, column| StackFrame { function: String::new(), file: file.to_owned(), line, column };
        let thrown =
            |frames| JsException { class: "Error".to_owned(), message: String::new(), code: None, frames, cause: None };
        let error = IsolateError::Js(thrown(vec![frame("b.ts", 1, 5), frame("a.ts", 1, 5)]));
        let wanted = IsolateError::Js(thrown(vec![frame("b.ts", 10, 20), frame("a.ts", 1, 5)]));
        assert_eq!(script.at_source(error), wanted);
    }
}
