#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Fibers that switch at full speed while they are read, for some seconds: `make check-fibers` has it
# for a minute.
exec "${top_builddir:?}/tests/stress/fibers" 3
