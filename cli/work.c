// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The common beginning of commands: see work.h. */

#include "cli/work.h"

#include <stdlib.h>

static int do_registries(FILE *out, void *arg)
{
	const struct work *work = arg;
	struct outside outside;
	int status = outside_open(&outside, work->options), worst = EXIT_SUCCESS;

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	for (size_t i = 0; i < outside.n_found; i++) {
		status = work->registry(work->command, &outside, i);
		worst = worse_status(worst, status);
	}
	outside_close(&outside);
	return worst;
}

static int do_recording(FILE *out, void *arg)
{
	const struct work *work = arg;
	struct last last;
	int status = last_open(&last, work->options);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = work->recording(work->command, &last);
	last_close(&last);
	return status;
}

int work_apart(struct work *work)
{
	bool recording = work->options->dir != NULL && work->recording != NULL;

	return outside_apart(recording ? do_recording : do_registries, work, work->options,
			     work->again);
}
