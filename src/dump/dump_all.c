// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A dump takes a snapshot, prints it and frees it.  This file decides how long names may take. */

#include <errno.h>

#include <tdt/dump.h>

#include "base/clock.h"
#include "base/options.h"
#include "dump/snapshot.h"
#include "symbolize/namer.h"
#include "tree-printer/dumps.h"
#include "tree-printer/forms.h"

/* Wrong options are reported before any request is made. */
static int check_options(FILE *out, const struct tdt_dump_options *options,
			 struct tdt_dump_options *ours)
{
	struct tdt_print_options form;
	int err = tdt__options_read(ours, sizeof(*ours), options);

	return err == 0 ? tdt__print_options_read(&form, ours->print, out) : err;
}

int tdt__dump(FILE *out, const struct tdt_dump_options *options, bool only_unseen)
{
	const struct tdt__snapshot_how how = { .finds_busy = true, .only_unseen = only_unseen };
	uint64_t start = tdt__clock();
	struct tdt_dump_options ours;
	int saved = errno, err = check_options(out, options, &ours);

	if (err == 0) {
		const struct tdt_snapshot *snapshot = tdt__snapshot_take(options, how);
		uint64_t timeout = ours.timeout_ns != 0 ? (uint64_t)ours.timeout_ns : TDT__SECOND;

		if (snapshot == NULL)
			err = -errno;
		else
			err = tdt__snapshot_print_by(snapshot, out, options, start + timeout);
		tdt_snapshot_free(snapshot);
	}
	errno = err == 0 ? saved : -err;
	return err;
}

int tdt_dump_with(FILE *out, const struct tdt_dump_options *options)
{
	return tdt__dump(out, options, false);
}

int tdt_dump(FILE *out)
{
	return tdt_dump_with(out, NULL);
}

int tdt_snapshot_print(const struct tdt_snapshot *snapshot, FILE *out,
		       const struct tdt_dump_options *options)
{
	return tdt__snapshot_print_by(snapshot, out, options, tdt__clock() + TDT__NAMER_TIME);
}
