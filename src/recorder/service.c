// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The rounds of the recorder's thread. */

#include "recorder/service.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/index.h"
#include "capture/capture.h"
#include "capture/running.h"
#include "facts/lost.h"
#include "host/loaded.h"
#include "host/peek.h"
#include "recorder/block.h"
#include "recorder/clock.h"
#include "recorder/recorder.h"
#include "recorder/rings.h"
#include "recorder/stacks.h"
#include "recorder/trigger.h"
#include "recording/read.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "symbolize/modules.h"
#include "unwind/unwinder.h"
#include "watch/watch.h"

/* --- Events ---------------------------------------------------------------- */

/* Write an event to a ring of the service.  Under tdt__recorder_lock. */
static void put_service_event(struct tdt_recording *block, int ring, const struct tdt_event *event,
			      const void *payload, size_t size)
{
	struct tdt_recording_ring *to = tdt__block_ring(block, (uint32_t)ring);

	if (to->room != 0)
		tdt__ring_put_long(to, tdt__ring_slots(to), event, payload, size);
}

static void put_locked_event(struct tdt_recording *block, int ring, const struct tdt_event *event,
		      const void *payload, size_t size)
{
	pthread_mutex_lock(&tdt__recorder_lock);
	put_service_event(block, ring, event, payload, size);
	pthread_mutex_unlock(&tdt__recorder_lock);
}

/* What the time is.  Under tdt__recorder_lock. */
static void write_clock(struct tdt_recording *block)
{
	struct tdt__moment now;
	struct tdt_event event = { .kind = TDT_EVENT_CLOCK };

	tdt__moment_now(&now);
	event.time = now.ticks;
	event.task = now.monotonic;
	event.c = now.boot;
	put_service_event(block, TDT__RING_CLOCKS, &event, &now.real, sizeof now.real);
}

void tdt__service_mark(struct tdt_recording *block, enum tdt_event_kind kind)
{
	const struct tdt_event event = { .kind = (uint8_t)kind, .time = tdt__ticks() };

	put_service_event(block, TDT__RING_CLOCKS, &event, NULL, 0);
	write_clock(block);
}

/* --- Rings that threads may take ------------------------------------------- */

#define AHEAD_SMALL 64u /* so many free rings are kept ready, and as many are made at a time */
#define AHEAD_LARGE 2u /* two workers fill their first rings before the first round */

/*
 * Rings are made ready in the order of the table, `at_once` at a time, as long as fewer than
 * `ahead` of those from `from` up to `to` are free.  Each is one of `step` entries.
 */
static int keep_ready(struct tdt__block *block, uint32_t from, uint32_t to, uint32_t step,
		      uint32_t ahead, uint32_t at_once)
{
	uint32_t free = 0, absent = from, n = at_once * step;
	int error = 0;

	for (; absent < to; absent += step) {
		uint64_t own = TDT__PEEK(tdt__block_ring(block->base, absent)->own);

		if (own == TDT__RING_ABSENT)
			break;
		free += own == TDT__RING_FREE;
	}
	for (; free < ahead && absent < to && error == 0; free += at_once, absent += n) {
		n = n < to - absent ? n : to - absent;
		error = tdt__block_ready_rings(block, absent, n);
		if (error == 0)
			tdt__rings_free(block->base, absent, absent + n);
	}
	return error;
}

int tdt__service_rings(struct tdt__block *block)
{
	uint32_t first = tdt__block_first(block), others = tdt__block_others(block);
	int error = keep_ready(block, first, others, 2, AHEAD_SMALL, AHEAD_SMALL);

	if (error == 0)
		error =
		    keep_ready(block, others, block->base->n_rings, 1, AHEAD_SMALL, AHEAD_SMALL);
	return error == 0 ? keep_ready(block, TDT__BLOCK_LARGE, first, 2, AHEAD_LARGE, 1) : error;
}

/* --- What the thread remembers from one round to the next ------------------ */

#define LOOKED_AT 256u    /* polls of no more rings are looked at */
#define MODULES_KNOWN 1024u
#define READS_OF_POLL 4   /* a poll that lasts is read so often at most */
#define READS_A_SECOND 50 /* so are all polls together */

