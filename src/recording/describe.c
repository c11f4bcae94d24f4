// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making the payloads of events that describe tasks and modules. */

#include "recording/describe.h"

#include <stdio.h>
#include <string.h>

#define FILE_KEPT 191 /* of the name of a file, its last bytes */
#define TASK_NAME_MAX (TDT_TASK_RECORD_NAME_SIZE - 1)

_Static_assert(16 + TASK_NAME_MAX + 1 + FILE_KEPT + 1 <= TDT__IDENTITY_MAX, "an identity fits");

static char *append_text(char *to, const char *text, size_t size)
{
	memcpy(to, text, size);
	to[size] = '\0';
	return to + size + 1;
}

size_t tdt__describe_task(const struct tdt_task_record *record, const char *file,
			  char payload[TDT__IDENTITY_MAX])
{
	size_t length = strlen(file), kept = length < FILE_KEPT ? length : FILE_KEPT;
	char *at = payload;

	memcpy(at, &record->parent, 8);
	memcpy(at + 8, &record->line, 4);
	memcpy(at + 12, &record->column, 4);
	at = append_text(at + 16, record->name, strnlen(record->name, TASK_NAME_MAX));
	at = append_text(at, file + (length - kept), kept);
	return (size_t)(at - payload);
}

size_t tdt__describe_module(uint64_t bias, const char *build_id, const char *path,
			    char payload[TDT__DESCRIPTION_MAX])
{
	size_t n = strlen(build_id) / 2, length;

	memcpy(payload, &bias, 8);
	payload[8] = (char)n;
	for (size_t i = 0; i < n; i++) {
		unsigned byte = 0;

		sscanf(build_id + 2 * i, "%2x", &byte);
		payload[9 + i] = (char)byte;
	}
	length = strnlen(path, TDT__DESCRIPTION_MAX - 10 - n);
	return (size_t)(append_text(payload + 9 + n, path, length) - payload);
}
