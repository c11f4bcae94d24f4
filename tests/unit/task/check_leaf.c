// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/leaf, capture/leaf_list, task/waits.  Tasks that wait at a list of frames: requests,
 * dumps and deadlocks of them; lists that are out of date, damaged or gone.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "lib/options.h"
#include "lib/printed.h"
#include "lib/refused.h"
#include "lib/requester.h"
#include "lib/says.h"
#include "lib/test.h"
#include "registry/handle.h"

#define MS INT64_C(1000000)

static const struct tdt_leaf_frame calls[] = {
	{ "serve", "/b/server.c", 10, 0 }, { "query", "/b/db.c", 20, 5 }, { "send", NULL, 0, 0 }
};

#define NAMED(array)                                                                               \
	{ .kind = TDT_LEAF_NAMED, .n = sizeof(array) / sizeof((array)[0]), .frames = (array) }

static struct test_task polled; /* of a race */

static struct tdt_handle *task_new(uint64_t id)
{
	const struct tdt_task_attr attr = { .size = sizeof attr, .id = id };
	struct tdt_handle *task = tdt_task_new(&attr);

	MUST(task != NULL);
	return task;
}

/* The functions of the only stack, from the outermost on, as "serve query send". */
static char *path_of(const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_node_first_child(tdt_trace_root(trace));
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (; node != NULL; node = tdt_node_first_child(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);

		ck_assert_ptr_null(tdt_node_next_sibling(node));
		if (frame->kind == TDT_NODE_CUT)
			fprintf(out, "cut%d ", frame->cut);
		else
			fprintf(out, "%s ", frame->function != NULL ? frame->function : "?");
	}
	fclose(out);
	if (size > 0)
		text[size - 1] = '\0';
	return text;
}

/* Request a trace of a task that answers at once, and compare its only stack. */
static void expect_path(struct tdt_handle *task, const char *expected)
{
	TRACE(trace, tdt_backtrace(task));

	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_WAITING);
	TEXT(path, path_of(trace));
	ck_assert_str_eq(path, expected);
}

static void expect_no_answer(struct tdt_handle *task)
{
	ck_assert_ptr_fails(backtrace_timed(task, 5 * MS), ETIMEDOUT);
}

static int note_state(struct tdt_handle *handle, const struct tdt_task_info *info, void *state)
{
	*(struct tdt_task_info *)state = *info;
	return 0;
}

static struct tdt_task_info record_of(struct tdt_handle *task)
{
	struct tdt_task_info info;

	MUST(tdt_task_inspect(task, note_state, &info) == 0);
	return info;
}

static void expect_in(const char *text, const char *part, bool there)
{
	ck_assert_msg((strstr(text, part) != NULL) == there, "\"%s\" in:\n%s", part, text);
}

CASE(leaf)

TEST(a_task_shows_the_names_at_which_it_waits)
{
	struct tdt_leaf leaf = NAMED(calls);
	FUTURELESS(task, task_new(7));

	tdt_leaf_at(task, &leaf);
	TRACE(trace, tdt_backtrace(task));
	TEXT(text, print(trace, OPTIONS(ASCII)));
	expect_in(text, "task 7 pending", true);
	expect_in(text,
		  ", 1 leaf\n"
		  "- serve at /b/server.c:10\n"
		  " `- query at /b/db.c:20:5\n"
		  "    `- send\n",
		  true);
}

static const void *addresses[3];

static NOINLINE void third(void)
{
	addresses[2] = __builtin_return_address(0);
}

static NOINLINE void second(void)
{
	addresses[1] = __builtin_return_address(0);
	third();
	TDT_KEEP_FRAME();
}

static NOINLINE void first(void)
{
	addresses[0] = __builtin_return_address(0);
	second();
	TDT_KEEP_FRAME();
}

static NOINLINE void collect(void)
{
	first();
	TDT_KEEP_FRAME();
}

