/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Copy what this process has recorded in the last `since_ns` nanoseconds (0: all that it still
 * has), while its threads go on recording.  The copy is a whole recording: its last ring says which
 * tasks live, which modules the recorded addresses lie in, and what the time is.
 *
 * The caller frees `*copy`.  Returns 0, -ENODATA (nothing was recorded in this process), -EAGAIN
 * (the recorder was started anew meanwhile, again and again) or -ENOMEM.
 */
int tdt__recorder_copy(uint64_t since_ns, void **copy, size_t *size);
