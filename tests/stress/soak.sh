#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The soak, for some seconds: `make check-soak` has it for two minutes.
if test "$WITH_RUNTIME" = no; then
	echo '1..0 # SKIP configured without the runtime'
	exit
fi
exec "${top_builddir:?}/tests/stress/soak" 6
