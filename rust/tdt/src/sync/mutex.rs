// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mutex.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::{self, TryLockError};

use super::guard::{Guard, MutexPart};
use super::ledger::{Ledger, One, Waiting};
use super::Name;

/// Tokio's mutex.  Dumps know who holds it and who waits for it.
///
/// See the [module](crate::sync) for what they say of it.
pub struct Mutex<T: ?Sized> {
    pub(super) ledger: One,
    inner: sync::Mutex<T>,
}

/// Access to the value of a [`Mutex`], which is unlocked when this is dropped.
pub type MutexGuard<'a, T> = Guard<sync::MutexGuard<'a, T>, &'a Mutex<T>>;

/// Access to a part of the value of a [`Mutex`]: see [`Guard::map`].
pub type MappedMutexGuard<'a, T> = Guard<MutexPart<'a, T>, &'a Ledger>;

/// Access to the value of a [`Mutex`], which this guard keeps.
///
/// Such a guard often goes to another task, so dumps do not say who holds the mutex, unless a task
/// has called [`Guard::adopt`].
pub type OwnedMutexGuard<T> = Guard<sync::MutexGuard<'static, T>, Arc<Mutex<T>>>;

/// Access to a part of the value of a [`Mutex`], which this guard keeps.
pub type OwnedMappedMutexGuard<T, U> = Guard<MutexPart<'static, U>, Arc<Mutex<T>>>;

impl<T> Mutex<T> {
    /// A mutex that is not locked.  Dumps show it with the name of the type `T`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Mutex { ledger: One::new(Name::of_type::<T>()), inner: sync::Mutex::new(value) }
    }

    /// The same for a static.
    #[cfg(feature = "parking_lot")]
    #[cfg_attr(docsrs, doc(cfg(feature = "parking_lot")))]
    pub const fn const_new(value: T) -> Self {
        Mutex { ledger: One::new(Name::of_type::<T>()), inner: sync::Mutex::const_new(value) }
    }

    /// A mutex that dumps show with this name.
    #[track_caller]
    pub fn named(name: &'static str, value: T) -> Self {
        Mutex { ledger: One::new(Name::new(name)), inner: sync::Mutex::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Lock the mutex.  Waiting tasks get it in the order of their first polls.  Dropping the
    /// future gives up its place in the line.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        let inner = Waiting::new(&self.ledger, self.inner.lock(), 1).await;
        Guard::new(inner, self, true)
    }

    /// Lock the mutex, with a guard that keeps the mutex.
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T>
    where
        T: 'static,
    {
        // SAFETY: the mutex is kept until the guard is dropped.
        let mutex = unsafe { forever(&self) };
        let inner = Waiting::new(&mutex.ledger, mutex.inner.lock(), 1).await;
        Guard::new(inner, self, false)
    }

    /// Lock the mutex on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// In a task of tokio.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        Guard::new(self.inner.blocking_lock(), self, true)
    }

    /// The same, with a guard that keeps the mutex.
    ///
    /// # Panics
    /// In a task of tokio.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T>
    where
        T: 'static,
    {
        // SAFETY: the mutex is kept until the guard is dropped.
        let mutex = unsafe { forever(&self) };
        Guard::new(mutex.inner.blocking_lock(), self, false)
    }

    /// Lock the mutex if it is free.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        Ok(Guard::new(self.inner.try_lock()?, self, true))
    }

    /// Lock the mutex if it is free, with a guard that keeps the mutex.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError>
    where
        T: 'static,
    {
        // SAFETY: the mutex is kept until the guard is dropped.
        let mutex = unsafe { forever(&self) };
        Ok(Guard::new(mutex.inner.try_lock()?, self, false))
    }

    /// The value of a mutex that nobody else can lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

/// # Safety
/// The result is not used when the last `Arc` is dropped.
pub(super) unsafe fn forever<T: ?Sized + 'static>(kept: &Arc<T>) -> &'static T {
    // SAFETY: the caller's contract.
    unsafe { &*Arc::as_ptr(kept) }
}

/// What tokio's mutex can do besides.  A guard that is got by this way is one that dumps do not
/// know of.
impl<T: ?Sized> Deref for Mutex<T> {
    type Target = sync::Mutex<T>;

    fn deref(&self) -> &sync::Mutex<T> {
        &self.inner
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
