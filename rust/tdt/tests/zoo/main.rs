// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A zoo: tasks of many kinds, whose trees are read line by line, in all states of a program.
//!
//! The comments in front of the functions are the trees.  `@mark` stands for the line that ends in
//! `// @mark`; of a place in a library, only the package is read.  A line that begins with `//:+`
//! continues the line before.  Siblings are sorted, because `select!` polls them in any order.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tdt::{Error, Handle, TraceExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task;

/// Threads may have no CPU for a while.
const MINUTE: Duration = Duration::from_secs(60);

macro_rules! kinds {
    ($source:literal: $($kind:ident),* $(,)?) => {
        vec![$($crate::Kind {
            name: stringify!($kind),
            tree: $crate::read_comment(include_str!($source), stringify!($kind)),
            future: Box::pin($kind()),
        }),*]
    };
}

mod kinds;
mod late;
#[path = "../waiting/mod.rs"]
mod waiting;

/// A kind of task.
pub struct Kind {
    name: &'static str,
    tree: Tree,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
}

// --- Trees as they are compared. ---

/// Lines with their depths.
type Tree = Vec<(usize, String)>;

/// Sort siblings.
fn sorted(tree: &[(usize, String)]) -> Tree {
    let mut parts: Vec<Tree> = Vec::new();
    for (depth, line) in tree {
        if *depth == tree[0].0 {
            parts.push(Vec::new());
        }
        parts.last_mut().expect("the first line has its own depth").push((*depth, line.clone()));
    }
    for part in &mut parts {
        let below = sorted(&part[1..]);
        part.splice(1.., below);
    }
    parts.sort();
    parts.concat()
}

fn shown(tree: &[(usize, String)]) -> String {
    tree.iter().map(|(depth, line)| format!("//: {}{line}\n", "  ".repeat(*depth))).collect()
}

/// The line that a mark is on.
fn line_of(source: &str, mark: &str) -> usize {
    let mark = format!("// @{mark}");
    let line = source.lines().position(|line| line.ends_with(&mark));
    line.unwrap_or_else(|| panic!("no line ends in {mark}")) + 1
}

/// The tree in the comment in front of a function.
fn read_comment(source: &str, function: &str) -> Tree {
    let head = format!("async fn {function}(");
    let before: Vec<_> = source.lines().take_while(|line| !line.starts_with(&head)).collect();
    let comment: Vec<_> = before.iter().rev().take_while(|line| line.starts_with("//:")).collect();
    let mut tree = Tree::new();
    for line in comment.iter().rev() {
        match line.strip_prefix("//:+") {
            Some(more) => {
                let line = &mut tree.last_mut().expect("it continues a line").1;
                *line = without_object(&format!("{line}{more}"));
            }
            None => tree.push(read_wanted(source, &line[4..])),
        }
    }
    sorted(&tree)
}

fn read_wanted(source: &str, line: &str) -> (usize, String) {
    let text = line.trim_start();
    let depth = (line.len() - text.len()) / 2;
    match text.split_once(" @") {
        Some((name, mark)) => (depth, format!("{name} @{}", line_of(source, mark))),
        None => (depth, without_object(text)),
    }
}

/// The tree in what was printed.
fn read_printed<'a>(lines: impl Iterator<Item = &'a str>) -> Tree {
    sorted(&lines.filter_map(read_line).collect::<Tree>())
}

fn read_line(line: &str) -> Option<(usize, String)> {
    let (glyphs, text) = line.split_once("╼ ")?;
    let depth = (glyphs.chars().count() + 1) / 3;
    let (name, place) = text.split_once(" at ").unwrap_or((text, ""));
    let (place, remarks) = match place.find(" (") {
        Some(at) => place.split_at(at),
        None => (place, ""),
    };
    let mut numbers = place.rsplitn(3, ':');
    let (_column, number) = (numbers.next(), numbers.next().unwrap_or(""));
    let path = numbers.next().unwrap_or("");
    if path.ends_with("/tests/zoo/kinds.rs") || path.ends_with("/tests/zoo/late.rs") {
        return Some((depth, format!("{name} @{number}{remarks}")));
    }
    let package = path.split('/').next().unwrap_or("");
    let package = package.trim_end_matches(|c: char| c == '-' || c == '.' || c.is_ascii_digit());
    Some((depth, without_object(&format!("{name} in {package}{remarks}"))))
}

/// In optimized code, the call that tells the object of an operation may have become a jump.  That
/// of a process depends on tokio's version: a signal, or a descriptor of the process.
fn without_object(text: &str) -> String {
    let told = cfg!(debug_assertions) && !text.contains("process::Child");
    match (text.find(" (on "), told) {
        (Some(at), false) => {
            let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
            format!("{}{}", &text[..at], &text[end..])
        }
        _ => text.into(),
    }
}

// --- A runtime full of tasks. ---

struct Zoo {
    runtime: Option<Runtime>,
    tasks: Vec<(&'static str, Tree, Handle)>,
    _alone: MutexGuard<'static, ()>,
}

impl Zoo {
    /// One zoo at a time, since dumps show all tasks.
    fn new() -> Zoo {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let spawn = |kind: Kind| {
            let task = tdt::Builder::new().name(kind.name).trace(kind.future);
            let handle = task.handle();
            runtime.spawn(task);
            (kind.name, kind.tree, handle)
        };
        let tasks = kinds::all().into_iter().chain(late::all()).map(spawn).collect();
        Zoo { runtime: Some(runtime), tasks, _alone: alone }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("until it is dropped")
    }

