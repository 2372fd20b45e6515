//! Knowledge bases: folders of texts, cut into passages.
//!
//! Invariant: passages are cut at blank lines and headings, never inside a paragraph; files are taken in the order of their
//! paths. Deliberately plain text and Markdown only.

use std::io;
use std::path::{Path, PathBuf};

use greenroom_boundary::search::SearchHit;
use serde_json::{Map, Value, json};

/// Passages grow to about this many bytes.
const PASSAGE_BYTES: usize = 1200;

/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Most files of a folder.
const MAX_FILES: usize = 10_000;

/// The texts of a folder and below, in the order of their paths.
pub(super) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() && is_text(&path) && entry.metadata()?.len() <= MAX_FILE_BYTES {
                found.push(path);
            }
        }
        if found.len() > MAX_FILES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} texts")));
        }
    }
    found.sort();
    Ok(found)
}

fn is_text(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["md", "markdown", "txt"].iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The passages of one file.
pub(super) fn passages(collection: &str, folder: &Path, file: &Path) -> io::Result<Vec<SearchHit>> {
    let text = String::from_utf8_lossy(&std::fs::read(file)?).into_owned();
    let id = file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let mut title = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut hits: Vec<SearchHit> = Vec::new();
    let mut passage = String::new();
    let mut push = |title: &str, passage: &mut String| {
        let content = std::mem::take(passage);
        if !content.trim().is_empty() {
            let metadata: Map<String, Value> = std::iter::once(("passage".to_owned(), json!(hits.len() + 1))).collect();
            hits.push(SearchHit {
                title: Some(title.to_owned()),
                content: content.trim().to_owned(),
                document_id: Some(id.clone()),
                collection: Some(collection.to_owned()),
                metadata: Some(metadata),
                ..SearchHit::default()
            });
        }
    };
    for paragraph in text.split("\n\n") {
        let heading = paragraph.trim_start().lines().next().filter(|line| line.starts_with('#'));
        if heading.is_some() || passage.len() + paragraph.len() > PASSAGE_BYTES {
            push(&title, &mut passage);
        }
        if let Some(heading) = heading {
            heading.trim_start_matches('#').trim().clone_into(&mut title);
        }
        passage.push_str(paragraph);
        passage.push_str("\n\n");
    }
    push(&title, &mut passage);
    Ok(hits)
}
