// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ten kinds that were written when the rules of the folding were there.  What the first of them
//! showed to be wrong in general was mended.

use std::time::Duration;

use futures::channel::mpsc;
use futures::future::{self, FutureExt};
use futures::stream::{self, StreamExt};
use tokio::io::{self, AsyncBufReadExt, BufReader};
use tokio::time::sleep;

use crate::Kind;

const HOUR: Duration = Duration::from_secs(3600);

tokio::task_local! {
    static NUMBER: u32;
}

pub fn all() -> Vec<Kind> {
    kinds!["late.rs":
        selects_all, copies, reads_line, shares, receives, catches, scoped, concurrent, either,
        peeks
    ]
}

async fn naps() {
    sleep(HOUR).await; // @naps
}

//: zoo::late::selects_all::{async} @selects_all
//:   zoo::late::naps::{async} @naps
//:     tokio::time::Sleep in tokio (2 leaves)
async fn selects_all() {
    let futures = [naps().boxed(), future::pending().boxed(), naps().boxed()];
    future::select_all(futures).await; // @selects_all
}

//: zoo::late::copies::{async} @copies
//:   tokio::io::util::copy in tokio (on tokio::io::util::DuplexStream)
async fn copies() {
    let ((mut from, _other), mut to) = (io::duplex(1), io::sink());
    let _ = io::copy(&mut from, &mut to).await; // @copies
}

//: zoo::late::reads_line::{async} @reads_line
//:   tokio::io::util::Lines::next_line in tokio (on tokio::net::UnixStream)
async fn reads_line() {
    let (stream, _other) = tokio::net::UnixStream::pair().unwrap();
    let mut lines = BufReader::new(stream).lines();
    let _ = lines.next_line().await; // @reads_line
}

//: zoo::late::shares::{async} @shares
//:   futures_util::future::Join in futures-util
//:+ (futures that wait in it are not in this tree) (2 leaves)
async fn shares() {
    let shared = naps().shared();
    future::join(shared.clone(), shared).await; // @shares
}

//: zoo::late::receives::{async} @receives
//:   futures_util::stream::Next in futures-util (on futures_channel::mpsc::Receiver)
async fn receives() {
    let (_sender, mut receiver) = mpsc::channel::<()>(1);
    receiver.next().await; // @receives
}

//: zoo::late::catches::{async} @catches
//:   zoo::late::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn catches() {
    let _ = std::panic::AssertUnwindSafe(naps()).catch_unwind().await; // @catches
}

//: zoo::late::scoped::{async} @scoped
//:   zoo::late::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn scoped() {
    NUMBER.scope(1, naps()).await; // @scoped
}

//: zoo::late::concurrent::{async} @concurrent
//:   futures_util::stream::ForEachConcurrent in futures-util
//:+ (on futures_util::stream::FuturesUnordered) (futures that wait in it are not in this tree)
async fn concurrent() {
    stream::iter(0..3).for_each_concurrent(2, |_| naps()).await; // @concurrent
}

//: zoo::late::either::{async} @either
//:   futures_util::future::Select in futures-util
//:   zoo::late::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn either() {
    future::select(naps().boxed(), sleep(HOUR).boxed()).await; // @either
}

//: zoo::late::peeks::{async} @peeks
//:   zoo::late::naps::{async} @naps
//:     tokio::time::Sleep in tokio
async fn peeks() {
    let mut stream = Box::pin(stream::once(naps()).peekable());
    let _ = stream.as_mut().peek().await; // @peeks
}
