// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mutex is tokio's, and dumps know who holds it.

use std::cell::Cell;
use std::future::Future;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use tdt::sync::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMutexGuard, OwnedSemaphorePermit, RwLock,
    RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
};
use tdt::{Backtrace, Builder, Handle, TraceExt, WaitKind};

mod random;
mod waiting;

use random::Random;

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .unwrap()
}

fn dump() -> String {
    let mut text = Vec::new();
    tdt::dump_to(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The owners of the mutexes that a task waits for.
fn owners(handle: &Handle) -> Vec<Option<u64>> {
    let info = waiting::backtrace(handle).info();
    assert!(info.waits.iter().all(|wait| wait.kind == WaitKind::Mutex));
    info.waits.iter().map(|wait| wait.owner).collect()
}

async fn lock_both(first: Arc<Mutex<()>>, second: Arc<Mutex<()>>, both: Arc<tokio::sync::Barrier>) {
    let _first = first.lock().await;
    both.wait().await;
    let _second = second.lock().await;
}

#[test]
fn a_deadlock_of_two_tasks_is_named() {
    let runtime = runtime(2);
    let (a, b) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let left = Builder::new().name("left").trace(lock_both(a.clone(), b.clone(), both.clone()));
    let right = Builder::new().name("right").trace(lock_both(b, a, both));
    let (left_handle, right_handle) = (left.handle(), right.handle());
    runtime.spawn(left);
    runtime.spawn(right);

    let ring = [
        format!("deadlock: task {} \"left\" waits for a mutex", left_handle.id()),
        format!("deadlock: task {} \"right\" waits for a mutex", right_handle.id()),
    ];
    // The tasks have to get there first.
    let text = until(|text| ring.iter().any(|ring| text.contains(ring)));
    assert!(text.contains(&format!("held by task {}", left_handle.id())), "{text}");
    assert!(text.contains(&format!("held by task {}", right_handle.id())), "{text}");
}

#[test]
fn a_mutex_that_was_handed_over_and_not_taken_says_to_whom() {
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(()));
    let (forgotten, locked) = (mutex.clone(), runtime.block_on(mutex.lock()));
    let future = Builder::new().name("forgetful").trace(async move {
        let first = forgotten.lock();
        tokio::pin!(first);
        let waker = futures::task::noop_waker();
        assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(forgotten.lock().await);
    });
    let handle = future.handle();
    runtime.spawn(future);
    // Its first poll may be this one: the line gets it twice.
    waiting::backtrace(&handle);
    assert_eq!(owners(&handle), [None], "no task holds it");

    drop(locked);
    assert_eq!(owners(&handle), [Some(handle.id())], "it was handed to the first future");
    assert!(waiting::backtrace(&handle).info().waits[0].handed.is_some());
    let ring = format!("deadlock: task {} \"forgetful\" waits for a mutex", handle.id());
    let text = until_dump_has(&ring);
    assert!(text.contains(" ago to another future of its own, which has not taken it"), "{text}");
}

/// A task that polls this future once, and then awaits something else; when it is called, the
/// future was polled.
fn forget<F>(runtime: &tokio::runtime::Runtime, future: F) -> Handle
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let (polled, was_polled) = std::sync::mpsc::channel();
    let forgetful = Builder::new().name("forgetful").trace(async move {
        tokio::pin!(future);
        assert!(futures::poll!(future.as_mut()).is_pending());
        polled.send(()).unwrap();
        futures::future::pending::<()>().await;
    });
    let handle = forgetful.handle();
    runtime.spawn(forgetful);
    was_polled.recv().unwrap();
    handle
}

