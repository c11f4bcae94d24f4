// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A traced future behaves as the future in it does, on whatever polls it.

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem::size_of;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tdt::{Error, State, TraceExt, Traced};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Pending `left` times; keeps its waker as long as that wakes the same task.
#[derive(Default)]
struct Leaf {
    left: usize,
    waker: Option<Waker>,
    clones: Rc<Cell<usize>>,
}

impl Leaf {
    fn new(left: usize) -> Leaf {
        Leaf { left, ..Leaf::default() }
    }
}

impl Future for Leaf {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        if self.left == 0 {
            return Poll::Ready(42);
        }
        self.left -= 1;
        if !self.waker.as_ref().map_or(false, |kept| kept.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
            self.clones.set(self.clones.get() + 1);
        }
        Poll::Pending
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn it_is_ready_when_its_future_is() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let leaf = Leaf::new(3);
    let clones = leaf.clones.clone();
    let mut future = Box::pin(leaf.traced());

    for _ in 0..3 {
        assert!(poll(future.as_mut(), &waker).is_pending());
    }
    assert_eq!(poll(future.as_mut(), &waker), Poll::Ready(42));
    assert_eq!(clones.get(), 1, "the leaf kept its waker");
    drop(future);
    assert_eq!(Arc::strong_count(&count), 2, "no waker is left");
}

#[test]
fn the_leaf_gets_the_waker_of_the_runtime() {
    let waker = Waker::from(Arc::new(Count::default()));
    let mut same = Vec::new();
    let future = futures::future::poll_fn(|cx| {
        same.push(cx.waker().will_wake(&waker));
        Poll::<()>::Pending
    });
    let mut future = Box::pin(future.traced());

    for _ in 0..3 {
        assert!(poll(future.as_mut(), &waker).is_pending());
    }
    drop(future);
    assert_eq!(same, [true; 3]);
}

#[test]
fn the_waker_may_change_from_poll_to_poll() {
    let counts: Vec<_> = (0..4).map(|_| Arc::new(Count::default())).collect();
    let mut future = Box::pin(Leaf::new(8).traced());
    let handle = future.handle();

    for count in counts.iter().chain(&counts) {
        assert!(poll(future.as_mut(), &Waker::from(count.clone())).is_pending());
        // It is the last waker that a request wakes.
        let before = count.0.load(Ordering::Relaxed);
        let asked = handle.backtrace_timeout(std::time::Duration::ZERO);
        assert_eq!(asked.unwrap_err(), Error::TimedOut);
        assert_eq!(count.0.load(Ordering::Relaxed), before + 1);
    }
    drop(future);
    assert!(counts.iter().all(|count| Arc::strong_count(count) == 1));
}

struct Dropped(Rc<Cell<usize>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn it_drops_its_future_once() {
    let dropped = Rc::new(Cell::new(0));
    let held = Dropped(dropped.clone());
    let future = async move {
        let _held = held;
        Leaf::new(1).await
    };
    let mut future = Box::pin(future.traced());
    let handle = future.handle();
    let waker = futures::task::noop_waker();

    assert!(poll(future.as_mut(), &waker).is_pending());
    assert_eq!(dropped.get(), 0);
    drop(future);
    assert_eq!(dropped.get(), 1);
    assert_eq!(handle.backtrace_blocking().unwrap_err(), Error::Ended);
}

#[test]
fn an_output_is_dropped_once() {
    let dropped = Rc::new(Cell::new(0));
    let output = Dropped(dropped.clone());
    let waker = futures::task::noop_waker();
    let mut future = Box::pin(async move { output }.traced());

    let output = poll(future.as_mut(), &waker);
    drop(future);
    assert_eq!(dropped.get(), 0);
    drop(output);
    assert_eq!(dropped.get(), 1);
}

#[test]
fn a_panic_leaves_its_poll_with_its_payload() {
    let waker = futures::task::noop_waker();
    let mut future = Box::pin(async { std::panic::panic_any(7_u32) }.traced());
    let handle = future.handle();

    let panicked = catch_unwind(AssertUnwindSafe(|| poll(future.as_mut(), &waker)));
    assert_eq!(*panicked.unwrap_err().downcast::<u32>().unwrap(), 7);
    assert_eq!(handle.backtrace_blocking().unwrap_err(), Error::Ended);
    // Polled once more, it calls nothing.
    assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut(), &waker))).is_err());
}

#[test]
fn a_future_that_has_ended_is_not_polled_again() {
    let waker = futures::task::noop_waker();
    let polls = Cell::new(0);
    let future = futures::future::poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::Ready(())
    });
    let mut future = Box::pin(future.traced());

    assert!(poll(future.as_mut(), &waker).is_ready());
    assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut(), &waker))).is_err());
    assert_eq!(polls.get(), 1);
}

#[test]
fn a_task_may_poll_others_where_they_are_made_and_dropped() {
    /// Polls a traced future to its end when it is dropped.
    struct Polls;
    impl Drop for Polls {
        fn drop(&mut self) {
            let waker = futures::task::noop_waker();
            assert_eq!(poll(Box::pin(async { 1 }.traced()).as_mut(), &waker), Poll::Ready(1));
        }
    }
    let future = async {
        let _polls = Polls;
        let inner = async { Leaf::new(0).await + tdt::current_id().unwrap() as usize }.traced();
        let id = inner.id() as usize;
        assert_eq!(inner.await, 42 + id);
        7
    };
    assert_eq!(futures::executor::block_on(future.traced()), 7);
    assert_eq!(tdt::current_id(), None);
}

