// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll};
use std::time::Duration;

use tdt_sys as sys;

use crate::traced::substituted;
use crate::waker::Borrowed;
use crate::{Error, Trace};

/// The handle of a traced future, for requests from any thread, also after the future's end.
pub struct Handle(*mut sys::tdt_handle); // null: the future is not traced

// SAFETY: any thread may use and unref a handle.
unsafe impl Send for Handle {}
// SAFETY: the same; each reference is given up separately.
unsafe impl Sync for Handle {}

impl Handle {
    /// # Safety
    /// `handle` is null, or a reference that the caller gives away.
    pub(crate) unsafe fn from_raw(handle: *mut sys::tdt_handle) -> Handle {
        Handle(handle)
    }

    /// Null if the future is not traced.
    pub(crate) fn as_raw(&self) -> *mut sys::tdt_handle {
        self.0
    }

    /// The id of the task; 0 if the future is not traced.
    pub fn id(&self) -> u64 {
        // SAFETY: it is a handle, or null.
        unsafe { sys::tdt_handle_id(self.0) }
    }

    /// Ask where the task waits.
    ///
    /// The library wakes the task, the runtime polls it as usual, and that poll answers.  There is
    /// no time limit: if a poll of the task is going on, the future waits for its end.  Dropping
    /// the future withdraws the request.  A task may ask itself.
    pub fn backtrace(&self) -> Backtrace {
        Backtrace::new(self)
    }

    /// The same, blocking, for one second at most.  Of a task that is stuck in the middle of a
    /// poll, it gives the stack of that poll.
    ///
    /// # Errors
    /// Among others [`Error::WouldDeadlock`] inside a poll of a traced future: use
    /// [`backtrace`](Self::backtrace) or [`backtrace_timeout`](Self::backtrace_timeout) there.  On
    /// a runtime's thread outside such a poll, the call blocks the thread.
    pub fn backtrace_blocking(&self) -> Result<Trace, Error> {
        // SAFETY: it is a handle, or null.
        unsafe { Trace::from_answer(sys::tdt_backtrace(self.0)) }
    }

    /// The same with another limit, and allowed everywhere but in a poll of the task itself.
    ///
    /// # Errors
    /// See [`backtrace_blocking`](Self::backtrace_blocking).
    pub fn backtrace_timeout(&self, limit: Duration) -> Result<Trace, Error> {
        let no_wait = if limit.is_zero() { sys::TDT_BACKTRACE_NO_WAIT } else { 0 };
        let options = sys::tdt_backtrace_options {
            size: std::mem::size_of::<sys::tdt_backtrace_options>(),
            timeout_ns: i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX),
            max_frames: 0,
            flags: sys::TDT_BACKTRACE_ON_WORKER | no_wait,
        };
        // SAFETY: it is a handle, or null; the options are valid.
        unsafe { Trace::from_answer(sys::tdt_backtrace_with(self.0, &options)) }
    }

    /// The tree that the watch recorded last ([`watch`](crate::watch)).  The task is left alone.
    ///
    /// # Errors
    /// [`Error::NotWatched`] if there is none.
    pub fn last_trace(&self) -> Result<Trace, Error> {
        // SAFETY: it is a handle, or null.
        unsafe { Trace::from_answer(sys::tdt_backtrace_last(self.0)) }
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        if !self.0.is_null() {
            // SAFETY: it is a handle.
            unsafe { sys::tdt_handle_ref(self.0) };
        }
        Handle(self.0)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: this reference is given up once; null does nothing.
        unsafe { sys::tdt_handle_unref(self.0) }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("id", &self.id()).finish()
    }
}

/// The future of [`Handle::backtrace`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Backtrace {
    future: sys::tdt_future,
    answer: NonNull<Answer>,
    failed: Option<Error>, // there is no future
}

/// Where libtdt's future puts the answer.  On the heap, since a `Backtrace` can be moved.
struct Answer {
    trace: *mut sys::tdt_trace,
    error: sys::c_int,
}

// SAFETY: any thread may poll and drop the future, and use a trace; the answer belongs to it.
unsafe impl Send for Backtrace {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for Backtrace {}

impl Backtrace {
    fn new(handle: &Handle) -> Self {
        let answer = Box::new(Answer { trace: ptr::null_mut(), error: 0 });
        let answer = NonNull::from(Box::leak(answer));
        let raw = answer.as_ptr();
        // SAFETY: the answer outlives the future: both end in `drop`.
        let future = unsafe {
            let (trace, error) = (ptr::addr_of_mut!((*raw).trace), ptr::addr_of_mut!((*raw).error));
            sys::tdt_backtrace_async(handle.0, std::ptr::null(), trace, error)
        };
        let failed = if future.poll.is_none() { Some(Error::last()) } else { None };
        Backtrace { future, answer, failed }
    }

    /// The answer, which belongs to the caller.
    fn take(&mut self) -> Result<Trace, Error> {
        // SAFETY: only the future's poll writes to it.
        let answer = unsafe { self.answer.as_mut() };
        let trace = std::mem::replace(&mut answer.trace, ptr::null_mut());
        if trace.is_null() {
            return Err(Error::of(-answer.error));
        }
        // SAFETY: the future gave the trace to its requester.
        Ok(unsafe { Trace::from_raw(trace) })
    }
}

impl Future for Backtrace {
    type Output = Result<Trace, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = match (self.failed, self.future.poll) {
            (Some(error), _) => return Poll::Ready(Err(error)),
            (None, poll) => poll.expect("a future without a poll"),
        };
        let borrowed = Borrowed::new(cx.waker());
        let given = substituted(cx.waker()).unwrap_or_else(|| borrowed.as_tdt());
        let mut context = sys::tdt_context { waker: given };
        // SAFETY: the future has not been dropped, and the waker is valid during the poll.
        match unsafe { poll(self.future.state, &mut context) } {
            sys::TDT_PENDING => Poll::Pending,
            sys::TDT_READY => Poll::Ready(self.take()),
            _ => panic!("a request was polled after its end"),
        }
    }
}

impl Drop for Backtrace {
    fn drop(&mut self) {
        if let Some(drop) = self.future.drop {
            // SAFETY: once, and not during a poll.
            unsafe { drop(self.future.state) }
        }
        // SAFETY: the future is gone; the pointer came from a box, and a trace in it belongs to us.
        unsafe {
            let answer = Box::from_raw(self.answer.as_ptr());
            sys::tdt_trace_free(answer.trace);
        }
    }
}

impl fmt::Debug for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backtrace").finish_non_exhaustive()
    }
}
