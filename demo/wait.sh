# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# For the scripts of `make demo`, which source this: wait until a program has printed something, for
# a minute at most.  The script has a function `fail`.

# wait_for TEXT FILE: wait until FILE contains TEXT.
wait_for()
{
	tries=600
	until grep -q "$1" "$2"; do
		tries=$((tries - 1))
		test $tries -gt 0 || fail "there is no '$1'"
		sleep 0.1
	done
}

# wait_for_dump FILE: wait until the dump has all tasks that its first line counts, then an empty
# line.
wait_for_dump()
{
	tries=600
	until awk '
		/^[0-9]+ tasks[,:]/ { all = $1 }
		/^task / { n++ }
		/^[0-9]+ tasks [a-z]/ { n += $1 }
		{ last = $0 }
		END { exit !(all > 0 && n == all && last == "") }' "$1"; do
		tries=$((tries - 1))
		test $tries -gt 0 || fail 'there is no whole dump'
		sleep 0.1
	done
}
