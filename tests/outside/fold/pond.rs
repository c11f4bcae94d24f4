// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For fold.sh: a crate that the program depends on.

pub mod time {
    mod entry {
        use std::cell::UnsafeCell;
        use std::task::Waker;

        pub struct Entry(UnsafeCell<Option<Waker>>);

        unsafe impl Send for Entry {}

        impl Entry {
            pub fn new() -> Entry {
                Entry(UnsafeCell::new(None))
            }

            fn with_mut(&self, change: impl FnOnce(*mut Option<Waker>)) {
                change(self.0.get())
            }

            #[inline(never)]
            pub fn register(&self, waker: &Waker) {
                self.with_mut(|kept| unsafe { *kept = Some(waker.clone()) });
            }
        }
    }

    pub mod nap {
        use super::entry::Entry;
        use std::future::Future;
        use std::pin::Pin;
        use std::task::{Context, Poll};

        /// Lasts for ever.
        pub struct Nap(Entry);

        impl Future for Nap {
            type Output = ();

            #[inline(never)]
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                self.0.register(cx.waker()); // nap
                Poll::Pending
            }
        }

        pub fn nap() -> Nap {
            Nap(Entry::new())
        }
    }
}

pub mod sync {
    pub mod mutex {
        use crate::time::nap::nap;

        pub struct Mutex<T>(pub T);

        impl<T> Mutex<T> {
            pub async fn lock(&self) -> &T {
                self.acquire().await; // lock
                &self.0
            }

            async fn acquire(&self) {
                nap().await;
            }
        }
    }
}

pub mod future {
    pub mod both {
        use std::future::Future;
        use std::pin::Pin;
        use std::task::{Context, Poll};

        type Child = Pin<Box<dyn Future<Output = ()> + Send>>;

        /// Ready when both are.
        pub struct Both(pub [Child; 2]);

        impl Future for Both {
            type Output = ();

            #[inline(never)]
            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                let mut pending = false;
                for child in self.0.iter_mut() {
                    pending |= child.as_mut().poll(cx).is_pending(); // both
                }
                if pending {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            }
        }
    }
}

/// Polls the future in a closure, as select! and join! do.
#[macro_export]
macro_rules! polled {
    ($future:expr) => {{
        let mut future = Box::pin($future);
        $crate::PollFn(move |cx: &mut std::task::Context<'_>| {
            std::future::Future::poll(future.as_mut(), cx)
        })
        .await
    }};
}

pub struct PollFn<F>(pub F);

impl<F> Unpin for PollFn<F> {}

impl<F: FnMut(&mut std::task::Context<'_>) -> std::task::Poll<()>> std::future::Future
    for PollFn<F>
{
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        (self.0)(cx)
    }
}
