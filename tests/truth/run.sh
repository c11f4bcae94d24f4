#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Compare programs: what is true of their leaves with what the library says of them (README).  In a
# build directory:
#
#	run.sh for SECONDS          random ones, from TDT_TEST_SEED on
#	run.sh programs FILE...     prints the status of each, too
#	run.sh impossible           prints why they can't be compared here, if so
#
# Prints what was wrong, and sums it up.  The status is 1 if a program has a mismatch; it is kept
# in truth-failed/. The environment is that of the tests; top_srcdir, TEST_GCC...
set -u
here=$(cd "${top_srcdir:?}/tests/truth" && pwd)
failed=$PWD/truth-failed
libs="-L${top_builddir:?}/.libs -Wl,-rpath,$top_builddir/.libs -ltdt"
awk=${AWK:-awk}
patient="timeout 300" # what takes so long hangs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # by way of the other
DEBUGINFOD_URLS=
export DEBUGINFOD_URLS

# head_of PROGRAM: the first line says how it is built, `// COMPILER FLAGS... : PACKAGING`.
head_of()
{
	read -r _ compiler flags <"$1"
	packaging=${flags##* : }
	flags=${flags%% : *}
	standard=
	case $compiler in
	gcc) driver=$TEST_GCC ;;
	clang) driver=$TEST_CLANG ;;
	g++) driver=$TEST_GXX ;;
	clang++) driver=$TEST_CLANGXX ;;
	*) return 1 ;;
	esac
	case $compiler in
	*++) standard=-std=c++20 ;;
	esac
}

# Why the programs can't be compared; nothing if they can.
impossible()
{
	if test "$SANITIZERS" != no; then
		echo "a sanitized library needs a sanitized program"
	elif ! test -e "$top_builddir/.libs/libtdt.so"; then
		echo "built without a shared library"
	elif ! command -v objcopy strip addr2line >/dev/null; then
		echo "there is no objcopy, strip or addr2line (Debian: binutils)"
	elif ! gdb -nx -batch -ex "python import subprocess" -ex run -ex "info inferiors" \
		--args true 2>&1 | grep -q "exited normally"; then
		echo "there is no gdb that has Python and may run a program"
	fi
}

# What is the same for all programs, built once.
# shellcheck disable=SC2086 # lists of flags
build_common()
{
	"${TEST_GCC:-$TEST_CLANG}" -O0 -g -D_GNU_SOURCE -fPIC -shared -I"$top_srcdir/include" \
		"$here/run.c" -o "$work/librun.so" $libs
}

# shellcheck disable=SC2086
build()
{
	(cd "$work" && "$driver" $standard -w $flags -I"$here" -I"$top_srcdir/include" "$1" \
		-o program \
		-L. -Wl,-rpath,"$work" -lrun $libs) || return
	case $packaging in
	whole) ;;
	symbols) strip --strip-debug "$work/program" ;;
	debuglink)
		objcopy --only-keep-debug "$work/program" "$work/program.debug" &&
			strip "$work/program" &&
			objcopy --add-gnu-debuglink="$work/program.debug" "$work/program"
		;;
	*) return 1 ;;
	esac
}

# What is true of the leaves: a program of coroutines knows itself.
truth()
{
	case $1 in
	*.cc) $patient "$work/program" truth >"$work/truth" ;;
	*) TRUTH=$work/truth $patient gdb -nx -batch -x "$here/frames.py" "$work/program" ;;
	esac && grep -qx end "$work/truth"
}

ours()
{
	$patient "$work/program" trace >"$work/ours" || return
	case $1 in
	*.cc) "$awk" -f "$here/coroutines.awk" "$work/ours" >"$work/own" &&
		mv "$work/own" "$work/ours" ;;
	esac
}

# What the program tdt says of polls that go on, from outside and of a core file.
outside()
{
	case $1 in
	*.c) ;;
	*) return 0 ;;
	esac
	TRUTH=$work/truth OURS=$work/ours TDT=$top_builddir/tdt FOLDER=$work HERE=$here \
		PYTHONDONTWRITEBYTECODE=1 $patient \
		gdb -nx -batch -x "$here/outside.py" "$work/program" >"$work/log" 2>&1
	if ! grep -qx end "$work/truth"; then
		echo "mismatch: gdb fails"
		tail -n 5 "$work/log"
		return
	fi
	compare_lists | sed 's/^compared/outside/'
}

# Polls that go on.  Coroutines have frames that were never called; and of other processors nothing
# is known.
step()
{
	case $1,$(uname -m) in
	*.c,x86_64) $patient "$top_builddir/tests/truth/step" "$work/program" 1 ;;
	esac
}

