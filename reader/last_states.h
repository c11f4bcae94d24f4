/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The tasks of a recording as they were when it ended, in the form in which records of a registry
 * are listed (tasks.h).  All times are relative to the end of the recording.
 *
 * A state is only given if the recording proves it (timeline.h), or if its poll was going on at the
 * end.  Otherwise it is TDT_TASK_UNKNOWN, and `last` says what the last recorded event of the
 * task had led to.
 */

#include "reader/tasks.h"
#include "recording/read.h"

/* What the events say of the polls of a task. */
struct tdt__last_polls {
	uint64_t seen;   /* when the last event was that shows that the task lived; ns */
	bool was_listed; /* a TASK event has it */
	uint64_t polls;  /* that are recorded */
	uint64_t more;	 /* that are not, as the last listing says */
	bool counted;	 /* there was a listing */
	uint64_t begun;	 /* when the last one began, as far as is known; ns */
	uint64_t with_stack; /* the number, from 1, of the last poll with stacks; 0: none */
	struct tdt__recorded_item stacked; /* its beginning */
	uint64_t stacked_more;		   /* as `more`, at that time; UINT64_MAX: unknown */
	uint64_t spawned, woken, woken_by;
	uint32_t found; /* the stack that the recorder found in a poll that was going on; 0: none */
	uint64_t found_at;
};

struct tdt__last_states {
	const struct tdt__recording *recording;
	/*
	 * The tasks that had not ended, as far as is known.  There are no target, no images and no
	 * records; of the registry, only what a recording says of the process is known.
	 */
	struct tdt__tasks tasks;
	struct tdt__last_polls *polls; /* as many */
};

/*
 * Read the last states.  The recording must outlive them.  Returns 0, or -ENOMEM; then there is
 * nothing to free.
 */
int tdt__last_states_read(struct tdt__last_states *states,
			  const struct tdt__recording *recording);
void tdt__last_states_fini(struct tdt__last_states *states);
