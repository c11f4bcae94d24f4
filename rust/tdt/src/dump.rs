// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All tasks at once.

use std::ffi::{c_void, CString};
use std::io::{self, Write};
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::time::Duration;

use tdt_sys as sys;

use crate::error::check;
use crate::text::{known, printed};
use crate::trace::print_options;
use crate::{Handle, TaskInfo};

/// Print to stderr where all tasks wait.
///
/// All live tasks are asked at the same time, and the dump takes a second at most.  Tasks that wait
/// at the same places are printed once.  Deadlocks come first.
///
/// # Errors
/// Those of writing, and if there is no memory.
pub fn dump() -> io::Result<()> {
    dump_to(io::stderr())
}

/// The same to `out`, as text.
///
/// ```
/// let mut text = Vec::new();
/// tdt::dump_to(&mut text)?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Errors
/// Those of writing, and if there is no memory.
pub fn dump_to(out: impl Write) -> io::Result<()> {
    dump_as(sys::TDT_PRINT_TEXT, out)
}

/// The same as one JSON object on one line: the manual page tdt-trace(5) has the schema.
///
/// # Errors
/// Those of writing, and if there is no memory.
pub fn dump_json_to(out: impl Write) -> io::Result<()> {
    dump_as(sys::TDT_PRINT_JSON, out)
}

fn dump_as(format: sys::tdt_print_format, mut out: impl Write) -> io::Result<()> {
    let text = printed(print_options(format, false), |print| {
        let options = sys::tdt_dump_options {
            size: mem::size_of::<sys::tdt_dump_options>(),
            timeout_ns: 0,
            filter: ptr::null(),
            print,
            max_frames: 0,
            max_ids: 0,
        };
        // SAFETY: the options are valid, and say where the text goes.
        unsafe { sys::tdt_dump_with(ptr::null_mut(), &options) }
    })?;
    out.write_all(&text)?;
    out.flush()
}

/// Have the signal `signo` print a dump to stderr from now on; 0 ends that.
///
/// # Errors
/// If there is no such signal, or the program handles it already.
pub fn dump_on_signal(signo: i32) -> io::Result<()> {
    // SAFETY: the handler only raises a semaphore.
    check(unsafe { sys::tdt_dump_on_signal(signo, ptr::null()) })
}

/// The same, appended to a file: `%p` in its path stands for the id of the process, `%t` for the
/// time in seconds.  If the path ends in `.json`, each dump is a line of JSON.
///
/// # Errors
/// Those of [`dump_on_signal`], and if there can be no such path.
pub fn dump_on_signal_to(signo: i32, path: impl AsRef<Path>) -> io::Result<()> {
    let path = CString::new(bytes_of(path.as_ref()))?;
    let options = sys::tdt_signal_dump {
        size: mem::size_of::<sys::tdt_signal_dump>(),
        path: path.as_ptr().cast(),
        flags: 0,
    };
    // SAFETY: the path is copied; the handler only raises a semaphore.
    check(unsafe { sys::tdt_dump_on_signal(signo, &options) })
}

#[cfg(unix)]
fn bytes_of(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

/// Have every task keep its last tree, captured once in `interval` (one millisecond at least) in a
/// poll that happens anyway.  Zero ends that; the trees stay.
///
/// # Errors
/// If there is no memory, or no thread can be started.
pub fn watch(interval: Duration) -> io::Result<()> {
    let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    // SAFETY: it may be called anywhere.
    check(unsafe { sys::tdt_watch(interval, ptr::null()) })
}

/// Listen for readers outside the process, such as `tdt bt PID`, which request where tasks wait.
///
/// The first traced future of a process does the same, so this call is for a child of fork(), and
/// for a program that closed all its descriptors.  `TDT_OUTSIDE=0` in the environment refuses all
/// readers.
///
/// # Errors
/// If readers are refused (`PermissionDenied`), or a thread or a descriptor cannot be had.
pub fn listen() -> io::Result<()> {
    // SAFETY: it may be called anywhere.
    check(unsafe { sys::tdt_listen(ptr::null()) })
}

/// Listen, unless that was done before.  Tasks are traced also if it fails.
pub(crate) fn listen_once() {
    static LISTENING: Once = Once::new();

    LISTENING.call_once(|| drop(listen()));
}

/// The id of the task that this thread polls, the innermost one.  On a tokio runtime with hooks
/// (feature `tokio-hooks`) that may be a task that nobody traces.
#[inline]
pub fn current_id() -> Option<u64> {
    // SAFETY: it may be called anywhere.
    known(unsafe { sys::tdt_current_task_id() })
}

/// A live task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskEntry {
    /// For requests.
    pub handle: Handle,
    /// The facts that are known of the task without a request.
    pub info: TaskInfo,
}

/// All live tasks.  The tasks are left alone.
///
/// ```
/// let (_future, handle) = tdt::traced(async {});
/// assert!(tdt::tasks().iter().any(|task| task.info.id == handle.id()));
/// ```
pub fn tasks() -> Vec<TaskEntry> {
    let mut tasks = Vec::new();
    let arg: *mut Vec<TaskEntry> = &mut tasks;
    // SAFETY: `add_task` gets what it expects.  The only error is that of bad arguments.
    unsafe { sys::tdt_tasks(ptr::null(), Some(add_task), arg.cast()) };
    tasks
}

/// # Safety
/// `arg` is a vector of tasks, and the rest comes from libtdt.
unsafe extern "C" fn add_task(
    handle: *mut sys::tdt_handle,
    info: *const sys::tdt_task_info,
    arg: *mut c_void,
) -> sys::c_int {
    let add = AssertUnwindSafe(|| {
        // SAFETY: the caller's contract.  The handle is borrowed, so that a reference is taken.
        unsafe {
            let handle = Handle::from_raw(sys::tdt_handle_ref(handle));
            let info = TaskInfo::of(&*info);
            (*arg.cast::<Vec<TaskEntry>>()).push(TaskEntry { handle, info });
        }
    });
    // A function of C must not unwind.
    match catch_unwind(add) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}
