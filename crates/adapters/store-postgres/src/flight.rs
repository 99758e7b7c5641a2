//! Statements that are on their way together: one answer is not waited for before the next leaves.

use std::pin::Pin;
use std::task::Poll;

use futures::future::BoxFuture;

/// Runs all of them at once. Each is polled for the first time, which is when its statement leaves,
/// in the order given; so that is the order in which the server gets them.
pub(crate) async fn together<T>(mut flights: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut landed: Vec<Option<T>> = flights.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut all = true;
        for (flight, landed) in flights.iter_mut().zip(&mut landed) {
            if landed.is_none() {
                match Pin::new(flight).poll(cx) {
                    Poll::Ready(value) => *landed = Some(value),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    landed.into_iter().flatten().collect()
}
