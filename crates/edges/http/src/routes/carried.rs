//! Work that goes on when its connection does not.

use wharf_vocab::Fault;

use crate::answer::internal;

/// Does something that must not stop halfway because a connection was lost.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(panicked = error.is_panic(), "work could not be carried to its end");
        Err(internal())
    })
}
