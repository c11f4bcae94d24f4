// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The guards of locks: those of tokio, and what the ledger notes of their holders.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;

use tokio::sync;

use super::ledger::{holder, Ledger};
use super::{Mutex, RwLock};

/// A lock, borrowed or owned.
pub trait Lock {
    /// What a guard of a part of the value keeps.
    type Part: Lock;
    fn ledger(&self) -> &Ledger;
    fn part(self) -> Self::Part;
}

impl<'a, T: ?Sized> Lock for &'a Mutex<T> {
    type Part = &'a Ledger;

    #[inline]
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn part(self) -> &'a Ledger {
        &self.ledger
    }
}

impl Lock for &Ledger {
    type Part = Self;

    #[inline]
    fn ledger(&self) -> &Ledger {
        self
    }

    fn part(self) -> Self {
        self
    }
}

macro_rules! owned {
    ($($lock:ident)*) => {$(
        impl<T: ?Sized> Lock for Arc<$lock<T>> {
            type Part = Self;

            #[inline]
            fn ledger(&self) -> &Ledger {
                &self.ledger
            }

            fn part(self) -> Self {
                self
            }
        }
    )*};
}

owned! { Mutex RwLock }

/// A guard of tokio.  Dumps know the task that has it.
///
/// See [`MutexGuard`](super::MutexGuard), [`RwLockReadGuard`](super::RwLockReadGuard) and their
/// relatives for what each of them can do.
#[must_use = "if it is dropped at once, the lock is given back at once"]
pub struct Guard<G, L: Lock> {
    inner: ManuallyDrop<G>, // its lock is borrowed for as long as `lock` lives
    lock: L,
    slot: usize,
}

impl<G, L: Lock> Guard<G, L> {
    /// The caller has got the guard.
    #[inline]
    pub(super) fn new(inner: G, lock: L, told: bool) -> Self {
        let slot = lock.ledger().hold(holder(told), 1);
        Guard { inner: ManuallyDrop::new(inner), lock, slot }
    }

    /// The task that runs is the holder from now on: for a guard that went to another task.
    pub fn adopt(guard: &mut Self) {
        guard.lock.ledger().adopt(guard.slot);
    }

    /// Make another guard of that of tokio.
    fn turn<H>(self, turn: impl FnOnce(G) -> H) -> (H, L, usize) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so that each of them is taken once.
        let (inner, lock) = unsafe { (ManuallyDrop::take(&mut this.inner), ptr::read(&this.lock)) };
        match catch_unwind(AssertUnwindSafe(|| turn(inner))) {
            Ok(turned) => (turned, lock, this.slot),
            Err(payload) => {
                lock.ledger().release(this.slot, || ()); // tokio's guard is gone
                resume_unwind(payload)
            }
        }
    }

    fn turn_part<H>(self, turn: impl FnOnce(G) -> H) -> Guard<H, L::Part> {
        let (inner, lock, slot) = self.turn(turn);
        Guard { inner: ManuallyDrop::new(inner), lock: lock.part(), slot }
    }

    fn try_turn_part<H>(
        self,
        turn: impl FnOnce(G) -> Result<H, G>,
    ) -> Result<Guard<H, L::Part>, Self> {
        match self.turn(turn) {
            (Ok(inner), lock, slot) => {
                Ok(Guard { inner: ManuallyDrop::new(inner), lock: lock.part(), slot })
            }
            (Err(inner), lock, slot) => Err(Guard { inner: ManuallyDrop::new(inner), lock, slot }),
        }
    }
}

impl<G, L: Lock> Drop for Guard<G, L> {
    #[inline]
    fn drop(&mut self) {
        let inner = &mut self.inner;
        // SAFETY: once, and nothing uses it afterwards.
        self.lock.ledger().release(self.slot, || unsafe { ManuallyDrop::drop(inner) });
    }
}

impl<G: Deref, L: Lock> Deref for Guard<G, L> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.inner
    }
}

impl<G: DerefMut, L: Lock> DerefMut for Guard<G, L> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.inner
    }
}

impl<G: fmt::Debug, L: Lock> fmt::Debug for Guard<G, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<G: fmt::Display, L: Lock> fmt::Display for Guard<G, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

// --- What guards can do. ---

/// A part of the value of a mutex, and tokio's guard of no part: older ones have no guard of a part
/// without a size.
pub struct MutexPart<'a, U: ?Sized> {
    _permit: sync::MappedMutexGuard<'a, ()>,
    value: *mut U,
    lifetime: PhantomData<&'a mut U>,
}

// SAFETY: it is as a `&mut U`.
unsafe impl<U: ?Sized + Send> Send for MutexPart<'_, U> {}
// SAFETY: the same.
unsafe impl<U: ?Sized + Send + Sync> Sync for MutexPart<'_, U> {}

impl<U: ?Sized> Deref for MutexPart<'_, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: it is a part of the value, which the permit is for.
        unsafe { &*self.value }
    }
}

impl<U: ?Sized> DerefMut for MutexPart<'_, U> {
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: the same, and the guard is borrowed as mutable.
        unsafe { &mut *self.value }
    }
}

