// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Strings of C, and what libtdt prints.

use std::borrow::Cow;
use std::ffi::{c_void, CStr};
use std::io;

use tdt_sys::{c_char, c_int, tdt_print_options};

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

/// A number of libtdt, where 0 means none, or unknown.
#[inline]
pub(crate) fn known<N: Default + PartialEq>(number: N) -> Option<N> {
    Some(number).filter(|number| *number != N::default())
}

/// Take what libtdt prints.  `arg` is the vector of [`printed`].
unsafe extern "C" fn append(arg: *mut c_void, bytes: *const c_char, n: usize) -> c_int {
    // SAFETY: the vector is lent to the call that prints, and so are the bytes to this one.
    unsafe {
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), n);
        (*arg.cast::<Vec<u8>>()).extend_from_slice(bytes);
    }
    0
}

/// What `print` writes with these options.  It returns 0 or a negative errno.
pub(crate) fn printed(
    options: tdt_print_options,
    print: impl FnOnce(&tdt_print_options) -> c_int,
) -> io::Result<Vec<u8>> {
    let mut text: Vec<u8> = Vec::new();
    let arg: *mut Vec<u8> = &mut text;
    let options = tdt_print_options { write: Some(append), arg: arg.cast(), ..options };
    crate::error::check(print(&options))?;
    Ok(text)
}
