#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which tasks use processor time, and where?  Takes 99 samples a second on each processor, of
 * threads that poll a task.
 *
 *	sudo tools/oncpu-by-task.d -p PID       # until Ctrl-C
 *
 * Sample output: the stacks of oncpu-by-task.bt, in DTrace's form.
 *
 * A sample inside a traced future that a task awaits counts for that future.
 *
 * Limits: a poll that began before the script is not seen.  A stack ends at the first function
 * compiled without frame pointers, and the caller of such a function (in libc, for example) may be
 * missing.
 */

tdt$target:::task-poll-start
{
	self->depth++;
	task[tid, self->depth] = arg0;
}

tdt$target:::task-poll-end
/self->depth/
{
	self->depth--;
}

profile-99
/self->depth/
{
	@oncpu[task[tid, self->depth], ustack()] = count();
}

dtrace:::END
{
	printa("task %d%k%@d\n", @oncpu);
}
