#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The wakers of the crate tdt under ThreadSanitizer, which looks at the crate and at libtdt.  It
# does not look into Rust's standard library, by whose locks the stress orders nothing.  Debian has
# neither loom nor shuttle nor Miri, and Miri does not run the C beneath.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

library=${top_builddir:?}/.libs/libtdt.a
rust=$top_srcdir/rust
test "$SANITIZERS" = thread || skip_all "only a build for ThreadSanitizer finds races"
test -e "$library" || skip_all "built without a static library"
rustc --version >&2 || skip_all "there is no rustc"
for runtime in "$(rustc --print sysroot)"/lib/rustlib/*/lib/librustc*_rt.tsan.a; do
	test -e "$runtime" || skip_all "this rustc has no ThreadSanitizer"
done

# compile SOURCE OPTION...: what it makes is in $tmp.
compile()
{
	source=$1
	shift
	RUSTC_BOOTSTRAP=1 rustc --edition 2021 -g -Zsanitizer=thread \
		-Cunsafe-allow-abi-mismatch=sanitizer --out-dir "$tmp" -L "$tmp" "$source" "$@"
}

link_options()
{
	libraries=$($PKG_CONFIG --static --libs "$top_builddir/src/tdt.pc") || return
	for option in -lgcc_s "$library" ${libraries#*-ltdt}; do
		printf ' -Clink-arg=%s' "$option"
	done
}

# shellcheck disable=SC2046 # a list of options
build()
{
	compile "$rust/tdt-sys/src/lib.rs" --crate-name tdt_sys --crate-type rlib &&
		compile "$rust/tdt/src/lib.rs" --crate-name tdt --crate-type rlib \
			--cap-lints allow --extern tdt_sys &&
		compile "$rust/tdt/tests/wakers.rs" --extern tdt $(link_options)
}

claim "the crate is built for ThreadSanitizer" build
export TDT_OUTSIDE=0
for run in 1 2 3; do
	claim "run $run has no data race, and drops each waker once" "$tmp/wakers"
done
plan
