// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Off Linux the crate does nothing, and programs work as without it.
//! RUSTFLAGS="--cfg tdt_nothing" shows that on Linux.
#![cfg(any(tdt_nothing, not(target_os = "linux")))]

use std::time::Duration;

use tdt::{Builder, Error, TraceExt};

#[test]
fn a_future_works_untraced() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let future = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        42
    };
    let (future, handle) = tdt::traced(future);
    assert_eq!((future.id(), handle.id()), (0, 0));
    assert_eq!(runtime.block_on(future), 42);
    assert_eq!(handle.backtrace_blocking().err(), Some(Error::Untraced));
    assert_eq!(handle.last_trace().err(), Some(Error::Untraced));
    assert_eq!(runtime.block_on(handle.backtrace()).err(), Some(Error::Untraced));
    assert_eq!(runtime.block_on(Builder::new().name("a").without_waker().trace(async { 7 })), 7);
}

#[test]
fn a_panic_passes() {
    let panics = std::panic::catch_unwind(|| {
        futures::executor::block_on(async { panic!("for a test") }.traced())
    });
    assert!(panics.is_err());
}

#[test]
fn calls_for_all_tasks_find_none() {
    let mut out = Vec::new();
    tdt::dump_to(&mut out).unwrap();
    tdt::dump_on_signal_to(10, "/nowhere/dump").unwrap();
    tdt::watch(Duration::from_millis(10)).unwrap();
    tdt::listen().unwrap();
    assert!(out.is_empty() && tdt::tasks().is_empty() && tdt::current_id().is_none());
}

#[cfg(feature = "tokio")]
#[test]
fn locks_are_locks() {
    futures::executor::block_on(async {
        let mutex = tdt::sync::Mutex::new(1);
        *mutex.lock().await += 1;
        assert_eq!(mutex.into_inner(), 2);
    });
}
