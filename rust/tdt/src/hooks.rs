// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hooks of a tokio runtime, which see all of its tasks, also those that nobody traces.
//!
//! [`register_hooks`] registers all of them.  A program that has a hook of its own registers it
//! after that, and calls the function of this module from it.  The hooks of tasks need
//! `--cfg tokio_unstable`.

use std::io;

use tdt_sys as sys;
use tokio::runtime::Builder;

/// Have the runtime of `builder` report all its tasks and threads: eight probes fire for that, the
/// flight recorder records it, and [`tasks`](crate::tasks), dumps and tdt(1) list all tasks.  Of a
/// task that nobody traces they know all but the tree of a wait.
///
/// The first call adds a hook of panics before the program's, because tokio does not say how a task
/// ended.
///
/// The probes are those of tokio-dtrace, with the same arguments.  Only the provider is another
/// one, `tdt`: `usdt:*:tdt:task__spawn`.  See the manual page tdt-probes(7).
///
/// Call it before futures are traced, because the ids that the library picks are moved out of the
/// way of tokio's.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// let mut builder = tokio::runtime::Builder::new_multi_thread();
/// let runtime = tdt::register_hooks(&mut builder)?.build()?;
/// runtime.block_on(async { /* ... */ });
/// # Ok(())
/// # }
/// ```
///
/// Tokio has one function for each hook, so this replaces the functions that were registered
/// before.  Tokio has no hooks for the tasks of a `LocalSet`.  Of the closures of `spawn_blocking`
/// it reports the end only.
///
/// # Errors
/// `Unsupported`, if the program was built without `--cfg tokio_unstable`.
#[cfg_attr(docsrs, doc(cfg(feature = "tokio-hooks")))]
pub fn register_hooks(builder: &mut Builder) -> io::Result<&mut Builder> {
    #[cfg(tokio_unstable)]
    {
        begin();
        Ok(builder
            .on_thread_start(on_thread_start)
            .on_thread_stop(on_thread_stop)
            .on_thread_park(on_thread_park)
            .on_thread_unpark(on_thread_unpark)
            .on_task_spawn(on_task_spawn)
            .on_before_task_poll(on_before_task_poll)
            .on_after_task_poll(on_after_task_poll)
            .on_task_terminate(on_task_terminate))
    }
    #[cfg(not(tokio_unstable))]
    {
        let _ = builder;
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "tokio has hooks only if the program is built with RUSTFLAGS=\"--cfg tokio_unstable\"",
        ))
    }
}

#[cfg(tokio_unstable)]
fn begin() {
    static BEGUN: std::sync::Once = std::sync::Once::new();

    crate::dump::listen_once();
    // A thread that registers hooks at the same time waits: its tasks need this, too.
    BEGUN.call_once(|| {
        crate::adopt::begin();
        with_tasks::note_panics();
    });
}

#[cfg(tokio_unstable)]
#[cfg_attr(docsrs, doc(cfg(tokio_unstable)))]
pub use with_tasks::*;

#[cfg(tokio_unstable)]
mod with_tasks {
    use std::cell::{Cell, UnsafeCell};
    use std::hash::{Hash, Hasher};
    use std::mem;
    use std::panic;
    use std::ptr;
    use std::sync::atomic::Ordering::Relaxed;

    use tdt_sys as sys;
    use tokio::runtime::TaskMeta;
    use tokio::task::Id;

    use crate::adopt::{NEWEST, POLLED, SPAWNED};
    use crate::traced::file_of;

    /// The number that an id hashes: tokio gives it out as text only, otherwise.
    #[derive(Default)]
    struct Number(u64);

