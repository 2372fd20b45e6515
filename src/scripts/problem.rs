//! Why a script is not accepted.
//!
//! Invariant: what stands in a user's file is told with file, line, column and the line itself. Deliberately no finding of
//! problems here.

use super::typescript::ScriptSyntaxError;

/// Why an import is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProblem {
    /// There is no such file or package.
    NotFound,
    /// It leads out of the script's root.
    Outside,
    /// It is an address.
    Network,
    /// It is a module of Node.
    BuiltIn,
    /// The module has no such export.
    NoExport,
    /// The file is no ES module.
    CommonJs,
    /// `import()`.
    Dynamic,
    /// A kind of file, or an import attribute, that cannot be imported.
    Kind,
    /// Too many modules, or too much code.
    TooMuch,
    /// The file cannot be read.
    Read,
    /// The script is text in a config.
    Inline,
}

impl ImportProblem {
    /// Stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "SCRIPT_IMPORT_NOT_FOUND",
            Self::Outside => "SCRIPT_IMPORT_OUTSIDE",
            Self::Network => "SCRIPT_IMPORT_NETWORK",
            Self::BuiltIn => "SCRIPT_IMPORT_BUILT_IN",
            Self::NoExport => "SCRIPT_IMPORT_NO_EXPORT",
            Self::CommonJs => "SCRIPT_IMPORT_COMMONJS",
            Self::Dynamic => "SCRIPT_IMPORT_DYNAMIC",
            Self::Kind => "SCRIPT_IMPORT_KIND",
            Self::TooMuch => "SCRIPT_IMPORT_LIMIT",
            Self::Read => "SCRIPT_IMPORT_READ",
            Self::Inline => "SCRIPT_IMPORT_INLINE",
        }
    }
}

/// A script that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {path}: {message}")]
    Read {
        /// The file.
        path: String,
        /// What happened.
        message: String,
    },
    /// It does not parse.
    #[error(transparent)]
    Syntax(#[from] ScriptSyntaxError),
    /// Something that it imports cannot be used.
    #[error("{place}")]
    Import {
        /// Why.
        problem: ImportProblem,
        /// Where, and what to do.
        place: ScriptSyntaxError,
    },
}

impl ScriptError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "SCRIPT_READ",
            Self::Syntax(error) => error.code(),
            Self::Import { problem, .. } => problem.code(),
        }
    }

    /// The message, and below it the line with a caret, if it is about a line.
    pub fn report(&self) -> String {
        match self {
            Self::Read { .. } => self.to_string(),
            Self::Syntax(place) | Self::Import { place, .. } => format!("{self}\n{}", place.snippet),
        }
    }
}
