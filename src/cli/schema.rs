//! `greenroom schema`: the JSON Schemas of the files that people write.
//!
//! Invariant: each schema is made from the types that read the file. Deliberately no hand-written schema.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::terminal;

/// Which file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum SchemaOf {
    /// Scenario files.
    #[default]
    Scenario,
    /// `greenroom.yaml`.
    Config,
}

/// Print the JSON Schema of scenario files, or of greenroom.yaml.
#[derive(Args, Clone, Debug)]
pub(super) struct SchemaArgs {
    /// Which file the schema is of.
    #[arg(value_enum, default_value_t)]
    of: SchemaOf,

    /// Write it there instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints or writes the schema.
pub(super) fn run(args: &SchemaArgs) -> ExitCode {
    let schema = match args.of {
        SchemaOf::Scenario => greenroom_harness::model::schema(),
        SchemaOf::Config => crate::config::config_schema(),
    };
    let text = format!("{schema:#}\n");
    terminal::write_document("the schema", &text, args.output.as_deref())
}
