//! Which stream a message leaves on.
//!
//! Invariant: an answer goes to the POST that asked, progress to the POST that gave the token, a question to the POST that
//! it comes from, if that is known; anything else to the GET stream if one is open, else to an open POST. A notification
//! that finds no stream waits, up to a limit, for the next GET; a question fails. Deliberately no copies.

use std::collections::{BTreeMap, VecDeque};

use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{Message, ProgressToken, RequestId};

/// A frame on a stream.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) frame: Frame,
    /// It is the answer that the stream was opened for.
    pub(super) answer: bool,
    /// It is an error answer.
    pub(super) error: bool,
}

struct Post {
    stream: UnboundedSender<Out>,
    token: Option<ProgressToken>,
}

/// The open streams of a session.
#[derive(Default)]
pub(super) struct Routes {
    posts: BTreeMap<RequestId, Post>,
    get: Option<UnboundedSender<Out>>,
    waiting: VecDeque<Frame>,
    /// The client's requests that questions on their way come from.
    causes: BTreeMap<RequestId, RequestId>,
}

/// Why a message cannot leave.
pub(super) enum Stuck {
    /// Too many messages wait for a client that has no stream open.
    Full,
    /// Nobody would hear the question.
    NoStream,
}

impl Routes {
    /// Opens the stream of a request; `None` if its id is in use.
    pub(super) fn open_post(&mut self, id: RequestId, token: Option<ProgressToken>) -> Option<UnboundedReceiver<Out>> {
        if self.posts.contains_key(&id) {
            return None;
        }
        let (stream, receiver) = unbounded_channel();
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
    pub(super) fn open_get(&mut self) -> UnboundedReceiver<Out> {
        let (stream, receiver) = unbounded_channel();
        for frame in self.waiting.drain(..) {
            let _ = stream.send(Out { frame, answer: false, error: false });
        }
        self.get = Some(stream);
        receiver
    }

    /// Whether the client has no stream open.
    pub(super) fn is_idle(&self) -> bool {
        self.posts.is_empty() && self.get.as_ref().is_none_or(UnboundedSender::is_closed)
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
                self.offer(stream, frame, most_waiting)
            }
            Ok(Message::Request { id, .. }) => {
                let cause = self.causes.remove(&id).and_then(|cause| self.posts.get(&cause));
                let stream = cause.map(|post| post.stream.clone());
                self.put(stream, frame).map_err(|_| Stuck::NoStream)
            }
            _ => self.offer(None, frame, most_waiting),
        }
    }

    fn offer(&mut self, preferred: Option<UnboundedSender<Out>>, frame: Frame, most_waiting: usize) -> Result<(), Stuck> {
        let Err(frame) = self.put(preferred, frame) else { return Ok(()) };
        if self.waiting.len() >= most_waiting {
            return Err(Stuck::Full);
        }
        self.waiting.push_back(frame);
        Ok(())
    }

    /// Puts a frame on an open stream; without one it comes back.
    fn put(&self, preferred: Option<UnboundedSender<Out>>, frame: Frame) -> Result<(), Frame> {
        let streams = preferred.iter().chain(&self.get).chain(self.posts.values().map(|post| &post.stream));
        let mut out = Out { frame, answer: false, error: false };
        for stream in streams {
            match stream.send(out) {
                Ok(()) => return Ok(()),
                Err(refused) => out = refused.0,
            }
        }
        Err(out.frame)
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
