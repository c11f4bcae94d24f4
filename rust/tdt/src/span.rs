// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The id of a task as a field of a span.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tracing::instrument::Instrumented;
use tracing::{Instrument, Span};

use crate::current_id;

/// The name of the field that [`in_span`] fills in.
const FIELD: &str = "task";

/// A future that is polled in a span.  [`in_span`] makes it.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
pub struct InSpan<F> {
    future: Instrumented<F>,
    recorded: bool,
}

/// Poll a future in a span whose field `task` has the id of the task.
///
/// The field is filled in at the first poll, because a task may have no id before.  It is the id by
/// which dumps, probes and the recorder know the task.
///
/// ```
/// # async fn serve() {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use tracing::field::Empty;
///
/// let span = tracing::info_span!("serve", task = Empty);
/// # #[cfg(feature = "tokio")]
/// tdt::spawn(tdt::in_span(span, serve())).await.unwrap();
/// # }
/// ```
///
/// In the middle of a task, [`current_id`] is a value for a field:
///
/// ```
/// tracing::info!(task = tdt::current_id(), "accepted");
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
pub fn in_span<F: Future>(span: Span, future: F) -> InSpan<F> {
    InSpan { future: future.instrument(span), recorded: false }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of `this`, and is only polled as pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if !this.recorded {
            this.recorded = true;
            this.future.span().record(FIELD, current_id());
        }
        // SAFETY: see above.
        unsafe { Pin::new_unchecked(&mut this.future) }.poll(cx)
    }
}
