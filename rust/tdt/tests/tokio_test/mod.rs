// SPDX-License-Identifier: Apache-2.0 OR MIT
//! So much of the crate `tokio-test` as tokio's own tests of its locks use, which
//! tests/outside/crates.sh runs against those of this crate.
#![allow(dead_code, unused_macros, unused_imports)]

macro_rules! assert_ready {
    ($poll:expr) => {
        match $poll {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => panic!("pending"),
        }
    };
}

macro_rules! assert_pending {
    ($poll:expr) => {
        assert!($poll.is_pending())
    };
}

pub(crate) use {assert_pending, assert_ready};

pub(crate) mod task {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// A future that the test polls by hand.
    pub(crate) struct Spawn<F> {
        future: Pin<Box<F>>,
        woken: Arc<Woken>,
    }

    pub(crate) fn spawn<F: Future>(future: F) -> Spawn<F> {
        Spawn { future: Box::pin(future), woken: Arc::new(Woken(AtomicBool::new(false))) }
    }

    impl<F: Future> Spawn<F> {
        pub(crate) fn poll(&mut self) -> Poll<F::Output> {
            self.woken.0.store(false, Ordering::SeqCst);
            let waker = Waker::from(self.woken.clone());
            self.future.as_mut().poll(&mut Context::from_waker(&waker))
        }

        pub(crate) fn is_woken(&self) -> bool {
            self.woken.0.load(Ordering::SeqCst)
        }
    }
}
