// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/dump, reader/lists, reader/live, reader/registers, reader/threads, reader/walk.
 * Stacks of threads of this process, as a reader outside sees them; lists of frames; and stacks
 * that were made up to do harm.
 */

#include <tdt/integrate/leaf.h>

#include "lib/fibered.h"
#include "lib/poll_now.h"
#include "lib/read_self.h"
#include "lib/refused.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "reader/dump.h"
#include "reader/walk.h"
#include "tree/stacks.h"

/* --- Polls that go on ------------------------------------------------------------------- */

static int ends[2];
static atomic_bool begun, over;

static __attribute__((noinline)) void block_here(void)
{
	char byte;

	atomic_store(&begun, true);
	ck_assert_int_ge(read(ends[0], &byte, 1), 0);
}

static tdt_poll_t poll_blocked(void *state, struct tdt_context *cx)
{
	block_here();
	return TDT_READY;
}

static __attribute__((noinline)) void spin_here(void)
{
	atomic_store(&begun, true);
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		;
}

static tdt_poll_t poll_running(void *state, struct tdt_context *cx)
{
	spin_here();
	return TDT_READY;
}

static void *run(void *poll)
{
	struct poll_now task;

	poll_now_start(&task, future_of(*(tdt_poll_t(**)(void *, struct tdt_context *))poll, NULL));
	poll_now_end(&task);
	return NULL;
}

/* The functions of the only group's tree, outermost first, with a space behind each. */
static void functions_of(const struct tdt_snapshot *snapshot, char *text, size_t size)
{
	const struct tdt_node *node;

	ck_assert_uint_eq(snapshot->n_groups, 1);
	text[0] = '\0';
	node = snapshot->groups[0]->trace != NULL ? tdt_trace_root(snapshot->groups[0]->trace)
						   : NULL;
	for (; node != NULL; node = tdt_node_next(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);
		size_t n = strlen(text);

		if (frame->kind == TDT_NODE_CUT)
			snprintf(text + n, size - n, "cut:%d ", frame->cut);
		else if (frame->kind == TDT_NODE_FRAME)
			snprintf(text + n, size - n, "%s%s ", frame->guessed ? "~" : "",
				 frame->function != NULL ? frame->function : "?");
	}
}

static struct tdt__tasks listed;
static struct tdt_task_info dumped; /* what the last dump says of the task */

static void list_tasks(void)
{
	open_self();
	ck_assert_int_eq(tdt__tasks_read(&listed, &target, &images, &found[0]), 0);
}

/* Dump the only task that was listed to `text`. */
static struct tdt__sampling dump_listed_task(char *text, size_t size, const char **call)
{
	const struct tdt__task_choice all = { .n_ids = 0 };
	const struct tdt__answers none = { 0 };
	struct tdt__sampling sampling = { 0 };
	struct tdt__findings *findings = tdt__outside_dump(&listed, &all, &none, &sampling);

	ck_assert_ptr_nonnull(findings);
	functions_of(&findings->public, text, size);
	dumped = *findings->public.groups[0]->tasks[0];
	*call = dumped.syscall;
	ck_assert_uint_eq(findings->public.outside, 1);
	tdt__findings_free(findings);
	tdt__tasks_fini(&listed);
	close_self();
	return sampling;
}

static struct tdt__sampling dump_only(char *text, size_t size, const char **call)
{
	list_tasks();
	return dump_listed_task(text, size, call);
}

static tdt_poll_t (*polls[])(void *, struct tdt_context *) = { poll_blocked, poll_running };

