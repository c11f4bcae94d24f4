// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A helper of tests/outside/symbolize_variants.sh: what tdt__symbolize() says of addresses of a
 * file that is not loaded.
 *
 *	symbolize_pcs FILE BUILD_ID [DEBUG_DIRECTORY [WATCHED]] <addresses
 *
 * Each is a return address.  Prints what fixtures/trail.h expects, innermost first, and the ELF
 * symbol; at the end, whether the file WATCHED was opened meanwhile.
 */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "symbolize/debugfile.h"
#include "symbolize/symbolize.h"

static int print(const struct tdt__symbol *symbol, uintptr_t pc)
{
	if (symbol == NULL)
		return 1;
	printf("%#" PRIxPTR " ", pc);
	if (symbol->n == 0)
		printf("?");
	for (size_t i = 0; i < symbol->n; i++) {
		const struct tdt__place *place = &symbol->place[i];

		printf("%s%s@%s:%" PRIu32, i > 0 ? " < " : "",
		       place->function != NULL ? place->function : "?",
		       place->file != NULL ? place->file : "?", place->line);
	}
	if (symbol->missing != NULL)
		printf(", no %s", symbol->missing);
	printf(" [%s]\n", symbol->symbol != NULL ? symbol->symbol : "");
	fflush(stdout);
	return 0;
}

/* inotify reports an open file, but not one that is opened with O_PATH. */
static int watch_file(const char *path)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return inotify_add_watch(watch, path, IN_OPEN) >= 0 ? watch : -1;
}

static void print_opened(int watch, const char *path)
{
	char event[4096];

	if (read(watch, event, sizeof event) > 0)
		printf("%s was opened\n", path);
}

int main(int argc, char **argv)
{
	struct tdt__module module = { .end = UINTPTR_MAX };
	char path[4096];
	char line[64];
	int watch = argc > 4 ? watch_file(argv[4]) : -1;

	if (argc < 3 || (argc > 4 && watch < 0))
		return 2;
	module.path = argv[1];
	snprintf(module.build_id, sizeof(module.build_id), "%s", argv[2]);
	if (argc > 3) {
		snprintf(path, sizeof(path), ":.debug:%s", argv[3]);
		tdt__debugfile_path = path;
	}
	while (fgets(line, sizeof(line), stdin) != NULL) {
		uintptr_t pc = strtoul(line, NULL, 16);

		if (print(tdt__symbolize(&module, pc, true), pc) != 0)
			return 1;
	}
	if (watch >= 0)
		print_opened(watch, argv[4]);
	return 0;
}
