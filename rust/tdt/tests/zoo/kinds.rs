// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tasks of many kinds.  The comment above each is the tree that the task has.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::process::Stdio;
use std::rc::Rc;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{abortable, join_all, try_join_all};
use futures::stream::{self, FuturesUnordered, StreamExt};
use tdt::{Handle, TraceExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::{
    broadcast, mpsc, oneshot, watch, Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore,
};
use tokio::task::{self, JoinSet};
use tokio::time::{interval, sleep, timeout};

use crate::{Kind, Tree};

const HOUR: Duration = Duration::from_secs(3600);

pub fn all() -> Vec<Kind> {
    kinds!["kinds.rs":
        naps, calls, selects, selects_leaves, joins, joins_leaves, try_joins, joins_all,
        joins_many, unordered, join_set, join_handle, mutex, read_lock, write_lock, semaphore,
        notify, mpsc_recv, mpsc_send, unbounded, oneshot_recv, broadcast_recv, watch_changed,
        barrier, once_cell, times_out, times_out_recv, splits, ticks, accepts, reads, writes,
        reads_unix, reads_udp, blocking, reads_file, boxed, recurses, streams, buffers, child,
        catches_signal, aborts
    ]
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

//: zoo::kinds::naps::{async} @naps
//:   tokio::time::Sleep in tokio
async fn naps() {
    sleep(HOUR).await; // @naps
}

//: zoo::kinds::calls::{async} @calls
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn calls() {
    naps().await; // @calls
}

//: zoo::kinds::selects::{async} @selects
//:   zoo::kinds::mutex::{async} @mutex
//:     tokio::sync::Mutex::lock in tokio
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn selects() {
    tokio::select! { // @selects
        _ = naps() => {}
        _ = mutex() => {}
    }
}

//: zoo::kinds::selects_leaves::{async} @selects_leaves
//:   tokio::sync::mpsc::Receiver::recv in tokio
//:   tokio::time::Sleep in tokio
async fn selects_leaves() {
    let (_sender, mut receiver) = mpsc::channel::<()>(1);
    tokio::select! { // @selects_leaves
        _ = receiver.recv() => {}
        _ = sleep(HOUR) => {}
    }
}

//: zoo::kinds::joins_leaves::{async} @joins_leaves
//:   tokio::sync::mpsc::Receiver::recv in tokio
//:   tokio::time::Sleep in tokio
async fn joins_leaves() {
    let (_sender, mut receiver) = mpsc::channel::<()>(1);
    tokio::join!(receiver.recv(), sleep(HOUR)); // @joins_leaves
}

//: zoo::kinds::joins::{async} @joins
//:   zoo::kinds::mutex::{async} @mutex
//:     tokio::sync::Mutex::lock in tokio
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn joins() {
    tokio::join!(naps(), mutex()); // @joins
}

//: zoo::kinds::aborts::{async} @aborts
//:   futures_util::abortable::Abortable in futures-util (1 leaf)
//:     zoo::kinds::naps::{async} @naps
//:       tokio::time::Sleep in tokio
async fn aborts() {
    let (future, _handle) = abortable(naps());
    let _ = future.await; // @aborts
}

async fn fails() -> Result<(), ()> {
    naps().await; // @fails
    Err(())
}

//: zoo::kinds::try_joins::{async} @try_joins
//:   zoo::kinds::fails::{async} @fails
//:     zoo::kinds::naps::{async} @naps
//:       tokio::time::Sleep in tokio (2 leaves)
async fn try_joins() {
    let _ = tokio::try_join!(fails(), fails()); // @try_joins
}

//: zoo::kinds::joins_all::{async} @joins_all
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio (2 leaves)
async fn joins_all() {
    join_all([naps(), naps()]).await; // @joins_all
    let _ = try_join_all([fails()]).await;
}

//: zoo::kinds::joins_many::{async} @joins_many
//:   futures_util::future::JoinAll in futures-util (on futures_util::stream::FuturesOrdered)
//:+ (futures that wait in it are not in this tree)
async fn joins_many() {
    join_all((0..40).map(|_| naps())).await; // @joins_many
}

//: zoo::kinds::unordered::{async} @unordered
//:   futures_util::stream::Next in futures-util (on futures_util::stream::FuturesUnordered)
//:+ (futures that wait in it are not in this tree)
async fn unordered() {
    let mut tasks: FuturesUnordered<_> = (0..3).map(|_| naps()).collect();
    tasks.next().await; // @unordered
}

//: zoo::kinds::join_set::{async} @join_set
//:   tokio::task::JoinSet::join_next in tokio
async fn join_set() {
    let mut set = JoinSet::new();
    set.spawn(naps());
    set.join_next().await; // @join_set
}

//: zoo::kinds::join_handle::{async} @join_handle
//:   tokio::runtime::task::JoinHandle in tokio
async fn join_handle() {
    task::spawn(naps()).await.unwrap(); // @join_handle
}

//: zoo::kinds::mutex::{async} @mutex
//:   tokio::sync::Mutex::lock in tokio
async fn mutex() {
    let mutex = leak(Mutex::new(()));
    mem::forget(mutex.try_lock());
    let _ = mutex.lock().await; // @mutex
}

//: zoo::kinds::read_lock::{async} @read_lock
//:   tokio::sync::RwLock::read in tokio
async fn read_lock() {
    let lock = leak(RwLock::new(()));
    mem::forget(lock.try_write());
    let _ = lock.read().await; // @read_lock
}

//: zoo::kinds::write_lock::{async} @write_lock
//:   tokio::sync::RwLock::write in tokio
async fn write_lock() {
    let lock = leak(RwLock::new(()));
    mem::forget(lock.try_read());
    let _ = lock.write().await; // @write_lock
}

//: zoo::kinds::semaphore::{async} @semaphore
//:   tokio::sync::Semaphore::acquire_many_owned in tokio
async fn semaphore() {
    let _ = Arc::new(Semaphore::new(1)).acquire_many_owned(2).await; // @semaphore
}

//: zoo::kinds::notify::{async} @notify
//:   tokio::sync::notify::Notified in tokio
async fn notify() {
    Notify::new().notified().await; // @notify
}

//: zoo::kinds::mpsc_recv::{async} @mpsc_recv
//:   tokio::sync::mpsc::Receiver::recv in tokio
async fn mpsc_recv() {
    let (_sender, mut receiver) = mpsc::channel::<()>(1);
    receiver.recv().await; // @mpsc_recv
}

//: zoo::kinds::mpsc_send::{async} @mpsc_send
//:   tokio::sync::mpsc::Sender::send in tokio
async fn mpsc_send() {
    let (sender, _receiver) = mpsc::channel(1);
    let _ = sender.send(()).await;
    let _ = sender.send(()).await; // @mpsc_send
}

//: zoo::kinds::unbounded::{async} @unbounded
//:   tokio::sync::mpsc::UnboundedReceiver::recv in tokio
async fn unbounded() {
    let (_sender, mut receiver) = mpsc::unbounded_channel::<()>();
    receiver.recv().await; // @unbounded
}

//: zoo::kinds::oneshot_recv::{async} @oneshot_recv
//:   tokio::sync::oneshot::Receiver in tokio
async fn oneshot_recv() {
    let (_sender, receiver) = oneshot::channel::<()>();
    let _ = receiver.await; // @oneshot_recv
}

//: zoo::kinds::broadcast_recv::{async} @broadcast_recv
//:   tokio::sync::broadcast::Receiver::recv in tokio
async fn broadcast_recv() {
    let (_sender, mut receiver) = broadcast::channel::<()>(1);
    let _ = receiver.recv().await; // @broadcast_recv
}

//: zoo::kinds::watch_changed::{async} @watch_changed
//:   tokio::sync::watch::Receiver::changed in tokio
async fn watch_changed() {
    let (_sender, mut receiver) = watch::channel(());
    let _ = receiver.changed().await; // @watch_changed
}

//: zoo::kinds::barrier::{async} @barrier
//:   tokio::sync::Barrier::wait in tokio
async fn barrier() {
    Barrier::new(2).wait().await; // @barrier
}

//: zoo::kinds::once_cell::{async} @once_cell
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn once_cell() {
    let cell = leak(OnceCell::new());
    cell.get_or_init(naps).await; // @once_cell
}

//: zoo::kinds::times_out::{async} @times_out
//:   tokio::time::Timeout in tokio
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn times_out() {
    let _ = timeout(HOUR, naps()).await; // @times_out
}

//: zoo::kinds::times_out_recv::{async} @times_out_recv
//:   tokio::time::Timeout in tokio
//:     tokio::sync::mpsc::Receiver::recv in tokio
//:   tokio::time::Timeout in tokio
//:     tokio::time::Sleep in tokio
async fn times_out_recv() {
    let (_sender, mut receiver) = mpsc::channel::<()>(1);
    let _ = timeout(HOUR, receiver.recv()).await; // @times_out_recv
}

//: zoo::kinds::splits::{async} @splits
//:   tokio::time::Timeout in tokio
//:     tokio::io::util::Read in tokio (on tokio::io::util::DuplexStream)
//:   tokio::time::Timeout in tokio
//:     tokio::time::Sleep in tokio
async fn splits() {
    let (pipe, _other) = tokio::io::duplex(1);
    let (mut half, _writer) = tokio::io::split(pipe);
    let _ = timeout(HOUR, half.read(&mut [0; 1])).await; // @splits
}

//: zoo::kinds::ticks::{async} @ticks
//:   tokio::time::Interval::tick in tokio
async fn ticks() {
    let mut interval = interval(HOUR);
    interval.tick().await;
    interval.tick().await; // @ticks
}

//: zoo::kinds::accepts::{async} @accepts
//:   tokio::net::TcpListener::accept in tokio
async fn accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _ = listener.accept().await; // @accepts
}

async fn connected() -> (TcpStream, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (TcpStream::connect(address).await.unwrap(), listener)
}

//: zoo::kinds::reads::{async} @reads
//:   tokio::io::util::Read in tokio (on tokio::net::TcpStream)
async fn reads() {
    let (mut stream, _listener) = connected().await;
    let _ = stream.read(&mut [0; 1]).await; // @reads
}

//: zoo::kinds::writes::{async} @writes
//:   tokio::io::util::WriteAll in tokio (on tokio::net::TcpStream)
async fn writes() {
    let (mut stream, _listener) = connected().await;
    let _ = stream.write_all(&vec![0; 1 << 24]).await; // @writes
}

//: zoo::kinds::reads_unix::{async} @reads_unix
//:   tokio::io::util::ReadExact in tokio (on tokio::net::UnixStream)
async fn reads_unix() {
    let (mut stream, _other) = UnixStream::pair().unwrap();
    let _ = stream.read_exact(&mut [0; 1]).await; // @reads_unix
}

//: zoo::kinds::reads_udp::{async} @reads_udp
//:   tokio::net::UdpSocket::recv_from in tokio
async fn reads_udp() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let _ = socket.recv_from(&mut [0; 1]).await; // @reads_udp
}

