#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Programs and demos say how they are used, and each of their messages begins with their name.
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"
cd "${top_builddir:?}" || exit

# helps PROGRAM: its usage names it by its own name.
helps()
{
	timeout 100 "./$1" --help >"$tmp/help" && head -n 1 "$tmp/help" >"$tmp/first" &&
		grep "^Usage: ${1##*/} " "$tmp/first"
}

tells_version()
{
	timeout 100 "./$1" --version >"$tmp/version" && cat "$tmp/version" &&
		grep -q "^${1##*/} .*[0-9]\.[0-9]" "$tmp/version"
}

# refuses PROGRAM: an option that it does not have, with status 2.
refuses()
{
	timeout 100 "./$1" --nonsense >"$tmp/out" 2>"$tmp/said"
	test $? = 2 && test ! -s "$tmp/out" && test -s "$tmp/said"
}

# says_who PROGRAM: each line of the message is the program's, or is its usage.
says_who()
{
	if head -n 1 "$tmp/said" | grep -q "^Usage: ${1##*/} "; then
		return 0
	fi
	! grep -v -e "^${1##*/}: " -e "^Try '${1##*/} --help'" "$tmp/said"
}

for program in ${PROGRAMS:?}; do
	claim "$program --help tells how it is used" helps "$program"
	claim "$program refuses another option" refuses "$program"
	claim "and begins its message with its name" says_who "$program"
	case $program in
	tdt | tdt-* | demo/echo-*) claim "$program tells its version" tells_version "$program" ;;
	esac
done

plan
