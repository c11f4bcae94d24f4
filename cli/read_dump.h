/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Reading the dumps and lists of tasks that read_json.c finds in a file. */

#include <jansson.h>

#include "cli/read_json.h"

/* A dump.  Returns 1 and sets `*result`, or returns -1 with the message set. */
int reader_dump(struct reader *reader, json_t *object, struct dump **result);

/* A list of tasks, in the same way. */
int reader_list(struct reader *reader, json_t *object, struct dump **result);