/// The first dump that is as wanted.
fn until(is_wanted: impl Fn(&str) -> bool) -> String {
    loop {
        let text = dump();
        if is_wanted(&text) {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn until_dump_has(part: &str) -> String {
    until(|text| text.contains(part))
}

/// The other tests have deadlocks.
fn expect_no_deadlock_of(task: &Handle) {
    let text = dump();
    assert!(!text.contains(&format!("deadlock: task {} ", task.id())), "{text}");
}

fn expect_futurelock(forgetful: &Handle, waiter: &Handle, lock: &str) {
    let line = format!("futurelock: task {} \"forgetful\" was handed {lock} (0x", forgetful.id());
    let text = until_dump_has(&line);
    let told = format!(" ago to task {} \"forgetful\", which has not taken it", forgetful.id());
    assert!(text.contains(&told), "{text}");
    expect_no_deadlock_of(waiter);
    assert_eq!(owners(waiter), [Some(forgetful.id())]);
}

/// A task that awaits this future.
fn wait<F>(runtime: &tokio::runtime::Runtime, future: F) -> (Handle, tokio::task::JoinHandle<()>)
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let future = async move { drop(future.await) }.traced();
    (future.handle(), runtime.spawn(future))
}

fn futurelocks(runtime: tokio::runtime::Runtime) {
    let mutex = Arc::new(Mutex::named("accounts", 0));
    let locked = mutex.clone().try_lock_owned().unwrap();
    let (first, second) = (mutex.clone(), mutex.clone());
    let forgetful = forget(&runtime, async move { drop(first.lock().await) });
    let (waiter, task) = wait(&runtime, async move { *second.lock().await += 1 });
    assert_eq!(owners(&waiter), [None]);
    drop(locked);
    expect_futurelock(&forgetful, &waiter, "a mutex \"accounts\"");
    task.abort();
    assert!(runtime.block_on(task).is_err());

    let lock = Arc::new(RwLock::new(Some(0_u8)));
    let locked = lock.clone().try_write_owned().unwrap();
    let (first, second) = (lock.clone(), lock);
    let forgetful = forget(&runtime, async move { drop(first.write().await) });
    let (waiter, task) = wait(&runtime, async move { drop(second.read().await) });
    assert_eq!(owners(&waiter), [None]);
    drop(locked);
    expect_futurelock(&forgetful, &waiter, "a mutex \"RwLock<Option<u8>>\"");
    task.abort();
    assert!(runtime.block_on(task).is_err());

    let few = Arc::new(Semaphore::named("few", 3));
    let permits = few.clone().try_acquire_many_owned(3).unwrap();
    let (first, second) = (few.clone(), few);
    let forgetful = forget(&runtime, async move { drop(first.acquire_many(2).await) });
    let (waiter, _task) = wait(&runtime, async move { drop(second.acquire_many(2).await) });
    assert_eq!(owners(&waiter), [None]);
    drop(permits);
    expect_futurelock(&forgetful, &waiter, "a mutex \"few\"");
}

#[test]
fn a_futurelock_is_named() {
    futurelocks(runtime(2));
}

#[test]
fn a_futurelock_is_named_on_one_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mutex = Arc::new(Mutex::named("accounts", 0));
    let locked = mutex.clone().try_lock_owned().unwrap();
    let (first, second) = (mutex.clone(), mutex);
    let forgetful = Builder::new().name("forgetful").trace(async move {
        let first = first.lock();
        tokio::pin!(first);
        assert!(futures::poll!(first.as_mut()).is_pending());
        futures::future::pending::<()>().await;
    });
    let handle = forgetful.handle();
    runtime.spawn(forgetful);
    let waiter = async move { drop(second.lock().await) }.traced();
    let waiter_handle = waiter.handle();
    runtime.spawn(waiter);
    let thread = std::thread::spawn(move || runtime.block_on(stopped));
    assert_eq!(owners(&waiter_handle), [None]);
    drop(locked);
    expect_futurelock(&handle, &waiter_handle, "a mutex \"accounts\"");
    stop.send(()).unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_future_that_is_dropped_passes_the_mutex_on() {
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(()));
    let locked = runtime.block_on(mutex.lock());
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(mutex.lock())).collect();
    let waker = futures::task::noop_waker();
    for future in &mut waiting {
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let last = {
        let mutex = mutex.clone();
        async move { drop(mutex.lock().await) }.traced()
    };
    let handle = last.handle();
    let last = runtime.spawn(last);
    assert_eq!(owners(&handle), [None]);

    drop(waiting.remove(1)); // before it gets it
    drop(locked);
    assert_eq!(owners(&handle), [None]);
    drop(waiting.remove(0)); // after it got it
    assert!(mutex.try_lock().is_err());
    assert_eq!(owners(&handle), [None]);
    drop(waiting);
    runtime.block_on(last).unwrap();
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn one_task_at_a_time_has_it() {
    const TASKS: u64 = 8;
    const TIMES: u64 = 300;
    let runtime = runtime(2);
    let mutex = Arc::new(Mutex::new(0_u64));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let mutex = mutex.clone();
            let future = async move {
                for i in 0..TIMES {
                    // Some futures are dropped in the line, or when it was their turn.
                    if i % 3 == 0 {
                        let mut dropped = Box::pin(mutex.lock());
                        let _ = futures::poll!(dropped.as_mut());
                    }
                    let mut sum = mutex.lock().await;
                    let before = *sum;
                    if i % 5 == 0 {
                        tokio::task::yield_now().await;
                    }
                    *sum = before + 1;
                }
            };
            let future = future.traced();
            (future.handle(), runtime.spawn(future))
        })
        .collect();

    let ids: Vec<u64> = tasks.iter().map(|(handle, _)| handle.id()).collect();
    while !tasks.iter().all(|(_, task)| task.is_finished()) {
        for (handle, _) in &tasks {
            if let Ok(trace) = handle.backtrace_blocking() {
                let waits = trace.info().waits;
                assert!(waits.iter().all(|wait| wait.owner != Some(handle.id())));
                assert!(waits.iter().filter_map(|wait| wait.owner).all(|id| ids.contains(&id)));
            }
        }
    }
    assert_eq!(*runtime.block_on(mutex.lock()), TASKS * TIMES);
}

