// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading the stacks of polls that go on, and of suspended fibers. */

#include "reader/live.h"

#include <errno.h>
#include <stdlib.h>

#include "base/syscall_name.h"
#include "reader/core.h"
#include "reader/lists.h"
#include "tree/stacks.h"

#define POLL_TRIES 3 /* to read the stack of a poll that moves */

static bool polls_still(const struct tdt__tasks *tasks, const struct tdt__seen *seen)
{
	struct tdt_task_record now;

	return tdt__seen_stands(tasks->target, seen, &now) && now.thread == seen->record.thread &&
	       now.stack_top == seen->record.stack_top;
}

/* Walk the stack, and then the stacks from which it was entered.  NULL: nothing is known. */
static struct tdt__stacks *walk_entered(struct tdt__live_stacks *live,
					const struct tdt__stack *stack, uint64_t top,
					const struct tdt__entered *entered)
{
	struct tdt__stacks *stacks = tdt__walk_stack(&live->walker, stack, stack->top);
	const struct tdt_stack *from = stack->from;

	for (int i = 0; i <= TDT__ENTERED_MAX && stacks != NULL && from != NULL &&
			tdt__walk_is_whole(stacks); i++) {
		struct tdt__stack outer = { 0 };
		struct tdt__stacks *more = NULL;

		if (i < TDT__ENTERED_MAX && tdt__outer_stack(live->tasks->target, from, top,
							     entered, &outer) == 0)
			more = tdt__walk_stack(&live->walker, &outer, outer.top);
		stacks = tdt__walk_join(stacks, more);
		from = outer.from;
		free(outer.copy);
	}
	return stacks;
}

/* The stack of the task's poll, if it has not moved meanwhile.  Returns as tdt__thread_stack(). */
static int read_poll_stack(struct tdt__live_stacks *live, struct tdt__seen_task *task,
			   struct tdt__stacks **stacks)
{
	const struct tdt__target *target = live->tasks->target;
	const struct tdt_registry *registry = &live->tasks->registry;
	const struct tdt_task_record *record = &task->seen->record;
	struct tdt__entered before, after;
	struct tdt__stack stack;
	int error;

	if (record->stack_top == 0 && record->poll != 0)
		return -ENODATA; /* a task of tdt_task_new() that was not entered */
	live->walker.poll = tdt__is_seen_callback(live->tasks, record) ? 0 : record->poll;
	tdt__entered_read(&before, target, registry, record->thread);
	error = tdt__thread_stack(target, record->thread, record->stack_top, &before, &stack,
				  live->sampling);
	if (error != 0)
		return error;
	*stacks = walk_entered(live, &stack, record->stack_top, &before);
	free(stack.copy);
	tdt__entered_read(&after, target, registry, record->thread);
	if (polls_still(live->tasks, task->seen) && tdt__entered_same(&before, &after)) {
		if (stack.call >= 0)
			task->member.info.syscall = tdt__syscall_name(stack.call);
		return 0;
	}
	tdt__stacks_free(*stacks);
	return -EAGAIN;
}

struct tdt__stacks *tdt__live_poll(struct tdt__live_stacks *live, struct tdt__seen_task *task)
{
	struct tdt__stacks *stacks = NULL, *from;
	int error = -EAGAIN;

	for (int i = 0; i < POLL_TRIES && error == -EAGAIN; i++)
		error = read_poll_stack(live, task, &stacks);
	if (error != 0)
		return NULL;
	from = stacks != NULL && tdt__is_seen_callback(live->tasks, &task->seen->record) &&
			       tdt__walk_is_whole(stacks)
		   ? tdt__list_read(live->tasks, task)
		   : NULL;
	return from != NULL ? tdt__walk_join(stacks, from) : stacks;
}

/* A suspended stack, and what must not have changed when it was read. */
struct suspended {
	const struct tdt__tasks *tasks;
	const struct tdt__seen *seen;
	struct tdt_registry_fiber fiber; /* all zero: the task is no fiber */
};

/* Read where the stack of a fiber lies.  False: it is just being moved. */
static bool read_fiber_place(const struct suspended *suspended, struct tdt_registry_fiber *fiber)
{
	const struct tdt_task_record *record = &suspended->seen->record;

	*fiber = (struct tdt_registry_fiber){ 0 };
	return record->poll != 0 ||
	       (tdt__target_read(suspended->tasks->target, record->child_state, fiber,
				 sizeof *fiber) &&
		fiber->moves % 2 == 0);
}

