//! One run, from its start to its end.
//!
//! Invariant: the last event is sent only after the whole group is gone and the folder is removed.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use greenroom_boundary::cli::{CliError, CliEvent, CliExit, CliLimits};
use greenroom_boundary::clock::{self, Hold};
use greenroom_boundary::{CancellationToken, Clock};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc::UnboundedSender;

use super::ChildGroup;

const READ_BYTES: usize = 16 * 1024;

/// A command under way. The channel needs no bound: the output limit is one.
pub(super) struct Run {
    pub(super) program: String,
    pub(super) limits: CliLimits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) cancel: CancellationToken,
    pub(super) group: ChildGroup,
    pub(super) events: UnboundedSender<Result<CliEvent, CliError>>,
    pub(super) folder: tempfile::TempDir,
    pub(super) hold: Hold,
}

impl Run {
    /// Streams the run's events and ends it, whatever happens.
    pub(super) async fn play(mut self, stdin: String) {
        let writer = self.group.leader().stdin.take().map(|pipe| tokio::spawn(write(pipe, stdin)));
        let last = match self.watch().await {
            Ok(status) => Ok(CliEvent::Exit(match (status.code(), status.signal()) {
                (None, Some(signal)) => CliExit::Signal(signal),
                (code, _) => CliExit::Code(code.unwrap_or(-1)),
            })),
            Err(error) => {
                let _ = self.group.kill().await;
                Err(error)
            }
        };
        if let Some(writer) = writer {
            writer.abort();
        }
        drop(self.folder);
        let _ = self.events.send(last);
        drop(self.hold);
    }

    async fn watch(&mut self) -> Result<ExitStatus, CliError> {
        let (mut stdout, mut stderr) = (self.group.leader().stdout.take(), self.group.leader().stderr.take());
        let mut deadline = clock::sleep(&*self.clock, self.limits.wall);
        let mut room_bytes = self.limits.output_bytes;
        let mut status = None;
        loop {
            if let (Some(status), true, true) = (status, stdout.is_none(), stderr.is_none()) {
                return Ok(status);
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(CliError::Cancelled { program: self.program.clone() }),
                () = self.events.closed() => return Err(CliError::Cancelled { program: self.program.clone() }),
                () = &mut deadline => {
                    let limit_ms = u64::try_from(self.limits.wall.as_millis()).unwrap_or(u64::MAX);
                    return Err(CliError::Timeout { program: self.program.clone(), limit_ms });
                }
                chunk = read(&mut stdout) => self.output(chunk, CliEvent::Stdout, &mut room_bytes)?,
                chunk = read(&mut stderr) => self.output(chunk, CliEvent::Stderr, &mut room_bytes)?,
                ended = self.group.wait(), if status.is_none() => match ended {
                    Ok(ended) => status = Some(ended),
                    Err(error) => {
                        let message = format!("waiting for it failed: {error}");
                        return Err(CliError::Start { program: self.program.clone(), message });
                    }
                },
            }
        }
    }

    fn output(&self, chunk: Option<Bytes>, event: fn(Bytes) -> CliEvent, room_bytes: &mut usize) -> Result<(), CliError> {
        let Some(chunk) = chunk else { return Ok(()) };
        let Some(room) = room_bytes.checked_sub(chunk.len()) else {
            let limit_bytes = self.limits.output_bytes;
            return Err(CliError::OutputLimit { program: self.program.clone(), limit_bytes });
        };
        *room_bytes = room;
        let _ = self.events.send(Ok(event(chunk)));
        Ok(())
    }
}

/// The next bytes of a pipe; at its end, `None` once, and from then on never anything. Safe to drop at any await.
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>) -> Option<Bytes> {
    let Some(open) = pipe else { return std::future::pending().await };
    let mut chunk = BytesMut::with_capacity(READ_BYTES);
    match open.read_buf(&mut chunk).await {
        Ok(count) if count > 0 => Some(chunk.freeze()),
        // A broken pipe is an ended one: how the process ended says the rest.
        _ => {
            *pipe = None;
            None
        }
    }
}

async fn write(mut pipe: ChildStdin, text: String) {
    // A command need not read its input.
    let _ = pipe.write_all(text.as_bytes()).await;
    let _ = pipe.shutdown().await;
}
