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

/// The web's globals.
const WEB: &str = include_str!("web.d.ts");

/// The declarations, as text.
pub fn declarations() -> String {
    let mut out = format!("{SHAPES}{WEB}");
    let mut written: Vec<(&str, &str)> = Vec::new();
    for part in PARTS {
        // Spaces of memory share one interface; `Ctx` has two parts, which TypeScript merges.
        let key = (part.interface, part.operations.first().map_or("", |operation| operation.name));
        if !written.contains(&key) {
            let is_first = written.iter().all(|(interface, _)| *interface != part.interface);
            written.push(key);
            interface(&mut out, part, is_first);
        }
    }
    out
}

fn interface(out: &mut String, part: &Part, is_first: bool) {
    let _ = write!(out, "\n/** {} */\ninterface {} {{\n", part.title.replace('`', ""), part.interface);
    if part.prefix.is_empty() && is_first {
        out.push_str(include_str!("ctx_fields.d.ts"));
    }
    for operation in part.operations {
        method(out, part, operation);
    }
    out.push_str("}\n");
}

fn method(out: &mut String, part: &Part, operation: &Signature) {
    let Signature { name, parameters, returns, text } = operation;
    let path = format!("{}{name}", part.prefix);
    let decl = TABLE.iter().find(|decl| decl.path == path);
    let is_property = path.contains('*') && decl.is_some_and(|decl| decl.min_args == 1);
    let form = if is_property { format!("readonly {name}") } else { format!("{name}({parameters})") };
    let _ = write!(out, "  /** {text} */\n  {form}: {returns};\n");
    if decl.is_some_and(|decl| decl.kind == OpKind::Await) {
        let _ = writeln!(out, "  {name}Async({parameters}): Promise<{returns}>;");
    }
}
