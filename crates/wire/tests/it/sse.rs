//! Event streams, cut at unlucky places.

use greenroom_wire::http::sse::{SseEvent, SseReader, write_event};
use proptest::prelude::*;
use test_case::test_case;

const STREAM: &str = "\u{feff}: a comment\nid: 1\nretry: 250\ndata: first é 漢\ndata: second 🧪\u{2028}x\n\nid: 2\ndata:\n\n\
                      event: other\ndata:no space\n\nid: 3\n\ndata: last\nunknown: 7\ndata\n\ndata: unfinished\n";

fn event(event: Option<&str>, data: &str, id: &str) -> SseEvent {
    SseEvent { event: event.map(str::to_owned), data: data.to_owned(), id: Some(id.to_owned()) }
}

fn expected() -> Vec<SseEvent> {
    vec![
        event(None, "first é 漢\nsecond 🧪\u{2028}x", "1"),
        event(None, "", "2"),
        event(Some("other"), "no space", "2"),
        event(None, "last\n", "3"),
    ]
}

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<SseEvent>, SseReader) {
    let mut reader = SseReader::new(1024);
    let events = chunks.into_iter().flat_map(|chunk| reader.feed(chunk).unwrap()).collect();
    (events, reader)
}

/// C14: the same events, wherever the bytes are cut.
#[test_case("\n"; "lf")]
#[test_case("\r\n"; "crlf")]
#[test_case("\r"; "cr")]
fn every_cut_gives_the_same_events(line_end: &str) {
    let stream = STREAM.replace('\n', line_end).into_bytes();
    for cut in 0..=stream.len() {
        let (events, reader) = read([&stream[..cut], &stream[cut..]]);
        assert_eq!(events, expected(), "cut at {cut}");
        assert_eq!((reader.last_id(), reader.retry_ms()), (Some("3"), Some(250)));
    }
    let (events, _) = read(stream.chunks(1));
    assert_eq!(events, expected());
}

#[test_case(b"retry: 1s\n\n", None, None; "retry no number")]
#[test_case(b"id: a\0b\n\n", None, None; "id with nul")]
#[test_case(b"id: 5\nid\n\n", Some(""), None; "id taken back")]
#[test_case(b"retry: 07\n\n", None, Some(7); "retry with zeros")]
fn fields_without_data_make_no_event(stream: &[u8], last_id: Option<&str>, retry_ms: Option<u64>) {
    let (events, reader) = read([stream]);
    assert_eq!(events, []);
    assert_eq!((reader.last_id(), reader.retry_ms()), (last_id, retry_ms));
}

#[test]
fn an_event_beyond_the_limit_is_refused() {
    let mut reader = SseReader::new(16);
    assert_eq!(reader.feed(b"data: 0123456789\n").unwrap(), []);
    assert_eq!(reader.feed(b"data: 0123456789\n").unwrap_err().limit_bytes, 16);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(messages in prop::collection::vec("[^\r]{1,40}", 0..6), step in 1..9usize) {
        let stream: String = messages.iter().map(|data| write_event(data)).collect();
        let (events, _) = read(stream.as_bytes().chunks(step));
        let data: Vec<_> = events.into_iter().map(|event| event.data).collect();
        prop_assert_eq!(data, messages);
    }

    #[test]
    fn no_bytes_upset_the_reader(stream in prop::collection::vec(any::<u8>(), 0..200), step in 1..9usize) {
        prop_assert_eq!(read(stream.chunks(step)).0, read([stream.as_slice()]).0);
    }
}
