/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

struct tdt_handle;
struct tdt_task_record;
struct tdt__capture;

/* Have the facts of the capture be those of the record, which is a copy of the task's. */
void tdt__capture_recorded(struct tdt__capture *capture, const struct tdt_handle *task,
			   const struct tdt_task_record *record);
