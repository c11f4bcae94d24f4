// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings of C, and what libtdt prints.

use std::borrow::Cow;
#[cfg(not(tdt_nothing))]
use std::ffi::c_void;
use std::ffi::CStr;
use std::io;
#[cfg(not(tdt_nothing))]
use std::ptr;

use tdt_sys::{c_char, c_int, FILE};

#[cfg(not(tdt_nothing))]
extern "C" {
    fn open_memstream(text: *mut *mut c_char, length: *mut usize) -> *mut FILE;
    fn fclose(stream: *mut FILE) -> c_int;
    fn free(memory: *mut c_void);
}

/// A string of libtdt, or nothing if it is null.
///
/// # Safety
/// It is null, or ends with a NUL and is valid as long as the result.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's contract.
    Some(unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy())
}

/// A number of libtdt, where 0 means unknown.
pub(crate) fn known(number: u32) -> Option<u32> {
    if number == 0 {
        None
    } else {
        Some(number)
    }
}

/// Off Linux nothing is printed.
#[cfg(tdt_nothing)]
pub(crate) fn printed(print: impl FnOnce(*mut FILE) -> c_int) -> io::Result<Vec<u8>> {
    crate::error::check(print(std::ptr::null_mut()))?;
    Ok(Vec::new())
}

/// What `print` writes to the stream that it is given.  It returns 0 or a negative errno.
#[cfg(not(tdt_nothing))]
pub(crate) fn printed(print: impl FnOnce(*mut FILE) -> c_int) -> io::Result<Vec<u8>> {
    let (mut text, mut length) = (ptr::null_mut(), 0);
    // SAFETY: both outlive the stream.
    let stream = unsafe { open_memstream(&mut text, &mut length) };
    if stream.is_null() {
        return Err(io::Error::last_os_error());
    }
    let result = print(stream);
    // SAFETY: the stream is open.  Now `text` is what was printed, in memory of malloc().
    let bytes = unsafe {
        let closed = fclose(stream);
        let bytes = if closed == 0 && !text.is_null() {
            Ok(std::slice::from_raw_parts(text.cast::<u8>(), length).to_vec())
        } else {
            Err(io::Error::last_os_error())
        };
        free(text.cast());
        bytes
    };
    crate::error::check(result)?;
    bytes
}
