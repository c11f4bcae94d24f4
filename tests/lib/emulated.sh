#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# emulated.sh SYSROOT PROGRAM: run a test program for aarch64.  In a child of fork() qemu-user may
# fail by an assertion of its own, and says so in words that end a test.  A test that needs the
# child fails by itself.
set -o pipefail
./libtool --mode=execute qemu-aarch64 -cpu max -L "$1" "$2" | sed '/^Bail out! ERROR:/d'
