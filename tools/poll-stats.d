#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How long do polls take, and how long does a woken task wait for its poll?  In microseconds, for
 * each place where tasks are spawned.
 *
 *	sudo tools/poll-stats.d -p PID          # until Ctrl-C
 *
 * poll-stats.bt has a sample of its output, and its limits.
 */

tdt$target:::task-wake
/!woken[arg0]/
{
	woken[arg0] = timestamp;
}

tdt$target:::task-poll-start
{
	self->depth++;
	start[tid, self->depth] = timestamp;
}

tdt$target:::task-poll-start
/woken[arg0]/
{
	@wait[copyinstr(arg1), (int)arg2] = quantize((timestamp - woken[arg0]) / 1000);
	woken[arg0] = 0;
}

tdt$target:::task-poll-end
/self->depth && start[tid, self->depth]/
{
	@poll[copyinstr(arg1), (int)arg2] = quantize((timestamp - start[tid, self->depth]) / 1000);
}

tdt$target:::task-poll-end
/self->depth/
{
	self->depth--;
}

tdt$target:::task-terminate
{
	woken[arg0] = 0;
}

dtrace:::END
{
	printf("poll, us\n");
	printa("%s:%d%@d\n", @poll);
	printf("wake to poll, us\n");
	printa("%s:%d%@d\n", @wait);
}
