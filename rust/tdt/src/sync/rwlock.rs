// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock of one writer or many readers.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::{self, TryLockError};

use super::guard::Guard;
use super::ledger::{DependsOn, Ledger, Several, Waiting};
use super::mutex::forever;
use super::Name;

/// Tokio's lock for one writer or many readers.  Dumps know who holds it and who waits for it.
///
/// See the [module](crate::sync) for what they say of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let lock = tdt::sync::RwLock::new(1);
/// assert_eq!(*lock.read().await + *lock.read().await, 2);
/// *lock.write().await = 3;
/// assert_eq!(lock.into_inner(), 3);
/// # }
/// ```
pub struct RwLock<T: ?Sized> {
    pub(super) ledger: Several,
    inner: sync::RwLock<T>,
}

/// Shared access to the value of an [`RwLock`].
pub type RwLockReadGuard<'a, T> = Guard<sync::RwLockReadGuard<'a, T>, &'a Ledger>;

/// Exclusive access to the value of an [`RwLock`].
pub type RwLockWriteGuard<'a, T> = Guard<sync::RwLockWriteGuard<'a, T>, &'a Ledger>;

/// Exclusive access to a part of the value of an [`RwLock`]: see [`Guard::map`].
pub type RwLockMappedWriteGuard<'a, T> = Guard<sync::RwLockMappedWriteGuard<'a, T>, &'a Ledger>;

/// Shared access to the value of an [`RwLock`], or to its part `U`; this guard keeps the lock.
///
/// Such a guard often goes to another task, so dumps do not say who holds the lock, unless a task
/// has called [`Guard::adopt`].
pub type OwnedRwLockReadGuard<T, U = T> = Guard<sync::RwLockReadGuard<'static, U>, Arc<RwLock<T>>>;

/// Exclusive access to the value of an [`RwLock`], which this guard keeps.
///
/// Who holds it is as of an [`OwnedRwLockReadGuard`].
pub type OwnedRwLockWriteGuard<T> = Guard<sync::RwLockWriteGuard<'static, T>, Arc<RwLock<T>>>;

/// Exclusive access to a part of the value of an [`RwLock`], which this guard keeps.
pub type OwnedRwLockMappedWriteGuard<T, U = T> =
    Guard<sync::RwLockMappedWriteGuard<'static, U>, Arc<RwLock<T>>>;

impl<T> RwLock<T> {
    /// A lock that is not held.  Dumps show it with the name of this type.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::with(Name::of_type::<Self>(), sync::RwLock::new(value))
    }

    /// The same for a static.
    #[cfg(feature = "parking_lot")]
    #[cfg_attr(docsrs, doc(cfg(feature = "parking_lot")))]
    pub const fn const_new(value: T) -> Self {
        let ledger = Several::new(Name::of_type::<Self>(), DependsOn::All);
        RwLock { ledger, inner: sync::RwLock::const_new(value) }
    }

    /// A lock that so many readers may hold at a time.
    ///
    /// # Panics
    /// If there are more than tokio allows.
    #[track_caller]
    pub fn with_max_readers(value: T, readers: u32) -> Self {
        Self::with(Name::of_type::<Self>(), sync::RwLock::with_max_readers(value, readers))
    }

    /// A lock that dumps show with this name.
    #[track_caller]
    pub fn named(name: &'static str, value: T) -> Self {
        Self::with(Name::new(name), sync::RwLock::new(value))
    }

    fn with(name: Name, inner: sync::RwLock<T>) -> Self {
        RwLock { ledger: Several::new(name, DependsOn::All), inner }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

macro_rules! calls {
    ($($doc:literal: $guard:ident $call:ident, $owned_guard:ident $owned_call:ident,
       $try:ident, $try_owned:ident;)*) => {$(
        #[doc = $doc]
        pub async fn $call(&self) -> $guard<'_, T> {
            let inner = Waiting::new(&self.ledger, self.inner.$call(), 1).await;
            Guard::new(inner, &self.ledger, true)
        }

        /// The same, with a guard that keeps the lock.
        pub async fn $owned_call(self: Arc<Self>) -> $owned_guard<T>
        where
            T: 'static,
        {
            // SAFETY: the lock is kept until the guard is dropped.
            let lock = unsafe { forever(&self) };
            let inner = Waiting::new(&lock.ledger, lock.inner.$call(), 1).await;
            Guard::new(inner, self, false)
        }

        /// The same, if that is possible at once.
        ///
        /// # Errors
        /// If it is not.
        pub fn $try(&self) -> Result<$guard<'_, T>, TryLockError> {
            Ok(Guard::new(self.inner.$try()?, &self.ledger, true))
        }

        /// The same, if that is possible at once, with a guard that keeps the lock.
        ///
        /// # Errors
        /// If it is not.
        pub fn $try_owned(self: Arc<Self>) -> Result<$owned_guard<T>, TryLockError>
        where
            T: 'static,
        {
            // SAFETY: the lock is kept until the guard is dropped.
            let lock = unsafe { forever(&self) };
            Ok(Guard::new(lock.inner.$try()?, self, false))
        }
    )*};
}

impl<T: ?Sized> RwLock<T> {
    calls! {
        "Lock it for reading, beside other readers, but behind the writers that wait.":
            RwLockReadGuard read, OwnedRwLockReadGuard read_owned, try_read, try_read_owned;
        "Lock it for writing.":
            RwLockWriteGuard write, OwnedRwLockWriteGuard write_owned, try_write, try_write_owned;
    }

    /// [`read`](Self::read) on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// In a task of tokio.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        Guard::new(self.inner.blocking_read(), &self.ledger, true)
    }

    /// [`write`](Self::write) on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// In a task of tokio.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        Guard::new(self.inner.blocking_write(), &self.ledger, true)
    }

    /// The value of a lock that nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

/// What tokio's lock can do besides.  A guard that is got by this way is one that dumps do not know
/// of.
impl<T: ?Sized> Deref for RwLock<T> {
    type Target = sync::RwLock<T>;

    fn deref(&self) -> &sync::RwLock<T> {
        &self.inner
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
