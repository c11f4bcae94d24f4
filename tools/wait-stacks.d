#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where do tasks wait?  The stacks at which their polls cloned the waker, and how often, by task.
 *
 *	sudo tools/wait-stacks.d -p PID         # until Ctrl-C
 *
 * Sample output: the stacks of wait-stacks.bt, in DTrace's form, with counts.
 *
 * Unlike wait-stacks.bt, which has the stacks of the last poll only, it counts all: an aggregation can't forget.
 *
 * Limits: it knows the tasks that were polled meanwhile; who just waits and waits is not seen (a dump, or any wake-up,
 * has it polled once).  What is polled inside a traced future that a task awaits belongs to that future.  The stack
 * ends at the first function compiled without frame pointers.
 */

tdt$target:::task-waker-clone
{
	@waits[arg0, copyinstr(arg1), (int)arg2, ustack()] = count();
}

dtrace:::END
{
	printa("task %d, spawned at %s:%d%k%@d\n", @waits);
}
