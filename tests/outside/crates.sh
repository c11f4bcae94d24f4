#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The crates tdt-sys and tdt.  Their own tests are in rust/; what they depend on comes from Debian's
# packages, not from the network.
#
# What cargo has built stays in build-crates until `make clean`, so only the first run takes long.
#
# TDT_TEST_FULL=1 also has the examples of the documentation, tokio's tests of its locks, a build
# for release, libtdt built from its sources by the build script, and a server of
# hyper.  CLIPPY=yes runs clippy, each version of which has lints of its own.
# CRATES names another directory of crates than Debian's, for example with a tokio that has hooks.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"

test "$SANITIZERS" = no || skip_all "a sanitized library needs a sanitized program"
libs=$(cd "${top_builddir:?}" && pwd)/.libs
tdt=$(cd "$top_builddir" && pwd)/tdt
source=$(cd "$top_srcdir" && pwd)
crates=${CRATES:-/usr/share/cargo/registry}
test -e "$libs/libtdt.so" || skip_all "built without a shared library"
cargo --version >&2 || skip_all "there is no cargo"
# Cargo wants `cc` although it is optional.
for crate in cc futures serde tokio tracing; do
	test -n "$(find "$crates" -maxdepth 1 -name "$crate-[0-9]*" 2>&1)" ||
		skip_all "there is no librust-$crate-dev"
done

# The sources may be read-only, and cargo writes beside them.  It compares their times.
kept=$(cd "$top_builddir" && pwd)/build-crates
# The path tells trees which code is that of packages.
registry=$kept/cargo/registry
rm -rf "$kept/rust" "$kept/include" "$registry"
mkdir -p "$kept/home" "$kept/pc" "$registry"
cp -Rp "$source/rust" "$kept/rust"
chmod -R u+w "$kept/rust"
ln -s "$source/include" "$kept/include"
ln -s "$crates"/* "$registry"
cat >"$kept/home/config.toml" <<END
[source.crates-io]
replace-with = "local"
[source.local]
directory = "$registry"
END
cat >"$kept/pc/tdt.pc" <<END
Name: tdt
Description: as it was built here
Version: 0.1.0
Libs: -L$libs -ltdt
Cflags: -I$source/include
END
cd "$kept/rust" || exit

export CARGO_HOME="$kept/home" CARGO_TARGET_DIR="$kept/target" CARGO_NET_OFFLINE=true
export PKG_CONFIG_PATH="$kept/pc" LD_LIBRARY_PATH="$libs" CARGO_INCREMENTAL=0
unset MAKEFLAGS RUSTFLAGS

features=tokio,tokio-hooks,tracing,serde

run()
{
	cargo test -q -p tdt --features "$features" "$@"
}

# shellcheck disable=SC2317 # called by claim
hooked()
{
	RUSTFLAGS="--cfg tokio_unstable" run --test hooks
}

# says PATTERN COMMAND...: what tdt says of the program, as soon as it says that.
says()
{
	pattern=$1
	shift
	tries=0
	until "$tdt" "$@" "$pid" >"$tmp/told" 2>"$tmp/why" && grep -q "$pattern" "$tmp/told"; do
		tries=$((tries + 1))
		if test $tries = 1800; then
			cat "$tmp/told" "$tmp/why" >&2
			return 1
		fi
		sleep 0.1
	done
}

says_from_json()
{
	"$tdt" bt --json "$pid" | "$tdt" print | grep "$1"
}

futurelock='futurelock: task 1 .* was handed a mutex "accounts" .*: 2 waits for it hang'
handed='waits for a mutex "accounts" (0x[0-9a-f]*) handed .* ago to'

# Tokio's own tests of its locks, with those of tdt::sync.
# shellcheck disable=SC2317 # called by claim
tokios_own()
{
	for lock in mutex mutex_owned rwlock semaphore semaphore_owned; do
		sed -e '/^#!\[/d' -e 's/feature = "full"/all()/' \
			-e 's/tokio::sync::\(Mutex\|RwLock\|Semaphore\)/tdt::sync::\1/' \
			-e '$a mod tokio_test;' \
			"$registry"/tokio-[0-9]*/tests/sync_$lock.rs >"tdt/tests/tokios_$lock.rs" &&
			run --test tokios_$lock || return
		rm "tdt/tests/tokios_$lock.rs" # it is not formatted as ours are
	done
}

# The package tdt refers to the other one as if that had been published.
# shellcheck disable=SC2317 # called by claim
packaged()
{
	address=https://tdt.example/
	REPOSITORY=$address ./package.sh "$source" &&
		cargo package -q --allow-dirty -p tdt-sys &&
		rm -rf "$registry/tdt-sys-0.1.0" &&
		tar -C "$registry" -xzf "$kept/target/package/tdt-sys-0.1.0.crate" &&
		echo '{"files":{}}' >"$registry/tdt-sys-0.1.0/.cargo-checksum.json" &&
		cargo package -q --allow-dirty --no-verify -p tdt &&
		tar -tzf "$kept/target/package/tdt-sys-0.1.0.crate" >"$tmp/files" &&
		tar -tzf "$kept/target/package/tdt-0.1.0.crate" >>"$tmp/files" &&
		test "$(grep -c /LICENSE- "$tmp/files")" = 4 &&
		test "$(grep -l "^repository = \"$address\"" */Cargo.toml | wc -l)" = 2
}