TEST(a_task_shows_the_addresses_at_which_it_waits)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_PCS, .n = 3, .frames = addresses };
	uint64_t pcs[3];
	enum tdt_cut cut;
	FUTURELESS(task, task_new(0));

	collect();
	tdt_leaf_at(task, &leaf);
	expect_path(task, "collect first second");
	TRACE(trace, tdt_backtrace(task));
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, pcs, 3, &cut), 3);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(pcs[i], (uintptr_t)addresses[2 - i]);
}

TEST(a_task_runs_between_two_lists_and_is_ready_at_its_end)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct tdt_handle *task = task_new(0), *kept = tdt_handle_ref(task);
	struct tdt_task_info info = record_of(task);

	ck_assert_int_eq(info.state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info.thread, (uint32_t)gettid());
	ck_assert_uint_eq(info.polls, 1);
	expect_no_answer(task);
	tdt_leaf_at(task, &leaf);
	info = record_of(task);
	ck_assert_int_eq(info.state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info.polls, 1);
	tdt_leaf_at(task, NULL);
	tdt_leaf_at(task, NULL);
	info = record_of(task);
	ck_assert_int_eq(info.state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info.polls, 2);
	expect_no_answer(task);
	tdt_task_end(task);
	ck_assert_int_eq(record_of(kept).state, TDT_TASK_READY);
	tdt_leaf_at(kept, &leaf);
	ck_assert_ptr_fails(tdt_backtrace(kept), ESRCH);
	ck_assert_ptr_null(tdt_misused());
	tdt_handle_unref(kept);
}

TEST(a_task_may_end_while_it_waits)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct tdt_handle *task = task_new(0), *kept = tdt_handle_ref(task);
	struct test_task joiner = { .leaf.name = 'a' };
	struct tdt_future join = tdt_join(task, NULL);

	test_task_init(&joiner, &join);
	tdt_leaf_at(task, &leaf);
	ck_assert_int_eq(test_task_poll(&joiner), TDT_PENDING);
	tdt_task_end(task);
	ck_assert_int_eq(test_task_poll(&joiner), TDT_READY);
	ck_assert_ptr_fails(tdt_backtrace(kept), ESRCH);
	test_task_fini(&joiner);
	tdt_handle_unref(kept);
}

TEST(a_list_may_change_when_the_task_has_gone_on)
{
	struct tdt_leaf_frame own[2] = { { "a", NULL, 0, 0 }, { "b", NULL, 0, 0 } };
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 2, .frames = own };
	struct tdt_leaf other = NAMED(calls);
	FUTURELESS(task, task_new(0));

	tdt_leaf_at(task, &leaf);
	expect_path(task, "a b");
	tdt_leaf_at(task, NULL);
	own[1].function = "c";
	tdt_leaf_at(task, &leaf);
	expect_path(task, "a c");
	tdt_leaf_at(task, &other); /* the task has gone on in between */
	expect_path(task, "serve query send");
	ck_assert_uint_eq(record_of(task).polls, 3);
	leaf.n = 0; /* it waits, but nobody knows where */
	tdt_leaf_at(task, &leaf);
	expect_path(task, "(unknown)");
}

TEST(a_request_to_a_running_task_is_answered_when_it_waits)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct tdt_handle *task = task_new(0);
	struct test_requester requester;

	test_ask(&requester, task);
	ck_assert(!test_answered(&requester));
	tdt_leaf_at(task, &leaf);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "query"), 1);
	test_requester_fini(&requester);
	tdt_leaf_at(task, NULL);
	test_ask(&requester, task);
	tdt_task_end(task);
	ck_assert(test_answered(&requester));
	ck_assert_int_eq(requester.error, -ESRCH);
	test_requester_fini(&requester);
}

TEST(a_task_that_was_woken_is_shown_as_runnable_where_it_waited)
{
	struct tdt_leaf leaf = NAMED(calls);
	FUTURELESS(task, task_new(0));

	tdt_leaf_at(task, &leaf);
	tdt_task_woken(task);
	TRACE(trace, tdt_backtrace(task));
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_RUNNABLE);
	ck_assert_int_eq(test_nodes_of(trace, "send"), 1);
}

static void request_in_poll(void *task)
{
	expect_path(task, "serve query send");
}

