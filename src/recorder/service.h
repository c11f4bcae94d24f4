/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What the recorder's thread does while the recorder runs, and the events that it writes.  All of
 * it is called by that thread, or under tdt__recorder_lock by the thread that starts or stops the
 * recorder.
 */

#include <stdbool.h>
#include <stddef.h>

#include <tdt/layout/recording.h>

#include "recording/describe.h"

struct tdt__block;
struct tdt__module;
struct tdt_handle;
struct tdt_task_record;

/* START or STOP, with what the time is.  Under tdt__recorder_lock. */
void tdt__service_mark(struct tdt_recording *block, enum tdt_event_kind kind);

/*
 * Make the event and the payload for a module, and for a live task, of whose record the caller has
 * a copy.  They return the size of the payload.  Any thread that may wait.
 */
size_t tdt__service_module(const struct tdt__module *module, struct tdt_event *event,
			   char payload[TDT__DESCRIPTION_MAX]);
size_t tdt__service_task(const struct tdt_handle *task, const struct tdt_task_record *record,
			 struct tdt_event *event, char payload[TDT__DESCRIPTION_MAX]);

/*
 * Make rings ready, and let threads take them, until some of each kind are free.  Returns 0 or a
 * negative errno.
 */
int tdt__service_rings(struct tdt__block *block);

/*
 * One round of the recorder's thread.  Returns whether threads recorded anything since the last
 * round, or poll now.  Takes tdt__recorder_lock.
 */
bool tdt__service_round(struct tdt__block *block);
