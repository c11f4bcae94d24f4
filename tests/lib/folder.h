/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

/* A folder of a test's own, below $TMPDIR. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	FOLDER_SIZE = 192,
	IN_FOLDER_SIZE = FOLDER_SIZE + 64, /* for the path of a file in it */
};

/* Make a folder that the test is to remove; its path is in `path`. */
static inline bool make_folder(char path[static FOLDER_SIZE])
{
	const char *set = getenv("TMPDIR");
	int n = snprintf(path, FOLDER_SIZE, "%s/tdt-test-XXXXXX",
			 set != NULL && set[0] != '\0' ? set : "/tmp");

	return n < FOLDER_SIZE && mkdtemp(path) != NULL;
}

#endif
