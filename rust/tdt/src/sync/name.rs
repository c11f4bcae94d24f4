// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The names of locks.
//!
//! The record of a task has the address of the name of the lock that it waits for, and may have it
//! for longer than the lock lives.  So each name is copied once, when a task first waits, and kept
//! for ever.  Names are literals, so there are few.

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use tdt_sys::c_char;

#[derive(Debug)]
pub(super) struct Name {
    text: &'static str,
    of_type: Option<fn() -> &'static str>, // instead of `text`
    c: AtomicPtr<c_char>,                  // null: not copied yet
}

impl Name {
    pub(super) const fn new(text: &'static str) -> Self {
        Name { text, of_type: None, c: AtomicPtr::new(ptr::null_mut()) }
    }

    /// That of a type, without its paths.
    pub(super) const fn of_type<T: ?Sized>() -> Self {
        let of_type: Option<fn() -> &'static str> = Some(std::any::type_name::<T>);
        Name { text: "", of_type, c: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The name with a NUL behind it.
    pub(super) fn c(&self) -> *const c_char {
        let known = self.c.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let copy = copy(self.of_type.map_or(self.text, |name| name()), self.of_type.is_some());
        self.c.store(copy, Ordering::Release); // the text; pairs with the load
        copy
    }
}

/// The copy of a name, which is made once.
fn copy(text: &'static str, is_type: bool) -> *mut c_char {
    static COPIES: Mutex<Option<HashMap<(&str, bool), usize>>> = Mutex::new(None);
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = copies.get_or_insert_with(HashMap::new);
    *copies.entry((text, is_type)).or_insert_with(|| {
        let text = if is_type { without_paths(text) } else { text.replace('\0', "") };
        CString::new(text).unwrap_or_default().into_raw() as usize
    }) as *mut c_char
}

/// `alloc::vec::Vec<app::Job>` as `Vec<Job>`; the unit type has no name that says anything.
fn without_paths(name: &str) -> String {
    let mut short = String::new();
    let mut start = 0; // of the last part of a path
    if name == "()" {
        return short;
    }
    for letter in name.chars() {
        short.push(letter);
        if short.ends_with("::") {
            short.truncate(start);
        } else if !letter.is_alphanumeric() && letter != '_' && letter != ':' {
            start = short.len();
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn c_text(name: &Name) -> &str {
        // SAFETY: it ends with a NUL, and lives for ever.
        unsafe { CStr::from_ptr(name.c().cast()) }.to_str().unwrap()
    }

    #[test]
    fn a_type_is_named_without_its_paths() {
        assert_eq!(
            c_text(&Name::of_type::<Vec<Option<std::ffi::CString>>>()),
            "Vec<Option<CString>>"
        );
        assert_eq!(
            c_text(&Name::of_type::<(u8, [std::cell::Cell<u8>; 2])>()),
            "(u8, [Cell<u8>; 2])"
        );
        assert_eq!(c_text(&Name::of_type::<dyn std::fmt::Debug>()), "dyn Debug");
        assert_eq!(c_text(&Name::of_type::<()>()), "");
    }

    #[test]
    fn equal_names_are_kept_once() {
        assert_eq!(c_text(&Name::new("a::b")), "a::b");
        assert_eq!(Name::new("a::b").c(), Name::new("a::b").c());
    }
}
