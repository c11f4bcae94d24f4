// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles libtdt with the crate `cc`, for the target and with its compiler.
//!
//! The list of files is that of the library's own build, `local.mk`.  What its configure script
//! would find out is little: see `write_config`.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{fail, VERSION};

pub(super) fn build() {
    let (source, out) = (source(), PathBuf::from(variable("OUT_DIR")));
    let machine = variable("CARGO_CFG_TARGET_ARCH");
    if machine != "x86_64" && machine != "aarch64" {
        fail(&format!("tdt runs on x86_64 and aarch64, not on {machine}"));
    }
    let probes = preprocess("-E", "#include <sys/sdt.h>").is_some();

    write(&out.join("config.h"), &config(probes));
    fs::create_dir_all(out.join("src")).unwrap_or_else(|error| fail(&error.to_string()));
    write(&out.join("src/syscall_names.inc"), &system_calls());

    // Objects are named after relative paths; of others, after the file only, of which some are
    // called the same.
    env::set_current_dir(&source).unwrap_or_else(|error| fail(&error.to_string()));
    let mut build = compiler(&out);
    build.files(files(&machine));
    // Cargo's messages of the crate would link the library before what it needs.
    build.cargo_metadata(false).compile("tdt");
    if probes {
        let mut build = compiler(&out);
        // Link-time optimization would copy and inline the probes.
        build.flag_if_supported("-fno-lto").file("src/probes/probes.c");
        build.cargo_metadata(false).compile("tdt_probes");
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=tdt");
    if probes {
        println!("cargo:rustc-link-lib=static=tdt_probes");
    }
    // Rust's own unwinder has to come before libunwind's, which has the same functions.
    println!("cargo:rustc-link-lib=dylib=gcc_s");
    for library in [generic_unwinder(), "unwind", "dw", "elf", "z", "iberty", "pthread"] {
        println!("cargo:rustc-link-lib={library}");
    }
    println!("cargo:include={}", source.join("include").display());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo sets no {name}")))
}

/// The sources: those in the crate, which `package.sh` put there, or of the repository around it.
fn source() -> PathBuf {
    let crate_itself = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let places = [crate_itself.join("libtdt"), crate_itself.join("../..")];
    println!("cargo:rerun-if-changed=build");
    for place in &places {
        if place.join("src/libtdt.map").exists() {
            for part in ["src", "include", "tree-printer"] {
                println!("cargo:rerun-if-changed={}", place.join(part).display());
            }
            return place.clone();
        }
    }
    fail(&format!("neither {} nor the repository has libtdt's sources", places[0].display()))
}

/// The files of `libtdt_core_la_SOURCES` that are compiled for `machine`.
fn files(machine: &str) -> Vec<String> {
    let mut files = Vec::new();
    for list in ["src/local.mk", "tree-printer/local.mk"] {
        let text =
            fs::read_to_string(list).unwrap_or_else(|error| fail(&format!("{list}: {error}")));
        let (mut inside, mut left_out) = (false, false);
        for line in text.lines() {
            match line {
                "if AARCH64" => left_out = machine != "aarch64",
                "else" => left_out = !left_out,
                "endif" => left_out = false,
                _ if line.starts_with("libtdt_core_la_SOURCES") => inside = true,
                _ if inside && !left_out => {
                    let file = line.trim().trim_end_matches('\\').trim_end();
                    if file.ends_with(".c") || file.ends_with(".S") {
                        files.push(file.to_string());
                    }
                }
                _ => {}
            }
            inside = inside && line.ends_with('\\');
        }
    }
    files
}

fn compiler(out: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.include(out).include("include").include("src").include(".");
    build.define("HAVE_CONFIG_H", None).define("_GNU_SOURCE", None).warnings(false).pic(true);
    // As the library's own build, which says why (configure.ac).
    for flag in [
        "-fvisibility=hidden",
        "-fexceptions",
        "-fno-omit-frame-pointer",
        "-mno-omit-leaf-frame-pointer",
        "-fno-partial-inlining",
        "-fno-plt",
        "-mtls-dialect=gnu2",
        "-g",
    ] {
        build.flag_if_supported(flag);
    }
    if variable("OPT_LEVEL") == "0" {
        build.opt_level(2); // inlining keeps captures from walking the library's own frames
    }
    build
}

/// The target's preprocessor; `None`: it refuses the text.
fn preprocess(options: &str, text: &str) -> Option<String> {
    let input = PathBuf::from(variable("OUT_DIR")).join("probe.c");
    write(&input, text);
    let mut command: Command = cc::Build::new().get_compiler().to_command();
    let output = command.args(options.split(' ')).arg(&input).output();
    let output = output.unwrap_or_else(|error| fail(&format!("no compiler of C: {error}")));
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn config(probes: bool) -> String {
    format!(
        "#define PACKAGE_VERSION \"{VERSION}\"\n#define VERSION PACKAGE_VERSION\n\
         #define TDT_PROBES {}\n#define TDT_USDT_PROVIDER tdt\n#define TDT_WALK_RULES 1\n\
         #ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n",
        i32::from(probes)
    )
}

/// As `src/base/syscall_names.awk` makes it.
fn system_calls() -> String {
    let macros = preprocess("-E -dM", "#include <sys/syscall.h>")
        .unwrap_or_else(|| fail("the target has no <sys/syscall.h>"));
    let mut table = String::new();
    for line in macros.lines() {
        let mut words = line.split(' ').skip(1);
        if let (Some(name), Some(value)) = (words.next(), words.next()) {
            let call = name.strip_prefix("SYS_").unwrap_or("");
            if !call.is_empty() && value.strip_prefix("__NR_") == Some(call) {
                table += &format!("{{ __NR_{call}, \"{call}\" }},\n");
            }
        }
    }
    table
}

/// The library of libunwind that has what depends on the machine.
fn generic_unwinder() -> &'static str {
    match &*variable("CARGO_CFG_TARGET_ARCH") {
        "x86_64" => "unwind-x86_64",
        "aarch64" => "unwind-aarch64",
        _ => "unwind-generic",
    }
}

fn write(file: &Path, text: &str) {
    let written: io::Result<()> = fs::write(file, text);
    written.unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
}
