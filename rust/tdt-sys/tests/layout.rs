// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The structs and constants of this crate are those of the headers: each is written into a C
//! program, which fails to compile if the headers say otherwise.

use std::fmt::Write;
use std::mem::{align_of, size_of, MaybeUninit};
use std::path::Path;
use std::process::Command;
use std::ptr::addr_of;

use tdt_sys::*;

/// Claims about structs, as C.  The destructuring proves that no field is left out.
macro_rules! structs {
    ($out:ident: $($name:ident { $($field:ident),* })*) => {$(
        #[allow(dead_code)]
        fn $name(value: tdt_sys::$name) {
            let tdt_sys::$name { $($field: _),* } = value;
        }
        let (name, size) = (stringify!($name), size_of::<tdt_sys::$name>());
        claim(&mut $out, &format!("sizeof(struct {name})"), size);
        claim(&mut $out, &format!("_Alignof(struct {name})"), align_of::<tdt_sys::$name>());
        let value = MaybeUninit::<tdt_sys::$name>::uninit();
        let start = value.as_ptr();
        $(
            // SAFETY: the place is only named, not read.
            let field = unsafe { addr_of!((*start).$field) };
            let (offset, of) = (field as usize - start as usize, stringify!($field));
            claim(&mut $out, &format!("offsetof(struct {name}, {of})"), offset);
            let size = size_of_pointed(field);
            claim(&mut $out, &format!("sizeof(((struct {name} *)0)->{of})"), size);
        )*
    )*};
}

fn size_of_pointed<T>(_: *const T) -> usize {
    size_of::<T>()
}

fn claim(out: &mut String, what: &str, value: usize) {
    writeln!(out, "_Static_assert({what} == {value}, \"{what} is not {value}\");").unwrap();
}

macro_rules! constants {
    ($out:ident: $($name:ident)*) => {$(
        claim(&mut $out, stringify!($name), $name as usize);
    )*};
}

fn claims() -> String {
    let mut out = String::from(
        "#include <stddef.h>\n#include <tdt/integrate/hooks.h>\n#include <tdt/tdt.h>\n",
    );

    structs! { out:
        tdt_waker { vtable }
        tdt_waker_vtable { clone, wake, wake_by_ref, drop }
        tdt_context { waker }
        tdt_future { state, poll, drop }
        tdt_task_attr {
            size, id, name, file, line, column, file_length, name_length, default_name,
            default_name_length, id_later, reserved, flags, parent, entry
        }
        tdt_traced { future, handle }
        tdt_backtrace_options { size, timeout_ns, max_frames, flags }
        tdt_listen_options { size, flags }
        tdt_watch_options { size, flags }
        tdt_worker_attr { size, flags }
        tdt_signal_dump { size, path, flags }
        tdt_wait {
            size, kind, futurelock, object, owner, name, handed_ns, owner_name, orphaned, reserved
        }
        tdt_task_info {
            size, id, name, file, line, column, state, leaves, leaves_elsewhere, leaves_lost,
            state_ns, polls, parent, woken_ns, woken_by, age_ns, polls_since, thread, n_waits,
            waits, syscall, leaves_unsure, requested, unknown_stack, asked,
            spawned_ns, polled_ns, leaves_known, moved, busy_polls, busy_ns, lost_times, untraced,
            child, aborted, context, blocking
        }
        tdt_trace_context { trace_id, span_id, valid, flags, attrs_size }
        tdt_frame {
            size, kind, cut, pc, function, file, directory, line, column, module, module_offset,
            symbol, symbol_offset, build_id, inlined, guessed, unnamed, reserved, also,
            missing
        }
        tdt_print_options {
            size, format, utf8, color, addresses, full_paths, plumbing, full, max_depth,
            reserved, write, arg
        }
        tdt_task_filter { size, name, longer_than_ns, states, reserved }
        tdt_dump_options { size, timeout_ns, filter, print, max_frames, max_ids }
        tdt_lock { magic, owner, handed, taken_at }
    }
    constants! { out:
        TDT_READY TDT_PENDING TDT_PANICKED
        TDT_ATTR_PARENT TDT_ATTR_PANICKED TDT_ATTR_CHILD TDT_ATTR_BLOCKING TDT_WORKER_ALL_WAKES
        TDT_MAX_FRAMES TDT_TASK_NAME_MAX TDT_WAIT_NAME_MAX TDT_WATCH_MIN_NS
        TDT_TASK_WAITING TDT_TASK_RUNNING TDT_TASK_READY TDT_TASK_PANICKED TDT_TASK_RUNNABLE
        TDT_WAIT_UNKNOWN TDT_WAIT_TASK TDT_WAIT_MUTEX TDT_WAIT_CHANNEL TDT_WAIT_TIMER TDT_WAIT_IO
        TDT_WAIT_OTHER TDT_WAIT_SEMAPHORE TDT_WAIT_NOTIFICATION
        TDT_NODE_TASK TDT_NODE_FRAME TDT_NODE_CUT
        TDT_CUT_NOT TDT_CUT_LIMIT TDT_CUT_NO_INFO TDT_CUT_CORRUPT TDT_CUT_STACK TDT_CUT_MEMORY
        TDT_CUT_UNSUPPORTED
        TDT_PRINT_TEXT TDT_PRINT_JSON TDT_PRINT_FOLDED
        TDT_PRINT_AUTO TDT_PRINT_NO TDT_PRINT_YES
    }
    let magic: String = TDT_LOCK_MAGIC.iter().map(|&c| format!("\\x{c:02x}\" \"")).collect();
    writeln!(out, "int main(void) {{ return __builtin_memcmp(TDT_LOCK_MAGIC, \"{magic}\", 8); }}")
        .unwrap();
    out
}

/// The flags for the headers: those of the repository that this crate is in, or the installed ones.
fn flags() -> Vec<String> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");

    if include.join("tdt/tdt.h").exists() {
        return vec![format!("-I{}", include.display())];
    }
    let output = Command::new("pkg-config").args(["--cflags", "tdt"]).output().unwrap();
    assert!(output.status.success(), "pkg-config finds no headers");
    let words = String::from_utf8(output.stdout).unwrap();
    words.split_whitespace().map(String::from).collect()
}

#[test]
fn structs_and_constants_are_those_of_the_headers() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (directory.join("layout.c"), directory.join("layout"));

    std::fs::write(&source, claims()).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = compiler.split_whitespace();
    let status = Command::new(words.next().unwrap())
        .args(words)
        .args(["-std=gnu11", "-o"])
        .args([&program, &source])
        .args(flags())
        .status()
        .unwrap();
    assert!(status.success(), "the headers say otherwise");
    assert!(Command::new(&program).status().unwrap().success(), "TDT_LOCK_MAGIC is another");
}
