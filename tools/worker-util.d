#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How busy are the workers?  Prints each second for how many percent of it each worker was not
 * parked, and how often it parked.
 *
 *	sudo tools/worker-util.d -p PID         # until Ctrl-C
 *
 * Sample output: threads with percent, then threads with parks, as in worker-util.bt.
 *
 * Limits: a worker is known from its first event on; a worker that is parked all the time has no
 * line.  Busy time counts in the second in which the poll ends, a sample finds the thread running,
 * or the worker parks.  So a poll that sleeps (which it must not) is shown late, with more than
 * 100 %.  Of a thread that reports no parks (tdt_worker_thread_park), or whose first park is still
 * to come, only the polls count, because nothing tells its sleep from its other work.
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
