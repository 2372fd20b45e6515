//! The objects that make up a `ctx`: one for `ctx` itself and one for each group of operations (`mcp`, `memory.context`).
//!
//! Invariant: space 0 is `ctx`; a parent comes before its children. Plain numbers and names: no V8 here.

use greenroom_boundary::isolate::OpDecl;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Dotted path below `ctx`; empty for `ctx` itself.
    pub(crate) path: String,
    pub(crate) parent: usize,
}

impl Space {
    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }
}

/// The objects of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spaces {
    pub(crate) all: Vec<Space>,
    of_op: Vec<usize>,
}

impl Spaces {
    pub(crate) fn of(table: &[OpDecl]) -> Self {
        let mut spaces = Self { all: vec![Space { path: String::new(), parent: 0 }], of_op: Vec::with_capacity(table.len()) };
        for op in table {
            let group = op.path.rsplit_once('.').map_or("", |(group, _)| group);
            let space = spaces.add(group);
            spaces.of_op.push(space);
        }
        spaces
    }

    fn add(&mut self, path: &str) -> usize {
        if let Some(known) = self.find(path) {
            return known;
        }
        let parent = self.add(path.rsplit_once('.').map_or("", |(parent, _)| parent));
        self.all.push(Space { path: path.to_owned(), parent });
        self.all.len() - 1
    }

    /// The space of this path.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        self.all.iter().position(|space| space.path == path)
    }

    /// The space that an operation belongs to.
    pub(crate) fn of_op(&self, op: usize) -> Option<usize> {
        self.of_op.get(op).copied()
    }
}

#[cfg(test)]
mod tests {
    use greenroom_boundary::isolate::OpKind;

    use super::*;

    #[test]
    fn groups_are_found_and_parents_come_first() {
        let op = |path| OpDecl { path, kind: OpKind::Inline, min_args: 0, callback: None };
        let spaces = Spaces::of(&[op("memory.user.Get"), op("Send"), op("memory.Clear"), op("mcp.List")]);
        let paths: Vec<_> = spaces.all.iter().map(|space| (space.path.as_str(), space.parent, space.name())).collect();
        assert_eq!(paths, [("", 0, ""), ("memory", 0, "memory"), ("memory.user", 1, "user"), ("mcp", 0, "mcp")]);
        let of_ops: Vec<_> = (0..5).map(|op| spaces.of_op(op)).collect();
        assert_eq!(of_ops, [Some(2), Some(0), Some(1), Some(3), None]);
    }
}
