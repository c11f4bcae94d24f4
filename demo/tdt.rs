// SPDX-License-Identifier: Apache-2.0 OR MIT
//! tdt's ABI in Rust, with the standard library alone: declarations from tdt/future.h and
//! tdt/trace.h, a Rust future as a `tdt_future`, and a `tdt_future` as a Rust one.  (The crate
//! async-ffi has both kinds of future, in the same layout.)

#![allow(dead_code)]

use std::any::type_name;
use std::cell::Cell;
use std::ffi::c_void;
use std::future::Future;
use std::mem::{self, ManuallyDrop};
use std::os::raw::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe, Location};
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

pub const READY: u8 = 0;
pub const PENDING: u8 = 1;
pub const PANICKED: u8 = 2;

/// `struct tdt_waker`; the owner's data follows it.
#[repr(C)]
pub struct TdtWaker {
    pub vtable: &'static TdtWakerVtable,
}

#[repr(C)]
pub struct TdtWakerVtable {
    pub clone: unsafe extern "C" fn(*const TdtWaker) -> *const TdtWaker,
    pub wake: unsafe extern "C" fn(*const TdtWaker),
    pub wake_by_ref: unsafe extern "C" fn(*const TdtWaker),
    pub drop: unsafe extern "C" fn(*const TdtWaker),
}

#[repr(C)]
pub struct TdtContext {
    pub waker: *const TdtWaker,
}

/// `struct tdt_future`.  This value owns the future: dropping it drops the future.
#[repr(C)]
pub struct TdtFuture {
    pub state: *mut c_void,
    pub poll: Option<unsafe extern "C" fn(*mut c_void, *mut TdtContext) -> u8>,
    pub drop: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// Safe because the ABI says that any thread may poll a future.
unsafe impl Send for TdtFuture {}

impl TdtFuture {
    pub fn poll_once(&mut self, cx: &mut TdtContext) -> u8 {
        match self.poll {
            Some(poll) => unsafe { poll(self.state, cx) },
            None => PANICKED,
        }
    }
}

impl Drop for TdtFuture {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            unsafe { drop(self.state) }
        }
    }
}

/// `struct tdt_task_attr`.
#[repr(C)]
pub struct TdtTaskAttr {
    pub size: usize,
    pub id: u64,
    pub name: *const c_char,
    pub file: *const c_char,
    pub line: u32,
    pub column: u32,
    pub file_length: usize,
    pub name_length: usize,
    pub default_name: *const c_char,
    pub default_name_length: usize,
}

impl TdtTaskAttr {
    /// The attributes of a task for `future`: it is named after its type, and spawned at the place
    /// of the caller.  Strings of Rust do not end with a NUL, so their lengths are given.
    #[track_caller]
    pub fn of<F>(_future: &F) -> TdtTaskAttr {
        let place = Location::caller();
        let name = type_name::<F>();
        TdtTaskAttr {
            size: mem::size_of::<TdtTaskAttr>(),
            id: 0,
            name: ptr::null(),
            file: place.file().as_ptr() as *const c_char,
            line: place.line(),
            column: place.column(),
            file_length: place.file().len(),
            name_length: 0,
            default_name: name.as_ptr() as *const c_char,
            default_name_length: name.len(),
        }
    }
}

/// `struct tdt_traced`.
#[repr(C)]
pub struct TdtTraced {
    pub future: TdtFuture,
    pub handle: *mut c_void,
}

#[link(name = "tdt")]
extern "C" {
    pub fn tdt_traced_with(fut: TdtFuture, attr: *const TdtTaskAttr) -> TdtTraced;
    pub fn tdt_backtrace(handle: *mut c_void) -> *mut c_void;
    pub fn tdt_handle_unref(handle: *mut c_void);
    pub fn tdt_trace_print(trace: *const c_void, out: *mut c_void) -> c_int;
    pub fn tdt_trace_free(trace: *mut c_void);
    pub fn tdt_join_all(futures: *const TdtFuture, n: usize) -> TdtFuture;
    pub static stdout: *mut c_void;
}

// --- A waker of tdt as one of Rust: the pointer is the data. ---

static RUST_VTABLE: RawWakerVTable =
    RawWakerVTable::new(rust_clone, rust_wake, rust_wake_by_ref, rust_drop);

