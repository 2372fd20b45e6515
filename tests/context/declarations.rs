//! The TypeScript declarations: complete, and true of the scripts that are shipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use greenroom::context::{GLOBALS, PARTS, TABLE, declarations};
use greenroom_boundary::isolate::{OpDecl, OpKind};
use greenroom_boundary::web::{is_web, parts_of};
use greenroom_harness::load::{LoadOptions, load_suite};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The operations of `ctx`, without those behind the web's globals.
fn on_ctx() -> impl Iterator<Item = &'static OpDecl> {
    TABLE.iter().filter(|decl| !is_web(decl.path))
}

#[test]
fn every_global_of_the_web_is_described_and_declared() {
    let mut installed: Vec<&str> = parts_of(&TABLE).flat_map(|part| part.globals).copied().collect();
    let mut described: Vec<&str> = GLOBALS.iter().flat_map(|global| global.names).copied().collect();
    installed.sort_unstable();
    described.sort_unstable();
    assert_eq!(installed, described);
    assert_eq!(parts_of(&TABLE).count(), greenroom_boundary::web::PARTS.len());
    let text = declarations();
    for name in installed {
        let forms = [format!("declare var {name}: "), format!("declare function {name}("), format!("declare function {name}<")];
        assert!(forms.iter().any(|form| text.contains(form)), "{name}");
    }
}

#[test]
fn every_operation_has_one_signature() {
    let mut described: Vec<String> =
        PARTS.iter().flat_map(|part| part.operations.iter().map(move |op| format!("{}{}", part.prefix, op.name))).collect();
    let mut declared: Vec<String> = on_ctx().map(|decl| decl.path.to_owned()).collect();
    described.sort();
    declared.sort();
    assert_eq!(described, declared);
}

#[test]
fn parameters_agree_with_the_table() {
    for part in PARTS {
        for operation in part.operations {
            let path = format!("{}{}", part.prefix, operation.name);
            let decl = TABLE.iter().find(|decl| decl.path == path).unwrap();
            let parameters = top_level(operation.parameters);
            let required =
                parameters.iter().take_while(|parameter| !parameter.split(':').next().unwrap().ends_with('?')).count();
            // What stands for a `*` of the path is an argument of the operation, not of the method.
            let required = required + usize::from(path.contains('*'));
            assert_eq!(required, decl.min_args, "ctx.{path}({})", operation.parameters);
            let holds_callback = |at: usize| {
                parameters.get(at).is_some_and(|parameter| parameter.contains("onChunk") || parameter.contains("BatchOptions"))
            };
            assert_eq!(decl.callback.map(|at| holds_callback(at.argument)), decl.callback.map(|_| true), "ctx.{path}");
        }
    }
}

/// A parameter list, cut at its outer commas.
fn top_level(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_i32);
    for c in list.chars() {
        match c {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[test]
fn an_operation_that_waits_has_its_twin() {
    let text = declarations();
    for decl in on_ctx() {
        let name = decl.path.rsplit('.').next().unwrap();
        // Below a name, what needs nothing but that name is a property.
        let is_property = decl.path.contains('*') && decl.min_args == 1;
        let form = if is_property { format!("  readonly {name}: ") } else { format!("  {name}(") };
        assert!(text.contains(&form), "{name}");
        let twin = text.contains(&format!("  {name}Async("));
        assert_eq!(twin, decl.kind == OpKind::Await, "{name}");
    }
}

/// Whether a script has an exported function of this name.
fn exports(code: &str, name: &str) -> bool {
    ["export function", "export async function"].iter().any(|head| code.contains(&format!("{head} {name}(")))
}

/// Every script of scenarios/context, and the example hooks, as files of `folder`.
fn write_scripts(folder: &Path) -> usize {
    let cases = load_suite(&[root().join("scenarios/context")], LoadOptions::default()).unwrap();
    let mut written = 0;
    for case in cases {
        for (agent, assistant) in &case.scenario.host.assistants {
            let Some(code) = &assistant.script_inline else { continue };
            let mut code = code.clone();
            for (function, shape) in [("Create", "CreateHook"), ("Next", "NextHook")] {
                if exports(&code, function) {
                    code.push_str(&format!("\nconst check{function}: {shape} = {function};\n"));
                }
            }
            std::fs::write(folder.join(format!("{}-{agent}.ts", case.id.replace('/', "-"))), code).unwrap();
            written += 1;
        }
    }
    for example in ["examples/hooks/greeter.ts", "examples/hooks/guard.ts", "scenarios/host/config-hooks/policy.ts"] {
        let name = example.rsplit('/').next().unwrap();
        std::fs::copy(root().join(example), folder.join(name)).unwrap();
        written += 1;
    }
    std::fs::create_dir(folder.join("lib")).unwrap();
    for part in ["rates.ts", "lib/money.ts", "lib/rates.json"] {
        std::fs::copy(root().join("examples/hooks").join(part), folder.join(part)).unwrap();
        written += 1;
    }
    written
}

/// Lines that the compiler must refuse.
const WRONG: &str = "\
export async function Next(ctx: Ctx) {
  // @ts-expect-error a server is named by text
  ctx.mcp.CallTool(7, 'price');
  // @ts-expect-error no such operation
  ctx.mcp.CallTol('shop', 'price');
  // @ts-expect-error a message needs a type
  ctx.Send({ props: {} });
  // @ts-expect-error a path is needed
  ctx.Set('M1', 1);
  // @ts-expect-error without an id there is no such space
  ctx.memory.user.Get('k');
  // @ts-expect-error counters count in numbers
  ctx.memory.chat.Incr('k', 'x');
  // @ts-expect-error what does not wait has no twin
  ctx.SendAsync('x');
  // @ts-expect-error data is read only
  ctx.chat_id = 'x';
  // @ts-expect-error code does not come from text
  setTimeout('ctx.Send(1)', 1);
  // @ts-expect-error only fetch makes one
  new Response('x');
  // @ts-expect-error there is no cache
  await fetch('https://a.example', { cache: 'no-store' });
  const answer = await fetch(new URL('https://a.example'), { method: 'POST', body: { a: 1 }, signal: AbortSignal.timeout(5) });
  const text: string = answer.headers.get('x') ?? await answer.text();
  console.log(text, crypto.randomUUID(), structuredClone({ a: new Map([[1, 2]]) }).a.get(1)?.toFixed());
  const tools: Tool[] = (await ctx.mcp.ListToolsAsync('shop')).tools;
  console.log(tools.length);
}
";

#[test]
fn the_shipped_scripts_agree_with_the_declarations() {
    let compiler = root().join(".tools/node/node_modules/typescript/bin/tsc");
    assert!(compiler.exists(), "{} is missing; `./x tools` installs it", compiler.display());
    let folder = tempfile::tempdir().unwrap();
    let written = write_scripts(folder.path());
    assert!(written > 60, "{written}");
    std::fs::write(folder.path().join("greenroom.d.ts"), declarations()).unwrap();
    std::fs::write(folder.path().join("wrong.ts"), WRONG).unwrap();
    let options = r#"{"compilerOptions": {"noEmit": true, "strict": true, "target": "es2023", "lib": ["es2023"], "types": [], "module": "esnext", "moduleDetection": "force", "moduleResolution": "bundler", "resolveJsonModule": true, "allowImportingTsExtensions": true}, "include": ["*.ts"]}"#;
    std::fs::write(folder.path().join("tsconfig.json"), options).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the compiler is what is asked; it reads the folder alone")]
    let answer = Command::new("node").arg(compiler).args(["-p", "."]).current_dir(folder.path()).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stdout));
}
