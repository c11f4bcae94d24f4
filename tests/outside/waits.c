// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A process for tdt profile to look at: its tasks wait at known places.
 *
 *	waits SEED    prints "ready"; for each line of its input, for how long the tasks have waited
 *	              in each function, in nanoseconds; ends with its input
 */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/waits.h"
#include "lib/must.h"

int main(int argc, char **argv)
{
	static struct waits_ledger ledger;
	uint64_t ns[WAITS_PLACES];
	char line[16];

	MUST(argc == 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	waits_ledger_init(&ledger);
	waits_start(&ledger, 5, strtoull(argv[1], NULL, 10));
	puts("ready");
	while (fgets(line, sizeof line, stdin) != NULL) {
		waits_ledger_read(&ledger, ns);
		for (int i = 0; i < WAITS_PLACES; i++)
			printf("%s %" PRIu64 "\n", waits_function[i], ns[i]);
		puts("end");
	}
	return EXIT_SUCCESS;
}
