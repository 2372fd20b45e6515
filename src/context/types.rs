//! `greenroom.d.ts`: the TypeScript declarations of what a hook script sees.
//!
//! Invariant: the operations are those of the table, with its kinds; an operation that waits has its `…Async` twin.
//! Deliberately no module: scripts need no import, the declarations are global.

use std::fmt::Write as _;

use greenroom_boundary::isolate::OpKind;

use super::signatures::{PARTS, Part, Signature};
use super::table::TABLE;

/// What is not an operation.
const SHAPES: &str = include_str!("shapes.d.ts");

/// The declarations, as text.
pub fn declarations() -> String {
    let mut out = SHAPES.to_owned();
    let mut written: Vec<&str> = Vec::new();
    for part in PARTS {
        if !written.contains(&part.interface) {
            written.push(part.interface);
            interface(&mut out, part);
        }
    }
    out
}

fn interface(out: &mut String, part: &Part) {
    let _ = write!(out, "\n/** {} */\ninterface {} {{\n", part.title.replace('`', ""), part.interface);
    if part.prefix.is_empty() {
        out.push_str(include_str!("ctx_fields.d.ts"));
    }
    for operation in part.operations {
        method(out, part, operation);
    }
    out.push_str("}\n");
}

fn method(out: &mut String, part: &Part, operation: &Signature) {
    let Signature { name, parameters, returns, text } = operation;
    let _ = write!(out, "  /** {text} */\n  {name}({parameters}): {returns};\n");
    let path = format!("{}{name}", part.prefix);
    let waits = TABLE.iter().any(|decl| decl.path == path && decl.kind == OpKind::Await);
    if waits {
        let _ = writeln!(out, "  {name}Async({parameters}): Promise<{returns}>;");
    }
}
