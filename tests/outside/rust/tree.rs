// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For rust.sh: async functions that await each other, a join of two by hand, and futures of C.  A
//! small executor polls them, traced, on a thread of its own, and another thread asks where they
//! wait.

#[path = "../../../demo/tdt.rs"]
mod tdt;

use std::future::Future;
use std::pin::Pin;
use std::process::exit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tdt::*;

// --- What is waited for. ---

/// Its futures are ready when it is open.
#[derive(Default)]
struct Gate {
    open: bool,
    waiting: Vec<Waker>,
}

struct Pass(Arc<Mutex<Gate>>);

impl Future for Pass {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut gate = self.0.lock().unwrap();
        if gate.open {
            return Poll::Ready(());
        }
        gate.waiting.push(cx.waker().clone()); // want: pass
        Poll::Pending
    }
}

fn open(gate: &Mutex<Gate>) {
    let waiting = {
        let mut gate = gate.lock().unwrap();
        gate.open = true;
        std::mem::take(&mut gate.waiting)
    };
    waiting.into_iter().for_each(Waker::wake);
}

// --- The tree. ---

static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Counts those that live.
struct Counted;

impl Counted {
    fn new() -> Counted {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

type Child = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Both, polled in order.
struct Both(Option<Child>, Option<Child>);

fn poll_child(child: &mut Option<Child>, cx: &mut Context<'_>) {
    if let Some(future) = child {
        if future.as_mut().poll(cx).is_ready() { // want: child
            *child = None;
        }
    }
}

impl Future for Both {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        poll_child(&mut self.0, cx); // want: first
        poll_child(&mut self.1, cx); // want: second
        match (&self.0, &self.1) {
            (None, None) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

async fn leaf(gate: Arc<Mutex<Gate>>) {
    let _counted = Counted::new();
    Pass(gate).await; // want: leaf
}

async fn left(gate: Arc<Mutex<Gate>>) {
    let _counted = Counted::new();
    leaf(gate).await; // want: left
}

/// Through C, and back into Rust.
async fn right(gate: Arc<Mutex<Gate>>) {
    let _counted = Counted::new();
    let alone = leaf(gate.clone());
    let block = async move {
        leaf(gate).await; // want: block
    };
    let joined = [into_tdt(alone), into_tdt(block)];
    let both = unsafe { tdt_join_all(joined.as_ptr(), joined.len()) };
    assert!(both.poll.is_some());
    std::mem::forget(joined); // it has taken them over
    both.await; // want: right
}

async fn middle(gate: Arc<Mutex<Gate>>) -> u32 {
    Both(Some(Box::pin(left(gate.clone()))), Some(Box::pin(right(gate)))).await; // want: middle
    42
}

async fn outer(gate: Arc<Mutex<Gate>>) {
    let _counted = Counted::new();
    let got = middle(gate).await; // want: outer
    assert_eq!(got, 42);
}

async fn panics(gate: Arc<Mutex<Gate>>) {
    let _counted = Counted::new();
    Pass(gate).await;
    panic!("as it should");
}

// --- An executor for one task, whose wakers are of tdt's kind. ---

#[derive(Default, Clone, Copy)]
struct State {
    woken: bool,
    end: Option<u8>,
    pending: u32,
}

#[repr(C)]
struct Task {
    waker: TdtWaker,
    state: Mutex<State>,
    changed: Condvar,
}

static TASK_VTABLE: TdtWakerVtable =
    TdtWakerVtable {
        clone: task_clone,
        wake: task_wake,
        wake_by_ref: task_wake_by_ref,
        drop: task_drop,
    };

unsafe extern "C" fn task_clone(waker: *const TdtWaker) -> *const TdtWaker {
    Arc::increment_strong_count(waker as *const Task);
    waker
}

unsafe extern "C" fn task_wake(waker: *const TdtWaker) {
    task_wake_by_ref(waker);
    task_drop(waker);
}

unsafe extern "C" fn task_wake_by_ref(waker: *const TdtWaker) {
    (*(waker as *const Task)).change(|state| state.woken = true)
}

unsafe extern "C" fn task_drop(waker: *const TdtWaker) {
    Arc::decrement_strong_count(waker as *const Task)
}

impl Task {
    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> State {
        *self.changed.wait_while(self.state.lock().unwrap(), |state| !until(state)).unwrap()
    }

    fn run(self: Arc<Self>, mut future: TdtFuture) {
        loop {
            self.wait(|state| state.woken);
            self.change(|state| state.woken = false);
            let mut cx = TdtContext { waker: &self.waker };
            let end = future.poll_once(&mut cx);
            if end != PENDING {
                drop(future);
                return self.change(|state| state.end = Some(end));
            }
            self.change(|state| state.pending += 1);
        }
    }
}

/// Traced, and polled by a thread of its own.
struct Spawned {
    task: Arc<Task>,
    handle: *mut std::ffi::c_void,
    thread: thread::JoinHandle<()>,
}

fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Spawned {
    let attr = TdtTaskAttr {
        name: "rust".as_ptr() as *const _,
        name_length: 4,
        ..TdtTaskAttr::of(&future)
    };
    let traced = unsafe { tdt_traced_with(into_tdt(future), &attr) };
    assert!(!traced.handle.is_null());
    let state = State { woken: true, ..State::default() };
    let task = Arc::new(Task {
        waker: TdtWaker { vtable: &TASK_VTABLE },
        state: Mutex::new(state),
        changed: Condvar::new(),
    });
    let (runs, future) = (task.clone(), traced.future);
    Spawned { task, handle: traced.handle, thread: thread::spawn(move || runs.run(future)) }
}

impl Spawned {
    fn ask(&self) {
        unsafe {
            let trace = tdt_backtrace(self.handle);
            if trace.is_null() || tdt_trace_print(trace, stdout) != 0 {
                eprintln!("no backtrace: {}", std::io::Error::last_os_error());
                exit(1);
            }
            tdt_trace_free(trace);
        }
    }

    /// How it ended.
    fn end(self) -> u8 {
        let end = self.task.wait(|state| state.end.is_some()).end;
        self.thread.join().unwrap();
        unsafe { tdt_handle_unref(self.handle) };
        assert_eq!(Arc::strong_count(&self.task), 1, "all wakers are given back");
        end.unwrap()
    }
}

/// A waker that is not of tdt's kind.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future of tdt's in a Rust runtime.
fn poll_with_flag() {
    let gate = Arc::new(Mutex::new(Gate::default()));
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(flag.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = into_tdt(leaf(gate.clone()));
    assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
    assert!(!flag.0.load(Ordering::SeqCst));
    open(&gate);
    assert!(flag.0.load(Ordering::SeqCst));
    assert!(Pin::new(&mut future).poll(&mut cx).is_ready());
    drop((waker, future));
    assert_eq!(Arc::strong_count(&flag), 1, "all wakers are given back");
}

fn main() {
    poll_with_flag();
    let gate = Arc::new(Mutex::new(Gate::default()));
    let spawned = spawn(outer(gate.clone()));
    spawned.task.wait(|state| state.pending == 1);
    spawned.ask();
    spawned.ask();
    assert!(ALIVE.load(Ordering::SeqCst) > 0);
    open(&gate);
    assert_eq!(spawned.end(), READY);

    let gate = Arc::new(Mutex::new(Gate::default()));
    let spawned = spawn(panics(gate.clone()));
    spawned.task.wait(|state| state.pending == 1);
    std::panic::set_hook(Box::new(|_| ()));
    open(&gate);
    assert_eq!(spawned.end(), PANICKED);

    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    let mut none = TdtFuture { state: ptr::null_mut(), poll: None, drop: None };
    assert_eq!(none.poll_once(&mut TdtContext { waker: ptr::null() }), PANICKED);
    println!("ended");
}
