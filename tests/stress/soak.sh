#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The soak, for some seconds: `make check-soak` has it for two minutes.
exec "${top_builddir:?}/tests/stress/soak" 6
