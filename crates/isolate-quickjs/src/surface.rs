//! What a script offers, and its code without `export`.
//!
//! Invariant: the code keeps its length and its line breaks, so every position stays; only what is written at the top level
//! is offered, never a built-in function. Deliberately no `import` and no `export … from`: a script that has them runs as a module.

use crate::lexer::{Token, tokens};

/// The name that an unnamed default export gets.
pub(crate) const DEFAULT: &str = "__default";

/// A name that a script offers. Whether it is a function shows when the script has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The name to call it by.
    pub(crate) name: String,
    /// Its name in the script.
    pub(crate) local: String,
}

/// A script as the engine runs it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Surface {
    /// The code.
    pub(crate) code: String,
    /// What it offers, in source order.
    pub(crate) offers: Vec<Offer>,
    /// Its top level awaits, so that it has to be a module.
    pub(crate) awaits: bool,
}

/// Reads what a script offers.
pub(crate) fn surface(source: &str) -> Surface {
    let tokens = tokens(source);
    let mut reader = Reader { tokens: &tokens, edits: Vec::new(), offers: Vec::new() };
    for (index, token) in tokens.iter().enumerate() {
        if token.depth == 0 && reader.starts_statement(index) {
            reader.statement(index);
        }
    }
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    for (start, end, text) in &reader.edits {
        code.push_str(&source[at..*start]);
        code.push_str(&overwrite(&source[*start..*end], text));
        at = *end;
    }
    code.push_str(&source[at..]);
    let mut offers: Vec<Offer> = Vec::new();
    for offer in reader.offers {
        if !offers.iter().any(|known| known.name == offer.name) {
            offers.push(offer);
        }
    }
    let awaits = tokens.iter().any(|token| token.depth == 0 && token.text == "await");
    Surface { code, offers, awaits }
}

struct Reader<'t, 's> {
    tokens: &'t [Token<'s>],
    edits: Vec<(usize, usize, String)>,
    offers: Vec<Offer>,
}

