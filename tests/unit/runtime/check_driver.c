// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/driver.  The driver's thread: how it starts and stops, and what it leaves alone.
 */

#include "lib/driver_thread.h"
#include "lib/no_threads.h"
#include "lib/test.h"
#include "runtime/driver.h"

static void end(struct tdt__driver *driver)
{
	tdt__driver_stop(driver);
	tdt__driver_unref(driver);
}

/* How many descriptors are in use below `end`. */
static int descriptors_below(int end)
{
	int n = 0;

	for (int fd = 0; fd < end; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int descriptors(void)
{
	return descriptors_below(256);
}

CASE(driver)

TEST(it_starts_and_stops)
{
	struct tdt__driver *drivers[10];
	int before = descriptors();

	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(tdt__driver_new(&drivers[i], NULL), 0);
	for (int i = 0; i < 10; i++)
		end(drivers[i]);
	ck_assert_int_eq(descriptors(), before);
}

TEST(references_outlive_its_thread)
{
	struct tdt__driver *driver, *ref;

	ck_assert_int_eq(tdt__driver_new(&driver, NULL), 0);
	ref = tdt__driver_ref(driver);
	ck_assert_ptr_eq(ref, driver);
	end(driver);
	tdt__driver_unref(ref);
	tdt__driver_unref(NULL);
}

TEST(its_thread_handles_no_signals_but_its_own_faults)
{
	static const int faults[] = { SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	struct tdt__driver *driver;
	unsigned long long blocked;
	char value[64];
	sigset_t before, after;

	sigemptyset(&before);
	sigaddset(&before, SIGHUP);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ck_assert_int_eq(tdt__driver_new(&driver, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int signal = 1; signal < 32; signal++)
		ck_assert_int_eq(sigismember(&after, signal), signal == SIGHUP);
	driver_thread_status("SigBlk:", value, sizeof(value));
	blocked = strtoull(value, NULL, 16);
	for (int signal = 1; signal < 32; signal++) {
		bool fault = false;

		for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
			fault |= signal == faults[i];
		if (signal != SIGKILL && signal != SIGSTOP)
			ck_assert_int_eq(blocked >> (signal - 1) & 1, !fault);
	}
	end(driver);
}

/*
 * It may have to wait, too, before it comes to that: for whatever else goes on in the process and
 * the machine.
 */
TEST(with_nothing_to_do_it_sleeps)
{
	struct tdt__driver *driver;
	long switches;

	ck_assert_int_eq(tdt__driver_new(&driver, NULL), 0);
	do {
		switches = driver_thread_asleep(0);
		nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	} while (driver_thread_switches() != switches);
	end(driver);
}

/* However few there are: it needs three. */
TEST(without_descriptors_there_is_none)
{
	struct tdt__driver *driver;
	int left = 0;

	for (int limit = 3; left < 6; limit++) {
		struct rlimit lowered;
		int before = descriptors(), error;

		getrlimit(RLIMIT_NOFILE, &lowered);
		lowered.rlim_cur = (rlim_t)limit;
		left = limit - descriptors_below(limit);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lowered), 0);
		error = tdt__driver_new(&driver, NULL);
		if (error == 0)
			end(driver);
		else
			ck_assert_int_eq(descriptors(), before);
		ck_assert_int_eq(error, left < 3 ? -EMFILE : 0);
	}
}

TEST(without_a_thread_there_is_none)
{
	struct tdt__driver *driver;
	int before = descriptors();

	threads_left = 0;
	ck_assert_int_eq(tdt__driver_new(&driver, NULL), -EAGAIN);
	threads_left = -1;
	ck_assert_int_eq(descriptors(), before);
}

TEST(without_memory_there_is_none)
{
	struct tdt__driver *driver;
	int error;

	NEEDS_FAILING_MEMORY();
	no_memory_begin(0);
	error = tdt__driver_new(&driver, NULL);
	no_memory_end();
	ck_assert_int_eq(error, -ENOMEM);
}
