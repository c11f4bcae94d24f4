/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REGISTRY_OWNERS_H
#define TDT_SRC_REGISTRY_OWNERS_H

struct tdt_trace;

/*
 * Give a new trace with stacks the names of the tasks that its waits name as owners, as far as
 * these tasks live.  If there is such a wait, this looks at every record, which takes 10 to 20 ns
 * for each.  Any thread.
 */
void tdt__name_owners(struct tdt_trace *trace);

#endif
