// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/perfetto_names.
 * The frames of an address, by a table of modules.
 */

#include "base/clock.h"
#include "host/loaded.h"
#include "lib/test.h"
#include "symbolize/modules.h"
#include "tree-printer/perfetto.h"
#include "unwind/unwinder.h"

static struct tdt__perfetto_modules names;
static uintptr_t inlined_pc, plain_pc;

static inline __attribute__((always_inline)) uintptr_t here(void)
{
	uintptr_t pc;

#if defined(__x86_64__)
	__asm__ volatile("lea 1f(%%rip), %0\n1: nop" : "=r"(pc));
#else
	__asm__ volatile("adr %0, 1f\n1: nop" : "=r"(pc));
#endif
	return pc + 1;
}

static __attribute__((noinline)) void plain(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) void find_addresses(void)
{
	inlined_pc = here();
	plain_pc = (uintptr_t)plain + 1;
}

static void set_up(void)
{
	find_addresses();
	names.modules = tdt__modules_new(0);
	names.deadline = tdt__clock() + 60 * (uint64_t)TDT__SECOND;
	MUST(names.modules != NULL);
	pthread_mutex_lock(&tdt__unwind_lock);
	MUST(tdt__loaded_meet(&names.modules, plain_pc) == 0);
	pthread_mutex_unlock(&tdt__unwind_lock);
}

static void tear_down(void)
{
	tdt__modules_unref(names.modules);
}

CASE(names, .setup = set_up, .teardown = tear_down)

TEST(a_function_has_its_name_and_place)
{
	struct tdt_frame frames[4];

	ck_assert_uint_eq(tdt__perfetto_name(&names, plain_pc, frames, 4), 1);
	ck_assert_str_eq(frames[0].function, "plain");
	ck_assert_ptr_nonnull(strstr(frames[0].file, "check_perfetto_names.c"));
	ck_assert_uint_gt(frames[0].line, 0);
	ck_assert_ptr_nonnull(strstr(frames[0].module, "check_perfetto_names"));
	ck_assert_str_eq(frames[0].symbol, "plain");
	ck_assert_uint_eq(frames[0].symbol_offset, 1);
}

TEST(an_inlined_function_comes_before_the_one_that_contains_it)
{
	struct tdt_frame frames[4];

	ck_assert_uint_eq(tdt__perfetto_name(&names, inlined_pc, frames, 4), 2);
	ck_assert_str_eq(frames[0].function, "here");
	ck_assert_ptr_null(frames[0].symbol);
	ck_assert_str_eq(frames[1].function, "find_addresses");
	ck_assert_str_eq(frames[1].symbol, "find_addresses");
	ck_assert_uint_eq(tdt__perfetto_name(&names, inlined_pc, frames, 1), 1);
	ck_assert_str_eq(frames[0].function, "here");
	ck_assert_uint_eq(tdt__perfetto_name(&names, inlined_pc, frames, 0), 0);
}

TEST(of_a_function_without_a_name_the_module_is_known)
{
	struct tdt_frame frames[4];
	char *path = names.modules->module[0].path;

	path[0] = path[0] == '/' ? '.' : 'x'; /* no such file */
	names.modules->module[0].mapped = NULL;
	memset(names.modules->module[0].build_id, 'e', 8);
	ck_assert_uint_eq(tdt__perfetto_name(&names, plain_pc + 1, frames, 4), 1);
	ck_assert_ptr_null(frames[0].function);
	ck_assert_ptr_nonnull(frames[0].module);
	ck_assert_uint_eq(frames[0].module_offset,
			  plain_pc + 1 - names.modules->module[0].bias);
}

TEST(an_address_outside_of_all_modules_has_no_frames)
{
	struct tdt_frame frames[4];

	ck_assert_uint_eq(tdt__perfetto_name(&names, 16, frames, 4), 0);
}
