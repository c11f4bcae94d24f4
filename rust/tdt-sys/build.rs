// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds libtdt by pkg-config, or compiles its sources (feature `vendored`).

use std::env;
use std::process::Command;

#[cfg(feature = "vendored")]
#[path = "build/vendored.rs"]
mod vendored;

const VERSION: &str = "0.1.0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for variable in ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rustc-check-cfg=cfg(tdt_nothing)");
    let linux = env::var("CARGO_CFG_TARGET_OS").map_or(false, |os| os == "linux");
    if !linux || env::var_os("CARGO_CFG_TDT_NOTHING").is_some() {
        println!("cargo:rustc-cfg=tdt_nothing"); // there is no libtdt: see src/nothing.rs
        return;
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation is made without the library
    }
    #[cfg(feature = "vendored")]
    vendored::build();
    #[cfg(not(feature = "vendored"))]
    link();
}

/// Tell cargo the libraries that pkg-config lists, and where they are.
#[cfg_attr(feature = "vendored", allow(dead_code))]
fn link() {
    let (host, target) = (env::var("HOST"), env::var("TARGET"));
    let may_cross = ["PKG_CONFIG_ALLOW_CROSS", "PKG_CONFIG_SYSROOT_DIR", "PKG_CONFIG_LIBDIR"];
    if host != target && may_cross.iter().all(|variable| env::var_os(variable).is_none()) {
        fail(
            "pkg-config knows the libraries of this machine, which are not those of the target.  \
             Set PKG_CONFIG_LIBDIR and PKG_CONFIG_SYSROOT_DIR, or use the feature `vendored`.",
        );
    }
    let mut command =
        Command::new(env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into()));
    command.args(["--libs", "--cflags", &format!("tdt >= {VERSION}")]);
    let output = command.output().unwrap_or_else(|error| fail(&format!("no pkg-config: {error}")));
    if !output.status.success() {
        fail(&format!(
            "pkg-config finds no libtdt {VERSION} or later.  Install libtdt, or use the feature \
             `vendored`.\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        if let Some(directory) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={directory}");
        } else if let Some(directory) = word.strip_prefix("-I") {
            println!("cargo:include={directory}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}

fn fail(why: &str) -> ! {
    eprintln!("tdt-sys: {why}");
    std::process::exit(1);
}
