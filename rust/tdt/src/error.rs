// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why there is no answer.

use std::fmt;
use std::io;

/// Why a request got no trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The task has ended or was dropped, and no poll took the request.
    Ended,
    /// The runtime did not poll the task in time, or the task is in the middle of a poll whose
    /// stack cannot be read.
    TimedOut,
    /// The request would block the thread that has to poll the task: use
    /// [`Handle::backtrace`](crate::Handle::backtrace).
    WouldDeadlock,
    /// There is no memory.
    NoMemory,
    /// The task was not watched yet ([`watch`](crate::watch)).
    NotWatched,
    /// There was no memory to trace the future, so that it is not a task.
    Untraced,
    /// Another error number of the operating system.
    Os(i32),
}

const ENOMEM: i32 = 12;
const ESRCH: i32 = 3;
const EINVAL: i32 = 22;
const EDEADLK: i32 = 35;
const ENODATA: i32 = 61;
const ETIMEDOUT: i32 = 110;

impl Error {
    /// Of a positive errno.  EINVAL means a null handle.
    pub(crate) fn of(errno: i32) -> Error {
        match errno {
            ESRCH => Error::Ended,
            ETIMEDOUT => Error::TimedOut,
            EDEADLK => Error::WouldDeadlock,
            ENOMEM => Error::NoMemory,
            ENODATA => Error::NotWatched,
            EINVAL => Error::Untraced,
            _ => Error::Os(errno),
        }
    }

    pub(crate) fn last() -> Error {
        if cfg!(tdt_nothing) {
            return Error::Untraced;
        }
        Error::of(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Ended => f.write_str("the task has ended"),
            Error::TimedOut => f.write_str("the task did not answer in time"),
            Error::WouldDeadlock => f.write_str("this thread may have to poll the task"),
            Error::NoMemory => f.write_str("out of memory"),
            Error::NotWatched => f.write_str("the task was not watched yet"),
            Error::Untraced => f.write_str("the future is not traced, for want of memory"),
            Error::Os(errno) => io::Error::from_raw_os_error(*errno).fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Of the result of a function that returns 0 or a negative errno.
pub(crate) fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    Ok(())
}
