//! What scripts import: which files are meant, what is refused, and where it is said.
//!
//! Invariant: a graph that loads holds nothing from outside of its root. Deliberately no engine: the scenarios run scripts.

use std::path::Path;

use greenroom::config::{HostConfig, ScriptConfig};
use greenroom::scripts::{LoadedScript, ScriptError, ScriptLibrary, TypeScriptMode};
use greenroom_boundary::isolate::LinkTarget;
use serde_json::{Value, json};
use std::sync::Arc;
use test_case::test_case;

/// A folder with files below `app`; what begins with `../` lies beside it.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = match name.strip_prefix("../") {
            Some(beside) => folder.path().join(beside),
            None => folder.path().join("app").join(name),
        };
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }
    folder
}

fn library(folder: &Path, typescript: TypeScriptMode) -> ScriptLibrary {
    let mut config = HostConfig { root: Some(folder.join("app")), ..HostConfig::default() };
    config.policy.typescript = typescript;
    ScriptLibrary::of(&config)
}

/// Loads the first file.
fn load_as(files: &[(&str, &str)], mode: TypeScriptMode) -> Result<Arc<LoadedScript>, ScriptError> {
    let folder = folder(files);
    let entry = ScriptConfig::File(folder.path().join("app").join(files[0].0));
    library(folder.path(), mode).loaded(&entry)
}

fn load(files: &[(&str, &str)]) -> Result<Arc<LoadedScript>, ScriptError> {
    load_as(files, TypeScriptMode::Erase)
}

fn refused(files: &[(&str, &str)]) -> ScriptError {
    load(files).map(|loaded| loaded.script.name.clone()).expect_err("it is refused")
}

/// The names of the modules, without the folder.
fn modules(loaded: &LoadedScript) -> Vec<String> {
    let below = |name: &str| name.split_once("/app/").map_or(name, |(_, below)| below).to_owned();
    loaded.script.modules.iter().map(|module| below(&module.name)).collect()
}

#[test_case("./b.ts", &["b.ts"]; "as it is")]
#[test_case("./b", &["b.ts"]; "without its end")]
#[test_case("./b.js", &["b.ts"]; "as the compiler writes it")]
#[test_case("./c", &["c.js"]; "JavaScript without its end")]
#[test_case("./both.js", &["both.js"]; "what is written wins")]
#[test_case("./both", &["both.ts"]; "TypeScript goes before JavaScript")]
#[test_case("./lib", &["lib/index.ts"]; "the index of a folder")]
#[test_case("./sub/../b.ts", &["b.ts"]; "a way round")]
#[test_case("./data.json", &["data.json"]; "JSON")]
#[test_case("plain", &["node_modules/plain/esm.mjs"]; "the module of a package")]
#[test_case("mapped", &["node_modules/mapped/es/main.js"]; "the exports of a package")]
#[test_case("mapped/deep/x", &["node_modules/mapped/es/x.js"]; "a pattern of exports")]
#[test_case("@scope/it", &["node_modules/@scope/it/index.js"]; "a package with a scope")]
fn an_import_means_a_file(specifier: &str, wanted: &[&str]) {
    let entry = format!("import x from {specifier:?};\nexport function f() {{ return x }}");
    let module = "export default 1";
    let loaded = load(&[
        ("hooks/../a.ts", &entry),
        ("b.ts", module),
        ("c.js", module),
        ("both.ts", module),
        ("both.js", module),
        ("lib/index.ts", module),
        ("sub/x.ts", module),
        ("data.json", "{\"a\": [1, \"\\u2028\"], \"__proto__\": {\"b\": null}}"),
        ("node_modules/plain/package.json", r#"{"name": "plain", "main": "cjs.js", "module": "esm.mjs"}"#),
        ("node_modules/plain/cjs.js", "module.exports = 1"),
        ("node_modules/plain/esm.mjs", module),
        (
            "node_modules/mapped/package.json",
            r#"{"name": "mapped", "type": "module", "exports": {".": {"require": "./cjs/main.cjs", "import": "./es/main.js"}, "./deep/*": "./es/*.js"}}"#,
        ),
        ("node_modules/mapped/es/main.js", module),
        ("node_modules/mapped/es/x.js", module),
        ("node_modules/@scope/it/package.json", r#"{"name": "@scope/it", "type": "module", "main": "index.js"}"#),
        ("node_modules/@scope/it/index.js", module),
    ]);
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.report()));
    assert_eq!(modules(&loaded), wanted);
    assert_eq!(loaded.script.links.get(specifier), Some(&LinkTarget::Module(0)));
}