/* Whether the stack of the only task was read while a thread ran it in `body`. */
static bool read_while_running(void *(*body)(void *), void *arg, const char *expected,
			       const char *call)
{
	struct tdt__sampling sampling = { 0 };
	pthread_t thread;
	char text[1024] = "";
	const char *in = NULL;
	bool right = false;

	if (in_valgrind()) {
		puts("# not tried: the kernel's registers are valgrind's, not the program's");
		return false;
	}
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, body, arg), 0);
	while (!atomic_load(&begun))
		usleep(1000);
	/* A thread that is about to block may be seen before it does. */
	while (!right && sampling.refused == 0) {
		sampling = dump_only(text, sizeof text, &in);
		right = strncmp(text, expected, strlen(expected)) == 0 &&
			(call == NULL || (in != NULL && strcmp(in, call) == 0));
	}
	atomic_store(&over, true);
	close(ends[1]);
	pthread_join(thread, NULL);
	if (sampling.refused != 0)
		printf("# not tried: perf_event_open(2) is refused here: %s\n",
		       strerror(sampling.refused));
	else
		ck_assert_msg(right, "%s", text);
	return right;
}

static bool read_while_polling(int which, const char *expected, const char *call)
{
	return read_while_running(run, &polls[which], expected, call);
}

CASE(polls)

TEST(the_stack_of_a_blocked_poll_is_read_without_a_guess)
{
	if (ASAN || TSAN)
		puts("# not tried: a sanitizer's function stands between read() and the poll");
	else
		read_while_polling(0, "poll_blocked block_here ", "read");
}

TEST(the_stack_of_a_running_poll_is_sampled)
{
	read_while_polling(1, "poll_running spin_here ", NULL);
}

static void leave_out_guesses(char *path)
{
	for (char *mark = path; (mark = strchr(mark, '~')) != NULL;)
		memmove(mark, mark + 1, strlen(mark));
}

static const struct stuck_poll *const ways[] = { stuck_o0, stuck_o1, stuck_protected, stuck_with_fp,
						 stuck_without_fp };

/* The callers of a poll that is blocked are those that `kind` names, and certain if it says so. */
static void expect_callers(const struct stuck_poll *kind)
{
	struct stuck_task task = { 0 };
	struct stuck stuck;
	char text[1024], want[1024];
	const char *call;

	stuck_init(&stuck, kind);
	stuck_task_start(&task, kind->poll, &stuck);
	while (atomic_load(&stuck.entered) == 0)
		usleep(100);
	stuck_task_settle(&task, false);
	do { /* again, if just then it had slept enough, and was about to sleep on */
		dump_only(text, sizeof text, &call);
		printf("# %s\n", text);
	} while (call == NULL);
	snprintf(want, sizeof want, "%s ", kind->path);
	if (strchr(want, '~') == NULL)
		ck_assert_msg(strstr(text, "~") == NULL, "%s", text);
	leave_out_guesses(text);
	leave_out_guesses(want);
	ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s, not %s", text, want);
	ck_assert_str_eq(call, kind->syscall);
	stuck_let_go(&stuck);
	stuck_task_end(&task);
	stuck_fini(&stuck);
}

TEST(a_blocked_poll_has_all_its_callers_however_it_was_compiled, .to = 5)
{
	for (const struct stuck_poll *kind = ways[_i]; kind->name != NULL; kind++)
		if (in_valgrind())
			puts("# not tried: the kernel's registers are valgrind's");
		else if (ASAN || TSAN)
			puts("# not tried: a sanitizer's function stands between");
		else if (kind->syscall != NULL)
			expect_callers(kind);
}

TEST(a_task_that_nobody_watches_has_its_record_alone)
{
	struct poll_now task;
	char text[64];
	const char *call;

	task.traced = tdt_traced(future_of(poll_running, NULL));
	dump_only(text, sizeof text, &call);
	ck_assert_str_eq(text, "");
	end_traced(&task.traced);
}

/* --- Lists -------------------------------------------------------------------------------- */

static const struct tdt_leaf_frame calls[] = { { "outer", "file.c", 1, 0 },
					       { "inner", NULL, 0, 0 } };

/* Dump a task that waits at `leaf`. */
static void dump_listed(struct tdt_leaf *leaf, char *text, size_t size)
{
	FUTURELESS(task, tdt_task_new(TDT_TASK_ATTR(.name = "listed")));
	const char *call;

	tdt_leaf_at(task, leaf);
	dump_only(text, size, &call);
}