    /// Have all trees read by `read` until they are as wanted, since tasks need time to get there.
    fn expect(&self, mut read: impl FnMut() -> HashMap<u64, Tree>) {
        let end = Instant::now() + MINUTE;
        loop {
            let trees = read();
            let wrong = self.tasks.iter().filter(|task| trees.get(&task.2.id()) != Some(&task.1));
            let wrong: Vec<_> = wrong.collect();
            if wrong.is_empty() {
                return;
            }
            if Instant::now() > end {
                for (name, tree, handle) in &wrong {
                    let got = trees.get(&handle.id()).map_or(String::new(), |tree| shown(tree));
                    println!("--- {name}: wanted\n{}--- got\n{got}", shown(tree));
                }
                panic!("{} trees are not as they should be", wrong.len());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The trees of requests.
    fn request(&self) -> HashMap<u64, Tree> {
        let trees = self.tasks.iter().map(|(_, _, handle)| match handle.backtrace_blocking() {
            Ok(trace) => (handle.id(), read_printed(trace.to_string().lines())),
            Err(error) => (handle.id(), vec![(0, error.to_string())]),
        });
        trees.collect()
    }

    /// The watched trees.
    fn last_trees(&self) -> HashMap<u64, Tree> {
        let trees = self.tasks.iter().map(|(_, _, handle)| match handle.last_trace() {
            Ok(trace) => (handle.id(), read_printed(trace.to_string().lines())),
            Err(error) => (handle.id(), vec![(0, error.to_string())]),
        });
        trees.collect()
    }
}

impl Drop for Zoo {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background(); // its threads may be blocked
        }
    }
}

fn dump() -> String {
    let mut text = Vec::new();
    tdt::dump_to(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The trees of a dump.
fn read_dump(text: &str) -> HashMap<u64, Tree> {
    let mut trees = HashMap::new();
    for part in text.split("\ntask ") {
        let id = part.trim_start_matches("task ").split(' ').next().and_then(|id| id.parse().ok());
        if let Some(id) = id {
            trees.insert(id, read_printed(part.lines()));
        }
    }
    trees
}

/// A file whose readers wait for ever.
fn endless() -> String {
    let path = format!("{}/zoo-fifo", env!("CARGO_TARGET_TMPDIR"));
    if !std::path::Path::new(&path).exists() {
        std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    }
    path
}

// --- The states of a program. ---

#[test]
fn idle_tasks_show_where_they_wait() {
    let zoo = Zoo::new();
    zoo.expect(|| zoo.request());
}

#[test]
fn tasks_show_where_they_wait_under_load() {
    let zoo = Zoo::new();
    for _ in 0..4 {
        zoo.runtime().spawn(async {
            loop {
                task::yield_now().await;
            }
        });
    }
    zoo.expect(|| read_dump(&dump()));
}

#[test]
fn watched_tasks_show_it_also_while_all_workers_are_blocked() {
    tdt::watch(Duration::from_millis(1)).unwrap();
    let zoo = Zoo::new();
    zoo.expect(|| {
        zoo.request(); // a task that went on within a millisecond was not seen since
        zoo.last_trees()
    });

    let blocks: Vec<_> = (0..2).map(|_| kinds::block(zoo.runtime())).collect();
    zoo.expect(|| read_dump(&dump()));
    for (handle, _) in &blocks {
        let text = handle.backtrace_timeout(MINUTE).unwrap().to_string();
        assert_eq!(read_printed(text.lines())[0], kinds::line_of_block(), "{text}");
    }
    tdt::watch(Duration::ZERO).unwrap();
}

#[test]
fn tasks_that_panicked_or_were_aborted_have_no_tree() {
    let zoo = Zoo::new();
    let (panics, of_panics) = tdt::traced(async { panic!("as it is meant to") });
    let (aborted, of_aborted) = tdt::traced(std::future::pending::<()>());
    let (panics, aborted) = (zoo.runtime().spawn(panics), zoo.runtime().spawn(aborted));
    aborted.abort();
    assert!(futures::executor::block_on(panics).unwrap_err().is_panic());
    assert!(futures::executor::block_on(aborted).unwrap_err().is_cancelled());

    assert_eq!(of_panics.backtrace_blocking().unwrap_err(), Error::Ended);
    assert_eq!(of_aborted.backtrace_blocking().unwrap_err(), Error::Ended);
}

#[test]
fn local_tasks_show_where_they_wait() {
    let (send, receive) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let thread = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        task::LocalSet::new().block_on(&runtime, async {
            let (local, tree) = kinds::local_task();
            let local = local.traced();
            send.send((local.handle(), tree)).unwrap();
            task::spawn_local(local);
            let _ = ended.await;
        });
    });
    let (handle, tree) = receive.recv().unwrap();
    let trace = waiting::backtrace(&handle);
    assert_eq!(read_printed(trace.to_string().lines()), tree);
    end.send(()).unwrap();
    thread.join().unwrap();
}
