#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Find out whether Clang and its libFuzzer are there.  If not, say what to install, and fail.

if ! command -v clang >/dev/null; then
	echo 'make fuzz needs Clang and its libFuzzer (Debian: clang, libclang-rt-dev)' >&2
	exit 1
fi
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
cat >"$work/try.c" <<'END'
int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size)
{
	return size == 1 && data[0] == 1;
}
END
clang -fsanitize=fuzzer,address,undefined "$work/try.c" -o "$work/try" 2>"$work/errors" && exit
cat "$work/errors" >&2
version=$(clang -dumpversion)
echo "make fuzz needs Clang's libFuzzer (Debian: libclang-rt-${version%%.*}-dev)" >&2
exit 1