TEST(it_answers_in_polls_of_other_tasks_and_on_workers)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct test_task other = { .leaf.name = 'a' };
	FUTURELESS(task, task_new(0));
	struct test_busy busy = { request_in_poll, task, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);

	tdt_leaf_at(task, &leaf);
	test_task_init(&other, &child);
	test_task_poll(&other);
	ck_assert_int_eq(busy.polls, 1);
	tdt_worker_thread_start(NULL);
	expect_path(task, "serve query send");
	tdt_leaf_at(task, NULL);
	ck_assert_ptr_fails(tdt_backtrace(task), EDEADLK);
	tdt_worker_thread_stop();
	test_task_fini(&other);
}

TEST(a_child_of_a_fork_reads_the_list, .skip = no_threads_in_children)
{
	struct tdt_leaf leaf = NAMED(calls);
	FUTURELESS(task, task_new(0));

	tdt_leaf_at(task, &leaf);
	IN_A_CHILD {
		TRACE(trace, tdt_backtrace(task));

		MUST(test_nodes_of(trace, "send") == 1);
	}
}

TEST(a_call_without_a_task_does_nothing)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };

	tdt_leaf_at(NULL, &leaf);
	tdt_leaf_at(NULL, NULL);
	tdt_task_waits_on(NULL, TDT_WAIT_MUTEX, &leaf, 1, NULL);
	tdt_task_end(NULL);
	test_task_init(&task, NULL);
	tdt_task_end(task.handle); /* it has a future */
	ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
	test_task_fini(&task);
	ck_assert_ptr_fails(tdt_task_new(&(struct tdt_task_attr){ 0 }), EINVAL);
}

/* --- Tasks with a future ---------------------------------------------------------------- */

TEST(a_future_that_waits_at_a_list_is_not_woken)
{
	struct tdt_leaf leaf = NAMED(calls);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_task_poll(&task);
	tdt_leaf_at(task.handle, &leaf);
	expect_path(task.handle, "serve query send");
	ck_assert_int_eq(task.waker.wakes, 0);
	ck_assert_uint_eq(record_of(task.handle).polls, 1);
	test_task_poll(&task); /* the list is out of date by this */
	expect_no_answer(task.handle);
	ck_assert_int_gt(task.waker.wakes, 0);
	tdt_leaf_at(task.handle, &leaf);
	expect_path(task.handle, "serve query send");
	tdt_leaf_at(task.handle, NULL);
	expect_no_answer(task.handle);
}

/* A future that clones the waker, and gives the list, if there is one. */
static struct tdt_leaf *given;
static struct tdt_handle *given_to;

static NOINLINE void give(void *nothing)
{
	if (given != NULL) {
		tdt_leaf_at(given_to, given);
		tdt_leaf_waits_on(TDT_WAIT_OTHER, given, 0);
	}
	TDT_KEEP_FRAME();
}

static int leaves_of_next_poll(struct test_task *task, struct test_requester *requester)
{
	test_ask(requester, task->handle);
	ck_assert_int_eq(test_task_run(task), 1);
	return (int)test_answer(requester)->leaves;
}

TEST(a_list_that_a_poll_gives_is_a_leaf_of_that_poll_alone, .to = 2)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct test_busy busy = { give, NULL, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);
	struct test_task task = { .leaf.name = 'a' };
	struct test_requester requester;

	given = &leaf;
	test_task_init(&task, &child);
	given_to = _i ? task.handle : NULL;
	test_task_poll(&task);
	ck_assert_int_eq(leaves_of_next_poll(&task, &requester), 2);
	ck_assert_int_eq(test_nodes_of(requester.trace, "act_in_poll"), 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "serve"), 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "send"), 1);
	ck_assert_uint_eq(tdt_trace_info(requester.trace)->leaves_unsure, 0);
	ck_assert_uint_eq(tdt_trace_info(requester.trace)->n_waits, 1);
	test_requester_fini(&requester);
	given = NULL;
	ck_assert_int_eq(leaves_of_next_poll(&task, &requester), 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "serve"), 0);
	test_requester_fini(&requester);
	test_task_fini(&task);
}

