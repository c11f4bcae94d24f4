// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For fold.sh: a program whose tasks wait in the crate `pond`.

mod tdt;

use std::ffi::c_void;
use std::future::Future;
use std::io::Error;
use std::ptr;

use pond::future::both::Both;
use pond::sync::mutex::Mutex;
use pond::time::nap::nap;
use tdt::*;

/// `struct tdt_print_options`.
#[repr(C)]
struct PrintOptions {
    size: usize,
    format: u32,
    utf8: u32,
    color: u32,
    addresses: u8,
    full_paths: u8,
    plumbing: u8,
    full: u8,
    max_depth: u32,
}

#[link(name = "tdt-rt")]
extern "C" {
    fn tdt_rt_new(config: *const c_void) -> *mut c_void;
    fn tdt_rt_spawn(rt: *mut c_void, fut: TdtFuture, attr: *const TdtTaskAttr) -> *mut c_void;
    fn tdt_rt_free(rt: *mut c_void);
    fn tdt_sleep_ms(ms: u64) -> TdtFuture;
    fn tdt_trace_print_with(
        trace: *const c_void,
        out: *mut c_void,
        options: *const PrintOptions,
    ) -> i32;
}

async fn naps() {
    nap().await; // naps
}

async fn locks(mutex: Mutex<u32>) {
    mutex.lock().await; // locks
}

async fn boxed() {
    let inner: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(naps());
    inner.await; // boxed
}

async fn joins() {
    Both([Box::pin(naps()), Box::pin(locks(Mutex(1)))]).await; // joins
}

async fn polls() {
    pond::polled!(naps()); // polls
}

async fn blocks() {
    let block = async {
        nap().await; // block
    };
    block.await; // blocks
}

async fn sleeps() {
    unsafe { tdt_sleep_ms(60000) }.await; // sleeps
}

fn show(rt: *mut c_void, future: impl Future<Output = ()> + Send + 'static, full: u8) {
    unsafe {
        let attr = TdtTaskAttr::of(&future);
        let task = tdt_rt_spawn(rt, into_tdt(future), &attr);
        let trace = tdt_backtrace(task);
        let options = PrintOptions {
            size: std::mem::size_of::<PrintOptions>(),
            format: 0,
            utf8: 1,
            color: 1,
            addresses: 0,
            full_paths: 0,
            plumbing: 0,
            full,
            max_depth: 0,
        };
        if trace.is_null() || tdt_trace_print_with(trace, stdout, &options) != 0 {
            println!("no trace: {}", Error::last_os_error());
        }
        tdt_trace_free(trace);
        tdt_handle_unref(task);
    }
}

fn main() {
    let full = std::env::args().count() as u8 - 1;
    unsafe {
        let rt = tdt_rt_new(ptr::null());
        show(rt, naps(), full);
        show(rt, locks(Mutex(1)), full);
        show(rt, boxed(), full);
        show(rt, joins(), full);
        show(rt, polls(), full);
        show(rt, blocks(), full);
        show(rt, sleeps(), full);
        tdt_rt_free(rt);
    }
}
