// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The semaphore.

use std::borrow::Borrow;
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use tokio::sync::{self, AcquireError, TryAcquireError};

use super::ledger::{holder, DependsOn, Ledger, Several, Waiting};
use super::Name;

/// Tokio's semaphore.  Dumps know who has its permits and who waits for them.
///
/// (Tokio's own permits are forgotten, and given back without them.)
///
/// See the [module](crate::sync) for what they say of it.
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
    ledger: Several,
    inner: sync::Semaphore,
}

impl Semaphore {
    /// The most permits that a semaphore can have.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// A semaphore with so many permits.
    ///
    /// # Panics
    /// If there are more than tokio allows.
    #[track_caller]
    pub fn new(permits: usize) -> Self {
        Self::named("Semaphore", permits)
    }

    /// The same for a static.
    #[cfg(feature = "parking_lot")]
    #[cfg_attr(docsrs, doc(cfg(feature = "parking_lot")))]
    pub const fn const_new(permits: usize) -> Self {
        let ledger = Several::new(Name::new("Semaphore"), DependsOn::Any(permits));
        Semaphore { ledger, inner: sync::Semaphore::const_new(permits) }
    }

    /// A semaphore with so many permits, which dumps show with this name.
    ///
    /// # Panics
    /// If there are more than tokio allows.
    #[track_caller]
    pub fn named(name: &'static str, permits: usize) -> Self {
        let inner = sync::Semaphore::new(permits);
        Semaphore { ledger: Several::new(Name::new(name), DependsOn::Any(permits)), inner }
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Get a permit.  Waiting tasks get theirs in the order of their first polls.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        mem::forget(Waiting::new(&self.ledger, self.inner.acquire(), 1).await?);
        Ok(Permits::new(self, 1, holder(true)))
    }

    /// Get `n` permits.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        mem::forget(Waiting::new(&self.ledger, self.inner.acquire_many(n), n as usize).await?);
        Ok(Permits::new(self, n as usize, holder(true)))
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
        mem::forget(self.inner.try_acquire_many(n)?);
        Ok(Permits::new(self, n as usize, holder(true)))
    }

    /// Get a permit that keeps the semaphore.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        mem::forget(Waiting::new(&self.ledger, self.inner.acquire(), 1).await?);
        Ok(Permits::new(self, 1, holder(false)))
    }

    /// Get `n` permits that keep the semaphore.
    ///
    /// # Errors
    /// If the semaphore is closed.
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        mem::forget(Waiting::new(&self.ledger, self.inner.acquire_many(n), n as usize).await?);
        Ok(Permits::new(self, n as usize, holder(false)))
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
        mem::forget(self.inner.try_acquire_many(n)?);
        Ok(Permits::new(self, n as usize, holder(false)))
    }

    /// Add permits.  From now on no holder is told, because permits may come from any task.
    ///
    /// # Panics
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then.
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        self.ledger().lose_count();
        self.inner.add_permits(n);
    }

    /// Take away up to `n` of the permits that are available.  Returns how many.  From now on no
    /// holder is told.
    pub fn forget_permits(&self, n: usize) -> usize {
        loop {
            let some = n.min(self.inner.available_permits()).min(u32::MAX as usize);
            if some == 0 || self.is_closed() {
                return 0;
            }
            if let Ok(permits) = self.try_acquire_many(some as u32) {
                permits.forget();
                return some;
            }
        }
    }
}

/// What tokio's semaphore can do besides: how many permits are available, and its end.  A permit
/// that is got by this way is one that dumps do not know of.
impl Deref for Semaphore {
    type Target = sync::Semaphore;

    fn deref(&self) -> &sync::Semaphore {
        &self.inner
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Permits of a semaphore, which are given back when this is dropped.
#[must_use = "if it is dropped at once, the permits are given back at once"]
pub struct Permits<S: Borrow<Semaphore>> {
    semaphore: S,
    n: usize,
    slot: usize,
}

/// Permits of a [`Semaphore`], which are given back when this is dropped.
pub type SemaphorePermit<'a> = Permits<&'a Semaphore>;

/// Permits of a [`Semaphore`], which this keeps.
///
/// Such permits often go to another task, so dumps do not say who has them, unless a task has
/// called [`Permits::adopt`].
pub type OwnedSemaphorePermit = Permits<Arc<Semaphore>>;

impl<S: Borrow<Semaphore>> Permits<S> {
    /// Permits that `task` has got.
    #[inline]
    fn new(semaphore: S, n: usize, task: u64) -> Self {
        let slot = semaphore.borrow().ledger().hold(task, n);
        Permits { semaphore, n, slot }
    }

    /// Do not give the permits back.  From now on no holder is told.
    pub fn forget(mut self) {
        self.semaphore.borrow().ledger().lose_count();
        self.n = 0;
    }

    /// The task that runs has the permits from now on.
    pub fn adopt(&mut self) {
        self.semaphore.borrow().ledger().adopt(self.slot);
    }

    /// Take over the permits of `other`.
    ///
    /// # Panics
    /// If they are those of another semaphore.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            ptr::eq(self.semaphore.borrow(), other.semaphore.borrow()),
            "merging permits from different semaphore instances"
        );
        self.n += mem::take(&mut other.n);
        self.semaphore.borrow().ledger().keep(self.slot, self.n);
    }

    /// Give `n` of these permits away; `None` if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<Self>
    where
        S: Clone,
    {
        self.n = self.n.checked_sub(n)?;
        let ledger = self.semaphore.borrow().ledger();
        ledger.keep(self.slot, self.n);
        Some(Permits::new(self.semaphore.clone(), n, ledger.task(self.slot)))
    }

    /// How many there are.
    pub fn num_permits(&self) -> usize {
        self.n
    }
}

impl OwnedSemaphorePermit {
    /// The semaphore.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }
}

impl<S: Borrow<Semaphore>> Drop for Permits<S> {
    #[inline]
    fn drop(&mut self) {
        let semaphore: &Semaphore = self.semaphore.borrow();
        semaphore.ledger().release(self.slot, || {
            if self.n != 0 {
                semaphore.inner.add_permits(self.n);
            }
        });
    }
}

impl<S: Borrow<Semaphore>> fmt::Debug for Permits<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit").field("permits", &self.n).finish()
    }
}
