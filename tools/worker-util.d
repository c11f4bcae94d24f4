#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How busy are the workers?  Prints each second for how many percent of it each worker was not
 * parked, and how often it parked.
 *
 *	sudo tools/worker-util.d -p PID         # until Ctrl-C
 *
 * worker-util.bt has a sample of its output, and its limits.
 */

tdt$target:::worker-thread-start,
tdt$target:::worker-thread-unpark
{
	self->awake = 1;
	self->since = timestamp;
}

tdt$target:::task-poll-start,
tdt$target:::task-poll-end,
tdt$target:::worker-thread-park,
profile-99
/self->awake/
{
	@busy[tid] = sum(timestamp - self->since);
	self->since = timestamp;
}

tdt$target:::task-poll-start
{
	self->awake++;
	self->since = timestamp;
}

tdt$target:::task-poll-end
/self->awake/
{
	self->awake--;
}

tdt$target:::worker-thread-park
{
	@busy[tid] = sum(0);
	@parks[tid] = count();
	self->awake = 0;
}

tdt$target:::worker-thread-stop
{
	self->awake = 0;
}

tick-1s
{
	printf("%Y\n", walltimestamp);
	normalize(@busy, 10000000);
	printa("busy  %8d %@8d %%\n", @busy);
	printa("parks %8d %@8d\n", @parks);
	clear(@busy);
	clear(@parks);
}
