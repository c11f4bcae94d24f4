// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokio's ways to spawn, for traced tasks.

use std::future::Future;

use tokio::task::{AbortHandle, JoinHandle, JoinSet};

use crate::{Builder, TraceExt};

#[cfg(feature = "tokio-hooks")]
use with_hooks::Spawning;

#[cfg(feature = "tokio-hooks")]
mod with_hooks {
    use std::ptr;

    use crate::adopt::SPAWNED;
    use crate::{Handle, Traced};

    /// As long as it lives, the task that tokio spawns on this thread is the traced one.
    pub(super) struct Spawning(Option<Handle>); // `None`: its id is not up to tokio

    impl Spawning {
        pub(super) fn of<F>(traced: &Traced<F>) -> Spawning {
            if !traced.gets_id_later() {
                return Spawning(None);
            }
            // A runtime that shuts down drops the future before the hook.
            let handle = traced.handle();
            SPAWNED.with(|spawned| spawned.set(handle.as_raw()));
            Spawning(Some(handle))
        }
    }

    impl Drop for Spawning {
        fn drop(&mut self) {
            if self.0.is_some() {
                SPAWNED.with(|spawned| spawned.set(ptr::null_mut()));
            }
        }
    }
}

/// There are no hooks.
#[cfg(not(feature = "tokio-hooks"))]
struct Spawning;

#[cfg(not(feature = "tokio-hooks"))]
impl Spawning {
    fn of<F>(_: &crate::Traced<F>) -> Spawning {
        Spawning
    }
}

/// `tokio::spawn` for a traced future.  The task is named after the type of the future.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let task = tdt::spawn(async { 42 });
/// assert_eq!(task.await.unwrap(), 42);
/// # }
/// ```
///
/// # Panics
/// Outside of a runtime, as `tokio::spawn` does.
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let traced = future.traced();
    let _spawning = Spawning::of(&traced);
    tokio::spawn(traced)
}

/// `tokio::task::spawn_local` for a traced future.
///
/// # Panics
/// Outside of a `LocalSet`, as tokio's function does.
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let traced = future.traced();
    let _spawning = Spawning::of(&traced);
    tokio::task::spawn_local(traced)
}

#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
impl Builder<'_> {
    /// Trace a future, and have tokio spawn it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// tdt::Builder::new().name("accept").spawn(async {}).await.unwrap();
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a runtime, as `tokio::spawn` does.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let traced = self.trace(future);
        let _spawning = Spawning::of(&traced);
        tokio::spawn(traced)
    }
}

/// Traced tasks in a `JoinSet`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use tdt::JoinSetExt;
///
/// let mut set = tokio::task::JoinSet::new();
/// set.spawn_traced(async { 42 });
/// assert_eq!(set.join_next().await.unwrap().unwrap(), 42);
/// # }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub trait JoinSetExt<T> {
    /// `JoinSet::spawn` for a traced future.
    ///
    /// # Panics
    /// Outside of a runtime, as tokio's method does.
    fn spawn_traced<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send;

    /// `JoinSet::spawn_local` for a traced future.
    ///
    /// # Panics
    /// Outside of a `LocalSet`, as tokio's method does.
    fn spawn_local_traced<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static;
}

impl<T: 'static> JoinSetExt<T> for JoinSet<T> {
    #[track_caller]
    fn spawn_traced<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        let traced = future.traced();
        let _spawning = Spawning::of(&traced);
        self.spawn(traced)
    }

    #[track_caller]
    fn spawn_local_traced<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        let traced = future.traced();
        let _spawning = Spawning::of(&traced);
        self.spawn_local(traced)
    }
}
