# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# Options that make a compiler put code of its own into functions, or align their frames.  Source
# this after tap.sh.
#
# instrumented COMPILER COMMAND...: calls `COMMAND COMPILER FLAGS...` with all options at once, at
# -O0; with TDT_TEST_FULL=1 at several levels; with INSTRUMENTATION=each (make
# check-instrumentation) with each option alone, at each level.  Programs are linked with hooks.o,
# which defines what instrumented code calls.

build_hooks()
{
	$CC -O2 -g -c "${top_srcdir:?}/tests/outside/fixtures/hooks.c" -o hooks.o
}

instrumented()
{
	compiler=$1
	shift
	coverage=trace-pc own=-mforce-drap undefined=undefined
	case $compiler in
	*clang*)
		# Clang 14 cannot compile coroutines that are templates with -fsanitize=function.
		coverage=trace-pc-guard own=-finstrument-functions-after-inlining
		undefined="undefined -fno-sanitize=function"
		;;
	esac
	all="-fstack-protector-all -finstrument-functions -fsanitize-coverage=$coverage --coverage"
	all="$all -fcf-protection=full -mstackrealign"
	if test "${INSTRUMENTATION-}" != each; then
		call_with "-O0 $all" "$@"
		test "${TDT_TEST_FULL-}" = 1 || return 0
		for flags in "-O1 -pg" -O2 "-Os -flto" "-O2 -fsanitize=address"; do
			call_with "$flags $all" "$@"
		done
		return 0
	fi
	for level in -O0 -O1 -O2 -O3 -Os; do
		for flags in -fstack-protector-all -finstrument-functions \
			-fsanitize-coverage=$coverage --coverage -pg -fcf-protection=full \
			-mstackrealign "-mstackrealign -fno-omit-frame-pointer" $own \
			-fsanitize=address "-fsanitize=$undefined" -fsanitize=thread \
			-flto "-flto -mstackrealign" "-pg -flto"; do
			call_with "$level $flags" "$@"
		done
	done
}

# call_with FLAGS COMMAND...: nothing but a skip, if the compiler cannot make a program with FLAGS.
# shellcheck disable=SC2086 # lists of flags
call_with()
{
	with=$1
	shift
	echo 'int main(void) { return 0; }' >able.c
	if "$compiler" $with -x c able.c -x none hooks.o -o able >/dev/null 2>&1 && ./able; then
		"$@" "$compiler" $with
		rm -f ./*.gcda
	else
		skip "$compiler $with" "it can't"
	fi
}
