// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/apart, cli/bound.  Work in a child process that goes well, fails, or crashes; and the
 * time for it.
 */

#include <dirent.h>

#include "cli/apart.h"
#include "cli/bound.h"
#include "lib/test.h"

static const char *why;
static unsigned seconds = 30;

/* Call do_apart() with stdout in a file, and put into `text` what was written there. */
static int written(apart_fn *work, const char *say_what, char *text, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO), error;

	ck_assert_ptr_nonnull(file);
	fflush(stdout);
	ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
	error = do_apart(stdout, work, (void *)(uintptr_t)say_what, seconds, &why);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
	return error;
}

static int say(FILE *out, void *arg)
{
	fputs(arg, out);
	return 0;
}

static int say_and_fail(FILE *out, void *arg)
{
	fputs(arg, out);
	return -ENOSPC;
}

static int say_and_crash(FILE *out, void *arg)
{
	fputs(arg, out);
	fflush(out);
	signal(SIGSEGV, SIG_DFL); /* a sanitizer may have a handler */
	raise(SIGSEGV);
	return 0;
}

static int loop(FILE *out, void *arg)
{
	const struct rlimit soon = { 1, 1 };

	setrlimit(RLIMIT_CPU, &soon);
	for (volatile unsigned i = 0;; i++)
		;
	return 0;
}

static int sleep_for_ever(FILE *out, void *arg)
{
	for (;;)
		pause();
	return 0;
}

static int say_and_find(FILE *out, void *arg)
{
	fputs(arg, out);
	return 1;
}

/* At the end of the largest file there may be. */
static int write_too_much(FILE *out, void *arg)
{
	signal(SIGXFSZ, SIG_DFL);
	return fseeko(out, (off_t)1 << 40, SEEK_SET) == 0 && fputc('x', out) != EOF &&
			       fflush(out) == 0
		       ? 0
		       : -errno;
}

static int take_memory(FILE *out, void *arg)
{
	void *memory = malloc((size_t)5 << 30);

	free(memory);
	return memory != NULL ? 0 : -ENOMEM;
}

CASE(apart)

TEST(what_the_work_writes_is_written)
{
	char text[64];

	ck_assert_int_eq(written(say, "well done", text, sizeof text), 0);
	ck_assert_str_eq(text, "well done");
}

TEST(work_that_fails_writes_nothing)
{
	char text[64];

	ck_assert_int_eq(written(say_and_fail, "half done", text, sizeof text), -ENOSPC);
	ck_assert_str_eq(text, "");
}

TEST(nor_does_work_that_crashes)
{
	char text[64];

	ck_assert_int_eq(written(say_and_crash, "half done", text, sizeof text), -ECANCELED);
	ck_assert_str_eq(text, "");
	ck_assert_str_eq(why, "crashed");
}

TEST(work_without_an_end_is_ended)
{
	char text[64];

	ck_assert_int_eq(written(loop, NULL, text, sizeof text), -ECANCELED);
	ck_assert_str_eq(why, "took too long");
	seconds = 1;
	ck_assert_int_eq(written(sleep_for_ever, NULL, text, sizeof text), -ECANCELED);
	ck_assert_str_eq(why, "took too long");
}

TEST(a_status_of_the_work_is_passed_on_with_what_it_wrote)
{
	char text[64];

	ck_assert_int_eq(written(say_and_find, "a deadlock", text, sizeof text), 1);
	ck_assert_str_eq(text, "a deadlock");
}

TEST(work_that_writes_without_an_end_is_ended)
{
	char text[64];

	ck_assert_int_eq(written(write_too_much, NULL, text, sizeof text), -ECANCELED);
	ck_assert_str_eq(why, "made too much of it");
}

TEST(memory_is_limited)
{
	char text[64];

	if (ASAN || TSAN || in_valgrind())
		puts("# not tried: sanitizers and valgrind have memory of their own");
	else
		ck_assert_int_eq(written(take_memory, NULL, text, sizeof text), -ENOMEM);
}

static int end_by_signal(FILE *out, void *arg)
{
	raise(SIGHUP);
	return 0;
}

TEST(a_file_that_is_not_finished_is_not_the_childs)
{
	char path[] = "/tmp/unfinished-XXXXXX", text[64];

	close(mkstemp(path));
	bound_unfinished(path);
	ck_assert_int_eq(written(end_by_signal, NULL, text, sizeof text), -ECANCELED);
	bound_unfinished(NULL);
	ck_assert_int_eq(unlink(path), 0);
}

static unsigned count_threads(void)
{
	DIR *directory = opendir("/proc/self/task");
	unsigned n = 0;

	ck_assert_ptr_nonnull(directory);
	while (readdir(directory) != NULL)
		n++;
	closedir(directory);
	return n;
}

CASE(time)

TEST(more_of_it_needs_no_more_threads)
{
	unsigned n;

	bound_time(1000);
	n = count_threads();
	for (int i = 0; i < 50; i++)
		bound_more((size_t)8 << 20);
	ck_assert_uint_lt(count_threads(), n + 10); /* an emulator may have some of its own */
	ck_assert_uint_gt(bound_left(UINT_MAX), 1000);
	ck_assert_uint_le(bound_left(UINT_MAX), 1101);
	bound_time(0);
	ck_assert_uint_eq(bound_left(7), 7);
}
