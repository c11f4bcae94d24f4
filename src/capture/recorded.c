// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The facts of a task that was not polled for a request, from its record. */

#include "capture/recorded.h"

#include "base/clock.h"
#include "capture/capture.h"
#include "registry/task_info.h"

void tdt__capture_recorded(struct tdt__capture *capture, const struct tdt_handle *task,
			   const struct tdt_task_record *record)
{
	struct tdt__facts *facts = &capture->facts;
	struct tdt__task_info said;

	tdt__task_info(&said, task, record, tdt__clock());
	facts->state = said.info.state;
	facts->state_ns = said.info.state_ns;
	facts->polls = said.info.polls;
	facts->woken_ns = said.info.woken_ns;
	facts->woken_by = said.info.woken_by;
	facts->thread = 0;
	facts->syscall = NULL;
	facts->recorded = true;
	if (said.info.n_waits != 0)
		tdt__capture_wait(capture, &said.wait);
}
