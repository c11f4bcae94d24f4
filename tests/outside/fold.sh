#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Text folds the calls in libraries: of a crate of Rust, of a library of C++ headers, of a library
# of C without debug information.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libs=$(cd "${top_builddir:?}/.libs" && pwd)
test -e "$libs/libtdt-rt.so" || skip_all "there is no shared libtdt-rt"
source=$(cd "$top_srcdir" && pwd)
from=$source/tests/outside/fold
app=$tmp/app

# line FILE WHAT: where the file has WHAT in a comment.
line()
{
	grep -n "// $2\$" "$from/$1" | cut -d: -f1
}

# in_time PROGRAM [full]: all that its tasks answer is where they wait, in $tmp/printed.  On a busy
# machine there may be no answer in a second, or the stack of a poll that goes on.
in_time()
{
	"$@" >"$tmp/printed" 2>&1
	! grep -q -e 'timed out' -e '^task .* running ' "$tmp/printed"
}

# trees PROGRAM [full]: without the tasks' lines, columns, and lines of the library.
trees()
{
	wait_until in_time "$@"
	sed '/^task /d; s/\(:[0-9]*\):[0-9]*$/\1/; s/\(runtime.timer[.]c\):.*/\1/' \
		"$tmp/printed"
}

# --- Rust ---

# The crate lies where cargo would have it, and both are built as cargo does.
build_rust()
{
	crate=$tmp/cargo/registry/src/index.example-0123456789abcdef/pond-1.2.3
	mkdir -p "$crate/src" "$app/src"
	cp "$from/pond.rs" "$crate/src/lib.rs"
	cp "$from/serve.rs" "$app/src/main.rs"
	cp "$source/demo/tdt.rs" "$app/src/tdt.rs"
	(cd "$crate" && rustc --edition 2021 "$@" --crate-type rlib --crate-name pond \
		src/lib.rs -o "$tmp/libpond.rlib") &&
		(cd "$app" && rustc --edition 2021 "$@" --crate-name serve src/main.rs \
			--extern "pond=$tmp/libpond.rlib" -L "native=$libs" \
			-C "link-arg=-Wl,-rpath,$libs" -o "$tmp/serve")
}

main=src/main.rs
nap="pond::time::Nap at pond-1.2.3/src/lib.rs:$(line pond.rs nap)"
lock="pond::sync::Mutex::lock at pond-1.2.3/src/lib.rs:$(line pond.rs lock)"
cat >"$tmp/rust" <<END
- serve::naps::{async} at $main:$(line serve.rs naps)
 \`- $nap
- serve::locks::{async} at $main:$(line serve.rs locks)
 \`- $lock
- serve::boxed::{async} at $main:$(line serve.rs boxed)
 \`- serve::naps::{async} at $main:$(line serve.rs naps)
    \`- $nap
- serve::joins::{async} at $main:$(line serve.rs joins)
 \`- pond::future::Both at pond-1.2.3/src/lib.rs:$(line pond.rs both)
    |- serve::naps::{async} at $main:$(line serve.rs naps)
    |  \`- $nap
    \`- serve::locks::{async} at $main:$(line serve.rs locks)
       \`- $lock
- serve::polls::{async} at $main:$(line serve.rs polls)
 \`- serve::naps::{async} at $main:$(line serve.rs naps)
    \`- $nap
- serve::blocks::{async} at $main:$(line serve.rs blocks)
 \`- serve::blocks::{async}::{async} at $main:$(line serve.rs block)
    \`- $nap
- serve::sleeps::{async} at $main:$(line serve.rs sleeps)
 \`- tdt_sleep_ms at src/runtime/timer.c
END

if rustc --version >&2; then
	for flags in -Copt-level=0 -O; do
		claim "a Rust program and its crate are built ($flags)" build_rust -g $flags
		trees "$tmp/serve" >"$tmp/got"
		same "its trees have the program's own code, and what it called ($flags)" \
			"$tmp/rust" "$tmp/got"
		trees "$tmp/serve" full >"$tmp/got"
		cat "$tmp/got" >&2
		claim "all calls are shown if that is wanted ($flags)" grep -q \
			' pond::time::entry::Entry::register at pond-1.2.3/src/lib.rs' "$tmp/got"
		claim "also those of the language ($flags)" grep -q \
			'wake::Waker as core::clone::Clone>::clone at library/core/src' \
			"$tmp/got"
		claim "and a closure is no async function ($flags)" grep -q \
			' serve::tdt::poll_rust::{*closure' "$tmp/got"
	done
	if build_rust -Cdebuginfo=line-tables-only -Copt-level=0; then
		trees "$tmp/serve" >"$tmp/got"
		# Nothing tells what is around an async block.
		sed -i 's/{async}::{async}/{{closure}}::{async}/' "$tmp/rust"
		same "functions that are not inlined have whole names with line tables only" \
			"$tmp/rust" "$tmp/got"
	else
		skip "names with line tables only" "this rustc has no such debug information"
	fi
else
	skip "the trees of Rust" "there is no rustc"
fi

# --- C++ ---

build_cxx()
{
	mkdir -p "$app/_deps/pool-src/include" "$app/src"
	cp "$from/pool.hpp" "$app/_deps/pool-src/include"
	cp "$from/serve.cc" "$app/src"
	(cd "$app" && ${CXX:?} -std=c++20 -g "$@" -I"$app/_deps/pool-src/include" \
		-I"$source/include" src/serve.cc -L"$libs" -Wl,-rpath,"$libs" -ltdt-rt -ltdt \
		-o "$tmp/serve")
}

cat >"$tmp/cxx" <<END
- serve at src/serve.cc:$(line serve.cc serve)
 \`- greet at src/serve.cc:$(line serve.cc greet)
    \`- pool::socket::read at pool-src/include/pool.hpp:$(line pool.hpp read)
END

for flags in -O0 -O2; do
	claim "a C++ program is built ($flags)" build_cxx $flags
	trees "$tmp/serve" >"$tmp/got"
	same "its tree has the program's own code, and what it called ($flags)" "$tmp/cxx" \
		"$tmp/got"
	trees "$tmp/serve" full >"$tmp/got"
	cat "$tmp/got" >&2
	claim "all calls are shown if that is wanted ($flags)" grep -q \
		' pool::register_waker<int> at pool-src/include/pool.hpp:' "$tmp/got"
done
plan
