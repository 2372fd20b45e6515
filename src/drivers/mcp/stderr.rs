//! What a server writes to stderr: read always, kept a little, shown masked.
//!
//! Invariant: a server never blocks on its stderr, memory is bounded, and no registered secret is shown. Deliberately no
//! meaning: stderr is free text and no sign of an error.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::Credentials;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes kept: more than is shown, so that a secret cut at the beginning is never in what is shown.
const KEPT_BYTES: usize = 64 * 1024;
const SHOWN_LINES: usize = 8;
const SHOWN_LINE_CHARS: usize = 300;
const SHOWN_BYTES: usize = 8 * 1024;

/// The end of a server's stderr.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Reads until the end; never stops reading before.
    pub(super) async fn drain(self, mut pipe: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 * 1024];
        while let Ok(count) = pipe.read(&mut chunk).await {
            if count == 0 {
                break;
            }
            self.keep(&chunk[..count]);
        }
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..excess);
    }

    /// The last lines, masked, long ones cut; empty if there are none.
    pub(super) fn last_lines(&self, credentials: &Credentials) -> String {
        let text = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(kept.make_contiguous()).into_owned()
        };
        let masked = credentials.mask(&text);
        let start = masked.len().saturating_sub(SHOWN_BYTES);
        let start = (start..=masked.len()).find(|at| masked.is_char_boundary(*at)).unwrap_or(masked.len());
        let mut lines: Vec<_> = masked[start..].lines().rev().filter(|l| !l.trim().is_empty()).take(SHOWN_LINES).collect();
        lines.reverse();
        lines.into_iter().map(shorten).collect::<Vec<_>>().join("\n")
    }
}

/// Cuts a long line and takes control characters out, so that nothing can play with a terminal.
fn shorten(line: &str) -> String {
    let mut shown: String = line.chars().take(SHOWN_LINE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().nth(SHOWN_LINE_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    fn tail(bytes: &[u8]) -> String {
        let credentials = Credentials::default();
        credentials.register("mcp.shop/KEY", "sk-secret-0001");
        let tail = StderrTail::default();
        for chunk in bytes.chunks(1000) {
            tail.keep(chunk);
        }
        tail.last_lines(&credentials)
    }

    #[test_case(b"", "" ; "nothing")]
    #[test_case(b"one\ntwo\n\n", "one\ntwo" ; "blank lines")]
    #[test_case(b"key sk-secret-0001 refused", "key «secret:mcp.shop/KEY» refused" ; "a secret")]
    #[test_case(b"\x1b[31mred", " [31mred" ; "an escape")]
    #[test_case(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "2\n3\n4\n5\n6\n7\n8\n9" ; "too many lines")]
    fn shows(bytes: &[u8], shown: &str) {
        assert_eq!(tail(bytes), shown);
    }

    #[test]
    fn memory_is_bounded_and_a_long_line_is_cut() {
        let shown = tail(&vec![b'x'; 3 << 20]);
        assert_eq!(shown.chars().count(), SHOWN_LINE_CHARS + 1);
    }
}
