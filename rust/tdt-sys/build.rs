// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds libtdt by pkg-config, or builds it from its sources (feature `vendored`).
//!
//! The sources are built by their own configure script and make, not file by file with a C compiler
//! from here: configure chooses the files that suit the machine, and writes what they include.  A
//! second list of sources and checks in this file would differ from the first one sooner or later.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "0.1.0";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for variable in ["TDT_SOURCE", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation is made without the library
    }
    if env::var_os("CARGO_FEATURE_VENDORED").is_some() {
        let installed = build(&source());
        // Rust's own unwinder has to come before libunwind's, which has the same functions.
        println!("cargo:rustc-link-lib=dylib=gcc_s");
        link(&["--static"], Some(&installed.join("lib/pkgconfig")));
    } else {
        link(&[], None);
    }
}

// --- What pkg-config says. ---

/// Tell cargo the libraries that pkg-config lists, and where they are.
fn link(options: &[&str], path: Option<&Path>) {
    let mut command =
        Command::new(env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into()));
    command.args(options).args(["--libs", "--cflags", &format!("tdt >= {VERSION}")]);
    if let Some(path) = path {
        command.env("PKG_CONFIG_PATH", joined(path));
    }
    let output = command.output().unwrap_or_else(|error| fail(&format!("no pkg-config: {error}")));
    if !output.status.success() {
        fail(&format!(
            "pkg-config finds no libtdt {VERSION} or later.  Install libtdt, or use the feature \
             `vendored`.\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        tell_cargo(word, path.is_some());
    }
}

fn tell_cargo(word: &str, vendored: bool) {
    if let Some(directory) = word.strip_prefix("-L") {
        println!("cargo:rustc-link-search=native={directory}");
    } else if let Some(directory) = word.strip_prefix("-I") {
        println!("cargo:include={directory}");
    } else if let Some(library) = word.strip_prefix("-l") {
        let kind = if vendored && library == "tdt" { "static=" } else { "" };
        println!("cargo:rustc-link-lib={kind}{library}");
    }
}

/// `path`, and behind it what PKG_CONFIG_PATH says already.
fn joined(path: &Path) -> std::ffi::OsString {
    let mut paths = vec![path.to_path_buf()];
    if let Some(others) = env::var_os("PKG_CONFIG_PATH") {
        paths.extend(env::split_paths(&others));
    }
    env::join_paths(paths).unwrap_or_else(|error| fail(&error.to_string()))
}

// --- The sources of the library. ---

fn source() -> PathBuf {
    let source = env::var_os("TDT_SOURCE").map(PathBuf::from).unwrap_or_else(|| {
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..")
    });
    if !source.join("src/libtdt.map").exists() {
        fail(&format!(
            "The feature `vendored` needs the sources of libtdt, and {} does not contain them.  \
             Set TDT_SOURCE to their directory.",
            source.display()
        ));
    }
    println!("cargo:rerun-if-changed={}", source.join("src").display());
    println!("cargo:rerun-if-changed={}", source.join("include").display());
    source
}

/// Build a copy of the sources, and install it below the directory of this build.  Returns that
/// directory.
fn build(source: &Path) -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let (copy, installed) = (out.join("source"), out.join("installed"));
    let prefix = format!("--prefix={}", installed.display());
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".into());

    let _ = fs::remove_dir_all(&copy);
    copy_tree(source, &copy).unwrap_or_else(|error| fail(&format!("copying the sources: {error}")));
    if !copy.join("configure").exists() {
        fs::create_dir_all(copy.join("m4")).unwrap_or_else(|error| fail(&error.to_string()));
        run(&copy, "autoreconf", &["--install"]);
    }
    run(
        &copy,
        "./configure",
        &[
            "--quiet",
            "--disable-shared",
            "--with-pic",
            "--without-runtime",
            "--libdir=${prefix}/lib",
            &prefix,
        ],
    );
    let library = ["install-libLTLIBRARIES", "install-pkgconfigDATA"];
    let includes = ["tdtinclude", "tdtintegrate", "tdtlayout"]
        .map(|folder| format!("install-{folder}HEADERS"));
    run(&copy, "make", &["-f", "Makefile", "-j", &jobs, "libtdt.la"]);
    run(&copy, "make", &["-f", "Makefile", library[0], library[1]]);
    run(&copy, "make", &["-f", "Makefile", &includes[0], &includes[1], &includes[2]]);
    installed
}

/// What a build leaves in a source tree, and what is not part of the sources.
fn is_left_out(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let made = ["o", "lo", "la", "a", "so", "log", "trs"];

    name.starts_with(".git")
        || ["target", ".libs", ".deps", "autom4te.cache", "Makefile", "libtool"].contains(&&*name)
        || ["config.status", "config.h", "stamp-h1"].contains(&&*name)
        || name.rsplit_once('.').map_or(false, |(_, end)| made.contains(&end))
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if is_left_out(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn run(directory: &Path, program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).current_dir(directory).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{program} {}: {status}", arguments.join(" "))),
        Err(error) => fail(&format!("{program}: {error}")),
    }
}

fn fail(why: &str) -> ! {
    eprintln!("tdt-sys: {why}");
    std::process::exit(1);
}
