#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Compares with those of the other crates that a directory of crates has, as cargo vendor makes it:
#
#	rust/compare/run.sh CRATES [bench]
#
# What the directory lacks is left out, and the program says so.  The dumps of tokio are measured if
# its feature `taskdump` is there, and hooks if tokio has them all.  Cargo finds libtdt as ever.
set -e
crates=$(cd "${1:?"usage: run.sh CRATES [bench]"}" && pwd)
shift
cd "$(dirname "$0")"
here=$PWD
build=${CARGO_TARGET_DIR:-$here/target}/compare
mkdir -p "$build/home"

features=
left_out='^$'
for crate in async-backtrace tasktrace; do
	if test -n "$(find "$crates" -maxdepth 1 -name "$crate-[0-9]*")"; then
		features=$features,$crate
	else
		left_out="$left_out\|^$crate = "
	fi
done
if grep -q '^taskdump = \["dep:' "$crates"/tokio-[0-9]*/Cargo.toml; then
	features=$features,taskdump
else
	left_out="$left_out\|^taskdump = "
fi
if grep -q on_before_task_poll "$crates"/tokio-[0-9]*/src/runtime/builder.rs; then
	features=$features,hooks
fi
case $features in
*taskdump* | *hooks*) export RUSTFLAGS="--cfg tokio_unstable" ;;
esac
# The manifest without those lines lies elsewhere: cargo resolves also what is optional.
sed -e "/$left_out/d" -e "s|path = \"|path = \"$here/|" Cargo.toml >"$build/Cargo.toml"
release=
test "$1" != bench || release=--release
cat >"$build/home/config.toml" <<END
[source.crates-io]
replace-with = "crates"
[source.crates]
directory = "$crates"
END
cd "$build"
# shellcheck disable=SC2086 # an option or none
CARGO_HOME=$build/home exec cargo run -q $release --offline --features "${features#,}" -- "$@"
