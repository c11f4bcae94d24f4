// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who holds a lock of tokio and who waits for it, as far as dumps need to know.
//!
//! Tokio's lock decides; the ledger follows.  Each note takes the same time however many tasks hold
//! the lock or wait for it.  While nobody waits, a holder only enters and leaves a slot.
//!
//! A future is in the line from its first pending poll until it is ready or dropped.  Tokio serves
//! its line in order, so when the last holder gives the lock back, the first future in the line has
//! been handed it.  The ledger's line can differ from tokio's: two futures may enter both at the
//! same time, and a future that tokio's budget turned away is in the ledger's only.  If such a
//! future is polled and still waits, the lock was handed to the next one, and the line says so
//! then.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use tdt_sys as sys;

use super::Name;

/// In a slot: a holder that no task is known of.
const UNKNOWN: u64 = u64::MAX;

/// No place, no slot.
const NONE: usize = usize::MAX;

/// On whom those in the line depend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DependsOn {
    /// All that hold the lock must give it back: one of them is reported.
    All,
    /// Any of them may give some of these permits back: a task is reported if it is the only one.
    Any(usize),
}

/// Slots for one mutex; for locks that several tasks hold at a time.
pub(super) type One = Ledger<[Slot; 1]>;
pub(super) type Several = Ledger<[Slot; 8]>;

#[derive(Debug)]
pub struct Ledger<S: ?Sized = [Slot]> {
    head: Head,
    depends_on: DependsOn,
    unslotted: AtomicUsize, // holders for which there was no slot
    waiting: AtomicUsize,   // the length of the line
    line: Mutex<Line>,      // no waker is called under this lock
    slots: S,
}

/// A holder.  Relaxed: tokio's lock orders what the ledger must not miss, see `Ledger::settle`.
#[derive(Debug)]
pub struct Slot {
    task: AtomicU64, // 0: free
    permits: AtomicUsize,
}

/// `struct tdt_lock`, which dumps read at the address that waiting tasks report; and the name.
#[derive(Debug)]
#[repr(C)]
struct Head {
    magic: [sys::c_char; 8],
    // Relaxed: they are written under the line's lock, and dumps only read them.
    owner: AtomicU64,
    handed: AtomicU64,
    taken_at: u64, // a guard may move to another task, so that no lock is called orphaned
    name: Name,
}

#[allow(clippy::declare_interior_mutable_const)] // it is copied on purpose
const FREE: Slot = Slot { task: AtomicU64::new(0), permits: AtomicUsize::new(0) };

impl One {
    pub(super) const fn new(name: Name) -> Self {
        Ledger::with(name, DependsOn::All, [FREE; 1])
    }
}

impl Several {
    pub(super) const fn new(name: Name, depends_on: DependsOn) -> Self {
        Ledger::with(name, depends_on, [FREE; 8])
    }
}

impl<const N: usize> Ledger<[Slot; N]> {
    const fn with(name: Name, depends_on: DependsOn, slots: [Slot; N]) -> Self {
        let (owner, handed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ledger {
            head: Head {
                magic: sys::TDT_LOCK_MAGIC,
                owner,
                handed,
                taken_at: sys::TDT_LOCK_MOVES,
                name,
            },
            depends_on,
            unslotted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            line: Mutex::new(Line::new()),
            slots,
        }
    }
}

// --- Holders. ---

/// The task that this thread polls, for a slot; dumps are to know of it if `told` is set.
#[inline]
pub(super) fn holder(told: bool) -> u64 {
    crate::current_id().filter(|_| told).unwrap_or(UNKNOWN)
}

impl Ledger {
    /// `task` has got so many permits.  Returns its slot.
    #[inline]
    pub(super) fn hold(&self, task: u64, permits: usize) -> usize {
        let free = |slot: &Slot| {
            slot.task.load(Relaxed) == 0
                && slot.task.compare_exchange(0, task, Relaxed, Relaxed).is_ok()
        };
        let slot = self.slots.iter().position(free).unwrap_or(NONE);
        if slot == NONE {
            self.unslotted.fetch_add(1, Relaxed);
        }
        self.keep(slot, permits);
        slot
    }

    /// The holder has so many permits by now.
    #[inline]
    pub(super) fn keep(&self, slot: usize, permits: usize) {
        if let Some(slot) = self.slots.get(slot) {
            slot.permits.store(permits, Relaxed);
        }
        self.settle_if_waited_for(false);
    }

