// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The program's hooks for panics.  They are in a list, in the order in which they were added.  A
 * hook is called without a lock, and counts the threads that are in it: who removes a hook waits
 * for these, and only then takes it out of the list.  So a thread that returns from a hook finds
 * the next one.
 */

#include "task/panic_hooks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <tdt/panics.h>

#include "base/result.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"

struct panic_hook {
	tdt_panic_hook_fn *call;
	void *arg;
	struct panic_hook *next;
	unsigned running; /* threads that are in it */
	bool removed;     /* it is called no more */
};

/* Protects the list and all that is in it. */
pthread_mutex_t tdt__panic_hooks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER; /* a removed hook has no threads */
static struct panic_hook *first_hook;
/* Whether there are hooks, for panics without one.  Relaxed: a hook that is being added may miss
 * the panics of that moment. */
static atomic_bool any;

/* The hooks that this thread is in: a hook may lead to another panic. */
static __thread struct inside {
	const struct panic_hook *hook;
	const struct inside *outer;
} *innermost __attribute__((tls_model("initial-exec")));

static bool is_in_hook(const struct panic_hook *hook)
{
	for (const struct inside *at = innermost; at != NULL; at = at->outer)
		if (at->hook == hook)
			return true;
	return false;
}

/* Where the pointer to this hook is; the end of the list: there is none. */
static struct panic_hook **find_hook(tdt_panic_hook_fn *call, const void *arg)
{
	struct panic_hook **at = &first_hook;

	while (*at != NULL && ((*at)->call != call || (*at)->arg != arg || (*at)->removed))
		at = &(*at)->next;
	return at;
}

static int add_hook(tdt_panic_hook_fn *call, void *arg)
{
	struct panic_hook **at, *hook = malloc(sizeof *hook);
	int error = 0;

	if (hook == NULL)
		return -ENOMEM;
	*hook = (struct panic_hook){ .call = call, .arg = arg };
	pthread_mutex_lock(&tdt__panic_hooks_lock);
	at = find_hook(call, arg);
	if (*at == NULL) {
		*at = hook;
		atomic_store_explicit(&any, true, memory_order_relaxed);
	} else {
		error = -EEXIST;
	}
	pthread_mutex_unlock(&tdt__panic_hooks_lock);
	if (error != 0)
		free(hook);
	return error;
}

int tdt_panic_hook_add(tdt_panic_hook_fn *hook, void *arg)
{
	return tdt__result(hook == NULL ? -EINVAL : add_hook(hook, arg));
}

/* Take the hook out of the list.  The list is locked, and other hooks may have come and gone. */
static void unlink_hook(struct panic_hook *hook)
{
	struct panic_hook **at = &first_hook;

	while (*at != hook)
		at = &(*at)->next;
	*at = hook->next;
	atomic_store_explicit(&any, first_hook != NULL, memory_order_relaxed);
}

int tdt_panic_hook_remove(tdt_panic_hook_fn *call, void *arg)
{
	struct panic_hook *hook;
	int error = 0;

	pthread_mutex_lock(&tdt__panic_hooks_lock);
	hook = *find_hook(call, arg);
	if (hook == NULL || is_in_hook(hook)) {
		error = hook == NULL ? -ENOENT : -EDEADLK;
	} else {
		hook->removed = true;
		while (hook->running != 0)
			pthread_cond_wait(&returned, &tdt__panic_hooks_lock);
		unlink_hook(hook);
	}
	pthread_mutex_unlock(&tdt__panic_hooks_lock);
	if (error == 0)
		free(hook);
	return tdt__result(error);
}

/* Call a hook, with the lock held, which is released meanwhile. */
static void call_hook(struct panic_hook *hook, const struct tdt_task_info *info)
{
	struct inside inside = { hook, innermost };

	hook->running++;
	pthread_mutex_unlock(&tdt__panic_hooks_lock);
	innermost = &inside;
	hook->call(info, hook->arg);
	innermost = (struct inside *)(uintptr_t)inside.outer;
	pthread_mutex_lock(&tdt__panic_hooks_lock);
	if (--hook->running == 0 && hook->removed)
		pthread_cond_broadcast(&returned);
}

void tdt__panic_report(const struct tdt_handle *task)
{
	struct tdt__task_info info;
	struct tdt_task_record record;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return;
	tdt__registry_read(task, &record);
	tdt__task_info(&info, task, &record, tdt__now());
	pthread_mutex_lock(&tdt__panic_hooks_lock);
	for (struct panic_hook *hook = first_hook; hook != NULL; hook = hook->next)
		if (!hook->removed)
			call_hook(hook, &info.info);
	pthread_mutex_unlock(&tdt__panic_hooks_lock);
}

void tdt__panic_hooks_forked(void)
{
	/* The other threads that were in hooks, and those that waited for them, are gone. */
	for (struct panic_hook *hook = first_hook; hook != NULL; hook = hook->next)
		hook->running = is_in_hook(hook);
	returned = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}
