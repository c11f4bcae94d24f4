// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/namer, symbolize/debuginfo, base/service.  Which calls wait for names, and for
 * how long; and with which paths debug files are searched.
 */

#include <dlfcn.h>

#include "base/clock.h"
#include "base/service.h"
#include "host/loaded.h"
#include "host/start.h"
#include "lib/test.h"
#include "symbolize/debugfile.h"
#include "symbolize/debuginfo.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"
#include "unwind/unwinder.h"

#define SECOND UINT64_C(1000000000)
#define LONG (600 * SECOND)

/* --- A look-up that stands still, and threads that can't be had ------------------------------- */

static atomic_bool hold, no_threads;
static sem_t held, let_go;
static atomic_int look_ups;

const struct tdt__symbol *__real_tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
						bool return_address);
const struct tdt__symbol *__wrap_tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
						bool return_address)
{
	atomic_fetch_add(&look_ups, 1);
	if (atomic_load(&hold)) {
		sem_post(&held);
		while (sem_wait(&let_go) != 0)
			;
	}
	return __real_tdt__symbolize(module, pc, return_address);
}

int __real_tdt__service_need(void *(*run)(void *), bool *running, pthread_mutex_t *lock);
int __wrap_tdt__service_need(void *(*run)(void *), bool *running, pthread_mutex_t *lock);
int __wrap_tdt__service_need(void *(*run)(void *), bool *running, pthread_mutex_t *lock)
{
	return atomic_load(&no_threads) ? -EAGAIN : __real_tdt__service_need(run, running, lock);
}

static struct tdt__modules *table;

static void set_up(void)
{
	sem_init(&held, 0, 0);
	sem_init(&let_go, 0, 0);
	MUST(tdt__start() == 0);
	table = tdt__modules_new(0);
	pthread_mutex_lock(&tdt__unwind_lock);
	MUST(table != NULL && tdt__loaded_meet(&table, (uintptr_t)set_up) == 0);
	pthread_mutex_unlock(&tdt__unwind_lock);
}

/* The library starts its threads when it is first used. */
static void set_up_without_threads(void)
{
	atomic_store(&no_threads, true);
	set_up();
}

static void tear_down(void)
{
	tdt__modules_unref(table);
}

/* The name of a function of this test; NULL: it is not known at `deadline`. */
static const char *name_by(void (*function)(void), uint64_t deadline)
{
	uintptr_t pc = (uintptr_t)function + 1;
	struct tdt__name name = { tdt__modules_find(table, pc), pc, NULL };
	long left = tdt__namer_find(table, &name, 1, deadline);

	MUST(left == (name.symbol == NULL));
	return name.symbol != NULL && name.symbol->n > 0 ? name.symbol->place[0].function : NULL;
}

static __attribute__((noinline)) void one(void)
{
	__asm__ volatile("nop" : : : "memory");
}

static __attribute__((noinline)) void other(void)
{
	__asm__ volatile("nop\nnop" : : : "memory");
}

static void hold_namer(void)
{
	atomic_store(&hold, true);
	ck_assert_ptr_null(name_by(one, tdt__clock()));
	while (sem_wait(&held) != 0)
		;
}

static void let_namer_go(void)
{
	atomic_store(&hold, false);
	sem_post(&let_go);
}

CASE(time, .setup = set_up, .teardown = tear_down, .timeout = 120)

TEST(who_is_not_served_by_the_deadline_goes_without_and_the_next_has_it)
{
	hold_namer();
	ck_assert_ptr_null(name_by(one, tdt__clock() + SECOND / 100));
	let_namer_go();
	ck_assert_str_eq(name_by(one, tdt__clock() + LONG), "one");
}

TEST(what_is_known_is_had_while_the_namer_is_held_up)
{
	ck_assert_str_eq(name_by(other, tdt__clock() + LONG), "other");
	hold_namer();
	ck_assert_str_eq(name_by(other, 0), "other");
	let_namer_go();
}

