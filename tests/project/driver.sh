#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What `make check` prints of each test (tests/lib/driver.sh), on tests that print made-up results,
# and of the slowest ones (tests/lib/slowest.sh).
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

top_srcdir=$(cd "$top_srcdir" && pwd)
unset TDT_TEST_VERBOSE V
cd "$tmp" || exit

# tap_driver: automake's TAP driver on the script on standard input, which is called tests/a.
# by_driver: the same through tests/lib/driver.sh; the time that the test took is printed as T.
tap_driver()
{
	cat >test
	"$@" sh "$top_srcdir/build-aux/tap-driver.sh" --test-name tests/a --log-file log \
		--trs-file trs \
		--color-tests "${colors-no}" --enable-hard-errors yes --expect-failure no \
		-- sh ./test
}

by_driver()
{
	tap_driver sh "$top_srcdir/tests/lib/driver.sh" |
		sed -E 's/ +[0-9]+\.[0-9] s/ T/; s/  +/  /'
}

# prints TEXT RESULTS: for a test that is the script RESULTS, what is on standard input is printed.
prints()
{
	cat >expected
	echo "$2" | by_driver >got
	same "$1" expected got
}

prints "a test that passes is one line" 'echo ok 1 - one; echo ok 2 - two; echo 1..2' <<'END'
PASS: tests/a  2 claims T
END
prints "a claim that fails is named, and so is the test" \
	'echo ok 1 - one; echo not ok 2 - two; echo ok 3 - three; echo 1..3' <<'END'
FAIL: tests/a 2 - two
FAIL: tests/a  3 claims T, 1 failed
END
prints "a claim that is skipped is named with its reason" \
	'echo "ok 1 - one # SKIP no gdb"; echo ok 2 - two; echo 1..2' <<'END'
SKIP: tests/a 1 - one # SKIP no gdb
PASS: tests/a  2 claims T
END
prints "a test that is skipped is one line, with its reason" 'echo "1..0 # SKIP no perf"' <<'END'
SKIP: tests/a - no perf
END
prints "a failure that is expected is named" \
	'echo "not ok 1 - one # TODO later"; echo ok 2 - two; echo 1..2' <<'END'
XFAIL: tests/a 1 - one # TODO later
PASS: tests/a  2 claims T
END
prints "a claim that holds although it is expected to fail is a failure" \
	'echo "ok 1 - one # TODO later"; echo 1..1' <<'END'
XPASS: tests/a 1 - one # TODO later
FAIL: tests/a  1 claim T, 1 failed
END
prints "a test that crashes is an error" 'echo ok 1 - one; echo 1..2; kill -SEGV $$' <<'END'
ERROR: tests/a - too few tests run (expected 2, got 1)
ERROR: tests/a - exited with status 139 (terminated by signal 11?)
ERROR: tests/a  1 claim T
END
prints "so is one that prints nothing" ':' <<'END'
ERROR: tests/a - missing test plan
ERROR: tests/a  0 claims T
END

results='echo ok 1 - one; echo not ok 2 - two; echo "# why"; echo 1..2'
echo "$results" | tap_driver env >all
mv log expected_log
mv trs expected_trs
echo "$results" | by_driver >/dev/null
same "the log is automake's" expected_log log
grep -v '^:seconds: ' trs >trs_of_automake
same "so are the results of which recheck and the summary are made" expected_trs trs_of_automake
echo "$results" | TDT_TEST_VERBOSE=1 by_driver >got
same "TDT_TEST_VERBOSE=1 prints each claim" all got
echo "$results" | V=1 by_driver >got
same "V=1 prints each claim, too" all got

echo "echo ok 1 - one; echo 1..1" | colors=yes by_driver >got
printf '\033[0;32mPASS\033[m: tests/a  1 claim T\n' >expected
same "the line has the color of its result" expected got

# slowest BEGIN: what slowest.sh prints of the tests that have ended since then.
slowest()
{
	sh "$top_srcdir/tests/lib/slowest.sh" "$1" >got
}

mkdir -p build-slow/tests
mv trs tests_of_this_run.trs
echo ":seconds: 9.5 1.0 tests/b.sh" >build-slow/tests/b.trs
sed -i 's/^:seconds: [0-9.]* [0-9.]* /:seconds: 10.0 11.3 /' tests_of_this_run.trs
for i in $(seq 20); do
	echo ":seconds: 0.$((100 + i)) 0.0" >"short_$i.trs"
	echo ":seconds: 99.0 99.0" >"old_$i.trs"
	touch -d '1 hour ago' "old_$i.trs"
done
slowest "$(($(date +%s) - 1800))"
head -n 3 got >first
cat >expected <<'END'
the slowest tests, in seconds, and their CPU time:
   10.0    11.3  tests_of_this_run
    9.5     1.0  build-slow/tests/b.sh
END
same "the slowest tests of this run are named as TESTS wants it, those of builds below, too" \
	expected first
claim "ten of them" test "$(wc -l <got)" = 11
slowest "$(($(date +%s) + 1800))"
same "without tests nothing is said" /dev/null got

# It takes the processor for as long as it takes, and that is what is written down.
echo 'i=0; while test $i -lt 200000; do i=$((i + 1)); done; echo ok 1 - one; echo 1..1' |
	by_driver >/dev/null
has_computed()
{
	sed -n 's/^:seconds: [0-9.]* \([0-9.]*\) .*/\1/p' trs >seconds
	cat seconds
	test -s seconds && test "$(cat seconds)" != 0.0
}
claim "the CPU time is that of the test" has_computed
echo "$results" | V=1 by_driver >/dev/null
claim "with V=1 the seconds are noted, too" grep -q '^:seconds: ' trs

# A directory is no log: the TAP driver fails.
fails()
{
	! sh "$top_srcdir/tests/lib/driver.sh" sh "$top_srcdir/build-aux/tap-driver.sh" \
		--test-name tests/a \
		--log-file "$tmp" --trs-file trs -- true
}
claim "a TAP driver that fails is an error of make" fails

plan
