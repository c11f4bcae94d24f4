// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakers are cloned, woken and dropped by several threads, also after the end of their task, while
//! other threads request the task, and while it ends in all ways.  `TDT_TEST_SEED` repeats a run
//! as far as its random numbers go.
//!
//! The threads are ordered by atomics of this file alone, not by locks, channels or Arcs of the
//! standard library, in which ThreadSanitizer does not see the order: tests/outside/crates_race.sh.
//! The harness of tests has a channel, so it is not used.

#![allow(clippy::declare_interior_mutable_const)] // the constants fill statics

mod random;

use std::cell::UnsafeCell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering::*};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tdt::{Handle, TraceExt, Traced};

use random::Random;

const PLACES: usize = 8;
const ENDS: usize = 3000; // of tasks
const LIMIT: Duration = Duration::from_secs(300); // on a machine of any speed

/// Something that threads take out of a box and put into it.
struct Mailbox<T>(AtomicPtr<T>);

impl<T> Mailbox<T> {
    const EMPTY: Mailbox<T> = Mailbox(AtomicPtr::new(ptr::null_mut()));

    fn exchange(&self, with: *mut T) -> Option<Box<T>> {
        let old = self.0.swap(with, AcqRel);
        // SAFETY: it came from a box, and the exchange made it ours.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }

    fn take(&self) -> Option<Box<T>> {
        self.exchange(ptr::null_mut())
    }

    fn put(&self, what: T) -> Option<Box<T>> {
        self.exchange(Box::into_raw(Box::new(what)))
    }
}

/// Where tasks run, one after the other.
struct Place {
    woken: AtomicBool,
    busy: AtomicBool, // a thread has the task
    task: UnsafeCell<Option<Pin<Box<Traced<Leaf>>>>>,
    wakers: AtomicIsize, // that exist
    waker: Mailbox<Waker>,
    handle: Mailbox<Handle>,
}

// SAFETY: only the thread that has set `busy` uses the task.
unsafe impl Sync for Place {}

impl Place {
    const NEW: Place = Place {
        woken: AtomicBool::new(true),
        busy: AtomicBool::new(false),
        task: UnsafeCell::new(None),
        wakers: AtomicIsize::new(0),
        waker: Mailbox::EMPTY,
        handle: Mailbox::EMPTY,
    };

    /// The runtime's own waker, which is not counted.
    fn borrowed_waker(&'static self) -> ManuallyDrop<Waker> {
        let raw = RawWaker::new((self as *const Place).cast(), &VTABLE);
        // SAFETY: the functions do what they should; places are static.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
    }
}

static PLACE: [Place; PLACES] = [Place::NEW; PLACES];
static REQUESTERS: Place = Place::NEW; // whose wakers get the answers
static ENDED: AtomicUsize = AtomicUsize::new(0);
static ANSWERS: AtomicUsize = AtomicUsize::new(0);

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

fn place_of<'a>(data: *const ()) -> &'a Place {
    // SAFETY: these wakers have a pointer to a place.
    unsafe { &*data.cast() }
}

unsafe fn clone_waker(data: *const ()) -> RawWaker {
    place_of(data).wakers.fetch_add(1, Relaxed);
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    place_of(data).woken.store(true, Release);
    place_of(data).wakers.fetch_sub(1, Relaxed);
}

unsafe fn wake_by_ref(data: *const ()) {
    place_of(data).woken.store(true, Release);
}

unsafe fn drop_waker(data: *const ()) {
    place_of(data).wakers.fetch_sub(1, Relaxed);
}

/// Gives its waker to other threads, `left` times.
struct Leaf {
    place: &'static Place,
    left: u64,
    panics: bool,
}

impl Future for Leaf {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.left == 0 && self.panics {
            resume_unwind(Box::new("for a test")); // prints nothing
        }
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        drop(self.place.waker.put(cx.waker().clone()));
        Poll::Pending
    }
}

// --- Threads. ---

fn done(start: Instant) -> bool {
    assert!(start.elapsed() < LIMIT, "{} tasks have ended", ENDED.load(Relaxed));
    ENDED.load(Relaxed) >= ENDS
}

