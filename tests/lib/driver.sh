#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# driver.sh TAP-DRIVER ARGUMENT...: run one test by automake's TAP driver, and print one line for
# the whole test instead of a line for each claim that holds.
#
# The arguments are those of the TAP driver, which writes the .log and the .trs file of the test as
# ever.  The .trs file gets one line more, for slowest.sh: the seconds that the test took, the CPU
# seconds of its processes, as far as they were waited for, and its name.  Lines that say something
# else than PASS are printed as the TAP driver prints them, before the line for the test.  A test
# that is skipped as a whole gets no further line.  TDT_TEST_VERBOSE=1, or make's V=1, asks for the
# lines of all claims.
set -u
verbose=${TDT_TEST_VERBOSE-${V-}}

trs=
name=
word=
for argument; do
	test "$word" != --trs-file || trs=$argument
	test "$word" != --test-name || name=$argument
	word=$argument
done

begin=$(date +%s.%N)
if test "$verbose" = 1; then
	"$@" || exit
else
	results=$("$@") || exit
fi
end=$(date +%s.%N)
times >"$trs.times" # a subshell would tell its own times
${AM_TAP_AWK-awk} -v begin="$begin" -v end="$end" -v name="$name" '
	{
		sub(/m/, " ")
		sub(/m/, " ") # of the system time
		cpu = $1 * 60 + $2 + $3 * 60 + $4
	}
	END { printf ":seconds: %.1f %.1f %s\n", end - begin, cpu, name }' "$trs.times" >>"$trs"
rm "$trs.times"
test "$verbose" != 1 || exit 0

printf '%s\n' "$results" | ${AM_TAP_AWK-awk} -v begin="$begin" -v end="$end" '
	{
		shown = $1 # with the color of the terminal, if the TAP driver uses colors
		sub(/:$/, "", shown)
		result = shown
		gsub(/\033\[[0-9;]*m/, "", result)
		count[result]++
		color[result] = shown
		name = $2
	}
	result != "PASS"
	END {
		failed = count["FAIL"] + count["XPASS"]
		claims = failed + count["PASS"] + count["XFAIL"] + count["SKIP"]
		if (count["SKIP"] == NR)
			exit
		whole = count["ERROR"] ? "ERROR" : failed ? "FAIL" : "PASS"
		printf "%s: %-44s %4d claim%s %6.1f s%s\n",
			whole in color ? color[whole] : whole, name,
			claims, claims == 1 ? " " : "s",
			end - begin, failed ? ", " failed " failed" : ""
	}'
