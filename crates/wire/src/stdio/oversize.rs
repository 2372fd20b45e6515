//! Finds the id in a message that is too large to keep.
//!
//! Invariant: constant memory, one pass, in chunks of any size. It reads the `id` of the outermost object of well-formed
//! JSON; from anything else it may find nothing, never something large. Deliberately no unescaping: an id with escapes is
//! not found.

const KEEP_BYTES: usize = 64;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expect {
    #[default]
    Key,
    Colon,
    Value,
}

/// What is known of a message that was too large.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// The id as JSON text if the message was a response, `null` if it was none, `None` if that could not be seen.
    pub(crate) answered: Option<String>,
    /// The id as JSON text if the message was a request.
    pub(crate) request: Option<String>,
}

/// Looks for the outermost `id` as bytes pass by.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    expect: Expect,
    /// The outermost key or value under way, if it is short.
    token: Vec<u8>,
    token_cut: bool,
    key_is_id: bool,
    is_response: bool,
    has_method: bool,
    found: Option<String>,
}

impl IdScanner {
    /// Passes some bytes by.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// Which request the message answered or was.
    pub(crate) fn finish(self) -> Lost {
        if self.has_method {
            return Lost { answered: Some("null".to_owned()), request: self.found.filter(|id| id != "null") };
        }
        Lost { answered: self.found.filter(|_| self.is_response), request: None }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            return self.step_in_string(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 && self.expect == Expect::Colon => self.end_key(),
            b',' if self.depth == 1 => self.end_value(),
            byte if !byte.is_ascii_whitespace() => self.keep(byte),
            _ => {}
        }
    }

    fn step_in_string(&mut self, byte: u8) {
        self.keep(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => {
                self.in_string = false;
                if self.depth == 1 && self.expect == Expect::Key {
                    self.expect = Expect::Colon;
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        if self.token.len() < KEEP_BYTES {
            self.token.push(byte);
        } else {
            self.token_cut = true;
        }
    }

    fn end_key(&mut self) {
        self.key_is_id = self.token == b"\"id\"";
        self.is_response |= self.token == b"\"result\"" || self.token == b"\"error\"";
        self.has_method |= self.token == b"\"method\"";
        self.token.clear();
        self.token_cut = false;
        self.expect = Expect::Value;
    }

    fn end_value(&mut self) {
        let token = std::mem::take(&mut self.token);
        if self.key_is_id && !self.token_cut && !token.contains(&b'\\') {
            self.found = String::from_utf8(token).ok().filter(|text| !text.is_empty());
        }
        self.token_cut = false;
        self.key_is_id = false;
        self.expect = Expect::Key;
    }
}
