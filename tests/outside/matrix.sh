#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# One question has one answer: tasks of all shapes, which know what is true of them (matrix.c), are
# asked for in every way, and the answers are compared (matrix.py).  matrix.tsv declares what each
# way lacks; docs/limits.md has what of that is a limit.
#
# With TDT_TEST_FULL=1 also: one worker, a poll that computes, a child of fork(), a watch, core
# files and gdb.  Each difference is in the log.  MATRIX_KEEP=FOLDER keeps the answers.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C.UTF-8
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS

here=$top_srcdir/tests/outside
command -v python3 >/dev/null || skip_all "there is no python3"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# The part of the page between the two marks.
written()
{
	sed -n '/^<!-- matrix.tsv begins/,/^<!-- matrix.tsv ends/p' "$top_srcdir/docs/limits.md" |
		sed '1d;$d'
}

python3 "$here/matrix.py" limits "$here/matrix.tsv" >"$tmp/limits"
written >"$tmp/written"
same "docs/limits.md has the limits of matrix.tsv" "$tmp/limits" "$tmp/written"

test "${WITH_RUNTIME:?}" = yes || {
	skip "the answers are compared" "there is no runtime"
	plan
	exit
}

# prints LINE: the program has printed it.
prints()
{
	grep -q "$1" "$tmp/said"
}

# compare PART...: ask in these ways, and compare.
compare()
{
	python3 "$here/matrix.py" tdt="$tdt" pid="$pid" truth="$tmp/said" folder="$tmp/answers" \
		table="$here/matrix.tsv" configuration="$configuration" parts="$1" \
		core="$top_srcdir/tools/gdb/tdt.py" fork="$(sed -n 's/^child //p' "$tmp/said")" \
		unasked="$tmp/copy" asked="$tmp/recording" >"$tmp/compared" 2>&1
	status=$?
	cat "$tmp/compared"
	sed -n 's/^cells //p' "$tmp/compared" >>"$tmp/cells"
	return $status
}

# begin CONFIGURATION ARGUMENTS...: run the program, with the recorder on.
begin()
{
	configuration=$1
	shift
	rm -rf "$tmp/answers" "$tmp/copy" "$tmp/recording"
	mkdir "$tmp/answers"
	TDT_RECORD=4M TDT_RECORD_DIR=$tmp/recording MATRIX_DIR=$tmp/recording
	export TDT_RECORD TDT_RECORD_DIR MATRIX_DIR
	start "$top_builddir/tests/outside/matrix" "$@"
}

# ask_inside WHAT: the library's own answers.
ask_inside()
{
	echo "$1 $tmp/answers" >&3
	wait_until prints "^$1 are there"
}

end()
{
	child=$(sed -n 's/^child //p' "$tmp/said")
	# shellcheck disable=SC2086 # there may be none
	kill -KILL $pid $child
	stop 2>/dev/null
	test -z "${MATRIX_KEEP-}" || cp -r "$tmp/answers" "$tmp/said" "$MATRIX_KEEP"
}

# ask_all WHAT PARTS ARGUMENTS...: PARTS are asked before any request is made.
ask_all()
{
	what=$1
	parts=$2
	shift 2
	if ! begin plain "$@"; then
		cat "$tmp/said" "$tmp/dumped" >&2
		claim "$what: all tasks rest" false
		return
	fi
	if ! may_read; then
		end
		skip "$what" "reading another process is not permitted here: $(cat "$tmp/why")"
		return
	fi
	ask_inside tasks >&2
	claim "$what: all answers without a request are one" \
		compare "tasks,$parts,recording$perfetto"
	cp -r "$tmp/recording" "$tmp/copy"
	claim "$what: so are those with requests" compare with_requests
	ask_inside trees >&2
	end
	claim "$what: so are those from inside, and of the recording" compare trees,unasked,asked
}

: >"$tmp/cells"
perfetto=,perfetto
command -v protoc >/dev/null || {
	skip "Perfetto traces" "there is no protoc"
	perfetto=
}
ask_all "two workers" without_requests 2
if test "${TDT_TEST_FULL-}" = 1; then
	ask_all "one worker" without_requests,fork 1 busy fork
	core=
	if ! command -v gdb >/dev/null; then
		skip "core files and gdb" "there is no gdb"
	elif test "${SANITIZERS:?}" != no; then
		skip "core files and gdb" "sanitizers map terabytes"
	else
		core=core
		begin plain 2
		claim "core files and gdb" compare core
		end
	fi
	TDT_WATCH=1ms
	export TDT_WATCH
	begin watch 2
	claim "watched: the answers are one" compare "without_requests${core:+,$core}"
	end
fi
awk '{ cells += $1; differ += $2
       for (i = 3; i <= NF; i++) { split($i, part, /[:=]/); n[part[1]] += part[3] } }
     END { printf "# %d cells compared, %d differ: %d by limits of the method, %d by defects\n",
	   cells, differ, n["LIMIT"], n["BUG"] }' "$tmp/cells"
plan
