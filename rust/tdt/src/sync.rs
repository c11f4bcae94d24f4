// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokio's locks, with what dumps need to name a deadlock.
//!
//! Each of them holds tokio's lock of the same name, can take its place, and notes who holds it and
//! who waits.  A task that waits reports which task it waits for:
//!
//!  - of a [`Mutex`], the task that holds it;
//!  - of an [`RwLock`], one of the tasks that hold it;
//!  - of a [`Semaphore`], the task that has permits, if there is only one.  (After
//!    [`Semaphore::add_permits`] or [`Permits::forget`] none is told any more, because any task
//!    could help.)
//!
//! If nobody holds the lock because tokio handed it to the first task in its line, which has not
//! taken it yet, the report says so: "handed 2 ms ago to task 7, which has not taken it".  A task
//! may never take a lock that was handed to it: it polled the future of [`Mutex::lock`] once, and
//! now awaits something else while the future still stands in the line.  A dump calls this a
//! *futurelock* if the task was polled for the dump and has still not taken the lock.
//!
//! The holder is the task in whose poll the lock was taken.  A guard that owns its lock
//! ([`OwnedMutexGuard`] and the like) often goes to another task, so it has no holder, until a task
//! calls its [`adopt`](Guard::adopt).  (The value of a lock that such a guard keeps is `'static`.)
//! Of the tasks that hold an `RwLock` or have permits, eight at a time are known by name.
//!
//! A dump shows the name of a lock ([`Mutex::named`]), or else of its type.  The locks are as fair
//! as tokio's, and take from tokio's budget, since they are tokio's.  What else these can do is
//! reached by [`Deref`](std::ops::Deref); a guard that is got so is one that dumps do not know of.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let sum = tdt::sync::Mutex::new(40);
//! *sum.lock().await += 2;
//! assert_eq!(sum.into_inner(), 42);
//! # }
//! ```

mod guard;
mod ledger;
mod mutex;
mod name;
mod rwlock;
mod semaphore;

pub use guard::Guard;
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
use name::Name;
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Permits, Semaphore, SemaphorePermit};
pub use tokio::sync::{AcquireError, TryAcquireError, TryLockError};
