// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What stands for libtdt off Linux: the functions that the crate `tdt` calls, which do nothing.
//! `tdt_traced_with` gives the future back untraced, and the others say so.
//!
//! (`--cfg tdt_nothing` has them on Linux, too, for tests.)
#![allow(clippy::missing_safety_doc)] // nothing here can go wrong

use crate::*;
use core::ptr;

/// EINVAL, as for a null handle.
const UNTRACED: c_int = 22;

macro_rules! nothing {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty = $value:expr)?;)*) => {$(
        pub unsafe fn $name($($arg: $type),*) $(-> $result)? {
            $(let _ = $arg;)*
            $($value)?
        }
    )*};
}

nothing! {
    tdt_traced_with(fut: tdt_future, attr: *const tdt_task_attr) -> tdt_traced =
        tdt_traced { future: fut, handle: ptr::null_mut() };
    tdt_backtrace(handle: *mut tdt_handle) -> *mut tdt_trace = ptr::null_mut();
    tdt_backtrace_with(handle: *mut tdt_handle, options: *const tdt_backtrace_options)
        -> *mut tdt_trace = ptr::null_mut();
    tdt_backtrace_last(handle: *mut tdt_handle) -> *mut tdt_trace = ptr::null_mut();
    tdt_backtrace_async(
        handle: *mut tdt_handle, options: *const tdt_backtrace_options,
        out: *mut *mut tdt_trace, error: *mut c_int
    ) -> tdt_future = tdt_future { state: ptr::null_mut(), poll: None, drop: None };
    tdt_handle_id(handle: *const tdt_handle) -> u64 = 0;
    tdt_handle_ref(handle: *mut tdt_handle) -> *mut tdt_handle = handle;
    tdt_handle_unref(handle: *mut tdt_handle);
    tdt_current_task_id() -> u64 = 0;
    tdt_trace_free(trace: *mut tdt_trace);
    tdt_trace_info(trace: *const tdt_trace) -> *const tdt_task_info = ptr::null();
    tdt_trace_root(trace: *const tdt_trace) -> *const tdt_node = ptr::null();
    tdt_trace_print_with(
        trace: *const tdt_trace, out: *mut FILE, options: *const tdt_print_options
    ) -> c_int = -UNTRACED;
    tdt_node_parent(node: *const tdt_node) -> *const tdt_node = ptr::null();
    tdt_node_next(node: *const tdt_node) -> *const tdt_node = ptr::null();
    tdt_node_frame(node: *const tdt_node) -> *const tdt_frame = ptr::null();
    tdt_node_leaves(node: *const tdt_node) -> u32 = 0;
    tdt_tasks(filter: *const tdt_task_filter, each: Option<tdt_task_fn>, arg: *mut c_void)
        -> c_int = 0;
    tdt_dump_with(out: *mut FILE, options: *const tdt_dump_options) -> c_int = 0;
    tdt_dump_on_signal(signo: c_int, options: *const tdt_signal_dump) -> c_int = 0;
    tdt_listen(options: *const tdt_listen_options) -> c_int = 0;
    tdt_watch(interval_ns: i64, options: *const tdt_watch_options) -> c_int = 0;
    tdt_worker_thread_start(attr: *const tdt_worker_attr);
    tdt_worker_thread_stop();
    tdt_worker_thread_park();
    tdt_worker_thread_unpark();
    tdt_waker_beneath(waker: *const tdt_waker) -> *const tdt_waker = waker;
    tdt_hook_spawn(attr: *const tdt_task_attr);
    tdt_hook_poll_start(attr: *const tdt_task_attr);
    tdt_hook_poll_start_at(attr: *const tdt_task_attr, base: usize);
    tdt_hook_poll_end(attr: *const tdt_task_attr);
    tdt_hook_terminate(attr: *const tdt_task_attr);
    tdt_hook_adopt(handle: *mut tdt_handle, id: u64);
    tdt_lock_take(lock: *mut tdt_lock, task: u64);
    tdt_lock_hand(lock: *mut tdt_lock, task: u64);
    tdt_leaf_waits_on_lock(lock: *const tdt_lock, name: *const c_char);
    tdt_task_id_base(first: u64) -> c_int = 0;
    tdt_task_context(handle: *mut tdt_handle, context: *const tdt_trace_context)
        -> c_int = -UNTRACED;
}
