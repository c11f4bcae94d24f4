// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mutex: a value, and one permit to use it.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::turns::{DependsOn, Turns};
use super::{block_on, Name, TryLockError};

/// A mutex as that of tokio, whose holder and waiting tasks are known to dumps.
///
/// See the [module](crate::sync) for what dumps say of it.
pub struct Mutex<T: ?Sized> {
    turns: Turns,
    value: UnsafeCell<T>,
}

// SAFETY: who has the permit uses the value alone, on any thread.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex that is not locked.  Dumps show it with the name of the type `T`.
    pub fn new(value: T) -> Self {
        Self::with(Name::of_type::<T>(), value)
    }

    /// A mutex that dumps show with this name.
    pub fn named(name: &'static str, value: T) -> Self {
        Self::with(Name::new(name), value)
    }

    fn with(name: Name, value: T) -> Self {
        Mutex { turns: Turns::new(name, 1, DependsOn::All), value: UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Lock the mutex.  Waiting tasks get it in the order of their first polls.  Dropping the
    /// future gives up its place in the line.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        let task = self.acquire(true).await;
        self.guard(task)
    }

    /// Lock the mutex, with a guard that keeps the mutex.
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        let task = self.acquire(false).await;
        OwnedMutexGuard { mutex: self, task, value: PhantomData }
    }

    /// Lock the mutex on a thread that runs no tasks, or may be blocked.
    ///
    /// # Panics
    /// If it is called in the poll of a traced task.
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        block_on(self.lock())
    }

    /// The same, with a guard that keeps the mutex.
    ///
    /// # Panics
    /// If it is called in the poll of a traced task.
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        block_on(self.lock_owned())
    }

    /// Lock the mutex if it is free.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        let task = self.turns.try_acquire(1, true).map_err(|_| TryLockError(()))?;
        Ok(self.guard(task))
    }

    /// Lock the mutex if it is free, with a guard that keeps the mutex.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        let task = self.turns.try_acquire(1, false).map_err(|_| TryLockError(()))?;
        Ok(OwnedMutexGuard { mutex: self, task, value: PhantomData })
    }

    /// The value of a mutex that nobody else can lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    async fn acquire(&self, told: bool) -> u64 {
        self.turns.acquire(1, told).await.expect("a mutex is never closed")
    }

    /// The guard of the caller, who has the permit.
    fn guard(&self, task: u64) -> MutexGuard<'_, T> {
        MutexGuard { permit: Permit { turns: &self.turns, task }, mutex: self, value: PhantomData }
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
        let mut mutex = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => mutex.field("data", &&*guard),
            Err(_) => mutex.field("data", &format_args!("<locked>")),
        };
        mutex.finish()
    }
}

// --- Guards. ---

/// The permit of a guard, which is given back when this is dropped.
struct Permit<'a> {
    turns: &'a Turns,
    task: u64,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.turns.release(1, self.task);
    }
}

/// Access to the value of a [`Mutex`], which is unlocked when this is dropped.
#[must_use = "if it is dropped at once, the mutex is unlocked at once"]
pub struct MutexGuard<'a, T: ?Sized> {
    permit: Permit<'a>,
    mutex: &'a Mutex<T>,
    value: PhantomData<*mut T>, // for Send and Sync, see below
}

// SAFETY: the guard is as a `&mut T`.
unsafe impl<T: ?Sized + Send> Send for MutexGuard<'_, T> {}
// SAFETY: the same.  (A guard that is shared gives a `&T`, so that `T: Send` is not enough.)
unsafe impl<T: ?Sized + Send + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// A guard of a part of the value.
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U> {
        let MutexGuard { permit, mutex, .. } = guard;
        // SAFETY: the permit is still had, and the guard is no more.
        let value = part(unsafe { &mut *mutex.value.get() });
        MappedMutexGuard { _permit: permit, value, lifetime: PhantomData }
    }

    /// The mutex.
    pub fn mutex(guard: &Self) -> &'a Mutex<T> {
        guard.mutex
    }

    /// The task that runs is the holder from now on: for a guard that went to another task.
    pub fn adopt(guard: &mut Self) {
        guard.permit.task = guard.permit.turns.adopt(1, guard.permit.task);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the permit uses the value alone.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: who has the permit uses the value alone, and the guard is borrowed as mutable.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Access to a part of the value of a [`Mutex`]: see [`MutexGuard::map`].
#[must_use = "if it is dropped at once, the mutex is unlocked at once"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    _permit: Permit<'a>,
    value: *mut T,
    lifetime: PhantomData<&'a mut T>,
}

// SAFETY: as of a MutexGuard.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send + Sync> Sync for MappedMutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MappedMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it is a part of the value, which the permit is for.
        unsafe { &*self.value }
    }
}

impl<T: ?Sized> DerefMut for MappedMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the same, and the guard is borrowed as mutable.
        unsafe { &mut *self.value }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MappedMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Access to the value of a [`Mutex`], which this guard keeps.
///
/// Such a guard often goes to another task, so dumps do not say who holds the mutex, unless a task
/// has called [`adopt`](OwnedMutexGuard::adopt).
#[must_use = "if it is dropped at once, the mutex is unlocked at once"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
    task: u64,
    value: PhantomData<*mut T>, // for Send and Sync, as of a MutexGuard
}

// SAFETY: as of a MutexGuard.  The mutex, which may be dropped with the guard, is Send.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: the same.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// The task that runs is the holder from now on.
    pub fn adopt(guard: &mut Self) {
        guard.task = guard.mutex.turns.adopt(1, guard.task);
    }

    /// The mutex.
    pub fn mutex(guard: &Self) -> &Arc<Mutex<T>> {
        &guard.mutex
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the permit uses the value alone.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: who has the permit uses the value alone, and the guard is borrowed as mutable.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        self.mutex.turns.release(1, self.task);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
