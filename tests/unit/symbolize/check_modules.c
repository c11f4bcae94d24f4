// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/modules, host/lasting, host/unloads.  Which modules are known, and which of them
 * last; and how many were unloaded, also while the loader's list can't be had.
 */

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "host/loaded.h"
#include "host/start.h"
#include "host/unloads.h"
#include "lib/test.h"
#include "symbolize/modules.h"

#define SECOND UINT64_C(1000000000)

static struct tdt__modules *table;

static void set_up(void)
{
	table = tdt__modules_new(0);
	ck_assert_ptr_nonnull(table);
}

static void tear_down(void)
{
	tdt__modules_unref(table);
}

static const struct tdt__module *meet(const void *address)
{
	ck_assert_int_eq(tdt__loaded_meet(&table, (uintptr_t)address), 0);
	return tdt__modules_find(table, (uintptr_t)address);
}

static void *plugin_open(const char *name)
{
	char path[4096];
	void *plugin;

	snprintf(path, sizeof path, "%s/plugin_%s.so", PLUGINS, name);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(plugin != NULL, "%s", dlerror());
	return plugin;
}

CASE(modules, .setup = set_up, .teardown = tear_down)

TEST(what_the_process_began_with_lasts)
{
	ck_assert(meet((const void *)(uintptr_t)set_up)->lasting);
	ck_assert(
	    meet((const void *)(uintptr_t)dlopen)->lasting); /* libc, which the executable needs */
	if (getauxval(AT_SYSINFO_EHDR) != 0) /* valgrind hides it */
		ck_assert(
		    meet((const void *)getauxval(AT_SYSINFO_EHDR))->lasting); /* the kernel's */
	ck_assert(meet((const void *)getauxval(AT_BASE))->lasting);         /* the loader */
	ck_assert(meet(dlsym(RTLD_DEFAULT, "adler32"))->lasting); /* libz, which only libdw needs */
	ck_assert(table->lasting);
}

TEST(a_plugin_does_not_last)
{
	void *plugin = plugin_open("a");
	const struct tdt__module *module = meet(dlsym(plugin, "plugin_poll"));

	ck_assert(!module->lasting);
	ck_assert(!table->lasting);
	ck_assert_ptr_nonnull(strstr(tdt__module_path(module), "/plugin_a.so"));
	ck_assert_str_ne(module->build_id, "");
	dlclose(plugin);
}

TEST(the_executable_can_be_opened_when_it_was_deleted)
{
	void *plugin = plugin_open("a");

	ck_assert_str_eq(meet((const void *)(uintptr_t)set_up)->mapped, "/proc/self/exe");
	ck_assert_ptr_null(meet(dlsym(plugin, "plugin_poll"))->mapped);
	dlclose(plugin);
}

TEST(nothing_is_known_of_what_is_no_module)
{
	int local;

	ck_assert_int_eq(tdt__loaded_meet(&table, (uintptr_t)&local), -ENOENT);
	ck_assert_int_eq(tdt__loaded_meet(&table, 1), -ENOENT);
	ck_assert_int_eq(tdt__loaded_meet(&table, UINTPTR_MAX), -ENOENT);
	ck_assert_uint_eq(table->n, 0);
	ck_assert(!tdt__is_loaded((uintptr_t)&local));
}

TEST(a_module_in_the_place_of_another_displaces_all_that_may_go)
{
	void *plugin = plugin_open("a"), *stays = plugin_open("b");
	uintptr_t poll = (uintptr_t)dlsym(plugin, "plugin_poll"), now;
	const struct tdt__module *old;

	meet((const void *)(uintptr_t)set_up);
	meet(dlsym(stays, "plugin_poll"));
	old = meet((const void *)poll);
	ck_assert_uint_eq(table->n, 3);
	ck_assert_ptr_nonnull(old);
	dlclose(plugin);
	ck_assert_int_eq(tdt__loaded_meet(&table, poll), -ENOENT);
	plugin = plugin_open("b"); /* one more handle of the one that stays */
	dlclose(plugin);
	plugin = plugin_open("a");
	now = (uintptr_t)dlsym(plugin, "plugin_poll");
	if (now == poll) /* and the loader's record may be at another place, or not */
		ck_assert_ptr_nonnull(meet((const void *)now));
	ck_assert(tdt__modules_find(table, (uintptr_t)set_up)->lasting);
	dlclose(plugin);
	dlclose(stays);
}

TEST(what_lasts_is_known_after_an_unload)
{
	void *plugin = plugin_open("a");
	uintptr_t poll = (uintptr_t)dlsym(plugin, "plugin_poll");

	meet((const void *)poll);
	meet((const void *)(uintptr_t)set_up);
	dlclose(plugin);
	ck_assert(tdt__modules_renew(&table, 1));
	ck_assert_uint_eq(table->unloads, 1);
	ck_assert(table->lasting);
	ck_assert_ptr_null(tdt__modules_find(table, poll));
	ck_assert_ptr_nonnull(tdt__modules_find(table, (uintptr_t)set_up));
}

