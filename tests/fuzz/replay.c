// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The main() of a fuzz target without libFuzzer: it gives the target the files on the command line,
 * one after the other.  An input that fails, or takes more than a gigabyte of memory, ends the
 * process by a signal.
 */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "fuzz.h"

#define MEMORY_MAX (1L << 20) /* KiB */

/* The whole file, for the caller to free; NULL: it can't be read. */
static uint8_t *read_file(const char *name, size_t *size)
{
	FILE *file = fopen(name, "re");
	uint8_t *data = NULL;
	long length = -1;

	if (file != NULL && fseek(file, 0, SEEK_END) == 0)
		length = ftell(file);
	if (length >= 0)
		data = malloc((size_t)length + 1);
	*size = (size_t)length;
	if (data != NULL) {
		rewind(file);
		*size = fread(data, 1, (size_t)length, file);
	}
	if (file != NULL)
		fclose(file);
	return data;
}

/* In memory of just that size, so that a sanitizer sees who reads beyond it. */
static void replay(const uint8_t *data, size_t size)
{
	uint8_t *input = malloc(size > 0 ? size : 1);

	CLAIM(input != NULL);
	memcpy(input, data, size);
	LLVMFuzzerTestOneInput(input, size);
	free(input);
}

static void claim_memory(void)
{
	struct rusage usage;

	CLAIM(getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss <= MEMORY_MAX);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t size;
		uint8_t *data = read_file(argv[i], &size);

		if (data == NULL) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
			return 2;
		}
		replay(data, size);
		claim_memory();
		free(data);
	}
	return 0;
}
