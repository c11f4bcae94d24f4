// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tracing costs: a poll, a task's life on tokio, a capture, and a dump.  Bare and traced
//! rounds take turns, and the figures are medians over the rounds.

use std::future::Future;
use std::io::sink;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures::task::noop_waker_ref;
use tdt::{Builder, TraceExt};

/// `cargo bench` says that it wants figures; `cargo test` only looks whether the program works.
fn wants_figures() -> bool {
    std::env::args().any(|arg| arg == "--bench")
}

fn rounds() -> usize {
    if wants_figures() {
        101
    } else {
        1
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

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Print what the two cost, and the median of the difference within a round.
fn compare(what: &str, mut bare: impl FnMut() -> f64, mut traced: impl FnMut() -> f64) {
    let rounds: Vec<_> = (0..rounds()).map(|_| (bare(), traced())).collect();
    let bare = median(rounds.iter().map(|round| round.0).collect());
    let more = median(rounds.iter().map(|round| round.1 - round.0).collect());
    println!("{what}: {bare:.1} ns bare, {more:+.1} ns traced ({:.2} times)", (bare + more) / bare);
}

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

fn polls() {
    const N: usize = 20_000;
    let waker = futures::task::noop_waker();
    let mut cx = Context::from_waker(&waker);
    let mut other = Context::from_waker(&waker);
    // The compiler does not see which futures these are.
    let mut bare: Pin<Box<dyn Future<Output = ()>>> = Box::pin(Leaf::default());
    let mut traced: Pin<Box<dyn Future<Output = ()>>> = Box::pin(Leaf::default().traced());

    compare(
        "a poll",
        || time(N, || assert!(bare.as_mut().poll(&mut cx).is_pending())),
        || time(N, || assert!(traced.as_mut().poll(&mut other).is_pending())),
    );
}

fn lives(what: &str, yields: usize) {
    const N: usize = 3000;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let work = move || async move {
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    };
    compare(
        what,
        || {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..N {
                    tokio::spawn(work()).await.unwrap();
                }
                start.elapsed().as_nanos() as f64 / N as f64
            })
        },
        || {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..N {
                    tdt::spawn(work()).await.unwrap();
                }
                start.elapsed().as_nanos() as f64 / N as f64
            })
        },
    );
}

// --- Async functions that call each other. ---

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Types stand for functions, so that each level is a function of its own.
trait Level: 'static {
    fn future() -> Boxed;
}

struct Below<L>(PhantomData<L>);

impl<L: Level> Level for Below<L> {
    fn future() -> Boxed {
        Box::pin(async { L::future().await }) // a box keeps the levels from being inlined
    }
}

type Two<L> = Below<Below<L>>;
type Eight<L> = Two<Two<Two<Two<L>>>>;

/// Clones its waker in each poll, so that a poll that is captured does nothing else.
struct Clones;

impl Future for Clones {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        drop(cx.waker().clone());
        Poll::Pending
    }
}

impl Level for Clones {
    fn future() -> Boxed {
        Box::pin(Clones)
    }
}

/// Polls all, as a join does.
struct All(Vec<Boxed>);

impl Future for All {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        for future in &mut self.0 {
            assert!(future.as_mut().poll(cx).is_pending());
        }
        Poll::Pending
    }
}

// --- What a request costs. ---

fn time_poll(future: Pin<&mut impl Future<Output = ()>>, cx: &mut Context<'_>) -> f64 {
    let start = Instant::now();
    let polled = future.poll(cx);
    let took = start.elapsed();
    assert!(polled.is_pending());
    took.as_nanos() as f64
}

/// Print what a request adds to the poll that answers it.  Each of these polls comes alone, with
/// the work of the requester before it.
fn capture(what: &str, future: Boxed, leaves: usize, depth: usize) {
    let mut future = Box::pin(future.traced());
    let handle = future.handle();
    let cx = &mut Context::from_waker(noop_waker_ref());
    let mut added = Vec::new();

    for _ in 0..rounds() * 20 {
        let bare = time_poll(future.as_mut(), cx);
        let mut request = handle.backtrace();
        assert!(Pin::new(&mut request).poll(cx).is_pending());
        added.push(time_poll(future.as_mut(), cx) - bare);
        match Pin::new(&mut request).poll(cx) {
            Poll::Ready(Ok(trace)) => {
                assert_eq!(trace.info().leaves as usize, leaves);
                assert!(trace.leaves().all(|leaf| leaf.depth() >= depth));
            }
            other => panic!("{other:?}"),
        }
    }
    println!("{what}: {:+.0} ns in the poll that is captured", median(added));
}

fn captures() {
    capture("a leaf 24 functions deep", Eight::<Eight<Eight<Clones>>>::future(), 1, 24);
    let leaves = (0..64).map(|_| Below::<Two<Clones>>::future()).collect();
    capture("64 leaves in a join", Box::pin(All(leaves)), 64, 4);
}

/// What tasks wait for in `dumps`.
struct Sleeps;
struct IsNotified;
struct Receives;
struct Acquires;

