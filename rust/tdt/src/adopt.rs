// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the hooks and the traced futures know of each other.
//!
//! A traced future may be a task of tokio, too.  Then it has tokio's id, and each probe fires once.
//! The hooks learn this in one of two places: `tdt::spawn` says which future it spawns.  Any other
//! future is traced before tokio spawns it, and then it is the first traced future that a poll of
//! this task polls.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use tdt_sys as sys;

use crate::Handle;

/// The ids that the library picks begin here, so that none of them is one of tokio's.
const FIRST_PICKED: u64 = 1 << 48;

/// Whether hooks were registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// The greatest id of the tasks that tokio has reported.
pub(crate) static NEWEST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The id of tokio's task that is polled here, until a traced future has taken it; or 0.
    pub(crate) static POLLED: Cell<u64> = const { Cell::new(0) };

    /// The handle of the traced future that `tdt::spawn` spawns right now, or null.
    pub(crate) static SPAWNED: Cell<*mut sys::tdt_handle> = const { Cell::new(ptr::null_mut()) };
}

/// The first hooks are registered.
#[cfg(tokio_unstable)]
pub(crate) fn begin() {
    // SAFETY: it may be called anywhere.  If ids were picked above, it changes nothing.
    unsafe { sys::tdt_task_id_base(FIRST_PICKED) };
    // Release the base.  Pairs with `newest_task`.
    REGISTERED.store(true, Release);
}

/// For a new traced future: the newest task of tokio, which is not this one; or `None` if there are
/// no hooks.
pub(crate) fn newest_task() -> Option<u64> {
    // Acquire: a future that is to get its id later has one above the base until then.
    REGISTERED.load(Acquire).then(|| NEWEST.load(Relaxed))
}

/// A traced future is polled for the first time, or dropped before.  `newest` is what was the
/// newest task when it was traced; `outermost` says whether no other traced future polls it.
#[cold]
pub(crate) fn settle(handle: &Handle, newest: u64, outermost: bool) {
    if handle.id() < FIRST_PICKED {
        return; // it has tokio's id already
    }
    let mut id = 0;
    if outermost && POLLED.with(Cell::get) > newest {
        id = POLLED.with(|polled| polled.replace(0));
    }
    // SAFETY: the handle is valid, or null.
    unsafe { sys::tdt_hook_adopt(handle.as_raw(), id) };
}
