// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tasks of all kinds on a runtime with hooks, for tracers: all of them fire probes.
//!
//!     RUSTFLAGS="--cfg tokio_unstable" cargo run --example hooked --features tokio-hooks &
//!     bpftrace -p $! tools/print-all.bt

use std::time::Duration;

use tokio::time::sleep;

async fn work(waits: u32) {
    for _ in 0..waits {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn round() {
    let nobody_traces = tokio::spawn(work(3));
    let traced = tdt::spawn(work(3));
    let traced_before = tokio::spawn(tdt::traced(work(3)).0);
    let traced_inside = tokio::spawn(async { tdt::traced(work(3)).0.await });
    let aborted = tokio::spawn(work(1000));
    let blocking = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)));

    sleep(Duration::from_millis(10)).await;
    aborted.abort();
    let _ = futures::join!(nobody_traces, traced, traced_before, traced_inside, aborted, blocking);
}

fn main() -> std::io::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = tdt::register_hooks(&mut builder)?.worker_threads(2).enable_time().build()?;

    runtime.block_on(async {
        for _ in 0..rounds {
            round().await;
        }
    });
    Ok(())
}
