//! The files that a script imports, and those that they import.
//!
//! Invariant: only relative specifiers count, and only files that exist; a file that does not parse imports nothing.
//! Deliberately no loading: this is for those who watch files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

/// Endings that an import may leave out.
const ENDINGS: [&str; 6] = ["", ".ts", ".js", ".mjs", "/index.ts", "/index.js"];

/// Most files that are followed.
const MAX_FILES: usize = 1000;

/// The files below a script, without it, by their real paths.
pub fn imported_files(script: &Path) -> BTreeSet<PathBuf> {
    let Ok(script) = script.canonicalize() else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    let mut open = vec![script.clone()];
    while let Some(file) = open.pop() {
        for import in direct(&file) {
            if found.len() < MAX_FILES && import != script && found.insert(import.clone()) {
                open.push(import);
            }
        }
    }
    found
}

fn direct(file: &Path) -> Vec<PathBuf> {
    let Ok(source) = std::fs::read_to_string(file) else { return Vec::new() };
    // Who nests deeper than this stack bears has a script that is not accepted anyway.
    if source.len() > super::typescript::MAX_SOURCE_BYTES || !source.contains(['\'', '"']) {
        return Vec::new();
    }
    let specifiers = super::typescript::on_deep_stack(source.len(), || {
        let allocator = Allocator::default();
        let kind = SourceType::from_path(file).unwrap_or_else(|_| SourceType::ts());
        let parsed = Parser::new(&allocator, &source, kind).parse();
        parsed.module_record.requested_modules.keys().map(|name| name.as_str().to_owned()).collect::<Vec<String>>()
    });
    let folder = file.parent().unwrap_or(Path::new(""));
    let relative = specifiers.unwrap_or_default().into_iter().filter(|name| name.starts_with("./") || name.starts_with("../"));
    let exists = |name: String| {
        let candidates = ENDINGS.iter().map(|ending| folder.join(format!("{name}{ending}")));
        // The real path: a file is one file, whatever way leads to it.
        candidates.into_iter().find(|path| path.is_file())?.canonicalize().ok()
    };
    relative.filter_map(exists).collect()
}

#[cfg(test)]
mod tests {
    use super::imported_files;

    #[test]
    fn relative_imports_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let script = write("index.ts", "import { a } from './a';\nimport type { T } from '../t.ts';\nimport x from 'npm';\n");
        let a = write("a.ts", "export * from './lib';\nimport './index.ts';\nexport const a: number = 1;\n");
        let lib = write("lib/index.js", "export * from '../a.ts';\nimport './none.ts';\n");
        let found: Vec<_> = imported_files(&script).into_iter().collect();
        let mut wanted = [a.canonicalize().unwrap(), lib.canonicalize().unwrap()].to_vec();
        wanted.sort();
        assert_eq!(found, wanted);
        assert!(imported_files(&folder.path().join("none.ts")).is_empty());
    }
}
