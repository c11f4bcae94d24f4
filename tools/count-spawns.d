#!/usr/sbin/dtrace -qs
/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where are tasks spawned, how many are they, and do they end?
 *
 *	sudo tools/count-spawns.d -p PID        # until Ctrl-C
 *
 * Sample output: a table of the same counts as those of count-spawns.bt.
 *
 * Limits: tasks spawned before the script started are counted as ended only.
 */

tdt$target:::task-spawn
{
	@spawned[copyinstr(arg1), (int)arg2] = count();
}

tdt$target:::task-terminate
{
	@ended[copyinstr(arg1), (int)arg2] = count();
}

dtrace:::END
{
	printf("spawned\n");
	printa("%@8d %s:%d\n", @spawned);
	printf("ended\n");
	printa("%@8d %s:%d\n", @ended);
}
