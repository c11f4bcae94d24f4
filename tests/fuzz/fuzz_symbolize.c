// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The symbolizer with an ELF file that may be damaged: many addresses are looked up, and all
 * strings of the answers are read.
 *
 * The library keeps what it has read of a file, by the file's path, as long as the process lives.
 * So each input gets a path of its own, and memory grows with each input; tests/fuzz/run.sh begins
 * a new process now and then.
 */

#include <config.h>

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "symbolize/symbolize.h"

/* A seed may have this build-id; all others have none. */
#define BUILD_ID "f00df00d"
static const char build_id_note[] = "GNU\0\xf0\x0d\xf0\x0d";

/* The only call of the library: NULL if there is no memory. */
static const struct tdt__symbol *symbolize(const struct tdt__module *module, uintptr_t pc)
{
	return tdt__symbolize(module, pc, true);
}

static volatile size_t length_read; /* keeps compilers from dropping the reads */

static void read_string(const char *string)
{
	if (string != NULL)
		length_read = strlen(string);
}

/* Look at all of it, for a sanitizer. */
static void read_symbol(const struct tdt__symbol *symbol)
{
	if (symbol == NULL)
		return;
	read_string(symbol->symbol);
	for (size_t i = 0; i < symbol->n; i++) {
		read_string(symbol->place[i].function);
		read_string(symbol->place[i].file);
		read_string(symbol->place[i].directory);
	}
}

/* Where code is: from the entry point on in a seed. */
static uint64_t find_code(const uint8_t *data, size_t size)
{
	Elf64_Ehdr header;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	return header.e_entry;
}

/* `n` addresses from `start` on. */
static void look_up(const struct tdt__module *module, uint64_t start, unsigned int n,
		    unsigned int distance)
{
	for (unsigned int i = 0; i < n; i++)
		read_symbol(symbolize(module, (uintptr_t)(start + (uint64_t)i * distance)));
}

static const char *directory(void)
{
	const char *set = getenv("TMPDIR");

	unsetenv("DEBUGINFOD_URLS"); /* libdwfl would ask a server */
	return set != NULL ? set : "/tmp";
}

/* The path of a new file, for the caller to free. */
static char *create_file(const uint8_t *data, size_t size)
{
	static unsigned int number;
	char *path = NULL;
	FILE *file;

	CLAIM(asprintf(&path, "%s/fuzz-symbolize-%d-%u", directory(), getpid(), number++) > 0);
	file = fopen(path, "wxe");
	CLAIM(file != NULL);
	CLAIM(fwrite(data, 1, size, file) == size);
	CLAIM(fclose(file) == 0);
	return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tdt__module module = { .end = UINTPTR_MAX };

	if (size == 0)
		return 0;
	if (memmem(data, size, build_id_note, sizeof(build_id_note) - 1) != NULL)
		strcpy(module.build_id, BUILD_ID);
	module.path = create_file(data, size);
	look_up(&module, find_code(data, size) - 256, 256, 8);
	look_up(&module, 0, 64, 64);
	look_up(&module, UINT64_MAX - 1, 4, 1);
	unlink(module.path);
	free(module.path);
	return 0;
}
