# SPDX-License-Identifier: Apache-2.0 OR MIT
# shellcheck shell=sh
# shellcheck disable=SC2154 # who sources this has $tracer
# Waiting for tracers, and ending them: all that a script needs that runs one.  Source this after
# tap.sh.

# bpftrace says so when all its probes are attached: on standard error, or, in some versions, on
# standard output.
__BPFTRACE_NOTIFY_PROBES_ATTACHED=1
# Without it bpftrace 0.17 looks all symbols up anew for each stack it prints, and closes
# descriptors that it still needs, until it ends for want of one.
BPFTRACE_CACHE_USER_SYMBOLS=1
export __BPFTRACE_NOTIFY_PROBES_ATTACHED BPFTRACE_CACHE_USER_SYMBOLS

# may_trace TOOL PACKAGE: go on only as root, with the tool, on a kernel with uprobes.
may_trace()
{
	command -v "$1" >/dev/null || skip_all "there is no $1 (Debian: $2)"
	test "$(id -u)" = 0 || skip_all "only root may trace with $1"
	test -d /sys/bus/event_source/devices/uprobe || skip_all "the kernel has no uprobes"
}

# has_tracefs: tracepoints, and perf's probes, are found there.  Not every machine mounts it when it
# starts.
has_tracefs()
{
	mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing \
		2>/dev/null ||
		mountpoint -q /sys/kernel/tracing
}

# perf_names_are_free GROUP: nobody has events of this group in the kernel.  Events of a test that
# was killed, whose files are gone, do not count.
perf_names_are_free()
{
	# shellcheck disable=SC2013 # words
	for file in $(sed -n "s|^p:$1/[^ ]* \(.*\):0x.*|\1|p" /sys/kernel/tracing/uprobe_events |
		sort -u); do
		test ! -e "$file" || return
	done
}

# What the script has started, to be killed when it ends: but no stranger, who may have got the
# number of one that is gone.
started=
is_child()
{
	test "$(sed 's/.*) . //; s/ .*//' "/proc/$1/stat" 2>/dev/null)" = $$
}
kill_started()
{
	for pid in $started; do
		! is_child "$pid" || kill -KILL "$pid"
	done
}

has_ended()
{
	case $(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) in
	'' | Z) ;;
	*) return 1 ;;
	esac
}

ended_or()
{
	has_ended "$tracer" || "$@"
}

# attached FILE...: the bpftrace that writes them ($tracer) has all its probes attached, and they do
# what they are to.  (The kernel has a breakpoint there, and a semaphore is up, some time before.)
has_attached()
{
	grep -q PROBES_ATTACHED "$@"
}
attached()
{
	wait_until ended_or has_attached "$@"
	has_attached "$@" && return
	cat "$@" >&2
	return 1
}

# What a tracer has open of the kernel's: some for each probe.
kernel_events()
{
	find "/proc/$1/fd" -lname '*perf_event*' -o -lname '*bpf?link*' 2>/dev/null | wc -l
}

# detach PID: have a tracer detach, and wait for its end.  bpftrace 0.17 sleeps on if the signal
# comes just before it goes to sleep, so it is told again while it sleeps; but not when it has begun
# to detach, or has had no time for that: then a signal ends it before it has printed its maps.
detach()
{
	held=$(kernel_events "$1")
	kill -INT "$1" 2>/dev/null
	for _ in $(seq 60); do
		for _ in $(seq 20); do
			has_ended "$1" && break 2
			sleep 0.1
		done
		grep -q '^State:.S' "/proc/$1/status" 2>/dev/null &&
			test "$(kernel_events "$1")" = "$held" && kill -INT "$1" 2>/dev/null
	done
	has_ended "$1" || kill -KILL "$1"
	wait "$1"
}