impl Level for Sleeps {
    fn future() -> Boxed {
        Box::pin(async { tokio::time::sleep(Duration::from_secs(3600)).await })
    }
}

impl Level for IsNotified {
    fn future() -> Boxed {
        Box::pin(async { tokio::sync::Notify::new().notified().await })
    }
}

impl Level for Receives {
    fn future() -> Boxed {
        Box::pin(async {
            let (_to, mut from) = tokio::sync::mpsc::channel::<()>(1);
            from.recv().await;
        })
    }
}

impl Level for Acquires {
    fn future() -> Boxed {
        Box::pin(async {
            let none = tokio::sync::Semaphore::new(0);
            drop(none.acquire().await);
        })
    }
}

/// Print what a dump of idle tasks takes, 10 functions deep.
fn dumps() {
    const KINDS: [fn() -> Boxed; 4] = [
        Eight::<Below<Sleeps>>::future,
        Eight::<Below<IsNotified>>::future,
        Eight::<Below<Receives>>::future,
        Eight::<Below<Acquires>>::future,
    ];
    let n = if wants_figures() { 10_000 } else { 100 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    for i in 0..n {
        Builder::new().name(&format!("task {i}")).spawn(KINDS[i % KINDS.len()]());
    }
    let mut text = Vec::new();
    let first = time(1, || tdt::dump_to(&mut text).unwrap()) / 1e6;
    let all = String::from_utf8_lossy(&text).starts_with("10,000 tasks: 10,000 answered");
    assert!(all || !wants_figures(), "some task was too slow to answer");
    let ms = (0..rounds() / 5 + 1).map(|_| time(1, || tdt::dump_to(sink()).unwrap()) / 1e6);
    println!("{n} tasks as text: {:.1} ms; the first time {first:.1} ms", median(ms.collect()));
}

/// Locks that nobody else wants.
fn locks() {
    const N: usize = 20_000;
    const HOLDERS: usize = 10_000;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    macro_rules! rounds_of {
        ($lock:expr, $how:ident) => {{
            let (runtime, lock) = (&runtime, $lock);
            move || {
                runtime.block_on(async {
                    let start = Instant::now();
                    for _ in 0..N {
                        drop(lock.$how().await);
                    }
                    start.elapsed().as_nanos() as f64 / N as f64
                })
            }
        }};
    }
    compare(
        "lock and unlock a mutex",
        rounds_of!(tokio::sync::Mutex::new(0), lock),
        rounds_of!(tdt::sync::Mutex::new(0), lock),
    );
    compare(
        "lock and unlock for reading",
        rounds_of!(tokio::sync::RwLock::new(0), read),
        rounds_of!(tdt::sync::RwLock::new(0), read),
    );
    compare(
        "get a permit and give it back",
        rounds_of!(tokio::sync::Semaphore::new(3), acquire),
        rounds_of!(tdt::sync::Semaphore::new(3), acquire),
    );
    let (bare, noted) = (tokio::sync::RwLock::new(0), tdt::sync::RwLock::new(0));
    let _bare_held: Vec<_> = (0..HOLDERS).map(|_| bare.try_read().unwrap()).collect();
    let _held: Vec<_> = (0..HOLDERS).map(|_| noted.try_read().unwrap()).collect();
    compare(
        "lock and unlock for reading beside 10,000 readers",
        rounds_of!(&bare, read),
        rounds_of!(&noted, read),
    );
}

/// Polls of a task that nobody traces, on a runtime with hooks.  The hooks stay registered: what is
/// measured later is spawned with them.
#[cfg(all(feature = "tokio-hooks", tokio_unstable))]
fn hooked_polls() {
    use tokio::runtime::{Builder, Runtime};

    const N: u32 = 20_000;

    async fn wake_often() {
        let mut left = N;
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

    fn polls_on(runtime: &Runtime) -> f64 {
        runtime.block_on(async {
            let start = Instant::now();
            tokio::spawn(wake_often()).await.unwrap();
            start.elapsed().as_nanos() as f64 / f64::from(N)
        })
    }

    let bare = Builder::new_current_thread().build().unwrap();
    let mut builder = Builder::new_current_thread();
    let hooked = tdt::register_hooks(&mut builder).unwrap().build().unwrap();
    compare("a poll on tokio with hooks", || polls_on(&bare), || polls_on(&hooked));

    fn lives_on(runtime: &Runtime) -> f64 {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..3000 {
                tokio::spawn(async {}).await.unwrap();
            }
            start.elapsed().as_nanos() as f64 / 3000.0
        })
    }
    compare("spawn, run and join with hooks", || lives_on(&bare), || lives_on(&hooked));
}

#[cfg(not(all(feature = "tokio-hooks", tokio_unstable)))]
fn hooked_polls() {}

fn main() {
    polls();
    locks();
    lives("spawn, run and join", 0);
    lives("spawn, wait once, run and join", 1);
    captures();
    dumps();
    hooked_polls();
}
