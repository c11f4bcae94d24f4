// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/options, cli/option_table.  How command lines are read, whatever the command. */

#include <getopt.h>
#include <stdarg.h>

#include "cli/options.h"
#include "lib/test.h"

static struct options options;
static char **rest;
static int n_rest;

#define WENT_ON 99

static int status_of_child(enum command_number command)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		optind = 0;
		options_read(command, &options, &n_rest, &rest);
		_exit(WENT_ON);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status) == WENT_ON ? PROGRAM_GOES_ON : WEXITSTATUS(status);
}

/* Read the options of a command.  Returns PROGRAM_GOES_ON, or the exit status if that ends it. */
static int reads(enum command_number command, ...)
{
	static char *arguments[16];
	va_list list;
	int n = 0, status;

	arguments[n++] = (char *)(uintptr_t)"tdt";
	va_start(list, command);
	while ((arguments[n] = va_arg(list, char *)) != NULL)
		n++;
	va_end(list);
	options = (struct options){ .max_requests = 1000, .task = TASK_NOT_GIVEN };
	rest = arguments;
	n_rest = n;
	status = status_of_child(command);
	if (status == PROGRAM_GOES_ON) {
		optind = 0; /* begin anew */
		options_read(command, &options, &n_rest, &rest);
	}
	return status;
}

/* Each option has one meaning in a command. */
TEST(no_command_has_two_options_of_one_name_or_letter)
{
	for (size_t i = 0; i < n_option_rows; i++)
		for (size_t k = 0; k < i; k++) {
			const struct option_row *a = &option_rows[i], *b = &option_rows[k];

			if ((a->commands & b->commands) == 0)
				continue;
			ck_assert_str_ne(a->name, b->name);
			ck_assert(a->letter == 0 || a->letter != b->letter);
		}
}

TEST(each_option_says_what_it_does)
{
	for (size_t i = 0; i < n_option_rows; i++) {
		ck_assert_uint_ne(option_rows[i].commands, 0);
		ck_assert_uint_gt(strlen(option_rows[i].help), 5);
	}
	for (int i = 0; i < COMMANDS_OF_TDT; i++)
		ck_assert(commands[i].brief != NULL && commands[i].word != NULL);
}

TEST(values_of_all_kinds_are_read)
{
	ck_assert_int_eq(reads(COMMAND_PS, "--longer=1.5s", "--state=polling,waiting", "--sort=age",
			       "--reverse", "-p", "app", "7", NULL),
			 PROGRAM_GOES_ON);
	ck_assert_uint_eq(options.longer, 1500000000);
	ck_assert_uint_eq(options.states, 1u << 0 | 1u << 2);
	ck_assert_int_eq(options.key, BY_AGE);
	ck_assert(options.reverse && !options.tree);
	ck_assert_str_eq(options.target, "app");
	ck_assert_int_eq(n_rest, 1);
	ck_assert_str_eq(rest[0], "7");
}

TEST(an_option_of_another_command_is_none)
{
	ck_assert_int_eq(reads(COMMAND_TOP, "--reverse", NULL), EXIT_BAD_USAGE);
	ck_assert_int_eq(reads(COMMAND_PS, "-n", "3", NULL), EXIT_BAD_USAGE);
}

TEST(values_have_bounds)
{
	ck_assert_int_eq(reads(COMMAND_PROFILE, "-F", "1000", NULL), PROGRAM_GOES_ON);
	ck_assert_int_eq(reads(COMMAND_PROFILE, "-F", "1001", NULL), EXIT_BAD_USAGE);
	ck_assert_int_eq(reads(COMMAND_PROFILE, "-F", "0", NULL), EXIT_BAD_USAGE);
	ck_assert_int_eq(reads(COMMAND_PROFILE, "-d", "25h", NULL), EXIT_BAD_USAGE);
	ck_assert_int_eq(reads(COMMAND_TOP, "-d", "99ms", NULL), EXIT_BAD_USAGE);
	ck_assert_int_eq(reads(COMMAND_TOP, "-d", "100ms", NULL), PROGRAM_GOES_ON);
	ck_assert_int_eq(reads(COMMAND_TOP, "-d", "5", NULL), EXIT_BAD_USAGE);
}

TEST(seconds_need_no_unit_where_they_are_asked_for)
{
	ck_assert_int_eq(reads(COMMAND_PRINT, "--since=0.25", NULL), PROGRAM_GOES_ON);
	ck_assert_uint_eq(options.since, 250000000);
	ck_assert_int_eq(reads(COMMAND_PRINT, "--since=0", NULL), EXIT_BAD_USAGE);
}

TEST(without_requests_there_are_none)
{
	ck_assert_int_eq(reads(COMMAND_BT, "--no-request", "--max-requests=5", NULL),
			 PROGRAM_GOES_ON);
	ck_assert_uint_eq(options.max_requests, 0);
}

TEST(a_limit_of_time_is_a_check)
{
	ck_assert_int_eq(reads(COMMAND_PS, NULL), PROGRAM_GOES_ON);
	ck_assert(!options.check.on);
	ck_assert_int_eq(reads(COMMAND_PS, "--polling-longer=1s", NULL), PROGRAM_GOES_ON);
	ck_assert(options.check.on);
}