#[test]
fn each_file_is_one_module_and_the_script_may_be_imported() {
    let loaded = load(&[
        ("a.ts", "import { b } from './b.ts';\nimport * as c from './sub/c';\nexport const a = 1; export function f() { return [b, c] }"),
        ("b.ts", "import { a } from './a';\nexport * from './sub/c.js';\nexport const b = () => a"),
        ("sub/c.ts", "import './../b.js';\nexport const c = 1;"),
    ])
    .expect("it loads");
    assert_eq!(modules(&loaded), ["b.ts", "sub/c.ts"]);
    assert_eq!(loaded.script.modules[0].links.get("./a"), Some(&LinkTarget::Script));
    assert_eq!(loaded.script.modules[1].links.get("./../b.js"), Some(&LinkTarget::Module(0)));
}

/// Each: the first file, further files, the code of the error, and its place and what it says.
#[test_case("import './missing'", &[("missng.ts", "")], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:8", "there is \"missng.ts\""; "no such file")]
#[test_case("import './gone/x.ts'", &[], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:8", "is no file"; "no such folder")]
#[test_case("\n  import '../secret.ts'", &[("../secret.ts", "")], "SCRIPT_IMPORT_OUTSIDE", "a.ts:2:10", "leads out of the script's root"; "up and out")]
#[test_case("import './sub/../../secret'", &[("../secret.ts", "")], "SCRIPT_IMPORT_OUTSIDE", "a.ts:1:8", "root"; "down and out")]
#[test_case("import '/etc/passwd'", &[], "SCRIPT_IMPORT_OUTSIDE", "a.ts:1:8", "root"; "absolute")]
#[test_case("import x from 'https://example.com/x.js'\nx()", &[], "SCRIPT_IMPORT_NETWORK", "a.ts:1:15", "network"; "the network")]
#[test_case("import 'npm:left-pad'", &[], "SCRIPT_IMPORT_NETWORK", "a.ts:1:8", "is an address"; "another scheme")]
#[test_case("import { readFile } from 'node:fs'\nreadFile()", &[], "SCRIPT_IMPORT_BUILT_IN", "a.ts:1:26", "a module of Node"; "a module of Node")]
#[test_case("import fs from 'fs'\nfs()", &[], "SCRIPT_IMPORT_BUILT_IN", "a.ts:1:16", "a module of Node"; "a module of Node in short")]
#[test_case("import x from 'left-pad'\nx()", &[], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:15", "npm install left-pad"; "no such package")]
#[test_case("import x from 'cjs'\nx()", &[("node_modules/cjs/index.js", "module.exports = 1")], "SCRIPT_IMPORT_COMMONJS", "a.ts:1:15", "esbuild cjs --bundle"; "a CommonJS package")]
#[test_case("import x from './x.cjs'\nx()", &[("x.cjs", "")], "SCRIPT_IMPORT_COMMONJS", "a.ts:1:15", "CommonJS"; "a CommonJS file")]
#[test_case("import x from 'm/inner.js'\nx()", &[("node_modules/m/package.json", r#"{"exports": "./a.js"}"#), ("node_modules/m/inner.js", "")], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:15", "does not export \"./inner.js\""; "what a package keeps to itself")]
#[test_case("import x from 'm'\nx()", &[("node_modules/m/package.json", "{")], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:15", "no JSON"; "a broken package")]
#[test_case("import x from 'm'\nx()", &[("node_modules/m/package.json", r#"{"exports": "../../../secret.ts"}"#), ("../secret.ts", "")], "SCRIPT_IMPORT_NOT_FOUND", "a.ts:1:15", "no path within it"; "a package that leads out")]
#[test_case("import { bee } from './b.ts'\nbee()", &[("b.ts", "export const be = 1")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:10", "did you mean \"be\"?"; "no such export")]
#[test_case("import b from './b.ts'\nb()", &[("b.ts", "export const b = 1")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:8", "it exports b"; "no default export")]
#[test_case("export { x } from './b.ts'", &[("b.ts", "export * from './c.ts'"), ("c.ts", "export const y = 1")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:10", "\"x\""; "an export of nothing")]
#[test_case("export { T } from './b.ts'", &[("b.ts", "export interface T {}")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:10", "export type { T }"; "a type as a value")]
#[test_case("import { x } from './b.ts'\nx()", &[("b.ts", "export * from './c.ts'; export * from './d.ts'"), ("c.ts", "export const x = 1"), ("d.ts", "export const x = 2")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:10", "more than one module"; "an ambiguous export")]
#[test_case("import { a } from './b.ts'\na()", &[("b.ts", "export { a } from './c.ts'"), ("c.ts", "export { a } from './b.ts'")], "SCRIPT_IMPORT_NO_EXPORT", "a.ts:1:10", "\"a\""; "a cycle that exports nothing")]
#[test_case("export const f = () => import('./b.ts')", &[("b.ts", "")], "SCRIPT_IMPORT_DYNAMIC", "a.ts:1:24", "import … from"; "at run time")]
#[test_case("import x from './x.css'\nx()", &[("x.css", "")], "SCRIPT_IMPORT_KIND", "a.ts:1:15", ".json"; "another kind of file")]
#[test_case("import x from './x.json' with { type: 'css' }\nx()", &[("x.json", "1")], "SCRIPT_IMPORT_KIND", "a.ts:1:33", "type: \"json\""; "another attribute")]
#[test_case("import './b.ts'", &[("b.ts", "export const é: string = ;")], "SCRIPT_SYNTAX", "b.ts:1:26", "Unexpected token"; "an imported file that does not parse")]
#[test_case("import './b.ts'", &[("b.ts", "\nexport enum E { A }")], "SCRIPT_SYNTAX", "b.ts:2:8", "typescript: full"; "an enum in an imported file")]
#[test_case("import x from './b.json'\nx()", &[("b.json", "{\n  \"a\": 1,\n}")], "SCRIPT_SYNTAX", "b.json:3:1", "no JSON"; "JSON that is none")]
#[test_case("import './b.ts'", &[("b.ts", "const tä: string = '';\nimport type { T } from './gone'; import { u } from './gone'; u()")], "SCRIPT_IMPORT_NOT_FOUND", "b.ts:2:52", "no file"; "within an imported file")]
fn what_is_refused_says_where(entry: &str, others: &[(&str, &str)], code: &str, place: &str, says: &str) {
    let files: Vec<(&str, &str)> = [("a.ts", entry)].into_iter().chain(others.iter().copied()).collect();
    let error = refused(&files);
    let report = error.report();
    assert_eq!(error.code(), code, "{report}");
    let (_, below) = report.split_once("/app/").unwrap_or_else(|| panic!("a place in {report}"));
    assert!(below.starts_with(&format!("{place}: ")), "{report}");
    assert!(report.contains(says), "{report}");
    let (line, caret) = report.rsplit_once('\n').expect("a caret");
    let shown = line.rsplit('\n').next().expect("the line");
    assert!(caret.trim_end().ends_with('^') && caret.chars().count() <= shown.chars().count() + 1, "{report}");
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_are_refused() {
    let folder = folder(&[
        ("a.ts", "import './out.ts'"),
        ("b.ts", "import 'out'"),
        ("c.ts", "import './inner.ts'"),
        ("real.ts", ""),
        ("../secret.ts", ""),
        ("../package/index.js", "export {}"),
    ]);
    let root = folder.path().join("app");
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("a link");
    std::fs::create_dir(root.join("node_modules")).expect("a folder");
    link("../secret.ts", "out.ts");
    link("../../package", "node_modules/out");
    link("real.ts", "inner.ts");
    let library = library(folder.path(), TypeScriptMode::Erase);
    let load = |name: &str| library.loaded(&ScriptConfig::File(root.join(name)));
    assert_eq!(load("a.ts").expect_err("it leads out").code(), "SCRIPT_IMPORT_OUTSIDE");
    assert!(load("b.ts").expect_err("it leads out").code().starts_with("SCRIPT_IMPORT_"));
    assert_eq!(modules(&load("c.ts").expect("it stays within")), ["real.ts"]);
}

#[test]
fn text_in_a_config_imports_nothing() {
    let inline = ScriptConfig::Inline { name: "x.ts".to_owned(), code: "\nimport { a } from './a.ts'; a()".to_owned() };
    let error = ScriptLibrary::default().load(&inline).expect_err("it has no folder");
    assert_eq!((error.code(), error.to_string().starts_with("x.ts:2:19: ")), ("SCRIPT_IMPORT_INLINE", true), "{error}");
}

#[test]
fn a_graph_has_an_end() {
    let many: Vec<(String, String)> = (0..600).map(|n| (format!("m{n}.ts"), format!("import './m{}.ts';", n + 1))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(refused(&many).code(), "SCRIPT_IMPORT_LIMIT");
    let long = format!("export const x = 1; // {}", "x".repeat(1 << 20));
    let error = refused(&[("a.ts", "import './b.js'"), ("b.js", &long)]);
    assert_eq!(error.code(), "SCRIPT_SYNTAX");
    assert!(error.to_string().contains("may have 1048576 bytes"), "{error}");
    let big = format!("export const x = 1; //{}", "x".repeat((1 << 20) - 30));
    let heavy: Vec<String> = (0..9).map(|n| format!("b{n}.js")).collect();
    let imports: Vec<String> = heavy.iter().map(|name| format!("import './{name}';")).collect();
    let entry = imports.concat();
    let files: Vec<(&str, &str)> =
        [("a.ts", entry.as_str())].into_iter().chain(heavy.iter().map(|it| (it.as_str(), big.as_str()))).collect();
    assert_eq!(refused(&files).code(), "SCRIPT_IMPORT_LIMIT");
    assert!(
        load(&files[..1].iter().map(|_| ("a.ts", "import './b0.js'")).chain(files[1..].iter().copied()).collect::<Vec<_>>())
            .is_ok()
    );
}

/// What only the type checker reads is not linked, and leaves no trace.
#[test_case("import { T } from './gone';\nexport const f = (x: T) => x", "                           \nexport const f = (x   ) => x"; "an import of a type")]
#[test_case("import type T from './gone';\nexport const f = 1", "                            \nexport const f = 1"; "import type")]
#[test_case("import D, { a } from './b';\nexport const f = a", "import    { a } from './b';\nexport const f = a"; "an unused default")]
#[test_case("import D, * as n from './b';\nexport const f = D", "import D         from './b';\nexport const f = D"; "an unused namespace")]
#[test_case("import { a, T } from './b';\nexport const f = a as T", "import { a,   } from './b';\nexport const f = a     "; "a type among values")]
#[test_case("interface T {}\nconst f = 1; export { T, f }", "              \nconst f = 1; export {    f }"; "an exported type")]
#[test_case("import './b';\nexport const f = 1", "import './b';\nexport const f = 1"; "an import for its effect")]
fn types_are_not_linked(source: &str, wanted: &str) {
    let loaded = load(&[("a.ts", source), ("b.ts", "export default 1; export const a = 1")]);
    assert_eq!(&*loaded.unwrap_or_else(|error| panic!("{}", error.report())).script.code, wanted);
}

const FULL: &str = "\
import { Level } from './level';
namespace Shop { export const vat = 0.2 }
function twice(_: unknown, __: string, it: PropertyDescriptor) { const f = it.value; it.value = (x: number) => f(f(x)); return it }
class Till {
  constructor(private readonly rate: number) {}
  @twice add(x: number) { return x + this.rate }
}
export function f(level: Level) {
  return [Level.High, Level[level], Shop.vat, new Till(1).add.call({ rate: 1 }, 1)];
}
export function fails() {
  null!.x;
}
";

#[test]
fn full_typescript_is_a_matter_of_the_policy() {
    let files = [("a.ts", FULL), ("level.ts", "export enum Level { Low = 1, High }")];
    assert_eq!(refused(&files).code(), "SCRIPT_SYNTAX");
    let loaded = load_as(&files, TypeScriptMode::Full).unwrap_or_else(|error| panic!("{}", error.report()));
    let names = modules(&loaded);
    assert!(names.contains(&"level.ts".to_owned()) && names.contains(&"greenroom:helpers/decorate".to_owned()), "{names:?}");
    let line = loaded.script.code.lines().position(|line| line.contains("null.x")).expect("it is there") + 1;
    let places = loaded.script.places.as_ref().expect("generated code has places");
    assert_eq!(places.source_of(u32::try_from(line).unwrap(), 2).0, 12, "{}", loaded.script.code);
}

fn schema_of(source: &str, name: &str) -> Value {
    let loaded = load(&[("a.ts", source)]).unwrap_or_else(|error| panic!("{}", error.report()));
    loaded.tools.signature(name).and_then(|it| it.schema.clone()).unwrap_or(Value::Null)
}

#[test_case("(args: { city: string; days?: number })", json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}, "required": ["city"]}); "an object")]
#[test_case("({ city, days = 3 }: { city: string; days?: number }, ctx: any)", json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}, "required": ["city"]}); "a pattern")]
#[test_case("(city: string, days: number = 3)", json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "number"}}, "required": ["city"], "additionalProperties": false}); "one by one")]
#[test_case("(unit: 'c' | 'f' | undefined, ctx: Context)", json!({"type": "object", "properties": {"unit": {"type": "string", "enum": ["c", "f"]}}, "additionalProperties": false}); "literals")]
#[test_case("(args: Args)", json!({"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "at": {"type": "object", "properties": {"x": {"type": ["number", "null"]}}, "required": ["x"], "description": "Where it is."}}, "required": ["tags", "at"]}); "an interface and an alias")]
#[test_case("(args: Record<string, number>)", json!({"type": "object", "additionalProperties": {"type": "number"}}); "a record")]
#[test_case("(args: Partial<Point> & { z: -1 | 1 })", json!({"type": "object", "properties": {"x": {"type": ["number", "null"]}, "z": {"enum": [-1, 1]}}, "required": ["z"]}); "an intersection")]
#[test_case("(call: any)", Value::Null; "anything")]
#[test_case("(call)", Value::Null; "nothing said")]
#[test_case("(call: Elsewhere, ctx: any)", Value::Null; "a type of another file")]
#[test_case("(a: string, b: Elsewhere)", Value::Null; "a type of another file among plain ones")]
fn types_say_what_a_tool_takes(parameters: &str, wanted: Value) {
    let source = format!(
        "import type {{ Elsewhere }} from './elsewhere';\ntype Point = {{ x: number | null }};\ntype Tree = {{ next: Tree | null }};\n\
         interface Args {{ tags: string[]; /** Where it is. */ at: Point }}\nexport function f{parameters} {{}}"
    );
    assert_eq!(schema_of(&source, "f"), wanted);
}
