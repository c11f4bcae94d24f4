// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Handles of the tasks that live.  No lock is held while a task is asked, so it may end meanwhile. */

#include "task_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_NS 500000000 /* how long a task is waited for that doesn't tell where it is */

void task_list_init(struct task_list *list)
{
	pthread_mutex_init(&list->lock, NULL);
	TAILQ_INIT(&list->tasks);
}

static void add(struct task_list *list, struct listed *listed, struct tdt_handle *handle)
{
	listed->handle = handle;
	pthread_mutex_lock(&list->lock);
	TAILQ_INSERT_TAIL(&list->tasks, listed, entry);
	pthread_mutex_unlock(&list->lock);
}

/* tdt_rt_spawn() would trace the future itself.  It is done here, so that the task is listed before it can end. */
int task_list_spawn(struct task_list *list, struct tdt_rt *rt, struct tdt_future future, struct listed *listed,
		    const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = tdt_traced_with(future, attr);
	struct tdt_handle *task = NULL;
	int error;

	if (traced.handle != NULL) {
		add(list, listed, traced.handle);
		task = tdt_rt_spawn(rt, traced.future, NULL);
	}
	if (task == NULL) {
		error = -errno;
		tdt_future_drop(&traced.future);
		return error;
	}
	tdt_handle_unref(task);
	return 0;
}

void task_list_remove(struct task_list *list, struct listed *listed)
{
	if (listed->handle == NULL)
		return;
	pthread_mutex_lock(&list->lock);
	TAILQ_REMOVE(&list->tasks, listed, entry);
	pthread_mutex_unlock(&list->lock);
	tdt_handle_unref(listed->handle);
}

/* The handles, each with a reference; `*n` of them.  NULL: none, or no memory. */
static struct tdt_handle **ref_all(struct task_list *list, size_t *n)
{
	struct tdt_handle **handles;
	struct listed *listed;
	size_t size = 0;

	*n = 0;
	pthread_mutex_lock(&list->lock);
	TAILQ_FOREACH(listed, &list->tasks, entry) {
		size++;
	}
	handles = calloc(size, sizeof(struct tdt_handle *));
	if (handles != NULL) {
		TAILQ_FOREACH(listed, &list->tasks, entry) {
			handles[(*n)++] = tdt_handle_ref(listed->handle);
		}
	}
	pthread_mutex_unlock(&list->lock);
	return handles;
}

/* Whether the task told. */
static bool print_task(struct tdt_handle *handle, FILE *out, const struct tdt_print_options *options)
{
	struct tdt_trace *trace = tdt_backtrace_timed(handle, ANSWER_NS);

	if (trace != NULL)
		tdt_trace_print_with(trace, out, options);
	else if (errno != ESRCH) /* it has ended meanwhile */
		fprintf(stderr, "task %" PRIu64 " does not tell: %s\n", tdt_handle_id(handle), strerror(errno));
	tdt_trace_free(trace);
	return trace != NULL;
}

void task_list_print(struct task_list *list, FILE *out, enum tdt_print_format format)
{
	struct tdt_print_options options = { .size = sizeof(options), .format = format };
	size_t n, told = 0;
	struct tdt_handle **handles = ref_all(list, &n);

	for (size_t i = 0; i < n; i++) {
		told += print_task(handles[i], out, &options);
		tdt_handle_unref(handles[i]);
	}
	free(handles);
	if (format == TDT_PRINT_TEXT)
		fprintf(out, "%zu tasks were asked, %zu told\n", n, told);
	fflush(out);
}
