#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# slowest.sh BEGIN: print the ten slowest of the tests that have ended since BEGIN, which is in
# seconds since 1970, with the time that each took and the CPU time of its processes.  driver.sh has
# left both in the .trs files below the working directory, whose names lack the .sh of a script.
set -u
export LC_ALL=C

find . -name '*.trs' -newermt "@$1" -exec sed -n 's|^:seconds:|{}|p' {} \; |
	sort -k2,2nr | head -n 10 |
	awk 'NR == 1 { print "the slowest tests, in seconds, and their CPU time:" }
		{
			sub(/^\.\//, "", $1)
			sub(/\.trs$/, $4 ~ /\.sh$/ ? ".sh" : "", $1)
			printf "%7.1f %7.1f  %s\n", $2, $3, $1
		}'
