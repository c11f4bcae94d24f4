/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The recording of a target (<tdt/layout/recording.h>), to which a registry leads.  Its threads go
 * on recording while it is copied, and none of them waits.
 */

#include <stddef.h>

#include "reader/find.h"
#include "reader/images.h"
#include "reader/target.h"

struct tdt__recording;

/*
 * Copy what the library of the registry `found` has recorded, whose records and modules go into the
 * copy, too: so it can be read without the target.  The caller frees `*copy`.  Returns 0.  On
 * failure it returns a negative errno, and `trouble` says why: -ENODATA, if nothing was ever
 * recorded; -ENXIO, if the rings lie in a file that a core file lacks; -EFAULT, if memory of the
 * recording cannot be read; -EINVAL, if it is damaged; -ENOTSUP, if it has another layout; -EAGAIN,
 * if the recorder was started anew again and again; -ENOMEM.
 */
int tdt__recorded_copy(struct tdt__target *target, struct tdt__images *images,
		       const struct tdt__found *found, void **copy, size_t *size,
		       struct tdt__trouble *trouble);

/*
 * The same, and open the recording.  The caller calls tdt__recording_close() and then frees
 * `*copy`.
 */
int tdt__recorded_open(struct tdt__target *target, struct tdt__images *images,
		       const struct tdt__found *found, void **copy,
		       struct tdt__recording **recording, struct tdt__trouble *trouble);

/* Whether the recorder of that library runs now.  False in a core file's target, too. */
bool tdt__recorded_runs(const struct tdt__target *target, const struct tdt__found *found);
