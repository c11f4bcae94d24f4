// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The semaphore.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{AcquireError, TryAcquireError};

use super::turns::{DependsOn, Turns};
use super::Name;

/// A semaphore as that of tokio, whose holders are known to dumps.
///
/// See the [module](crate::sync) for what dumps say of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let few = tdt::sync::Semaphore::new(2);
/// let permit = few.acquire().await.unwrap();
/// assert_eq!(few.available_permits(), 1);
/// # drop(permit);
/// # }
/// ```
pub struct Semaphore {
    turns: Turns,
}

impl Semaphore {
    /// The most permits that a semaphore can have.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// A semaphore with so many permits.
    ///
    /// # Panics
    /// If there are more than tokio allows.
    pub fn new(permits: usize) -> Self {
        Self::named("Semaphore", permits)
    }

    /// A semaphore with so many permits, which dumps show with this name.
    ///
    /// # Panics
    /// If there are more than tokio allows.
    pub fn named(name: &'static str, permits: usize) -> Self {
        Semaphore { turns: Turns::new(Name::new(name), permits, DependsOn::Any) }
    }

    /// Get a permit.  Waiting tasks get theirs in the order of their first polls.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_many(1).await
    }

    /// Get `n` permits.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        let task = self.turns.acquire(n, true).await?;
        Ok(SemaphorePermit { semaphore: self, n, task })
    }

    /// Get a permit if there is one.
    ///
    /// # Errors
    /// If there is none, or the semaphore is closed.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Get `n` permits if there are so many.
    ///
    /// # Errors
    /// If there are fewer, or the semaphore is closed.
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let task = self.turns.try_acquire(n, true)?;
        Ok(SemaphorePermit { semaphore: self, n, task })
    }

    /// Get a permit that keeps the semaphore.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1).await
    }

    /// Get `n` permits that keep the semaphore.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let task = self.turns.acquire(n, false).await?;
        Ok(OwnedSemaphorePermit { semaphore: self, n, task })
    }

    /// Get a permit that keeps the semaphore, if there is one.
    ///
    /// # Errors
    /// If there is none, or the semaphore is closed.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Get `n` permits that keep the semaphore, if there are so many.
    ///
    /// # Errors
    /// If there are fewer, or the semaphore is closed.
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let task = self.turns.try_acquire(n, false)?;
        Ok(OwnedSemaphorePermit { semaphore: self, n, task })
    }

    /// Add permits.  From now on no holder is told, because permits may come from any task.
    ///
    /// # Panics
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then.
    pub fn add_permits(&self, n: usize) {
        self.turns.add(n);
    }

    /// How many permits there are.
    pub fn available_permits(&self) -> usize {
        self.turns.semaphore().available_permits()
    }

    /// Let all that wait, and all later ones, fail.
    pub fn close(&self) {
        self.turns.semaphore().close();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.turns.semaphore().is_closed()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.turns.semaphore().fmt(f)
    }
}

/// Permits of a [`Semaphore`], which are given back when this is dropped.
#[must_use = "if it is dropped at once, the permits are given back at once"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    n: u32,
    task: u64,
}

/// Permits of a [`Semaphore`], which this keeps.
///
/// Such permits often go to another task, so dumps do not say who has them, unless a task has
/// called [`adopt`](OwnedSemaphorePermit::adopt).
#[must_use = "if it is dropped at once, the permits are given back at once"]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    n: u32,
    task: u64,
}

macro_rules! permits {
    ($($permit:ident $(<$life:lifetime>)?),*) => {$(
        impl $permit$(<$life>)? {
            /// Do not give the permits back.  From now on no holder is told.
            pub fn forget(mut self) {
                self.semaphore.turns.forget(self.n as usize, self.task);
                self.n = 0;
            }

            /// The task that runs has the permits from now on.
            pub fn adopt(&mut self) {
                self.task = self.semaphore.turns.adopt(self.n as usize, self.task);
            }
        }

        impl Drop for $permit$(<$life>)? {
            fn drop(&mut self) {
                if self.n != 0 {
                    self.semaphore.turns.release(self.n as usize, self.task);
                }
            }
        }

        impl fmt::Debug for $permit$(<$life>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($permit)).field("permits", &self.n).finish()
            }
        }
    )*};
}

permits!(SemaphorePermit<'_>, OwnedSemaphorePermit);
