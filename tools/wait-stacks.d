#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where do tasks wait?  Counts, for each task, the stacks at which its polls cloned the waker.
 *
 *	sudo tools/wait-stacks.d -p PID         # until Ctrl-C
 *
 * Sample output: the stacks of wait-stacks.bt, in DTrace's form, with counts.
 *
 * wait-stacks.bt has the stacks of the last poll only.  This script counts those of all polls,
 * since single stacks cannot be removed from an aggregation.
 *
 * Limits: the script sees only tasks that are polled while it runs.  A task that waits all the
 * time is not seen; a dump, or any wake-up, has it polled once.  Leaves inside a traced future
 * that a task awaits belong to that future.  A stack ends at the first function compiled without
 * frame pointers.
 *
 * Last run: November 2026, DTrace 2.0.1, Linux 6.18.
 */

tdt$target:::task-waker-clone
{
	@waits[arg0, copyinstr(arg1), (int)arg2, ustack()] = count();
}

dtrace:::END
{
	printa("task %d, spawned at %s:%d%k%@d\n", @waits);
}
