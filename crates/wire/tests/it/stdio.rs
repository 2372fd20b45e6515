//! Lines and frames.

use greenroom_wire::stdio::{LineSink, LineSource, StdioOptions};
use greenroom_wire::{FrameSink, FrameSource, McpError};
use proptest::prelude::*;
use test_case::test_case;
use tokio_test::io::Builder;

use crate::support::frame;

async fn read(chunks: &[&[u8]], limit_bytes: usize) -> Vec<String> {
    let mut script = Builder::new();
    for chunk in chunks {
        script.read(chunk);
    }
    let options = StdioOptions { server: "s".to_owned(), limit_bytes };
    let mut source = LineSource::new(script.build(), options);
    let mut seen = Vec::new();
    while let Some(item) = source.next().await {
        seen.push(match item {
            Ok(frame) => frame.to_text(),
            Err(McpError::TooLarge { limit_bytes, .. }) => {
                format!("beyond {limit_bytes}, id {}", source.lost_id().unwrap_or("?".to_owned()))
            }
            Err(error) => error.code().to_owned(),
        });
    }
    seen
}

#[test_case(&[b"{\"a\":1}\n{\"b\":2}\n"] => vec!["{\"a\":1}", "{\"b\":2}"]; "two in one read")]
#[test_case(&[b"{\"a\"", b":1", b"}\n"] => vec!["{\"a\":1}"]; "one in three reads")]
#[test_case(&[b"{\"a\":1}\r", b"\n\r\n  \n\n{\"b\":2}\r\n"] => vec!["{\"a\":1}", "{\"b\":2}"]; "crlf and blank lines")]
#[test_case(&[b"\"\xf0\x9f", b"\xa7", b"\xaa\"\n"] => vec!["\"🧪\""]; "a character across reads")]
#[test_case(&[b"Server ready.\n{}\n"] => vec!["Server ready.", "{}"]; "banner")]
#[test_case(&[b"{}\n{\"cut"] => vec!["{}", "{\"cut"]; "no line end at the end")]
#[test_case(&[b"12345678901234567890\n"] => vec!["12345678901234567890"]; "exactly the limit")]
#[test_case(&[b"12345678901234567890\r", b"\n"] => vec!["12345678901234567890"]; "exactly the limit with crlf")]
#[test_case(&[b"123456789012345678901\n{}\n"] => vec!["beyond 20, id ?", "{}"]; "one byte beyond the limit")]
#[test_case(&[b"{\"result\":[1,2,3,4,5,6", b",7,{\"id\":1}],\"id\":", b"42}\n{}\n"] => vec!["beyond 20, id 42", "{}"]; "id at the end of a lost answer")]
#[test_case(&[b"{\"id\":\"q\",\"error\":{\"message\":\"..........", b"\\\"id\\\":2\"}}\n{}\n"] => vec!["beyond 20, id \"q\"", "{}"]; "id at the start of a lost answer")]
#[test_case(&[b"{\"id\":3,\"method\":\"x\",\"params\":{\"result\":1}}\n"] => vec!["beyond 20, id null"]; "a lost request answers nothing")]
#[test_case(&[b"123456789012345678901"] => vec!["beyond 20, id ?"]; "lost at the end")]
#[tokio::test]
async fn lines_become_frames(chunks: &[&[u8]]) -> Vec<String> {
    read(chunks, 20).await
}

#[tokio::test]
async fn a_read_error_ends_the_source() {
    let script = Builder::new().read(b"{}\n").read_error(std::io::ErrorKind::ConnectionReset.into()).build();
    let mut source = LineSource::new(script, StdioOptions::new("s"));
    assert_eq!(source.next().await.unwrap().unwrap(), frame("{}"));
    assert_eq!(source.next().await.unwrap().unwrap_err().code(), "MCP_CLOSED");
    assert!(source.next().await.is_none());
}

#[tokio::test]
async fn a_frame_is_one_line() {
    let script = Builder::new().write(b"{\"a\":1}\n").write(b"{  \"a\": \"\\n\" }\n").build();
    let mut sink = LineSink::new(script, "s".to_owned());
    sink.send(frame("{\"a\":1}")).await.unwrap();
    sink.send(frame("{\r\n\"a\": \"\\n\"\n}")).await.unwrap();
}

#[tokio::test]
async fn a_broken_pipe_is_told() {
    let script = Builder::new().write_error(std::io::ErrorKind::BrokenPipe.into()).build();
    let mut sink = LineSink::new(script, "s".to_owned());
    assert_eq!(sink.send(frame("{}")).await.unwrap_err().code(), "MCP_CLOSED");
    sink.close().await;
    sink.close().await;
    assert_eq!(sink.send(frame("{}")).await.unwrap_err().code(), "MCP_CLOSED");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_gives_the_same_frames(lines in prop::collection::vec("[a-z漢🧪\"{} ]{0,30}", 0..8), step in 1..40usize) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let chunks: Vec<_> = text.as_bytes().chunks(step).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let cut = runtime.block_on(read(&chunks, 40));
        let expected: Vec<_> = lines
            .iter()
            .filter(|line| !line.trim_matches(' ').is_empty())
            .map(|line| if line.len() > 40 { "beyond 40, id ?".to_owned() } else { line.clone() })
            .collect();
        // What a line beyond the limit was is guessed from its text, which here is not always JSON.
        let plain = |seen: Vec<String>| seen.into_iter().map(|line| if line.starts_with("beyond") { "beyond".to_owned() } else { line });
        prop_assert_eq!(plain(cut).collect::<Vec<_>>(), plain(expected).collect::<Vec<_>>());
    }
}