#[test]
fn it_can_be_used_as_that_of_tokio() {
    fn is_send<T: Send>(_: &T) {}
    fn is_sync<T: Sync>(_: &T) {}
    let mut mutex = Mutex::new(String::from("a"));

    is_send(&mutex);
    is_sync(&mutex);
    is_send(&mutex.lock());
    mutex.get_mut().push('b');
    {
        let mut guard = mutex.try_lock().unwrap();
        is_send(&guard);
        is_sync(&guard);
        guard.push('c');
        assert!(mutex.try_lock().is_err());
        assert_eq!(format!("{guard:?}"), "\"abc\"");
    }
    assert_eq!(mutex.into_inner(), "abc");
    assert_eq!(*Mutex::<u8>::default().try_lock().unwrap(), 0);
}

#[test]
fn a_reader_that_reads_again_behind_a_writer_is_a_deadlock() {
    let runtime = runtime(1);
    let lock = Arc::new(RwLock::new(()));
    let again = lock.clone();
    let asked = Arc::new(tokio::sync::Notify::new());
    let go_on = asked.clone();
    let reader = Builder::new().name("reader").trace(async move {
        let _first = again.read().await;
        go_on.notified().await;
        let _second = again.read().await;
    });
    let reader_handle = reader.handle();
    runtime.spawn(reader);
    waiting::backtrace(&reader_handle); // it has the lock
    let writer = async move { drop(lock.write().await) }.traced();
    let writer_handle = writer.handle();
    runtime.spawn(writer);
    assert_eq!(owners(&writer_handle), [Some(reader_handle.id())]);

    asked.notify_one();
    let ring = format!("deadlock: task {} \"reader\" waits for a mutex", reader_handle.id());
    until_dump_has(&ring);
    assert_eq!(owners(&reader_handle), [Some(reader_handle.id())]);
}

