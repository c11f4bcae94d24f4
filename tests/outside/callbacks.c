// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Many operations of tdt/callback.h, on several threads, each of which knows where it waits: for
 * callbacks.sh.
 *
 *	callbacks N THREADS
 *
 * Each thread takes its share of N operations through a different number of callbacks.  One
 * callback of each thread then blocks for ever.  A line for each operation says what is true,
 *
 *	ID STATE KIND CHAIN              the functions with > between them, the outermost first
 *
 * and "ready" follows.  After "dump FILE" on its input the program dumps all there, as JSON.
 */

#include <config.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/callback.h>
#include <tdt/tdt.h>

#include "lib/must.h"

static struct operation {
	struct tdt_op op;
	void (*next)(struct operation *operation);
	const char *chain, *kind;
	unsigned callbacks; /* so many are still to come */
	bool blocks;
} *operations;

static unsigned n, threads;
static atomic_uint resting;
static int never_written[2];

static void keep(struct operation *operation, void (*next)(struct operation *operation))
{
	operation->next = next;
}

static void block(void)
{
	char byte;

	atomic_fetch_add(&resting, 1);
	MUST(read(never_written[0], &byte, 1) == 1);
}

static void third(struct operation *operation);

/* It is called again and again. */
static void second(struct operation *operation)
{
	TDT_RUNS(&operation->op);
	if (operation->callbacks == 0 && operation->blocks) {
		operation->chain = "begin>first>second>a lock>second>block";
		operation->kind = "-";
		block();
		TDT_KEEP_FRAME();
	}
	operation->chain = "begin>first>second>a lock";
	operation->kind = "mutex";
	TDT_AWAITS_FOR(&operation->op,
		       keep(operation, operation->callbacks % 3 != 0 ? second : third), "a lock",
		       TDT_WAIT_MUTEX, 0x1000);
}

/* It awaits nothing else, so it is called where it was. */
static void third(struct operation *operation)
{
	TDT_RUNS(&operation->op);
	operation->next = operation->callbacks % 2 == 0 ? second : third;
}

static void first(struct operation *operation)
{
	TDT_RUNS(&operation->op);
	operation->chain = "begin>first>a socket";
	operation->kind = "io";
	TDT_AWAITS_FOR(&operation->op, keep(operation, second), "a socket", TDT_WAIT_IO, 5);
}

static void begin(struct operation *operation, unsigned callbacks)
{
	operation->callbacks = callbacks;
	operation->chain = "begin>a timer";
	operation->kind = "timer";
	tdt_op_begin(&operation->op, TDT_TASK_ATTR(.entry = (uintptr_t)begin));
	MUST(operation->op.task != NULL);
	TDT_RUNS(&operation->op); /* so that a recording has what is awaited */
	TDT_AWAITS_FOR(&operation->op, keep(operation, first), "a timer", TDT_WAIT_TIMER, 0);
}

static void *loop(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	struct operation *last = NULL;

	for (unsigned i = thread; i < n; i += threads)
		begin(&operations[i], i / threads % 9);
	for (bool more = true; more;) {
		more = false;
		for (unsigned i = thread; i < n; i += threads)
			if (operations[i].callbacks > 0) {
				operations[i].callbacks--;
				last = &operations[i];
				last->next(last);
				more = true;
			}
	}
	last->blocks = true;
	last->next = second;
	last->next(last);
	return NULL;
}

static void dump(const char *path)
{
	struct tdt_print_options json = { .size = sizeof json, .format = TDT_PRINT_JSON };
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = INT64_C(60000000000),
					    .print = &json };
	FILE *out = fopen(path, "w");

	MUST(out != NULL && tdt_dump_with(out, &options) == 0 && fclose(out) == 0);
	puts("dumped");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096];

	MUST(argc == 3 && pipe(never_written) == 0);
	n = (unsigned)atoi(argv[1]);
	threads = (unsigned)atoi(argv[2]);
	operations = calloc(n, sizeof *operations);
	MUST(operations != NULL);
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, loop, (void *)(uintptr_t)i) == 0);
	}
	while (atomic_load(&resting) != threads)
		usleep(1000);
	MUST(tdt_misused() == NULL);
	for (unsigned i = 0; i < n; i++)
		printf("%" PRIu64 " %s %s %s\n", tdt_handle_id(operations[i].op.task),
		       operations[i].blocks ? "running" : "waiting", operations[i].kind,
		       operations[i].chain);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		dump(line + 5);
	}
	_exit(0);
}
