// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A dump: a snapshot is taken, printed and freed. */

#include <config.h>

#include "dumps.h"

#include <errno.h>

#include "forms.h"

/* The same rule as everywhere for a struct of a caller's that may grow. */
#include "base/clock.h"
#include "base/options.h"

#define SECOND UINT64_C(1000000000)

/* Wrong options are told before anybody is asked. */
static int check(FILE *out, const struct tdt_dump_options *options, struct tdt_dump_options *ours)
{
	struct tdt_print_options form;
	int err = out == NULL ? -EINVAL : tdt__options_read(ours, sizeof(*ours), options);

	return err == 0 ? tdt__print_options_read(&form, ours->print, out) : err;
}

int tdt_dump(FILE *out, const struct tdt_dump_options *options)
{
	uint64_t start = tdt__clock();
	struct tdt_dump_options ours;
	int saved = errno, err = check(out, options, &ours);

	if (err == 0) {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(options);
		uint64_t deadline = start + (ours.timeout_ns != 0 ? (uint64_t)ours.timeout_ns : SECOND);

		err = snapshot == NULL ? -errno : tdt__snapshot_print_by(snapshot, out, options, deadline);
		tdt_snapshot_free(snapshot);
	}
	errno = err == 0 ? saved : -err;
	return err;
}

int tdt_dump_all(FILE *out)
{
	return tdt_dump(out, NULL);
}
