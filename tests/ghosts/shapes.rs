// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The shapes in Rust: async functions, and what crates like futures make of them, written by hand.

#[path = "../../demo/tdt.rs"]
mod tdt;

use std::ffi::c_void;
use std::future::{poll_fn, Future};
use std::os::raw::{c_char, c_int, c_uint};
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{ready, Context, Poll, Wake, Waker};

use tdt::*;

// --- harness.c ---

const LEAVES: usize = 10;

#[repr(C)]
struct Shape {
    name: *const c_char,
    make: extern "C" fn() -> TdtFuture,
    given: [c_uint; LEAVES],
    want: c_uint,
    limit: c_uint,
}

const KNOWN: c_uint = 0;
const HELPER: c_uint = 2;

#[repr(C)]
struct SlotCalls {
    wake: extern "C" fn(c_uint) -> c_uint,
    clear: extern "C" fn(),
}

extern "C" {
    fn ghosts_main(
        argc: c_int,
        argv: *const *const c_char,
        language: *const c_char,
        shapes: *const Shape,
        n: usize,
    ) -> c_int;
    fn ghosts_take(n: c_uint, waits: *mut bool) -> bool;
    fn ghosts_gone(n: c_uint, waits: *mut bool);
    fn ghosts_empties() -> bool;
    fn ghosts_own_slots(slots: *const SlotCalls);
    fn tdt_coroutine(
        run: extern "C" fn(*mut c_void) -> c_int,
        arg: *mut c_void,
        attr: *const c_void,
    ) -> TdtFuture;
    fn tdt_co_await(future: TdtFuture) -> c_int;
}

// --- Slots, and leaves ---

type Slot = Arc<Mutex<Option<Waker>>>;

static SLOTS: Mutex<Vec<(c_uint, Slot)>> = Mutex::new(Vec::new());

extern "C" fn wake_slots(n: c_uint) -> c_uint {
    let slots = SLOTS.lock().unwrap();
    let of_leaf = slots.iter().filter(|slot| slot.0 == n);
    let wakers: Vec<Waker> = of_leaf.filter_map(|slot| slot.1.lock().unwrap().take()).collect();
    drop(slots);
    let woken = wakers.len();
    wakers.into_iter().for_each(Waker::wake);
    woken as c_uint
}

extern "C" fn clear_slots() {
    SLOTS.lock().unwrap().clear();
}

static SLOT_CALLS: SlotCalls = SlotCalls { wake: wake_slots, clear: clear_slots };

/// What all leaves have.  The second slot is for writing.
struct Leaf {
    n: c_uint,
    waits: bool,
    slots: Vec<Slot>,
}

impl Leaf {
    fn new(n: c_uint) -> Leaf {
        let slots = vec![Slot::default(), Slot::default()];
        SLOTS.lock().unwrap().extend(slots.iter().map(|slot| (n, slot.clone())));
        Leaf { n, waits: false, slots }
    }

    /// As AtomicWaker does: a waker that is there already stays.
    #[inline]
    fn register(&self, slot: usize, waker: &Waker) {
        let mut slot = self.slots[slot].lock().unwrap();
        match &mut *slot {
            Some(kept) => kept.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
    }

    fn keep(&self, slot: usize, waker: Waker) {
        *self.slots[slot].lock().unwrap() = Some(waker);
    }

    fn empty(&self) {
        if unsafe { ghosts_empties() } {
            self.slots.iter().for_each(|slot| drop(slot.lock().unwrap().take()));
        }
    }

    fn look(&mut self, n: c_uint) -> Poll<()> {
        assert_eq!(self.n, n);
        if !unsafe { ghosts_take(self.n, &mut self.waits) } {
            return Poll::Pending;
        }
        self.empty();
        Poll::Ready(())
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.empty();
        unsafe { ghosts_gone(self.n, &mut self.waits) }
    }
}

macro_rules! leaf {
    ($name:ident, $n:literal, |$leaf:ident, $waker:ident| $register:expr) => {
        #[allow(non_camel_case_types)]
        struct $name {
            leaf: Leaf,
        }

        impl Future for $name {
            type Output = ();

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                let ($leaf, $waker) = (&self.leaf, cx.waker());
                $register;
                // With its number, so that no two are alike, and are made one.
                self.leaf.look($n)
            }
        }

        fn $name() -> $name {
            $name { leaf: Leaf::new($n) }
        }
    };
}

// Under a waker that is not the task's.
leaf!(hidden, 0, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_1, 1, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_2, 2, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_3, 3, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_4, 4, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_5, 5, |leaf, waker| leaf.register(0, waker));
leaf!(leaf_8, 8, |leaf, waker| (leaf.register(0, waker), leaf.register(1, waker)));
leaf!(leaf_9, 9, |leaf, waker| (leaf.keep(0, waker.clone()), leaf.keep(1, waker.clone())));

// --- One after the other ---

async fn sequence() {
    leaf_1().await;
    leaf_2().await;
}

async fn rounds() {
    let mut left = 4..8;
    while let Some(_) = left.next() {
        leaf_1().await;
    }
}