#[test]
fn a_lock_for_readers_says_who_has_had_it_longest() {
    let runtime = runtime(1);
    let lock = Arc::new(RwLock::new(1));
    let first = lock.try_read().unwrap(); // of no task
    let hold = |lock: Arc<RwLock<u32>>| {
        let future = async move {
            let guard = lock.read().await;
            futures::future::pending::<()>().await;
            drop(guard);
        };
        let future = future.traced();
        let handle = future.handle();
        let task = runtime.spawn(future);
        waiting::backtrace(&handle);
        (handle, task)
    };
    let (second, second_task) = hold(lock.clone());
    let (third, third_task) = hold(lock.clone());
    let written = lock.clone();
    let writer = async move { *written.write().await += 1 }.traced();
    let writer_handle = writer.handle();
    let writer = runtime.spawn(writer);

    assert_eq!(owners(&writer_handle), [Some(second.id())]);
    second_task.abort();
    assert!(runtime.block_on(second_task).is_err());
    assert_eq!(owners(&writer_handle), [Some(third.id())]);
    third_task.abort();
    assert!(runtime.block_on(third_task).is_err());
    assert_eq!(owners(&writer_handle), [None]);
    drop(first);
    runtime.block_on(writer).unwrap();
    assert_eq!(*lock.try_write().unwrap(), 2);
}

#[test]
fn a_semaphore_says_who_has_its_permits_if_only_one_task_has() {
    let runtime = runtime(1);
    let few = Arc::new(Semaphore::new(2));
    let hold = |few: Arc<Semaphore>, n| {
        let future = async move {
            let permit = few.acquire_many(n).await;
            futures::future::pending::<()>().await;
            drop(permit);
        };
        let future = future.traced();
        let handle = future.handle();
        let task = runtime.spawn(future);
        waiting::backtrace(&handle);
        (handle, task)
    };
    let (first, _first_task) = hold(few.clone(), 1);
    let (_, second_task) = hold(few.clone(), 1);
    let (third, third_task) = hold(few.clone(), 2);

    assert_eq!(owners(&third), [None], "either may give its permit back first");
    second_task.abort();
    assert!(runtime.block_on(second_task).is_err());
    assert_eq!(owners(&third), [Some(first.id())]);
    assert!(few.try_acquire().is_err(), "the permit waits for the third task");
    third_task.abort();
    assert!(runtime.block_on(third_task).is_err());
    assert_eq!(few.available_permits(), 1);
    few.close();
    assert!(runtime.block_on(few.acquire()).is_err());
}

// --- Guards that go to other tasks, and tasks that end in another way. ---

#[test]
fn a_guard_that_was_sent_away_makes_no_deadlock() {
    let runtime = runtime(2);
    let mutex = Arc::new(Mutex::new(()));
    let (send, receive) = tokio::sync::oneshot::channel::<OwnedMutexGuard<()>>();
    let (adopt, adopted) = tokio::sync::oneshot::channel::<()>();
    let other = Builder::new().name("other").trace(async move {
        let mut guard = receive.await.unwrap();
        adopted.await.unwrap();
        OwnedMutexGuard::adopt(&mut guard);
        futures::future::pending::<()>().await;
    });
    let (other_handle, other_task) = (other.handle(), runtime.spawn(other));
    let sender = async move {
        assert!(send.send(mutex.clone().lock_owned().await).is_ok());
        drop(mutex.lock().await);
    };
    let (sender, sender_task) = wait(&runtime, sender);
    while owners(&sender).is_empty() {}
    assert_eq!(owners(&sender), [None], "nobody knows where the guard is");
    expect_no_deadlock_of(&sender);

    adopt.send(()).unwrap();
    while owners(&sender) != [Some(other_handle.id())] {}
    other_task.abort();
    assert!(runtime.block_on(other_task).is_err());
    runtime.block_on(sender_task).unwrap();
}

