/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_READER_LISTS_H
#define TDT_READER_LISTS_H

/*
 * Lists of frames at which tasks wait (<tdt/integrate/leaf.h>; <tdt/layout/registry.h>, "Lists").
 */

#include "reader/images.h"
#include "reader/records.h"

struct tdt__stacks;

/*
 * Read the list at which the task waits.  Returns the stacks, with one leaf, which the caller
 * frees.  NULL: the task has no list that is in force, or the list cannot be read, or there is no
 * memory.
 */
struct tdt__stacks *tdt__list_read(struct tdt__images *images, const struct tdt__seen *seen);

#endif