/* `timeout_ns` 0: as long as it takes. */
static char *dump(int64_t timeout_ns, enum tdt_print_format format)
{
	struct tdt_print_options print = { .size = sizeof print, .format = format, ASCII };
	struct tdt_dump_options options = {
		.size = sizeof options,
		.timeout_ns = timeout_ns != 0 ? timeout_ns : 60000000000,
		.print = &print
	};

	return TEXT_WRITTEN(out, MUST(out != NULL && tdt_dump_with(out, &options) == 0));
}

/* On a busy machine there may be no time left to look for the tree of a task that is silent. */
static char *dump_with_last_tree(void)
{
	int64_t timeout_ns = 400 * MS;
	char *text = dump(timeout_ns, TDT_PRINT_TEXT);

	while (strstr(text, "- serve") == NULL) {
		free(text);
		timeout_ns *= 2;
		text = dump(timeout_ns, TDT_PRINT_TEXT);
	}
	return text;
}

TEST(a_dump_shows_the_list_of_the_last_poll_of_a_task_that_does_not_answer)
{
	struct tdt_leaf leaf = NAMED(calls);
	struct test_busy busy = { give, NULL, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);
	struct test_task task = { .leaf.name = 'a' };

	given = &leaf;
	test_task_init(&task, &child);
	test_task_poll(&task);
	SAYS(dump_with_last_tree(), "did not answer", "- serve at /b/server.c:10\n `- query at");
	given = NULL;
	test_task_poll(&task);
	SAYS(dump(40 * MS, TDT_PRINT_TEXT), "!serve");
	test_task_fini(&task);
}

/* --- Dumps ------------------------------------------------------------------------------ */

TEST(a_dump_merges_equal_lists_wherever_they_lie)
{
	struct tdt_leaf_frame copies[3];
	struct tdt_leaf leaf[4] = {
		NAMED(calls),
		{ .kind = TDT_LEAF_NAMED, .n = 3, .frames = copies },
		{ .kind = TDT_LEAF_PCS, .n = 3, .frames = addresses },
		{ .kind = TDT_LEAF_PCS, .n = 3, .frames = addresses },
	};
	struct tdt_handle *tasks[4];
	char *text;

	collect();
	for (int i = 0; i < 3; i++) {
		copies[i] = calls[i];
		copies[i].function = strdup(calls[i].function);
	}
	for (int i = 0; i < 4; i++) {
		tasks[i] = task_new(50 + (uint64_t)i);
		tdt_leaf_at(tasks[i], &leaf[i]);
	}
	/* On a busy machine names may come late: they are there for a later dump. */
	while (text = dump(0, TDT_PRINT_TEXT), strstr(text, "not named in time") != NULL)
		free(text);
	expect_in(text, "4 tasks: 4 answered", true);
	expect_in(text, ": 50 and 51\n- serve at /b/server.c:10\n `- query at", true);
	expect_in(text, ": 52 and 53\n- collect at", true);
	free(text);
	SAYS(dump(0, TDT_PRINT_FOLDED), "tasks;serve;query;send 2\n",
	     "tasks;collect;first;second 2\n");
	SAYS(dump(0, TDT_PRINT_JSON), "\"function\":\"query\",\"file\":\"/b/db.c\",\"line\":20,");
	for (int i = 0; i < 4; i++)
		tdt_task_end(tasks[i]);
	for (int i = 0; i < 3; i++)
		free((char *)(uintptr_t)copies[i].function);
}

/* Two tasks that wait for each other's locks. */
static void wait_for_each_other(struct tdt_handle *const tasks[2], struct tdt_leaf leaf[2],
				struct tdt_lock locks[2])
{
	for (int i = 0; i < 2; i++) {
		memcpy(locks[i].magic, TDT_LOCK_MAGIC, sizeof locks[i].magic);
		locks[i].owner = tdt_handle_id(tasks[i]);
	}
	for (int i = 0; i < 2; i++) {
		tdt_leaf_at(tasks[i], &leaf[i]);
		tdt_task_waits_on(tasks[i], TDT_WAIT_MUTEX, &locks[!i], locks[!i].owner, "m");
	}
}