TEST(the_list_at_which_a_task_waits_is_read)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 2, .frames = calls };
	const void *pcs[] = { (const char *)poll_blocked + 1, (const char *)spin_here + 1 };
	char text[64];

	dump_listed(&leaf, text, sizeof text);
	ck_assert_str_eq(text, "outer inner ");
	leaf = (struct tdt_leaf){ .kind = TDT_LEAF_PCS, .n = 2, .frames = pcs };
	dump_listed(&leaf, text, sizeof text);
	ck_assert_str_eq(text, "poll_blocked spin_here ");
	leaf = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED };
	dump_listed(&leaf, text, sizeof text);
	ck_assert_str_eq(text, "(unknown) ");
}

static void *run_callback_task(void *task)
{
	*(struct tdt_handle **)task = tdt_task_new(TDT_TASK_ATTR(.name = "runs"));
	block_here();
	return NULL;
}

TEST(a_task_without_a_future_that_runs_has_no_stack_and_then_its_list)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 2, .frames = calls };
	struct tdt_handle *task = NULL;
	const char *call;
	pthread_t thread;
	char text[1024];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, run_callback_task, &task), 0);
	while (!atomic_load(&begun))
		usleep(1000);
	dump_only(text, sizeof text, &call);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(dumped.state, TDT_TASK_RUNNING);
	list_tasks();
	tdt_leaf_at(task, &leaf);
	dump_listed_task(text, sizeof text, &call);
	ck_assert_str_eq(text, "outer inner ");
	close(ends[1]);
	pthread_join(thread, NULL);
	tdt_task_end(task);
}

static void *enter_and_block(void *list)
{
	struct tdt_handle *task = tdt_task_new(NULL);

	tdt_leaf_at(task, list);
	tdt_task_enter(task);
	block_here();
	tdt_task_leave(task);
	tdt_task_end(task);
	return NULL;
}

TEST(a_run_that_came_from_a_list_without_frames_has_its_stack_alone)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_PCS };

	if (ASAN || TSAN)
		puts("# not tried: a sanitizer's function stands between read() and the run");
	else
		read_while_running(enter_and_block, &leaf, "enter_and_block block_here ", "read");
}

TEST(a_list_that_cannot_be_read_or_is_not_in_force_is_none)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = UINT32_MAX, .frames = calls };
	char text[64];

	leaf.frames = (const void *)8;
	dump_listed(&leaf, text, sizeof text);
	ck_assert_str_eq(text, "");
	dump_listed(NULL, text, sizeof text);
	ck_assert_str_eq(text, "");
}

static struct fibered sleeper;

