// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A runtime with hooks: which id a task has, traced or not.
#![cfg(tokio_unstable)]

use std::future::Future;
use std::time::Duration;

use tdt::{JoinSetExt, TraceExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// The ids that the library picks are at least this.
const PICKED: u64 = 1 << 48;

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    tdt::register_hooks(&mut builder).unwrap().worker_threads(2).enable_time().build().unwrap()
}

/// Both flavors of tokio run the test.
fn run<F: Future>(test: impl Fn() -> F) {
    runtime().block_on(test());
    let mut builder = Builder::new_current_thread();
    tdt::register_hooks(&mut builder).unwrap().enable_time();
    builder.build().unwrap().block_on(test());
}

fn number(id: tokio::task::Id) -> u64 {
    id.to_string().parse().unwrap()
}

/// What the library and tokio say of the task that is polled.
fn both_ids() -> (Option<u64>, Option<u64>) {
    (tdt::current_id(), tokio::task::try_id().map(number))
}

#[test]
fn a_task_that_nobody_traces_has_tokios_id() {
    run(|| async {
        let (ours, tokios) = tokio::spawn(async { both_ids() }).await.unwrap();
        assert!(ours.is_some());
        assert_eq!(ours, tokios);
    });
}

#[test]
fn it_has_it_also_after_a_wait() {
    run(|| async {
        let task = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            both_ids()
        });
        let (ours, tokios) = task.await.unwrap();
        assert_eq!(ours, tokios);
    });
}

#[test]
fn what_block_on_polls_has_none() {
    run(|| async { assert_eq!(tdt::current_id(), None) });
}

#[test]
fn a_task_that_is_spawned_traced_has_tokios_id() {
    run(|| async {
        let task = tdt::spawn(async { both_ids() });
        let id = number(task.id());
        assert_eq!(task.await.unwrap(), (Some(id), Some(id)));
        let task = tdt::Builder::new().name("named").spawn(async { both_ids() });
        let id = number(task.id());
        assert_eq!(task.await.unwrap(), (Some(id), Some(id)));
        let mut set = JoinSet::new();
        let task = set.spawn_traced(async { both_ids() });
        let id = number(task.id());
        assert_eq!(set.join_next().await.unwrap().unwrap(), (Some(id), Some(id)));
    });
}

#[test]
fn it_has_the_id_before_its_first_poll() {
    let mut builder = Builder::new_current_thread();
    let runtime = tdt::register_hooks(&mut builder).unwrap().build().unwrap();
    runtime.block_on(async {
        let task = tdt::Builder::new().name("not polled").spawn(async {});
        let id = number(task.id());
        let tasks = tdt::tasks();
        let found = tasks.iter().find(|task| task.info.id == id).unwrap();
        assert_eq!(found.info.name.as_deref(), Some("not polled"));
        task.await.unwrap();
    });
}

#[test]
fn a_future_that_was_traced_before_gets_tokios_id() {
    run(|| async {
        let (future, handle) = tdt::traced(async { both_ids() });
        assert!(handle.id() >= PICKED);
        let task = tokio::spawn(future);
        let id = number(task.id());
        assert_eq!(task.await.unwrap(), (Some(id), Some(id)));
        assert_eq!(handle.id(), id);
    });
}

#[test]
fn a_traced_future_inside_of_a_task_has_an_id_of_its_own() {
    run(|| async {
        tokio::spawn(async {
            let future = async { both_ids().0 }.traced();
            let handle = future.handle();
            let inner = future.await;
            assert_eq!(inner, Some(handle.id()));
            assert!(inner.unwrap() >= PICKED);
            let (ours, tokios) = both_ids();
            assert_eq!(ours, tokios);
        })
        .await
        .unwrap();
    });
}

#[test]
fn of_several_traced_futures_one_has_tokios_id() {
    run(|| async {
        let futures = [0, 1].map(|_| async { both_ids().0 }.traced());
        let task = tokio::spawn(futures::future::join_all(futures));
        let id = number(task.id());
        let ids = task.await.unwrap();
        assert_eq!(ids[0], Some(id));
        assert!(ids[1].unwrap() >= PICKED);
    });
}

#[test]
fn a_given_id_stays() {
    run(|| async {
        let task = tdt::Builder::new().id(PICKED - 1).spawn(async { both_ids().0 });
        assert_eq!(task.await.unwrap(), Some(PICKED - 1));
    });
}

#[test]
fn a_trace_has_tokios_id() {
    run(|| async {
        let (future, handle) = tdt::traced(std::future::pending::<()>());
        let limit = Duration::from_secs(60);
        let task = tokio::spawn(async move { tokio::time::timeout(limit, future).await });
        let trace = handle.backtrace().await.unwrap();
        assert_eq!(trace.info().id, number(task.id()));
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_thread_for_blocking_calls_may_wait_for_a_trace() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let (future, handle) = tdt::traced(tokio::time::sleep(Duration::from_secs(60)));
    let task = runtime.spawn(future);
    let ask = tokio::task::spawn_blocking(move || handle.backtrace_blocking());
    runtime.block_on(ask).unwrap().unwrap();
    task.abort();
}

#[test]
fn a_runtime_that_is_gone_has_dropped_its_tasks() {
    let runtime = runtime();
    let (future, polled) = tdt::traced(std::future::pending::<()>());
    runtime.spawn(future);
    let handle = runtime.handle().clone();
    drop(runtime);
    assert!(polled.backtrace_blocking().is_err());
    let _entered = handle.enter();
    let late = tdt::spawn(async {});
    assert!(futures::executor::block_on(late).unwrap_err().is_cancelled());
}
