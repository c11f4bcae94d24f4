#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# What CI makes of skips (.ci/list-skips, .ci/check-skips), on a false build directory.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

bash --version >/dev/null 2>&1 || skip_all "there is no bash"
ci=$(cd "$top_srcdir/.ci" && pwd)
mkdir -p "$tmp/build-slow/tests" "$tmp/tests"
cd "$tmp" || exit

cat >output <<'END'
== slow: check
PASS: tests/a.sh 1 - nothing # SKIP is what this test is about
SKIP: tests/a.sh 2 - a core file # SKIP there is no gdb
SKIP: tests/b - under valgrind threads are elsewhere
SKIP: ../../tests/c.sh - there is no perf | here
SKIP: tests/c_silent
SKIP: tests/c_silent 3 # SKIP no name
check-slow: skipped: the scripts
check-slow: SEED=7; skipped: the scripts, and tests/b
=============================
   tdt 0.1.0: test-suite.log
=============================

SKIP: tests/b
=============

1..0 # SKIP under valgrind threads are elsewhere
SKIP: tests/b - under valgrind threads are elsewhere

SKIP: tests/c_silent
====================

============================================================================
Testsuite summary for tdt 0.1.0
============================================================================
END
echo '# not tried: this is older' >tests/old.log
touch -d '1 hour ago' tests/old.log
touch -d '1 minute ago' stamp
printf '%s\n' '# not tried: no IPv6 here' 'PASS: tests/net 1 - it says # not tried: x' \
	>build-slow/tests/net.log

bash "$ci/list-skips" check-slow stamp <output >got
cat >expected <<'END'
check-slow | tests/a.sh | a core file # SKIP there is no gdb
check-slow | tests/b | under valgrind threads are elsewhere
check-slow | tests/c.sh | there is no perf | here
check-slow | tests/c_silent | 
check-slow | tests/c_silent | # SKIP no name
check-slow | the goal | the scripts
check-slow | the goal | the scripts, and tests/b
check-slow | tests/net | not tried: no IPv6 here
END
same "skips of the output, of goals and of new logs are found, each once" expected got

# checks STATUS: the found skips with the list on standard input; what is printed is in `said`.
checks()
{
	cat >list
	bash "$ci/check-skips" list <got >said 2>&1
	test $? = "$1"
}

claim "a list that has all of them is fine" checks 0 <<'END'
# steps | test | what | reason

check-slow other | tests/a.sh | a core file * | gdb is not everywhere
check-* | tests/[bc]* | * | a pattern
* | the goal | the scripts* | one line for two
check-slow | tests/net | not tried: no IPv6 here | a container
END
echo "8 skips, of them 0 not allowed" >expected
same "and they are counted" expected said

claim "a skip that is not listed fails" checks 1 <<'END'
* | tests/[abc]* | * | a pattern
* | the goal | the scripts* | one line for two
END
cat >expected <<'END'
skipped, and not in list: check-slow | tests/net | not tried: no IPv6 here
8 skips, of them 1 not allowed
END
same "and is named" expected said

claim "a skip that is listed for other steps only fails, too" checks 1 <<'END'
check check-fast | * | * | not in the slow step
END

claim "a listed skip that does not occur is no failure" checks 0 <<'END'
* | * | * | all
check-fast | tests/b | * | another step
END
cat >expected <<'END'
in list, and not skipped: check-fast | tests/b | *
8 skips, of them 0 not allowed
END
same "but is mentioned" expected said

claim "a line without a reason fails" checks 1 <<'END'
* | * | *
END

plan
