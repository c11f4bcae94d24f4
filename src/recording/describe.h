/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The payloads of events that describe tasks and modules (tdt/layout/recording.h), for those who
 * write such events.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

/* A payload of either kind has at most so many bytes. */
#define TDT__DESCRIPTION_MAX 512

/*
 * Write the identity of the task of `record`, which was spawned in `file`.  Of a long name of a
 * file, the last bytes are kept.  Returns the size, which is at most TDT__IDENTITY_MAX.
 */
#define TDT__IDENTITY_MAX 288
size_t tdt__describe_task(const struct tdt_task_record *record, const char *file,
			  char payload[TDT__IDENTITY_MAX]);

/*
 * Write the bias, the build-id, which is given in hexadecimal, and the path of a module.  Returns
 * the size.
 */
size_t tdt__describe_module(uint64_t bias, const char *build_id, const char *path,
			    char payload[TDT__DESCRIPTION_MAX]);
