// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/symbolize, symbolize/split, symbolize/dwo, symbolize/intern.  Symbolization
 * while memory runs out: each allocation fails in turn, in a process of its own, once alone and
 * once with all that follow.  The host must live on, get an answer or ENOMEM, and an answer later,
 * when memory is back.
 *
 * libdw 0.188 doesn't check all of its allocations, so the library makes sure of some memory before
 * each step (tdt__debuginfo_reserve).  So there are two ways to fail: as a pool does, which gives
 * what was just made sure of; and at any time, but only for those allocations of libdw that it
 * checks.
 */

#include "lib/self.h"
#include "lib/test.h"
#include "outside/fixtures/trail.h"
#include "symbolize/symbolize.h"

#if SANITIZED
SUITE_SKIP("a sanitizer has the allocator")
#else

#define RESERVE_PIECE (120 << 10) /* as in debuginfo.c */
#define RESERVE_PIECES 4

static long countdown = -1; /* to the one that fails; negative: none does */
static bool for_good;	    /* and all behind it */
static bool as_a_pool;
static size_t pieces; /* of the reserve, given in a row */
static size_t sure;   /* bytes */
static uintptr_t libdw_start;
static uintptr_t libdw_end;

/* Blocks of a page less four words are those whose failure libdw reports. */
static bool unchecked(uintptr_t caller, size_t size)
{
	return caller >= libdw_start && caller < libdw_end && size != 4096 - 4 * sizeof(void *);
}

static bool is_sure(size_t size)
{
	if (size == RESERVE_PIECE) {
		sure = 0;
		return false;
	}
	pieces = 0;
	if (size > sure)
		return false;
	sure -= size;
	return true;
}

static bool may_allocate(size_t size, void *caller)
{
	if (countdown < 0)
		return true;
	if (as_a_pool ? is_sure(size) : unchecked((uintptr_t)caller, size))
		return true;
	if (countdown > 0) {
		countdown--;
		if (size == RESERVE_PIECE && ++pieces == RESERVE_PIECES)
			sure = (size_t)RESERVE_PIECES * RESERVE_PIECE;
		return true;
	}
	if (!for_good)
		countdown = -1;
	errno = ENOMEM;
	return false;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return may_allocate(size, __builtin_return_address(0)) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t n, size_t size)
{
	return may_allocate(n * size, __builtin_return_address(0)) ? __libc_calloc(n, size) : NULL;
}

void *realloc(void *old, size_t size)
{
	return may_allocate(size, __builtin_return_address(0)) ? __libc_realloc(old, size) : NULL;
}

static uintptr_t pc;

static NOINLINE void probe(void)
{
	pc = (uintptr_t)__builtin_return_address(0);
}

INLINE void inner(void)
{
	probe();
	NO_TAIL_CALL();
}

static NOINLINE void outer(void)
{
	inner();
	NO_TAIL_CALL();
}

enum { FINE = 100, NOT_REACHED, WRONG_ERROR, NO_ANSWER_LATER, NO_NAME, NO_INLINES };

/* What a process finds in which allocation `n` fails. */
static int one_round(const struct tdt__module *module, long n)
{
	const struct tdt__symbol *symbol;
	bool reached;

	countdown = n;
	symbol = tdt__symbolize(module, pc, true);
	reached = countdown <= 0;
	countdown = -1;
	if (symbol == NULL && errno != ENOMEM)
		return WRONG_ERROR;
	symbol = tdt__symbolize(module, pc, true);
	if (symbol == NULL)
		return NO_ANSWER_LATER;
	for (size_t i = 0; i < symbol->n; i++) {
		if (symbol->place[i].function == NULL)
			return NO_NAME;
	}
	/* What fails between making sure and using it may cost the debug information for good. */
	if (symbol->n != 2 && as_a_pool)
		return NO_INLINES;
	return reached ? FINE : NOT_REACHED;
}

static int run_round(const struct tdt__module *module, long n)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(one_round(module, n));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status), "allocation %ld: killed by signal %d", n,
		      WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void fail_each(bool pool, bool all_behind)
{
	struct tdt__module libdw = self_module((uintptr_t)dlsym(RTLD_DEFAULT, "dwarf_begin"));
	struct tdt__module module;
	long n = 0;
	int result;

	outer();
	module = self_module(pc);
	libdw_start = libdw.start;
	libdw_end = libdw.end;
	as_a_pool = pool;
	for_good = all_behind;
	do {
		result = run_round(&module, n);
		ck_assert_msg(result == FINE || result == NOT_REACHED, "allocation %ld: %d", n,
			      result);
		n++;
	} while (result != NOT_REACHED);
	ck_assert_int_gt(n, 10);
	free(module.path);
	free(libdw.path);
}

CASE(nomem)

TEST(from_a_pool_each_allocation_may_fail_alone)
{
	fail_each(true, false);
}

TEST(from_a_pool_each_allocation_may_fail_with_all_behind_it)
{
	fail_each(true, true);
}

TEST(at_any_time_each_allocation_may_fail_alone)
{
	fail_each(false, false);
}

TEST(at_any_time_each_allocation_may_fail_with_all_behind_it)
{
	fail_each(false, true);
}

/* The module's file is open, and then the .dwo file can't be, if there is one. */
TEST(without_descriptors_further_look_ups_take_no_memory)
{
	const struct tdt__symbol *symbol;
	struct tdt__module module;
	struct rlimit before, none;

	outer();
	module = self_module(pc);
	ck_assert_ptr_nonnull(tdt__symbolize(&module, module.start, false));
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	symbol = tdt__symbolize(&module, pc, true);
	ck_assert_ptr_nonnull(symbol);
	ck_assert_ptr_eq(tdt__symbolize(&module, pc, true), symbol);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	symbol = tdt__symbolize(&module, pc, true);
	ck_assert_uint_eq(symbol->n, 2);
	ck_assert_ptr_eq(tdt__symbolize(&module, pc, true), symbol);
	free(module.path);
}

#endif