/* Some seconds long: until then somebody may still hope. */
TEST(a_namer_that_is_stuck_is_not_waited_for)
{
	hold_namer();
	while (name_by(other, tdt__clock() + SECOND) != NULL)
		;
	nanosleep(&(struct timespec){ TDT__NAMER_TIME / SECOND + 1, 0 }, NULL);
	ck_assert_ptr_null(name_by(other, tdt__clock() + LONG));
	let_namer_go();
	while (name_by(other, tdt__clock() + LONG) == NULL)
		;
}

CASE(threads, .setup = set_up_without_threads, .teardown = tear_down)

TEST(without_a_thread_the_requester_looks_up_himself)
{
	ck_assert_str_eq(name_by(one, 0), "one");
	atomic_store(&no_threads, false);
	ck_assert_str_eq(name_by(other, tdt__clock() + LONG), "other");
}

CASE(time)

TEST(what_is_known_is_not_looked_up_again)
{
	ck_assert_str_eq(name_by(one, tdt__clock() + LONG), "one");
	ck_assert_int_eq(atomic_load(&look_ups), 1);
	ck_assert_str_eq(name_by(one, tdt__clock() + LONG), "one");
	ck_assert_int_eq(atomic_load(&look_ups), 1);
}

static void fork_and_name(void)
{
	IN_A_CHILD {
		atomic_store(&hold, false);
		MUST(strcmp(name_by(one, tdt__clock() + LONG), "one") == 0);
		MUST(strcmp(name_by(other, tdt__clock() + LONG), "other") == 0);
	}
}

CASE(forks, .setup = set_up, .teardown = tear_down)

TEST(a_child_forked_while_the_namer_is_held_up_begins_anew)
{
#if ASAN || TSAN
	puts("# not tried: a sanitizer's allocator may be locked in a child");
#else
	NOT_TRIED_IF(in_valgrind(), "valgrind counts what a child had from the namer as lost");
	ck_assert_str_eq(name_by(other, tdt__clock() + LONG), "other");
	hold_namer();
	fork_and_name();
	let_namer_go();
	ck_assert_str_eq(name_by(one, tdt__clock() + LONG), "one");
#endif
}

TEST(a_child_forked_while_the_namer_is_idle_knows_what_its_parent_knew)
{
	ck_assert_str_eq(name_by(other, tdt__clock() + LONG), "other");
	fork_and_name();
}

static atomic_int opened; /* by dlopen() */

/* libdw's calls of it come here. */
void *dlopen(const char *file, int mode)
{
	static void *(*real)(const char *file, int mode);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	if (file != NULL && strstr(file, "debuginfod") != NULL)
		atomic_fetch_add(&opened, 1);
	return real(file, mode);
}

/* libc's debug information is in another file, if anywhere: it is looked for where nothing is. */
static void name_libc(void)
{
	static char nowhere[] = "/nonexistent";
	uintptr_t pc = (uintptr_t)dlsym(RTLD_NEXT, "a64l") + 1;
	struct tdt__name name;

	tdt__debugfile_path = nowhere;
	pthread_mutex_lock(&tdt__unwind_lock);
	ck_assert_int_eq(tdt__loaded_meet(&table, pc), 0);
	pthread_mutex_unlock(&tdt__unwind_lock);
	name = (struct tdt__name){ tdt__modules_find(table, pc), pc, NULL };
	ck_assert_int_eq(tdt__namer_find(table, &name, 1, tdt__clock() + LONG), 0);
	ck_assert_str_eq(name.symbol->symbol, "a64l");
}

CASE(files, .setup = set_up, .teardown = tear_down)

TEST(the_search_for_debug_files_loads_nothing)
{
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	name_libc();
	ck_assert_int_eq(atomic_load(&opened), 0);
}

/*
 * This shows, too, that the test above can see it; where libdw is made without debuginfod it can't.
 */
TEST(debuginfod_is_asked_on_demand)
{
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	setenv("TDT_DEBUGINFOD", "1", 1);
	tdt__debugfile_by_environment();
	name_libc();
	if (atomic_load(&opened) == 0)
		puts("# not tried: libdw knows no debuginfod");
}
