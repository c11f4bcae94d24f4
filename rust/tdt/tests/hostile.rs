// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that panic, abort tasks, end runtimes and fork, while tasks are requested.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;
use std::time::Duration;

use futures::future::{join_all, pending, poll_fn};
use futures::task::noop_waker;
use tdt::{Error, State, TraceExt, Traced};

const MINUTE: Duration = Duration::from_secs(60);

/// Panics, without a message.
fn fail() -> ! {
    resume_unwind(Box::new("for a test"))
}

fn panics(run: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

fn poll<F: Future>(future: &mut Pin<Box<Traced<F>>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(workers).enable_time().build().unwrap()
}

async fn sleep() {
    tokio::time::sleep(MINUTE * 60).await;
}

// --- Panics. ---

struct FailsInDrop;

impl Drop for FailsInDrop {
    fn drop(&mut self) {
        fail();
    }
}

#[test]
fn a_future_may_panic_in_its_drop() {
    let fails = FailsInDrop;
    let future = async move {
        let _fails = fails;
        pending::<()>().await;
    };
    let mut future = Box::pin(future.traced());
    let handle = future.handle();

    assert!(poll(&mut future, &noop_waker()).is_pending());
    assert!(panics(|| drop(future)));
    assert_eq!(handle.backtrace_blocking().unwrap_err(), Error::Ended);
}

#[test]
fn a_local_may_panic_in_its_drop_in_the_last_poll() {
    let mut future = Box::pin(async { drop(FailsInDrop) }.traced());
    let handle = future.handle();

    assert!(panics(|| assert!(poll(&mut future, &noop_waker()).is_ready())));
    assert_eq!(handle.backtrace_blocking().unwrap_err(), Error::Ended);
    assert_eq!(tdt::current_id(), None);
}

#[test]
fn a_poll_that_panics_answers_its_request() {
    let future = poll_fn(|cx| {
        let _clone = cx.waker().clone();
        fail();
        #[allow(unreachable_code)]
        Poll::<()>::Pending
    });
    let mut future = Box::pin(future.traced());
    let mut request = Box::pin(future.handle().backtrace());
    let waker = noop_waker();
    let cx = &mut Context::from_waker(&waker);

    assert!(request.as_mut().poll(cx).is_pending());
    assert!(panics(|| assert!(poll(&mut future, &waker).is_ready())));
    match request.as_mut().poll(cx) {
        Poll::Ready(Ok(trace)) => assert_eq!(trace.info().state, State::Panicked),
        other => panic!("{other:?}"),
    }
}

static CLONES_FAIL: AtomicBool = AtomicBool::new(false);
static FAILING: RawWakerVTable = RawWakerVTable::new(clone_failing, |_| fail(), |_| fail(), drop);

unsafe fn clone_failing(data: *const ()) -> RawWaker {
    if CLONES_FAIL.load(Ordering::Relaxed) {
        fail();
    }
    RawWaker::new(data, &FAILING)
}

#[test]
fn a_waker_may_panic() {
    // SAFETY: there is no data.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &FAILING)) };
    let mut waits = Box::pin(pending::<()>().traced());
    let clones = poll_fn(|cx| {
        drop(cx.waker().clone());
        Poll::Ready(())
    });
    let mut clones = Box::pin(clones.traced());

    // A clone, when the library saves it, or when the leaf makes it in a poll that is captured.
    CLONES_FAIL.store(true, Ordering::Relaxed);
    assert!(poll(&mut waits, &waker).is_pending());
    let mut request = Box::pin(clones.handle().backtrace());
    assert!(request.as_mut().poll(&mut Context::from_waker(&noop_waker())).is_pending());
    assert!(panics(|| assert!(poll(&mut clones, &waker).is_ready())), "there is no waker");
    CLONES_FAIL.store(false, Ordering::Relaxed);

    // A wake-up, for a request.
    assert!(poll(&mut waits, &waker).is_pending());
    let answer = waits.handle().backtrace_timeout(Duration::ZERO);
    assert_eq!(answer.unwrap_err(), Error::TimedOut);
}

// --- Threads and runtimes. ---

#[test]
fn tasks_are_aborted_while_they_are_requested() {
    let runtime = runtime(2);
    let tasks: Vec<_> = (0..200).map(|_| sleep().traced()).collect();
    let handles: Vec<_> = tasks.iter().map(Traced::handle).collect();
    let tasks: Vec<_> = tasks.into_iter().map(|task| runtime.spawn(task)).collect();

    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for handle in &handles {
                    match handle.backtrace_timeout(MINUTE) {
                        Ok(_) | Err(Error::Ended) => {}
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let answers = join_all(handles.iter().map(|handle| handle.backtrace()));
        let answers = runtime.spawn(answers);
        for task in &tasks {
            task.abort();
        }
        for answer in runtime.block_on(answers).unwrap() {
            assert!(matches!(answer, Ok(_) | Err(Error::Ended)), "{answer:?}");
        }
    });
}

#[test]
fn many_requesters_get_the_same_task() {
    let runtime = runtime(1);
    let (future, handle) = tdt::traced(sleep());
    runtime.spawn(future);

    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let several = join_all((0..8).map(|_| handle.backtrace()));
                for answer in futures::executor::block_on(several) {
                    assert_eq!(answer.unwrap().info().leaves, 1);
                }
                assert_eq!(handle.backtrace_timeout(Duration::MAX).unwrap().info().leaves, 1);
            });
        }
    });
}