    impl Hasher for Number {
        fn write(&mut self, bytes: &[u8]) {
            let mut number = [0; 8];
            let n = bytes.len().min(8);
            number[..n].copy_from_slice(&bytes[..n]);
            self.0 = u64::from_ne_bytes(number);
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    #[inline]
    fn number_of(id: Id) -> u64 {
        let mut number = Number::default();
        id.hash(&mut number);
        number.finish()
    }

    const NONE: sys::tdt_task_attr = sys::tdt_task_attr {
        size: mem::size_of::<sys::tdt_task_attr>(),
        id: 0,
        name: ptr::null(),
        file: ptr::null(),
        line: 0,
        column: 0,
        file_length: 0,
        name_length: 0,
        default_name: ptr::null(),
        default_name_length: 0,
        id_later: 0,
        reserved: [0; 3],
        flags: 0,
        parent: 0,
        entry: 0,
    };

    /// Describe the task of `meta` in `attr`, whose other fields stay.
    #[inline]
    fn describe(attr: &mut sys::tdt_task_attr, meta: &TaskMeta<'_>, id: u64) {
        let place = meta.spawned_at();
        (attr.file, attr.file_length) = file_of(place);
        attr.id = id;
        attr.line = place.line();
        attr.column = place.column();
    }

    thread_local! {
        /// The task that was last reported here.
        static DESCRIBED: UnsafeCell<sys::tdt_task_attr> = const { UnsafeCell::new(NONE) };

        /// Whether a panic began in the poll of this thread.
        static PANICKED: Cell<bool> = const { Cell::new(false) };
    }

    /// Call a function of the library with the task of `meta`.
    #[inline]
    fn report(meta: &TaskMeta<'_>, call: impl FnOnce(&sys::tdt_task_attr)) {
        let id = number_of(meta.id());
        DESCRIBED.with(|described| {
            // SAFETY: nothing else refers to it: the library calls nothing of this crate.
            let described = unsafe { &mut *described.get() };
            if described.id != id {
                describe(described, meta, id);
            }
            call(described);
        });
    }

    /// Tokio does not say how a task ended.
    pub(super) fn note_panics() {
        if std::thread::panicking() {
            return; // then hooks of panics cannot be changed
        }
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = PANICKED.try_with(|panicked| panicked.set(true));
            before(info);
        }));
    }

    /// For `Builder::on_task_spawn`.
    pub fn on_task_spawn(meta: &TaskMeta<'_>) {
        let spawned = SPAWNED.with(|spawned| spawned.replace(ptr::null_mut()));
        report(meta, |attr| {
            // Another thread may have reported a newer one.
            NEWEST.fetch_max(attr.id, Relaxed);
            // SAFETY: the handle is null, or `Spawning` has a reference.  The strings are as long
            // as it is said, here and below.
            unsafe {
                if !spawned.is_null() {
                    sys::tdt_hook_adopt(spawned, attr.id);
                }
                sys::tdt_hook_spawn(attr);
            }
        });
    }

    /// For `Builder::on_before_task_poll`.
    pub fn on_before_task_poll(meta: &TaskMeta<'_>) {
        PANICKED.with(|panicked| panicked.set(false));
        report(meta, |attr| {
            POLLED.with(|polled| polled.set(attr.id));
            // The function of tokio that polls has the description in its frame.
            let base = meta as *const TaskMeta<'_> as usize;
            // SAFETY: see above.
            unsafe { sys::tdt_hook_poll_start_at(attr, base) };
        });
    }

    /// For `Builder::on_after_task_poll`.
    pub fn on_after_task_poll(meta: &TaskMeta<'_>) {
        POLLED.with(|polled| polled.set(0));
        // SAFETY: see above.
        report(meta, |attr| unsafe { sys::tdt_hook_poll_end(attr) });
    }

    /// For `Builder::on_task_terminate`.
    pub fn on_task_terminate(meta: &TaskMeta<'_>) {
        let panicked = PANICKED.with(|panicked| panicked.replace(false));
        report(meta, |attr| {
            if panicked {
                // It counts if the task ends in its poll.
                let attr = sys::tdt_task_attr { flags: sys::TDT_ATTR_PANICKED, ..*attr };
                // SAFETY: see above.
                unsafe { sys::tdt_hook_terminate(&attr) };
            } else {
                // SAFETY: see above.
                unsafe { sys::tdt_hook_terminate(attr) };
            }
        });
    }
}

// --- Threads. ---

/// For `Builder::on_thread_start`.  Tokio calls it on the threads of `spawn_blocking`, too; a
/// thread that polls no task is not taken for a worker that runs tasks.
pub fn on_thread_start() {
    // SAFETY: it may be called anywhere, as the following ones.
    unsafe { sys::tdt_worker_thread_start(std::ptr::null()) };
}

/// For `Builder::on_thread_stop`.
pub fn on_thread_stop() {
    // SAFETY: see above.
    unsafe { sys::tdt_worker_thread_stop() };
}

/// For `Builder::on_thread_park`.
pub fn on_thread_park() {
    // SAFETY: see above.
    unsafe { sys::tdt_worker_thread_park() };
}

/// For `Builder::on_thread_unpark`.
pub fn on_thread_unpark() {
    // SAFETY: see above.
    unsafe { sys::tdt_worker_thread_unpark() };
}

#[cfg(all(test, not(tokio_unstable)))]
mod tests {
    #[test]
    fn without_tokio_unstable_hooks_are_unsupported() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let error = super::register_hooks(&mut builder).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    }
}
