// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the stack of a suspended fiber: the two looks, and the copy between them. */

#include "capture/suspended.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/refs.h"
#include "capture/capture.h"
#include "capture/fiber.h"
#include "capture/judge.h"
#include "capture/stack_pieces.h"
#include "host/peek.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/registry.h"

/*
 * So much is copied of a stack of which neither the size nor the base is known.  It may be more
 * than the stack has; what cannot be read is left out.
 */
#define UNKNOWN_STACK ((size_t)64 << 10)

#define SUSPENDED_TRIES 3

/* What a look at a suspended task finds.  If a second look finds the same, nothing has changed. */
struct look {
	uint64_t polls;
	uint64_t moves;
	uint32_t fiber;
};

/*
 * Look at the task.  False: it is not suspended.
 *
 * `polls` is loaded before `state`, and a resume stores them in the reverse order (fibers.c).  So a
 * number of polls that belongs to a resume cannot be seen together with the state before it.  A
 * poll of a traced future stores them in this order; there `moves` is odd while the fiber runs.
 */
static bool look(const struct tdt_handle *task, struct look *look)
{
	const struct tdt_fiber *fiber;

	look->polls = __atomic_load_n(&task->record.polls, __ATOMIC_ACQUIRE);
	look->fiber = __atomic_load_n(&task->record.own_fiber, __ATOMIC_ACQUIRE);
	fiber = tdt__fiber_at(look->fiber);
	if (fiber == NULL)
		return false;
	/* Acquire what was written before.  Pairs with tdt__fiber_end_write(). */
	look->moves = __atomic_load_n(&fiber->stack.moves, __ATOMIC_ACQUIRE);
	/* Acquire the registers, and all that is on the stack.  Pairs with tdt_fiber_suspend(). */
	return __atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE) == TDT_TASK_RECORD_IDLE &&
	       look->moves % 2 == 0;
}

static bool is_same(const struct tdt_handle *task, const struct look *before)
{
	struct look now;

	/*
	 * What was read of the stack is not read later.  Pairs with the fences of
	 * tdt_fiber_resume() and tdt__fiber_begin_write().
	 */
	atomic_thread_fence(memory_order_acquire);
	return look(task, &now) && now.polls == before->polls && now.moves == before->moves &&
	       now.fiber == before->fiber;
}

bool tdt__is_suspended(const struct tdt_handle *task)
{
	struct look now;

	return look(task, &now);
}

/*
 * The stack of a fiber.  Bounds that are unknown are replaced by such as hold what is to be read.
 */
static struct tdt_stack bounds_of(const struct tdt_registry_fiber *fiber, uintptr_t sp)
{
	struct tdt_stack stack = { .low = (void *)(uintptr_t)TDT__PEEK(fiber->low),
				   .size = TDT__PEEK(fiber->size),
				   .base = TDT__PEEK(fiber->base) };

	if (stack.size == 0) {
		stack.low = (void *)(sp & ~(uintptr_t)15);
		stack.size = stack.base > sp
				 ? stack.base + TDT__TOP_RECORD - (uintptr_t)stack.low
				 : UNKNOWN_STACK;
	}
	return stack;
}

/*
 * Copy `size` bytes of the stack from `address` on, to `to`; those that were moved are read where
 * they are.  Bytes below `sp` belong to no frame, and may be missing there.  Returns how many bytes
 * were copied.
 */
static size_t read_stack_bytes(const struct tdt_registry_fiber *fiber, unsigned char *to,
			       uintptr_t address, size_t size, uintptr_t sp)
{
	uint64_t from = TDT__PEEK(fiber->moved_from), moved = TDT__PEEK(fiber->moved_to),
		 length = TDT__PEEK(fiber->moved_size);
	size_t missing;

	if (moved == 0 || sp < from || sp - from >= length)
		return tdt__peek(to, address, size);
	missing = address < from ? from - address : 0;
	if (missing >= size)
		return 0;
	memset(to, 0, missing);
	length -= address + missing - from;
	if (size - missing < length)
		length = size - missing;
	return missing + tdt__peek(to + missing, moved + (address + missing - from), length);
}

/* Copy the stack.  Returns 0, -ENOTSUP, -EFAULT or -ENOMEM. */
static int copy_suspended(const struct tdt_handle *task, const struct tdt_fiber *fiber,
			  struct tdt__pieces *copy)
{
	/* Walks add one to the PC of the innermost frame, and this one is a return address. */
	const struct tdt__registers at = { .pc = TDT__PEEK(task->record.suspended_pc) - 1,
					   .sp = TDT__PEEK(task->record.suspended_sp),
					   .fp = TDT__PEEK(task->record.suspended_fp) };
	const struct tdt_stack stack = bounds_of(&fiber->stack, at.sp);
	struct tdt__stack_copy *piece = &copy->piece[0];
	size_t wanted, got;
	int error;