static bool is_suspended_still(const struct suspended *suspended)
{
	struct tdt_registry_fiber fiber;
	struct tdt_task_record now;

	return tdt__seen_stands(suspended->tasks->target, suspended->seen, &now) &&
	       read_fiber_place(suspended, &fiber) && fiber.moves == suspended->fiber.moves;
}

/* Where the stack ends above its frames; 0: that is not known. */
static uint64_t suspended_end(const struct suspended *suspended)
{
	const struct tdt_task_record *record = &suspended->seen->record;
	const struct tdt__target *target = suspended->tasks->target;
	const struct tdt__mapping *mapping;

	if (record->poll == 0 && record->stack_top != 0)
		return record->stack_top;
	if (suspended->fiber.size != 0)
		return suspended->fiber.low + suspended->fiber.size;
	if (target->core != NULL)
		return tdt__core_end(target->core, record->suspended_sp);
	mapping = tdt__target_mapping(target, record->suspended_sp);
	return mapping != NULL ? mapping->end : 0;
}

/* Read a part of the stack from where it lies. */
static bool read_suspended(const struct suspended *suspended, struct tdt__stack *stack)
{
	const struct tdt_registry_fiber *fiber = &suspended->fiber;
	const struct tdt__target *target = suspended->tasks->target;
	uint64_t end = stack->low + stack->size, from = fiber->moved_from,
		 to = from + fiber->moved_size;

	if (fiber->moved_to == 0 || to < from || to <= stack->low || from >= end)
		return tdt__target_read(target, stack->low, stack->copy, stack->size);
	if (from < stack->low)
		from = stack->low;
	if (to > end)
		to = end;
	return tdt__target_read(target, fiber->moved_to + (from - fiber->moved_from),
				stack->copy + (from - stack->low), (size_t)(to - from)) &&
	       (from == stack->low || tdt__target_read(target, stack->low, stack->copy,
						       (size_t)(from - stack->low))) &&
	       (to == end || tdt__target_read(target, to, stack->copy + (to - stack->low),
					      (size_t)(end - to)));
}

/* Copy the stack, and note the registers.  False: it cannot be had. */
static bool take_suspended(struct suspended *suspended, struct tdt__stack *stack)
{
	const struct tdt_task_record *record = &suspended->seen->record;
	uint64_t end;

	*stack = (struct tdt__stack){ .low = record->suspended_sp, .call = -1 };
	if (!suspended->seen->still || record->state != TDT_TASK_RECORD_IDLE ||
	    record->suspended_pc == 0 || !read_fiber_place(suspended, &suspended->fiber))
		return false;
	end = suspended_end(suspended);
	if (end <= stack->low)
		return false;
	stack->size = end - stack->low < TDT__STACK_READ_MAX ? (size_t)(end - stack->low)
							     : TDT__STACK_READ_MAX;
	/* A return address: the walk takes the first pc for that of an interrupted frame. */
	tdt__cpu_set(&stack->cpu, TDT__DWARF_PC, record->suspended_pc - 1);
	tdt__cpu_set(&stack->cpu, TDT__DWARF_SP, record->suspended_sp);
	tdt__cpu_set(&stack->cpu, TDT__DWARF_FP, record->suspended_fp);
	stack->copy = malloc(stack->size);
	return stack->copy != NULL && read_suspended(suspended, stack) &&
	       is_suspended_still(suspended);
}

struct tdt__stacks *tdt__live_suspended(struct tdt__live_stacks *live,
					const struct tdt__seen_task *task)
{
	struct suspended suspended = { .tasks = live->tasks, .seen = task->seen };
	const struct tdt_task_record *record = &task->seen->record;
	struct tdt__stacks *stacks = NULL;
	struct tdt__stack stack;

	live->walker.poll = record->poll;
	if (take_suspended(&suspended, &stack))
		stacks = tdt__walk_stack(&live->walker, &stack,
					 record->poll == 0 ? record->stack_top : 0);
	if (stacks != NULL && record->poll != 0)
		stacks->known = TDT_LEAVES_PART;
	free(stack.copy);
	return stacks;
}
