// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock for one writer or several readers: a value, and many permits to read it.  A writer
//! needs all of them.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::turns::{DependsOn, Turns};
use super::{block_on, Name, TryLockError};

/// As many as tokio allows.
const ALL: u32 = u32::MAX >> 3;

/// A lock for one writer or several readers as that of tokio, whose holders are known to dumps.
///
/// See the [module](crate::sync) for what dumps say of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let sum = tdt::sync::RwLock::new(40);
/// *sum.write().await += 2;
/// assert_eq!(*sum.read().await, 42);
/// # }
/// ```
pub struct RwLock<T: ?Sized> {
    turns: Turns,
    value: UnsafeCell<T>,
}

// SAFETY: the value goes with the lock.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: who has all permits uses the value alone, on any thread; who has one shares it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A lock that is not held.  Dumps show it with the name of this type.
    pub fn new(value: T) -> Self {
        Self::with(Name::of_type::<Self>(), value)
    }

    /// A lock that dumps show with this name.
    pub fn named(name: &'static str, value: T) -> Self {
        Self::with(Name::new(name), value)
    }

    fn with(name: Name, value: T) -> Self {
        let turns = Turns::new(name, ALL as usize, DependsOn::All);
        RwLock { turns, value: UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Lock it for reading, beside other readers, but behind the writers that wait.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        let task = self.acquire(1, true).await;
        RwLockReadGuard { _permits: Permits { turns: &self.turns, n: 1, task }, lock: self }
    }

    /// Lock it for writing, alone.
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        let task = self.acquire(ALL, true).await;
        let permits = Permits { turns: &self.turns, n: ALL, task };
        RwLockWriteGuard { permits, lock: self, value: PhantomData }
    }

    /// Lock it for reading, with a guard that keeps the lock.
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        let task = self.acquire(1, false).await;
        OwnedRwLockReadGuard { lock: self, task }
    }

    /// Lock it for writing, with a guard that keeps the lock.
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        let task = self.acquire(ALL, false).await;
        OwnedRwLockWriteGuard { lock: self, task }
    }

    /// Lock it for reading, on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// If it is called in the poll of a traced task.
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        block_on(self.read())
    }

    /// Lock it for writing, on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// If it is called in the poll of a traced task.
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        block_on(self.write())
    }

    /// Lock it for reading, if that is possible at once.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        let task = self.try_acquire(1, true)?;
        Ok(RwLockReadGuard { _permits: Permits { turns: &self.turns, n: 1, task }, lock: self })
    }

    /// Lock it for writing, if that is possible at once.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        let task = self.try_acquire(ALL, true)?;
        let permits = Permits { turns: &self.turns, n: ALL, task };
        Ok(RwLockWriteGuard { permits, lock: self, value: PhantomData })
    }

    /// Lock it for reading, if that is possible at once, with a guard that keeps the lock.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        let task = self.try_acquire(1, false)?;
        Ok(OwnedRwLockReadGuard { lock: self, task })
    }

    /// Lock it for writing, if that is possible at once, with a guard that keeps the lock.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        let task = self.try_acquire(ALL, false)?;
        Ok(OwnedRwLockWriteGuard { lock: self, task })
    }

    /// The value of a lock that nobody else can hold.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    async fn acquire(&self, permits: u32, told: bool) -> u64 {
        self.turns.acquire(permits, told).await.expect("a lock is never closed")
    }

    fn try_acquire(&self, permits: u32, told: bool) -> Result<u64, TryLockError> {
        self.turns.try_acquire(permits, told).map_err(|_| TryLockError(()))
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
        let mut lock = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => lock.field("data", &&*guard),
            Err(_) => lock.field("data", &format_args!("<locked>")),
        };
        lock.finish()
    }
}

// --- Guards. ---

/// The permits of a guard, which are given back when this is dropped.
struct Permits<'a> {
    turns: &'a Turns,
    n: u32,
    task: u64,
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.turns.release(self.n as usize, self.task);
    }
}

/// Access of a reader to the value of an [`RwLock`].
///
/// It is Send if `T` is Sync, and Sync if `T` is: as a `&T`, and as the lock that it refers to.
#[must_use = "if it is dropped at once, the lock is given up at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    _permits: Permits<'a>,
    lock: &'a RwLock<T>,
}

/// Access of the writer to the value of an [`RwLock`].
#[must_use = "if it is dropped at once, the lock is given up at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    permits: Permits<'a>,
    lock: &'a RwLock<T>,
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Go on as a reader, without letting another writer in between.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let RwLockWriteGuard { mut permits, lock, .. } = self;
        let (turns, task, n) = (permits.turns, permits.task, permits.n);
        // The exchange wakes tasks, and a waker may panic.  Then the reader's guard is dropped, so
        // it exists before the exchange, and has the one permit that is left after it.
        permits.n = 1;
        let reader = RwLockReadGuard { _permits: permits, lock };
        turns.exchange(n as usize, 1, task);
        reader
    }
}

/// Access of a reader to the value of an [`RwLock`], which this guard keeps.
///
/// Dumps do not say who holds the lock, unless a task has called
/// [`adopt`](OwnedRwLockReadGuard::adopt).
#[must_use = "if it is dropped at once, the lock is given up at once"]
pub struct OwnedRwLockReadGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
    task: u64,
}

/// Access of the writer to the value of an [`RwLock`], which this guard keeps.
///
/// Dumps do not say who holds the lock, unless a task has called
/// [`adopt`](OwnedRwLockWriteGuard::adopt).
#[must_use = "if it is dropped at once, the lock is given up at once"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    lock: Arc<RwLock<T>>,
    task: u64,
}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// The task that runs is a holder from now on.
    pub fn adopt(guard: &mut Self) {
        guard.task = guard.lock.turns.adopt(1, guard.task);
    }
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// The task that runs is the holder from now on.
    pub fn adopt(guard: &mut Self) {
        guard.task = guard.lock.turns.adopt(ALL as usize, guard.task);
    }
}

impl<T: ?Sized> Drop for OwnedRwLockReadGuard<T> {
    fn drop(&mut self) {
        self.lock.turns.release(1, self.task);
    }
}

impl<T: ?Sized> Drop for OwnedRwLockWriteGuard<T> {
    fn drop(&mut self) {
        self.lock.turns.release(ALL as usize, self.task);
    }
}

macro_rules! access {
    ($($guard:ident $(<$life:lifetime>)?),*) => {$(
        impl<T: ?Sized> Deref for $guard<$($life,)? T> {
            type Target = T;

            fn deref(&self) -> &T {
                // SAFETY: the value does not change as long as the guard has a permit, except
                // through a writer's guard, which is borrowed here.
                unsafe { &*self.lock.value.get() }
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<$($life,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}

access!(RwLockReadGuard<'_>, RwLockWriteGuard<'_>, OwnedRwLockReadGuard, OwnedRwLockWriteGuard);

macro_rules! mutable_access {
    ($($guard:ident $(<$life:lifetime>)?),*) => {$(
        impl<T: ?Sized> DerefMut for $guard<$($life,)? T> {
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: who has all permits uses the value alone, and the guard is borrowed as
                // mutable.
                unsafe { &mut *self.lock.value.get() }
            }
        }
    )*};
}

mutable_access!(RwLockWriteGuard<'_>, OwnedRwLockWriteGuard);