#[test]
fn a_runtime_ends_while_its_tasks_are_requested() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (future, handle) = tdt::traced(sleep());
    let (asked, wait) = mpsc::channel();
    runtime.spawn(future);
    runtime.block_on(tokio::task::yield_now());

    thread::scope(|scope| {
        let mut request = Box::pin(handle.backtrace());
        let handle = &handle;
        let requester = scope.spawn(move || {
            let waker = noop_waker();
            assert!(request.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            asked.send(()).unwrap();
            (futures::executor::block_on(request), handle.backtrace_timeout(MINUTE))
        });
        wait.recv().unwrap();
        drop(runtime);
        let (first, second) = requester.join().unwrap();
        assert_eq!(first.unwrap_err(), Error::Ended);
        assert_eq!(second.unwrap_err(), Error::Ended);
    });
}

#[test]
fn tasks_of_one_thread_are_requested_by_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let local = tokio::task::LocalSet::new();

    local.block_on(&runtime, async {
        let shared = Rc::new(());
        let (future, handle) = tdt::traced(async move {
            sleep().await;
            drop(shared);
        });
        tokio::task::spawn_local(future);
        assert_eq!(handle.backtrace().await.unwrap().info().leaves, 1);
        let other = tokio::task::spawn_blocking(move || handle.backtrace_timeout(MINUTE));
        assert_eq!(other.await.unwrap().unwrap().info().leaves, 1);
    });
}

#[test]
fn tasks_run_in_the_poll_of_a_task_that_blocks() {
    let runtime = runtime(2);
    let outer = async {
        tokio::task::block_in_place(|| {
            let inner = async {
                tokio::task::yield_now().await;
                tdt::current_id()
            };
            let inner = inner.traced();
            let id = inner.id();
            assert_eq!(tokio::runtime::Handle::current().block_on(inner), Some(id));
        });
        tdt::current_id()
    };
    let outer = outer.traced();
    let id = outer.id();
    assert_eq!(runtime.block_on(runtime.spawn(outer)).unwrap(), Some(id));
}

/// Polls a traced future when the thread ends.
struct PollsLate(Option<Pin<Box<Traced<futures::future::Pending<()>>>>>);

static POLLED_LATE: AtomicUsize = AtomicUsize::new(0);

impl Drop for PollsLate {
    fn drop(&mut self) {
        let future = self.0.as_mut().unwrap();
        assert!(poll(future, &noop_waker()).is_pending());
        POLLED_LATE.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_thread_polls_while_it_ends() {
    thread_local! {
        static LATE: RefCell<Option<PollsLate>> = const { RefCell::new(None) };
    }
    thread::spawn(|| {
        let future = Box::pin(pending().traced());
        LATE.with(|late| *late.borrow_mut() = Some(PollsLate(Some(future))));
    })
    .join()
    .unwrap();
    assert_eq!(POLLED_LATE.load(Ordering::Relaxed), 1);
}

// --- Processes. ---

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// What a child does: the runtime of the parent is not in it, but a new one works.
fn use_in_child(parents: &tdt::Handle) -> bool {
    let gone = parents.backtrace_timeout(Duration::ZERO).is_err();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (future, handle) = tdt::traced(sleep());
    runtime.spawn(future);
    let trace = runtime.block_on(handle.backtrace()).unwrap();
    drop(runtime);
    let mut text = Vec::new();
    tdt::dump_to(&mut text).unwrap();
    gone && trace.info().leaves == 1 && !trace.to_string().is_empty() && !text.is_empty()
}

#[test]
fn a_host_forks_in_the_middle_of_requests() {
    let runtime = runtime(2);
    let (future, handle) = tdt::traced(sleep());
    let done = AtomicBool::new(false);
    runtime.spawn(future);

    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(handle.backtrace_timeout(MINUTE));
            }
        });
        for _ in 0..5 {
            // SAFETY: the child calls what libtdt, tokio and the allocator allow after a fork.
            let pid = unsafe { fork() };
            if pid == 0 {
                let well = catch_unwind(AssertUnwindSafe(|| use_in_child(&handle)));
                // SAFETY: it ends the process.
                unsafe { _exit(if well.unwrap_or(false) { 0 } else { 1 }) }
            }
            let mut status = -1;
            // SAFETY: it is a child of this process.
            assert_eq!(unsafe { waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0);
        }
        done.store(true, Ordering::Relaxed);
    });
}
