//! Strict YAML: a subset that every reader, of YAML 1.1 or 1.2, understands alike.
//!
//! Invariant: what two readers could read differently is refused with its reason: repeated keys, anchors and aliases,
//! merge keys, tags, directives, tabs as indentation, `yes`/`on` and their like, sexagesimal and zero-led numbers.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::{Number, Value};

use super::node::{Entry, Kind, Node, Problem, Span};

/// Words that are booleans in YAML 1.1 and texts in YAML 1.2.
const OLD_BOOLEANS: [&str; 4] = ["yes", "no", "on", "off"];

/// Reads a YAML file.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_comments: false,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
    };
    let events = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader { events: Events { parser: events }, scalar_lines: Vec::new() };
    let root = reader.document()?;
    no_tabs(text, &reader.scalar_lines)?;
    Ok(root)
}

/// The parser's events with its errors turned into problems.
struct Events<'t> {
    parser: Parser<'t, StrInput<'t>>,
}

type Located<'t> = (Event<'t>, Span, LineRange);

/// First and last line of an event.
type LineRange = (u32, u32);

impl<'t> Iterator for Events<'t> {
    type Item = Result<Located<'t>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.parser.next()?;
        Some(match next {
            Err(error) => Err(unreadable(error)),
            Ok((_, span)) if span.tag_start.is_some() => Err(no_tags(span_of(&span.tag_span().unwrap_or(span)))),
            Ok((event, span)) => Ok((event, span_of(&span), (line_of(&span.start), line_of(&span.end)))),
        })
    }
}

fn line_of(marker: &granit_parser::Marker) -> u32 {
    u32::try_from(marker.line()).unwrap_or(u32::MAX)
}

fn column_of(marker: &granit_parser::Marker) -> u32 {
    u32::try_from(marker.col() + 1).unwrap_or(u32::MAX)
}

fn span_of(span: &granit_parser::Span) -> Span {
    let width = if span.start.line() == span.end.line() { span.end.col().saturating_sub(span.start.col()) } else { 1 };
    Span { line: line_of(&span.start), column: column_of(&span.start), width: u32::try_from(width).unwrap_or(1).max(1) }
}

fn unreadable(error: ScanError) -> Problem {
    let at = error.marker();
    Problem::new(Span { line: line_of(at), column: column_of(at), width: 1 }, format!("this is no YAML: {}", error.info()))
}

struct Reader<'t> {
    events: Events<'t>,
    /// Lines that the insides of scalars lie on; tabs are content there.
    scalar_lines: Vec<LineRange>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Located<'t>, Problem> {
        match self.events.next().unwrap_or_else(|| Ok((Event::StreamEnd, Span::default(), (0, 0))))? {
            (Event::Anchor(..) | Event::Alias(_) | Event::UnresolvedAlias(_), span, _) => Err(no_anchors(span)),
            event => Ok(event),
        }
    }

    fn document(&mut self) -> Result<Node, Problem> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), ..) => {}
                (Event::StreamEnd, ..) => {
                    return Err(Problem::new(Span { line: 1, column: 1, width: 1 }, "the file is empty"));
                }
                (event, span, lines) => {
                    let root = self.node(event, span, lines)?;
                    self.end()?;
                    return Ok(root);
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Problem> {
        loop {
            match self.next()? {
                (Event::StreamEnd, ..) => return Ok(()),
                (Event::DocumentEnd, ..) => {}
                (_, span, _) => return Err(Problem::new(span, "a file holds one document; split it at `---`")),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, lines: LineRange) -> Result<Node, Problem> {
        match event {
            Event::Scalar(text, style, ..) => {
                if lines.0 < lines.1 {
                    self.scalar_lines.push((lines.0 + 1, lines.1));
                }
                Ok(Node { span, kind: Kind::Scalar(scalar(&text, style, span)?) })
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, ..) => return Ok(Node { span, kind: Kind::Sequence(items) }),
                        (event, span, lines) => items.push(self.node(event, span, lines)?),
                    }
                }
            }
            Event::MappingStart(..) => self.mapping(span),
            _ => Err(Problem::new(span, "a value was expected here")),
        }
    }

    fn mapping(&mut self, span: Span) -> Result<Node, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut first: BTreeMap<String, u32> = BTreeMap::new();
        loop {
            let (key, key_span) = match self.next()? {
                (Event::MappingEnd, ..) => return Ok(Node { span, kind: Kind::Mapping(entries) }),
                (Event::Scalar(text, style, ..), span, _) => (key_text(&text, style, span)?, span),
                (_, span, _) => return Err(Problem::new(span, "a key must be a text")),
            };
            if let Some(line) = first.insert(key.clone(), key_span.line) {
                return Err(Problem::new(key_span, format!("the key `{key}` is given twice"))
                    .help(format!("the first one is in line {line}")));
            }
            let (event, span, lines) = self.next()?;
            let value = self.node(event, span, lines)?;
            entries.push(Entry { key, key_span, value });
        }
    }
}

