// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bindings of libtdt: its structs, constants and functions under their names in C.  The comments
//! in libtdt's headers are the reference.  The crate `tdt` has a safe interface.
//!
//! A test compares sizes, fields and constants with the headers (`tests/layout.rs`).

#![no_std]
#![allow(non_camel_case_types)]
#![warn(missing_debug_implementations)]

use core::ffi::c_void;

// The names of core::ffi came with Rust 1.64.
pub type c_int = i32;
pub type c_uint = u32;
#[cfg(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64"))]
pub type c_char = u8;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64")))]
pub type c_char = i8;

/// A type of which only pointers are known here.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _private: [u8; 0],
            _not_send: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
        }
    )*};
}

opaque! {
    /// A stream of the C library.
    FILE;
    tdt_handle;
    tdt_trace;
    tdt_node;
    tdt_misuse;
}

// --- tdt/future.h ---

pub type tdt_poll_t = u8;
pub const TDT_READY: tdt_poll_t = 0;
pub const TDT_PENDING: tdt_poll_t = 1;
pub const TDT_PANICKED: tdt_poll_t = 2;

/// The owner's data follows.
#[repr(C)]
#[derive(Debug)]
pub struct tdt_waker {
    pub vtable: *const tdt_waker_vtable,
}

#[repr(C)]
#[derive(Debug)]
pub struct tdt_waker_vtable {
    pub clone: unsafe extern "C" fn(waker: *const tdt_waker) -> *const tdt_waker,
    pub wake: unsafe extern "C" fn(waker: *const tdt_waker),
    pub wake_by_ref: unsafe extern "C" fn(waker: *const tdt_waker),
    pub drop: unsafe extern "C" fn(waker: *const tdt_waker),
}

#[repr(C)]
#[derive(Debug)]
pub struct tdt_context {
    pub waker: *const tdt_waker,
}

/// All zero: none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tdt_future {
    pub state: *mut c_void,
    pub poll: Option<unsafe extern "C" fn(state: *mut c_void, cx: *mut tdt_context) -> tdt_poll_t>,
    pub drop: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

// --- tdt/trace.h ---

#[repr(C)]
#[derive(Debug)]
pub struct tdt_task_attr {
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
    pub id_later: u8,
    pub reserved: [u8; 3],
    pub flags: u32,
    pub parent: u64,
    pub entry: u64,
}

pub const TDT_ATTR_PARENT: u32 = 1;
pub const TDT_ATTR_PANICKED: u32 = 2;
pub const TDT_ATTR_CHILD: u32 = 4;
pub const TDT_ATTR_BLOCKING: u32 = 8;

pub const TDT_WORKER_ALL_WAKES: u64 = 1;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_traced {
    pub future: tdt_future,
    pub handle: *mut tdt_handle,
}

#[repr(C)]
#[derive(Debug)]
pub struct tdt_backtrace_options {
    pub size: usize,
    pub timeout_ns: i64,
    pub max_frames: u32,
    pub flags: u32,
}

pub const TDT_BACKTRACE_NO_WAIT: u32 = 1;
pub const TDT_BACKTRACE_ON_WORKER: u32 = 2;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_listen_options {
    pub size: usize,
    pub flags: u64,
}

pub const TDT_MAX_FRAMES: c_int = 256;
pub const TDT_TASK_NAME_MAX: c_int = 63;

// --- tdt/tree.h ---

pub type tdt_task_state = c_uint;
pub const TDT_TASK_WAITING: tdt_task_state = 0;
pub const TDT_TASK_RUNNING: tdt_task_state = 1;
pub const TDT_TASK_READY: tdt_task_state = 2;
pub const TDT_TASK_PANICKED: tdt_task_state = 3;
pub const TDT_TASK_RUNNABLE: tdt_task_state = 4;
pub const TDT_TASK_UNKNOWN: tdt_task_state = 5;

