#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs that were compiled with older headers go on working with a later library: abidiff compares
# a stub of the libraries, made from the headers alone, with one of older headers.  A struct that
# begins with its size, or whose size the registry or a recording states, may become longer at its
# end, and a reserve may get a name; all else is a break.
#
# The older headers are those of abi/1.0.abi as soon as 1.0 has written it.  Before that they are
# those of the last commit (TDT_ABI_BASE names another), and a break is allowed if NEWS says in the
# same change what has to be compiled anew.
#
#	tests/project/abi.sh write FILE     write what these headers promise, for abi/
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
LC_ALL=C
export LC_ALL

command -v abidiff >/dev/null || skip_all "there is no abidiff (Debian: abigail-tools)"

# The structs of the layouts that state their sizes in another struct.
sized='tdt_task_record tdt_registry tdt_registry_panic tdt_recording tdt_recording_ring'

# growing HEADERS: the structs that may become longer.
growing()
{
	echo "$sized"
	find "$1" -name '*.h' -exec awk '
		/^struct .*\{$/ { name = $(NF - 1); next }
		name != "" && /^\t(size_t|uint32_t) size;/ { print name }
		NF && !/^[ \t]*(\/\*|\*)/ { name = "" }' {} +
}

# suppress HEADERS: what abidiff is not to mind.
suppress()
{
	for name in $(growing "$1"); do
		printf '[suppress_type]\ntype_kind = struct\nname = %s\n' "$name"
		printf 'has_data_member_inserted_at = end\n'
	done
}

# names WHAT HEADERS: of all structs, or enums.
names()
{
	find "$2" -name '*.h' -exec sed -n "s/^$1 \\(.* \\)\\?\\(tdt_[a-z0-9_]*\\) {\$/\\2/p" {} + | sort -u
}

# mapped SOURCES: the functions and variables of both libraries.
mapped()
{
	sed -n 's/^\t\(tdt_[a-z0-9_]*\);$/\1/p' "$1/src/libtdt.map" "$1/src/runtime/libtdt-rt.map"
}

# stub SOURCES NAME: NAME.so has a variable for the type of each function, struct and enum.
stub()
{
	{
		find "$1/include" -name '*.h' | sort | sed "s|.*|#include \"&\"|"
		names struct "$1/include" | sed 's/.*/struct & *struct_&;/'
		names enum "$1/include" | sed 's/.*/enum & enum_&;/'
		mapped "$1" | sed 's/.*/__typeof__(\&&) of_&;/'
	} >"$2.c"
	${CC:-cc} -g -O0 -w -fPIC -shared -fvisibility=default -I"$1/include" "$2.c" -o "$2.so"
}

# compare OLD NEW: whether a program for the one goes on with the other.
compare()
{
	abidiff --no-show-locs --suppressions "$tmp/suppressions" "$1" "$2" >"$tmp/differences"
	result=$?
	cat "$tmp/differences"
	return $result
}

if test "${1-}" = write; then
	stub "$top_srcdir" "$tmp/new" && abidw --no-show-locs --no-corpus-path "$tmp/new.so" >"$2"
	exit
fi

suppress "$top_srcdir/include" >"$tmp/suppressions"
claim "a stub is made from the headers" stub "$top_srcdir" "$tmp/now"

# --- What the comparison finds ---

# changed SED FILE: the headers, with that change, are in $tmp/now.so's likeness $tmp/other.so.
changed()
{
	rm -rf "$tmp/other" && mkdir -p "$tmp/other/src/runtime" &&
		cp -R "$top_srcdir/include" "$tmp/other/include" &&
		cp "$top_srcdir/src/libtdt.map" "$tmp/other/src" &&
		cp "$top_srcdir/src/runtime/libtdt-rt.map" "$tmp/other/src/runtime" || return
	file=$(grep -rlE "$2" "$tmp/other" | head -n 1)
	cp "$file" "$tmp/before" && sed -i -E "$1" "$file" && ! cmp -s "$tmp/before" "$file" &&
		stub "$tmp/other" "$tmp/other/stub"
}

# allows TEXT SED PATTERN: changed so, the headers keep what they promise.
allows()
{
	claim "$1: made" changed "$2" "$3"
	claim "$1: passes" compare "$tmp/now.so" "$tmp/other/stub.so"
}

# refuses TEXT SED PATTERN
refuses()
{
	claim "$1: made" changed "$2" "$3"
	claim "$1: fails" breaks "$tmp/now.so" "$tmp/other/stub.so"
}

breaks()
{
	! compare "$@"
}

# at_end STRUCT: a script that appends a field.
at_end()
{
	echo "/^struct (.* )?$1 [{]/,/^[}]/ s/^[}].*/\\tuint64_t later;\\n&/"
}

# in_middle STRUCT: a script that inserts a field behind the first one.
in_middle()
{
	echo "/^struct (.* )?$1 [{]/,/^[}]/ s/^\\t(size_t|uint64_t|char magic).*;/&uint64_t later;/"
}

allows "a field at the end of a struct with its size" "$(at_end tdt_frame)" '^struct tdt_frame [{]'
refuses "a field in its middle" "$(in_middle tdt_frame)" '^struct tdt_frame [{]'
allows "a field at the end of the record" "$(at_end tdt_task_record)" '^struct tdt_task_record [{]'
refuses "a field in the record's middle" "$(in_middle tdt_task_record)" '^struct tdt_task_record [{]'
refuses "a field at the end of a struct without a size" "$(at_end tdt_context)" \
	'^struct tdt_context [{]'
refuses "a function with another argument" 's/^uint64_t tdt_handle_id\(/&int more, /' \
	'^uint64_t tdt_handle_id'
refuses "a function that is gone" '/^\ttdt_handle_id;/d' '^.tdt_handle_id;'

# --- Against older headers ---

# base: its name.
base()
{
	cd "$top_srcdir" && git rev-parse -q --verify "${TDT_ABI_BASE-HEAD}^{commit}" >/dev/null &&
		if test -n "${TDT_ABI_BASE-}"; then
			echo "$TDT_ABI_BASE"
		elif git diff --quiet HEAD -- include src/libtdt.map src/runtime/libtdt-rt.map; then
			git rev-parse -q --verify HEAD^
		else
			echo HEAD
		fi
}

# told COMMIT: NEWS says since then what breaks.
told()
{
	compare "$tmp/was.so" "$tmp/now.so" && return
	(cd "$top_srcdir" && git diff -U0 "$1" -- NEWS | grep -q '^+.* anew\b') && return
	echo "Programs for $1 break: undo that, or have NEWS say what to \"compile anew\"."
	return 1
}

if test -e "$top_srcdir/abi/1.0.abi"; then
	claim "programs for 1.0 go on" compare "$top_srcdir/abi/1.0.abi" "$tmp/now.so"
elif test -e "$top_srcdir/.git" && commit=$(base 2>/dev/null); then
	mkdir "$tmp/was"
	(cd "$top_srcdir" && git archive "$commit" include src/libtdt.map src/runtime/libtdt-rt.map) |
		tar -x -C "$tmp/was"
	suppress "$tmp/was/include" >"$tmp/suppressions"
	claim "a stub is made from the headers of the last commit" stub "$tmp/was" "$tmp/was"
	claim "programs for the last commit go on, or NEWS says that they do not" told "$commit"
else
	skip "programs for the last commit go on" "this is no git clone, or it has one commit"
fi
plan
