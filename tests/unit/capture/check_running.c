// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/running, capture/interrupt, host/proc_thread, base/proc_text, base/syscall_name.
 * Tasks in the middle of a poll: their stacks are read while they are stuck, and what they are
 * stuck in is not disturbed.  The code is compiled in several ways (stuck.c).
 */

#include <config.h>

#include "lib/stuck_task.h"
#include "lib/test.h"

static inline void leave_out_marks(char *path)
{
	for (char *mark = path; (mark = strchr(mark, '~')) != NULL;)
		memmove(mark, mark + 1, strlen(mark));
}

/* The program's own part of the path is whole, and nothing else was guessed. */
static void check_path(const struct tdt_trace *trace, const struct stuck_poll *kind)
{
	char *path, *want;

	if (SIGNALS_ARE_LATE && kind->syscall == NULL) {
		printf("# not tried: ThreadSanitizer delays signals: the path of %s\n", kind->name);
		return;
	}
	path = stuck_path(trace);
	want = strdup(kind->path);
	MUST(want != NULL);
#if TDT_WALK_RULES && !SANITIZED
	ck_assert_msg(strncmp(path, want, strlen(want)) == 0, "%s", path);
	ck_assert_msg(strchr(path + strlen(want), '~') == NULL, "%s", path);
#else
	leave_out_marks(path);
	leave_out_marks(want);
	ck_assert_msg(strstr(path, want) != NULL, "%s", path);
#endif
	free(want);
	free(path);
}

static void check_kind(const struct stuck_poll *kind)
{
	struct stuck_task task = { 0 };
	struct stuck stuck;

	stuck_init(&stuck, kind);
	stuck_task_start(&task, kind->poll, &stuck);
	while (atomic_load(&stuck.entered) == 0)
		usleep(100);
	stuck_task_settle(&task, kind->syscall == NULL);
	TRACE(trace, stuck_task_ask(&task));
	if (kind->syscall != NULL)
		ck_assert_str_eq(tdt_trace_info(trace)->syscall, kind->syscall);
	else
		ck_assert_ptr_null(tdt_trace_info(trace)->syscall);
	check_path(trace, kind);
	stuck_let_go(&stuck);
	stuck_task_end(&task);
	ck_assert_int_eq(task.result, TDT_READY);
	ck_assert_int_ge(stuck.result, 0);
	ck_assert_int_eq(stuck.error, 0);
	if (strcmp(kind->name, "in_nanosleep") == 0)
		ck_assert_int_ge(stuck.took_ns, stuck.sleep_ms * 1000000);
	/* A blocked thread was sent no signal: none was set up so far. */
	ck_assert_int_eq(stuck_signal() != 0, kind->syscall == NULL);
	stuck_fini(&stuck);
}

#define KINDS 8

SUITE_SKIP(stuck_impossible())

CASE(running)

TEST(polls_compiled_without_optimization_are_read, .to = KINDS)
{
	check_kind(&stuck_o0[_i]);
}

TEST(polls_compiled_with_little_optimization_are_read, .to = KINDS)
{
	check_kind(&stuck_o1[_i]);
}

TEST(polls_compiled_to_protect_their_stacks_are_read, .to = KINDS)
{
	check_kind(&stuck_protected[_i]);
}

TEST(polls_compiled_with_frame_pointers_are_read, .to = KINDS)
{
	check_kind(&stuck_with_fp[_i]);
}

TEST(polls_compiled_without_frame_pointers_are_read, .to = KINDS)
{
	check_kind(&stuck_without_fp[_i]);
}
