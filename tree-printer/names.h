/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_NAMES_H
#define TDT_TREE_PRINTER_NAMES_H

/* What the tasks of a snapshot are called, found by their ids. */

#include <stdint.h>

#include <tdt/dump.h>

struct tdt__names;

/* Of all tasks in groups; their names must outlive it.  For the caller to free.  NULL: no memory. */
struct tdt__names *tdt__names_new(const struct tdt_snapshot *snapshot);
void tdt__names_free(struct tdt__names *names); /* NULL does nothing */

/* NULL: it has no name, or is not there, or `names` is NULL.  Of several tasks with one id, the first. */
const char *tdt__names_find(const struct tdt__names *names, uint64_t id);

#endif