static struct {
	/* Of this block; a child of fork has another one at the same address. */
	const struct tdt_recording *block;
	uint64_t start;
	uint64_t recycled, second, all_tasks; /* when that was done last; nanoseconds */
	uint64_t all_after;                   /* so long after that all tasks are written again */
	uint64_t allocates;                   /* when rings may be allocated again */
	uint32_t recycle_from;                /* the index of the ring to look at next */
	uint64_t heads;                       /* the sum of all heads */
	uint64_t missed;                      /* `missed` of the block */
	unsigned reads;                       /* polls that were read in this second */
	uint64_t stacks_met;                  /* up to here the stacks' modules are known */
	struct {
		uint64_t since;
		uint64_t next; /* the duration at which to read it again */
		int reads;
	} polls[LOOKED_AT];
	uint64_t lost[TDT__LOST]; /* the numbers of those that have an event, by their places */
	uint64_t touched[LOOKED_AT];          /* so many bytes of the ring have memory */
	struct tdt__modules *modules;
	uint64_t written[MODULES_KNOWN]; /* hashes of the modules with an event */
	uint32_t n_written;
	bool program; /* the module of the program itself was met */
} seen;

static void begin_block(const struct tdt_recording *block)
{
	struct tdt__modules *modules = seen.modules;

	if (seen.block == block && seen.start == block->start_ticks)
		return;
	memset(&seen, 0, sizeof seen);
	seen.block = block;
	seen.start = block->start_ticks;
	seen.modules = modules;
}

/* --- Polls that last ------------------------------------------------------- */

/* The record of the task that the ring says is polled, with a reference.  False: it is over. */
static bool find_poll(struct tdt_handle *task, uint64_t id, uint32_t thread,
		      struct tdt_task_record *record)
{
	return tdt__registry_read(task, record) && record->id == id && record->thread == thread &&
	       record->state == TDT_TASK_RECORD_POLLING &&
	       tdt__handle_ref_if_same(task, record->seq);
}

/* A stack that was read of a poll in progress is the only leaf of its capture. */
static void put_found(struct tdt_recording *block, uint64_t id, uint32_t thread,
		      const struct tdt__stacks *stacks)
{
	struct tdt_event event = { .kind = TDT_EVENT_STACK,
				   .time = tdt__ticks(),
				   .task = id,
				   .c = thread };
	uint32_t i = 0;

	while (i < stacks->n && stacks->frames[i].leaves == 0)
		i++;
	if (i < stacks->n)
		event.a = tdt__stack_number_of(block, stacks, i);
	if (event.a == 0)
		return;
	put_locked_event(block, TDT__RING_CLOCKS, &event, NULL, 0);
}

#define READ_WITHIN_NS 100000000

static void read_poll(struct tdt_recording *block, const struct tdt_recording_ring *ring,
		      uint64_t id, uint64_t own)
{
	struct tdt_handle *task = (void *)(uintptr_t)(own & ~(uint64_t)TDT__RING_STATES);
	uint32_t thread = TDT__PEEK(ring->thread);
	struct tdt_task_record record;
	struct tdt__capture *capture;
	int error;

	if (task == NULL || !find_poll(task, id, thread, &record))
		return;
	capture = tdt__running(task, record.polls, TDT__RECORD_STACK_MAX,
			       tdt__clock() + READ_WITHIN_NS, &error);
	if (capture != NULL) {
		put_found(block, id, thread, &capture->stacks);
		tdt__capture_unref(capture);
	}
	tdt_handle_unref(task);
}

/* Read the poll if it lasts for long; and again when it lasts eight times as long. */
static void look_at_poll(struct tdt_recording *block, uint32_t i, uint64_t now)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block, i);
	/* Acquire the task.  Pairs with tdt__record_begin(). */
	uint64_t id = TDT__PEEK(ring->task), since = TDT__PEEK(ring->since),
		 own = __atomic_load_n(&ring->own, __ATOMIC_ACQUIRE),
		 age = now > since ? now - since : 0;

	if (id == 0 || i >= LOOKED_AT || age < TDT__PEEK(tdt__record_options.long_poll))
		return;
	if (seen.polls[i].since != since) {
		seen.polls[i].since = since;
		seen.polls[i].next = 0;
		seen.polls[i].reads = 0;
	}
	if (age < seen.polls[i].next || seen.polls[i].reads == READS_OF_POLL ||
	    seen.reads == READS_A_SECOND)
		return;
	seen.reads++;
	seen.polls[i].reads++;
	seen.polls[i].next = 8 * age;
	read_poll(block, ring, id, own);
}

/* --- Room for what is written next ----------------------------------------- */

/*
 * Have room for so many slots.  If there is none, the next attempt is a second later, since a look
 * at a directory takes time.
 */
static void extend_ring(struct tdt__block *block, struct tdt_recording_ring *ring, uint64_t room)
{
	uint64_t now = tdt__clock();

	if (now >= seen.allocates && tdt__block_extend_ring(block, ring, room) != 0)
		seen.allocates = now + TDT__SECOND;
}

