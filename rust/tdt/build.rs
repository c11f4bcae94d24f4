// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds out what the compiler has.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let linux = env::var("CARGO_CFG_TARGET_OS").map_or(false, |os| os == "linux");
    if !linux || env::var_os("CARGO_CFG_TDT_NOTHING").is_some() {
        println!("cargo:rustc-cfg=tdt_nothing"); // as in tdt-sys
    }
    if minor_version() >= 92 {
        // `Location::file_as_c_str`: libtdt need not look for a copy of the file's name.
        println!("cargo:rustc-cfg=file_as_c_str");
    }
    if minor_version() >= 80 {
        println!("cargo:rustc-check-cfg=cfg(file_as_c_str)");
        println!("cargo:rustc-check-cfg=cfg(tokio_unstable)");
        println!("cargo:rustc-check-cfg=cfg(tdt_nothing)");
        println!("cargo:rustc-check-cfg=cfg(docsrs)");
    }
}

/// The second number of the compiler's version; 0 if it is unknown.
fn minor_version() -> u32 {
    let rustc = env::var_os("RUSTC").expect("cargo sets it");
    let output = Command::new(rustc).arg("--version").output().ok();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    version.and_then(|version| version.split('.').nth(1)?.parse().ok()).unwrap_or(0)
}
