// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many tasks run while threads ask them, dump all, and switch the watch.  `TDT_TEST_SEED` repeats
//! a run.

mod random;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tdt::{Handle, TraceExt};
use tokio::sync::{mpsc, Semaphore};

use random::Random;

/// Waits in many ways, and passes `n` messages on.
async fn relay(
    n: usize,
    mut from: mpsc::Receiver<usize>,
    to: mpsc::Sender<usize>,
    few: Arc<Semaphore>,
) {
    for i in 0..n {
        let number = from.recv().await.unwrap();
        let permit = few.acquire().await.unwrap();
        if i % 7 == 0 {
            tokio::task::yield_now().await;
        }
        drop(permit);
        let sleep =
            tokio::time::timeout(Duration::from_millis(1), futures::future::pending::<()>());
        if i % 50 == 0 {
            assert!(sleep.await.is_err());
        }
        if to.send(number + 1).await.is_err() {
            return;
        }
    }
}

fn ask(handles: &[Handle], random: &mut Random, answered: &AtomicUsize) {
    let handle = &handles[random.below(handles.len() as u64) as usize];
    let trace = match random.below(3) {
        0 => handle.backtrace_timeout(Duration::from_micros(random.below(2000))),
        1 => handle.last_trace(),
        _ => futures::executor::block_on(handle.backtrace()),
    };
    if let Ok(trace) = trace {
        answered.fetch_add(1, Ordering::Relaxed);
        if random.below(20) == 0 {
            assert!(!trace.to_string().is_empty());
        }
    }
    match random.below(200) {
        0 => tdt::watch(Duration::from_millis(random.below(2))).unwrap(),
        1 => tdt::dump_to(std::io::sink()).unwrap(),
        2 => assert!(!tdt::tasks().iter().any(|task| task.info.id == 0)),
        _ => {}
    }
}

#[test]
fn requests_lose_no_wake_up() {
    const TASKS: usize = 50;
    const MESSAGES: usize = 1000;
    let mut random = Random::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let few = Arc::new(Semaphore::new(3));
    let (first, mut from) = mpsc::channel(1);
    let mut handles = Vec::new();
    let mut tasks = Vec::new();

    for _ in 0..TASKS {
        let (to, next) = mpsc::channel(2);
        let task = relay(MESSAGES, from, to, few.clone()).traced();
        handles.push(task.handle());
        tasks.push(runtime.spawn(task));
        from = next;
    }
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut random = random.split();
            let (handles, done, answered) = (&handles, &done, &answered);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    ask(handles, &mut random, answered);
                }
            });
        }
        let feed = runtime.spawn(async move {
            for _ in 0..MESSAGES {
                first.send(0).await.unwrap();
            }
        });
        let count = runtime.block_on(async move {
            let mut count = 0;
            while let Some(number) = from.recv().await {
                assert_eq!(number, TASKS);
                count += 1;
            }
            count
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(count, MESSAGES);
        runtime.block_on(feed).unwrap();
    });
    println!("{} answers", answered.load(Ordering::Relaxed));
    assert_ne!(answered.load(Ordering::Relaxed), 0);
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    tdt::watch(Duration::ZERO).unwrap();
}
