// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokio's locks, with what dumps need to name a deadlock.
//!
//! Each of them can take the place of tokio's type of the same name.  A task that waits reports
//! which task it waits for:
//!
//!  - of a [`Mutex`], the task that holds it;
//!  - of an [`RwLock`], the task that has held it for longest;
//!  - of a [`Semaphore`], the task that has permits, if there is only one.  (After
//!    [`Semaphore::add_permits`] or [`SemaphorePermit::forget`] none is told any more, because any
//!    task could help.)
//!
//! If nobody holds the lock because it was handed to the first task in the line, which has not
//! taken it yet, the report says so: "handed 2 ms ago to task 7, which has not taken it".  A task
//! may never take a lock that was handed to it: it polled the future of [`Mutex::lock`] once, and
//! now awaits something else while the future still stands in the line.  A dump calls this a
//! *futurelock*.
//!
//! The holder is the task in whose poll the lock was taken.  A guard that owns its lock
//! ([`OwnedMutexGuard`] and the like) often goes to another task, so it has no holder, until a task
//! calls its `adopt`.
//!
//! A dump shows the name of a lock ([`Mutex::named`]), or else of its type.  The locks are as fair
//! as tokio's.  Unlike those, they take nothing from the budget after which tokio has a task yield.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let sum = tdt::sync::Mutex::new(40);
//! *sum.lock().await += 2;
//! assert_eq!(sum.into_inner(), 42);
//! # }
//! ```

mod mutex;
mod name;
mod rwlock;
mod semaphore;
mod turns;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tdt_sys as sys;

pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard};
use name::Name;
pub use rwlock::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
pub use tokio::sync::{AcquireError, TryAcquireError};

/// The lock is not free at this moment.
#[derive(Debug)]
pub struct TryLockError(());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl std::error::Error for TryLockError {}

/// The task that this thread polls; 0: none.
fn current_task() -> u64 {
    crate::current_id().unwrap_or(0)
}

/// Await a lock on a thread that polls nothing meanwhile.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    assert!(current_task() == 0, "a task cannot block on a lock: it would block its thread");
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future: Pin<Box<F>> = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// `struct tdt_lock`, which dumps read at the address that waiting tasks report; and the name.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code)] // the library writes the fields, and dumps read them
struct Head {
    magic: [sys::c_char; 8],
    owner: AtomicU64,
    handed: AtomicU64,
    taken_at: AtomicU64,
    name: Name,
}

impl Head {
    fn new(name: Name) -> Self {
        let (owner, handed, taken_at) = Default::default();
        Head { magic: sys::TDT_LOCK_MAGIC, owner, handed, taken_at, name }
    }

    fn lock(&self) -> *const sys::tdt_lock {
        let head: *const Head = self;
        head.cast()
    }

    /// `task` holds the lock; 0: none does, or it is unknown.
    fn take(&self, task: u64) {
        // SAFETY: as in hand().
        unsafe { sys::tdt_lock_take(self.lock() as *mut sys::tdt_lock, task) }
    }

    /// The lock was handed to a future of `task`, which has not taken it yet.
    fn hand(&self, task: u64) {
        // SAFETY: it is a `struct tdt_lock`, and the library writes only what is atomic here.
        unsafe { sys::tdt_lock_hand(self.lock() as *mut sys::tdt_lock, task) }
    }

    /// Report, from the poll of a leaf, that it waits for this object.
    fn report(&self) {
        // SAFETY: it is a `struct tdt_lock`, which lives during the call.  (Dumps read it later,
        // through the kernel; it may be freed at any time.)  The name lives for ever.
        unsafe { sys::tdt_leaf_waits_on_lock(self.lock(), self.name.c()) }
    }

    /// The same if it depends on no task.
    fn report_unowned(&self) {
        let (lock, name) = (self.lock(), self.name.c());
        // SAFETY: only the address of the lock is noted.  The name lives for ever.
        unsafe { sys::tdt_leaf_waits_on_named(sys::TDT_WAIT_MUTEX, lock.cast(), 0, name) }
    }
}