//: zoo::kinds::blocking::{async} @blocking
//:   tokio::runtime::task::JoinHandle in tokio
async fn blocking() {
    let _ = task::spawn_blocking(|| std::thread::sleep(HOUR)).await; // @blocking
}

//: zoo::kinds::reads_file::{async} @reads_file
//:   tokio::fs::read in tokio
async fn reads_file() {
    let _ = tokio::fs::read(crate::endless()).await; // @reads_file
}

//: zoo::kinds::boxed::{async} @boxed
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn boxed() {
    let future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(naps());
    future.await; // @boxed
}

fn recurse(depth: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        match depth {
            0 => naps().await,             // @innermost
            _ => recurse(depth - 1).await, // @deeper
        }
    })
}

//: zoo::kinds::recurses::{async} @recurses
//:   zoo::kinds::recurse::{async} @deeper
//:     zoo::kinds::recurse::{async} @deeper
//:       zoo::kinds::recurse::{async} @innermost
//:         zoo::kinds::naps::{async} @naps
//:           tokio::time::Sleep in tokio
async fn recurses() {
    recurse(2).await; // @recurses
}

//: zoo::kinds::streams::{async} @streams
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn streams() {
    let mut stream = Box::pin(stream::once(naps()));
    stream.next().await; // @streams
}

