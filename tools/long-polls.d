#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which polls block their worker for long, and where?  For each poll of MS milliseconds or more,
 * prints the stack that it had when MS had passed, and at its end how long it took.
 *
 *	sudo tools/long-polls.d -p PID [MS]     # default: 10
 *
 * long-polls.bt has a sample of its output, and its limits.  Here the stack comes when MS have
 * passed, and the duration on a line of its own.
 */

#pragma D option defaultargs

dtrace:::BEGIN
{
	limit = ($1 == 0 ? 10 : $1) * 1000000;
}

tdt$target:::task-poll-start
/!self->depth++/
{
	self->start = timestamp;
}

tdt$target:::task-poll-start
{
	task[tid, self->depth] = arg0;
}

profile-99,
sched:::on-cpu
/self->start && !self->late && timestamp - self->start >= limit/
{
	self->late = 1;
	printf("task %d has been polled for %d ms on thread %d; in task %d:\n", task[tid, 1],
	    (timestamp - self->start) / 1000000, tid, task[tid, self->depth]);
	ustack();
}

tdt$target:::task-poll-end
/self->depth/
{
	self->depth--;
}

tdt$target:::task-poll-end
/self->start && !self->depth && timestamp - self->start >= limit/
{
	printf("task %d polled for %d us on thread %d, spawned at %s:%d\n", arg0,
	       (timestamp - self->start) / 1000, tid, copyinstr(arg1), (int)arg2);
}

tdt$target:::task-poll-end
/!self->depth/
{
	self->start = 0;
	self->late = 0;
}
