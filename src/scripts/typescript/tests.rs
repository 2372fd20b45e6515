//! What blanking keeps and what it refuses.

use proptest::prelude::*;
use test_case::test_case;

use super::strip_types;

/// Every construct of the table: its name and its TypeScript.
const TABLE: &[(&str, &str)] = &[
    ("variables", "let a: number = 1, b!: string, c: A | null = null;\nconst { d, e }: { d: number, e: string } = x;"),
    ("parameters", "function f(this: Window, a: string, b?: number, { c }: C = {}, ...rest: string[]): void { g(a) }"),
    ("this alone", "function f(this: Window): void {}"),
    ("generics", "function f<T extends object = {}>(a: T): T { return g<T>(a) }\nnew Map<string, Array<number>>()\ntag<T>`x`"),
    ("async generator", "export async function* f<T>(a: T): AsyncGenerator<T> { yield a as T }"),
    ("arrows", "const f = (a: number): number => a + 1, g = <T,>(a: T): a is T => true, h = async (a?: X): Promise<X> => a!;"),
    (
        "arrow, type over lines",
        "const f = (a: number): Promise<\n  number\n> => a;\nconst g = async <\n  T\n>(a: T): Promise<T> => a;",
    ),
    ("return, type over lines", "function f() {\n  return <\n    T\n  >(a: T) => a;\n}"),
    ("interface", "interface A { b: number }\nexport interface B extends A {}\nexport default interface C {}\nf()"),
    ("alias", "type A = { b: number } | [c: string]\nexport type B<T> = T extends A ? infer_ : never\nf()"),
    ("as", "const a = b as unknown as string, c = f(d as A, e as B) as C | D;"),
    ("as const", "const a = { b: 1 } as const;\nconst c = (d as any).e!.f![0]!;"),
    ("satisfies", "const a = { b: 1 } satisfies A;"),
    ("assign", "(a as any) = 1;\na! = 2;\na!.b++;"),
    (
        "imports",
        "import type { A } from './a'\nimport type B from './b'\nimport { type C, d, type E } from './c'\nexport type { A }\nexport { type C, d }\nexport type * from './x'",
    ),
    (
        "declare",
        "declare const a: number\ndeclare let b\ndeclare function f(): void\ndeclare class C { d: string }\ndeclare module 'x' { export const y: number }\ndeclare global { interface Z {} }\ndeclare enum E { A }\ng()",
    ),
    (
        "overloads",
        "function f(a: string): void\nfunction f(a: number): void;\nfunction f(a: any) {}\nexport default function g(): void\nexport default function g(a?: any) {}",
    ),
    (
        "class",
        "abstract class A<T> extends B<T> implements C, D<T> {\n  private x = 1\n  protected readonly y: number = 2;\n  public static z?: string\n  w!: number\n  declare v: string\n  #u: T\n  [key: string]: any\n  abstract m(): void\n  constructor(a: string)\n  constructor(a: any) { super(a) }\n  private async n?<U>(a: U): Promise<U> { return a }\n  override get o(): number { return 1 }\n  static { f() }\n}",
    ),
    (
        "class hazards",
        "class A {\n  get: string\n  m() {}\n  a = 1\n  declare b: number\n  ['c']() {}\n  d?: number\n  [e] = 1\n  f = 1\n  private [g] = 2\n  h = 1\n  abstract i(): void\n  *j() {}\n}",
    ),
    ("export class", "export abstract class A {}\nexport default abstract class B {}"),
    ("namespaces of types", "namespace A { export type B = 1; interface C {} }\nnamespace D.E { type F = 1 }\nf()"),
    (
        "semicolons",
        "const a = 1\ninterface B {}\n(f)()\nconst c = 2\ntype D = 1\n[1].map(f)\nconst e = 3\ndeclare let g\n`x`\nlet h = 4\ntype I = 1\n<T,>(x: T) => x",
    ),
    ("as before a statement", "const a = b as T\n(f)()\nconst c = d as T\n[1].map(f)\nfoo(a as T\n, (b))"),
    ("catch", "try { f() } catch (e: unknown) { g(e as Error) }"),
    ("for", "for (const a of b as string[]) {}\nfor (let i: number = 0; i < (n as number); i++) {}"),
    ("wide text", "type A = 'é😀' | 'ü'; const b = '😀'\nconst c: '😀' = '😀'"),
    ("comments", "let a /* x: y */ : /* z */ number // w?: v\n  = 1;\nf(/* ) */ a as /* ( */ T)"),
    ("optional calls", "a?.b!.c?.<T>(d!)"),
    ("object methods", "const a = { b<T>(c: T): T { return c }, get d(): number { return 1 }, async *e(f?: string) {} }"),
    (
        "index access types",
        "let a: A['b'][number], b: typeof import('x'), c: keyof typeof d, e: `x${string}`, f: new () => X, g: unique symbol",
    ),
    (
        "assertion functions",
        "function f(a: unknown): asserts a is string {}\nfunction g(this: A, b: B): this is C { return true }",
    ),
    (
        "nested functions",
        "function f() {\n  type A = 1\n  const g = (a: A): void => { interface B {} }\n  switch (x as A) { case 1 as A: type C = 2; break }\n}",
    ),
];