impl<U: ?Sized + fmt::Debug> fmt::Debug for MutexPart<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<U: ?Sized + fmt::Display> fmt::Display for MutexPart<'_, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// As `MutexGuard::try_map` of tokio.
fn try_part<'a, T: ?Sized, U: ?Sized>(
    guard: sync::MutexGuard<'a, T>,
    part: impl FnOnce(&mut T) -> Option<&mut U>,
) -> Result<MutexPart<'a, U>, sync::MutexGuard<'a, T>> {
    let mut value = None;
    let permit = sync::MutexGuard::try_map(guard, |whole| {
        value = part(whole).map(|part| part as *mut U);
        value.map(|_| Box::leak(Box::new(()))) // which allocates nothing
    })?;
    match value {
        Some(value) => Ok(MutexPart { _permit: permit, value, lifetime: PhantomData }),
        None => unreachable!("a part was found"),
    }
}

/// The same of a part.
fn try_part_of_part<'a, T: ?Sized, U: ?Sized>(
    mut guard: MutexPart<'a, T>,
    part: impl FnOnce(&mut T) -> Option<&mut U>,
) -> Result<MutexPart<'a, U>, MutexPart<'a, T>> {
    match part(&mut guard).map(|part| part as *mut U) {
        Some(value) => Ok(MutexPart { _permit: guard._permit, value, lifetime: PhantomData }),
        None => Err(guard),
    }
}

macro_rules! parts {
    ($($guard:ty => $part:ty: $try:expr $(, $mut:tt)?;)*) => {$(
        impl<'a, T: ?Sized, L: Lock> Guard<$guard, L> {
            /// A guard of a part of the value.
            pub fn map<U: ?Sized>(
                guard: Self,
                part: impl FnOnce(&$($mut)? T) -> &$($mut)? U,
            ) -> Guard<$part, L::Part> {
                match guard.try_turn_part(|inner| $try(inner, |whole| Some(part(whole)))) {
                    Ok(part) => part,
                    Err(_) => unreachable!("there is a part"),
                }
            }

            /// A guard of a part of the value, if there is one.
            ///
            /// # Errors
            /// The guard, if there is none.
            pub fn try_map<U: ?Sized>(
                guard: Self,
                part: impl FnOnce(&$($mut)? T) -> Option<&$($mut)? U>,
            ) -> Result<Guard<$part, L::Part>, Self> {
                guard.try_turn_part(|inner| $try(inner, part))
            }
        }
    )*};
}

parts! {
    sync::MutexGuard<'a, T> => MutexPart<'a, U>: try_part, mut;
    MutexPart<'a, T> => MutexPart<'a, U>: try_part_of_part, mut;
    sync::RwLockReadGuard<'a, T> => sync::RwLockReadGuard<'a, U>:
        sync::RwLockReadGuard::try_map;
    sync::RwLockWriteGuard<'a, T> => sync::RwLockMappedWriteGuard<'a, U>:
        sync::RwLockWriteGuard::try_map, mut;
    sync::RwLockMappedWriteGuard<'a, T> => sync::RwLockMappedWriteGuard<'a, U>:
        sync::RwLockMappedWriteGuard::try_map, mut;
}

impl<'a, T: ?Sized> Guard<sync::MutexGuard<'a, T>, &'a Mutex<T>> {
    /// The mutex.
    pub fn mutex(guard: &Self) -> &'a Mutex<T> {
        guard.lock
    }
}

impl<T: ?Sized> Guard<sync::MutexGuard<'static, T>, Arc<Mutex<T>>> {
    /// The mutex.
    pub fn mutex(guard: &Self) -> &Arc<Mutex<T>> {
        &guard.lock
    }
}

impl<G, T: ?Sized> Guard<G, Arc<RwLock<T>>> {
    /// The lock.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        &guard.lock
    }
}

type Reading<'a, T, L> = Guard<sync::RwLockReadGuard<'a, T>, <L as Lock>::Part>;

impl<'a, T: ?Sized, L: Lock> Guard<sync::RwLockWriteGuard<'a, T>, L> {
    /// Let other readers in, but no writer meanwhile.
    pub fn downgrade(self) -> Reading<'a, T, L> {
        self.turn_part(sync::RwLockWriteGuard::downgrade)
    }

    /// The same, for a part of the value.
    pub fn downgrade_map<U: ?Sized>(guard: Self, part: impl FnOnce(&T) -> &U) -> Reading<'a, U, L> {
        guard.turn_part(|inner| {
            let part: *const U = part(&inner);
            // SAFETY: the lock is held for reading without a gap, so that the part is not changed.
            sync::RwLockReadGuard::map(inner.downgrade(), |_| unsafe { &*part })
        })
    }

    /// The same, if there is such a part.
    ///
    /// # Errors
    /// The guard, if there is none.
    pub fn try_downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Reading<'a, U, L>, Self> {
        guard.try_turn_part(|inner| {
            let part: *const U = match part(&inner) {
                Some(part) => part,
                None => return Err(inner),
            };
            // SAFETY: as above.
            Ok(sync::RwLockReadGuard::map(inner.downgrade(), |_| unsafe { &*part }))
        })
    }

    /// The same guard, as that of a part.
    pub fn into_mapped(guard: Self) -> Guard<sync::RwLockMappedWriteGuard<'a, T>, L::Part> {
        guard.turn_part(sync::RwLockWriteGuard::into_mapped)
    }
}
