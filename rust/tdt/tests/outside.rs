// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program with a traced future listens for readers outside, unless its environment refuses them.

use std::fs;
use std::io::ErrorKind;
use std::process::Command;
use std::time::{Duration, Instant};

use tdt::TraceExt;

fn has_door() -> bool {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.flatten().any(|task| {
        fs::read_to_string(task.path().join("comm")).map_or(false, |name| name == "tdt-door\n")
    })
}

/// Run the test of this name, which is ignored otherwise, in a process with this variable.
fn succeeds(test: &str, outside: Option<&str>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", test]).env_remove("TDT_OUTSIDE");
    if let Some(outside) = outside {
        command.env("TDT_OUTSIDE", outside);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed") || !output.status.success(), "{text}");
    output.status.success()
}

#[test]
fn a_program_listens() {
    assert!(succeeds("listens", None));
}

#[test]
fn the_environment_refuses_readers() {
    assert!(succeeds("refuses", Some("0")));
}

#[test]
#[ignore = "runs in a process of its own"]
fn listens() {
    assert!(!has_door());
    drop(async {}.traced());
    // The thread takes its name when it first runs.
    let start = Instant::now();
    while !has_door() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(has_door());
    tdt::listen().unwrap();
}

#[test]
#[ignore = "runs in a process of its own"]
fn refuses() {
    drop(async {}.traced());
    assert!(!has_door());
    assert_eq!(tdt::listen().unwrap_err().kind(), ErrorKind::PermissionDenied);
}
