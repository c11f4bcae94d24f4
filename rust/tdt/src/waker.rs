// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakers of Rust as wakers of libtdt, and the reverse.
//!
//! The runtime's waker has two forms for libtdt.  `Borrowed` is on the stack of a poll: it is all
//! that a task needs that is ready at its first poll.  Its first clone makes an `Owned`, which is
//! on the heap, counts its holders, and is its own clone: libtdt recognizes it in later polls, and
//! does not clone it again.
//!
//! The way back is `SUBSTITUTE`: in a poll that is captured, the leaf gets a waker of libtdt.

use std::mem::{self, ManuallyDrop};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

use tdt_sys::{tdt_waker, tdt_waker_beneath, tdt_waker_vtable};

/// Run a function of the runtime's waker, called from C, into which it must not unwind.  A panic
/// has been reported by the panic hook; nobody here can do more about it.
fn without_unwinding(call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        mem::forget(payload); // its drop may panic, too
    }
}

// --- On the heap. ---

/// A clone of the runtime's waker.
#[repr(C)]
struct Owned {
    head: tdt_waker, // first: libtdt has a pointer to it
    holders: AtomicUsize,
    waker: Waker,
}

static OWNED: tdt_waker_vtable = tdt_waker_vtable {
    clone: owned_clone,
    wake: owned_wake,
    wake_by_ref: owned_wake_by_ref,
    drop: owned_drop,
};

// SAFETY of these four: libtdt passes a waker that it was given and that is still held, as the ABI
// demands.  Such a pointer comes from `OwnedWaker::new`, so that it is that of a whole `Owned`.

unsafe extern "C" fn owned_clone(waker: *const tdt_waker) -> *const tdt_waker {
    // SAFETY: see above.
    let owned = unsafe { &*waker.cast::<Owned>() };
    // Relaxed: the caller holds one, so the count can't reach zero meanwhile.
    if owned.holders.fetch_add(1, Ordering::Relaxed) > usize::MAX / 2 {
        std::process::abort(); // as std's Arc does: someone leaks clones
    }
    waker
}

unsafe extern "C" fn owned_wake(waker: *const tdt_waker) {
    // SAFETY: see above; the caller gives up what it holds.
    unsafe {
        owned_wake_by_ref(waker);
        owned_drop(waker);
    }
}

unsafe extern "C" fn owned_wake_by_ref(waker: *const tdt_waker) {
    // SAFETY: see above.
    let owned = unsafe { &*waker.cast::<Owned>() };
    without_unwinding(|| owned.waker.wake_by_ref());
}

unsafe extern "C" fn owned_drop(waker: *const tdt_waker) {
    let owned = waker as *mut Owned;
    // Release what this holder did with it; acquire what all others did before it is freed.  Pairs
    // with itself.
    // SAFETY: see above.
    if unsafe { (*owned).holders.fetch_sub(1, Ordering::AcqRel) } == 1 {
        // SAFETY: this was the last holder, and the pointer came from Box::into_raw.
        let owned = unsafe { Box::from_raw(owned) };
        without_unwinding(|| drop(owned));
    }
}

/// One holder of an `Owned`.
pub(crate) struct OwnedWaker(NonNull<Owned>);

// SAFETY: an `Owned` consists of a Waker, which is Send and Sync, an atomic, and a constant.
unsafe impl Send for OwnedWaker {}
// SAFETY: the same.
unsafe impl Sync for OwnedWaker {}

impl OwnedWaker {
    /// Whether it wakes the same task as `waker`.  It is still held, so that no other task's waker
    /// can look the same.
    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        // SAFETY: it is held.
        unsafe { self.0.as_ref() }.waker.will_wake(waker)
    }

    #[inline]
    pub(crate) fn as_tdt(&self) -> *const tdt_waker {
        self.0.as_ptr().cast()
    }
}

impl Drop for OwnedWaker {
    fn drop(&mut self) {
        // SAFETY: it is held, and this is the end of that.
        unsafe { owned_drop(self.as_tdt()) }
    }
}

// --- On the stack. ---

/// The runtime's waker, borrowed for a poll.
#[repr(C)]
pub(crate) struct Borrowed<'a> {
    head: tdt_waker, // first: libtdt has a pointer to it
    waker: &'a Waker,
    owned: AtomicPtr<Owned>, // what the clones are, once there is one; held
    closed: AtomicBool,      // there are no more clones; relaxed, its own thread sets and reads it
}

