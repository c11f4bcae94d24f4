/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The strings of a struct tdt_task_attr, which need not end with a NUL. */

#include <tdt/layout/registry.h>
#include <tdt/trace.h>

/*
 * Find what is kept of the task's name, or else of its default name.  Returns the number of its
 * bytes, at most TDT_TASK_NAME_MAX, without a NUL; 0: the task has no name.
 */
size_t tdt__attr_name(const struct tdt_task_attr *attr, const char **name);

/* The task that spawns the one with these attributes, or on whose behalf it is spawned. */
static inline uint64_t tdt__attr_parent(const struct tdt_task_attr *attr)
{
	return (attr->flags & TDT_ATTR_PARENT) != 0 ? attr->parent : tdt_current_task_id();
}

/*
 * If the length of `attr->file` is given, replace `attr->file` by a copy that ends with a NUL and
 * lives as long as the process.  There is one copy for each text.  Returns 0 or -ENOMEM.  Takes no
 * lock.
 */
int tdt__attr_keep_file(struct tdt_task_attr *attr);

/*
 * The address of a copy of the task's file, which stays: the task may be of a plugin that is
 * unloaded while its end is still remembered.  0: no file is known, or there is no memory.
 */
uint64_t tdt__attr_stored_file(const struct tdt_task_record *record);