# A program of nothing but the two packages, far from the repository.
# shellcheck disable=SC2317 # called by claim
alone()
{
	rm -rf "$kept/alone" &&
		mkdir -p "$kept/alone" &&
		tar -C "$kept/alone" -xzf "$kept/target/package/tdt-0.1.0.crate" &&
		cd "$kept/alone/tdt-0.1.0" &&
		env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH PKG_CONFIG=false \
			cargo test -q --features tokio,vendored --test trees
}

# Off Linux there is no libtdt, and the crates do nothing.
# shellcheck disable=SC2317 # called by claim
nothing()
{
	env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH PKG_CONFIG=false RUSTFLAGS="--cfg tdt_nothing" \
		CARGO_TARGET_DIR="$kept/target-nothing" \
		cargo test -q -p tdt --features "$features" --test nothing
}

# What users may call, with its types.  A change to it is meant, or breaks programs.
# shellcheck disable=SC2317 # called by claim
same_items()
{
	(cd tdt && find src -name '*.rs' | LC_ALL=C sort |
		xargs grep -E '^ *pub (async |const |unsafe )*(fn|struct|enum|trait|type|mod|use)' |
		sed 's/: */: /') >"$tmp/items"
	diff tdt/public.txt "$tmp/items" >&2
}

# shellcheck disable=SC2317 # called by claim
formatted()
{
	cargo fmt -- --check && cargo fmt --manifest-path served/Cargo.toml -- --check &&
		cargo fmt --manifest-path compare/Cargo.toml -- --check
}

claim "all tests are built" run --no-run
claim "structs and constants are those of the headers" cargo test -q -p tdt-sys
claim "wakers are counted, and hooks need tokio_unstable" run --lib
claim "a traced future behaves as the future in it" run --test behaviour
claim "requests show async functions on their lines" run --test trees
claim "tasks of many kinds show where they wait" run --test zoo
claim "children stand below the task that awaits them" run --test children
claim "requests lose no wake-up" run --test stress
claim "wakers are dropped once, whatever happens to their tasks" run --test wakers
claim "panics, aborts and forks do no harm to requests" run --test hostile
claim "dumps know who holds a lock" run --test locks
claim "a program listens for readers outside" run --test outside
claim "a span has the id of its task" run --test span
if grep -q on_before_task_poll "$registry"/tokio-[0-9]*/src/runtime/builder.rs; then
	claim "hooks see all tasks of tokio" hooked
else
	skip "hooks see all tasks of tokio" "this tokio has none of each poll"
fi
if claim "the examples are built" \
	cargo build -q -p tdt --features "$features" --examples &&
	start "$kept/target/debug/examples/futurelock" && may_read; then
	claim "tdt ps says to whom a mutex was handed" says "${handed#waits for } task 1" ps
	claim "and that it was handed to another future of the same task" \
		says "${handed#waits for } another future of its own, which has not taken it" ps
	claim "tdt bt says that this is a futurelock" \
		says "$futurelock" bt
	claim "and does so from its JSON" wait_until says_from_json "$futurelock"
	claim "and a deadlock" says "^deadlock: task 1 .* $handed another future of its own" bt
	claim "and to whom the others wait" says "$handed task 1 .*, which has not taken it" bt
	stop
else
	skip "tdt names a futurelock" "a process cannot be read"
fi
claim "the comparison runs with what there is to compare with" compare/run.sh "$registry"
claim "the crate does without tokio" cargo check -q -p tdt
claim "both can be packaged" packaged
claim "off Linux the crates do nothing" nothing
claim "the public items are those of public.txt" same_items
if cargo fmt --version >&2; then
	claim "they are formatted" formatted
else
	skip "they are formatted" "there is no rustfmt"
fi
if test "${CLIPPY-}" = yes; then
	claim "clippy finds nothing" \
		cargo clippy -q --all-targets --features "$features" -- -D warnings
else
	skip "clippy finds nothing" "each version has lints of its own (CLIPPY=yes runs it)"
fi
if test "${TDT_TEST_FULL-}" != 1; then
	skip "examples, tokio's tests, other builds, and a server" \
		"they take long (TDT_TEST_FULL=1 has them)"
	plan
	exit
fi
claim "the examples of the documentation work" run --doc
claim "tokio's own tests of its locks pass" tokios_own
if test -n "$(find "$crates" -maxdepth 1 -name 'hyper-[0-9]*')"; then
	claim "a server of hyper is right under load, and so are its dumps" \
		cargo run -q --manifest-path served/Cargo.toml
else
	skip "a server of hyper under load" "there is no librust-hyper-dev"
fi
claim "tasks of many kinds show where they wait, built for release" run --release --test zoo
claim "the package builds libtdt alone" alone
plan
