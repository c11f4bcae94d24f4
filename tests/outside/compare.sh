#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# bench/compare, with made-up results of benchmarks.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
compare=${top_builddir:?}/bench/compare

# run FILE BENCH FIGURE...: append a run to FILE.  A figure is NAME=VALUES or NAME/BASELINE=VALUES.
run()
{
	file=$1
	bench=$2
	shift 2
	figures=
	for figure; do
		name=${figure%%=*}
		values=${figure#*=}
		to=
		case $name in
		*/*) to=", \"to\": \"${name#*/}\"" ;;
		esac
		figures="$figures${figures:+, }{\"name\": \"${name%/*}\"$to, \"values\": [$values]}"
	done
	echo "{\"bench\": \"$bench\", \"unit\": \"ns\", \"figures\": [$figures]}" >>"$tmp/$file"
}

# compares TEXT OLD NEW: without its spaces, what it prints is what standard input says.
compares()
{
	tr -s ' ' >"$tmp/expected"
	"$compare" "$tmp/$2" "$tmp/$3" | tr -s ' ' >"$tmp/got"
	same "$1" "$tmp/expected" "$tmp/got"
}

run old poll "a poll=10, 11, 10, 9, 10, 10, 11"
run slow poll "a poll=20, 22, 20, 18, 20, 20, 22"
compares "a figure that takes twice as long is seen" old slow <<'END'
poll old new ratio 95 % certain
 a poll, ns 10 20 2.000 1.818 to 2.200 MORE
1 of 1 figures differ for certain
END
compares "so is one that takes half as long" slow old <<'END'
poll old new ratio 95 % certain
 a poll, ns 20 10 0.500 0.455 to 0.550 LESS
1 of 1 figures differ for certain
END
compares "a run does not differ from itself" old old <<'END'
poll old new ratio 95 % certain
 a poll, ns 10 10 1.000 0.909 to 1.100
0 of 1 figures differ for certain
END

run noisy poll "a poll=10.4, 10.4, 10.4, 10.4, 10.4"
run steady poll "a poll=10, 10, 10, 10, 10"
compares "a difference of 4 % between two runs is not enough" steady noisy <<'END'
poll old new ratio 95 % certain
 a poll, ns 10 10.4 1.040 1.040 to 1.040
0 of 1 figures differ for certain
END

# A machine that has become slower in the middle of the run.
run before poll "bare=2, 2, 2, 2, 2" "traced/bare=8, 8, 8, 8, 8"
run after poll "bare=2, 2, 4, 4, 4" "traced/bare=8, 8, 16, 16, 16"
compares "a figure with a baseline is compared by its ratio to it" before after <<'END'
poll old new ratio 95 % certain
 bare, ns 2 4 2.000 1.000 to 2.000
 traced, to bare 4 4 1.000 1.000 to 1.000
0 of 2 figures differ for certain
END

run before wake "gone=1, 1, 1, 1, 1" "few=1, 2" "none=0, 0, 0, 0, 0"
run after wake "few=3, 4" "none=1, 1, 1, 1, 1" "added=1"
compares "what cannot be compared is said" before after <<'END'
poll old new ratio 95 % certain
 bare, ns 2 4 2.000 1.000 to 2.000
 traced, to bare 4 4 1.000 1.000 to 1.000
wake old new ratio 95 % certain
 gone, ns only in old
 few, ns 1.5 3.5 2.333 too few rounds
 none, ns 0 1 no ratio
 added, ns only in new
0 of 4 figures differ for certain
END

run twice poll "text=1, 1, 1, 1, 1" "text=5, 5, 5, 5, 5"
compares "two figures with one name are kept apart" twice twice <<'END'
poll old new ratio 95 % certain
 text, ns 1 1 1.000 1.000 to 1.000
 text, ns 5 5 1.000 1.000 to 1.000
0 of 2 figures differ for certain
END

# Rounds that agree with each other, in runs that do not.
for speed in 10 11 12 13 14; do
	run old-runs poll "a poll=$speed, $speed, $speed, $speed, $speed"
done
for speed in 11 12 13 14 15; do
	run new-runs poll "a poll=$speed, $speed, $speed, $speed, $speed"
done
compares "of several runs it is the runs that have to agree" old-runs new-runs <<'END'
poll old new ratio 95 % certain
 a poll, ns 12 13 1.083 0.857 to 1.364
0 of 1 figures differ for certain
END

for speed in 10.4 10.4 10.4 10.4 10.4; do
	run noisy-runs poll "a poll=$speed, $speed"
	run steady-runs poll "a poll=10, 10"
done
compares "of several runs a small difference counts" steady-runs noisy-runs <<'END'
poll old new ratio 95 % certain
 a poll, ns 10 10.4 1.040 1.040 to 1.040 MORE
1 of 1 figures differ for certain
END

# fails STATUS TEXT ARGUMENTS...: and says TEXT.
fails()
{
	status=$1
	words=$2
	shift 2
	"$compare" "$@" >"$tmp/said" 2>&1
	test $? = "$status" && grep -qx "$words" "$tmp/said"
}
cp "$tmp/old" "$tmp/damaged"
echo '{"bench": 3}' >>"$tmp/damaged"
claim "a line that is no result is refused" \
	fails 1 "compare: $tmp/damaged:2: not a line of a benchmark" "$tmp/old" "$tmp/damaged"
claim "a file that is not there is refused" \
	fails 1 "compare: $tmp/none: No such file or directory" "$tmp/none" "$tmp/old"
claim "two files are needed" fails 2 "Usage: compare OLD NEW" "$tmp/old"
claim "--help tells how it is used" fails 0 "Usage: compare OLD NEW" --help

# --- What benchmarks keep ---

keeps()
{
	"$top_builddir/bench/registry" --quick --keep="$tmp/kept" &&
		"$top_builddir/bench/registry" --quick --keep="$tmp/kept" &&
		test "$(wc -l <"$tmp/kept")" = 2 &&
		"$compare" "$tmp/kept" "$tmp/kept" >"$tmp/said" &&
		grep 'ns a task  *[0-9.]* *[0-9.]*  *1.000  [0-9.]* to [0-9.]*$' "$tmp/said"
}
if test "$SANITIZERS" = no; then
	claim "what a benchmark keeps, run by run, can be compared" keeps
else
	skip "what a benchmark keeps, run by run, can be compared" \
		"of benchmarks, sanitizers make long runs and no figures"
fi
plan
