//! Two connections joined: what one side says, the other hears.
//!
//! Invariant: frames pass as they are and in order; when the client has said its last word, what the server answered
//! before is still delivered. Deliberately no look at the frames.

use greenroom_boundary::mcp::{FrameDuplex, McpError};

/// Joins them until either side ends; an error is how the server's side broke.
pub(super) async fn relay(mut client: FrameDuplex, mut server: FrameDuplex) -> Result<(), McpError> {
    let up = async {
        while let Some(frame) = client.source.next().await {
            match frame {
                Ok(frame) => {
                    if server.sink.send(frame).await.is_err() {
                        break;
                    }
                }
                // That line is lost, the next one is not.
                Err(error @ McpError::TooLarge { .. }) => tracing::warn!("{error}"),
                Err(_) => break,
            }
        }
        server.sink.close().await;
        std::future::pending::<()>().await;
    };
    let down = async {
        while let Some(frame) = server.source.next().await {
            if client.sink.send(frame?).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    let ended = tokio::select! {
        biased;
        ended = down => ended,
        () = up => Ok(()),
    };
    client.sink.close().await;
    ended
}
