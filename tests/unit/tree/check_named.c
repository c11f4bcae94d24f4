// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers tree/named.  Frames that were reported by name: their numbers, and the trees of them. */

#include "lib/printed.h"
#include "lib/test.h"
#include "symbolize/modules.h"
#include "tree/named.h"
#include "tree/stacks.h"
#include "tree/trace.h"

CASE(named)

TEST(equal_frames_have_equal_numbers_and_others_have_not)
{
	struct tdt__named *list = NULL, *other = NULL;
	char copy[] = "f";
	uintptr_t pc = tdt__named_add(&list, "f", "x.c", 1, 2);
	const uintptr_t others[] = {
		tdt__named_add(&list, "g", "x.c", 1, 2),  tdt__named_add(&list, "f", "y.c", 1, 2),
		tdt__named_add(&list, "f", "x.c", 2, 2),  tdt__named_add(&list, "f", "x.c", 1, 1),
		tdt__named_add(&list, "f", NULL, 1, 2),   tdt__named_add(&list, NULL, "x.c", 1, 2),
		tdt__named_add(&list, "fx.c", NULL, 1, 2), tdt__named_add(&list, "f", "", 1, 2),
	};

	ck_assert(tdt__is_named(pc));
	ck_assert_uint_eq(tdt__named_add(&other, copy, "x.c", 1, 2), pc);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		ck_assert_uint_ne(others[i], pc);
		for (size_t k = 0; k < i; k++)
			ck_assert_uint_ne(others[i], others[k]);
	}
	copy[0] = 'x';
	ck_assert_str_eq(tdt__named_find(other, pc)->function, "f");
	ck_assert_ptr_null(tdt__named_find(other, others[0]));
	ck_assert_ptr_null(tdt__named_find(NULL, pc));
	tdt__named_unref(list);
	tdt__named_unref(other);
}

TEST(a_frame_is_in_its_list_once)
{
	struct tdt__named *list = NULL, *first;

	tdt__named_add(&list, "f", NULL, 0, 0);
	first = list;
	tdt__named_add(&list, "f", NULL, 0, 0);
	ck_assert_ptr_eq(list, first);
	tdt__named_unref(list);
}

TEST(lists_share_their_older_frames)
{
	struct tdt__named *list = NULL, *older;
	uintptr_t pc = tdt__named_add(&list, "f", NULL, 0, 0);

	older = tdt__named_ref(list);
	tdt__named_add(&list, "g", NULL, 0, 0);
	tdt__named_unref(list);
	ck_assert_str_eq(tdt__named_find(older, pc)->function, "f");
	tdt__named_unref(older);
	tdt__named_unref(tdt__named_ref(NULL));
}

/* --- Trees ------------------------------------------------------------------------------- */

/* The stack a, b, c (the leaf), of which `b` has no line, and a leaf at an address nearby. */
static struct tdt__stacks *stacks_of_three(void)
{
	struct tdt__modules *modules = tdt__modules_new(0);
	struct tdt__stacks *stacks = tdt__stacks_new(4);

	if (modules == NULL || stacks == NULL) {
		tdt__modules_unref(modules);
		tdt__stacks_free(stacks);
		return NULL;
	}
	stacks->modules = modules;
	stacks->n = 4;
	stacks->leaves = 2;
	stacks->frames[0] = (struct tdt__recorded){
		.frame.pc = tdt__named_add(&stacks->named, "c\x1b", "/b/x.c", 7, 8),
		.parent = 1,
		.leaves = 1
	};
	stacks->frames[1] = (struct tdt__recorded){
		.frame.pc = tdt__named_add(&stacks->named, "b", NULL, 0, 0), .parent = 2
	};
	stacks->frames[2] = (struct tdt__recorded){
		.frame.pc = tdt__named_add(&stacks->named, NULL, "/b/y.c", 9, 0),
		.parent = TDT__PARENT_TOP
	};
	stacks->frames[3] = (struct tdt__recorded){
		.frame.pc = 0x1234, .parent = 1, .leaves = 1
	};
	if (stacks->frames[0].frame.pc != 0 && stacks->frames[1].frame.pc != 0 &&
	    stacks->frames[2].frame.pc != 0)
		return stacks;
	tdt__stacks_free(stacks);
	return NULL;
}

static const struct tdt_task_info info = { .size = sizeof info, .id = 5, .polls = 1 };

TEST(a_tree_has_their_names_and_their_bytes_are_escaped)
{
	struct tdt_trace *trace = tdt__trace_of(&info, stacks_of_three());
	uint64_t pcs[4];
	enum tdt_cut cut;

	MUST(trace != NULL);
	expect_trace(trace, OPTIONS(ASCII),
		     "task 5 pending less than 10 ms, 2 leaves\n"
		     "- 0x0 at /b/y.c:9\n"
		     " `- b\n"
		     "    |- c\\x1b at /b/x.c:7:8\n"
		     "    `- 0x1234\n");
	ck_assert_uint_eq(tdt_trace_stack(trace, 1, pcs, 4, &cut), 3);
	ck_assert(pcs[0] == 0x1234 && pcs[1] == 0 && pcs[2] == 0);
	tdt_trace_free(trace);
}

static int trace_once(void *unused)
{
	struct tdt_trace *trace = tdt__trace_of(&info, stacks_of_three());
	int error = trace != NULL && tdt_trace_root(trace) != NULL ? 0 : -ENOMEM;

	tdt_trace_free(trace);
	return error;
}

TEST(every_allocation_may_fail)
{
	no_memory_each(trace_once, NULL, 8);
}
