#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What happens?  Prints each event of tasks and workers as it comes.
 *
 *	sudo tools/print-all.d -p PID           # until Ctrl-C
 *
 * Sample output: like that of print-all.bt.
 *
 * Limits: lines of different processors may be out of order: sort them by the first column.
 */

dtrace:::BEGIN
{
	start = timestamp;
	printf("%12s %8s %-20s %8s %s\n", "us", "thread", "event", "task", "spawned at");
}

tdt$target:::task-spawn,
tdt$target:::task-poll-start,
tdt$target:::task-poll-end,
tdt$target:::task-terminate,
tdt$target:::task-wake,
tdt$target:::task-waker-clone
{
	printf("%12d %8d %-20s %8d %s:%d\n", (timestamp - start) / 1000, tid, probename, arg0,
	       copyinstr(arg1), (int)arg2);
}

tdt$target:::worker-thread-start,
tdt$target:::worker-thread-stop,
tdt$target:::worker-thread-park,
tdt$target:::worker-thread-unpark
{
	printf("%12d %8d %s\n", (timestamp - start) / 1000, tid, probename);
}
