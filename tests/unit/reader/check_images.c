// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/images, base/regular_file.  Which files are opened if the target says where they
 * lie: the target is this process, described as a core file is, and its program is said to lie
 * elsewhere.
 */

#include <sys/inotify.h>

#include "base/regular_file.h"
#include "lib/folder.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/core.h"
#include "reader/images.h"
#include "symbolize/modules.h"

static struct tdt__target target;
static struct tdt__images images;
static struct tdt__places places;
static struct tdt__core no_core;
static char directory[FOLDER_SIZE];
static char path[PATH_MAX];

/* The path of a file in the directory. */
static const char *in_directory(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static void make_directory(void)
{
	ck_assert(make_folder(directory));
}

static void remove_directory(void)
{
	static const char *const names[] = { "program", "link", "out", "fifo", "large" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unlink(in_directory(names[i]));
	rmdir(directory);
}

/* Whether the file of this program is opened if the target says that it lies at `where`. */
static bool opens(const char *where)
{
	struct tdt__trouble trouble;
	struct tdt__module *module;
	bool opened;

	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
	ck_assert_int_eq(tdt__images_init(&images, &target, &places), 0);
	module = (struct tdt__module *)(uintptr_t)tdt__modules_find(images.table,
								    (uintptr_t)&images);
	ck_assert_ptr_nonnull(module);
	free(module->path);
	module->path = strdup(where);
	ck_assert_ptr_nonnull(module->path);
	target.core = &no_core;
	opened = tdt__images_open(&images, module->start) >= 0;
	target.core = NULL;
	/* What is mapped to be read, or at least the debug file is searched for. */
	ck_assert_ptr_nonnull(module->mapped);
	ck_assert_int_eq(module->mapped[0] == '\0', !opened);
	tdt__images_fini(&images);
	tdt__target_close(&target);
	return opened;
}

static void copy_program(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0600);
	static char part[1 << 16];
	ssize_t n;

	while ((n = read(in, part, sizeof part)) > 0)
		ck_assert_int_eq(write(out, part, (size_t)n), n);
	ck_assert_int_eq(n, 0);
	close(in);
	close(out);
}

/* Valgrind 3.19 does not know openat2(2). */
static bool is_possible(void)
{
	if (in_valgrind())
		puts("# not tried: valgrind refuses openat2(2)");
	return !in_valgrind();
}

CASE(table)

/* Linkers that put segments one behind the other map the first page of a small file twice. */
TEST(a_segment_that_shares_the_first_page_of_the_file_begins_no_module)
{
	int file = open("/proc/self/exe", O_RDONLY);
	char *at = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct tdt__module *module;
	struct tdt__trouble trouble;

	for (size_t page = 0; page < 8192; page += 4096)
		ck_assert_ptr_eq(mmap(at + page, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0),
				 at + page);
	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
	ck_assert_int_eq(tdt__images_init(&images, &target, &places), 0);
	module = tdt__modules_find(images.table, (uintptr_t)at + 4096);
	ck_assert_ptr_nonnull(module);
	ck_assert_uint_eq(module->start, (uintptr_t)at);
	tdt__images_fini(&images);
	tdt__target_close(&target);
	munmap(at, 8192);
	close(file);
}

CASE(files, .setup = make_directory, .teardown = remove_directory)

TEST(a_copy_of_the_program_is_opened)
{
	if (!is_possible())
		return;
	copy_program(in_directory("program"));
	ck_assert(opens(in_directory("program")));
}

/* inotify reports an open file, but not one that is opened with O_PATH. */
TEST(what_is_no_regular_file_is_not_even_opened)
{
	int opened = inotify_init1(IN_NONBLOCK);
	char event[512];

	ck_assert_int_eq(mkfifo(in_directory("fifo"), 0600), 0);
	ck_assert_int_ge(inotify_add_watch(opened, path, IN_OPEN), 0);
	ck_assert(!opens(in_directory("fifo")));
	ck_assert_int_lt(read(opened, event, sizeof event), 0);
	ck_assert(!opens("/dev/zero"));
	ck_assert(!opens(directory));
	close(open(in_directory("fifo"), O_RDONLY | O_NONBLOCK));
	ck_assert_int_gt(read(opened, event, sizeof event), 0); /* so it would have been noticed */
	close(opened);
}

/* What they contain is made when it is read, by a device maybe, or is gone afterwards. */
TEST(a_file_of_the_kernels_own_is_no_regular_file)
{
	static const char *const files[] = { "/proc/self/status", "/proc/kmsg",
					     "/sys/kernel/uevent_seqnum" };

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (access(files[i], F_OK) == 0)
			ck_assert_int_eq(tdt__regular_open(AT_FDCWD, files[i]), -EINVAL);
}

TEST(another_file_is_not_taken)
{
	int file = open(in_directory("large"), O_WRONLY | O_CREAT, 0600);

	ck_assert(!opens("/proc/self/status"));
	ck_assert(!opens("/bin/sh"));
	ck_assert(!opens(in_directory("nothing")));
	if (ftruncate(file, INT64_MAX) != 0) /* as a file system permits */
		ck_assert_int_eq(ftruncate(file, (off_t)1 << 42), 0);
	ck_assert(!opens(in_directory("large")));
	close(file);
}

TEST(a_link_leads_nowhere_out_of_the_root)
{
	char out[PATH_MAX];

	if (!is_possible())
		return;
	places.sysroot = directory;
	copy_program(in_directory("program"));
	ck_assert(opens("/program"));
	ck_assert(opens("/../../program"));
	ck_assert_int_eq(symlink("/program", in_directory("link")), 0);
	ck_assert(opens("/link"));
	ck_assert_int_gt(readlink("/proc/self/exe", out, sizeof out - 1), 0);
	ck_assert_int_eq(symlink(out, in_directory("out")), 0);
	ck_assert(!opens("/out"));
	ck_assert(!opens("/proc/self/exe"));
	places.sysroot = NULL;
}

TEST(a_link_of_the_kernel_is_not_followed)
{
	ck_assert(!opens("/proc/self/exe"));
}

SUITE_SKIP(reading_refused())
