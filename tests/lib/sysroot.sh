#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# sysroot.sh FOLDER: unpack Debian's libraries for arm64 into FOLDER, which a cross compiler takes
# for the root of the system.  Nothing is installed, and apt's own lists stay as they are.  The exit
# status is 77 if they cannot be fetched.
set -eu
root=$1
packages='libc6-dev libdw-dev libunwind-dev libjansson-dev libncurses-dev libiberty-dev zlib1g-dev
	liblzma-dev check systemtap-sdt-dev libstdc++-12-dev'

test ! -e "$root/complete" || exit 0
apt=$root.apt
mkdir -p "$root" "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
apt()
{
	LC_ALL=C apt-get -q -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
		-o Dir::Cache::archives="$apt/archives" -o APT::Architecture=arm64 \
		-o APT::Architectures=arm64 -o APT::Install-Recommends=false \
		-o APT::Update::Error-Mode=any -o Acquire::Retries=3 "$@" >"$apt/log" 2>&1 && return
	cat "$apt/log" >&2
	# Without a network, but not if the mirror lacks the file.
	grep -q ' 40[34] ' "$apt/log" || ! grep -q 'Failed to fetch' "$apt/log" || exit 77
	exit 1
}

case $apt in
/*) ;;
*) apt=$PWD/$apt ;;
esac
apt update
# shellcheck disable=SC2086 # words
apt install -y -d $packages
for package in "$apt"/archives/*.deb; do
	dpkg-deb -x "$package" "$root"
done
rm -r "$apt"
touch "$root/complete"
