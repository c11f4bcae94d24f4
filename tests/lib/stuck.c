// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See stuck.h. */

#include "lib/stuck.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

static NOINLINE void in_read(struct stuck *stuck)
{
	char byte;

	stuck->result = (int)read(stuck->pipe[0], &byte, 1);
	USE(&byte);
}

/* Makes a frame only when it has seen that it needs one. */
static NOINLINE void in_read_late(struct stuck *stuck)
{
	char byte;

	if (atomic_load_explicit(&stuck->over, memory_order_relaxed))
		return;
	stuck->result = (int)read(stuck->pipe[0], &byte, 1);
	USE(&byte);
}

/*
 * Frames of one function, each as large as it happens to be, behind calls of just that function.
 * Those that are gone would look the same: the innermost is marked.
 */
static NOINLINE void again(struct stuck *stuck, int depth)
{
	char *room = __builtin_alloca((size_t)(100 * depth));

	USE(room);
	if (depth > 1)
		again(stuck, depth - 1);
	else
		stuck->result = (int)read(stuck->pipe[0], room, 1);
	USE(room);
}

static NOINLINE void in_read_again(struct stuck *stuck)
{
	again(stuck, 4);
	USE(stuck);
}

static NOINLINE void in_epoll_wait(struct stuck *stuck)
{
	struct epoll_event event;

	stuck->result = epoll_wait(stuck->epoll, &event, 1, -1);
	USE(&event);
}

static NOINLINE void in_nanosleep(struct stuck *stuck)
{
	/* Once, unless the requester takes longer than that. */
	do
		stuck->result = nanosleep(
		    &(struct timespec){ stuck->sleep_ms / 1000, stuck->sleep_ms % 1000 * 1000000 },
		    NULL);
	while (stuck->result == 0 && !atomic_load_explicit(&stuck->over, memory_order_relaxed));
	USE(stuck);
}

static NOINLINE void in_a_mutex(struct stuck *stuck)
{
	stuck->result = pthread_mutex_lock(&stuck->mutex);
	pthread_mutex_unlock(&stuck->mutex);
}

static NOINLINE void in_a_loop(struct stuck *stuck)
{
	while (!atomic_load_explicit(&stuck->over, memory_order_relaxed))
		;
	stuck->result = 0;
	USE(stuck);
}

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static NOINLINE void step_two(struct stuck *stuck)
{
	int64_t start = now();

	atomic_fetch_add(&stuck->entered, 1);
	errno = 0;
	stuck->in(stuck);
	stuck->error = errno;
	stuck->took_ns = now() - start;
}

static NOINLINE void step_one(struct stuck *stuck, uint64_t a, uint64_t b)
{
	char buffer[300];

	USE(buffer);
	step_two(stuck);
	USE(buffer);
	USE(a + b);
}

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	step_one(state, (uintptr_t)cx, (uintptr_t)state);
	USE(cx);
	return TDT_READY;
}

/* Has a frame of many pages, and passes arguments on the stack. */
static NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	USE(&h);
	return a + b + c + d + e + f + g + h;
}

static tdt_poll_t large_poll(void *state, struct tdt_context *cx)
{
	struct stuck *stuck = state;
	char room[20000];
	int sum = many(1, 2, 3, 4, 5, 6, 7, stuck->result);

	USE(room);
	atomic_fetch_add(&stuck->entered, 1);
	stuck->result = (int)read(stuck->pipe[0], room, 1);
	stuck->error = many(stuck->result, 0, 0, 0, 0, 0, 0, -stuck->result);
	USE(room);
	USE((uintptr_t)cx + (uintptr_t)sum);
	return TDT_READY;
}

const struct stuck_poll STUCK_TABLE[] = {
	{ "in_read", "stuck_poll step_one step_two in_read", "read", stuck_poll, in_read },
	{ "in_read_late", "stuck_poll step_one step_two in_read_late", "read", stuck_poll,
	  in_read_late },
	{ "in_read_again", "stuck_poll step_one step_two in_read_again again again again ~again",
	  "read", stuck_poll, in_read_again },
	{ "in_epoll_wait", "stuck_poll step_one step_two in_epoll_wait", "epoll_wait", stuck_poll,
	  in_epoll_wait },
	{ "in_nanosleep", "stuck_poll step_one step_two in_nanosleep", "clock_nanosleep",
	  stuck_poll, in_nanosleep },
	{ "in_a_mutex", "stuck_poll step_one step_two in_a_mutex", "futex", stuck_poll,
	  in_a_mutex },
	{ "in_a_loop", "stuck_poll step_one step_two in_a_loop", NULL, stuck_poll, in_a_loop },
	{ "large_poll", "large_poll", "read", large_poll, NULL },
	{ 0 },
};
