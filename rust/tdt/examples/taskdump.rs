// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A task waits at two places; another asks where.

#[tokio::main]
async fn main() {
    let (future, handle) = tdt::traced(foo());
    tokio::spawn(future);

    println!("{}", handle.backtrace().await.unwrap());
}

async fn foo() {
    bar().await;
}

async fn bar() {
    tokio::join!(fiz(), buz());
}

async fn fiz() {
    tokio::sync::Notify::new().notified().await;
}

async fn buz() {
    baz().await;
}

async fn baz() {
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
}
