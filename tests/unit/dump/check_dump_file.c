// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/dump_file, dump/path_pattern.  The name of a dump's file, and what is written to
 * which files.  tdt_dump() is wrapped: it writes a text of this test's, and fails when the test
 * wants it to.
 */

#include <config.h>

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tdt/dump.h>

#include "dump/dump_file.h"
#include "dump/path_pattern.h"
#include "lib/no_memory.h"
#include "lib/test.h"

static char folder[] = "/tmp/check_dump_file.XXXXXX", path[64], other[64];
static enum tdt_print_format format; /* that of the last dump */
static int dump_error;

int __wrap_tdt_dump(FILE *out, const struct tdt_dump_options *options);

int __wrap_tdt_dump(FILE *out, const struct tdt_dump_options *options)
{
	format = options->print->format;
	fputs("a dump\n", out);
	return fflush(out) == 0 ? dump_error : -ENOMEM;
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/dump", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	dump_error = 0;
}

static void teardown(void)
{
	unlink(path);
	rmdir(path);
	unlink(other);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* What the file has. */
static const char *content(const char *name)
{
	static char text[256];
	FILE *file = fopen(name, "re");

	ck_assert_ptr_nonnull(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

/* --- Names ----------------------------------------------------------------------------- */

START_TEST(a_path_has_the_process_and_the_time_in_place_of_p_and_t)
{
	char name[PATH_MAX];

	ck_assert(tdt__path_of_pattern(name, "/log/app.%p.tdt", 4711, 345));
	ck_assert_str_eq(name, "/log/app.4711.tdt");
	ck_assert(tdt__path_of_pattern(name, "/a/%p.%t%%.rec%", 12, 345));
	ck_assert_str_eq(name, "/a/12.345%%.rec%");
	ck_assert(tdt__path_of_pattern(name, "%p%p", 2147483647, 345));
	ck_assert_str_eq(name, "21474836472147483647");
	ck_assert(tdt__path_of_pattern(name, "%d %% %n %", 1, 345));
	ck_assert_str_eq(name, "%d %% %n %");
}
END_TEST

START_TEST(a_name_that_is_too_long_is_refused)
{
	char pattern[PATH_MAX + 1] = "", name[PATH_MAX];

	memset(pattern, 'x', PATH_MAX - 1);
	ck_assert(tdt__path_of_pattern(name, pattern, 1, 345));
	ck_assert_str_eq(name, pattern);
	memcpy(pattern + PATH_MAX - 3, "%p", 2);
	ck_assert(tdt__path_of_pattern(name, pattern, 12, 345));
	ck_assert(!tdt__path_of_pattern(name, pattern, 123, 345));
	ck_assert_int_eq(tdt__dump_to_file(pattern), getpid() < 100 ? 0 : -ENAMETOOLONG);
	memcpy(pattern + PATH_MAX - 3, "xxx", 4);
	ck_assert(!tdt__path_of_pattern(name, pattern, 1, 345));
}
END_TEST

/* --- Files ------------------------------------------------------------------------------ */

START_TEST(dumps_are_appended_to_a_file_of_the_owner)
{
	struct stat about;

	umask(0);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(stat(path, &about), 0);
	ck_assert_int_eq(about.st_mode, S_IFREG | 0600);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_str_eq(content(path), "a dump\na dump\n");
}
END_TEST

START_TEST(the_end_of_the_path_says_whether_it_is_json)
{
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(format, TDT_PRINT_TEXT);
	snprintf(other, sizeof other, "%s/x.json", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), 0);
	ck_assert_int_eq(format, TDT_PRINT_JSON);
	unlink(other);
	snprintf(other, sizeof other, "%s/json", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), 0);
	ck_assert_int_eq(format, TDT_PRINT_TEXT);
}
END_TEST

START_TEST(of_a_dump_that_fails_text_is_written_and_json_is_not)
{
	dump_error = -ENOMEM;
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_str_eq(content(path), "a dump\n");
	snprintf(other, sizeof other, "%s/x.json", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), -ENOMEM);
	ck_assert_int_eq(access(other, F_OK), -1);
}
END_TEST

START_TEST(a_symbolic_link_is_not_followed)
{
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -ELOOP);
	ck_assert_int_eq(access(other, F_OK), -1);
}
END_TEST

START_TEST(a_fifo_is_refused_and_blocks_nobody)
{
	char byte;
	int reader;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(reader, 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -EINVAL);
	ck_assert_int_eq(read(reader, &byte, 1), 0);
	close(reader);
}
END_TEST

START_TEST(other_things_than_files_are_refused)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -EISDIR);
	ck_assert_int_eq(tdt__dump_to_file("/dev/null"), -EINVAL);
	snprintf(other, sizeof other, "%s/none/dump", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), -ENOENT);
}
END_TEST

START_TEST(a_file_that_may_not_grow_is_an_error)
{
	const struct rlimit limit = { 3, 3 };

	signal(SIGXFSZ, SIG_IGN); /* the thread that dumps blocks it */
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -EFBIG);
	ck_assert_str_eq(content(path), "a d");
}
END_TEST

/* --- What it takes and leaves -------------------------------------------------------------- */

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

START_TEST(no_descriptor_stays_open)
{
	int before = descriptors();

	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(tdt__dump_to_file("/dev/null"), -EINVAL);
	ck_assert_int_eq(descriptors(), before);
}
END_TEST

static int dump_to(void *name)
{
	return tdt__dump_to_file(name);
}

START_TEST(without_memory_nothing_is_written)
{
	int error;

	snprintf(other, sizeof other, "%s/x.json", folder);
	if (!no_memory_possible())
		return;
	no_memory_begin(0);
	error = tdt__dump_to_file(other);
	no_memory_end();
	ck_assert_int_eq(error, -ENOMEM);
	ck_assert_int_eq(access(other, F_OK), -1);
	no_memory_each(dump_to, other, 2);
	ck_assert_int_eq(access(other, F_OK), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump_file");
	TCase *names = tcase_create("names"), *files = tcase_create("files");

	tcase_add_test(names, a_path_has_the_process_and_the_time_in_place_of_p_and_t);
	tcase_add_test(names, a_name_that_is_too_long_is_refused);
	suite_add_tcase(suite, names);
	tcase_add_checked_fixture(files, setup, teardown);
	tcase_add_test(files, dumps_are_appended_to_a_file_of_the_owner);
	tcase_add_test(files, the_end_of_the_path_says_whether_it_is_json);
	tcase_add_test(files, of_a_dump_that_fails_text_is_written_and_json_is_not);
	tcase_add_test(files, a_symbolic_link_is_not_followed);
	tcase_add_test(files, a_fifo_is_refused_and_blocks_nobody);
	tcase_add_test(files, other_things_than_files_are_refused);
	tcase_add_test(files, a_file_that_may_not_grow_is_an_error);
	tcase_add_test(files, no_descriptor_stays_open);
	tcase_add_test(files, without_memory_nothing_is_written);
	suite_add_tcase(suite, files);
	return test_run(suite);
}
