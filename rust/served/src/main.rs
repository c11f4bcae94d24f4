// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of hyper under load, all of whose tasks are dumped 40 times a second.
//!
//! `served` runs for three seconds, and looks at every response and every dump.  `served bench`
//! prints what dumps cost: rounds with and without them take turns, so that what else the machine
//! does concerns both.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hyper::server::conn::Http;
use hyper::service::service_fn;
use hyper::{Body, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;

const CLIENTS: usize = 16;
const DUMPS: u32 = 40; // a second

// --- The server. ---

/// Adds to the number in the request's path what the lock guards.
async fn answer(
    request: Request<Body>,
    one: Arc<Mutex<u64>>,
) -> Result<Response<Body>, Infallible> {
    let number: u64 = request.uri().path()[1..].parse().unwrap_or(0);
    let one = one.lock().await;
    tokio::task::yield_now().await;
    Ok(Response::new(Body::from((number + *one).to_string())))
}

async fn serve(listener: TcpListener) {
    let one = Arc::new(Mutex::new(1));
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let one = one.clone();
        let service = service_fn(move |request| answer(request, one.clone()));
        tdt::spawn(Http::new().http1_only(true).serve_connection(stream, service));
    }
}

fn start_server(runtime: &Runtime) -> SocketAddr {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("its address");
    let _in_it = runtime.enter();
    tdt::spawn(serve(listener));
    address
}

// --- The clients. ---

#[derive(Default)]
struct Load {
    end: AtomicBool,
    responses: AtomicU64,
}

/// The length of the response at the beginning of `bytes`, and its body, as soon as all is there.
fn response(bytes: &[u8]) -> Option<(usize, &str)> {
    let text = std::str::from_utf8(bytes).expect("all of it is text");
    let (head, body) = text.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("a length").parse().expect("a number");
    Some((head.len() + 4 + length, body.get(..length)?))
}

async fn request(stream: &mut TcpStream, number: u64) {
    let text = format!("GET /{number} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(text.as_bytes()).await.expect("the server reads");
    let mut bytes = Vec::new();
    loop {
        let n = stream.read_buf(&mut bytes).await.expect("the server answers");
        assert!(n > 0, "the connection was closed");
        if let Some((length, body)) = response(&bytes) {
            assert_eq!((length, body), (bytes.len(), &*(number + 1).to_string()));
            return;
        }
    }
}

async fn send_requests(address: SocketAddr, client: u64, load: Arc<Load>) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket option");
    for i in 0.. {
        if load.end.load(Relaxed) {
            return;
        }
        request(&mut stream, client * 1_000_000 + i).await;
        load.responses.fetch_add(1, Relaxed);
    }
}

// --- The dumps. ---

fn dump() -> String {
    let mut text = Vec::new();
    tdt::dump_to(&mut text).expect("a vector takes all");
    String::from_utf8(text).expect("it is text")
}

/// The tree of the first task is in the dump, and as long as it should be, unless the dump says
/// that it lacks what had too little time, or that the task runs.
fn check(text: &str) {
    let accepts = "╼ served::serve::{async} at src/main.rs:";
    let operation = " └╼ tokio::net::TcpListener::accept at tokio-";
    let lines: Vec<_> = text.lines().collect();
    let unnamed = text.contains("not named in time");
    let runs = lines.iter().any(|line| line.contains("\"served::serve\" running"));
    let is_late = unnamed || runs || text.contains("did not answer");
    let next = lines.iter().skip_while(|line| !line.starts_with(accepts)).nth(1);
    let is_right = |line: &&str| line.starts_with(operation) || unnamed || runs;
    assert!(next.map_or(is_late, is_right), "{text}");
    assert!(text.ends_with('\n'), "{text}");
}

/// Dump until `end`.  Returns how many dumps that were.
fn dump_until(end: Instant) -> u32 {
    let period = Duration::from_secs(1) / DUMPS;
    let mut dumps = 0;
    let mut next = Instant::now();
    while next < end {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        check(&dump());
        dumps += 1;
        next += period;
    }
    dumps
}

// --- What is done. ---

/// Responses a second, for `time`.
fn measure(load: &Load, time: Duration, dumped: bool) -> f64 {
    let (before, start) = (load.responses.load(Relaxed), Instant::now());
    if dumped {
        dump_until(start + time);
    }
    thread::sleep((start + time).saturating_duration_since(Instant::now()));
    (load.responses.load(Relaxed) - before) as f64 / start.elapsed().as_secs_f64()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn bench(load: &Load) {
    let time = Duration::from_millis(250);
    let (mut dumped, mut noise) = (Vec::new(), Vec::new());
    for round in 0..40 {
        let with_first = round % 2 == 0;
        let (first, second) = (measure(load, time, with_first), measure(load, time, !with_first));
        dumped.push(if with_first { first / second } else { second / first });
        noise.push(measure(load, time, false) / measure(load, time, false));
    }
    println!("throughput with {DUMPS} dumps a second: {:.3} of that without", median(dumped));
    println!("two rounds without dumps, for comparison: {:.3}", median(noise));
}

fn test(load: &Load) {
    let dumps = dump_until(Instant::now() + Duration::from_secs(3));
    let responses = load.responses.load(Relaxed);
    println!("{dumps} dumps, {responses} responses");
    assert!(responses > 0, "no client had a response");
}

fn main() {
    let server = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (address, load) = (start_server(&server), Arc::new(Load::default()));
    let start = |client| clients.spawn(send_requests(address, client as u64, load.clone()));
    let running: Vec<_> = (0..CLIENTS).map(start).collect();

    while load.responses.load(Relaxed) < CLIENTS as u64 {
        thread::sleep(Duration::from_millis(1));
    }
    if std::env::args().any(|arg| arg == "bench") {
        bench(&load);
    } else {
        test(&load);
    }
    load.end.store(true, Relaxed);
    for client in running {
        clients.block_on(client).expect("every response was right");
    }
}