TEST(tasks_that_wait_at_lists_for_each_other_are_a_deadlock)
{
	struct tdt_leaf leaf[2] = { NAMED(calls), NAMED(calls) };
	struct tdt_handle *tasks[2] = { task_new(51), task_new(52) };
	struct tdt_lock locks[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		tdt_leaf_at(tasks[i], &leaf[i]);
		tdt_task_woken(tasks[i]); /* so the runtime reports wake-ups */
		tdt_leaf_at(tasks[i], NULL);
	}
	wait_for_each_other(tasks, leaf, locks);
	SAYS(dump(0, TDT_PRINT_TEXT), "\ndeadlock", "task 51 waits for a mutex \"m\" (0x");
	/* The lock is handed over: what the list says may be over. */
	locks[1].owner = 51;
	SAYS(dump(0, TDT_PRINT_TEXT), "!\ndeadlock");
	/* Woken, or gone on. */
	wait_for_each_other(tasks, leaf, locks);
	tdt_task_woken(tasks[0]);
	SAYS(dump(0, TDT_PRINT_TEXT), "!\ndeadlock", "task 51 runnable");
	tdt_leaf_at(tasks[0], NULL);
	tdt_leaf_at(tasks[0], &leaf[0]); /* it waits for something that it does not report */
	SAYS(dump(0, TDT_PRINT_TEXT), "!deadlock", "!ring");
	tdt_task_end(tasks[0]);
	tdt_task_end(tasks[1]);
}

/* --- Lists that cannot be trusted --------------------------------------------------------- */

TEST(a_list_that_cannot_be_read_is_an_unknown_place)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tdt_leaf wild = { .kind = TDT_LEAF_PCS, .n = 3, .frames = (void *)16 };
	struct tdt_leaf kind = { .kind = 3, .n = 3, .frames = addresses };
	struct tdt_leaf *freed = page;
	FUTURELESS(task, task_new(0));

	MUST(page != MAP_FAILED);
	tdt_leaf_at(task, &wild);
	expect_path(task, "(unknown)");
	wild.kind = TDT_LEAF_NAMED;
	wild.n = UINT32_MAX;
	tdt_leaf_at(task, &wild);
	expect_path(task, "(unknown)");
	wild.frames = (void *)(UINTPTR_MAX - 64);
	tdt_leaf_at(task, &wild);
	expect_path(task, "(unknown)");
	tdt_leaf_at(task, &kind);
	expect_path(task, "(unknown)");
	*freed = (struct tdt_leaf)NAMED(calls);
	tdt_leaf_at(task, freed);
	expect_path(task, "serve query send");
	freed->polls++; /* it is other memory by now */
	expect_path(task, "(unknown)");
	munmap(page, 4096);
	expect_path(task, "(unknown)");
	tdt_leaf_at(task, NULL);
}

TEST(frames_that_cannot_be_read_are_missing, .skip = reading_refused)
{
	size_t page = 4096;
	char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	const void **pcs = (const void **)(void *)(memory + page);
	struct tdt_leaf_frame odd[] = { { (char *)16, (char *)16, 1, 1 },
					{ memory + 2 * page - 2, "/b/x.c", 7, 0 },
					{ "", "", 0, 0 } };
	struct tdt_leaf unended = NAMED(odd), half = { .kind = TDT_LEAF_PCS, .n = 64 };
	struct tdt_handle *task = task_new(0);
	struct tdt_trace *trace;
	char *path;

	MUST(memory != MAP_FAILED);
	memcpy(memory + 2 * page - 2, "fg", 2); /* no NUL before the next page */
	MUST(mprotect(memory, page, PROT_NONE) == 0);
	MUST(mprotect(memory + 2 * page, page, PROT_NONE) == 0);
	tdt_leaf_at(task, &unended);
	expect_path(task, "? fg ");
	collect();
	half.frames = pcs - 32; /* the outer half is not there */
	for (int i = 0; i < 32; i++)
		pcs[i] = addresses[i % 3];
	tdt_leaf_at(task, &half);
	trace = tdt_backtrace(task);
	path = path_of(trace);
	ck_assert_msg(strncmp(path, "cut3 ", 5) == 0, "%s", path);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, NULL), 32);
	free(path);
	tdt_trace_free(trace);
	tdt_task_end(task);
	munmap(memory, 3 * page);
}