/* --- The number of unloads ---------------------------------------------------------- */

static uint64_t unloads_by(uint64_t ns)
{
	uint64_t unloads = UINT64_MAX;

	ck_assert(tdt__unloads_now(&unloads, tdt__clock() + ns));
	return unloads;
}

CASE(unloads)

TEST(every_unload_is_counted)
{
	uint64_t before = unloads_by(30 * SECOND);

	dlclose(plugin_open("a"));
	ck_assert_uint_eq(unloads_by(30 * SECOND), before + 1);
	dlclose(plugin_open("a"));
	dlclose(plugin_open("b"));
	ck_assert_uint_eq(unloads_by(30 * SECOND), before + 3);
}

/* A thread that has the loader's list, until it is let go. */
static sem_t in_list, leave_list;

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	sem_post(&in_list);
	while (sem_wait(&leave_list) != 0)
		;
	return 1;
}

static void *hold_list(void *nothing)
{
	dl_iterate_phdr(stay, NULL);
	return nothing;
}

static pthread_t take_list(void)
{
	pthread_t thread;

	sem_init(&in_list, 0, 0);
	sem_init(&leave_list, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, hold_list, NULL), 0);
	while (sem_wait(&in_list) != 0)
		;
	return thread;
}

static void give_list(pthread_t thread)
{
	sem_post(&leave_list);
	pthread_join(thread, NULL);
}

/*
 * A reporter that is not run, as on a busy machine: woken, it goes on only when `starved` is false.
 */
static atomic_bool starved;
static int waits, fed_at_wait; /* 0: never */

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int error = __real_pthread_cond_wait(cond, mutex);

	pthread_mutex_unlock(mutex);
	while (atomic_load(&starved))
		usleep(1000);
	pthread_mutex_lock(mutex);
	return error;
}

static bool is_past(const struct timespec *until)
{
	return tdt__clock() >= (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;
}

/*
 * The requester's waits.  When the reporter is run, the requester waits for as long as that takes.
 * In the first wait the whole process may be stopped for a while.
 */
static useconds_t stopped_us;
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	if (waits++ == 0)
		usleep(stopped_us);
	if (fed_at_wait == 0 || waits < fed_at_wait || is_past(until))
		return __real_pthread_cond_clockwait(cond, mutex, clock, until);
	atomic_store(&starved, false);
	return __real_pthread_cond_wait(cond, mutex);
}

TEST(a_reporter_that_waits_for_a_processor_is_waited_for)
{
	struct tdt__unloads count = { .deadline = 0 };

	unloads_by(30 * SECOND);
	atomic_store(&starved, true);
	waits = 0;
	fed_at_wait = 3; /* the time was up at the first one */
	ck_assert(tdt__unloads_count(&count));
}

TEST(a_reporter_that_was_stopped_with_its_requester_is_waited_for)
{
	struct tdt__unloads count = { .deadline = 0 };

	unloads_by(30 * SECOND);
	atomic_store(&starved, true);
	waits = 0;
	fed_at_wait = 2;
	stopped_us = 500000; /* longer than a requester waits in all */
	ck_assert(tdt__unloads_count(&count));
}

TEST(a_reporter_that_never_runs_is_given_up)
{
	struct tdt__unloads count = { .deadline = 0 };

	unloads_by(30 * SECOND);
	atomic_store(&starved, true);
	ck_assert(!tdt__unloads_count(&count));
	atomic_store(&starved, false);
}

TEST(nobody_waits_for_the_loader_longer_than_he_wants)
{
	struct tdt__unloads count = { .deadline = 0 };
	pthread_t holder = take_list();
	uint64_t unloads;

	ck_assert(!tdt__unloads_now(&unloads, tdt__clock() + SECOND / 100));
	ck_assert(!tdt__unloads_count(&count));
	/* Until the list is free, nobody waits at all: this would last for a week. */
	ck_assert(!tdt__unloads_now(&unloads, tdt__clock() + 7 * 86400 * SECOND));
	give_list(holder);
	while (!tdt__unloads_now(&unloads, tdt__clock() + SECOND))
		;
}

TEST(a_requester_who_has_the_list_himself_gets_no_answer)
{
	struct tdt__unloads count = { .deadline = 0 };
	pthread_t holder = take_list();

	ck_assert(!tdt__unloads_count(&count));
	ck_assert(!tdt__unloads_count(&count)); /* counted once */
	give_list(holder);
}

/*
 * The child has the number, from a reporter of its own; unless its parent's was in the list when it
 * was forked.
 */
TEST(a_child_has_a_reporter_of_its_own)
{

	ck_assert_int_eq(tdt__start(), 0);
	dlclose(plugin_open("a"));
	unloads_by(30 * SECOND);
	IN_A_CHILD {
		uint64_t unloads;

		dlclose(plugin_open("b"));
		MUST(tdt__unloads_now(&unloads, tdt__clock() + 30 * SECOND) && unloads == 2);
	}
}
