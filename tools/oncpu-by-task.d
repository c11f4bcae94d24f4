#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which tasks burn processor time, and where?  Samples, 99 a second and processor, of threads that poll a task.
 *
 *	sudo tools/oncpu-by-task.d -p PID       # until Ctrl-C
 *
 * Sample output: the stacks of oncpu-by-task.bt, in DTrace's form.
 *
 * Inside a traced future that a task awaits the time is that future's.
 *
 * Limits: a poll that began before the script did isn't seen.  The stack ends at the first function compiled without
 * frame pointers, and a function without (of libc, say) hides its caller.
 */

tdt$target:::task-poll-start
{
	self->depth++;
	task[tid, self->depth] = arg0;
}

tdt$target:::task-poll-end
/self->depth/
{
	task[tid, self->depth] = 0;
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