    /// The task in this slot.
    pub(super) fn task(&self, slot: usize) -> u64 {
        self.slots.get(slot).map_or(UNKNOWN, |slot| slot.task.load(Relaxed))
    }

    /// The running task is the holder from now on.
    pub(super) fn adopt(&self, slot: usize) {
        if let Some(slot) = self.slots.get(slot) {
            slot.task.store(holder(true), Relaxed);
        }
        self.settle_if_waited_for(false);
    }

    /// Give the lock back by `release`.  Its holder leaves the slot before, and those that wait are
    /// told afterwards, also if a waker panics.
    #[inline]
    pub(super) fn release(&self, slot: usize, release: impl FnOnce()) {
        struct Settle<'a>(&'a Ledger);
        impl Drop for Settle<'_> {
            #[inline]
            fn drop(&mut self) {
                self.0.settle_if_waited_for(true);
            }
        }

        match self.slots.get(slot) {
            Some(slot) => slot.task.store(0, Relaxed),
            None => drop(self.unslotted.fetch_sub(1, Relaxed)),
        }
        let _settle = Settle(self);
        release();
    }

    /// Permits came from nowhere, or were lost: nobody can be held responsible any more.
    pub(super) fn lose_count(&self) {
        self.line().unaccountable = true;
    }
}

// --- The line. ---

/// A future that waits.
#[derive(Debug)]
struct Place {
    task: u64, // that has polled it last; 0: none
    needs: usize,
    before: usize, // of a free place: the next free one
    behind: usize,
}

#[derive(Debug)]
struct Line {
    places: Vec<Place>,
    free: usize,
    first: usize,
    last: usize,
    handed: bool,        // `head` says that the first one was handed the lock
    unnoted: bool,       // somebody has the lock who is in no slot
    unaccountable: bool, // see `lose_count`
}

impl Line {
    const fn new() -> Self {
        Line {
            places: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            handed: false,
            unnoted: false,
            unaccountable: false,
        }
    }

    fn link(&mut self, at: usize, before: usize) {
        let behind = if before == NONE { self.first } else { self.places[before].behind };
        (self.places[at].before, self.places[at].behind) = (before, behind);
        *if before == NONE { &mut self.first } else { &mut self.places[before].behind } = at;
        *if behind == NONE { &mut self.last } else { &mut self.places[behind].before } = at;
    }

    fn unlink(&mut self, at: usize) {
        let (before, behind) = (self.places[at].before, self.places[at].behind);
        self.handed &= before != NONE;
        *if before == NONE { &mut self.first } else { &mut self.places[before].behind } = behind;
        *if behind == NONE { &mut self.last } else { &mut self.places[behind].before } = before;
    }

    fn enter(&mut self, task: u64, needs: usize) -> usize {
        let place = Place { task, needs, before: NONE, behind: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.places.push(place);
            self.places.len() - 1
        } else {
            self.free = self.places[at].before;
            self.places[at] = place;
            at
        };
        self.link(at, self.last);
        at
    }

    fn leave(&mut self, at: usize) {
        self.unlink(at);
        self.places[at].before = self.free;
        self.free = at;
    }

    /// The first future was said to have been handed the lock, and has not got it: the next one
    /// has, or somebody whom the ledger does not know.
    fn pass_on(&mut self) {
        let (at, next) = (self.first, self.places[self.first].behind);
        if next == NONE {
            self.unnoted = true;
        } else {
            self.unlink(at);
            self.link(at, next);
        }
        self.handed = false;
    }
}

impl Ledger {
    fn line(&self) -> std::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The poll of a future that waits has returned.  Returns its place.
    #[cold]
    fn wait(&self, at: usize, needs: usize) -> usize {
        let task = crate::current_id().unwrap_or(0);
        let mut line = self.line();
        let at = if at == NONE {
            let at = line.enter(task, needs);
            self.waiting.fetch_add(1, Relaxed);
            line.unnoted |= line.first == at && self.owner(&line).1;
            at
        } else {
            line.places[at].task = task;
            if line.handed && line.first == at {
                line.pass_on();
            }
            at
        };
        self.settle(&mut line);
        drop(line);
        // SAFETY: it is a `struct tdt_lock`, which lives during the call.  (Dumps read it later,
        // through the kernel; it may be freed at any time.)  The name lives for ever.
        unsafe { sys::tdt_leaf_waits_on_lock(self.lock(), self.head.name.c()) }
        at
    }

