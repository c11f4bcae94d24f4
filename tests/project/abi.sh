#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs that were compiled with older headers go on working with a later library: abidiff
# compares a stub of the libraries, made from the headers alone, with one of older headers.  A
# struct that begins with its size, or whose size the registry or a recording states, may become
# longer at its end, and a reserve may get a name; all else is a break.
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
sized='tdt_task_record tdt_registry tdt_registry_fiber tdt_registry_panic tdt_registry_thread
	tdt_recording tdt_recording_ring'

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
	find "$2" -name '*.h' -exec \
		sed -n "s/^$1 \\(.* \\)\\?\\(tdt_[a-z0-9_]*\\) {\$/\\2/p" {} + | sort -u
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

# copy: the headers and maps, which may be changed then, are in $tmp/other.
copy()
{
	rm -rf "$tmp/other" && mkdir -p "$tmp/other/src/runtime" &&
		cp -R "$top_srcdir/include" "$tmp/other/include" &&
		cp "$top_srcdir/src/libtdt.map" "$tmp/other/src" &&
		cp "$top_srcdir/src/runtime/libtdt-rt.map" "$tmp/other/src/runtime"
}

# with_field STRUCT middle|end: a field is inserted before the second one, or behind the last.
with_field()
{
	copy && file=$(grep -rlE "^struct (.* )?$1 [{]" "$tmp/other") &&
		awk -v name="$1" -v at="$2" '
			$0 ~ "^struct (.* )?" name " [{]" { inside = 1 }
			inside && at == "end" && /^}/ { print "\tunsigned long later;" }
			/^}/ { inside = 0 }
			inside && /^\t[a-z][^*]*;/ && ++n == 2 && at == "middle" {
				print "\tunsigned long later;"
			}
			{ print }' "$file" >"$tmp/changed" && mv "$tmp/changed" "$file" &&
		grep -q 'unsigned long later;' "$file" && stub "$tmp/other" "$tmp/other/stub"
}

# with_line PATTERN SCRIPT: sed changes the file that has it.
with_line()
{
	copy && file=$(grep -rlE "$1" "$tmp/other") && sed -i -E "$2" "$file" &&
		! grep -qE "$1" "$file" && stub "$tmp/other" "$tmp/other/stub"
}

# allows TEXT COMMAND...: changed so, the headers keep what they promise.
allows()
{
	text=$1
	shift
	claim "$text: made" "$@"
	claim "$text: passes" compare "$tmp/now.so" "$tmp/other/stub.so"
}

# refuses TEXT COMMAND...: they do not.
refuses()
{
	text=$1
	shift
	claim "$text: made" "$@"
	claim "$text: fails" breaks
}

# Not by an error of abidiff.
breaks()
{
	compare "$tmp/now.so" "$tmp/other/stub.so"
	test $((result & 3)) = 0 && test $((result & 12)) != 0
}

allows "a field at the end of a struct with its size" with_field tdt_frame end
refuses "a field in its middle" with_field tdt_frame middle
allows "a field at the end of the record" with_field tdt_task_record end
refuses "a field in the record's middle" with_field tdt_task_record middle
refuses "a field at the end of a struct without a size" with_field tdt_context end
refuses "a function with another argument" with_line '^uint64_t tdt_handle_id[(]const' \
	's/^uint64_t tdt_handle_id[(]/&int more, /'
refuses "a function that is gone" with_line '^.tdt_handle_id;' '/^\ttdt_handle_id;/d'
allows "a value at the end of an enum" with_line 'TDT_ANSWER_NONE = 3 ' \
	's/TDT_ANSWER_NONE = 3/&, LATER = 4/'

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
	(cd "$top_srcdir" &&
		git archive "$commit" include src/libtdt.map src/runtime/libtdt-rt.map) |
		tar -x -C "$tmp/was"
	suppress "$tmp/was/include" >"$tmp/suppressions"
	claim "a stub is made from the headers of the last commit" stub "$tmp/was" "$tmp/was"
	claim "programs for the last commit go on, or NEWS says that they do not" told "$commit"
else
	skip "programs for the last commit go on" "this is no git clone, or it has one commit"
fi
plan
