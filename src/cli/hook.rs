//! `greenroom hook run`: one hook alone, its peers scripted, and everything that it did.
//!
//! Invariant: nothing outside the script is real, and the same inputs print the same effects but for the times measured.
//! Exit codes: 0 the hook did well, 1 it failed, 2 an argument or a file is invalid, 4 there is no such function, 9 the run
//! itself failed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use greenroom_boundary::isolate::Isolation;
use greenroom_harness::load::{LoadError, typed};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{EngineName, Engines, terminal};
use crate::drivers::SystemClock;
use crate::hook_run::{HookName, Inputs, MessageInput, RunError, RunOptions, human, run as run_hook};

const EXAMPLES: &str = "Examples:
  greenroom hook run index.ts --say 'Where is my parcel?'
  greenroom hook run index.ts --messages m.json --ctx ctx.json --mocks mocks.yaml
  greenroom hook run index.ts --hook Next --payload p.json --json
  greenroom hook run index.ts --messages - < m.json

Files (JSON, or YAML if the name does not end in .json):
  messages  [{\"role\": \"user\", \"content\": \"…\"}, …]
  payload   {\"messages\": […], \"completion\": {\"content\": \"…\"}, \"tools\": […], \"error\": \"\"}
  ctx       {\"chat_id\": \"c1\", \"metadata\": {…}, \"authorized\": {\"user_id\": \"u1\"}, \"memory\": {\"chat\": {\"n\": 1}}}
  mocks     llm: { main: [{ id: hello, reply: { text: Hi } }] }
            mcp: { shop: { tools: [{ name: order }], calls: [{ when: { tool: order }, result: {} }] } }
            search: [{ results: [{ title: T, content: C }] }]
            cli: [{ when: { argv: [ls] }, events: [{ stdout: a }], exit: 0 }]
            agents: { billing: [{ id: b, reply: { text: Paid } }] }
Models, servers and agents without a mock answer by default and say so.

Exit codes: 0 well, 1 the hook failed, 2 an argument or a file is invalid, 4 the script has no such function.";

/// Arguments of `hook`.
#[derive(Args, Debug)]
pub(super) struct HookArgs {
    #[command(subcommand)]
    command: HookCommand,
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Run a hook of a script with mocks and print its effects.
    Run(Box<RunArgs>),
}

/// Arguments of `hook run`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct RunArgs {
    /// The script: TypeScript or JavaScript.
    script: PathBuf,

    /// The function; `Next` if there is a payload, else `Create`.
    #[arg(long, value_enum, ignore_case = true)]
    hook: Option<Hook>,

    /// The conversation; `-` reads it from standard input.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,

    /// The conversation: one message of a person.
    #[arg(long, value_name = "TEXT", conflicts_with = "messages")]
    say: Option<String>,

    /// The payload of `Next`.
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,

    /// The third argument of the hook.
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,

    /// The plain data of `ctx`, and what its memories hold at the start.
    #[arg(long, value_name = "FILE")]
    ctx: Option<PathBuf>,

    /// Scripted answers of models, servers and agents.
    #[arg(long, value_name = "FILE")]
    mocks: Option<PathBuf>,

    /// Seed of ids and random numbers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// How far the call is kept apart: frozen, context, isolate or process.
    #[arg(long, value_name = "LEVEL", value_parser = isolation_level, default_value = "context")]
    isolation: Isolation,

    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Cut no value.
    #[arg(long, conflicts_with = "json")]
    full: bool,
}

/// The hooks of a script.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Hook {
    /// Before the model.
    #[value(name = "Create")]
    Create,
    /// After it.
    #[value(name = "Next")]
    Next,
}

fn isolation_level(name: &str) -> Result<Isolation, String> {
    let known = Isolation::ALL.map(Isolation::name);
    let found = Isolation::ALL.into_iter().find(|level| level.name() == name);
    found.ok_or_else(|| format!("there is no such level; one of {}", known.join(", ")))
}

pub(super) fn run(args: &HookArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let HookCommand::Run(args) = &args.command;
    let inputs = match inputs(args) {
        Ok(inputs) => inputs,
        Err(error) => return Ok(refuse(&error.render(terminal::colour_on_stderr()))),
    };
    let hook = match args.hook {
        Some(Hook::Create) => HookName::Create,
        Some(Hook::Next) => HookName::Next,
        None if args.payload.is_some() => HookName::Next,
        None => HookName::Create,
    };
    let options = RunOptions {
        script: args.script.clone(),
        hook,
        engine: engines.get(args.engine)?,
        isolation: args.isolation,
        seed: args.seed,
        wall: Arc::new(SystemClock::new()),
    };
    let effects = match run_hook(&options, &inputs) {
        Ok(effects) => effects,
        Err(error) => return Ok(give_up(&error)),
    };
    if args.json {
        terminal::say(serde_json::to_string_pretty(&effects)?);
    } else {
        terminal::say(human(&effects, args.full));
    }
    Ok(if effects.failure.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn refuse(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::from(super::EXIT_INVALID)
}

fn give_up(error: &RunError) -> ExitCode {
    let _ = match error {
        RunError::Script(error) => writeln!(std::io::stderr(), "{}", error.report()),
        error => writeln!(std::io::stderr(), "{error}"),
    };
    ExitCode::from(match error {
        RunError::Script(_) | RunError::NameTaken { .. } => super::EXIT_INVALID,
        RunError::NoSuchFunction { .. } => 4,
        RunError::Runtime(_) | RunError::Encode(_) => 9,
    })
}

fn inputs(args: &RunArgs) -> Result<Inputs, LoadError> {
    let said = args.say.as_ref().map(|text| MessageInput::of_user(text));
    let messages = match (&args.messages, said) {
        (Some(file), _) => read(file)?,
        (None, said) => said.into_iter().collect(),
    };
    Ok(Inputs {
        messages,
        payload: given(args.payload.as_deref())?,
        options: given::<Map<String, Value>>(args.options.as_deref())?,
        ctx: given(args.ctx.as_deref())?,
        mocks: given(args.mocks.as_deref())?,
    })
}

fn given<T: DeserializeOwned + JsonSchema + Default>(file: Option<&Path>) -> Result<T, LoadError> {
    file.map_or_else(|| Ok(T::default()), read)
}

fn read<T: DeserializeOwned + JsonSchema>(file: &Path) -> Result<T, LoadError> {
    let (name, text) = if file == Path::new("-") {
        // Whatever has no name is JSON.
        (Path::new("standard-input.json"), std::io::read_to_string(std::io::stdin()))
    } else {
        (file, std::fs::read_to_string(file))
    };
    let text = text.map_err(|source| LoadError::Unreadable { path: name.to_owned(), source })?;
    typed(name, &text).map_err(|error| error.with_code("HOOK_INPUT"))
}