#[test]
fn permits_that_were_sent_away_make_no_deadlock() {
    let runtime = runtime(1);
    let few = Arc::new(Semaphore::new(1));
    let accepting = few.clone();
    let (accepting, task) = wait(&runtime, async move {
        let permit = accepting.clone().acquire_owned().await.unwrap();
        tokio::spawn(async move {
            let _permit: OwnedSemaphorePermit = permit;
            futures::future::pending::<()>().await;
        });
        drop(accepting.acquire_owned().await.unwrap());
    });
    while owners(&accepting).is_empty() {}
    assert_eq!(owners(&accepting), [None]);
    expect_no_deadlock_of(&accepting);
    few.add_permits(1);
    runtime.block_on(task).unwrap();
}

#[test]
fn a_panic_unlocks() {
    let runtime = runtime(2);
    let mutex = Arc::new(Mutex::new(1));
    let held = mutex.clone();
    let (go_on, goes_on) = tokio::sync::oneshot::channel::<()>();
    let holder = async move {
        let mut guard = held.lock().await;
        *guard = 2;
        goes_on.await.unwrap();
        panic!("a panic of a test");
    };
    let (holder, holder_task) = wait(&runtime, holder);
    while mutex.try_lock().map_or(false, |guard| *guard == 1) {}
    let waits = mutex.clone();
    let (waiter, task) = wait(&runtime, async move { assert_eq!(*waits.lock().await, 2) });
    while owners(&waiter) != [Some(holder.id())] {}
    go_on.send(()).unwrap();
    assert!(runtime.block_on(holder_task).is_err());
    runtime.block_on(task).unwrap();
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn who_is_handed_the_mutex_and_dropped_hands_it_on() {
    for _ in 0..100 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mutex = Arc::new(Mutex::new(0));
        let locked = mutex.clone().try_lock_owned().unwrap();
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let mutex = mutex.clone();
                runtime.spawn(async move { *mutex.lock().await += 1 }.traced())
            })
            .collect();
        runtime.block_on(tokio::task::yield_now());
        drop(locked); // the first task has it, and is not polled any more
        tasks[0].abort();
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(runtime.block_on(task).is_ok(), i != 0);
        }
        assert_eq!(*mutex.try_lock().unwrap(), 2);
    }
}

// --- Wakers that panic. ---

thread_local! {
    /// So many calls of the functions of fused wakers are left until one panics; 0: none will.
    static FUSE: Cell<u32> = const { Cell::new(0) };
    /// The fused wakers that exist.
    static WAKERS: Cell<isize> = const { Cell::new(0) };
}

/// What each function of a fused waker does: of all their calls, one panics.
fn burn(wakers: isize) {
    WAKERS.with(|count| count.set(count.get() + wakers));
    let left = FUSE.with(Cell::get);
    FUSE.with(|fuse| fuse.set(left.saturating_sub(1)));
    if left == 1 {
        resume_unwind(Box::new("for a test")); // prints nothing
    }
}

/// A clone is made after the panic that there may be, and ended before it.
unsafe fn clone_fused(data: *const ()) -> RawWaker {
    burn(0);
    WAKERS.with(|count| count.set(count.get() + 1));
    RawWaker::new(data, &FUSED)
}

static FUSED: RawWakerVTable =
    RawWakerVTable::new(clone_fused, |_| burn(-1), |_| burn(0), |_| burn(-1));

fn fused_waker() -> Waker {
    WAKERS.with(|count| count.set(count.get() + 1));
    // SAFETY: there is no data.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &FUSED)) }
}

