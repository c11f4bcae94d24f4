// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A runtime with hooks: which id a task has, traced or not, and what is known of it.
#![cfg(tokio_unstable)]

use std::future::Future;
use std::sync::Mutex;
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

/// Both flavors of tokio run the test, and are gone then.  Tokio reports the end of a task after
/// those who await the task have seen it, so what is known of the end is looked at afterwards.
fn run<F: Future>(test: impl Fn() -> F) -> [F::Output; 2] {
    let several = runtime().block_on(test());
    let mut builder = Builder::new_current_thread();
    tdt::register_hooks(&mut builder).unwrap().enable_time();
    let one = builder.build().unwrap().block_on(test());
    [several, one]
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
fn it_has_one_also_if_an_older_task_is_reported_later() {
    let (reports, begins) = std::sync::mpsc::channel();
    let (go_on, stay) = std::sync::mpsc::channel::<()>();
    let (reports, stay) = (Mutex::new(reports), Mutex::new(stay));
    let mut builder = Builder::new_current_thread();
    tdt::register_hooks(&mut builder).unwrap().on_task_spawn(move |meta| {
        reports.lock().unwrap().send(()).unwrap();
        stay.lock().unwrap().recv().unwrap();
        tdt::hooks::on_task_spawn(meta);
    });
    let late = builder.build().unwrap();
    let late = std::thread::spawn(move || drop(late.spawn(async {})));
    begins.recv().unwrap(); // the older task has its id
    let task = runtime().block_on(async {
        tokio::spawn(async move {
            go_on.send(()).unwrap();
            late.join().unwrap();
            let future = async { tdt::current_id() }.traced();
            assert!(future.await.unwrap() >= PICKED);
        })
        .await
    });
    task.unwrap();
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
    let ask = tokio::task::spawn_blocking(move || loop {
        match handle.backtrace_blocking() {
            Err(tdt::Error::TimedOut) => (), // a worker may have no CPU for a while
            answer => break answer,
        }
    });
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

// --- Tasks that nobody traces. ---

/// What is known of a task; `None`: it is not listed.
fn info(id: tokio::task::Id) -> Option<tdt::TaskInfo> {
    tdt::tasks().into_iter().map(|task| task.info).find(|info| info.id == number(id))
}

#[test]
fn one_that_is_spawned_when_its_runtime_is_gone_is_not_listed() {
    let runtime = runtime();
    let handle = runtime.handle().clone();
    drop(runtime);
    let late = handle.spawn(async {});
    assert!(info(late.id()).is_none());
    let _entered = handle.enter();
    let late = tdt::spawn(async {});
    assert!(info(late.id()).is_none());
}

fn dump() -> String {
    let mut text = Vec::new();
    tdt::dump_to(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_task_that_nobody_traces_is_listed_until_it_ends() {
    let ended = run(|| async {
        let line = line!() + 1;
        let task = tokio::spawn(std::future::pending::<()>());
        while info(task.id()).map_or(true, |info| info.polls == 0) {
            tokio::task::yield_now().await;
        }
        let info_now = info(task.id()).unwrap();
        assert!(info_now.untraced);
        assert_eq!(info_now.line, Some(line));
        assert!(info_now.file.unwrap().ends_with("tests/hooks.rs"));
        task.abort();
        let id = task.id();
        assert!(task.await.unwrap_err().is_cancelled());
        id
    });
    assert!(ended.into_iter().all(|id| info(id).is_none()));
}

#[test]
fn one_that_is_traced_is_listed_once() {
    run(|| async {
        let before = tokio::spawn(std::future::pending::<()>().traced());
        let spawned = tdt::spawn(std::future::pending::<()>());
        for task in [before, spawned] {
            // Until its first poll, the one that was traced before is not known to be this task.
            while info(task.id()).map_or(true, |info| info.polls == 0 || info.untraced) {
                tokio::task::yield_now().await;
            }
            let of_id = |entry: &tdt::TaskEntry| entry.info.id == number(task.id());
            assert_eq!(tdt::tasks().iter().filter(|entry| of_id(entry)).count(), 1);
            task.abort();
        }
    });
}

fn blocks_in_a_poll(stay: &std::sync::mpsc::Receiver<()>) {
    let _ = stay.recv();
}

#[test]
fn a_poll_that_lasts_shows_its_stack_and_one_that_waits_says_that_it_has_no_tree() {
    let runtime = runtime();
    let (go_on, stay) = std::sync::mpsc::channel();
    let (begun, begins) = std::sync::mpsc::channel();
    let waits = runtime.spawn(std::future::pending::<()>());
    let blocks = runtime.spawn(async move {
        begun.send(()).unwrap();
        blocks_in_a_poll(&stay)
    });
    begins.recv().unwrap();
    // A busy machine may have no time for the names.
    let text = std::iter::repeat_with(dump).find(|text| !text.contains("not named in time"));
    let text = text.unwrap();
    assert!(text.contains("blocks_in_a_poll"), "{text}");
    assert!(text.contains("(not traced: no tree; tdt::spawn() or "), "{text}");
    go_on.send(()).unwrap();
    runtime.block_on(blocks).unwrap();
    waits.abort();
}

#[test]
fn a_panic_is_one_and_a_panic_that_was_caught_in_an_earlier_poll_is_none() {
    let ended = run(|| async {
        let task = tokio::spawn(async { panic!("a panic, for a test") });
        let panicked = number(task.id());
        assert!(task.await.unwrap_err().is_panic());
        let task = tokio::spawn(async {
            let _ = std::panic::catch_unwind(|| panic!("a panic that is caught, for a test"));
            tokio::task::yield_now().await;
        });
        let caught = number(task.id());
        task.await.unwrap();
        (panicked, caught)
    });
    for (panicked, caught) in ended {
        assert!(dump().contains(&format!("task {panicked} panicked")));
        assert!(!dump().contains(&format!("task {caught} panicked")));
    }
}

#[test]
fn a_lock_names_a_task_that_nobody_traces() {
    run(|| async {
        let lock = std::sync::Arc::new(tdt::sync::Mutex::new(()));
        let taken = lock.clone();
        let (has_it, has) = tokio::sync::oneshot::channel();
        let holder = tokio::spawn(async move {
            let _guard = taken.lock().await;
            has_it.send(()).unwrap();
            std::future::pending::<()>().await
        });
        has.await.unwrap();
        let waits = tokio::spawn(async move { drop(lock.lock().await) });
        while info(waits.id()).map_or(true, |info| info.waits.is_empty()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(info(waits.id()).unwrap().waits[0].owner, Some(number(holder.id())));
        holder.abort();
        waits.await.unwrap();
    });
}

#[test]
fn the_tasks_of_a_join_set_may_be_children_of_the_one_that_awaits_them() {
    run(|| async {
        let parent = tokio::spawn(async {
            let mut set = JoinSet::new();
            for _ in 0..3 {
                set.spawn(tdt::child(tokio::time::sleep(Duration::from_secs(60))));
            }
            set.join_next().await;
        });
        let polled = |info: &tdt::TaskInfo| info.child && info.polls > 0;
        let of_parent = |info: &tdt::TaskInfo| info.parent == Some(number(parent.id()));
        while tdt::tasks().iter().filter(|t| of_parent(&t.info) && polled(&t.info)).count() < 3 {
            tokio::task::yield_now().await;
        }
        parent.abort();
        assert!(parent.await.unwrap_err().is_cancelled());
    });
}