async fn nested() {
    sequence().await;
    rounds().await;
    leaf_3().await;
}

async fn duplex() {
    leaf_9().await;
    leaf_9().await;
}

async fn helped() {
    leaf_8().await;
    leaf_8().await;
}

async fn other() {
    leaf_3().await;
    leaf_4().await;
}

async fn three() {
    leaf_1().await;
    leaf_2().await;
    leaf_3().await;
}

// --- Side by side ---

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Two, each polled at a place of its own.
struct Join(Option<Boxed>, Option<Boxed>);

fn poll_arm(arm: &mut Option<Boxed>, cx: &mut Context<'_>) {
    if let Some(future) = arm {
        if future.as_mut().poll(cx).is_ready() {
            *arm = None;
        }
    }
}

impl Future for Join {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        poll_arm(&mut self.0, cx);
        poll_arm(&mut self.1, cx);
        if self.0.is_none() && self.1.is_none() { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn join_two() -> Join {
    Join(Some(Box::pin(sequence())), Some(Box::pin(other())))
}

/// What the macro `join!` makes of two futures: polled in the closure, which is inlined into the
/// function that awaits.
async fn inlined_join() {
    let (mut first, mut second) = (pin!(sequence()), pin!(other()));
    let (mut first_is_ready, mut second_is_ready) = (false, false);
    poll_fn(|cx| {
        first_is_ready = first_is_ready || first.as_mut().poll(cx).is_ready();
        second_is_ready = second_is_ready || second.as_mut().poll(cx).is_ready();
        if first_is_ready && second_is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await
}

async fn join_then() {
    inlined_join().await;
    leaf_5().await;
}

/// All are polled at one place, as join_all() of futures does.
struct JoinAll(Vec<Option<Boxed>>);

impl Future for JoinAll {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        for child in &mut self.0 {
            if child.as_mut().is_some_and(|future| future.as_mut().poll(cx).is_ready()) {
                *child = None;
            }
        }
        if self.0.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl JoinAll {
    fn of(children: Vec<Boxed>) -> JoinAll {
        JoinAll(children.into_iter().map(Some).collect())
    }
}

/// The same, until one is ready.
struct SelectAll(Vec<Boxed>);

impl Future for SelectAll {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.iter_mut().any(|future| future.as_mut().poll(cx).is_ready()) {
            self.0.clear();
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

fn select_two() -> SelectAll {
    SelectAll(vec![Box::pin(sequence()), Box::pin(other())])
}

fn twice(n: usize) -> Vec<Boxed> {
    (0..n).map(|_| Box::pin(sequence()) as Boxed).collect()
}

fn thrice() -> Vec<Boxed> {
    (0..3).map(|_| Box::pin(three()) as Boxed).collect()
}

fn several() -> Vec<Boxed> {
    vec![Box::pin(sequence()), Box::pin(other()), Box::pin(three())]
}

/// In one more box each.
fn boxed(children: Vec<Boxed>) -> Vec<Boxed> {
    children.into_iter().map(|child| Box::pin(child) as Boxed).collect()
}

/// What the macro `select!` makes of two: the loser comes first, so that it registers before the
/// winner is found.
async fn race() {
    let (mut second, mut first) = (pin!(leaf_2()), pin!(leaf_1()));
    poll_fn(|cx| {
        if second.as_mut().poll(cx).is_ready() || first.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await
}

async fn select_loop() {
    for _ in 0..4 {
        race().await;
    }
}

/// One that is polled in each round, and is there in the next.
async fn select_held() {
    let mut held = pin!(leaf_2());
    loop {
        let mut first = pin!(leaf_1());
        let held_is_ready = poll_fn(|cx| {
            if held.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            first.as_mut().poll(cx).map(|()| false)
        });
        if held_is_ready.await {
            break;
        }
    }
}

async fn loser() {
    race().await;
    leaf_3().await;
}

// --- A stream, and a set of tasks with wakers of their own ---

#[derive(Default)]
struct Ticks {
    source: Option<leaf_1>,
    items: u32,
}

impl Ticks {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        if self.items == 4 {
            return Poll::Ready(None);
        }
        ready!(Pin::new(self.source.get_or_insert_with(leaf_1)).poll(cx));
        self.source = None;
        self.items += 1;
        Poll::Ready(Some(self.items))
    }
}

async fn stream() {
    let mut ticks = Ticks::default();
    while let Some(_) = poll_fn(|cx| ticks.poll_next(cx)).await {
        leaf_2().await;
    }
}

/// A child's waker, as FuturesUnordered has one for each.
struct Child {
    woken: AtomicBool,
    parent: Arc<Mutex<Option<Waker>>>,
}

impl Wake for Child {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        let parent = self.parent.lock().unwrap().clone();
        parent.into_iter().for_each(Waker::wake);
    }
}

/// To the library it is a leaf: the only one that clones the task's waker.
#[allow(non_camel_case_types)]
struct leaf_6 {
    children: Vec<(Boxed, Arc<Child>)>,
    parent: Arc<Mutex<Option<Waker>>>,
    waits: bool,
}

impl Future for leaf_6 {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        *this.parent.lock().unwrap() = Some(cx.waker().clone());
        this.children.retain_mut(|(future, child)| {
            let waker = Waker::from(child.clone());
            !child.woken.swap(false, Ordering::Relaxed)
                || future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        if this.children.is_empty() {
            return Poll::Ready(());
        }
        unsafe { ghosts_take(6, &mut this.waits) };
        Poll::Pending
    }
}

impl Drop for leaf_6 {
    fn drop(&mut self) {
        unsafe { ghosts_gone(6, &mut self.waits) }
    }
}

async fn unordered() {
    leaf_1().await;
    let parent = Arc::new(Mutex::new(None));
    let child = || {
        let future: Boxed = Box::pin(hidden());
        (future, Arc::new(Child { woken: AtomicBool::new(true), parent: parent.clone() }))
    };
    let children = vec![child(), child(), child()];
    leaf_6 { children, parent: parent.clone(), waits: false }.await;
}

// --- On a stack of its own ---

extern "C" fn sequence_fn(_: *mut c_void) -> c_int {
    unsafe {
        let mut error = tdt_co_await(into_tdt(sequence()));
        for _ in 0..3 {
            if error == 0 {
                error = tdt_co_await(into_tdt(leaf_2()));
            }
        }
        if error != 0 { error } else { tdt_co_await(into_tdt(leaf_3())) }
    }
}

extern "C" fn join_fn(_: *mut c_void) -> c_int {
    unsafe {
        let error = tdt_co_await(into_tdt(join_two()));
        if error != 0 { error } else { tdt_co_await(into_tdt(inlined_join())) }
    }
}

fn coroutine(run: extern "C" fn(*mut c_void) -> c_int) -> TdtFuture {
    unsafe { tdt_coroutine(run, std::ptr::null_mut(), std::ptr::null()) }
}

// --- All of them ---

/// shape!(name, future, [leaf => items...], leaves that wait)
macro_rules! shape {
    ($name:literal, $future:expr, [$($leaf:literal => $items:literal),*], $want:literal) => {{
        extern "C" fn make() -> TdtFuture {
            $future
        }
        let mut given = [0; LEAVES];
        $(given[$leaf] = $items;)*
        let name = concat!($name, "\0").as_ptr() as *const _;
        Shape { name, make, given, want: $want, limit: KNOWN }
    }};
}

fn main() {
    let shapes = [
        shape!("two in sequence", into_tdt(sequence()), [1 => 1], 1),
        shape!("a loop, four rounds", into_tdt(rounds()), [1 => 3], 1),
        shape!("nested bodies", into_tdt(nested()), [1 => 5, 2 => 1], 1),
        shape!("select in a loop", into_tdt(select_loop()), [1 => 2], 2),
        shape!("select in a loop, one held", into_tdt(select_held()), [1 => 2], 2),
        shape!("select, the loser dropped", into_tdt(loser()), [1 => 1], 1),
        shape!("join of two", into_tdt(join_two()), [1 => 1, 3 => 1], 2),
        shape!("select of two", into_tdt(select_two()), [1 => 1, 3 => 1], 2),
        shape!("join of two, and on", into_tdt(join_then()), [1 => 1, 2 => 1, 3 => 1, 4 => 1], 1),
        shape!("join inlined", into_tdt(inlined_join()), [1 => 1, 3 => 1], 2),
        shape!("join_all, each twice", into_tdt(JoinAll::of(twice(4))), [1 => 3], 4),
        shape!("join_all, boxed", into_tdt(JoinAll::of(boxed(twice(4)))), [1 => 3], 4),
        shape!("select_all, boxed", into_tdt(SelectAll(boxed(several()))), [1 => 1, 3 => 1], 3),
        shape!("join_all, different awaits", into_tdt(JoinAll::of(thrice())), [1 => 2, 2 => 1], 3),
        shape!("stream", into_tdt(stream()), [1 => 3, 2 => 2], 1),
        shape!("a set with own wakers", into_tdt(unordered()), [0 => 2, 1 => 1], 1),
        shape!("coroutine", coroutine(sequence_fn), [1 => 1, 2 => 3], 1),
        shape!("join in a coroutine", coroutine(join_fn), [1 => 2, 2 => 1, 3 => 2, 4 => 1], 2),
        shape!("two wakers", into_tdt(duplex()), [9 => 1], 1),
        Shape {
            limit: HELPER,
            ..shape!("two wakers, by a helper", into_tdt(helped()), [8 => 1], 1)
        },
    ];
    let args: Vec<std::ffi::CString> =
        std::env::args().map(|arg| std::ffi::CString::new(arg).unwrap()).collect();
    let argv: Vec<*const c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    let (argc, rust) = (argv.len() as c_int, "Rust\0".as_ptr() as *const c_char);
    std::process::exit(unsafe {
        ghosts_own_slots(&SLOT_CALLS);
        ghosts_main(argc, argv.as_ptr(), rust, shapes.as_ptr(), shapes.len())
    });
}
