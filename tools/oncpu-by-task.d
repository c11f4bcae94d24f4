#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which tasks use processor time, and where?  Takes 99 samples a second on each processor, of
 * threads that poll a task.
 *
 *	sudo tools/oncpu-by-task.d -p PID       # until Ctrl-C
 *
 * oncpu-by-task.bt has a sample of its output, and its limits.
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
