// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tracing costs with the crate `tdt`, beside bare tokio and beside others that show trees:
//! `tasktrace`, `async-backtrace`, and tokio's own dumps (its feature `taskdump`).
//!
//! `compare` does everything once; `compare bench` prints figures.  All ways to do one thing take
//! turns, so that what else the machine does concerns each of them.  See run.sh.

#![allow(unexpected_cfgs, unused_mut)] // run.sh leaves out what cannot be had

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use futures::task::noop_waker_ref;
use tdt::TraceExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

// --- Rounds. ---

fn wants_figures() -> bool {
    std::env::args().any(|arg| arg == "bench")
}

/// How often something is done: `n` times for figures, or else once.
fn times(n: usize) -> usize {
    if wants_figures() {
        n
    } else {
        1
    }
}

/// A way to do something: what it is called, and a round of it, which returns nanoseconds.
struct Way(&'static str, Box<dyn FnMut() -> f64>);

fn way(name: &'static str, round: impl FnMut() -> f64 + 'static) -> Way {
    Way(name, Box::new(round))
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Print the medians, the least, and the medians of what a way takes more than the first way does,
/// and how many times as long, in the same round.
fn compare(what: &str, rounds: usize, mut ways: Vec<Way>) {
    let rounds: Vec<Vec<f64>> =
        (0..times(rounds)).map(|_| ways.iter_mut().map(|way| (way.1)()).collect()).collect();
    println!("{what}");
    for (i, way) in ways.iter().enumerate() {
        let of = || rounds.iter().map(|round| round[i]);
        println!(
            "  {:<24} {:>12.1} ns, the least {:>12.1}, {:>+12.1}, {:.2} times",
            way.0,
            median(of()),
            of().fold(f64::INFINITY, f64::min),
            median(rounds.iter().map(|round| round[i] - round[0])),
            median(rounds.iter().map(|round| round[i] / round[0])),
        );
    }
}

/// Nanoseconds for each of `n` runs of `run`.
fn time(n: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..n {
        run();
    }
    start.elapsed().as_nanos() as f64 / n as f64
}

// --- A poll that nobody asks about. ---

/// Never ready; keeps its waker as long as that wakes the same task.
#[derive(Default)]
struct Leaf(Option<Waker>);

impl Future for Leaf {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.0.as_ref().map_or(false, |kept| kept.will_wake(cx.waker())) {
            self.0 = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn polled(name: &'static str, mut future: Boxed) -> Way {
    let waker = futures::task::noop_waker();
    way(name, move || {
        let mut cx = Context::from_waker(&waker);
        time(times(20_000), || assert!(future.as_mut().poll(&mut cx).is_pending()))
    })
}

fn polls() {
    let mut ways = vec![
        polled("bare", Box::pin(Leaf::default())),
        polled("tdt", Box::pin(Leaf::default().traced())),
    ];
    #[cfg(feature = "tasktrace")]
    let (future, _handle) = tasktrace::traced(Leaf::default());
    #[cfg(feature = "tasktrace")]
    ways.push(polled("tasktrace", Box::pin(future)));
    #[cfg(feature = "async-backtrace")]
    ways.push(polled(
        "async-backtrace",
        Box::pin(async_backtrace::location!().frame(Leaf::default())),
    ));
    compare("a poll", 101, ways);
}

// --- Tasks of tokio. ---

fn one_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Rounds of `n` times `$what` in a runtime.
macro_rules! awaited {
    ($name:expr, $runtime:expr, $n:expr, $what:expr) => {{
        let (runtime, n) = ($runtime, times($n));
        way($name, move || {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..n {
                    $what;
                }
                start.elapsed().as_nanos() as f64 / n as f64
            })
        })
    }};
}

/// A task is spawned, runs, and is awaited.
fn lives() {
    const N: usize = 3_000;
    let mut ways = vec![
        awaited!("bare", one_thread(), N, tokio::spawn(async {}).await.unwrap()),
        awaited!("tdt", one_thread(), N, tdt::spawn(async {}).await.unwrap()),
    ];
    #[cfg(feature = "tasktrace")]
    ways.push(awaited!(
        "tasktrace",
        one_thread(),
        N,
        tokio::spawn(tasktrace::traced(async {}).0).await.unwrap()
    ));
    #[cfg(feature = "async-backtrace")]
    ways.push(awaited!(
        "async-backtrace",
        one_thread(),
        N,
        tokio::spawn(async_backtrace::location!().frame(async {})).await.unwrap()
    ));
    compare("spawn, run and join", 101, ways);
}

/// The same, and polls, of tasks that nobody traces, by hooks.  These stay registered: what is
/// traced later gets its id later.
#[cfg(feature = "hooks")]
fn hooks() {
    fn with_hooks() -> Runtime {
        tdt::register_hooks(&mut Builder::new_current_thread()).unwrap().build().unwrap()
    }
    /// A task that is woken in each of its polls.
    async fn wakes_itself(polls: usize) {
        let mut left = polls;
        futures::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            left -= 1;
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
    const N: usize = 20_000;
    let polled = |name, runtime: Runtime| {
        let Way(name, mut round) =
            awaited!(name, runtime, 1, tokio::spawn(wakes_itself(times(N))).await.unwrap());
        way(name, move || round() / times(N) as f64)
    };
    let ways = vec![polled("bare", one_thread()), polled("tdt by hooks", with_hooks())];
    compare("a poll by tokio", 101, ways);
    let lived = |name, runtime: Runtime| {
        awaited!(name, runtime, 3_000, tokio::spawn(async {}).await.unwrap())
    };
    let ways = vec![lived("bare", one_thread()), lived("tdt by hooks", with_hooks())];
    compare("spawn, run and join, by hooks", 101, ways);
}

/// Locks that nobody else wants.
fn locks() {
    const N: usize = 20_000;
    macro_rules! of {
        ($what:expr, $bare:expr, $noted:expr, $how:ident) => {{
            let (bare, noted) = ($bare, $noted);
            let ways = vec![
                awaited!("bare", one_thread(), N, drop(bare.$how().await)),
                awaited!("tdt", one_thread(), N, drop(noted.$how().await)),
            ];
            compare($what, 101, ways);
        }};
    }
    of!("lock and unlock a mutex", tokio::sync::Mutex::new(0), tdt::sync::Mutex::new(0), lock);
    of!(
        "lock and unlock for reading",
        tokio::sync::RwLock::new(0),
        tdt::sync::RwLock::new(0),
        read
    );
    of!(
        "get a permit and give it back",
        tokio::sync::Semaphore::new(3),
        tdt::sync::Semaphore::new(3),
        acquire
    );
    let bare: &_ = Box::leak(Box::new(tokio::sync::RwLock::new(0)));
    let noted: &_ = Box::leak(Box::new(tdt::sync::RwLock::new(0)));
    let _bare_held: Vec<_> = (0..10_000).map(|_| bare.try_read().unwrap()).collect();
    let _held: Vec<_> = (0..10_000).map(|_| noted.try_read().unwrap()).collect();
    of!("lock and unlock for reading beside 10,000 readers", bare, noted, read);
}

// --- Trees. ---

/// How many tasks have got to where they wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

async fn wait_for_ever() {
    WAITING.fetch_add(1, SeqCst);
    Notify::new().notified().await;
}

/// So many async functions that await each other.
fn deep(levels: usize) -> Boxed {
    Box::pin(async move {
        if levels == 0 {
            wait_for_ever().await;
        } else {
            deep(levels - 1).await;
        }
    })
}

/// The same for a library that shows the functions which are annotated.
#[cfg(feature = "async-backtrace")]
fn annotated(levels: usize) -> Boxed {
    Box::pin(async_backtrace::location!().frame(async move {
        if levels == 0 {
            wait_for_ever().await;
        } else {
            annotated(levels - 1).await;
        }
    }))
}

/// Polls all, as a join does.
struct All(Vec<Boxed>);

impl Future for All {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.iter_mut().for_each(|future| assert!(future.as_mut().poll(cx).is_pending()));
        Poll::Pending
    }
}

fn wide(leaves: usize) -> Boxed {
    Box::pin(All((0..leaves).map(|_| deep(4)).collect()))
}

fn poll_once<T>(future: &mut Pin<Box<impl Future<Output = T> + ?Sized>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(noop_waker_ref()))
}

/// A task that the ways of one library share, and that waits.
fn begun(mut task: Boxed) -> Rc<RefCell<Boxed>> {
    assert!(poll_once(&mut task).is_pending());
    Rc::new(RefCell::new(task))
}

/// Have the task polled with the request, and return the answer.
fn answer<T>(request: impl Future<Output = T>, task: &RefCell<Boxed>) -> T {
    let mut request = Box::pin(request);
    assert!(poll_once(&mut request).is_pending());
    assert!(poll_once(&mut task.borrow_mut()).is_pending());
    match poll_once(&mut request) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the poll answered no request"),
    }
}