TEST(addresses_where_no_code_is_have_no_names)
{
	const void *wild[] = { NULL, (void *)1, (void *)UINTPTR_MAX, &polled, (void *)INTPTR_MIN };
	struct tdt_leaf leaf = { .kind = TDT_LEAF_PCS, .n = 5, .frames = wild };
	FUTURELESS(task, task_new(0));

	tdt_leaf_at(task, &leaf);
	expect_path(task, "? ? ? ? ?");
	SAYS(dump(0, TDT_PRINT_JSON), "\"pc\":\"0x1\"");
}

TEST(long_lists_are_cut_at_the_limit_and_long_strings_too)
{
	static struct tdt_leaf_frame frames[2000];
	static char name[2000];
	struct tdt_leaf leaf = NAMED(frames);
	const struct tdt_backtrace_options more = { .size = sizeof more, .max_frames = UINT32_MAX };
	struct tdt_trace *trace;
	enum tdt_cut cut;
	FUTURELESS(task, task_new(0));

	memset(name, 'x', sizeof name - 1);
	for (int i = 0; i < 2000; i++)
		frames[i] = (struct tdt_leaf_frame){ "f", "x.c", (uint32_t)i + 1, 0 };
	tdt_leaf_at(task, &leaf);
	trace = tdt_backtrace(task);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), TDT_MAX_FRAMES);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
	tdt_trace_free(trace);
	trace = tdt_backtrace_with(task, &more);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 1024);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
	tdt_trace_free(trace);
	tdt_leaf_at(task, NULL);
	leaf.n = 1;
	frames[0].function = name;
	tdt_leaf_at(task, &leaf);
	trace = tdt_backtrace(task);
	TEXT(path, path_of(trace));
	ck_assert_uint_eq(strlen(path), TDT_LEAF_TEXT_MAX);
	tdt_trace_free(trace);
}

/* --- Without memory ----------------------------------------------------------------------- */

static int new_and_end(void *nothing)
{
	struct tdt_handle *task = tdt_task_new(TDT_TASK_ATTR());

	tdt_task_end(task);
	return task != NULL ? 0 : -errno;
}

/* Enough tasks that the next one needs memory. */
TEST(a_task_may_not_be_made)
{
	static struct tdt_handle *tasks[4096];
	int made = 0, error;

	NEEDS_FAILING_MEMORY();
	no_memory_begin(0);
	while (made < 4096 && (tasks[made] = tdt_task_new(TDT_TASK_ATTR())) != NULL)
		made++;
	error = errno;
	no_memory_end();
	ck_assert_int_lt(made, 4096);
	ck_assert_int_eq(error, ENOMEM);
	while (made > 0)
		tdt_task_end(tasks[--made]);
	ck_assert_int_eq(new_and_end(NULL), 0);
}

/* A request without memory for a name loses the outer frames, and says so. */
static int request_whole(void *task)
{
	struct tdt_trace *trace = tdt_backtrace(task);
	int error = trace != NULL ? 0 : -errno;
	enum tdt_cut cut = TDT_CUT_NOT;

	if (trace != NULL && (tdt_trace_info(trace)->leaves_lost == 1 ||
			      tdt_trace_stack(trace, 0, NULL, 0, &cut) < 3)) {
		ck_assert(tdt_trace_info(trace)->leaves_lost == 1 || cut == TDT_CUT_MEMORY);
		error = -ENOMEM;
	}
	tdt_trace_free(trace);
	return error;
}

TEST(a_request_may_lack_memory)
{
	struct tdt_leaf leaf = NAMED(calls);
	FUTURELESS(task, task_new(0));

	tdt_leaf_at(task, &leaf);
	no_memory_each(request_whole, task, 5);
}

/* --- Threads ------------------------------------------------------------------------------- */

