// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The facts that are known of a task.

use std::time::Duration;

use tdt_sys as sys;

use crate::context::TraceContext;
use crate::text::{known, text};

/// In which state a task is, or a request found it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum State {
    /// Its last poll returned `Pending`.
    Pending,
    /// It is in the middle of a poll.
    Running,
    /// It has ended.
    Ready,
    /// It has panicked, or was dropped.
    Panicked,
    /// It was woken, and has not been polled since.
    Runnable,
}

impl State {
    fn of(state: sys::tdt_task_state) -> State {
        match state {
            sys::TDT_TASK_RUNNING => State::Running,
            sys::TDT_TASK_READY => State::Ready,
            sys::TDT_TASK_PANICKED => State::Panicked,
            sys::TDT_TASK_RUNNABLE => State::Runnable,
            _ => State::Pending,
        }
    }
}

/// What a leaf waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum WaitKind {
    /// The end of a task.
    Task,
    /// A lock.
    Mutex,
    /// A value from a channel.
    Channel,
    /// A point in time.
    Timer,
    /// A socket, a file, a process.
    Io,
    /// Something else.
    Other,
    /// A permit of a semaphore.
    Semaphore,
    /// A notification that something has changed.
    Notification,
}

/// The object that a leaf waits for, as its author reports it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Wait {
    /// What it is.
    pub kind: WaitKind,
    /// Distinguishes objects of a kind: an address, or a descriptor.
    pub object: u64,
    /// The task that the wait depends on, if it is known.
    pub owner: Option<u64>,
    /// The name of the object, if it has one.
    pub name: Option<String>,
    /// How long ago a lock was handed to `owner`, which has not taken it; nothing if `owner` holds
    /// it.
    pub handed: Option<Duration>,
}

impl Wait {
    fn of(wait: &sys::tdt_wait) -> Wait {
        let kind = match wait.kind {
            sys::TDT_WAIT_TASK => WaitKind::Task,
            sys::TDT_WAIT_MUTEX => WaitKind::Mutex,
            sys::TDT_WAIT_CHANNEL => WaitKind::Channel,
            sys::TDT_WAIT_TIMER => WaitKind::Timer,
            sys::TDT_WAIT_IO => WaitKind::Io,
            sys::TDT_WAIT_SEMAPHORE => WaitKind::Semaphore,
            sys::TDT_WAIT_NOTIFICATION => WaitKind::Notification,
            _ => WaitKind::Other,
        };
        // SAFETY: it ends with a NUL.
        let name = unsafe { text(wait.name.as_ptr()) }.filter(|name| !name.is_empty());
        Wait {
            kind,
            object: wait.object,
            owner: known(wait.owner),
            name: name.map(|n| n.into_owned()),
            handed: known(wait.handed_ns).map(Duration::from_nanos),
        }
    }
}

/// The facts that are known of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskInfo {
    /// The id of the task.
    pub id: u64,
    /// Its name, or the end of the name of its type.
    pub name: Option<String>,
    /// Where it was spawned.
    pub file: Option<String>,
    /// In `file`.
    pub line: Option<u32>,
    /// In `line`, from 1.
    pub column: Option<u32>,
    /// Its state.
    pub state: State,
    /// How long it has been in its state, to some milliseconds.
    pub state_time: Duration,
    /// How often it was polled.
    pub polls: u64,
    /// The task that spawned it, if one did.
    pub parent: Option<u64>,
    /// Whether it is a part of `parent`: see [`child`](crate::child).
    pub child: bool,
    /// Whether nobody traces it, so that it has no tree: it is known by `register_hooks`.
    pub untraced: bool,
    /// The number of leaves in the tree; 0 if there is no tree.
    pub leaves: u32,
    /// Wakers that other threads cloned during the poll: they are not in the tree.
    pub leaves_elsewhere: u32,
    /// Leaves for which there was no room or no memory.
    pub leaves_lost: u32,
    /// How many of `leaves` may be over: the task may have gone on in the same poll.
    pub leaves_unsure: u32,
    /// The age of the tree; zero if it was made for this request.
    pub age: Duration,
    /// The thread that polls the task, if it is running.
    pub thread: Option<u32>,
    /// The system call in which this thread is blocked.
    pub system_call: Option<String>,
    /// What the leaves wait for, as far as they report it.
    pub waits: Vec<Wait>,
    /// For which request of a distributed trace it works.
    pub trace_context: Option<TraceContext>,
}

impl TaskInfo {
    /// # Safety
    /// `info` and all that it points to is valid during the call.
    pub(crate) unsafe fn of(info: &sys::tdt_task_info) -> TaskInfo {
        // SAFETY: the caller's contract.
        let owned = |string| unsafe { text(string) }.map(|string| string.into_owned());
        let waits = if info.waits.is_null() {
            &[]
        } else {
            // SAFETY: the library says so.
            unsafe { std::slice::from_raw_parts(info.waits, info.n_waits as usize) }
        };
        TaskInfo {
            id: info.id,
            name: owned(info.name),
            file: owned(info.file),
            line: known(info.line),
            column: known(info.column),
            state: State::of(info.state),
            state_time: Duration::from_nanos(info.state_ns),
            polls: info.polls,
            parent: known(info.parent),
            child: info.child != 0,
            untraced: info.untraced != 0,
            leaves: info.leaves,
            leaves_elsewhere: info.leaves_elsewhere,
            leaves_lost: info.leaves_lost,
            leaves_unsure: info.leaves_unsure,
            age: Duration::from_nanos(info.age_ns),
            thread: known(info.thread),
            system_call: owned(info.syscall),
            // SAFETY: each points to a wait of the library.
            waits: waits.iter().map(|wait| Wait::of(unsafe { &**wait })).collect(),
            trace_context: TraceContext::of(&info.context),
        }
    }
}