/// What a request brings, and that as text.
#[derive(Default)]
struct Answers {
    raw: Vec<Way>,
    text: Vec<Way>,
}

impl Answers {
    fn add<T: ToString>(&mut self, name: &'static str, request: impl Fn() -> T + Clone + 'static) {
        let again = request.clone();
        println!("  {name}: {} lines", request().to_string().lines().count());
        self.raw.push(way(name, move || time(times(20), || drop(request()))));
        self.text.push(way(name, move || time(times(20), || drop(again().to_string()))));
    }

    /// `future` makes a task; `annotated`, if there is one, makes it for the library that needs it.
    fn of(what: &str, future: fn() -> Boxed, _annotated: Option<fn() -> Boxed>) {
        let mut answers = Answers::default();
        println!("trees of {what}");
        let (traced, handle) = tdt::traced(future());
        let task = begun(Box::pin(traced));
        answers.add("tdt", move || answer(handle.backtrace(), &task).unwrap());
        #[cfg(feature = "tasktrace")]
        {
            let (traced, handle) = tasktrace::traced(future());
            let (task, handle) = (begun(Box::pin(traced)), Rc::new(handle));
            answers.add("tasktrace", move || answer(handle.backtrace(), &task).unwrap());
        }
        #[cfg(feature = "taskdump")]
        {
            use tokio::runtime::dump::Trace;

            let task = begun(Box::pin(Trace::root(future())));
            answers.add("tokio's dump", move || {
                Trace::capture(|| assert!(poll_once(&mut task.borrow_mut()).is_pending())).1
            });
        }
        #[cfg(feature = "async-backtrace")]
        if let Some(annotated) = _annotated {
            let task = begun(annotated());
            // It has texts only, of all tasks that there are.
            answers.add("async-backtrace", move || {
                let _task = &task;
                async_backtrace::taskdump_tree(false)
            });
        }
        compare(&format!("a request, {what}"), 51, answers.raw);
        compare(&format!("the same as text, {what}"), 51, answers.text);
    }
}

