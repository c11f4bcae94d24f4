// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests show the functions of the program, on the lines of their `.await`.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tdt::{Error, State, Trace, TraceExt};

mod waiting;

/// The lines where the functions below wait.
fn line(of: &str) -> u32 {
    let mark = format!("// want: {of}");
    let lines: Vec<&str> = include_str!("trees.rs").lines().collect();
    lines.iter().position(|line| line.ends_with(&mark)).unwrap() as u32 + 1
}

/// The frames of this file, as names and lines.
fn own(trace: &Trace) -> Vec<(String, u32)> {
    let own = trace.frames().filter(|f| f.file().map_or(false, |file| file.ends_with("trees.rs")));
    own.map(|frame| {
        let function = frame.function().unwrap().into_owned();
        // A closure is an async function's body, and has several names.
        let name = function.split("::{").next().unwrap();
        (name.rsplit("trees::").next().unwrap().into(), frame.line().unwrap())
    })
    .collect()
}

fn wanted(names: &[(&str, &str)]) -> Vec<(String, u32)> {
    names.iter().map(|&(name, mark)| (String::from(name), line(mark))).collect()
}

/// Waits for ever, with a waker, as leaves do.
struct Forever;

impl Future for Forever {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        KEPT.lock().unwrap().push(cx.waker().clone()); // want: forever
        Poll::Pending
    }
}

static KEPT: std::sync::Mutex<Vec<std::task::Waker>> = std::sync::Mutex::new(Vec::new());

async fn outer() {
    middle().await // want: outer
}

async fn middle() {
    futures::future::join(left(), right()).await; // want: middle
}

async fn left() {
    Forever.await // want: left
}

async fn right() {
    left().await // want: right
}

async fn nest(inner: impl Future) {
    inner.await; // want: nested
}

const FOREVER: (&str, &str) = (" as core::future::future::Future>::poll", "forever");

fn tree() -> Vec<(String, u32)> {
    wanted(&[
        ("outer", "outer"),
        ("middle", "middle"),
        ("left", "left"),
        ("Forever", "forever"),
        ("right", "right"),
        ("left", "left"),
        ("Forever", "forever"),
    ])
}

fn simple(frames: Vec<(String, u32)>) -> Vec<(String, u32)> {
    let poll = |name: String| if name.contains(FOREVER.0) { "Forever".into() } else { name };
    frames.into_iter().map(|(name, line)| (poll(name), line)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_async_code_gets_the_tree() {
    let (future, handle) = tdt::traced(outer());
    let task = tokio::spawn(future);

    let trace = handle.backtrace().await.unwrap();
    assert_eq!(simple(own(&trace)), tree());
    assert_eq!(trace.leaves().count(), 2);
    assert!(trace.leaves().all(|leaf| leaf.depth() > 4));
    let info = trace.info();
    assert_eq!((info.id, info.state, info.leaves), (handle.id(), State::Pending, 2));
    task.abort();
}

#[test]
fn a_request_that_blocks_gets_the_tree() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (future, handle) = tdt::traced(outer());
    runtime.spawn(future);

    let trace = waiting::backtrace(&handle);
    assert_eq!(simple(own(&trace)), tree());
    let text = trace.to_string();
    assert!(text.starts_with(&format!("task {} \"trees::outer\" pending", handle.id())), "{text}");
    assert!(text.contains(&format!("trees.rs:{}", line("right"))), "{text}");
    assert!(!text.ends_with('\n'));
    assert!(trace.to_json().unwrap().contains("\"leaves\":2"));
}

#[tokio::test]
async fn a_task_may_ask_itself() {
    let future = async {
        let handle = tdt::tasks();
        let id = tdt::current_id().unwrap();
        let handle = &handle.iter().find(|task| task.info.id == id).unwrap().handle;
        let blocking = handle.backtrace_blocking().unwrap_err();
        let (trace, _) = futures::future::join(handle.backtrace(), async {
            tokio::time::sleep(Duration::from_millis(1)).await
        })
        .await;
        (blocking, trace.unwrap())
    };
    let (blocking, trace) = tokio::spawn(future.traced()).await.unwrap();

    assert_eq!(blocking, Error::WouldDeadlock);
    assert!(!own(&trace).is_empty());
}

#[tokio::test]
async fn a_task_inside_another_has_its_part_of_the_tree() {
    let inner = right().traced();
    let inner_handle = inner.handle();
    let (outer, handle) = tdt::traced(nest(inner));
    let task = tokio::spawn(outer);
    let part = wanted(&[("right", "right"), ("left", "left"), ("Forever", "forever")]);

    let trace = inner_handle.backtrace().await.unwrap();
    assert_eq!(simple(own(&trace)), part);
    let trace = handle.backtrace().await.unwrap();
    assert_eq!(trace.info().leaves, 1, "{trace:#}");
    assert_eq!(simple(own(&trace))[1..], part[..]);
    assert_eq!(own(&trace)[0].1, line("nested"));
    task.abort();
}

#[test]
fn both_tasks_of_a_nest_answer_a_dump_with_one_leaf() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let inner = left().traced();
    let (id, (outer, handle)) = (inner.id(), tdt::traced(nest(inner)));
    runtime.spawn(outer);
    waiting::backtrace(&handle);

    for id in [id, handle.id()] {
        // A task whose thread has no CPU for a while does not answer a dump, or is in its poll.
        let line = loop {
            let mut text = Vec::new();
            tdt::dump_to(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let line = text.lines().find(|line| line.starts_with(&format!("task {id} ")));
            let line = line.unwrap_or_else(|| panic!("{text}"));
            if line.contains(" pending ") && !line.contains("did not answer") {
                break line.to_owned();
            }
        };
        assert!(line.contains("1 leaf"), "{line}");
    }
}

#[test]
fn a_poll_that_is_stuck_shows_its_stack() {
    let (stuck, wait) = mpsc::channel::<()>();
    let (future, handle) = tdt::traced(async move {
        let _ = wait.recv(); // want: stuck
    });
    let thread = thread::spawn(move || futures::executor::block_on(future));

    let trace = loop {
        // The thread may not have begun, or may still be on its way to sleep.
        match handle.backtrace_blocking() {
            Ok(trace) if own(&trace).iter().any(|(_, at)| *at == line("stuck")) => break trace,
            _ => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(trace.info().state, State::Running);
    drop(stuck);
    thread.join().unwrap();
}

#[test]
fn the_watch_keeps_the_last_tree() {
    tdt::watch(Duration::from_millis(1)).unwrap();
    let mut future = Box::pin(outer().traced());
    let handle = future.handle();
    assert_eq!(handle.last_trace().unwrap_err(), Error::NotWatched);

    let waker = futures::task::noop_waker();
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(simple(own(&handle.last_trace().unwrap())), tree());
    tdt::watch(Duration::ZERO).unwrap();
}