compare_lists()
{
	"$awk" -v flags="$compiler $flags" -f "$here/classes.awk" -f "$here/compare.awk" \
		"$work/symbols" "$work/truth" "$work/ours"
}

# compare PROGRAM: print what compare.awk does, and step.
compare()
{
	if { build "$1" && (cd "$work" && ours "$1" && truth "$1"); } >"$work/log" 2>&1; then
		case $packaging in
		debuglink) nm "$work/program.debug" ;;
		*) nm "$work/program" ;;
		esac 2>/dev/null | sort -k 1,1 -k 3 >"$work/symbols"
		compare_lists && outside "$1" && step "$1" && return
	fi
	echo "mismatch: it is not built, or fails"
	tail -n 5 "$work/log"
}

# try PROGRAM: the same with the file as it is told.  1: there is a mismatch; 77: it can't be built.
try()
{
	if ! head_of "$1"; then
		echo "$1: its first line doesn't say how it is built"
		return 1
	fi
	if test -z "$driver"; then
		echo "check-truth: skipped: there is no $compiler"
		return 77
	fi
	case $flags in
	*-fuse-ld=lld*)
		if ! command -v ld.lld >/dev/null; then
			echo "check-truth: skipped: there is no lld"
			return 77
		fi
		;;
	esac
	rm -rf "$work"/program* "$work"/*.dwo "$work/truth" "$work"/truth-*
	compare "$1" >"$work/result"
	cat "$work/result" >>"$work/results"
	grep -q '^mismatch' "$work/result" || return 0
	echo "$1: $compiler $flags, $packaging"
	grep -v "^class\|^compared\|^outside\|^stepped" "$work/result" |
		head -n 60 # the first few tell enough
	return 1
}

sum_up()
{
	"$awk" '/^compared/ { programs++; leaves += $2; frames += $3; inlined += $4 }
		/^outside/ { looks += $2; looked += $3 }
		/^stepped/ { requests += $2; stepped += $3 }
		/^class/ { classes[substr($0, 7)]++ }
		/^mismatch/ { mismatches++ }
		END {
			printf "truth: %d programs, %d leaves, %d frames, %d of them inlined; ",
				programs, leaves, frames, inlined
			printf "%d mismatches\n", mismatches
			printf "truth: %d stacks of polls that go on, %d frames\n",
				requests, stepped
			printf "truth: %d of them from outside and of core files, %d frames\n",
				looks, looked
			for (class in classes)
				printf "truth: %d of %s\n", classes[class], class
		}' "$work/results"
}

# A mismatch outweighs programs that were left out.
add_status()
{
	if test "$1" = 1 || { test "$1" = 77 && test "$status" = 0; }; then
		status=$1
	fi
}

programs()
{
	for program; do
		case $program in
		/*) ;;
		*) program=$PWD/$program ;;
		esac
		try "$program"
		result=$?
		add_status $result
		echo "truth: $result of ${program##*/}"
	done
}

# The random program of a seed; one of four is of coroutines.
random_program()
{
	if test $(($1 % 4)) = 0; then
		program=$work/$1.cc
		"$top_builddir/tests/truth/generate_cxx" "$1" >"$program"
	else
		program=$work/$1.c
		"$top_builddir/tests/truth/generate" "$1" "$here/links" >"$program"
	fi
}

random_programs()
{
	seed=${TDT_TEST_SEED:-$(od -A n -N 4 -t u4 /dev/urandom | tr -d ' ')}
	echo "truth: from TDT_TEST_SEED=$seed on"
	end=$(($(date +%s) + $1))
	while
		random_program "$seed"
		try "$program"
		result=$?
		add_status "$result"
		if test "$result" = 1; then
			mkdir -p "$failed" && cp "$program" "$failed/"
			echo "truth: kept as $failed/${program##*/}; alone:" \
				"make check-truth SECONDS=0 TDT_TEST_SEED=$seed"
		fi
		rm "$program"
		seed=$((seed + 1))
		test "$(date +%s)" -lt "$end"
	do :; done
}

if test "$1" = impossible; then
	impossible
	exit
fi
status=0
: >"$work/results"
why=$(impossible)
if test -n "$why"; then
	echo "check-truth: skipped: $why"
	exit
fi
build_common || exit
goal=$1
shift
case $goal in
for)
	random_programs "$1"
	;;
programs)
	programs "$@"
	;;
esac
sum_up
# A random run does without some compilers.
test "$goal" = programs || test "$status" = 1 || status=0
exit "$status"
