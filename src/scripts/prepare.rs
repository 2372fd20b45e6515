//! One file, made ready for an engine.
//!
//! Invariant: the same text under the same rules gives the same result, so it is kept by its hash for the whole process and
//! read again only when it changes. Deliberately no other file is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::isolate::Places;
use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, Statement};
use oxc_parser::Parser;
use oxc_span::SourceType;
use sha2::{Digest as _, Sha256};

use super::full;
use super::record::{Export, Offset, Record, record};
use super::signature::{self, Signature};
use super::typescript::{ScriptSyntaxError, erase, parse, place_of, snippet_at, whole};

/// How TypeScript is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeScriptMode {
    /// Types are blanked; what needs generated code is refused.
    #[default]
    Erase,
    /// A transformer generates code for enums, namespaces, parameter properties and decorators.
    Full,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    TypeScript,
    JavaScript,
    Json,
}

impl FileKind {
    /// By the end of a file's name; `None` for what cannot be imported.
    pub(super) fn of(name: &Path) -> Option<Self> {
        let ext = name.extension()?.to_str()?.to_ascii_lowercase();
        match ext.as_str() {
            "ts" | "mts" => Some(Self::TypeScript),
            "js" | "mjs" => Some(Self::JavaScript),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// A file, ready.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) source: Arc<str>,
    pub(super) code: Arc<str>,
    pub(super) places: Option<Arc<Places>>,
    pub(super) record: Record,
    /// Whether offsets of the record are places in the source, not in the code.
    of_source: bool,
    /// Its top-level functions, by the names that they have here.
    pub(super) functions: BTreeMap<String, Signature>,
    /// Its types.
    pub(super) types: BTreeSet<String>,
}

impl Prepared {
    /// An error about a place of the record.
    pub(super) fn error(&self, file: &str, at: Offset, message: String) -> ScriptSyntaxError {
        let text = if self.of_source { &self.source } else { &self.code };
        let (line, column) = place_of(text, at as usize);
        let snippet = snippet_at(&self.source, line, column).unwrap_or_default();
        ScriptSyntaxError { file: file.to_owned(), line, column, message, snippet }
    }
}

/// What is kept, by hash.
#[derive(Default)]
struct Kept {
    files: BTreeMap<[u8; 32], Arc<Prepared>>,
    bytes: usize,
}

/// Most text that is kept; then everything is made anew.
const MOST_BYTES: usize = 64 << 20;
static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

/// Makes a file ready. `is_imported` files are modules whatever they look like.
pub(super) fn prepare(
    name: &str,
    source: &str,
    kind: FileKind,
    is_imported: bool,
    mode: TypeScriptMode,
) -> Result<Arc<Prepared>, ScriptSyntaxError> {
    let key = key(source, kind, is_imported, mode);
    let kept = |kept: &Option<Kept>| kept.as_ref().and_then(|kept| kept.files.get(&key).cloned());
    if let Some(found) = kept(&KEPT.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(found);
    }
    let made = Arc::new(whole(name, source, || make(name, source, kind, is_imported, mode))?);
    let mut guard = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = guard.get_or_insert_default();
    if kept.bytes > MOST_BYTES {
        *kept = Kept::default();
    }
    kept.bytes += made.source.len() + made.code.len();
    kept.files.insert(key, made.clone());
    Ok(made)
}

fn key(source: &str, kind: FileKind, is_imported: bool, mode: TypeScriptMode) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([kind as u8, u8::from(is_imported), mode as u8]);
    hash.update(source);
    hash.finalize().into()
}

fn make(
    name: &str,
    source: &str,
    kind: FileKind,
    is_imported: bool,
    mode: TypeScriptMode,
) -> Result<Prepared, ScriptSyntaxError> {
    if kind == FileKind::Json {
        return json(name, source);
    }
    let source_type = match kind {
        FileKind::TypeScript => SourceType::ts(),
        _ if is_imported => SourceType::mjs(),
        _ => SourceType::unambiguous(),
    };
    let allocator = Allocator::default();
    let mut program = parse(&allocator, name, source, source_type)?;
    let functions = signature::functions(&program);
    let types = types(&program);
    let text: Arc<str> = Arc::from(source);
    if kind == FileKind::JavaScript {
        let record = record(&program);
        return Ok(Prepared { code: text.clone(), source: text, places: None, record, of_source: true, functions, types });
    }
    if mode == TypeScriptMode::Full {
        let full::Full { code, places, record } = full::transform(&allocator, name, source, &mut program)?;
        let places = Some(Arc::new(places));
        return Ok(Prepared { source: text, code, places, record, of_source: true, functions, types });
    }
    let code: Arc<str> = Arc::from(erase(&allocator, name, source, &program)?);
    let allocator = Allocator::default();
    let erased = Parser::new(&allocator, &code, SourceType::mjs()).parse();
    let record = record(&erased.program);
    Ok(Prepared { source: text, code, places: None, record, of_source: false, functions, types })
}

/// The types that a program declares and nothing else of the same name.
fn types(program: &Program<'_>) -> BTreeSet<String> {
    let mut types = BTreeSet::new();
    for statement in &program.body {
        let declaration = match statement {
            Statement::ExportDeclaration(it) => Some(&it.declaration),
            other => other.as_declaration(),
        };
        types.extend(declaration.and_then(signature::type_name).map(str::to_owned));
    }
    types
}

/// A module whose only export is what the file says.
fn json(name: &str, source: &str) -> Result<Prepared, ScriptSyntaxError> {
    let value: serde_json::Value = serde_json::from_str(source).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default().to_owned();
        ScriptSyntaxError::at(name, source, start + column.saturating_sub(1), format!("no JSON: {what}"))
    })?;
    let mut code = "export default ".to_owned();
    literal(&value, &mut code);
    let exports = BTreeMap::from([("default".to_owned(), Export::Own("default".to_owned()))]);
    let record = Record { is_module: true, exports, ..Record::default() };
    let (functions, types) = (BTreeMap::new(), BTreeSet::new());
    Ok(Prepared { source: Arc::from(source), code: Arc::from(code), places: None, record, of_source: true, functions, types })
}

/// JSON as an expression that gives what `JSON.parse` gives: `__proto__` is a key like any other.
fn literal(value: &serde_json::Value, code: &mut String) {
    match value {
        serde_json::Value::Array(items) => {
            code.push('[');
            for item in items {
                literal(item, code);
                code.push(',');
            }
            code.push(']');
        }
        serde_json::Value::Object(entries) => {
            code.push_str("({");
            for (key, item) in entries {
                let name = serde_json::Value::from(key.as_str()).to_string();
                code.push_str(&if key == "__proto__" { format!("[{name}]:") } else { format!("{name}:") });
                literal(item, code);
                code.push(',');
            }
            code.push_str("})");
        }
        scalar => code.push_str(&scalar.to_string()),
    }
}