#[test]
fn table() {
    let mut shown = String::new();
    for (name, source) in TABLE {
        let stripped = strip_types("hook.ts", source).unwrap_or_else(|e| panic!("{name}: {e}\n{}", e.snippet));
        shown.push_str(&format!("=== {name}\n{source}\n---\n{stripped}\n"));
    }
    insta::assert_snapshot!(shown);
}

fn lengths(text: &str) -> Vec<usize> {
    text.split('\n').map(|line| line.encode_utf16().count()).collect()
}

#[test]
fn the_result_is_javascript() {
    for (name, source) in TABLE {
        let stripped = strip_types("hook.ts", source).expect("in the table");
        let checked = strip_types("hook.js", &stripped);
        assert_eq!(checked.map_err(|e| format!("{e}\n{}", e.snippet)).as_deref(), Ok(&*stripped), "{name}");
    }
}

#[test]
fn blanking_twice_changes_nothing() {
    for (name, source) in TABLE {
        let once = strip_types("hook.ts", source).expect("in the table");
        assert_eq!(strip_types("hook.ts", &once).as_deref(), Ok(&*once), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_and_columns_stay(picks in proptest::collection::vec(0..TABLE.len(), 1..6), breaks in 1usize..3) {
        // Blocks, for one file cannot export or declare a thing twice; module statements are covered by `table`.
        let source = picks.iter().map(|pick| TABLE[*pick].1).filter(|part| !part.contains("port ") && !part.contains("declare g"))
            .map(|part| format!("{{ {part} }}")).collect::<Vec<_>>().join(&"\n".repeat(breaks));
        if let Ok(stripped) = strip_types("hook.ts", &source) {
            prop_assert_eq!(lengths(&stripped), lengths(&source));
        }
    }

    #[test]
    fn any_text_is_answered(source in "[a-z<>:=(){}\\[\\]!?.,;'\\n 1é😀]{0,60}") {
        match strip_types("hook.ts", &source) {
            Ok(stripped) => prop_assert_eq!(lengths(&stripped), lengths(&source)),
            Err(e) => prop_assert!(e.line >= 1 && e.column >= 1 && e.snippet.lines().count() <= 12),
        }
    }
}

#[test]
fn the_table_keeps_lines_and_columns() {
    for (name, source) in TABLE {
        assert_eq!(lengths(&strip_types("hook.ts", source).expect("in the table")), lengths(source), "{name}");
    }
}

#[test]
fn javascript_is_unchanged() {
    let source = "export default async (ctx) => { return a < b > (c) }\n";
    assert_eq!(strip_types("hook.js", source).as_deref(), Ok(source));
}

#[test_case("enum", "f()\n  enum Color { Red }")]
#[test_case("const_enum", "const enum Color { Red }")]
#[test_case("namespace", "namespace A { export const b = 1 }")]
#[test_case("parameter_property", "class A {\n  constructor(private b: string) {}\n}")]
#[test_case("decorator", "@sealed\nclass A {}")]
#[test_case("prefix_assertion", "const a = <string>b;")]
#[test_case("import_equals", "import a = require('a');")]
#[test_case("export_equals", "export = a;")]
#[test_case("first_of_two", "const a = <string>b;\nenum C {}")]
#[test_case("syntax", "function f( {\n  return 1\n}")]
#[test_case("unfinished", "function f() {")]
fn refused(name: &str, source: &str) {
    let error = strip_types("agents/travel.ts", source).expect_err("cannot be erased");
    assert_eq!(error.code(), "SCRIPT_SYNTAX");
    insta::assert_snapshot!(format!("refused_{name}"), format!("{error}\n{}", error.snippet));
}

#[test]
fn a_syntax_error_in_javascript_has_its_place() {
    let error = strip_types("a.js", "let a = 1;\nlet b = (;\n").expect_err("a syntax error");
    assert_eq!((error.line, error.column), (2, 10));
}

#[test]
fn typescript_in_a_javascript_file_is_refused() {
    assert!(strip_types("a.js", "let a: number = 1").is_err());
}
