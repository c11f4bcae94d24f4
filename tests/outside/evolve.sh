#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# tdt and a library of another version: structs that are longer, since a later library appended
# fields, and those of the first release.  What tdt prints of them is what it prints of its own.
#
# TDT_OLD=PROGRAM tries the other direction, too: an old tdt and today's images and processes.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
# shellcheck source=tests/lib/outside.sh
. "${top_srcdir:?}/tests/lib/outside.sh"
LC_ALL=C
DEBUGINFOD_URLS=
export LC_ALL DEBUGINFOD_URLS

image=${top_builddir:?}/tests/outside/registry_image
reader=$top_builddir/tests/outside/registry_reader

# look TDT SIZE...: what the readers print of such an image is in $tmp/seen.
look()
{
	with=$1
	shift
	"$image" "$@" >"$tmp/image" && {
		"$with" ps --core="$tmp/image" && "$with" ps --threads --core="$tmp/image" &&
			"$with" bt --core="$tmp/image" && "$with" ps --json --core="$tmp/image" &&
			"$reader" -a "$tmp/image"
	} >"$tmp/printed" 2>&1
	result=$?
	sed 's/ (took [^)]*)//' "$tmp/printed" >"$tmp/seen"
	return $result
}

# as_ever TEXT SIZE...
as_ever()
{
	text=$1
	shift
	claim "$text are read" look "$tdt" "$@"
	same "and are shown as ever" "$tmp/ours" "$tmp/seen"
}

# longer NAME BYTES: NAME=SIZE.
longer()
{
	sed "s/.*\\($1=[0-9]*\\).*/\\1/" "$tmp/sizes" |
		awk -F= -v more="$2" '{ print $1 "=" $2 + more }'
}

"$image" sizes >"$tmp/sizes"
claim "an image is read" look "$tdt" none
mv "$tmp/seen" "$tmp/ours"
for what in 'task 4' 'fell' 'worker'; do
	claim "it has $what" grep -q "$what" "$tmp/ours"
done
for bytes in 8 64; do
	for struct in record registry panic thread; do
		as_ever "images whose ${struct}s have $bytes bytes more" "$(longer $struct $bytes)"
	done
done
# shellcheck disable=SC2046 # words
as_ever "images in which all of them have more" $(longer record 24) $(longer registry 128) \
	$(longer panic 40) $(longer thread 16)

# The sizes of the first release never shrink.
as_ever "images of the first release" registry=256 record=280 panic=968 \
	thread=56
refuses_shorter()
{
	! look "$tdt" record=272 && grep "use the tdt" "$tmp/seen"
}
claim "records that are shorter are refused, in a sentence" refuses_shorter

# --- The other direction ---

if test -z "${TDT_OLD-}"; then
	skip "an old tdt reads today's library" "TDT_OLD names none"
	plan
	exit
fi
lists_ours()
{
	"$TDT_OLD" ps --core="$tmp/image" >"$tmp/seen" && grep -q 'task 4' "$tmp/seen" &&
		"$TDT_OLD" bt --core="$tmp/image" >"$tmp/seen" &&
		grep -q '"fell" panicked' "$tmp/seen"
}
"$image" none >"$tmp/image"
claim "an old tdt reads today's images" lists_ours
if test "${WITH_RUNTIME:?}" = yes; then
	claim "a program starts" start "$top_builddir/tests/outside/leaves"
	claim "an old tdt lists its tasks" sh -c "'$TDT_OLD' ps $pid | grep join_all"
	claim "and requests their trees" sh -c "'$TDT_OLD' bt $pid | grep tdt_mutex_lock"
	stop
else
	skip "an old tdt reads a process" "there is no runtime"
fi
plan