fn make_task(place: &'static Place, random: &mut Random) -> Pin<Box<Traced<Leaf>>> {
    let leaf = Leaf { place, left: random.below(20), panics: random.below(4) == 0 };
    let task = Box::pin(leaf.traced());
    drop(place.handle.put(task.handle()));
    task
}

/// Run the task of a place once, or make one.  It ends by itself, by a panic, or is dropped.
fn run_task(place: &'static Place, random: &mut Random) {
    // SAFETY: the caller has set `busy`.
    let slot = unsafe { &mut *place.task.get() };
    let task = slot.get_or_insert_with(|| make_task(place, random));
    let waker = place.borrowed_waker();
    let polled = catch_unwind(AssertUnwindSafe(|| {
        task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
    }));
    if !polled.unwrap_or(false) || random.below(40) == 0 {
        *slot = None;
        ENDED.fetch_add(1, Relaxed);
        place.woken.store(true, Release); // for the next task
    }
}

fn poller(mut random: Random, start: Instant) {
    while !done(start) {
        let place = &PLACE[random.below(PLACES as u64) as usize];
        if !place.woken.load(Acquire) || place.busy.swap(true, Acquire) {
            thread::yield_now();
            continue;
        }
        if place.woken.swap(false, AcqRel) {
            run_task(place, &mut random);
        }
        place.busy.store(false, Release);
    }
}

/// Wake in all ways.  `kept` has been woken, and may be of a task that has ended.
fn use_waker(waker: Waker, kept: &mut Vec<Waker>, random: &mut Random) {
    match random.below(5) {
        0 => waker.wake(),
        1 => waker.wake_by_ref(),
        2 => {
            let clone = waker.clone();
            drop(waker);
            clone.wake();
        }
        3 => {
            drop(waker.clone());
            waker.wake();
        }
        _ => {
            waker.wake_by_ref();
            kept.push(waker);
        }
    }
    if kept.len() > random.below(20) as usize {
        let old = kept.swap_remove(random.below(kept.len() as u64) as usize);
        drop(old.clone());
        old.wake();
    }
}

fn waker(mut random: Random, start: Instant) {
    let mut kept = Vec::new();
    while !done(start) {
        match PLACE[random.below(PLACES as u64) as usize].waker.take() {
            Some(waker) => use_waker(*waker, &mut kept, &mut random),
            None => thread::yield_now(),
        }
    }
}

/// Poll a request some times.  If it is not answered by then, it is withdrawn.
fn request_async(handle: &Handle, random: &mut Random) {
    let mut request = handle.backtrace();
    let waker = REQUESTERS.borrowed_waker();
    for _ in 0..random.below(50) {
        match Pin::new(&mut request).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => {
                ANSWERS.fetch_add(answer.is_ok().into(), Relaxed);
                return;
            }
            Poll::Pending => thread::yield_now(),
        }
    }
}

fn requester(mut random: Random, start: Instant) {
    while !done(start) {
        let place = &PLACE[random.below(PLACES as u64) as usize];
        let handle = match place.handle.take() {
            Some(handle) => *handle,
            None => continue,
        };
        drop(place.handle.put(handle.clone()));
        match random.below(8) {
            0..=3 => request_async(&handle, &mut random),
            4 => drop(handle.last_trace()),
            5 => drop(tdt::tasks()),
            _ => drop(handle.backtrace_timeout(Duration::from_micros(random.below(500)))),
        }
        if random.below(100) == 0 {
            tdt::watch(Duration::from_millis(random.below(2))).unwrap();
        }
    }
}

fn main() {
    let (mut random, start) = (Random::new(), Instant::now());
    let threads: [fn(Random, Instant); 5] = [poller, poller, waker, waker, requester];
    let threads: Vec<_> = threads
        .into_iter()
        .map(|run| (run, random.split()))
        .map(|(run, random)| thread::spawn(move || run(random, start)))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    tdt::watch(Duration::ZERO).unwrap();

    for place in PLACE.iter().chain([&REQUESTERS]) {
        // SAFETY: there are no other threads.
        drop(unsafe { &mut *place.task.get() }.take());
        drop((place.waker.take(), place.handle.take()));
        assert_eq!(place.wakers.load(Relaxed), 0, "wakers that were not dropped once");
    }
    println!("{ENDED:?} tasks, {ANSWERS:?} answers to requests that did not block");
    assert_ne!(ANSWERS.load(Relaxed), 0);
}
