// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Snapshots made by hand, to be printed. */

#include <config.h>

#include "lib/dumped.h"

#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tree/groups.h"

struct dumped *dumped_new(void)
{
	struct dumped *dumped = calloc(1, sizeof(*dumped));

	ck_assert_ptr_nonnull(dumped);
	dumped->snapshot.size = sizeof(dumped->snapshot);
	dumped->snapshot.groups = dumped->group_list;
	dumped->snapshot.cycles = dumped->cycle_list;
	for (int i = 0; i < DUMPED_GROUPS; i++)
		dumped->group_list[i] = &dumped->groups[i];
	for (int i = 0; i < DUMPED_CYCLES; i++)
		dumped->cycle_list[i] = &dumped->cycles[i];
	return dumped;
}

void dumped_free(struct dumped *dumped)
{
	for (size_t i = 0; i < dumped->snapshot.n_groups; i++) {
		tdt_trace_free((struct tdt_trace *)(uintptr_t)dumped->groups[i].trace);
		free((void *)(uintptr_t)dumped->groups[i].tasks);
	}
	for (size_t i = 0; i < dumped->snapshot.n_cycles; i++)
		free((void *)(uintptr_t)dumped->cycles[i].tasks);
	free(dumped);
}

static const struct tdt_task_info *const *pointers(const struct tdt_task_info *tasks, size_t n)
{
	const struct tdt_task_info **array = calloc(n, sizeof(*array));

	ck_assert_ptr_nonnull(array);
	for (size_t i = 0; i < n; i++)
		array[i] = &tasks[i];
	return array;
}

void dumped_group(struct dumped *dumped, enum tdt_answer answer, const char *tree,
		  const struct tdt_task_info *tasks, size_t n)
{
	dumped->groups[dumped->snapshot.n_groups++] =
	    (struct tdt_snapshot_group){ .size = sizeof(struct tdt_snapshot_group),
					 .answer = answer,
					 .trace = tree != NULL ? grow(tree) : NULL,
					 .tasks = pointers(tasks, n),
					 .n = n };
	dumped->snapshot.tasks += n;
	*tdt__answered(&dumped->snapshot, answer) += n;
}

void dumped_cycle(struct dumped *dumped, bool deadlock, const struct tdt_task_info *tasks,
		  size_t n)
{
	dumped->cycles[dumped->snapshot.n_cycles++] = (struct tdt_snapshot_cycle){
		.tasks = pointers(tasks, n), .n = n, .deadlock = deadlock
	};
}

char *dumped_text(const struct tdt_snapshot *snapshot, const struct tdt_dump_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	errno = EDOM;
	ck_assert_int_eq(tdt_snapshot_print(snapshot, file, options), 0);
	ck_assert_int_eq(errno, EDOM); /* success leaves it alone */
	fclose(file);
	return text;
}

void dumped_expect(struct dumped *dumped, const struct tdt_dump_options *options,
		   const char *expected)
{
	char *text = dumped_text(&dumped->snapshot, options);

	ck_assert_str_eq(text, expected);
	free(text);
	dumped_free(dumped);
}

#define SECOND UINT64_C(1000000000)
#define AT(of_line) .file = "x.c", .line = of_line

struct dumped *dumped_everything(void)
{
	static const struct tdt_wait for_b = { .kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 6 };
	static const struct tdt_wait for_a = { .kind = TDT_WAIT_MUTEX, .object = 0x20, .owner = 5 };
	static const struct tdt_wait for_d = { .kind = TDT_WAIT_TASK, .owner = 8 };
	static const struct tdt_wait for_c = { .kind = TDT_WAIT_CHANNEL,
					       .object = 0x30,
					       .owner = 7 };
	static const struct tdt_wait *const b = &for_b, *const a = &for_a, *const d = &for_d,
					   *const c = &for_c;
	static const struct tdt_task_info many[] = {
		TASK(.id = 20, .name = "conn 1", .state_ns = 70 * SECOND, AT(9)),
		TASK(.id = 21, .state_ns = 3 * SECOND, AT(9), .waits = &a, .n_waits = 1),
		TASK(.id = 22, .name = "conn 3", .state_ns = 2 * SECOND, AT(9), .waits = &a,
		     .n_waits = 1),
	};
	static const struct tdt_task_info dead[] = {
		TASK(.id = 5, .name = "a", .state_ns = 60 * SECOND, .waits = &b, .n_waits = 1),
		TASK(.id = 6, .name = "b", .state_ns = 59 * SECOND, .waits = &a, .n_waits = 1),
	};
	static const struct tdt_task_info ring[] = {
		TASK(.id = 7, .name = "c", .state_ns = 9 * SECOND, .waits = &d, .n_waits = 1),
		TASK(.id = 8, .state_ns = 8 * SECOND, .waits = &c, .n_waits = 1),
	};
	static const struct tdt_task_info runs =
	    TASK(.id = 9, .name = "busy", .state = TDT_TASK_RUNNING, .state_ns = 4 * SECOND,
		 .thread = 4711, .syscall = "read", .parent = 5);
	static const struct tdt_task_info old =
	    TASK(.id = 10, .state_ns = 3 * SECOND, .age_ns = 4 * SECOND, .polls_since = 12);
	static const struct tdt_task_info silent = BARE(.id = 11, .state_ns = 2 * SECOND);
	static const struct tdt_misuse misuse = { .size = sizeof misuse,
						  .kind = TDT_MISUSE_NESTED,
						  .task = 8,
						  .name = "c\"",
						  .reason = "it was polled\ntwice" };
	struct dumped *dumped = dumped_new();

	dumped->snapshot.took_ns = SECOND;
	dumped_group(dumped, TDT_ANSWER_FRESH, "a:1*", &dead[0], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "b:1*", &dead[1], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "conn:9(tdt_read:4*)", many, 3);
	dumped_group(dumped, TDT_ANSWER_FRESH, "c:2* d:3*", &ring[0], 1);
	dumped_group(dumped, TDT_ANSWER_FRESH, "d:2*", &ring[1], 1);
	dumped_group(dumped, TDT_ANSWER_RUNNING, "busy:3*", &runs, 1);
	dumped_group(dumped, TDT_ANSWER_LAST, "old:4*", &old, 1);
	dumped_group(dumped, TDT_ANSWER_NONE, NULL, &silent, 1);
	dumped_cycle(dumped, true, dead, 2);
	dumped->cycles[0].n_groups = 2;
	dumped_cycle(dumped, false, ring, 2);
	dumped->snapshot.lost = 2;
	dumped->snapshot.misuse = &misuse;
	return dumped;
}
