//! This process's standard input and output as the pipes of one client.
//!
//! Invariant: what is read and written is the same whatever they are; only the way differs. Pipes and sockets are waited for by
//! the runtime itself, everything else by a thread of its own. Deliberately no framing.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// What a client writes to us.
pub type StandardInput = Box<dyn AsyncRead + Send + Unpin>;
/// What a client reads from us.
pub type StandardOutput = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and output. A pipe or socket is switched to non-blocking, which whoever shares it sees as well; so the
/// output stays blocking where it is standard error, too. To be called once, within a runtime.
pub fn standard_streams() -> (StandardInput, StandardOutput) {
    let input = owned(io::stdin()).and_then(input);
    let output = owned(io::stdout()).and_then(output);
    (input.unwrap_or_else(|_| Box::new(tokio::io::stdin())), output.unwrap_or_else(|_| Box::new(tokio::io::stdout())))
}

fn owned(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

fn input(file: File) -> io::Result<StandardInput> {
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        return Ok(Box::new(pipe::Receiver::from_file(file)?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    Err(io::ErrorKind::Unsupported.into())
}

fn output(file: File) -> io::Result<StandardOutput> {
    let metadata = file.metadata()?;
    let errors = owned(io::stderr()).and_then(|file| file.metadata());
    // Whoever prints an error does not expect to be told to come back later.
    if errors.is_ok_and(|errors| (errors.dev(), errors.ino()) == (metadata.dev(), metadata.ino())) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if metadata.file_type().is_fifo() {
        return Ok(Box::new(pipe::Sender::from_file(file)?));
    }
    if metadata.file_type().is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    Err(io::ErrorKind::Unsupported.into())
}

fn socket(file: File) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