pub type tdt_wait_kind = c_uint;
pub const TDT_WAIT_UNKNOWN: tdt_wait_kind = 0;
pub const TDT_WAIT_TASK: tdt_wait_kind = 1;
pub const TDT_WAIT_MUTEX: tdt_wait_kind = 2;
pub const TDT_WAIT_CHANNEL: tdt_wait_kind = 3;
pub const TDT_WAIT_TIMER: tdt_wait_kind = 4;
pub const TDT_WAIT_IO: tdt_wait_kind = 5;
pub const TDT_WAIT_OTHER: tdt_wait_kind = 6;
pub const TDT_WAIT_SEMAPHORE: tdt_wait_kind = 7;
pub const TDT_WAIT_NOTIFICATION: tdt_wait_kind = 8;
pub const TDT_WAIT_NAME_MAX: c_int = 63;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_wait {
    pub size: usize,
    pub kind: tdt_wait_kind,
    pub futurelock: u32,
    pub object: u64,
    pub owner: u64,
    pub name: [c_char; 64],
    pub handed_ns: u64,
    pub owner_name: *const c_char,
    pub orphaned: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tdt_trace_context {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub valid: u8,
    pub flags: u8,
    pub attrs_size: u16,
}

#[repr(C)]
#[derive(Debug)]
pub struct tdt_task_info {
    pub size: usize,
    pub id: u64,
    pub name: *const c_char,
    pub file: *const c_char,
    pub line: u32,
    pub column: u32,
    pub state: tdt_task_state,
    pub leaves: u32,
    pub leaves_elsewhere: u32,
    pub leaves_lost: u32,
    pub state_ns: u64,
    pub polls: u64,
    pub parent: u64,
    pub woken_ns: u64,
    pub woken_by: u64,
    pub age_ns: u64,
    pub polls_since: u64,
    pub thread: u32,
    pub n_waits: u32,
    pub waits: *const *const tdt_wait,
    pub syscall: *const c_char,
    pub leaves_unsure: u32,
    pub requested: u32,
    pub unknown_stack: u32,
    pub asked: u32,
    pub spawned_ns: u64,
    pub polled_ns: u64,
    pub leaves_known: c_uint,
    pub moved: u32,
    pub busy_polls: u64,
    pub busy_ns: u64,
    pub lost_times: u32,
    pub untraced: u32,
    pub child: u32,
    pub aborted: u32,
    pub context: tdt_trace_context,
    pub blocking: u32,
}

pub type tdt_node_kind = c_uint;
pub const TDT_NODE_TASK: tdt_node_kind = 0;
pub const TDT_NODE_FRAME: tdt_node_kind = 1;
pub const TDT_NODE_CUT: tdt_node_kind = 2;

pub type tdt_cut = c_uint;
pub const TDT_CUT_NOT: tdt_cut = 0;
pub const TDT_CUT_LIMIT: tdt_cut = 1;
pub const TDT_CUT_NO_INFO: tdt_cut = 2;
pub const TDT_CUT_CORRUPT: tdt_cut = 3;
pub const TDT_CUT_STACK: tdt_cut = 4;
pub const TDT_CUT_MEMORY: tdt_cut = 5;
pub const TDT_CUT_UNSUPPORTED: tdt_cut = 6;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_frame {
    pub size: usize,
    pub kind: tdt_node_kind,
    pub cut: tdt_cut,
    pub pc: u64,
    pub function: *const c_char,
    pub file: *const c_char,
    pub directory: *const c_char,
    pub line: u32,
    pub column: u32,
    pub module: *const c_char,
    pub module_offset: u64,
    pub symbol: *const c_char,
    pub symbol_offset: u64,
    pub build_id: *const c_char,
    pub inlined: u8,
    pub guessed: u8,
    pub unnamed: u8,
    pub reserved: [u8; 5],
    pub also: *const *const c_char,
    pub missing: *const c_char,
}

// --- tdt/print.h ---

pub type tdt_print_format = c_uint;
pub const TDT_PRINT_TEXT: tdt_print_format = 0;
pub const TDT_PRINT_JSON: tdt_print_format = 1;
pub const TDT_PRINT_FOLDED: tdt_print_format = 2;

pub type tdt_print_choice = c_uint;
pub const TDT_PRINT_AUTO: tdt_print_choice = 0;
pub const TDT_PRINT_NO: tdt_print_choice = 1;
pub const TDT_PRINT_YES: tdt_print_choice = 2;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_print_options {
    pub size: usize,
    pub format: tdt_print_format,
    pub utf8: tdt_print_choice,
    pub color: tdt_print_choice,
    pub addresses: u8,
    pub full_paths: u8,
    pub plumbing: u8,
    pub full: u8,
    pub max_depth: u32,
    pub reserved: u32,
    pub write: Option<tdt_write_fn>,
    pub arg: *mut c_void,
}

/// The type of `write` in [`tdt_print_options`].
pub type tdt_write_fn =
    unsafe extern "C" fn(arg: *mut c_void, bytes: *const c_char, n: usize) -> c_int;

// --- tdt/tasks.h ---

#[repr(C)]
#[derive(Debug)]
pub struct tdt_task_filter {
    pub size: usize,
    pub name: *const c_char,
    pub longer_than_ns: u64,
    pub states: u32,
    pub reserved: u32,
}

pub type tdt_task_fn = unsafe extern "C" fn(
    handle: *mut tdt_handle,
    info: *const tdt_task_info,
    arg: *mut c_void,
) -> c_int;

// --- tdt/dump.h ---

#[repr(C)]
#[derive(Debug)]
pub struct tdt_dump_options {
    pub size: usize,
    pub timeout_ns: i64,
    pub filter: *const tdt_task_filter,
    pub print: *const tdt_print_options,
    pub max_frames: u32,
    pub max_ids: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct tdt_signal_dump {
    pub size: usize,
    pub path: *const c_char,
    pub flags: u64,
}

// --- tdt/integrate/hooks.h ---

#[repr(C)]
#[derive(Debug)]
pub struct tdt_worker_attr {
    pub size: usize,
    pub flags: u64,
}

/// The beginning of a lock whose owner dumps may read.
#[repr(C)]
#[derive(Debug)]
pub struct tdt_lock {
    pub magic: [c_char; 8],
    pub owner: u64,
    pub handed: u64,
    pub taken_at: u64,
}

/// In `taken_at`: another task than the owner may give the lock back.
pub const TDT_LOCK_MOVES: u64 = u64::MAX;

/// The characters of TDT_LOCK_MAGIC, with the NUL.
pub const TDT_LOCK_MAGIC: [c_char; 8] = [
    b't' as c_char,
    b'd' as c_char,
    b't' as c_char,
    b'l' as c_char,
    b'o' as c_char,
    b'c' as c_char,
    b'k' as c_char,
    0,
];

// --- tdt/watch.h ---

pub const TDT_WATCH_MIN_NS: c_int = 1000000;

#[repr(C)]
#[derive(Debug)]
pub struct tdt_watch_options {
    pub size: usize,
    pub flags: u64,
}

#[cfg(tdt_nothing)]
mod nothing;
#[cfg(tdt_nothing)]
pub use nothing::*;

#[cfg(not(tdt_nothing))]
extern "C" {
    // tdt/trace.h
    pub fn tdt_traced_with(fut: tdt_future, attr: *const tdt_task_attr) -> tdt_traced;
    pub fn tdt_backtrace(handle: *mut tdt_handle) -> *mut tdt_trace;
    pub fn tdt_backtrace_with(
        handle: *mut tdt_handle,
        options: *const tdt_backtrace_options,
    ) -> *mut tdt_trace;
    pub fn tdt_backtrace_async(
        handle: *mut tdt_handle,
        options: *const tdt_backtrace_options,
        out: *mut *mut tdt_trace,
        error: *mut c_int,
    ) -> tdt_future;
    pub fn tdt_leaf_wakers(on: bool);
    pub fn tdt_future_handle(fut: *const tdt_future) -> *mut tdt_handle;
    pub fn tdt_handle_id(handle: *const tdt_handle) -> u64;
    pub fn tdt_handle_ref(handle: *mut tdt_handle) -> *mut tdt_handle;
    pub fn tdt_handle_unref(handle: *mut tdt_handle);
    pub fn tdt_current_task_id() -> u64;
    pub fn tdt_trace_print(trace: *const tdt_trace, out: *mut FILE) -> c_int;
    pub fn tdt_dump(out: *mut FILE) -> c_int;
    pub fn tdt_listen(options: *const tdt_listen_options) -> c_int;
    pub fn tdt_trace_free(trace: *mut tdt_trace);

    // tdt/tree.h
    pub fn tdt_trace_info(trace: *const tdt_trace) -> *const tdt_task_info;
    pub fn tdt_trace_root(trace: *const tdt_trace) -> *const tdt_node;
    pub fn tdt_node_parent(node: *const tdt_node) -> *const tdt_node;
    pub fn tdt_node_first_child(node: *const tdt_node) -> *const tdt_node;
    pub fn tdt_node_next_sibling(node: *const tdt_node) -> *const tdt_node;
    pub fn tdt_node_next(node: *const tdt_node) -> *const tdt_node;
    pub fn tdt_node_frame(node: *const tdt_node) -> *const tdt_frame;
    pub fn tdt_node_leaves(node: *const tdt_node) -> u32;
    pub fn tdt_node_id(node: *const tdt_node) -> u32;
    pub fn tdt_trace_stacks(trace: *const tdt_trace) -> u32;
    pub fn tdt_trace_stack(
        trace: *const tdt_trace,
        index: u32,
        pcs: *mut u64,
        max: usize,
        cut: *mut tdt_cut,
    ) -> usize;

    // tdt/print.h
    pub fn tdt_trace_print_with(
        trace: *const tdt_trace,
        out: *mut FILE,
        options: *const tdt_print_options,
    ) -> c_int;

    // tdt/tasks.h
    pub fn tdt_tasks(
        filter: *const tdt_task_filter,
        each: Option<tdt_task_fn>,
        arg: *mut c_void,
    ) -> c_int;
    pub fn tdt_task_inspect(
        handle: *mut tdt_handle,
        each: Option<tdt_task_fn>,
        arg: *mut c_void,
    ) -> c_int;
    pub fn tdt_task_find(id: u64) -> *mut tdt_handle;

    // tdt/dump.h
    pub fn tdt_dump_with(out: *mut FILE, options: *const tdt_dump_options) -> c_int;
    pub fn tdt_dump_on_signal(signo: c_int, options: *const tdt_signal_dump) -> c_int;

    // tdt/watch.h
    pub fn tdt_watch(interval_ns: i64, options: *const tdt_watch_options) -> c_int;
    pub fn tdt_backtrace_last(handle: *mut tdt_handle) -> *mut tdt_trace;

    // tdt/join.h
    pub fn tdt_join(handle: *mut tdt_handle, outcome: *mut c_int) -> tdt_future;
    pub fn tdt_task_abort(handle: *mut tdt_handle) -> c_int;

    // tdt/context.h
    pub fn tdt_task_context(handle: *mut tdt_handle, context: *const tdt_trace_context) -> c_int;

    // tdt/integrate/hooks.h
    pub fn tdt_worker_thread_start(attr: *const tdt_worker_attr);
    pub fn tdt_worker_thread_stop();
    pub fn tdt_worker_thread_park();
    pub fn tdt_worker_thread_unpark();
    pub fn tdt_task_woken(handle: *mut tdt_handle);
    pub fn tdt_waker_beneath(waker: *const tdt_waker) -> *const tdt_waker;
    pub fn tdt_leaf_waits_on(kind: tdt_wait_kind, object: *const c_void, owner: u64);
    pub fn tdt_leaf_waits_on_named(
        kind: tdt_wait_kind,
        object: *const c_void,
        owner: u64,
        name: *const c_char,
    );
    pub fn tdt_hook_spawn(attr: *const tdt_task_attr);
    pub fn tdt_hook_poll_start(attr: *const tdt_task_attr);
    pub fn tdt_hook_poll_start_at(attr: *const tdt_task_attr, base: usize);
    pub fn tdt_hook_poll_end(attr: *const tdt_task_attr);
    pub fn tdt_hook_terminate(attr: *const tdt_task_attr);
    pub fn tdt_hook_adopt(handle: *mut tdt_handle, id: u64);
    pub fn tdt_lock_take(lock: *mut tdt_lock, task: u64);
    pub fn tdt_lock_hand(lock: *mut tdt_lock, task: u64);
    pub fn tdt_leaf_waits_on_lock(lock: *const tdt_lock, name: *const c_char);
    pub fn tdt_worker_now(monotonic_ns: u64);
    pub fn tdt_task_id_base(first: u64) -> c_int;
}