	if (at.pc + 1 == 0)
		return -ENOTSUP;
	error = tdt__pieces_plan(copy, at, stack.base, NULL, &stack);
	if (error != 0)
		return error;
	wanted = piece->size;
	copy->bytes = malloc(copy->size);
	if (copy->bytes == NULL)
		return -ENOMEM;
	piece->bytes = copy->bytes;
	got = read_stack_bytes(&fiber->stack, piece->bytes, piece->low, wanted, at.sp);
	error = tdt__stack_copy_got(piece, wanted, got);
	if (error != 0)
		free(copy->bytes);
	return error;
}

/* What stood on the stack, and in the record. */
struct tdt__standing {
	atomic_uint holders;
	struct tdt_handle *task; /* each holder has a reference to it */
	struct tdt_task_record record;
	struct tdt__pieces copy; /* of a fiber that has run */
};

/* Returns as tdt__suspended(). */
static int copy_standing(struct tdt__standing *standing)
{
	struct tdt_handle *task = standing->task;
	struct look before;
	int error = 0;

	if (!look(task, &before))
		return -EAGAIN;
	if (before.polls != 0)
		error = copy_suspended(task, tdt__fiber_at(before.fiber), &standing->copy);
	tdt__registry_read(task, &standing->record);
	if (is_same(task, &before))
		return error;
	if (error == 0)
		free(standing->copy.bytes);
	return -EAGAIN;
}

struct tdt__standing *tdt__standing_new(struct tdt_handle *task, int *error)
{
	struct tdt__standing *standing = malloc(sizeof *standing);

	*error = -ENOMEM;
	if (standing == NULL)
		return NULL;
	atomic_init(&standing->holders, 1);
	standing->task = task;
	standing->copy.bytes = NULL;
	*error = copy_standing(standing);
	if (*error == 0)
		return standing;
	free(standing);
	return NULL;
}

struct tdt__standing *tdt__standing_ref(struct tdt__standing *standing)
{
	atomic_fetch_add_explicit(&standing->holders, 1, memory_order_relaxed);
	return standing;
}

void tdt__standing_unref(struct tdt__standing *standing)
{
	if (standing == NULL || !tdt__refs_drop(&standing->holders))
		return;
	free(standing->copy.bytes);
	free(standing);
}

int tdt__standing_capture(const struct tdt__standing *standing, struct tdt__capture *capture)
{
	int error = 0;

	if (standing->copy.bytes != NULL)
		error = tdt__pieces_capture(&standing->copy, capture);
	else
		tdt__capture_complete(capture);
	/* The other leaves of the future, and the frames outside of the coroutine, are missing. */
	if (!tdt__is_fiber(standing->task))
		capture->stacks.known = TDT_LEAVES_PART;
	tdt__capture_recorded(capture, standing->task, &standing->record);
	return error;
}

int tdt__suspended(struct tdt_handle *task, struct tdt__capture *capture)
{
	int error;
	struct tdt__standing *standing = tdt__standing_new(task, &error);

	if (standing != NULL)
		error = tdt__standing_capture(standing, capture);
	tdt__standing_unref(standing);
	return error;
}

static struct tdt__capture *capture_standing(struct tdt_handle *task, uint32_t max_frames,
					     int *error)
{
	struct tdt__capture *capture = tdt__capture_new(TDT__FIRST_FRAMES, max_frames);

	*error = capture != NULL ? tdt__suspended(task, capture) : -ENOMEM;
	if (*error == 0)
		return capture;
	tdt__capture_unref(capture);
	return NULL;
}

struct tdt__capture *tdt__suspended_capture(struct tdt_handle *task, uint32_t max_frames,
					    uint64_t deadline, int *error)
{
	struct tdt__capture *capture = NULL;

	for (int tries = 0; tries < SUSPENDED_TRIES && tdt__is_suspended(task); tries++) {
		struct tdt__unloads count = { .deadline = deadline };

		tdt__capture_unref(capture);
		capture = capture_standing(task, max_frames, error);
		if (capture != NULL ? tdt__judge(&capture->stacks, &count) != -EAGAIN
				    : *error != -EAGAIN)
			return capture;
	}
	if (capture == NULL)
		*error = -EAGAIN;
	return capture;
}