/// A task of an executor whose wakers own their tasks, and whose queue is empty.
struct Owning(std::sync::Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Owning {
    fn wake(self: Arc<Self>) {}
}

/// A leaf whose waker is kept elsewhere.
struct Elsewhere(Arc<std::sync::Mutex<Option<Waker>>>);

impl Future for Elsewhere {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Whether a task ends when the executor and its leaf have dropped it.
fn ends_when_dropped(builder: tdt::Builder<'_>, requested: bool) -> bool {
    let (leaf, alive) = (Arc::new(std::sync::Mutex::new(None)), Arc::new(()));
    let (kept, watched) = (leaf.clone(), Arc::downgrade(&alive));
    let traced = builder.trace(async move {
        Elsewhere(kept).await;
        drop(alive);
    });
    let handle = traced.handle();
    let task = Arc::new(Owning(std::sync::Mutex::new(Some(Box::pin(traced)))));
    let waker = Waker::from(task.clone());
    let poll = || {
        let mut future = task.0.lock().unwrap();
        assert!(future
            .as_mut()
            .unwrap()
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending());
    };
    poll();
    if requested {
        let mut request = handle.backtrace();
        assert!(poll_request(&mut request).is_pending());
        poll();
        assert_eq!(
            poll_request(&mut request).map(|trace| trace.unwrap().leaves().count()),
            Poll::Ready(1)
        );
    }
    drop((waker, task));
    *leaf.lock().unwrap() = None;
    watched.upgrade().is_none()
}

fn poll_request(request: &mut tdt::Backtrace) -> Poll<Result<tdt::Trace, Error>> {
    let waker = futures::task::noop_waker();
    Pin::new(request).poll(&mut Context::from_waker(&waker))
}

#[test]
fn on_an_executor_whose_wakers_own_tasks_there_is_a_way_to_end_them() {
    assert!(!ends_when_dropped(tdt::Builder::new(), false), "then nobody needs without_waker()");
    assert!(ends_when_dropped(tdt::Builder::new().without_waker(), false));
    assert!(ends_when_dropped(tdt::Builder::new().without_waker(), true));
}

#[test]
fn it_is_not_boxed() {
    struct Large(#[allow(dead_code)] [u8; 10_000], PhantomPinned);
    impl Future for Large {
        type Output = usize;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
            Poll::Ready(&*self as *const Large as usize)
        }
    }
    let mut future = Box::pin(Large([0; 10_000], PhantomPinned).traced());
    let start = &*future as *const _ as usize;
    let waker = futures::task::noop_waker();

    assert!(size_of::<Traced<Large>>() <= size_of::<Large>() + 64);
    match poll(future.as_mut(), &waker) {
        Poll::Ready(at) => assert!((start..start + 64).contains(&at), "it lies in the wrapper"),
        Poll::Pending => unreachable!(),
    }
}

#[test]
fn it_can_be_sent_if_its_future_can() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    let (future, handle) = tdt::traced(async {});

    is_send(&future);
    is_sync(&handle);
    is_send(&handle);
    is_send(&handle.backtrace());
}

#[test]
fn its_record_names_it_and_its_place() {
    let line = line!() + 1;
    let named = tdt::Builder::new().name("a \u{e9}").trace(async {});
    let default = Leaf::new(1).traced();
    let find = |id| tdt::tasks().into_iter().find(|task| task.info.id == id).unwrap().info;

    let info = find(named.id());
    assert_eq!(info.name.as_deref(), Some("a \u{e9}"));
    assert_eq!(info.file.as_deref(), Some(file!()));
    assert_eq!((info.line, info.column), (Some(line), Some(54)));
    assert_eq!((info.state, info.polls), (State::Pending, 0));
    let info = find(default.id());
    assert_eq!(info.name.as_deref(), Some("behaviour::Leaf"));
    assert_eq!(info.line, Some(line + 1));
}

#[test]
fn a_future_that_cannot_be_sent_runs_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let shared = Rc::new(Cell::new(0));
    let local = tokio::task::LocalSet::new();

    local.block_on(&runtime, async {
        let tasks: Vec<_> = (0..10)
            .map(|i| {
                let shared = shared.clone();
                tokio::task::spawn_local(
                    async move {
                        tokio::task::yield_now().await;
                        shared.set(shared.get() + i);
                    }
                    .traced(),
                )
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(shared.get(), 45);
}

#[tokio::test]
async fn tokio_sees_panics_and_aborts() {
    let panicking = tokio::spawn(async { panic!("for a test") }.traced());
    assert!(panicking.await.unwrap_err().is_panic());

    let future = futures::future::pending::<()>().traced();
    let handle = future.handle();
    let aborted = tokio::spawn(future);
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    assert_eq!(handle.backtrace().await.unwrap_err(), Error::Ended);
}

#[test]
fn the_library_refuses_to_abort_it() {
    let mut future = Box::pin(Leaf { left: 1, ..Leaf::default() }.traced());
    let mut cx = Context::from_waker(futures::task::noop_waker_ref());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    // SAFETY: the id is that of a task, and the reference is given back.
    unsafe {
        let handle = tdt_sys::tdt_task_find(future.id());
        assert!(tdt_sys::tdt_task_abort(handle) < 0);
        tdt_sys::tdt_handle_unref(handle);
    }
    assert!(future.as_mut().poll(&mut cx).is_ready());
}