//: zoo::kinds::buffers::{async} @buffers
//:   futures_util::stream::Collect in futures-util (on futures_util::stream::BufferUnordered)
//:+ (futures that wait in it are not in this tree)
async fn buffers() {
    let stream = stream::iter(0..3).map(|_| naps()).buffer_unordered(2);
    stream.collect::<Vec<_>>().await; // @buffers
}

//: zoo::kinds::child::{async} @child
//:   tokio::process::Child::wait in tokio (on tokio::signal::unix::Signal)
async fn child() {
    // It ends when this process does, since nobody writes to it then.
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let _stdin = cat.stdin.take();
    let _ = cat.wait().await; // @child
}

//: zoo::kinds::catches_signal::{async} @catches_signal
//:   tokio::signal::unix::Signal::recv in tokio
async fn catches_signal() {
    use tokio::signal::unix::{signal, SignalKind};
    signal(SignalKind::user_defined2()).unwrap().recv().await; // @catches_signal
}

//: zoo::kinds::local::{async} @local
//:   zoo::kinds::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn local() {
    let count = Rc::new(());
    naps().await; // @local
    drop(count);
}

/// A future that another thread cannot have, and its tree.
pub fn local_task() -> (impl Future<Output = ()>, Tree) {
    (local(), crate::read_comment(include_str!("kinds.rs"), "local"))
}

async fn blocks(begun: Sender<()>, end: Receiver<()>) {
    begun.send(()).unwrap();
    let _ = end.recv(); // @blocks
}

/// Block a worker.  Returns the handle of the task that does, and what ends it.
pub fn block(runtime: &Runtime) -> (Handle, Sender<()>) {
    let ((begun, has_begun), (sender, end)) = (channel(), channel());
    let task = blocks(begun, end).traced();
    let handle = task.handle();
    runtime.spawn(task);
    has_begun.recv().unwrap();
    (handle, sender)
}

/// The first line of that task's tree.
pub fn line_of_block() -> (usize, String) {
    let line = crate::line_of(include_str!("kinds.rs"), "blocks");
    (0, format!("zoo::kinds::blocks::{{async}} @{line}"))
}
