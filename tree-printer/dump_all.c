// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A dump: a snapshot is taken, printed and freed. */

#include <config.h>

#include "printer.h"

#include <errno.h>

/* The same rule as everywhere for a struct of a caller's that may grow. */
#include "../src/options.h"

/* Wrong options are told before anybody is asked. */
static int check(FILE *out, const struct tdt_dump_options *options)
{
	struct tdt_dump_options ours;
	struct tdt_print_options form;
	int err = out == NULL ? -EINVAL : tdt__options_read(&ours, sizeof(ours), options);

	return err == 0 ? tdt__print_options_read(&form, ours.print, out) : err;
}

int tdt_dump(FILE *out, const struct tdt_dump_options *options)
{
	int saved = errno, err = check(out, options);

	if (err == 0) {
		const struct tdt_snapshot *snapshot = tdt_snapshot_take(options);

		err = snapshot == NULL ? -errno : tdt_snapshot_print(snapshot, out, options);
		tdt_snapshot_free(snapshot);
	}
	errno = err == 0 ? saved : -err;
	return err;
}

int tdt_dump_all(FILE *out)
{
	return tdt_dump(out, NULL);
}