    /// A future leaves the line.  If it is ready, it has the lock, and will be in a slot soon.
    #[cold]
    fn leave(&self, at: usize, ready: bool) {
        let mut line = self.line();
        line.leave(at);
        line.unnoted |= ready;
        self.waiting.fetch_sub(1, Relaxed);
        self.settle(&mut line);
    }

    #[inline]
    fn settle_if_waited_for(&self, released: bool) {
        if self.waiting.load(Relaxed) != 0 {
            self.settle_now(released);
        }
    }

    #[cold]
    fn settle_now(&self, released: bool) {
        let mut line = self.line();
        line.unnoted &= !released;
        self.settle(&mut line);
    }

    /// Tell dumps whom the line depends on.
    ///
    /// A holder that gives the lock back leaves its slot, then calls tokio, then looks whether
    /// somebody waits.  A future that waits calls tokio, then enters the line, then looks at the
    /// slots.  Tokio's own lock is between, so one of the two sees what the other has done; on a
    /// machine that reorders more than tokio's lock forbids, the next poll of a waiter does.
    fn settle(&self, line: &mut Line) {
        let (task, handed) = self.owner(line);
        let lock = self.lock() as *mut sys::tdt_lock;
        // SAFETY: it is a `struct tdt_lock`, and the library writes only what is atomic here.
        match (handed, line.handed) {
            (true, true) => self.head.owner.store(task, Relaxed), // since when does not change
            (true, false) => unsafe { sys::tdt_lock_hand(lock, task) },
            (false, _) => unsafe { sys::tdt_lock_take(lock, task) },
        }
        line.handed = handed;
    }

    /// The task that those in the line depend on, and whether it was handed the lock without having
    /// taken it yet.  0: none, or unknown.
    fn owner(&self, line: &Line) -> (u64, bool) {
        let held = || self.slots.iter().filter(|slot| slot.task.load(Relaxed) != 0);
        let tasks = || held().map(|slot| slot.task.load(Relaxed));
        let known = tasks().find(|&task| task != UNKNOWN);
        let all_slotted = self.unslotted.load(Relaxed) == 0;
        let free = all_slotted && held().next().is_none();
        let first = match line.places.get(line.first) {
            Some(first) => first,
            None => return (0, false),
        };
        let handed = if line.unnoted { (0, false) } else { (first.task, true) };
        let permits = match self.depends_on {
            DependsOn::All if free => return handed,
            DependsOn::All => return (known.unwrap_or(0), false),
            DependsOn::Any(permits) => permits,
        };
        let held: usize = held().map(|slot| slot.permits.load(Relaxed)).sum();
        let left = permits.saturating_sub(held);
        let second_needs = line.places.get(first.behind).map_or(left, |second| second.needs);
        if line.unaccountable || !all_slotted {
            (0, false)
        } else if first.needs > left {
            (known.filter(|known| tasks().all(|task| task == *known)).unwrap_or(0), false)
        } else if free && first.needs + second_needs > left {
            handed // and nobody else was
        } else {
            (0, false)
        }
    }

    fn lock(&self) -> *const sys::tdt_lock {
        let head: *const Head = &self.head;
        head.cast()
    }
}

/// A future of tokio that waits for a lock, and what the ledger notes of it.
pub(super) struct Waiting<'a, F> {
    ledger: &'a Ledger,
    inner: F,
    needs: usize,
    place: usize,
}

impl<'a, F> Waiting<'a, F> {
    #[inline]
    pub(super) fn new(ledger: &'a Ledger, inner: F, needs: usize) -> Self {
        Waiting { ledger, inner, needs, place: NONE }
    }
}

impl<F: Future> Future for Waiting<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of `this`, and is only polled as pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: see above.
        let polled = unsafe { Pin::new_unchecked(&mut this.inner) }.poll(cx);
        if polled.is_pending() {
            this.place = this.ledger.wait(this.place, this.needs);
        } else if this.place != NONE {
            this.ledger.leave(mem::replace(&mut this.place, NONE), true);
        }
        polled
    }
}

/// It leaves the line before `inner` leaves that of tokio, and the lock is handed to the next one.
impl<F> Drop for Waiting<'_, F> {
    #[inline]
    fn drop(&mut self) {
        if self.place != NONE {
            self.ledger.leave(self.place, false);
        }
    }
}
