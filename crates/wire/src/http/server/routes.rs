//! Which stream a message leaves on.
//!
//! Invariant: an answer goes to the POST that asked, progress to the POST that gave the token, a question to the POST that
//! it comes from, if that is known; anything else to the GET stream if one is open, else to an open POST. A notification
//! that finds no stream waits, up to a limit, for the next GET; a question fails. On a stream that nobody reads only answers wait
//! beyond a limit in bytes: progress and log messages are dropped, the rest finds another way. Deliberately no copies.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::stream::{Out, Refused, Stream, StreamSender, Used, stream};
use crate::{Message, ProgressToken, RequestId};

/// Most bytes that wait for a stream to be opened.
const MOST_WAITING_BYTES: usize = 4 << 20;

struct Post {
    stream: StreamSender,
    token: Option<ProgressToken>,
}

/// The open streams of a session.
#[derive(Default)]
pub(super) struct Routes {
    used: Arc<Used>,
    posts: BTreeMap<RequestId, Post>,
    get: Option<StreamSender>,
    waiting: VecDeque<Frame>,
    waiting_bytes: usize,
    /// The client's requests that questions on their way come from.
    causes: BTreeMap<RequestId, RequestId>,
}

/// Why a message cannot leave.
pub(super) enum Stuck {
    /// Too many messages wait for a client that has no stream open, or does not read.
    Full,
    /// The client does not read, and can do without this progress or log message.
    Dropped,
    /// Nobody would hear the question.
    NoStream,
}

impl Routes {
    /// The routes of a session.
    pub(super) fn of(used: Arc<Used>) -> Self {
        Self { used, ..Self::default() }
    }

    /// Opens the stream of a request; `None` if its id is in use.
    pub(super) fn open_post(&mut self, id: RequestId, token: Option<ProgressToken>) -> Option<Stream> {
        if self.posts.contains_key(&id) {
            return None;
        }
        let (stream, receiver) = stream(self.used.clone());
        self.posts.insert(id, Post { stream, token });
        Some(receiver)
    }

    /// Notes that the server's own request, which is about to be routed, comes from a request of the client.
    pub(super) fn comes_from(&mut self, question: RequestId, cause: RequestId) {
        self.causes.insert(question, cause);
    }

    /// Ends the stream of a request.
    pub(super) fn close_post(&mut self, id: &RequestId) {
        self.posts.remove(id);
    }

    /// Opens the stream for the server's own messages, in place of an earlier one, and sends what has waited for it.
    pub(super) fn open_get(&mut self) -> Stream {
        let (stream, receiver) = stream(self.used.clone());
        self.waiting_bytes = 0;
        for frame in self.waiting.drain(..) {
            // They fit: no more may wait than a stream takes.
            let _ = stream.send(Out { frame, answer: false, error: false });
        }
        self.get = Some(stream);
        receiver
    }

    /// Whether the client has no stream open.
    pub(super) fn is_idle(&self) -> bool {
        self.posts.is_empty() && self.get.as_ref().is_none_or(StreamSender::is_closed)
    }

    /// Ends all streams and forgets what waits.
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    /// Puts a frame on its stream.
    pub(super) fn route(&mut self, frame: Frame, most_waiting: usize) -> Result<(), Stuck> {
        match Message::parse(&frame) {
            Ok(Message::Response { id: Some(id), result }) => {
                // If the client has hung up, its answer is lost with the stream.
                if let Some(post) = self.posts.remove(&id) {
                    let _ = post.stream.send(Out { frame, answer: true, error: result.is_err() });
                }
                Ok(())
            }
            Ok(Message::Notification { method, params }) if method == "notifications/progress" => {
                let token = token_of(params.as_deref());
                let post = self.posts.values().find(|post| token.is_some() && post.token == token);
                let stream = post.map(|post| post.stream.clone());
                self.offer(stream, frame, most_waiting, true)
            }
            Ok(Message::Notification { method, .. }) if method == "notifications/message" => {
                self.offer(None, frame, most_waiting, true)
            }
            Ok(Message::Request { id, .. }) => {
                let cause = self.causes.remove(&id).and_then(|cause| self.posts.get(&cause));
                let stream = cause.map(|post| post.stream.clone());
                self.put(stream, frame).map_err(|_| Stuck::NoStream)
            }
            _ => self.offer(None, frame, most_waiting, false),
        }
    }

    fn offer(
        &mut self,
        preferred: Option<StreamSender>,
        frame: Frame,
        most_waiting: usize,
        droppable: bool,
    ) -> Result<(), Stuck> {
        let Err((frame, unread)) = self.put(preferred, frame) else { return Ok(()) };
        if unread && droppable {
            return Err(Stuck::Dropped);
        }
        let bytes = self.waiting_bytes + frame.0.len();
        if self.waiting.len() >= most_waiting || (!self.waiting.is_empty() && bytes > MOST_WAITING_BYTES) {
            return Err(if droppable { Stuck::Dropped } else { Stuck::Full });
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back(frame);
        Ok(())
    }

    /// Puts a frame on an open stream; without one it comes back, and whether one is open that nobody reads.
    fn put(&self, preferred: Option<StreamSender>, frame: Frame) -> Result<(), (Frame, bool)> {
        let streams = preferred.iter().chain(&self.get).chain(self.posts.values().map(|post| &post.stream));
        let (mut out, mut unread) = (Out { frame, answer: false, error: false }, false);
        for stream in streams {
            match stream.send(out) {
                Ok(()) => return Ok(()),
                Err(Refused::Closed(refused)) => out = refused,
                Err(Refused::Unread(refused)) => (out, unread) = (refused, true),
            }
        }
        Err((out.frame, unread))
    }
}

fn token_of(params: Option<&RawValue>) -> Option<ProgressToken> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        progress_token: ProgressToken,
    }
    serde_json::from_str::<Params>(params?.get()).ok().map(|params| params.progress_token)
}