/* Make more of a large ring ready, before its thread has filled half of what it has. */
static void extend_ahead(struct tdt__block *block, struct tdt_recording_ring *ring)
{
	uint64_t head = TDT__PEEK(ring->head), room = ring->ready;

	while (room != 0 && room < ring->most && head > room / 2)
		room *= 2;
	if (room != ring->ready)
		extend_ring(block, ring, room);
}

#define TOUCHED_AHEAD 524288u

/*
 * Give the slots memory that the thread will write next, so that it makes no page faults.  A kernel
 * older than 5.14 refuses.
 */
static void touch_ahead(const struct tdt_recording_ring *ring, uint64_t *touched)
{
	uint64_t ready = ring->ready != 0 ? ring->ready : ring->room,
		 size = ready * sizeof(struct tdt_event),
		 want = TDT__PEEK(ring->head) * sizeof(struct tdt_event) + TOUCHED_AHEAD;

	want = want < size ? want & ~(uint64_t)4095 : size;
	if (want < *touched + TOUCHED_AHEAD / 2 && want < size)
		return;
	if (want > *touched)
		madvise((char *)tdt__ring_slots(ring) + *touched, want - *touched,
			MADV_POPULATE_WRITE);
	*touched = want;
}

static void look_for_trigger(const struct tdt_recording_ring *ring, uint64_t now)
{
	uint64_t since = TDT__PEEK(ring->since);

	if (TDT__PEEK(ring->task) != 0 && now > since)
		tdt__trigger_poll(since, now - since, true);
}

struct rings_seen {
	uint64_t heads, now;
	bool polls;
};

/*
 * Look at the rings of polls from one index up to another.  Free rings are taken in the order of
 * the table, so behind one that was never used there is none that was.
 */
static void look_at_rings_of(struct tdt__block *block, uint32_t from, uint32_t to,
			     struct rings_seen *found)
{
	for (uint32_t i = from; i < to; i += 2) {
		struct tdt_recording_ring *ring = tdt__block_ring(block->base, i);
		uint64_t head = TDT__PEEK(ring->head);

		if (head == 0 && TDT__PEEK(ring->thread) == 0)
			break;
		found->heads += head;
		found->polls |= TDT__PEEK(ring->task) != 0;
		extend_ahead(block, ring);
		if (i < LOOKED_AT)
			touch_ahead(ring, &seen.touched[i]);
		look_for_trigger(ring, found->now);
		if (TDT__PEEK(tdt__record_options.stacks))
			look_at_poll(block->base, i, found->now);
	}
}

/* Returns whether any thread polls, or recorded something since the last time. */
static bool look_at_rings(struct tdt__block *block)
{
	struct rings_seen found = { .now = tdt__ticks() };
	bool moved;

	look_at_rings_of(block, TDT__BLOCK_LARGE, tdt__block_first(block), &found);
	look_at_rings_of(block, tdt__block_first(block), tdt__block_others(block), &found);
	moved = found.heads != seen.heads;
	seen.heads = found.heads;
	return found.polls || moved;
}

/* --- Modules --------------------------------------------------------------- */

/* Note that the module has an event.  False: it was noted before, or there is no room. */
static bool note_module(const struct tdt__module *module)
{
	uint64_t hash = tdt__hash_bytes(module->start * 31 + module->end, module->build_id,
					strlen(module->build_id));

	hash = tdt__hash_bytes(hash, module->path, strlen(module->path));
	for (uint32_t i = 0; i < seen.n_written; i++)
		if (seen.written[i] == hash)
			return false;
	if (seen.n_written == MODULES_KNOWN)
		return false;
	seen.written[seen.n_written++] = hash;
	return true;
}

size_t tdt__service_module(const struct tdt__module *module, struct tdt_event *event,
			   char payload[TDT__DESCRIPTION_MAX])
{
	*event = (struct tdt_event){ .kind = TDT_EVENT_MODULE,
				     .time = tdt__ticks(),
				     .task = module->start,
				     .c = module->end };
	return tdt__describe_module(module->bias, module->build_id, tdt__module_path(module),
				    payload);
}

static void write_module(struct tdt_recording *block, const struct tdt__module *module)
{
	char payload[TDT__DESCRIPTION_MAX];
	struct tdt_event event;
	size_t size;

	if (!note_module(module))
		return;
	size = tdt__service_module(module, &event, payload);
	put_locked_event(block, TDT__RING_MODULES, &event, payload, size);
}

