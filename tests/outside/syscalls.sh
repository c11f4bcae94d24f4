#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR MIT
# The tables in tdt(3), "SYSTEM CALLS", have all calls that the library makes:
# tests/outside/syscalls.c goes through its phases, and strace tells what it calls in each.
#
# A table's rows begin with the names of calls, with those of other tables (in capitals), or with
# "none".
# shellcheck source=tests/lib/tap.sh
. "${top_srcdir:?}/tests/lib/tap.sh"

test "$SANITIZERS" = no || skip_all "sanitizers make calls of their own"
test "$(uname -m)" = x86_64 || skip_all "the tables are those of x86-64"
command -v strace >/dev/null || skip_all "there is no strace (Debian: strace)"
strace -f -o "$tmp/true" true 2>/dev/null ||
	skip_all "strace may not trace: ptrace(2) is refused here"

plugins=${top_builddir:?}/tests/lib/.libs
phases="First use|Polls|Polls that learn|Requests|Running polls|Printing|Plugins|Watching|Recording"
phases="$phases|Snapshots|Dumps|Dumps on a signal|Coroutines|Fibers|Listening|fork"

# PHASE|CALL for each in the manual.
tables()
{
	awk '
		function add_calls(text, n, i, call) {
			n = split(text, call, ", *")
			for (i = 1; i <= n; i++)
				print phase "|" call[i]
		}
		/^[.]SH / { inside = $0 ~ /SYSTEM CALLS/ }
		/^[.]SS / { phase = substr($0, 5); gsub(/"/, "", phase) }
		/^[.]TS/ { table = inside }
		/^[.]TE/ { table = 0 }
		# The first cell of a row may be a block of lines.
		table && /^T[{]$/ { block = 1; cell = ""; next }
		block && /^T[}]/ { block = 0; add_calls(cell); next }
		block { cell = cell (cell == "" ? "" : " ") $0; next }
		table && /^[A-Za-z0-9_, ]+[|]/ { split($0, row, "|"); add_calls(row[1]) }
		' "$top_srcdir/man/tdt.3" |
	awk -F'|' '
		function add(of, what)
		{
			if ((of, what) in has)
				return
			has[of, what]
			phase[++n] = of
			call[n] = what
		}
		{ add($1, $2) }
		# A poll that goes on for long, also since the machine is busy, is read as it runs.
		$1 == "Running polls" { add("Requests", $2) }
		END {
			for (before = 0; before < n;) {
				before = n
				for (i = 1; i <= before; i++)
					for (j = 1; call[i] ~ /^[A-Z]/ && j <= before; j++)
						if (phase[j] == call[i])
							add(phase[i], call[j])
			}
			for (pair in has) {
				split(pair, part, SUBSEP)
				print part[1] "|" part[2]
			}
		}' | sort
}

# PHASE|CALL for each that strace has seen.  A thread of the library ends in peace what a phase had
# it begin; the thread of the door has its own phase, as it looks for readers now and then.
calls()
{
	awk '
		FNR == NR {
			if ($0 ~ /prctl[(]PR_SET_NAME, "tdt-/)
				ours[$1] = $0 ~ /"tdt-door"/ ? "Listening" : ""
			next
		}
		$2 ~ /^execve[(]/ && / = 0$/ {
			phase = "Loading"
			host = " execve exit_group "
			split("", seen)
		}
		$2 == "write(-1," && $3 == "\"phase" {
			phase = $0
			sub(/^[^"]*"phase /, "", phase)
			sub(/".*/, "", phase)
			host = phase ~ /; host: / ? phase : ""
			sub(/.*; host:/, "", host)
			host = host " "
			sub(/; host: .*/, "", phase)
			if (phase != "the host" && phase != "Polls")
				last = phase
			next
		}
		$2 ~ /^[a-z_0-9]+[(]/ {
			call = $2
			sub(/[(].*/, "", call)
			if ($1 in ours)
				seen[(ours[$1] != "" ? ours[$1] : last) "|" call]
			else if (phase != "the host" && index(host, " " call " ") == 0)
				seen[phase "|" call]
		}
		END {
			for (pair in seen)
				print pair
		}' "$1" "$1" | sort
}

# trace PLUGIN: all phases, with `seen` for the calls.
trace()
{
	"$top_builddir/libtool" --mode=execute strace -f -s 100 -o "$tmp/strace" \
		"$top_builddir/tests/outside/syscalls" "$1" \
		>"$tmp/out" 2>&1
	if ! tail -n 1 "$tmp/out" | grep -q '^through$'; then
		tail "$tmp/out"
		return 1
	fi
	calls "$tmp/strace" >>"$tmp/seen"
}

# A plugin whose debug information is a file of its own, compressed.
split_plugin()
{
	command -v objcopy >/dev/null &&
		objcopy --only-keep-debug --compress-debug-sections "$plugins/plugin_a.so" \
			"$tmp/plugin.debug" &&
		objcopy --strip-debug --add-gnu-debuglink="$tmp/plugin.debug" \
			"$plugins/plugin_a.so" "$tmp/plugin.so"
}

# listed PHASE: all that was seen of it is in its table.
listed()
{
	grep "^$1|" "$tmp/tables" >"$tmp/table"
	grep "^$1|" "$tmp/seen" | sort -u >"$tmp/phase"
	test -s "$tmp/table" || { echo "tdt(3) has no table for it"; return 1; }
	comm -13 "$tmp/table" "$tmp/phase" >"$tmp/unlisted"
	sed 's/.*|/not in tdt(3): /' "$tmp/unlisted"
	! test -s "$tmp/unlisted"
}

# with_rules PHASE CLAIM...: as claim; but walks by libunwind's cursor (--with-walk=step) make calls
# in polls.
with_rules()
{
	if test "$1" = Polls && ! grep -q 'TDT_WALK_RULES 1' "$top_builddir/config.h"; then
		skip "$2" "walks are not by rules"
	else
		shift
		claim "$@"
	fi
}

# made PHASE CALL: the calls are seen at all.
made()
{
	grep -q "^$1|$2\$" "$tmp/seen"
}

tables >"$tmp/tables"
: >"$tmp/seen"
claim "the program goes through all phases" trace "$plugins/plugin_a.so"
if split_plugin; then
	claim "and with a debug file" trace "$tmp/plugin.so"
else
	skip "and with a debug file" "there is no objcopy (Debian: binutils)"
fi
claim "what comes with loading is in the manual" listed Loading
while test -n "$phases"; do
	phase=${phases%%|*}
	with_rules "$phase" "what comes with $phase is in the manual" listed "$phase"
	case $phases in *"|"*) phases=${phases#*|} ;; *) phases= ;; esac
done
for pair in 'First use|membarrier' 'Polls that learn|process_vm_readv' 'Requests|membarrier' \
	'Running polls|rt_tgsigqueueinfo' 'Running polls|rt_sigreturn' 'Printing|openat' \
	'First use|clone3\{0,1\}' \
	'Watching|clone3\{0,1\}' 'Dumps|membarrier' 'Dumps on a signal|rt_sigaction' \
	'Dumps on a signal|exit' 'Dumps on a signal|openat' 'Coroutines|mmap' \
	'Fibers|process_vm_readv' 'Listening|socketpair' 'Listening|recvmsg' \
	'Recording|fallocate' 'fork|tgkill'; do
	claim "${pair%%|*} has ${pair#*|}" made "${pair%%|*}" "${pair#*|}"
done
with_rules Polls "a poll makes no call" test "$(grep -c '^Polls|' "$tmp/seen")" = 0
plan
