// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/dump_file, dump/path_pattern.  The name of a dump's file, and what is written to
 * which files.  tdt__dump() is wrapped: it writes a text of this test's, and fails when the test
 * wants it to.
 */

#include <dirent.h>

#include "dump/dump_file.h"
#include "dump/path_pattern.h"
#include "lib/folder.h"
#include "lib/test.h"

static char folder[FOLDER_SIZE], path[IN_FOLDER_SIZE], other[IN_FOLDER_SIZE];
static enum tdt_print_format format; /* that of the last dump */
static int dump_error;

int __wrap_tdt__dump(FILE *out, const struct tdt_dump_options *options, bool only_unseen)
{
	format = options->print->format;
	fputs("a dump\n", out);
	if (fflush(out) != 0)
		return -ENOMEM;
	return only_unseen ? dump_error : -EINVAL;
}

static void setup(void)
{
	ck_assert(make_folder(folder));
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

CASE(names)

TEST(a_path_has_the_process_and_the_time_in_place_of_p_and_t)
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

TEST(a_name_that_is_too_long_is_refused)
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

CASE(files, .setup = setup, .teardown = teardown)

TEST(dumps_are_appended_to_a_file_of_the_owner)
{
	struct stat about;

	umask(0);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(stat(path, &about), 0);
	ck_assert_int_eq(about.st_mode, S_IFREG | 0600);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_str_eq(content(path), "a dump\na dump\n");
}

TEST(the_end_of_the_path_says_whether_it_is_json)
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

TEST(of_a_dump_that_fails_text_is_written_and_json_is_not)
{
	dump_error = -ENOMEM;
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_str_eq(content(path), "a dump\n");
	snprintf(other, sizeof other, "%s/x.json", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), -ENOMEM);
	ck_assert_int_eq(access(other, F_OK), -1);
}

TEST(a_symbolic_link_is_not_followed)
{
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -ELOOP);
	ck_assert_int_eq(access(other, F_OK), -1);
}

/* Put a file there that another user may have made. */
static void put_file(mode_t mode, uid_t owner)
{
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(fchmod(file, mode), 0);
	ck_assert_int_eq(fchown(file, owner, (gid_t)-1), 0);
	close(file);
}

static const char *is_not_root(void)
{
	return geteuid() != 0 ? "only root can give a file away" : NULL;
}

TEST(a_file_of_another_user_is_not_appended_to, .skip = is_not_root)
{
	put_file(0644, 65534);
	ck_assert_int_eq(tdt__dump_to_file(path), -EPERM);
	ck_assert_str_eq(content(path), "");
}

TEST(one_of_root_is, .skip = is_not_root)
{
	put_file(0660, 0);
	ck_assert_int_eq(chown(path, 0, 65534), 0);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(setegid(65534), 0);
	ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_str_eq(content(path), "a dump\n");
}

TEST(a_file_that_all_may_write_to_is_not_appended_to)
{
	put_file(0666, geteuid());
	ck_assert_int_eq(tdt__dump_to_file(path), -EPERM);
	ck_assert_str_eq(content(path), "");
	ck_assert_int_eq(chmod(path, 0664), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), 0);
}

/* The other name may be that of any file of the user's. */
TEST(a_file_with_another_name_is_not_appended_to)
{
	put_file(0600, geteuid());
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -EPERM);
	ck_assert_str_eq(content(path), "");
}

TEST(a_fifo_is_refused_and_blocks_nobody)
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

TEST(other_things_than_files_are_refused)
{
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(tdt__dump_to_file(path), -EISDIR);
	ck_assert_int_eq(tdt__dump_to_file("/dev/null"), -EINVAL);
	snprintf(other, sizeof other, "%s/none/dump", folder);
	ck_assert_int_eq(tdt__dump_to_file(other), -ENOENT);
}

TEST(a_file_that_may_not_grow_is_an_error)
{
	const struct rlimit limit = { 3, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
	int error;

	/* Check writes to a file of its own with each assertion. */
	setrlimit(RLIMIT_FSIZE, &limit);
	error = tdt__dump_to_file(path);
	setrlimit(RLIMIT_FSIZE, &none);
	ck_assert_int_eq(error, -EFBIG);
	ck_assert_str_eq(content(path), "a d");
}

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

TEST(no_descriptor_stays_open)
{
	int before = descriptors();

	ck_assert_int_eq(tdt__dump_to_file(path), 0);
	ck_assert_int_eq(tdt__dump_to_file("/dev/null"), -EINVAL);
	ck_assert_int_eq(descriptors(), before);
}

static int dump_to(void *name)
{
	return tdt__dump_to_file(name);
}

TEST(without_memory_nothing_is_written)
{
	int error;

	snprintf(other, sizeof other, "%s/x.json", folder);
	NEEDS_FAILING_MEMORY();
	no_memory_begin(0);
	error = tdt__dump_to_file(other);
	no_memory_end();
	ck_assert_int_eq(error, -ENOMEM);
	ck_assert_int_eq(access(other, F_OK), -1);
	no_memory_each(dump_to, other, 2);
	ck_assert_int_eq(access(other, F_OK), 0);
}
