// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What a poll costs, for probes.sh, which runs this against several builds of the library and under a tracer.
 *
 *	probes poll|clone|life|nop [SEMAPHORE]
 *
 * prints nanoseconds: of a traced poll that does nothing, of one that clones its waker, of a task's whole life (one
 * poll), and of a probe of our own that has no semaphore and no arguments, which is the least there is.  They are the
 * median of batches, each short enough to be mostly undisturbed.  With the place of a semaphore in the library it first
 * waits for it to be raised.
 */

#include <config.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tdt/tdt.h>

#if TDT_PROBES
#include <sys/sdt.h>
#else
#define STAP_PROBE(provider, name) (void)0
#endif

enum { BATCHES = 101, TIMES = 2000 };

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static __attribute__((noinline)) tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static __attribute__((noinline)) tdt_poll_t clone_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static __attribute__((noinline)) void hit(void)
{
	STAP_PROBE(tdt_bench, nop);
}

static struct tdt_traced task;
static struct tdt_context cx;

static void polls(void)
{
	for (int i = 0; i < TIMES; i++)
		tdt_future_poll(&task.future, &cx);
}

static tdt_poll_t ready_poll(void *state, struct tdt_context *context)
{
	(void)state;
	(void)context;
	return TDT_READY;
}

static void lives(void)
{
	for (int i = 0; i < TIMES; i++) {
		struct tdt_traced mayfly = tdt_traced(((struct tdt_future){ NULL, ready_poll, drop_nothing }));

		tdt_future_poll(&mayfly.future, &cx);
		tdt_future_drop(&mayfly.future);
		tdt_handle_unref(mayfly.handle);
	}
}

static void nops(void)
{
	for (int i = 0; i < TIMES; i++)
		hit();
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(void (*batch)(void))
{
	static int64_t took[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		int64_t start = now();

		batch();
		took[i] = now() - start;
	}
	qsort(took, BATCHES, sizeof took[0], by_value);
	return (double)took[BATCHES / 2] / TIMES;
}

static int wait_for(unsigned long place)
{
	const volatile unsigned short *semaphore;
	Dl_info library;

	if (dladdr((void *)(uintptr_t)tdt_traced_with, &library) == 0)
		return 0;
	semaphore = (const volatile unsigned short *)((uintptr_t)library.dli_fbase + place);
	for (int i = 0; i < 10000 && *semaphore == 0; i++)
		usleep(1000);
	return *semaphore != 0;
}

static const struct {
	const char *name;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	void (*batch)(void);
} measures[] = {
	{ "poll", wait_poll, polls },
	{ "clone", clone_poll, polls },
	{ "life", wait_poll, lives },
	{ "nop", wait_poll, nops },
};

int main(int argc, char **argv)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, nothing, nothing, nothing };
	static const struct tdt_waker waker = { &vtable };
	size_t i = 0;

	while (i < sizeof measures / sizeof measures[0] && (argc < 2 || strcmp(argv[1], measures[i].name) != 0))
		i++;
	if (i == sizeof measures / sizeof measures[0])
		return 2;
	if (argc > 2 && !wait_for(strtoul(argv[2], NULL, 0)))
		return EXIT_FAILURE;
	cx = (struct tdt_context){ &waker };
	task = tdt_traced(((struct tdt_future){ NULL, measures[i].poll, drop_nothing }));
	if (task.handle == NULL)
		return EXIT_FAILURE;
	tdt_worker_now((uint64_t)now()); /* no clock in a poll */
	printf("%.2f\n", median(measures[i].batch));
	tdt_future_drop(&task.future);
	tdt_handle_unref(task.handle);
	return EXIT_SUCCESS;
}