unsafe fn rust_clone(data: *const ()) -> RawWaker {
    let waker = data as *const TdtWaker;
    let clone = ((*waker).vtable.clone)(waker);
    assert!(!clone.is_null(), "no memory for a waker");
    RawWaker::new(clone as *const (), &RUST_VTABLE)
}

unsafe fn rust_wake(data: *const ()) {
    let waker = data as *const TdtWaker;
    ((*waker).vtable.wake)(waker)
}

unsafe fn rust_wake_by_ref(data: *const ()) {
    let waker = data as *const TdtWaker;
    ((*waker).vtable.wake_by_ref)(waker)
}

unsafe fn rust_drop(data: *const ()) {
    let waker = data as *const TdtWaker;
    ((*waker).vtable.drop)(waker)
}

// --- A Rust future as one of tdt. ---

thread_local! {
    /// The waker of the innermost `poll_rust` on this thread; null outside.
    static POLLED_WITH: Cell<*const TdtWaker> = Cell::new(ptr::null());
}

/// The waker is borrowed, so it must not be dropped.
unsafe fn borrow(waker: *const TdtWaker) -> ManuallyDrop<Waker> {
    ManuallyDrop::new(Waker::from_raw(RawWaker::new(waker as *const (), &RUST_VTABLE)))
}

unsafe extern "C" fn poll_rust<F: Future<Output = ()>>(
    state: *mut c_void,
    cx: *mut TdtContext,
) -> u8 {
    let future = Pin::new_unchecked(&mut *(state as *mut F));
    let waker = borrow((*cx).waker);
    let outer = POLLED_WITH.with(|polled| polled.replace((*cx).waker));
    let result = catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(&waker))));
    POLLED_WITH.with(|polled| polled.set(outer));
    match result {
        Ok(Poll::Ready(())) => READY,
        Ok(Poll::Pending) => PENDING,
        Err(_) => PANICKED,
    }
}

unsafe extern "C" fn drop_rust<F>(state: *mut c_void) {
    drop(Box::from_raw(state as *mut F))
}

pub fn into_tdt<F: Future<Output = ()> + Send + 'static>(future: F) -> TdtFuture {
    let state = Box::into_raw(Box::new(future)) as *mut c_void;
    TdtFuture { state, poll: Some(poll_rust::<F>), drop: Some(drop_rust::<F>) }
}

// --- A Rust waker as one of tdt: on the stack during a poll, boxed when it is cloned. ---

#[repr(C)]
struct WakerForC {
    waker: TdtWaker,
    rust: Waker,
}

static C_VTABLE: TdtWakerVtable =
    TdtWakerVtable { clone: c_clone, wake: c_wake, wake_by_ref: c_wake_by_ref, drop: c_drop };

unsafe extern "C" fn c_clone(waker: *const TdtWaker) -> *const TdtWaker {
    let rust = (*(waker as *const WakerForC)).rust.clone();
    let waker = TdtWaker { vtable: &C_VTABLE };
    Box::into_raw(Box::new(WakerForC { waker, rust })) as *const TdtWaker
}

unsafe extern "C" fn c_wake(waker: *const TdtWaker) {
    Box::from_raw(waker as *mut WakerForC).rust.wake()
}

unsafe extern "C" fn c_wake_by_ref(waker: *const TdtWaker) {
    (*(waker as *const WakerForC)).rust.wake_by_ref()
}

unsafe extern "C" fn c_drop(waker: *const TdtWaker) {
    drop(Box::from_raw(waker as *mut WakerForC))
}

// --- A future of tdt as a Rust one: `future.await`. ---

impl Future for TdtFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let ours = POLLED_WITH.with(Cell::get);
        // The waker of another runtime or of a combinator.  It is borrowed, too.
        let theirs = ManuallyDrop::new(WakerForC {
            waker: TdtWaker { vtable: &C_VTABLE },
            rust: unsafe { ptr::read(cx.waker()) },
        });
        // A waker of tdt is passed on unchanged: a wrapper around it would seem to be the leaf.
        let same = !ours.is_null() && cx.waker().will_wake(unsafe { &borrow(ours) });
        let mut c = TdtContext { waker: if same { ours } else { &theirs.waker } };
        match self.poll_once(&mut c) {
            READY => Poll::Ready(()),
            PENDING => Poll::Pending,
            _ => panic!("a future of tdt's panicked"),
        }
    }
}