impl<'s> Reader<'_, 's> {
    fn text(&self, index: usize) -> &'s str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    fn starts_statement(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).and_then(|before| self.tokens.get(before)) else { return true };
        matches!(before.text, ";" | "}")
            || self.tokens[index].after_break
                && (before.is_word()
                    || before.text.ends_with([')', ']', '"', '\'', '`'])
                    || before.text.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn offer(&mut self, name: &str, local: &str) {
        self.offers.push(Offer { name: name.to_owned(), local: local.to_owned() });
    }

    fn blank(&mut self, from: usize, to: usize) {
        self.edits.push((from, to, String::new()));
    }

    /// `function name`, `async function* name`: the index of what follows the keyword, and how it is written.
    fn function_head(&self, index: usize) -> Option<(usize, String)> {
        let (mut at, mut written) = (index, String::new());
        if self.text(at) == "async" && self.text(at + 1) == "function" {
            written.push_str("async ");
            at += 1;
        }
        if self.text(at) != "function" {
            return None;
        }
        written.push_str("function");
        at += 1;
        if self.text(at) == "*" {
            written.push('*');
            at += 1;
        }
        Some((at, written))
    }

    fn statement(&mut self, index: usize) {
        if let Some((name, _)) = self.function_head(index) {
            let name = self.text(name);
            if name != "(" {
                self.offer(name, name);
            }
        } else if self.text(index) == "export" {
            self.export(index);
        }
    }

    fn export(&mut self, index: usize) {
        let (start, next) = (self.tokens[index].start, index + 1);
        match self.text(next) {
            "default" => self.export_default(start, next + 1),
            "{" => self.export_list(start, next),
            "const" | "let" | "var" => {
                self.blank(start, self.tokens[index].end());
                self.declared_names(next);
            }
            "class" => self.blank(start, self.tokens[index].end()),
            _ => {
                if let Some((name, _)) = self.function_head(next) {
                    let name = self.text(name);
                    self.blank(start, self.tokens[index].end());
                    self.offer(name, name);
                }
            }
        }
    }

    fn export_default(&mut self, start: usize, what: usize) {
        let Some(default) = self.tokens.get(what - 1) else { return };
        if let Some((name, written)) = self.function_head(what) {
            let Some(token) = self.tokens.get(name) else { return };
            if token.text == "(" {
                self.edits.push((start, token.start, format!("{written} {DEFAULT}")));
                self.offer("default", DEFAULT);
            } else {
                self.blank(start, default.end());
                self.offer("default", token.text);
            }
        } else {
            self.edits.push((start, default.end(), format!("var {DEFAULT}=")));
            self.offer("default", DEFAULT);
        }
    }

    /// `{ a, b as c }`; with `from` it is left for the engine to refuse.
    fn export_list(&mut self, start: usize, open: usize) {
        let close = (open + 1..self.tokens.len()).find(|at| self.text(*at) == "}");
        let Some(close) = close.filter(|close| self.text(close + 1) != "from") else { return };
        let mut at = open + 1;
        while at < close {
            let local = self.text(at);
            let renamed = self.text(at + 1) == "as";
            let name = if renamed { self.text(at + 2) } else { local };
            self.offer(name.trim_matches(['"', '\'']), local);
            at += if renamed { 4 } else { 2 };
        }
        // A `;`, for what stood before the list ended there.
        self.edits.push((start, self.tokens[close].end(), ";".to_owned()));
    }

    /// The names of `const a = …, b = …`.
    fn declared_names(&mut self, keyword: usize) {
        let mut at = keyword;
        loop {
            let Some(name) = self.tokens.get(at + 1).filter(|token| token.is_word()) else { return };
            self.offer(name.text, name.text);
            let next = (at + 2..self.tokens.len()).find(|at| {
                let token = &self.tokens[*at];
                token.depth == 0 && (matches!(token.text, "," | ";") || token.after_break && self.starts_statement(*at))
            });
            match next {
                Some(comma) if self.text(comma) == "," => at = comma,
                _ => return,
            }
        }
    }
}

/// `text` in the place of `old`, padded to its length; line breaks stay, and characters outside ASCII become spaces.
fn overwrite(old: &str, text: &str) -> String {
    let mut written = text.chars();
    let mut out: String = old
        .chars()
        .map(|c| if matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}') { c } else { written.next().unwrap_or(' ') })
        .collect();
    // Only if the old text had more line breaks than blanks to spare.
    out.extend(written);
    out
}

#[cfg(test)]
mod tests {
    use super::surface;

    #[test]
    fn offers_and_positions() {
        let source = "export const a = () => 1, b = [2, 3], c = 4\nexport default async function (x) {}\nfunction d() {}\n\
                      const e = function inner() {}\nexport { d as f, e }\nexport\nfunction g() {}\nconst re = /export function h/;\n\
                      `${`export`} export function i() {}`\nx = { export: 1 }\nexport class K {}\nif (a) { function no() {} }\n";
        let surface = surface(source);
        let lengths = |text: &str| text.split('\n').map(str::len).collect::<Vec<_>>();
        assert_eq!(lengths(&surface.code), lengths(source));
        assert!(!surface.code.contains("export const"), "{}", surface.code);
        let offers: Vec<String> = surface.offers.iter().map(|offer| format!("{}={}", offer.name, offer.local)).collect();
        assert_eq!(offers, ["a=a", "b=b", "c=c", "default=__default", "d=d", "f=d", "e=e", "g=g"]);
        assert!(surface.code.contains("async function __default      (x) {}"), "{}", surface.code);
    }

    #[test]
    fn default_expressions() {
        assert_eq!(surface("export default (ctx) => 1").code, "var __default= (ctx) => 1");
        assert_eq!(surface("export default function named() {}").code, "               function named() {}");
        assert_eq!(surface("export { a } from './b'").code, "export { a } from './b'");
    }
}
