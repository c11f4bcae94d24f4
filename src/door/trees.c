// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See trees.h. */

#include "door/trees.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/tasks.h>

#include "base/array.h"
#include "base/clock.h"
#include "capture/capture.h"
#include "capture/fiber.h"
#include "dump/request_all.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "watch/last_tree.h"

#define TASKS_MOST 1000 /* unless the reader has another number */

#define BODY (TDT_OUTSIDE_MESSAGE_MAX - sizeof(struct tdt_outside_tree))
#define ENTRIES (BODY / sizeof(struct tdt_registry_entry))

/* A message with a tree, as large as there may be. */
struct tree_message {
	struct tdt_outside_tree tree;
	union {
		struct tdt_registry_entry entry[ENTRIES];
		char bytes[BODY]; /* the waits lie behind the entries */
	};
};

struct sending {
	const struct tdt__door_socket *socket;
	const struct tdt_outside_trees *wanted;
	struct tdt_outside_done *done;
	struct tdt__requests requests;
	struct tdt_handle **task; /* a reference to each */
	size_t n, room;
	uint64_t deadline; /* for the reader to receive */
	struct tree_message *message;
	int error; /* of sending; then nothing more is sent */
};

/* Runs also if a waker unwinds, or the thread is cancelled. */
static void sending_fini(struct sending *sending)
{
	for (size_t i = 0; i < sending->n; i++)
		tdt_handle_unref(sending->task[i]);
	free(sending->task);
	free(sending->message);
}

static size_t tasks_most(const struct tdt_outside_trees *wanted)
{
	return wanted->most != 0 ? wanted->most : TASKS_MOST;
}

/* List a task, and take over the reference to it. */
static void list_task(struct sending *sending, struct tdt_handle *task)
{
	if (sending->n < tasks_most(sending->wanted) &&
	    tdt__array_grow(&sending->task, sending->n, &sending->room, sizeof sending->task[0])) {
		sending->task[sending->n++] = task;
	} else {
		sending->done->left_out++;
		tdt_handle_unref(task);
	}
}

static bool is_passed_over(const struct sending *sending, const struct tdt_handle *task)
{
	return sending->wanted->unseen != 0 && tdt__last_tree_shows(task);
}

/*
 * List those that need a request or, if there is still room, those that need none because a request
 * never wakes them: fibers and tasks of callbacks.
 */
static void list_live(struct sending *sending, bool needless)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_handle *task;

	while ((task = tdt__registry_next(&cursor)) != NULL) {
		struct tdt_task_record record;

		if (tdt__registry_read(task, &record) && tdt__record_is_live(&record) &&
		    (tdt__is_fiber(task) || tdt__is_callback_task(task)) == needless &&
		    !is_passed_over(sending, task) &&
		    !(needless && sending->n >= tasks_most(sending->wanted)) &&
		    tdt__handle_ref_if_same(task, record.seq))
			list_task(sending, task);
	}
}

static void list_wanted(struct sending *sending)
{
	if (sending->wanted->n_ids == 0) {
		list_live(sending, false);
		list_live(sending, true);
	}
	for (uint32_t i = 0; i < sending->wanted->n_ids; i++) {
		struct tdt_handle *task = tdt_task_find(sending->wanted->ids[i]);

		if (task != NULL && is_passed_over(sending, task))
			tdt_handle_unref(task);
		else if (task != NULL)
			list_task(sending, task);
	}
}

static tdt_poll_t outcome_of_state(enum tdt_task_state state)
{
	return state == TDT_TASK_READY	    ? TDT_READY
	       : state == TDT_TASK_PANICKED ? TDT_PANICKED
					    : TDT_PENDING;
}

/* Why there is no tree. */
static enum tdt_outside_answer no_tree(const struct tdt_handle *task, enum tdt_answer answer)
{
	uint32_t state = TDT__PEEK(task->record.state);

	if (answer == TDT_ANSWER_FRESH || state == TDT_TASK_RECORD_ENDED)
		return TDT_OUTSIDE_ENDED;
	if (answer == TDT_ANSWER_RUNNING || state == TDT_TASK_RECORD_POLLING)
		return TDT_OUTSIDE_RUNNING;
	return TDT_OUTSIDE_NONE;
}

