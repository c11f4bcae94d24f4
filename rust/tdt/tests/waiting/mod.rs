// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The answers of tasks that wait.

use std::time::Duration;

use tdt::{Handle, State, Trace};

/// The tree where the task waits.  A worker may have no CPU for a while: then the answer comes
/// late, or it is the stack of a poll that goes on.
pub fn backtrace(handle: &Handle) -> Trace {
    loop {
        let trace = handle.backtrace_timeout(Duration::from_secs(60)).unwrap();
        if trace.info().state != State::Running {
            return trace;
        }
    }
}
