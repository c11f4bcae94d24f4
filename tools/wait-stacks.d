#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where do tasks wait?  Counts, for each task, the stacks at which its polls cloned the waker: of
 * all polls, since single stacks cannot be removed from an aggregation.
 *
 *	sudo tools/wait-stacks.d -p PID         # until Ctrl-C
 *
 * wait-stacks.bt, which has the stacks of the last poll only, has a sample of its output, and its
 * limits.
 */

tdt$target:::task-waker-clone
{
	@waits[arg0, copyinstr(arg1), (int)arg2, ustack()] = count();
}

dtrace:::END
{
	printa("task %d, spawned at %s:%d%k%@d\n", @waits);
}