static void write_reported(struct tree_message *message, const struct tdt__facts *facts)
{
	size_t at = message->tree.tree.n * sizeof message->entry[0],
	       room = (BODY - at) / sizeof(struct tdt_outside_wait);
	struct tdt_outside_wait *to = (struct tdt_outside_wait *)(message->bytes + at);

	message->tree.n_waits = (uint16_t)(facts->n_waits < room ? facts->n_waits : room);
	for (uint32_t i = 0; i < message->tree.n_waits; i++) {
		const struct tdt_wait *wait = &facts->waits[i];

		to[i] = (struct tdt_outside_wait){ .kind = wait->kind,
						   .futurelock = wait->futurelock,
						   .object = wait->object,
						   .owner = wait->owner,
						   .handed_ns = wait->handed_ns };
		memcpy(to[i].name, wait->name, sizeof to[i].name);
	}
}

static void write_capture(struct tree_message *message, struct tdt__capture *capture)
{
	message->tree.answer = TDT_OUTSIDE_FRESH;
	message->tree.outcome = outcome_of_state(capture->facts.state);
	message->tree.known = (uint8_t)capture->stacks.known;
	message->tree.moved = capture->facts.moved;
	message->tree.astray = atomic_load_explicit(&capture->stacks.astray, memory_order_relaxed);
	tdt__tree_write(&message->tree.tree, message->entry, ENTRIES, capture);
	write_reported(message, &capture->facts);
}

static void send_answer(void *arg, size_t index, enum tdt_answer answer,
			struct tdt__capture *capture, bool unknown_stack)
{
	struct sending *sending = arg;
	struct tree_message *message = sending->message;
	const struct tdt_handle *task = sending->task[index];

	(void)unknown_stack;
	if (sending->error != 0)
		return;
	message->tree = (struct tdt_outside_tree){
		.header = { .version = TDT_OUTSIDE_VERSION,
			    .kind = TDT_OUTSIDE_TREE,
			    .number = sending->wanted->header.number },
		.id = TDT__PEEK(task->record.id),
		.record = (uintptr_t)&task->record,
		.answer = no_tree(task, answer),
		.wait_size = sizeof(struct tdt_outside_wait),
		.entries = sizeof message->tree,
	};
	if (capture != NULL)
		write_capture(message, capture);
	message->tree.header.size =
	    (uint32_t)(sizeof message->tree + message->tree.tree.n * sizeof message->entry[0] +
		       message->tree.n_waits * sizeof(struct tdt_outside_wait));
	sending->error = tdt__door_socket_send(sending->socket, message, message->tree.header.size,
					       sending->deadline);
	sending->done->tasks++;
	sending->done->fresh += message->tree.answer == TDT_OUTSIDE_FRESH;
	if (sending->error != 0)
		sending->requests.deadline = 0; /* nobody is interested in the others */
}

static struct tdt_handle *listed_task(void *arg, size_t index)
{
	const struct sending *sending = arg;

	return sending->task[index];
}

static void request_listed(struct sending *sending)
{
	uint64_t time = sending->wanted->timeout_ns;

	sending->requests = (struct tdt__requests){
		.n = sending->n,
		.task = listed_task,
		.answer = send_answer,
		.arg = sending,
		.deadline = tdt__clock() + (time != 0 ? time : (uint64_t)TDT__SECOND),
		.max_frames = TDT_MAX_FRAMES,
		.leaves_running = true,
	};
	sending->deadline = sending->requests.deadline + TDT__SECOND;
	tdt__request_all(&sending->requests);
}

int tdt__trees_send(const struct tdt__door_socket *socket, const struct tdt_outside_trees *wanted,
		    struct tdt_outside_done *done)
{
	struct sending sending __attribute__((
	    cleanup(sending_fini))) = { .socket = socket, .wanted = wanted, .done = done };

	sending.message = malloc(sizeof *sending.message);
	if (sending.message == NULL)
		return -ENOMEM;
	list_wanted(&sending);
	request_listed(&sending);
	return sending.error;
}