fn no_tags(span: Span) -> Problem {
    Problem::new(span, "tags (`!…`) are not read here").help("write the plain value; operators such as `$re` are keys")
}

fn no_anchors(span: Span) -> Problem {
    Problem::new(span, "anchors and aliases (`&…`, `*…`) are not read here")
        .help("repeat the value (scenarios have `matrix`); a text that starts so needs quotes")
}

fn key_text(text: &str, style: ScalarStyle, span: Span) -> Result<String, Problem> {
    if style != ScalarStyle::Plain {
        return Ok(text.to_owned());
    }
    if text == "<<" {
        return Err(Problem::new(span, "merge keys (`<<`) are not read here").help("repeat the keys"));
    }
    match scalar(text, style, span)? {
        Value::String(text) => Ok(text),
        _ => Err(Problem::new(span, format!("the key `{text}` is not a text")).help(format!("quote it: \"{text}\""))),
    }
}

fn scalar(text: &str, style: ScalarStyle, span: Span) -> Result<Value, Problem> {
    if style != ScalarStyle::Plain {
        return Ok(Value::String(text.to_owned()));
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let lower = text.to_ascii_lowercase();
    if OLD_BOOLEANS.contains(&lower.as_str()) {
        return Err(Problem::new(span, format!("`{text}` is a boolean in YAML 1.1 and a text in YAML 1.2"))
            .help(format!("write `true` or `false`, or quote it: \"{text}\"")));
    }
    number(text, span).map(|number| number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// A plain scalar as a number, if it is one.
fn number(text: &str, span: Span) -> Result<Option<Number>, Problem> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let ambiguous =
        |what: &str| Err(Problem::new(span, format!("`{text}` {what}")).help(format!("quote it if it is a text: \"{text}\"")));
    if unsigned.contains(':') && unsigned.split(':').all(digits) {
        return ambiguous("is a number to the base of 60 in YAML 1.1");
    }
    if unsigned.starts_with('0') && unsigned.len() > 1 && digits(unsigned) {
        return ambiguous("is an octal number in YAML 1.1 and a decimal one in YAML 1.2");
    }
    if unsigned.starts_with("0x") || unsigned.starts_with("0o") {
        return ambiguous("is a number in YAML and none in JSON");
    }
    if matches!(unsigned.to_ascii_lowercase().as_str(), ".inf" | ".nan") {
        return ambiguous("is a number in YAML and none in JSON");
    }
    if digits(unsigned) {
        let plain = text.strip_prefix('+').unwrap_or(text);
        let number = plain.parse::<i64>().map(Number::from).or_else(|_| plain.parse::<u64>().map(Number::from));
        return number.map(Some).or_else(|_| ambiguous("is too large for a number"));
    }
    let floating = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().any(|b| b.is_ascii_digit())
        && unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    Ok(floating.then(|| text.parse::<f64>().ok().and_then(Number::from_f64)).flatten())
}

/// Tabs as indentation look like anything; YAML forbids them in part, and this forbids the rest.
fn no_tabs(text: &str, scalar_lines: &[LineRange]) -> Result<(), Problem> {
    for (index, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let Some(tab) = line[..indent].find('\t') else { continue };
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let inside = scalar_lines.iter().any(|(first, last)| (*first..=*last).contains(&number));
        if !inside && indent < line.len() {
            let column = u32::try_from(tab + 1).unwrap_or(1);
            return Err(Problem::new(Span { line: number, column, width: 1 }, "a tab is used as indentation")
                .help("indent with spaces"));
        }
    }
    Ok(())
}
