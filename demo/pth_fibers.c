// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The threads of GNU Pth as tasks of tdt, in a program that is not changed.  Link this file with
 * the program, or preload it:
 *
 *	cc -shared -fPIC -g pth_fibers.c -o libpth-fibers.so $(pkg-config --cflags --libs tdt) -lpth
 *	LD_PRELOAD=./libpth-fibers.so TDT_DUMP=USR1 ./server
 *
 * It stands before three functions of Pth, which the program and Pth itself then call by way of it.
 * All waiting in Pth, and all switching, goes through pth_yield().  (So Pth must be a shared
 * library: in a static one its own calls go past this file.)
 *
 * A thread that is cancelled before it has run, or that pth_kill() destroys, stays in the list of
 * tasks.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT, pthread_getattr_np() */
#endif

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <pth.h>

#include <tdt/integrate/fiber.h>
#include <tdt/trace.h>

/* What a new thread is to do. */
struct start {
	void *(*function)(void *arg);
	void *arg;
	struct tdt_fiber *fiber;
};

/* Pth runs all its threads in one thread of the kernel. */
static bool in_pth_init, have_key;
static pth_key_t fiber_key; /* the fiber of each thread that has run */

static void end_fiber(void *fiber)
{
	tdt_fiber_end(fiber);
}

/* The stack of the process, which Pth has for main(). */
static void process_stack(char **low, size_t *size)
{
	pthread_attr_t attr;
	void *stack;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return;
	if (pthread_attr_getstack(&attr, &stack, size) == 0)
		*low = stack;
	pthread_attr_destroy(&attr);
}

static struct tdt_fiber *fiber_new(pth_t thread)
{
	struct tdt_task_attr task = { .size = sizeof(task) };
	pth_attr_t attr = pth_attr_of(thread);
	char *name = NULL, *low = NULL;
	unsigned int pth_size = 0;
	struct tdt_fiber *fiber;
	size_t size;

	if (attr == NULL)
		return NULL;
	pth_attr_get(attr, PTH_ATTR_NAME, &name);
	pth_attr_get(attr, PTH_ATTR_STACK_ADDR, &low);
	pth_attr_get(attr, PTH_ATTR_STACK_SIZE, &pth_size);
	size = pth_size;
	if (low == NULL)
		process_stack(&low, &size);
	task.name = name;
	fiber = tdt_fiber_new(low, low != NULL ? size : 0, &task);
	pth_attr_destroy(attr);
	return fiber;
}

/* From here on the calling thread is the fiber's task.  Pth ends it by way of the key. */
static void run_fiber(struct tdt_fiber *fiber)
{
	if (!have_key)
		have_key = pth_key_create(&fiber_key, end_fiber);
	if (have_key)
		pth_key_setdata(fiber_key, fiber);
	tdt_fiber_resume(fiber);
}

/* The outermost function of each thread but main()'s. */
static void *thread_main(void *arg)
{
	struct start start = *(struct start *)arg;
	void *result;

	free(arg);
	TDT_FIBER_BASE(start.fiber);
	run_fiber(start.fiber);
	result = start.function(start.arg);
	TDT_KEEP_FRAME();
	return result;
}

int pth_init(void)
{
	int (*real_init)(void);
	int done;

	*(void **)&real_init = dlsym(RTLD_NEXT, "pth_init");
	in_pth_init = true;
	done = real_init();
	in_pth_init = false;
	if (done)
		run_fiber(fiber_new(pth_self())); /* main(), which runs already */
	return done;
}

pth_t pth_spawn(pth_attr_t attr, void *(*function)(void *), void *arg)
{
	struct start *start = in_pth_init ? NULL : malloc(sizeof(*start));
	pth_t (*real_spawn)(pth_attr_t, void *(*)(void *), void *);
	pth_t thread;

	*(void **)&real_spawn = dlsym(RTLD_NEXT, "pth_spawn");
	if (start == NULL) /* it is of Pth's own, or remains without a task */
		return real_spawn(attr, function, arg);
	*start = (struct start){ function, arg, NULL };
	thread = real_spawn(attr, thread_main, start);
	if (thread != NULL)
		start->fiber = fiber_new(thread);
	else
		free(start);
	return thread;
}

int pth_yield(pth_t to)
{
	static int (*real_yield)(pth_t);
	struct tdt_fiber *fiber = pth_key_getdata(fiber_key);
	int done;

	if (real_yield == NULL)
		*(void **)&real_yield = dlsym(RTLD_NEXT, "pth_yield");
	tdt_fiber_suspend(fiber);
	done = real_yield(to);
	tdt_fiber_resume(fiber);
	return done;
}
