//! JavaScript's tokens, just well enough to see what stands at the top level.
//!
//! Invariant: text in comments, strings, templates and regular expressions is never taken for code. Deliberately no
//! grammar: the engine itself reports what is wrong with a script.

/// A token outside all comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'s> {
    /// Its text.
    pub(crate) text: &'s str,
    /// Its byte offset.
    pub(crate) start: usize,
    /// How many brackets are open around it; a bracket counts as inside its pair's surroundings.
    pub(crate) depth: usize,
    /// A line break stands before it.
    pub(crate) after_break: bool,
}

impl Token<'_> {
    /// Byte offset behind it.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is a name or a keyword.
    pub(crate) fn is_word(&self) -> bool {
        self.text.chars().next().is_some_and(is_word_start)
    }
}

/// Words after which a `/` starts a regular expression.
const BEFORE_REGEX: &[&str] =
    &["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "instanceof", "yield", "await"];

/// All tokens of a source.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut depth = 0usize;
    loop {
        let after_break = lexer.skip_blank();
        let start = lexer.at;
        let Some(c) = lexer.peek() else { return tokens };
        let regex_may_start = tokens.last().is_none_or(|last| {
            if last.is_word() {
                BEFORE_REGEX.contains(&last.text)
            } else {
                last.text.ends_with(|c: char| "(,=:[!&|?{};+-*%~^<>".contains(c))
            }
        });
        match c {
            '"' | '\'' => lexer.string(c),
            '`' => lexer.template(),
            '/' if regex_may_start => lexer.regex(),
            c if is_word_start(c) || c == '#' => lexer.word(),
            c if c.is_ascii_digit() => lexer.word(),
            c => lexer.at += c.len_utf8(),
        }
        let text = &source[start..lexer.at];
        if matches!(text, ")" | "]" | "}") {
            depth = depth.saturating_sub(1);
        }
        tokens.push(Token { text, start, depth, after_break });
        if matches!(text, "(" | "[" | "{") {
            depth += 1;
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Skips white space and comments; whether there was a line break.
    fn skip_blank(&mut self) -> bool {
        let mut broken = false;
        while let Some(c) = self.peek() {
            let rest = &self.source[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let length = rest.find("*/").map_or(rest.len(), |at| at + 2);
                broken |= rest[..length].contains('\n');
                self.at += length;
            } else if c.is_whitespace() || c == '\u{feff}' {
                broken |= matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
                self.at += c.len_utf8();
            } else {
                break;
            }
        }
        broken
    }

    fn word(&mut self) {
        self.next();
        while self.peek().is_some_and(|c| is_word_start(c) || c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}')) {
            self.next();
        }
    }

    fn string(&mut self, quote: char) {
        self.next();
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == quote || c == '\n' {
                return;
            }
        }
    }

    fn regex(&mut self) {
        self.next();
        let mut in_class = false;
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next();
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => return,
                '\n' => return,
                _ => {}
            }
        }
    }

    /// A template with everything in it, nested templates included.
    fn template(&mut self) {
        self.next();
        while let Some(c) = self.next() {
            if c == '\\' {
                self.next();
            } else if c == '`' {
                return;
            } else if c == '$' && self.peek() == Some('{') {
                self.next();
                self.hole();
            }
        }
    }

    /// The inside of `${…}`.
    fn hole(&mut self) {
        let mut open = 1;
        while open > 0 {
            self.skip_blank();
            let Some(c) = self.peek() else { return };
            match c {
                '"' | '\'' => self.string(c),
                '`' => self.template(),
                '{' => {
                    open += 1;
                    self.next();
                }
                '}' => {
                    open -= 1;
                    self.next();
                }
                _ => {
                    self.next();
                }
            }
        }
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}
