// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A plugin: functions that call each other in an order of the plugin's own, and then the host.
 *
 * The plugin is built several times, as PLUGIN_NAME a, b...  The code of all is alike but for the
 * names, the size of the frames and the order, which is data.  So where plugin b lies at the
 * address of plugin a, the stacks of both have the same return addresses:
 *
 * - If the frames of b are larger, then the rules of one lead astray on a stack of the other.
 * - If the frames are alike, then a stack of a that is given the names of b has them in an order
 * that b never calls its functions in.
 *
 * Functions of one plugin have frames of different sizes, because compilers merge functions that
 * are the same.
 */

#include <config.h>

#include "lib/host_plugin.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PASTE(a, b, c) a##b##c
#define NAME(prefix, plugin, name) PASTE(prefix, plugin, name)
#define FUNCTION(name) NAME(host_, PLUGIN_NAME, name)
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define NOINLINE __attribute__((noinline))
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

typedef void step_fn(struct host_walk *walk);

static step_fn FUNCTION(_zero), FUNCTION(_one), FUNCTION(_two);

static step_fn *volatile order[] = {
#ifdef PLUGIN_BACKWARDS
	FUNCTION(_two),
	FUNCTION(_one),
	FUNCTION(_zero),
#else
	FUNCTION(_zero),
	FUNCTION(_one),
	FUNCTION(_two),
#endif
};

static inline __attribute__((always_inline)) void go_on(struct host_walk *walk)
{
	if (walk->depth < sizeof order / sizeof order[0])
		order[walk->depth++](walk);
	else
		walk->stay(walk->arg);
}

static NOINLINE void FUNCTION(_zero)(struct host_walk *walk)
{
	char room[PLUGIN_FRAME];

	USE(room);
	go_on(walk);
	USE(room);
}

static NOINLINE void FUNCTION(_one)(struct host_walk *walk)
{
	char room[PLUGIN_FRAME + 256];

	USE(room);
	go_on(walk);
	USE(room);
}

static NOINLINE void FUNCTION(_two)(struct host_walk *walk)
{
	char room[PLUGIN_FRAME + 512];

	USE(room);
	go_on(walk);
	USE(room);
}

static NOINLINE void FUNCTION(_enter)(struct host_walk *walk)
{
	char room[PLUGIN_FRAME + 128];

	USE(room);
	go_on(walk);
	USE(room);
}

extern const struct host_plugin host_plugin;

__attribute__((visibility("default"))) const struct host_plugin host_plugin = {
	TEXT(PLUGIN_NAME)[0],
	FUNCTION(_enter),
};

#ifdef PLUGIN_CONSTRUCTOR_MS

static NOINLINE void FUNCTION(_stay)(void)
{
	struct timespec time = { 0, PLUGIN_CONSTRUCTOR_MS * 1000000l };
	const char *number = getenv(HOST_CONSTRUCTOR_FD);
	char byte;

	if (number == NULL)
		nanosleep(&time, NULL);
	else if (read(atoi(number), &byte, 1) != 1)
		abort();
	USE(&byte);
}

static __attribute__((constructor)) void FUNCTION(_construct)(void)
{
	FUNCTION(_stay)();
	USE(order);
}

#endif
