// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A futurelock: a task awaits a mutex that was handed to another future of the same task, which
//! nobody polls.  `tdt bt PID` says so.  The program runs until its standard input ends.

use std::sync::Arc;
use std::time::Duration;

use tdt::sync::Mutex;
use tokio::sync::Notify;

async fn pay(accounts: Arc<Mutex<u64>>) {
    *accounts.lock().await += 1;
}

/// Pays, and after some time without success pays on another way, while `first` still stands in
/// the line.
async fn pay_somehow(accounts: Arc<Mutex<u64>>, second_way: Arc<Notify>) {
    let mut first = Box::pin(pay(accounts.clone()));
    tokio::select! {
        _ = &mut first => {}
        _ = tokio::time::sleep(Duration::from_millis(1)) => {
            second_way.notify_one();
            pay(accounts).await;
        }
    }
}

#[tokio::main]
async fn main() {
    let accounts = Arc::new(Mutex::named("accounts", 0));
    let second_way = Arc::new(Notify::new());
    let locked = accounts.lock().await;
    tdt::spawn(pay_somehow(accounts.clone(), second_way.clone()));
    second_way.notified().await;
    tdt::spawn(pay(accounts.clone()));
    drop(locked);
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    std::process::exit(0);
}
