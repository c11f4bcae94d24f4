# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# TAP from a shell script: source this, make claims, and end with `plan`.  `$tmp` is a directory of
# the script's own.

tests=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM # by way of the other

# claim TEXT COMMAND...: the command succeeds.
claim()
{
	text=$1
	shift
	tests=$((tests + 1))
	if "$@" >&2; then
		echo "ok $tests - $text"
	else
		echo "not ok $tests - $text"
	fi
}

# wait_until COMMAND...: try it until it succeeds, for some minutes.
wait_until()
{
	try_till $(($(date +%s) + 180)) "$@" && return
	echo "waited in vain: $*" >&2
	return 1
}

# try_till SECOND COMMAND...: no variable, as the command may wait, too.
try_till()
{
	until all_but_first "$@"; do
		test "$(date +%s)" -le "$1" || return
		sleep 0.05
	done
}

all_but_first()
{
	shift
	"$@"
}

# same TEXT EXPECTED GOT: the two files are equal.
same()
{
	claim "$1" diff -u "$2" "$3"
}

# skip TEXT WHY
skip()
{
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

plan()
{
	echo "1..$tests"
}
