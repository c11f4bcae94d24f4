// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Futures that are in no tree of the task that awaits them stand below it in a dump.

use std::future::{pending, Future};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use futures::future::{join_all, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::task::noop_waker_ref;
use tdt::TraceExt;

/// Waits for ever, with a waker, as leaves do.
async fn waits() {
    let (_kept, never) = futures::channel::oneshot::channel::<()>();
    let _ = never.await;
}

/// One test at a time, since a dump has all tasks of the process.
static ALONE: Mutex<()> = Mutex::new(());

fn dump() -> String {
    let mut text = Vec::new();
    tdt::dump_to(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The text of a dump while the task that awaits `future` has been polled.  So many tasks answer;
/// a dump that says that fewer had the time, or that names were late, is taken again.
fn dump_of(answered: usize, future: impl Future<Output = ()>) -> String {
    let mut task = Box::pin(tdt::Builder::new().name("parent").trace(future));
    let mut cx = Context::from_waker(noop_waker_ref());
    assert!(task.as_mut().poll(&mut cx).is_pending());
    loop {
        // The dump is made by a thread, and the requests are answered by polls.
        let thread = std::thread::spawn(dump);
        while !thread.is_finished() {
            assert!(task.as_mut().poll(&mut cx).is_pending());
        }
        let text = thread.join().unwrap();
        if text.contains(&format!(": {answered} answered")) && !text.contains("not named in time") {
            return text;
        }
    }
}

/// What stands below the task "parent", without the blanks in front; and what its line says.
fn below(text: &str) -> (Vec<&str>, &str) {
    // It may be named before, as a busy loop, since it is polled all the time.
    let mut lines = text.lines().skip_while(|line| !line.contains("\"parent\" pending"));
    let says = lines.by_ref().find(|line| line.contains("shown below"));
    let says = says.unwrap_or_else(|| panic!("{text}"));
    (lines.skip(1).take_while(|line| line.starts_with("   ")).map(str::trim).collect(), says.trim())
}

#[test]
fn children_stand_below_the_task_that_awaits_them() {
    let _alone = ALONE.lock().unwrap();
    let text = dump_of(4, async {
        let mut all: FuturesUnordered<_> = (0..3).map(|_| tdt::child(waits())).collect();
        all.next().await;
    });
    let (lines, says) = below(&text);
    assert_eq!(says, "3 of 3 children are shown below", "{text}");
    assert!(lines[0].starts_with("3 tasks pending"), "{text}");
    assert!(lines[1].contains("children::waits"), "{text}");

    // They have the tree of those that stand below another task.
    let mut other = Box::pin(tdt::Builder::new().name("other").trace(async {
        let mut all: FuturesUnordered<_> = (0..2).map(|_| tdt::child(waits())).collect();
        all.next().await;
    }));
    let mut cx = Context::from_waker(noop_waker_ref());
    assert!(other.as_mut().poll(&mut cx).is_pending());
    let text = dump_of(41, async {
        join_all((0..40).map(|_| tdt::child(waits()))).await;
    });
    drop(other);
    assert_eq!(below(&text).1, "40 of 40 children are shown below", "{text}");
    assert!(text.contains("(futures that wait in it are not in this tree)"), "{text}");

    let text = dump_of(2, async { tdt::child(waits()).shared().await });
    assert_eq!(below(&text).1, "1 of 1 child is shown below", "{text}");

    // A child with another tree is another group, and one that was never polled has no tree.
    let text = dump_of(3, async {
        let other = async { waits().await };
        let mut all: FuturesUnordered<Pin<Box<dyn Future<Output = ()>>>> = FuturesUnordered::new();
        all.push(Box::pin(tdt::child(waits())));
        all.push(Box::pin(tdt::child(other)));
        let _never_polled = tdt::child(waits());
        all.next().await;
    });
    assert_eq!(below(&text).1, "2 of 3 children are shown below", "{text}");

    // What is traced, and no child, stands alone.
    let text = dump_of(2, async {
        let mut all: FuturesUnordered<_> = [waits().traced()].into_iter().collect();
        all.next().await;
    });
    assert!(!text.contains("shown below"), "{text}");
}

#[test]
fn a_child_is_polled_as_any_future_is() {
    let _alone = ALONE.lock().unwrap();
    let mut child = Box::pin(tdt::child(async { 42 }));
    let mut cx = Context::from_waker(noop_waker_ref());
    assert_eq!(child.as_mut().poll(&mut cx), Poll::Ready(42));
    let mut waits = Box::pin(tdt::child(pending::<()>()));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
}
