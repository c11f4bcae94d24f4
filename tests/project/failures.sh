#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What CI says at its end of a step that failed (.ci/list-failures).
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

bash --version >/dev/null 2>&1 || skip_all "there is no bash"
ci=$(cd "$top_srcdir/.ci" && pwd)
cd "$tmp" || exit

# lists TEXT: what is said of the output on standard input is in the file `expected`.
lists()
{
	bash "$ci/list-failures" check-slow >got
	same "$1" expected got
}

# section RESULT TEST: the head of a section of test-suite.log, as automake writes it.
section()
{
	printf '\n%s\n%s\n\n' "$1: $2" "$(echo "$1: $2" | tr -c '\n' =)"
}

# suite_log: the end of a run.
suite_log()
{
	printf '=====\n   tdt 0.1.0: test-suite.log\n=====\n\n# TOTAL: 9\n'
	cat
	printf '\n=====\nTestsuite summary for tdt 0.1.0\n=====\n# FAIL: 1\n'
	echo 'make: *** [all] Error 2'
}

cat >expected <<'END'
check-slow: failed: tests/a tests/check_b
- tests/a
-expected
+got
not ok 2 - two
- tests/check_b
==7== Invalid read
not ok 1 - check_b.c:x:reads: Early exit with return value 99
ERROR: tests/check_b - exited with status 1
END
{
	echo "not ok 9 - this is not in the log"
	{
		section FAIL tests/a
		printf '%s\n' 'ok 1 - one' 'PASS: tests/a.sh 1 - one' -expected +got \
			'not ok 2 - two' 'FAIL: tests/a.sh 2 - two' 1..2
		section SKIP tests/c
		printf '%s\n' '1..0 # SKIP no gdb'
		section ERROR tests/check_b
		printf '%s\n' '==7== Invalid read' \
			'not ok 1 - check_b.c:x:reads: Early exit with return value 99' \
			'ERROR: tests/check_b - exited with status 1'
		section PASS tests/d
		echo 'a test that passes may print'
	} | suite_log
} >output
lists "each test that failed is named, with what it printed" <output

{
	printf '%s\n' 'check-slow: failed: tests/a' '- tests/a'
	seq -f 'head %g' 12
	echo ...
	echo 'not ok 1 - in the middle'
	echo ...
	seq -f 'tail %g' 12
} >expected
{
	section FAIL tests/a
	seq -f 'head %g' 12
	seq 1000
	echo 'not ok 1 - in the middle'
	seq 1000
	seq -f 'tail %g' 12
} | suite_log >output
lists "of a long log the beginning, the end and what failed" <output

for i in $(seq 100); do
	section FAIL "tests/t$i"
	seq -f "a line %g" 100
	echo "not ok 1 - one"
done | suite_log >output
bash "$ci/list-failures" check-slow <output >got
claim "many failures are no longer than a screen" test "$(wc -l <got)" -lt 50
claim "and all are named" grep -q '^check-slow: failed: tests/t1 .* tests/t100$' got

{
	printf '%s\n' 'check-slow: failed: no test' "a.c:1:1: error: expected ';'"
	seq -f 'other files %g' 986 999
	echo 'make: *** [all] Error 2'
} >expected
{
	echo "a.c:1:1: error: expected ';'"
	seq -f 'other files %g' 999
	echo 'make: *** [all] Error 2'
} >output
lists "what can't be built comes with the compiler's error" <output

plan