static __attribute__((noinline)) void first_nap(struct fibered *it)
{
	fibered_yield(it);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void second_nap(struct fibered *it)
{
	fibered_yield(it);
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void naps(struct fibered *it)
{
	if (it->arg != NULL) /* the fiber is listed while it runs */
		list_tasks();
	first_nap(it);
	second_nap(it);
	TDT_KEEP_FRAME();
}

static void start_sleeper(bool listed_now)
{
	sleeper = (struct fibered){ .run = naps, .arg = listed_now ? &sleeper : NULL };
	fibered_init(&sleeper, NULL);
	fibered_resume(&sleeper);
}

static void expect_sleeper(const char *expected, uint64_t runs)
{
	char text[256];
	const char *call;

	dump_listed_task(text, sizeof text, &call);
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(dumped.state, TDT_TASK_WAITING);
	ck_assert_uint_eq(dumped.polls, runs);
	ck_assert_int_eq(dumped.leaves_known, TDT_LEAVES_ALL);
	fibered_fini(&sleeper);
}

CASE(fibers)

TEST(a_fiber_that_ran_since_it_was_listed_is_shown_where_it_stands)
{
	start_sleeper(false);
	list_tasks();
	fibered_resume(&sleeper);
	expect_sleeper("fibered_entry naps second_nap fibered_yield ", 2);
}

TEST(a_fiber_that_was_listed_while_it_ran_is_shown_where_it_stands)
{
	start_sleeper(true);
	expect_sleeper("fibered_entry naps first_nap fibered_yield ", 1);
}

TEST(the_stack_of_a_coroutine_is_a_part_of_the_task)
{
	const char *call;
	char text[256];
	TRACED(traced, tdt_traced(future_of(poll_running, NULL)));

	sleeper = (struct fibered){ .run = naps };
	fibered_init_of(&sleeper, traced.handle);
	fibered_resume(&sleeper);
	dump_only(text, sizeof text, &call);
	ck_assert_ptr_nonnull(strstr(text, "naps first_nap fibered_yield "));
	ck_assert_uint_eq(dumped.leaves, 1);
	ck_assert_int_eq(dumped.leaves_known, TDT_LEAVES_PART);
	SNAPSHOT(own, tdt_snapshot_take(NULL));
	ck_assert_int_eq(own->groups[0]->tasks[0]->leaves_known, TDT_LEAVES_PART);
	fibered_fini(&sleeper);
}

/* --- Stacks that were made up ------------------------------------------------------------- */

/* A return address, an address on the stack, or anything. */
static uint64_t made_up_word(unsigned *random, uint64_t stack, unsigned size)
{
	switch (random_below(random, 3)) {
	case 0:
		return (uintptr_t)spin_here + random_below(random, 4096);
	case 1:
		return stack + random_below(random, size);
	default:
		return (uint64_t)random_below(random, 65536) << 32;
	}
}

CASE(made up, .teardown = close_self)

TEST(no_stack_makes_a_walk_go_astray)
{
	static uint64_t words[512];
	struct tdt__stack stack = { .low = 0x7f0000000000,
				    .size = sizeof words,
				    .copy = (char *)words,
				    .call = -1 };
	struct tdt__walker walker = { .images = &images };
	unsigned random = seed_of_run();

	open_self();
	for (int i = 0; i < 2000; i++) {
		struct tdt__stacks *stacks;

		for (size_t k = 0; k < 512; k++)
			words[k] = made_up_word(&random, stack.low, sizeof words);
		stack.cpu = (struct tdt__cpu){ 0 };
		tdt__cpu_set(&stack.cpu, TDT__DWARF_PC,
			     (uintptr_t)block_here + random_below(&random, 4096));
		tdt__cpu_set(&stack.cpu, TDT__DWARF_SP, stack.low + 8 * random_below(&random, 256));
		if (i % 2 == 0)
			tdt__cpu_set(&stack.cpu, TDT__DWARF_FP,
				     stack.low + 8 * random_below(&random, 512));
		stacks = tdt__walk_stack(&walker, &stack, stack.low + sizeof words);
		if (stacks != NULL)
			ck_assert_uint_le(stacks->n, 512);
		tdt__stacks_free(stacks);
	}
	tdt__walker_fini(&walker);
}

TEST(code_outside_of_all_modules_ends_a_walk)
{
	uint64_t words[4] = { 0 };
	struct tdt__stack stack = { .low = 0x7f0000000000,
				    .size = sizeof words,
				    .copy = (char *)words,
				    .call = -1 };
	struct tdt__walker walker = { .images = &images };
	struct tdt__stacks *stacks;

	open_self();
	tdt__cpu_set(&stack.cpu, TDT__DWARF_PC, 0x1234);
	tdt__cpu_set(&stack.cpu, TDT__DWARF_SP, stack.low);
	stacks = tdt__walk_stack(&walker, &stack, stack.low + sizeof words);
	ck_assert(stacks == NULL || stacks->n <= 1);
	tdt__stacks_free(stacks);
	tdt__walker_fini(&walker);
}

SUITE_SKIP(reading_refused())
