// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trace contexts.

use std::{io, ptr};

use tdt_sys as sys;

use crate::error::check;
use crate::Handle;

/// For which request of a distributed trace a task works, by the ids of OpenTelemetry and of W3C
/// Trace Context.  What the task spawns inherits it.  Dumps and recordings have it, and `tdt bt
/// --trace=ID` finds the tasks of a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TraceContext {
    /// The trace; not all 0.
    pub trace_id: [u8; 16],
    /// The application's span, the parent of what the task does; not all 0.
    pub span_id: [u8; 8],
    /// Bit 0: sampled.
    pub flags: u8,
}

impl TraceContext {
    pub(crate) fn of(context: &sys::tdt_trace_context) -> Option<TraceContext> {
        let sys::tdt_trace_context { trace_id, span_id, flags, .. } = *context;
        (context.valid == 1).then_some(TraceContext { trace_id, span_id, flags })
    }
}

/// Set the trace context of the task that this thread polls; `None` takes it away.
///
/// # Errors
/// An id is all 0 (`InvalidInput`), or this thread polls no traced future.
pub fn set_trace_context(context: Option<TraceContext>) -> io::Result<()> {
    // SAFETY: null stands for the task that is polled here.
    unsafe { set(ptr::null_mut(), context) }
}

impl Handle {
    /// Set the trace context of the task; `None` takes it away.
    ///
    /// # Errors
    /// An id is all 0, or the future is not traced (`InvalidInput`).
    pub fn set_trace_context(&self, context: Option<TraceContext>) -> io::Result<()> {
        if self.as_raw().is_null() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: it is a handle.
        unsafe { set(self.as_raw(), context) }
    }
}

/// # Safety
/// `handle` is a handle, or null.
unsafe fn set(handle: *mut sys::tdt_handle, context: Option<TraceContext>) -> io::Result<()> {
    let context = context.map(|TraceContext { trace_id, span_id, flags }| sys::tdt_trace_context {
        trace_id,
        span_id,
        valid: 1,
        flags,
        attrs_size: 0,
    });
    // SAFETY: the caller's contract; the context is copied during the call.
    check(unsafe { sys::tdt_task_context(handle, context.as_ref().map_or(ptr::null(), |c| c)) })
}
