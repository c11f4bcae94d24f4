// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers dump/dump_variable.  Which values of TDT_DUMP are understood, and as what. */

#include "dump/dump_variable.h"
#include "lib/test.h"

static struct tdt__dump_choice choice;

/* Whether `value` is understood as the signal `signo`, with no path. */
static bool is_signal(const char *value, int signo)
{
	return tdt__dump_variable(value, &choice) && choice.signo == signo &&
	       choice.path[0] == '\0';
}

CASE(values)

TEST(a_signal_may_be_named_with_sig_and_without)
{
	ck_assert(is_signal("USR1", SIGUSR1));
	ck_assert(is_signal("SIGUSR1", SIGUSR1));
	ck_assert(is_signal("HUP", SIGHUP));
	ck_assert(is_signal("SIGWINCH", SIGWINCH));
	ck_assert(is_signal("SYS", SIGSYS));
}

TEST(a_signal_may_be_a_number)
{
	ck_assert(is_signal("10", 10));
	ck_assert(is_signal("012", 12));
	ck_assert(is_signal("64", 64));
}

TEST(real_time_signals_count_from_both_ends)
{
	char last[32];

	ck_assert(is_signal("RTMIN", SIGRTMIN));
	ck_assert(is_signal("SIGRTMIN+3", SIGRTMIN + 3));
	ck_assert(is_signal("RTMAX", SIGRTMAX));
	ck_assert(is_signal("SIGRTMAX-14", SIGRTMAX - 14));
	snprintf(last, sizeof last, "RTMIN+%d", SIGRTMAX - SIGRTMIN);
	ck_assert(is_signal(last, SIGRTMAX));
	snprintf(last, sizeof last, "RTMIN+%d", SIGRTMAX - SIGRTMIN + 1);
	ck_assert(!tdt__dump_variable(last, &choice));
}

TEST(everything_behind_the_first_colon_is_the_path)
{
	ck_assert(tdt__dump_variable("USR2:/var/log/a:b.%p.json", &choice));
	ck_assert_int_eq(choice.signo, SIGUSR2);
	ck_assert_str_eq(choice.path, "/var/log/a:b.%p.json");
	ck_assert(is_signal("USR2:", SIGUSR2));
}

TEST(other_values_are_not_understood)
{
	static const char *const wrong[] = {
		"",	      ":",	  ":/tmp/x", "usr1",   "USR3",	    "SIG",
		"SIGSIGUSR1", "USR1 ",	  " USR1",   "0",      "-10",	    "+10",
		"10x",	      "1000",	  "RTMIN-",  "RTMIN+", "RTMIN-1",   "RTMAX+1",
		"RTMAX-x",    "RTMIN+1x", "RTMINUS", "SIG10",  "USR1,USR2",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(!tdt__dump_variable(wrong[i], &choice), "%s", wrong[i]);
}

TEST(a_path_is_shorter_than_path_max)
{
	char value[PATH_MAX + 8] = "USR1:";

	memset(value + 5, 'x', PATH_MAX - 1);
	ck_assert(tdt__dump_variable(value, &choice));
	value[5 + PATH_MAX - 1] = 'x';
	ck_assert(!tdt__dump_variable(value, &choice));
}
