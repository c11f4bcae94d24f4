// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * main() of each suite: it registers with Check the tests that lib/test.h has put in a table, and
 * runs them.
 */

#include <config.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/must.h"
#include "lib/test.h"

/* NULL in a suite that has none. */
#pragma weak test_suite_skip
#pragma weak test_play

/* The table, between two symbols that the linker defines; NULL in a suite without tests. */
extern const struct test_entry *const __start_tdt_tests[] __attribute__((weak));
extern const struct test_entry *const __stop_tdt_tests[] __attribute__((weak));

struct test_case {
	const char *name;
	const struct test_options *options; /* of where it was opened first */
	TCase *tcase;			    /* NULL: none of its tests was added */
};

static int by_line(const void *a, const void *b)
{
	const struct test_entry *const *x = a, *const *y = b;

	return ((*x)->test.line > (*y)->test.line) - ((*x)->test.line < (*y)->test.line);
}

/* Check can't skip a test: what automake is to see stands in the name of one that does nothing. */
static void do_nothing(int round)
{
	(void)round;
}

struct skipped_test {
	TTest test;
	struct skipped_test *before;
};

static const TTest *skipped(const TTest *test, const char *why)
{
	/* Check wants them until the end.  Valgrind wants to see that they are not lost. */
	static struct skipped_test *last;
	struct skipped_test *made = malloc(sizeof *made);
	char *name;

	MUST(made != NULL);
	MUST(asprintf(&name, "%s # SKIP %s", test->name, why) > 0);
	*made = (struct skipped_test){ { name, do_nothing, test->file, test->line }, last };
	last = made;
	return &made->test;
}

/* The case that `entry` opens, again or for the first time.  Behind the last case is no name. */
static struct test_case *open_case(struct test_case *cases, const struct test_entry *entry)
{
	while (cases->name != NULL && strcmp(cases->name, entry->test.name) != 0)
		cases++;
	if (cases->name == NULL)
		*cases = (struct test_case){ entry->test.name, &entry->options, NULL };
	return cases;
}

static TCase *make_tcase(const struct test_case *test_case, Suite *suite)
{
	const struct test_options *options = test_case->options;
	TCase *tcase = tcase_create(test_case->name);

	tcase_add_checked_fixture(tcase, options->setup, options->teardown);
	if (options->timeout != 0)
		tcase_set_timeout(tcase, options->timeout);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void add_test(TCase *tcase, const struct test_options *of_case,
		     const struct test_entry *entry)
{
	const struct test_options *options = &entry->options;
	const char *(*skip)(void) = options->skip != NULL ? options->skip : of_case->skip;
	const char *why = skip != NULL ? skip() : NULL;
	int to = options->rounds != NULL ? options->rounds() : options->to;

	if (why != NULL)
		tcase_add_test(tcase, skipped(&entry->test, why));
	else
		_tcase_add_test(tcase, &entry->test, options->signal, options->status,
				options->from, to > options->from ? to : options->from + 1);
}

static bool is_test(const struct test_entry *entry, const char *name)
{
	return entry->test.fn != NULL && strcmp(entry->test.name, name) == 0;
}

/* Whether `names` has the test; the end of `names` is NULL. */
static bool is_named(const struct test_entry *entry, char *const *names)
{
	while (*names != NULL && !is_test(entry, *names))
		names++;
	return *names != NULL;
}

/* Add all tests, or those that are named, in the order of `entries`. */
static void add_tests(Suite *suite, const struct test_entry **entries, size_t n, char *const *names)
{
	static const struct test_entry unnamed = { .test.name = "tests" };
	struct test_case *cases = calloc(n + 2, sizeof *cases), *last;

	MUST(cases != NULL);
	last = open_case(cases, &unnamed);
	for (size_t i = 0; i < n; i++) {
		if (entries[i]->test.fn == NULL) {
			last = open_case(cases, entries[i]);
			continue;
		}
		if (*names != NULL && !is_named(entries[i], names))
			continue;
		if (last->tcase == NULL)
			last->tcase = make_tcase(last, suite);
		add_test(last->tcase, last->options, entries[i]);
	}
	free(cases);
}

static bool is_there(const char *name)
{
	const struct test_entry *const *entry = __start_tdt_tests;

	while (entry < __stop_tdt_tests && !is_test(*entry, name))
		entry++;
	return entry < __stop_tdt_tests;
}

int main(int argc, char **argv)
{
	size_t n = (size_t)(__stop_tdt_tests - __start_tdt_tests);
	const char *why = test_suite_skip != NULL ? test_suite_skip() : NULL;
	const struct test_entry **entries;
	Suite *suite;

	if (argc > 1 && test_play != NULL && !is_there(argv[1]))
		return test_play(argc, argv);
	if (why != NULL) {
		printf("1..0 # SKIP %s\n", why);
		return EXIT_SUCCESS;
	}
	for (char **name = argv + 1; *name != NULL; name++)
		if (!is_there(*name)) {
			fprintf(stderr, "%s: there is no test %s\n", argv[0], *name);
			return EXIT_FAILURE;
		}
	if (n == 0) {
		fprintf(stderr, "%s: there is no test\n", argv[0]);
		return EXIT_FAILURE;
	}
	entries = malloc(n * sizeof *entries);
	MUST(entries != NULL);
	memcpy(entries, __start_tdt_tests, n * sizeof *entries);
	qsort(entries, n, sizeof *entries, by_line);
	suite = suite_create(program_invocation_short_name);
	add_tests(suite, entries, n, argv + 1);
	free(entries);
	return test_run(suite);
}