#define DEPTH 8

/*
 * The owner goes on and waits again as quickly as it can, each time at another list.  It frees a
 * list as soon as the task has gone on.  All frames of a list have the same line, and are of the
 * file with that number.
 */
static struct race {
	struct tdt_handle *task;
	_Atomic int ready;
	_Atomic bool stop;
	uint32_t lists;
} race;

struct freed_list {
	struct tdt_leaf leaf;
	struct tdt_leaf_frame frames[DEPTH];
	char file[16];
};

static struct freed_list *list_new(uint32_t number)
{
	struct freed_list *list = malloc(sizeof *list);

	MUST(list != NULL);
	snprintf(list->file, sizeof list->file, "/%u", number);
	for (int i = 0; i < DEPTH; i++)
		list->frames[i] =
		    (struct tdt_leaf_frame){ "f", list->file, number, (uint32_t)i };
	list->leaf = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED,
					.n = 1 + number % DEPTH,
					.frames = list->frames };
	return list;
}

static void list_free(struct freed_list *list)
{
	memset(list, 'x', sizeof *list);
	free(list);
}

static void *change_lists(void *nothing)
{
	for (race.lists = 1; !race.stop; race.lists++) {
		struct freed_list *list = list_new(race.lists);

		tdt_leaf_at(race.task, &list->leaf);
		race.ready = 1;
		tdt_leaf_at(race.task, NULL);
		list_free(list);
	}
	return nothing;
}

/* The same for a future that its owner polls when it was woken. */
static void *change_lists_and_poll(void *nothing)
{
	for (race.lists = 1; !race.stop; race.lists++) {
		struct freed_list *list = list_new(race.lists);

		tdt_leaf_at(race.task, &list->leaf);
		race.ready = 1;
		if (race.lists % 4 == 0)
			test_task_poll(&polled);
		else
			tdt_leaf_at(race.task, NULL);
		list_free(list);
		test_task_run(&polled);
	}
	return nothing;
}

/* Whether the trace has one whole list; or, of a poll, none. */
static void expect_one_list(const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_node_first_child(tdt_trace_root(trace));
	uint32_t line, depth = 0;
	char file[16];

	if (test_nodes_of(trace, "f") == 0 && test_nodes_of(trace, "(unknown)") == 0)
		return;
	ck_assert_ptr_nonnull(node);
	line = tdt_node_frame(node)->line;
	snprintf(file, sizeof file, "/%u", line);
	for (; node != NULL; node = tdt_node_first_child(node)) {
		ck_assert_uint_eq(tdt_node_frame(node)->line, line);
		ck_assert_str_eq(tdt_node_frame(node)->file, file);
		ck_assert_uint_eq(tdt_node_frame(node)->column, depth++);
	}
	ck_assert_uint_eq(depth, 1 + line % DEPTH);
}

static void *request_lists(void *times)
{
	for (int i = 0; i < *(int *)times; i++) {
		struct tdt_trace *trace = backtrace_timed(race.task, 10000 * MS);

		MUST(trace != NULL);
		expect_one_list(trace);
		tdt_trace_free(trace);
	}
	return NULL;
}

static void race_for(void *(*own)(void *))
{
	int times = 2000;
	pthread_t owner, requesters[2];

	MUST(pthread_create(&owner, NULL, own, NULL) == 0);
	while (!race.ready)
		usleep(100);
	threads_start(requesters, 2, request_lists, &times);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(requesters[i], NULL) == 0);
	race.stop = true;
	MUST(pthread_join(owner, NULL) == 0);
	printf("# %u lists, of which at most %d were read\n", race.lists, 2 * times);
}

TEST(no_list_is_shown_that_changes_meanwhile)
{
	race.task = task_new(0);
	race_for(change_lists);
	tdt_task_end(race.task);
}

TEST(no_list_of_a_future_is_shown_that_changes_meanwhile)
{
	struct test_busy busy = { NULL, NULL, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);

	test_task_init(&polled, &child);
	race.task = polled.handle;
	race_for(change_lists_and_poll);
	test_task_fini(&polled);
}
