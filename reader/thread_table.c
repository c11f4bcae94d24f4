// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading the table of threads.  A slot may be out of date: the struct lies in the memory of a
 * thread that has ended, which may be unmapped, or belong to another thread.  So the threads that
 * there are are looked up in the table, and not the other way round.
 */

#include "reader/thread_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "reader/threads.h"

struct table_reading {
	struct tdt__thread_table *table;
	const struct tdt__tasks *tasks;
	size_t room;
};

/* A core file does not have the names of threads. */
static void read_thread_name(const struct tdt__target *target, uint32_t here, char name[16])
{
	if (here == 0 || tdt__thread_proc_text(target, here, "comm", name, 16) <= 0)
		name[0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static int add_known_thread(uint32_t id, uint32_t here, void *arg)
{
	struct table_reading *reading = arg;
	const struct tdt__tasks *tasks = reading->tasks;
	struct tdt_registry_thread from;
	struct tdt__known_thread *thread;

	if (!tdt__thread_registered(tasks->target, &tasks->registry, id, &from))
		return 0;
	if (!tdt__array_grow(&reading->table->thread, reading->table->n, &reading->room,
			     sizeof *thread))
		return -ENOMEM;
	thread = &reading->table->thread[reading->table->n++];
	*thread = (struct tdt__known_thread){ .id = id, .worker = from.worker != 0 };
	read_thread_name(tasks->target, here, thread->name);
	if (from.parked != 0 && tasks->now > from.parked)
		thread->parked_ns = tasks->now - from.parked;
	return 0;
}

static int by_thread_id(const void *a, const void *b)
{
	const struct tdt__known_thread *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Find the task that each thread polls; of several, the one whose poll began last. */
static void find_polls(struct tdt__thread_table *table, const struct tdt__tasks *tasks)
{
	for (size_t i = 0; i < tasks->n && table->n > 0; i++) {
		const struct tdt__seen_task *task = &tasks->task[i];
		const struct tdt__known_thread key = { .id = task->member.info.thread };
		struct tdt__known_thread *thread =
			key.id != 0 ? bsearch(&key, table->thread, table->n, sizeof key,
					      by_thread_id)
				    : NULL;

		if (thread != NULL &&
		    (thread->polls == NULL ||
		     task->seen->record.since >= thread->polls->seen->record.since))
			thread->polls = task;
	}
}

int tdt__thread_table_read(struct tdt__thread_table *table, const struct tdt__tasks *tasks)
{
	struct table_reading reading = { .table = table, .tasks = tasks };
	int error;

	*table = (struct tdt__thread_table){ 0 };
	error = tdt__threads_visit(tasks->target, add_known_thread, &reading);
	if (error != 0) {
		tdt__thread_table_fini(table);
		return error;
	}
	if (table->n > 0)
		qsort(table->thread, table->n, sizeof table->thread[0], by_thread_id);
	find_polls(table, tasks);
	return 0;
}

void tdt__thread_table_fini(struct tdt__thread_table *table)
{
	free(table->thread);
	*table = (struct tdt__thread_table){ 0 };
}
