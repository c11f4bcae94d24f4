#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Rust over the ABI: its async functions, and those behind a future of C, stand in the tree by name
# and line.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libs=${top_builddir:?}/.libs
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
rustc --version >&2 || skip_all "there is no rustc"
source=$top_srcdir/tests/outside/rust/tree.rs

# line WHAT: where the program says it wants WHAT.
line()
{
	grep -n "// want: $1\$" "$source" | cut -d: -f1
}

# The functions of the program, each on the line where it waits.
cat >"$tmp/tree" <<END
tree::outer::{async} $(line outer)
tree::middle::{async} $(line middle)
<tree::Both as core::future::future::Future>::poll $(line first)
tree::poll_child $(line child)
tree::left::{async} $(line left)
tree::leaf::{async} $(line leaf)
<tree::Pass as core::future::future::Future>::poll $(line pass)
<tree::Both as core::future::future::Future>::poll $(line second)
tree::poll_child $(line child)
tree::right::{async} $(line right)
tree::leaf::{async} $(line leaf)
<tree::Pass as core::future::future::Future>::poll $(line pass)
tree::right::{async}::{async} $(line block)
tree::leaf::{async} $(line leaf)
<tree::Pass as core::future::future::Future>::poll $(line pass)
END
# It makes two requests.
cat "$tmp/tree" "$tmp/tree" >"$tmp/wanted"

# The program of this name in tdt-languages(7).
of_manual()
{
	awk -v first="// $1" '
		/^[.]EE/ { on = 0 }
		on { gsub(/\\-/, "-"); gsub(/\\e/, "\\"); print }
		/^[.]EX/ { getline; if ($0 == first) { on = 1; print } }' \
			"$top_srcdir/man/tdt-languages.7" >"$tmp/$1"
	test -s "$tmp/$1"
}

# build SOURCE FLAGS...: without cargo.
build()
{
	file=$1
	shift
	# The older mangling is a nightly option since v0 is the default.
	RUSTC_BOOTSTRAP=1 rustc --edition 2021 -g -Z unstable-options "$@" -L "native=$libs" \
		-C "link-arg=-Wl,-rpath,$libs" -o "$tmp/program" "$file"
}

run()
{
	"$tmp/program" >"$tmp/out" && grep -qx ended "$tmp/out"
}

for mangling in legacy v0; do
	for flags in -Copt-level=0 -O; do
		how="$flags, $mangling mangling"
		claim "a Rust program is built against the library ($how)" \
			build "$source" "$flags" -C symbol-mangling-version=$mangling
		claim "its futures end, panic and are dropped as the ABI has it ($how)" run
		grep -v '^task ' "$tmp/out" | grep '/tree\.rs:[0-9]*:[0-9]*$' |
			sed 's/^[-| `]*//; s| at .*/tree\.rs:\([0-9]*\):[0-9]*$| \1|' >"$tmp/got"
		same "async functions stand in the tree, also behind a future of C ($how)" \
			"$tmp/wanted" "$tmp/got"
		rm -f "$tmp/program" "$tmp/out"
	done
done

# Rust looks for a module beside its source.
claim "the manual has a Rust program" of_manual greet.rs
cp "$top_srcdir/demo/tdt.rs" "$tmp"
# The task may be held up in its poll, or for longer than the program waits for its tree.
finds_it_waiting()
{
	"$tmp/program" >"$tmp/out" || { : >"$tmp/out"; return; }
	grep ' pending ' "$tmp/out"
}

if test -e "$libs/libtdt-rt.so"; then
	claim "it is built" build "$tmp/greet.rs"
	printf '%s\n' greet answer tdt_sleep_ms >"$tmp/wanted"
	wait_until finds_it_waiting >&2
	sed -n 's/.*- greet::\([a-z]*\)::{async} at .*greet\.rs:[0-9:]*$/\1/p
		s/.*- \(tdt_sleep_ms\) at .*/\1/p' "$tmp/out" >"$tmp/got"
	same "and prints its tree" "$tmp/wanted" "$tmp/got"
	claim "its task has the name of its type, and a place with a column" \
		grep -q \
		'^task 1 "[^"]*greet::greet::{{closure}}>*".* at .*greet\.rs:[0-9]*:[0-9]*' \
		"$tmp/out"
else
	skip "it prints its tree" "built without a shared library"
fi
plan
