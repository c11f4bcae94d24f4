// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The last tasks that panicked.  They lie in the registry (<tdt/layout/registry.h>), so that they
 * can also be read from outside.
 *
 *   thread of a panicking task        reader
 *     number = the next one             seq, must be even
 *     seq: even to odd                  copy the panic
 *     fence (release)                   fence (acquire)
 *     write the panic                   seq again: the same?
 *     seq: to the next even one
 *
 * A thread that finds `seq` odd, because another thread writes there, leaves its panic out: 16
 * panics happened at once.
 */

#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <tdt/panics.h>

#include "base/clock.h"
#include "base/result.h"
#include "capture/capture.h"
#include "capture/judge.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/attr.h"
#include "task/panics.h"
#include "tree/trace.h"
#include "watch/last_tree.h"

static _Atomic uint64_t panics; /* how many there were; relaxed: the numbers only have to differ */

#define PANIC_WORDS (sizeof(struct tdt_registry_panic) / sizeof(tdt__record_word))

/* --- Writing ------------------------------------------------------------------ */

/* Without a capture, the task's last watched tree says where it waited before. */
static void fill_tree(struct tdt_registry_panic *panic, const struct tdt_handle *task,
		      const struct tdt__capture *capture)
{
	if (capture == NULL || capture->stacks.leaves == 0) {
		tdt__last_tree_copy(task, &panic->tree, panic->entry, TDT_REGISTRY_PANIC_ENTRIES);
		return;
	}
	tdt__tree_write(&panic->tree, panic->entry, TDT_REGISTRY_PANIC_ENTRIES, capture);
	panic->tree.elsewhere = atomic_load_explicit(&task->elsewhere, memory_order_relaxed);
}

/*
 * The address of a copy of the task's file, which stays: the task may be of a plugin that is
 * unloaded while its panic is still remembered.  0: no file is known, or there is no memory.
 */
static uint64_t stored_file_of(const struct tdt_task_record *record)
{
	struct tdt_task_attr attr = { .file = (const char *)(uintptr_t)record->file };

	if (attr.file == NULL || attr.file[0] == '\0')
		return 0;
	attr.file_length = strlen(attr.file);
	return tdt__attr_keep_file(&attr) == 0 ? (uintptr_t)attr.file : 0;
}

static void fill_panic(struct tdt_registry_panic *panic, const struct tdt_handle *task)
{
	const struct tdt_task_record *record = &task->record;

	panic->when = tdt__now();
	panic->thread = record->thread;
	panic->id = record->id;
	panic->parent = record->parent;
	panic->spawned = record->spawned;
	panic->polls = record->polls;
	panic->poll = record->poll;
	panic->file = stored_file_of(record);
	panic->line = record->line;
	panic->column = record->column;
	memcpy(panic->name, record->name, sizeof panic->name);
}

/* Write all but the first word, which has `seq`. */
static void write_words(struct tdt_registry_panic *to, const struct tdt_registry_panic *from)
{
	const tdt__record_word *words = (const void *)from;

	for (size_t i = 1; i < PANIC_WORDS; i++)
		TDT__POKE(((tdt__record_word *)(void *)to)[i], words[i]);
	TDT__POKE(to->thread, from->thread);
}

void tdt__panic_note(const struct tdt_handle *task, const struct tdt__capture *capture)
{
	struct tdt_registry_panic ours = { 0 };
	struct tdt_registry_panic *panic;
	uint32_t seq;

	ours.number = atomic_fetch_add_explicit(&panics, 1, memory_order_relaxed) + 1;
	panic = &tdt__panics[ours.number % TDT__PANICS];
	fill_panic(&ours, task);
	fill_tree(&ours, task, capture);
	/* Acquire: what the last writer wrote comes before.  Pairs with the release below. */
	seq = TDT__PEEK(panic->seq);
	if (seq % 2 != 0 || !__atomic_compare_exchange_n(&panic->seq, &seq, seq + 1, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	/*
	 * A reader that sees a word of this panic then sees the odd `seq`.  Pairs with
	 * read_panic().
	 */
	atomic_thread_fence(memory_order_release);
	write_words(panic, &ours);
	/* Release the panic.  Pairs with read_panic(). */
	__atomic_store_n(&panic->seq, seq + 2, __ATOMIC_RELEASE);
}

/* --- Reading ------------------------------------------------------------------ */

/* Copy the panic with this number.  False: it is not there any more, or not yet. */
static bool read_panic(uint64_t number, struct tdt_registry_panic *copy)
{
	const struct tdt_registry_panic *from = &tdt__panics[number % TDT__PANICS];
	/* Acquire the panic.  Pairs with tdt__panic_note(). */
	uint32_t seq = __atomic_load_n(&from->seq, __ATOMIC_ACQUIRE);

	for (size_t i = 0; i < PANIC_WORDS; i++)
		((tdt__record_word *)(void *)copy)[i] =
		    TDT__PEEK(((const tdt__record_word *)(const void *)from)[i]);
	/* Read all of it before `seq` again.  Pairs with the fence in tdt__panic_note(). */
	atomic_thread_fence(memory_order_acquire);
	return seq % 2 == 0 && TDT__PEEK(from->seq) == seq && copy->number == number;
}

static struct tdt_trace *trace_of(const struct tdt_registry_panic *panic, uint64_t now)
{
	const struct tdt_task_info info =
	    tdt__panic_info(panic, (const char *)(uintptr_t)panic->file, now);
	struct tdt__stacks *stacks = tdt__tree_stacks(&panic->tree, panic->entry);
	struct tdt__unloads count = { 0 };

	if (stacks == NULL)
		return tdt__nothing(-ENOMEM);
	tdt__judge(stacks, &count);
	return tdt__trace_of(&info, stacks);
}

uint64_t tdt__panic_count(void)
{
	return atomic_load_explicit(&panics, memory_order_relaxed);
}

int tdt__panic_trace(uint64_t back, uint64_t now, struct tdt_trace **trace)
{
	uint64_t last = tdt__panic_count();
	struct tdt_registry_panic panic;

	if (back >= last || back >= TDT__PANICS || !read_panic(last - back, &panic))
		return -ESRCH;
	*trace = trace_of(&panic, now);
	return *trace != NULL ? 0 : -ENOMEM;
}

int tdt_panics(tdt_panic_fn *each, void *arg)
{
	uint64_t now = tdt__clock();
	int result = each != NULL ? 0 : -EINVAL;

	for (uint64_t back = 0; result == 0 && back < TDT__PANICS; back++) {
		struct tdt_trace *trace;

		result = tdt__panic_trace(back, now, &trace);
		if (result == -ESRCH) {
			result = 0;
			continue;
		}
		if (result != 0)
			break;
		result = each(trace, arg);
		tdt_trace_free(trace);
		if (result != 0)
			return result;
	}
	return tdt__result(result);
}