static void meet_code(struct tdt_recording *block, uintptr_t pc)
{
	const struct tdt__module *module;

	if (seen.modules == NULL)
		seen.modules = tdt__modules_new(0);
	if (seen.modules == NULL)
		return;
	module = tdt__modules_find(seen.modules, pc);
	if (module == NULL) {
		pthread_mutex_lock(&tdt__unwind_lock);
		if (tdt__loaded_meet(&seen.modules, pc) == 0)
			module = tdt__modules_find(seen.modules, pc);
		pthread_mutex_unlock(&tdt__unwind_lock);
	}
	if (module != NULL)
		write_module(block, module);
}

/* The stacks that were added since the last time.  One that is not written yet has no frames. */
static void meet_stacks(struct tdt_recording *block)
{
	char *table = (char *)block + block->stacks;
	const struct tdt_recording_stacks *stacks = (const void *)table;
	uint64_t used = TDT__PEEK(stacks->used);

	if (seen.stacks_met == 0)
		seen.stacks_met = tdt__stacks_first(stacks);
	while (seen.stacks_met < used && used <= stacks->bytes) {
		const struct tdt_recording_stack *stack = (const void *)(table + seen.stacks_met);
		/* Acquire the addresses.  Pairs with write_stack(). */
		uint16_t n = __atomic_load_n(&stack->n, __ATOMIC_ACQUIRE);
		const uint64_t *pc = (const uint64_t *)(stack + 1);

		if (n == 0)
			return;
		for (uint16_t i = 0; i < n; i++)
			meet_code(block, pc[i] - 1);
		seen.stacks_met += sizeof *stack + n * sizeof *pc;
	}
}

/*
 * Have the modules of what was recorded since the last round: a process that is killed soon has
 * their names, too.  Most poll functions lie in the program itself.
 */
static void meet_new_code(struct tdt_recording *block)
{
	if (!seen.program)
		meet_code(block, getauxval(AT_ENTRY));
	seen.program = true;
	meet_stacks(block);
}

/* --- Live tasks ------------------------------------------------------------ */

/* The kernel reads the name of the file: it may be that of a plugin that is being unloaded. */
size_t tdt__service_task(const struct tdt_handle *task, const struct tdt_task_record *record,
			 struct tdt_event *event, char payload[TDT__DESCRIPTION_MAX])
{
	struct tdt_trace_context context;
	char file[512];

	file[tdt__peek(file, record->file, sizeof file - 1)] = '\0';
	*event = tdt__identity_event(record, TDT_EVENT_TASK, tdt__ticks());
	tdt__context_read(task, record, &context);
	return tdt__describe_task(record, file, &context, payload);
}

/* Have room for another event about a task, as long as the ring may become larger. */
static void extend_tasks(struct tdt__block *block)
{
	struct tdt_recording_ring *ring = tdt__block_ring(block->base, TDT__RING_TASKS);

	if (ring->room == ring->most || ring->head >= ring->room ||
	    ring->head + 2 * TDT_EVENT_SLOTS_MAX <= ring->room)
		return;
	extend_ring(block, ring, 2 * (uint64_t)ring->room);
	/* Release the memory.  Pairs with read_current(). */
	__atomic_store_n(&ring->room, ring->ready, __ATOMIC_RELEASE);
}

static void write_task(struct tdt_recording *block, const struct tdt_handle *task,
		       const struct tdt_task_record *record)
{
	char payload[TDT__DESCRIPTION_MAX];
	struct tdt_event event;
	size_t size = tdt__service_task(task, record, &event, payload);

	put_locked_event(block, TDT__RING_TASKS, &event, payload, size);
}

static void write_state(struct tdt_recording *block, const struct tdt_task_record *record,
			uint64_t time)
{
	struct tdt__lock_places locks = tdt__locks_here(0);
	struct tdt__listed_state listed;
	const struct tdt_event event = tdt__describe_state(record, &locks, time, &listed);

	put_locked_event(block, TDT__RING_TASKS, &event, &listed, sizeof listed);
}

/*
 * Have the identities of live tasks in a file: when the process is gone, its registry is too.  A
 * task's own event is overwritten some time.  Returns how many were written.
 */
static uint64_t put_tasks(struct tdt__block *block, uint64_t spawned_since)
{
	struct tdt__cursor cursor = { .slab = NULL };
	struct tdt_task_record record;
	struct tdt_handle *task;
	uint64_t n = 0;

	while ((task = tdt__registry_next(&cursor)) != NULL) {
		uint64_t before = tdt__ticks();

		if (TDT__PEEK(task->record.spawned) < spawned_since ||
		    !tdt__registry_read(task, &record) || !tdt__record_is_live(&record))
			continue;
		meet_code(block->base, (uintptr_t)record.poll);
		extend_tasks(block);
		/* In the order of their times: readers merge the rings by them. */
		write_state(block->base, &record, before);
		write_task(block->base, task, &record);
		n++;
	}
	return n;
}