fn panics(run: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn too_many_permits_leave_those_that_are_held_as_they_were() {
    let few = Semaphore::new(1);
    let permit = few.try_acquire().unwrap();
    assert!(panics(|| few.add_permits(usize::MAX)));
    drop(permit);
    assert_eq!(few.available_permits(), 1);
}

/// All locks of this crate.
struct Locks {
    mutex: Arc<Mutex<(u8, u8)>>,
    lock: Arc<RwLock<u8>>,
    few: Arc<Semaphore>,
}

const PERMITS: usize = 3;

/// What may be held.
#[allow(dead_code)] // some guards are only kept
enum Held<'a> {
    Mutex(MutexGuard<'a, (u8, u8)>),
    Part(MappedMutexGuard<'a, u8>),
    OwnedMutex(OwnedMutexGuard<(u8, u8)>),
    Read(RwLockReadGuard<'a, u8>),
    Write(RwLockWriteGuard<'a, u8>),
    OwnedRead(tdt::sync::OwnedRwLockReadGuard<u8>),
    OwnedWrite(tdt::sync::OwnedRwLockWriteGuard<u8>),
    Permits(SemaphorePermit<'a>, usize),
    OwnedPermit(OwnedSemaphorePermit),
}

impl Locks {
    fn new() -> Locks {
        let (mutex, lock) = (Arc::new(Mutex::new((0, 0))), Arc::new(RwLock::new(0)));
        Locks { mutex, lock, few: Arc::new(Semaphore::new(PERMITS)) }
    }

    async fn acquire(&self, kind: u64) -> Held<'_> {
        match kind {
            0 => Held::Mutex(self.mutex.lock().await),
            1 => Held::Part(MutexGuard::map(self.mutex.lock().await, |pair| &mut pair.0)),
            2 => Held::OwnedMutex(self.mutex.clone().lock_owned().await),
            3 | 4 => Held::Read(self.lock.read().await),
            5 | 6 => Held::Write(self.lock.write().await),
            7 => Held::OwnedRead(self.lock.clone().read_owned().await),
            8 => Held::OwnedWrite(self.lock.clone().write_owned().await),
            9 => Held::OwnedPermit(self.few.clone().acquire_owned().await.unwrap()),
            n => {
                let n = (n - 9) as u32;
                Held::Permits(self.few.acquire_many(n).await.unwrap(), n as usize)
            }
        }
    }
}

const KINDS: u64 = 12;

/// Nobody has what another one has alone.
fn expect_no_conflict(held: &[Held<'_>]) {
    let (mut mutex, mut readers, mut writers, mut permits) = (0, 0, 0, 0);
    for held in held {
        match held {
            Held::Mutex(_) | Held::Part(_) | Held::OwnedMutex(_) => mutex += 1,
            Held::Read(_) | Held::OwnedRead(_) => readers += 1,
            Held::Write(_) | Held::OwnedWrite(_) => writers += 1,
            Held::Permits(_, n) => permits += n,
            Held::OwnedPermit(_) => permits += 1,
        }
    }
    assert!(mutex <= 1 && permits <= PERMITS, "{mutex} have a mutex, {permits} permits are had");
    assert!(writers <= 1 && writers * readers == 0, "{writers} write while {readers} read");
}

type Waiting<'a> = Pin<Box<dyn Future<Output = Held<'a>> + 'a>>;

/// Poll a future with a new waker.  One that has ended, or has panicked, is dropped.
fn poll_one<'a>(waiting: &mut Vec<Waiting<'a>>, held: &mut Vec<Held<'a>>, at: usize) {
    let mut future = waiting.swap_remove(at);
    let waker = fused_waker();
    match future.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(got) => held.push(got),
        Poll::Pending => waiting.push(future),
    }
}

/// Ask a task where it waits, with a new waker.
fn ask(task: &Handle) -> Backtrace {
    let (waker, mut request) = (fused_waker(), task.backtrace());
    let _ = Pin::new(&mut request).poll(&mut Context::from_waker(&waker));
    request
}

/// Wait for locks, get them and give them up, in an order that `random` gives.  Some of those that
/// wait are traced, and are asked where they wait.
fn use_locks(locks: &Locks, mut random: Random) {
    let (mut waiting, mut held): (Vec<Waiting<'_>>, _) = (Vec::new(), Vec::new());
    let (mut handles, mut requests) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let at = |count: usize, random: &mut Random| random.below(count as u64) as usize;
        panics(|| match random.below(9) {
            0..=2 if waiting.len() < 8 => {
                let future = locks.acquire(random.below(KINDS));
                if random.below(2) == 0 {
                    let traced = future.traced();
                    handles.push(traced.handle());
                    waiting.push(Box::pin(traced));
                } else {
                    waiting.push(Box::pin(future));
                }
                let last = waiting.len() - 1;
                poll_one(&mut waiting, &mut held, last);
            }
            3 | 4 if !waiting.is_empty() => {
                let at = at(waiting.len(), &mut random);
                poll_one(&mut waiting, &mut held, at);
            }
            5 if !waiting.is_empty() => {
                let at = at(waiting.len(), &mut random);
                drop(waiting.swap_remove(at));
            }
            6 if !handles.is_empty() => {
                let at = at(handles.len(), &mut random);
                requests.push(ask(&handles.swap_remove(at)));
            }
            _ if !held.is_empty() => {
                let at = at(held.len(), &mut random);
                drop(held.swap_remove(at));
            }
            _ => {}
        });
        expect_no_conflict(&held);
    }
    while let Some(last) = held.pop() {
        panics(|| drop(last));
    }
    while let Some(last) = waiting.pop() {
        panics(|| drop(last));
    }
    while let Some(last) = requests.pop() {
        panics(|| drop(last));
    }
}

#[test]
fn whichever_waker_panics_nobody_has_what_another_one_has() {
    let (mut random, mut panics) = (Random::new(), 0);
    for _ in 0..20 {
        let (script, mut fuse, mut burnt) = (random.split().0, 0, true);
        while burnt {
            fuse += 1;
            FUSE.with(|left| left.set(fuse));
            let locks = Locks::new();
            use_locks(&locks, Random(script));
            burnt = FUSE.with(Cell::get) == 0;
            FUSE.with(|left| left.set(0));
            assert_eq!(WAKERS.with(Cell::get), 0, "wakers that were not dropped once");
        }
        panics += fuse - 1;
    }
    assert!(panics > 100, "{panics} panics");
}

// --- What users of tokio's types expect. ---

#[test]
fn a_thread_may_block_on_a_lock() {
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(0));
    let lock = Arc::new(RwLock::new(0));
    let (held, held_lock) = (mutex.clone(), lock.clone());
    let task = async move {
        for _ in 0..200 {
            let mut guard = held.lock().await;
            let mut writing = held_lock.write().await;
            tokio::task::yield_now().await;
            *guard += 1;
            *writing += 1;
        }
    };
    let (_, task) = wait(&runtime, task);
    for _ in 0..100 {
        *mutex.blocking_lock() += 1;
        *mutex.clone().blocking_lock_owned() += 1;
        *lock.blocking_write() += 1;
        assert!(*lock.blocking_read() > 0);
    }
    runtime.block_on(task).unwrap();
    assert_eq!(*mutex.blocking_lock(), 400);
    assert_eq!(*lock.blocking_read(), 300);
}

#[test]
#[should_panic(expected = "Cannot block the current thread from within a runtime")]
fn a_task_may_not_block_on_a_lock() {
    runtime(1).block_on(async { drop(Mutex::new(()).blocking_lock()) });
}

#[test]
fn a_guard_may_be_for_a_part() {
    let mutex = Mutex::new((1, String::from("a")));
    let guard = mutex.try_lock().unwrap();
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    let mut part: MappedMutexGuard<'_, str> = MutexGuard::map(guard, |pair| pair.1.as_mut_str());
    part.make_ascii_uppercase();
    assert_eq!(format!("{part:?}"), "\"A\"");
    assert!(mutex.try_lock().is_err());
    drop(part);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: (1, \"A\") }");
}

#[test]
fn a_lock_is_used_as_that_of_tokio() {
    let lock = Arc::new(RwLock::new(1));
    let mut writing: RwLockWriteGuard<'_, _> = lock.try_write().unwrap();
    *writing = 2;
    assert!(lock.try_read().is_err() && lock.clone().try_read_owned().is_err());
    let reading: RwLockReadGuard<'_, _> = writing.downgrade();
    let also = lock.clone().try_read_owned().unwrap();
    assert_eq!((*reading, *also), (2, 2));
    assert!(lock.clone().try_write_owned().is_err());
    drop(reading);
    assert_eq!(lock.try_write().unwrap_err().to_string(), "operation would block");
    drop(also);
    futures::executor::block_on(async {
        *lock.clone().write_owned().await = 3;
        assert_eq!(*lock.clone().read_owned().await, 3);
    });
    assert_eq!(Arc::try_unwrap(lock).unwrap().into_inner(), 3);
}

#[test]
fn a_semaphore_is_used_as_that_of_tokio() {
    let few = Arc::new(Semaphore::new(0));
    assert!(few.try_acquire().is_err());
    few.add_permits(3);
    let two = few.try_acquire_many(2).unwrap();
    let none = few.try_acquire_many(0).unwrap();
    assert!(few.clone().try_acquire_many_owned(2).is_err());
    few.clone().try_acquire_owned().unwrap().forget();
    assert_eq!(few.available_permits(), 0);
    drop((two, none));
    assert_eq!(few.available_permits(), 2);
    let waits = few.clone();
    let runtime = runtime(1);
    let waiting = async move { assert!(waits.acquire_many_owned(3).await.is_err()) };
    let (waiter, task) = wait(&runtime, waiting);
    while owners(&waiter).is_empty() {}
    few.close();
    assert!(few.is_closed());
    runtime.block_on(task).unwrap();
    assert!(runtime.block_on(few.clone().acquire_owned()).is_err());
    assert!(few.try_acquire().is_err());
}

/// Whether a type is Send and Sync, without an error if it is not.
macro_rules! is {
    ($trait:ident: $type:ty) => {{
        #[allow(dead_code)]
        trait Otherwise {
            const IS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $trait> Probe<T> {
            const IS: bool = true;
        }
        <Probe<$type>>::IS
    }};
}

#[test]
fn guards_are_shared_only_if_the_value_is() {
    use std::cell::Cell;
    use std::rc::Rc;

    assert!(is!(Sync: Mutex<Cell<u8>>) && is!(Send: MutexGuard<'static, Cell<u8>>));
    assert!(!is!(Sync: MutexGuard<'static, Cell<u8>>) && is!(Sync: MutexGuard<'static, u8>));
    assert!(!is!(Sync: MappedMutexGuard<'static, Cell<u8>>));
    assert!(is!(Send: MappedMutexGuard<'static, u8>) && is!(Sync: MappedMutexGuard<'static, u8>));
    assert!(is!(Send: OwnedMutexGuard<Cell<u8>>) && !is!(Sync: OwnedMutexGuard<Cell<u8>>));
    assert!(!is!(Send: Mutex<Rc<u8>>) && !is!(Sync: Mutex<Rc<u8>>));
    assert!(!is!(Send: MutexGuard<'static, Rc<u8>>) && !is!(Send: OwnedMutexGuard<Rc<u8>>));
    assert!(is!(Send: RwLock<Cell<u8>>) && !is!(Sync: RwLock<Cell<u8>>));
    assert!(!is!(Send: RwLockReadGuard<'static, Cell<u8>>));
    assert!(!is!(Send: RwLockWriteGuard<'static, Rc<u8>>));
    assert!(is!(Send: RwLockReadGuard<'static, u8>) && is!(Sync: RwLockReadGuard<'static, u8>));
    assert!(is!(Send: RwLockWriteGuard<'static, u8>) && is!(Sync: RwLockWriteGuard<'static, u8>));
    assert!(!is!(Send: tdt::sync::OwnedRwLockReadGuard<Cell<u8>>));
    assert!(is!(Send: tdt::sync::OwnedRwLockWriteGuard<u8>));
    assert!(is!(Send: OwnedSemaphorePermit) && is!(Sync: Semaphore));
}
