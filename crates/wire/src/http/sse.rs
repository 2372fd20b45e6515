//! Event streams: a reader that takes bytes as they come, and a writer.
//!
//! Invariant: the same events for every way of cutting the bytes into chunks and for LF, CRLF and CR line ends. A line is
//! decoded when it is complete, so no character is ever cut. Deliberately no reconnecting.

use std::fmt::Write;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The event's type; `None` means `message`.
    pub event: Option<String>,
    /// Its data, lines joined by LF. Empty data never is a message: such an event only carries an id.
    pub data: String,
    /// The stream's last id so far.
    pub id: Option<String>,
}

/// An event beyond the size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is beyond the limit of {limit_bytes} bytes")]
pub struct EventTooLarge {
    /// The limit.
    pub limit_bytes: usize,
}

/// Reads events from bytes.
#[derive(Debug)]
pub struct SseReader {
    limit_bytes: usize,
    line: Vec<u8>,
    /// The last byte was a CR, so that an LF now belongs to it.
    after_cr: bool,
    first_line: bool,
    data: Option<String>,
    event: Option<String>,
    last_id: Option<String>,
    retry_ms: Option<u64>,
}

impl SseReader {
    /// A reader that refuses events beyond `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            data: None,
            event: None,
            last_id: None,
            retry_ms: None,
        }
    }

    /// The id of the last event that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long to wait before connecting again, in milliseconds, if the stream said so.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Takes some bytes and returns the events that they complete.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut events = Vec::new();
        let mut rest = chunk;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(rest)?;
                break;
            };
            self.keep(&rest[..end])?;
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + bytes.len() > self.limit_bytes {
            return Err(EventTooLarge { limit_bytes: self.limit_bytes });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event = self.event.take();
            return self.data.take().map(|data| SseEvent { event, data, id: self.last_id.clone() });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.event = Some(value.to_owned()).filter(|name| !name.is_empty()),
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            _ => {}
        }
        None
    }
}

/// One event of type `message` as text for the stream. Line breaks in `data` make several lines.
pub fn write_event(data: &str) -> String {
    let mut out = String::with_capacity(data.len() + 24);
    out.push_str("event: message\n");
    for line in data.replace("\r\n", "\n").split(['\n', '\r']) {
        let _ = writeln!(out, "data: {line}");
    }
    out.push('\n');
    out
}