/* --- A round --------------------------------------------------------------- */

#define RECYCLE_NS 100000000u
#define RECYCLED_AT_ONCE 128u /* rings that are looked at: each takes two system calls */
#define ALL_TASKS_NS 30000000000u /* at least so often all live tasks are written again */
#define LISTED_TASK_NS 1000000u   /* more often if they are few: a task each so many ns */
#define SLACK_NS 10000000u        /* a coarse clock may be so late */

/*
 * A reader tells by the last complete listing which tasks have ended since they were written: the
 * END of most tasks is overwritten before.
 */
static void list_live_tasks(struct tdt__block *block, uint64_t now)
{
	uint64_t begun = tdt__ticks() - tdt__ticks_of_ns(SLACK_NS), n = put_tasks(block, 0);

	TDT__POKE(block->base->listed, begun);
	seen.all_tasks = now;
	seen.all_after = n < ALL_TASKS_NS / LISTED_TASK_NS ? n * LISTED_TASK_NS : ALL_TASKS_NS;
}

static void put_new_tasks(struct tdt__block *block, uint64_t now)
{
	if (tdt__block_ring(block->base, TDT__RING_TASKS)->room == 0)
		return;
	if (seen.second == 0 || now - seen.all_tasks >= seen.all_after)
		list_live_tasks(block, now);
	else
		put_tasks(block, seen.second - SLACK_NS);
}

/* Have the lost wake-ups that have become certain since the last time. */
static void put_lost(struct tdt_recording *block, uint64_t now)
{
	for (int i = 0; i < TDT__LOST; i++) {
		uint64_t number = TDT__PEEK(tdt__lost[i].number);
		uint64_t when = TDT__PEEK(tdt__lost[i].when);
		const struct tdt_event event = { .kind = TDT_EVENT_LOST,
						 .time = tdt__ticks(),
						 .task = TDT__PEEK(tdt__lost[i].id),
						 .c = TDT__PEEK(tdt__lost[i].waited) };

		if (number == 0 || number == seen.lost[i] || when < block->start ||
		    !tdt__lost_is_sure(when, now) || TDT__PEEK(tdt__lost[i].number) != number)
			continue;
		seen.lost[i] = number;
		put_locked_event(block, TDT__RING_CLOCKS, &event, NULL, 0);
	}
}

static void each_second(struct tdt__block *block, uint64_t now)
{
	pthread_mutex_lock(&tdt__recorder_lock);
	write_clock(block->base);
	pthread_mutex_unlock(&tdt__recorder_lock);
	put_new_tasks(block, now);
	put_lost(block->base, now);
	if (TDT__PEEK(tdt__record_options.every) != 0)
		tdt__watch_stock_spares();
	seen.reads = 0;
	seen.second = now;
}

/* Whether a thread found no ring since the last time. */
static bool missed_more(const struct tdt_recording *block)
{
	uint64_t missed = TDT__PEEK(block->missed), before = seen.missed;

	seen.missed = missed;
	return missed != before;
}

/* Whether a thread that needs a large ring may find none. */
static bool rings_run_out(const struct tdt__block *block)
{
	for (uint32_t i = TDT__BLOCK_LARGE; i < tdt__block_first(block); i += 2) {
		uint64_t own = TDT__PEEK(tdt__block_ring(block->base, i)->own);

		if (own == TDT__RING_FREE || own == TDT__RING_ABSENT)
			return own == TDT__RING_ABSENT;
	}
	return false;
}

/* If there is no room for another ring, the next attempt is a second later. */
static void have_rings(struct tdt__block *block, uint64_t now)
{
	seen.recycle_from = tdt__rings_recycle(block->base, seen.recycle_from, RECYCLED_AT_ONCE);
	seen.recycled = now;
	if (now >= seen.allocates && tdt__service_rings(block) != 0)
		seen.allocates = now + TDT__SECOND;
}

bool tdt__service_round(struct tdt__block *block)
{
	uint64_t now = tdt__clock();

	begin_block(block->base);
	if (missed_more(block->base) || rings_run_out(block) || now - seen.recycled >= RECYCLE_NS)
		have_rings(block, now);
	if (now - seen.second >= TDT__SECOND)
		each_second(block, now);
	if (TDT__PEEK(block->names_modules))
		meet_new_code(block->base);
	if (now >= seen.allocates && tdt__block_extend_stacks(block) != 0)
		seen.allocates = now + TDT__SECOND;
	return look_at_rings(block);
}