fn requests() {
    #[cfg(feature = "async-backtrace")]
    let annotated: Option<fn() -> Boxed> = Some(|| annotated(24));
    #[cfg(not(feature = "async-backtrace"))]
    let annotated = None;
    Answers::of("a leaf 24 functions deep", || deep(24), annotated);
    Answers::of("64 leaves 4 functions deep", || wide(64), None);
}

/// A runtime with tasks that wait.
fn runtime_of(n: usize, mut spawn: impl FnMut()) -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let before = WAITING.load(SeqCst);
    {
        let _entered = runtime.enter();
        (0..n).for_each(|_| spawn());
    }
    while WAITING.load(SeqCst) < before + n {
        std::thread::yield_now();
    }
    runtime
}

const LEVELS: usize = 10;

fn dumps_of_tdt(n: usize) -> Way {
    let runtime = runtime_of(n, || drop(tdt::spawn(deep(LEVELS))));
    way("tdt", move || {
        let _runtime = &runtime;
        let mut text = Vec::new();
        let took = time(1, || tdt::dump_to(&mut text).unwrap());
        assert!(String::from_utf8_lossy(&text).contains("wait_for_ever"));
        took
    })
}

fn dumps() {
    compare("a dump of 10,000 tasks as text", 21, vec![dumps_of_tdt(times(10_000))]);
    let n = times(1_000);
    let mut ways = vec![dumps_of_tdt(n)];
    #[cfg(feature = "tasktrace")]
    {
        let mut handles = Vec::new();
        let runtime = runtime_of(n, || {
            let (future, handle) = tasktrace::traced(deep(LEVELS));
            tokio::spawn(future);
            handles.push(handle);
        });
        ways.push(way("tasktrace, all handles", move || {
            time(1, || {
                let traces = handles.iter().map(|handle| handle.backtrace());
                let traces = runtime.block_on(futures::future::join_all(traces));
                traces.into_iter().for_each(|trace| drop(trace.unwrap().to_string()));
            })
        }));
    }
    #[cfg(feature = "taskdump")]
    {
        // It stays, because its end may wait for ever after a dump.
        let runtime = Box::leak(Box::new(runtime_of(n, || drop(tokio::spawn(deep(LEVELS))))));
        ways.push(way("tokio's dump", move || {
            time(1, || {
                let dump = runtime.block_on(runtime.handle().dump());
                assert_eq!(dump.tasks().iter().count(), n);
                dump.tasks().iter().for_each(|task| drop(task.trace().to_string()));
            })
        }));
    }
    #[cfg(feature = "async-backtrace")]
    {
        let runtime = runtime_of(n, || drop(tokio::spawn(annotated(LEVELS))));
        ways.push(way("async-backtrace", move || {
            let _runtime = &runtime;
            time(1, || drop(async_backtrace::taskdump_tree(true)))
        }));
    }
    compare("a dump of 1,000 tasks as text", 11, ways);
}

fn main() {
    for (there, what) in [
        (cfg!(feature = "tasktrace"), "tasktrace"),
        (cfg!(feature = "async-backtrace"), "async-backtrace"),
        (cfg!(feature = "taskdump"), "tokio's dump"),
        (cfg!(feature = "hooks"), "tdt by hooks"),
    ] {
        if !there {
            println!("NOT COMPARED: {what}, which this program was built without");
        }
    }
    polls();
    locks();
    requests();
    lives();
    #[cfg(feature = "hooks")]
    hooks();
    dumps();
}