static BORROWED: tdt_waker_vtable = tdt_waker_vtable {
    clone: borrowed_clone,
    wake: borrowed_wake_by_ref,
    wake_by_ref: borrowed_wake_by_ref,
    drop: borrowed_drop,
};

impl<'a> Borrowed<'a> {
    #[inline]
    pub(crate) fn new(waker: &'a Waker) -> Self {
        let head = tdt_waker { vtable: &BORROWED };
        Borrowed {
            head,
            waker,
            owned: AtomicPtr::new(ptr::null_mut()),
            closed: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn as_tdt(&self) -> *const tdt_waker {
        (self as *const Self).cast()
    }

    /// Give no more clones: libtdt saves none then.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// The first clone, if there was one.
    #[inline]
    pub(crate) fn into_owned(mut self) -> Option<OwnedWaker> {
        if *self.closed.get_mut() {
            return None;
        }
        let owned = mem::replace(self.owned.get_mut(), ptr::null_mut());
        NonNull::new(owned).map(OwnedWaker)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        drop(NonNull::new(*self.owned.get_mut()).map(OwnedWaker));
    }
}

// SAFETY of these three: the ABI allows libtdt to use the waker of a context during the poll only,
// in which the `Borrowed` is on the stack.  Several threads may call them, of which each has a
// shared reference.

unsafe extern "C" fn borrowed_clone(waker: *const tdt_waker) -> *const tdt_waker {
    // SAFETY: see above.
    let borrowed = unsafe { &*waker.cast::<Borrowed<'_>>() };
    if borrowed.closed.load(Ordering::Relaxed) {
        return ptr::null();
    }
    // Acquire the clone that another thread made.  Pairs with the exchange.
    let mut owned = borrowed.owned.load(Ordering::Acquire);
    if owned.is_null() {
        owned = first_clone(borrowed);
    }
    if owned.is_null() {
        return ptr::null();
    }
    // SAFETY: the `Borrowed` holds it.
    unsafe { owned_clone(owned.cast()) }
}

/// Have `borrowed` hold an `Owned`.  If the waker's clone panics, the result is null: libtdt takes
/// that as a lack of memory, and `clone_beneath` has the leaf panic.
fn first_clone(borrowed: &Borrowed<'_>) -> *mut Owned {
    let waker = match catch_unwind(AssertUnwindSafe(|| borrowed.waker.clone())) {
        Ok(waker) => waker,
        Err(payload) => {
            mem::forget(payload); // its drop may panic, too
            return ptr::null_mut();
        }
    };
    let owned = Box::into_raw(Box::new(Owned {
        head: tdt_waker { vtable: &OWNED },
        holders: AtomicUsize::new(1),
        waker,
    }));
    let exchanged = borrowed.owned.compare_exchange(
        ptr::null_mut(),
        owned,
        Ordering::AcqRel, // release the clone; pairs with the load in borrowed_clone()
        Ordering::Acquire,
    );
    match exchanged {
        Ok(_) => owned,
        Err(others) => {
            // SAFETY: nobody else has seen it.
            without_unwinding(|| drop(unsafe { Box::from_raw(owned) }));
            others
        }
    }
}

unsafe extern "C" fn borrowed_wake_by_ref(waker: *const tdt_waker) {
    // SAFETY: see above.
    let borrowed = unsafe { &*waker.cast::<Borrowed<'_>>() };
    without_unwinding(|| borrowed.waker.wake_by_ref());
}

/// A borrowed waker is not dropped; this only keeps a mistake harmless.
unsafe extern "C" fn borrowed_drop(_waker: *const tdt_waker) {}

// --- A waker of libtdt for a leaf. ---

static SUBSTITUTE: RawWakerVTable =
    RawWakerVTable::new(substitute_clone, substitute_wake, substitute_wake_by_ref, substitute_drop);

/// `waker` as one of Rust, borrowed: it is not dropped.
///
/// # Safety
/// `waker` is valid as long as the result is used.
#[inline]
pub(crate) unsafe fn substitute(waker: *const tdt_waker) -> ManuallyDrop<Waker> {
    let raw = RawWaker::new(waker.cast(), &SUBSTITUTE);
    // SAFETY: the functions of a waker of libtdt keep what RawWaker demands; any thread may call
    // them.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
}

// SAFETY of these four: `data` is a valid waker of libtdt, by the contract of `substitute` for the
// borrowed one, and because the leaf owns the others.

unsafe fn substitute_clone(data: *const ()) -> RawWaker {
    let waker = data.cast::<tdt_waker>();
    // This call records the stack.
    // SAFETY: see above.
    let clone = unsafe { ((*(*waker).vtable).clone)(waker) };
    // SAFETY: see above.
    let clone = if clone.is_null() { unsafe { clone_beneath(waker) } } else { clone };
    RawWaker::new(clone.cast(), &SUBSTITUTE)
}

/// For want of memory for a clone of libtdt's own, a clone of the waker beneath.
#[cold]
unsafe fn clone_beneath(waker: *const tdt_waker) -> *const tdt_waker {
    // SAFETY: `waker` is valid, and so is the waker beneath it as long as the poll lasts.
    unsafe {
        let beneath = tdt_waker_beneath(waker);
        assert!(!beneath.is_null(), "a leaf cloned a waker after its poll");
        let clone = ((*(*beneath).vtable).clone)(beneath);
        assert!(!clone.is_null(), "the clone of a runtime's waker panicked");
        clone
    }
}

unsafe fn substitute_wake(data: *const ()) {
    let waker = data.cast::<tdt_waker>();
    // SAFETY: see above.
    unsafe { ((*(*waker).vtable).wake)(waker) }
}

unsafe fn substitute_wake_by_ref(data: *const ()) {
    let waker = data.cast::<tdt_waker>();
    // SAFETY: see above.
    unsafe { ((*(*waker).vtable).wake_by_ref)(waker) }
}

unsafe fn substitute_drop(data: *const ()) {
    let waker = data.cast::<tdt_waker>();
    // SAFETY: see above.
    unsafe { ((*(*waker).vtable).drop)(waker) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::Arc;
    use std::task::Wake;
    use std::thread;

    #[derive(Default)]
    struct Count {
        woken: AtomicUsize,
    }

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn vtable<'a>(waker: *const tdt_waker) -> &'a tdt_waker_vtable {
        // SAFETY: the tests pass valid wakers, whose vtables are static.
        unsafe { &*(*waker).vtable }
    }

    #[test]
    fn a_borrowed_waker_that_is_not_cloned_clones_nothing() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let borrowed = Borrowed::new(&waker);

        // SAFETY: it is valid.
        unsafe { (vtable(borrowed.as_tdt()).wake_by_ref)(borrowed.as_tdt()) };
        assert!(borrowed.into_owned().is_none());
        assert_eq!(Arc::strong_count(&count), 2);
        assert_eq!(count.woken.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn all_clones_are_one_that_wakes_and_is_dropped_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let borrowed = Borrowed::new(&waker);
        // SAFETY: it is valid, and each clone is consumed once.
        let (first, second) = unsafe {
            let clone = vtable(borrowed.as_tdt()).clone;
            (clone(borrowed.as_tdt()), clone(borrowed.as_tdt()))
        };

        assert_eq!(first, second);
        assert_eq!(Arc::strong_count(&count), 3);
        let owned = borrowed.into_owned().unwrap();
        assert!(owned.will_wake(&waker));
        drop(owned);
        // SAFETY: the same.
        unsafe {
            assert_eq!((vtable(first).clone)(first), first);
            (vtable(first).wake)(first);
            (vtable(first).drop)(first);
            assert_eq!(Arc::strong_count(&count), 3);
            (vtable(second).wake)(second);
        }
        assert_eq!(Arc::strong_count(&count), 2);
        assert_eq!(count.woken.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn threads_may_clone_wake_and_drop_at_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());

        for _ in 0..200 {
            let borrowed = Borrowed::new(&waker);
            let address = borrowed.as_tdt() as usize;
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(move || {
                        // SAFETY: it lives until the threads have ended.
                        let waker = unsafe { substitute(address as *const tdt_waker) };
                        let clone = Waker::clone(&waker);
                        let other = clone.clone();
                        clone.wake_by_ref();
                        drop(clone);
                        other.wake();
                    });
                }
            });
            drop(borrowed);
            assert_eq!(Arc::strong_count(&count), 2);
        }
        assert_eq!(count.woken.load(Ordering::Relaxed), 200 * 3 * 2);
    }

    struct Bad;

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics, for a test");
        }
    }

    #[test]
    fn a_waker_that_panics_does_not_unwind_into_c() {
        let waker = Waker::from(Arc::new(Bad));
        let borrowed = Borrowed::new(&waker);

        // SAFETY: it is valid, and the clone is consumed once.
        unsafe {
            let clone = (vtable(borrowed.as_tdt()).clone)(borrowed.as_tdt());
            (vtable(borrowed.as_tdt()).wake_by_ref)(borrowed.as_tdt());
            (vtable(clone).wake)(clone);
        }
    }
}
