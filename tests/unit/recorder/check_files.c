// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/files.  Where the file of a recording lies and who may read it, that it survives
 * the process, that each process has its own, and which files are removed.
 */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/hand.h"
#include "lib/must.h"
#include "lib/recorded.h"
#include "lib/test.h"
#include "recorder/files.h"
#include "registry/registry.h"

static char dir[64];

static void make_dir(void)
{
	strcpy(dir, "/tmp/tdt-check-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *ftw)
{
	(void)about;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int start_in_dir(size_t dir_size)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = 65536,
						      .dir = dir,
						      .dir_size = dir_size };

	return tdt_recorder_start(&options);
}

static const char *path_of_file(void)
{
	static struct tdt_recorder_status info = { .size = sizeof info };

	MUST(tdt_recorder_info(&info) == 0);
	return info.path;
}

/* How many files the directory has. */
static int count_files(void)
{
	DIR *entries = opendir(dir);
	const struct dirent *entry;
	int n = 0;

	while ((entry = readdir(entries)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(entries);
	return n;
}

/* --- The file of a process ------------------------------------------------- */

START_TEST(the_file_has_a_name_with_the_process_and_only_its_owner_may_read_it)
{
	char begin[96];
	struct stat about;

	make_dir();
	umask(0);
	ck_assert_int_eq(start_in_dir(0), 0);
	snprintf(begin, sizeof begin, "%s/tdt-%d-", dir, getpid());
	ck_assert_int_eq(strncmp(path_of_file(), begin, strlen(begin)), 0);
	ck_assert_int_eq(stat(path_of_file(), &about), 0);
	ck_assert_uint_eq(about.st_mode, S_IFREG | 0600);
	ck_assert_uint_eq((uint64_t)about.st_size, recorded_block()->bytes);
	remove_dir();
}
END_TEST

/* The polls that the file of the process tells of. */
static unsigned polls_in(const char *path, uint32_t pid)
{
	int file = open(path, O_RDONLY);
	const struct tdt_recording *block;
	struct stat about;
	unsigned n = 0;

	MUST(file >= 0 && fstat(file, &about) == 0);
	block = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);
	MUST(block != MAP_FAILED && block->pid == pid);
	for (uint32_t i = 0; i < block->n_rings; i++) {
		const struct tdt_recording_ring *ring =
			(const struct tdt_recording_ring *)((const char *)block + block->rings) + i;
		const struct tdt_event *slots = (const void *)((const char *)block + ring->slots);

		for (uint64_t j = 0; j < ring->head && j < ring->room; j++)
			n += ring->kind == TDT_RING_POLLS && slots[j].kind == TDT_EVENT_POLL;
	}
	munmap((void *)(uintptr_t)block, (size_t)about.st_size);
	close(file);
	return n;
}

/* The path is written to a pipe: the process cannot be asked any more. */
START_TEST(the_file_survives_a_kill)
{
	char path[PATH_MAX] = "";
	struct hand hand;
	int ends[2], status;
	pid_t child;

	make_dir();
	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		MUST(start_in_dir(0) == 0);
		hand_begin(&hand, 99, TDT_READY, NULL);
		for (int i = 0; i < 17; i++)
			hand_poll(&hand);
		MUST(write(ends[1], path_of_file(), strlen(path_of_file())) > 0);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_gt(read(ends[0], path, sizeof path - 1), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_uint_eq(polls_in(path, (uint32_t)child), 17);
	remove_dir();
}
END_TEST

static void poll_times(struct hand *hand, int n)
{
	for (int i = 0; i < n; i++)
		hand_poll(hand);
}

/* When the last complete listing of live tasks began that is another one than `before`. */
static uint64_t next_listing(uint64_t before)
{
	const struct tdt_recording *block = recorded_block();
	uint64_t listed;

	do {
		usleep(1000);
		listed = __atomic_load_n(&block->listed, __ATOMIC_ACQUIRE);
	} while (listed == before);
	return listed;
}

START_TEST(live_tasks_are_listed_again_and_again)
{
	uint64_t first, second;
	struct tdt_event state;
	struct hand hand;

	make_dir();
	hand_begin(&hand, 99, TDT_READY, NULL);
	ck_assert_int_eq(start_in_dir(0), 0);
	first = next_listing(0);
	second = next_listing(first);
	ck_assert_int_eq(tdt_recorder_stop(), 0); /* nobody writes any more */
	ck_assert_uint_gt(second, first);
	ck_assert_uint_ge(recorded_count(TDT_RING_SERVICE, TDT_EVENT_TASK, hand_id(&hand)), 2);
	state = recorded_last(TDT_RING_SERVICE, TDT_EVENT_TASK, hand_id(&hand)).event;
	ck_assert_uint_ge(state.time, second);
	state = recorded_last(TDT_RING_SERVICE, TDT_EVENT_STATE, hand_id(&hand)).event;
	ck_assert_uint_ge(state.time, second);
	ck_assert_uint_eq(state.b, 0); /* it was not woken */
	hand_end(&hand);
	remove_dir();
}
END_TEST

START_TEST(a_child_of_fork_has_a_file_of_its_own_once_it_traces_a_future)
{
	struct hand hand, own;
	char parents[PATH_MAX];
	int status;
	pid_t child;

	make_dir();
	ck_assert_int_eq(start_in_dir(0), 0);
	strcpy(parents, path_of_file());
	hand_begin(&hand, 99, TDT_READY, NULL);
	poll_times(&hand, 3);
	child = fork();
	if (child == 0) {
		poll_times(&hand, 5);
		MUST(path_of_file()[0] == '\0' && count_files() == 1);
		hand_begin(&own, 99, TDT_READY, NULL);
		poll_times(&own, 7);
		MUST(strcmp(path_of_file(), parents) != 0);
		MUST(polls_in(path_of_file(), (uint32_t)getpid()) == 7);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(polls_in(parents, (uint32_t)getpid()), 3);
	ck_assert_int_eq(count_files(), 2);
	hand_end(&hand);
	remove_dir();
}
END_TEST

START_TEST(the_recorder_goes_on_in_the_same_file)
{
	struct hand hand;
	char path[PATH_MAX];

	make_dir();
	ck_assert_int_eq(start_in_dir(0), 0);
	strcpy(path, path_of_file());
	hand_begin(&hand, 99, TDT_READY, NULL);
	poll_times(&hand, 3);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	ck_assert_int_eq(start_in_dir(0), 0);
	poll_times(&hand, 3);
	ck_assert_str_eq(path_of_file(), path);
	ck_assert_uint_eq(polls_in(path, (uint32_t)getpid()), 6);
	hand_end(&hand);
	remove_dir();
}
END_TEST

/* --- What goes wrong ------------------------------------------------------- */

static void expect_refused(int error)
{
	ck_assert_int_eq(start_in_dir(0), error);
	ck_assert_int_eq(errno, -error);
	ck_assert_uint_eq(tdt__registry.rings, 0);
}

START_TEST(what_is_no_directory_is_refused)
{
	int file;

	make_dir();
	strcat(dir, "/file");
	expect_refused(-ENOENT);
	file = open(dir, O_CREAT | O_WRONLY, 0600);
	close(file);
	expect_refused(-ENOTDIR);
	*strrchr(dir, '/') = '\0';
	remove_dir();
}
END_TEST

START_TEST(a_limit_of_file_sizes_is_no_signal)
{
	const struct rlimit limit = { 100000, 100000 };

	make_dir();
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	expect_refused(-EFBIG);
	ck_assert_int_eq(count_files(), 0);
	remove_dir();
}
END_TEST

START_TEST(a_link_with_the_name_of_the_file_is_not_followed)
{
	char path[PATH_MAX], target[96];
	int status;
	pid_t child;

	make_dir();
	snprintf(target, sizeof target, "%s/target", dir);
	child = fork();
	if (child == 0) {
		MUST(start_in_dir(0) == 0);
		strcpy(path, path_of_file());
		MUST(tdt_recorder_stop() == 0 && tdt_recorder_start(NULL) == 0);
		MUST(tdt_recorder_stop() == 0);
		MUST(unlink(path) == 0 && symlink(target, path) == 0);
		MUST(start_in_dir(0) == -EEXIST && access(target, F_OK) != 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	remove_dir();
}
END_TEST

/* --- The size of the directory --------------------------------------------- */

#define OLD_SIZE 1000000

/* A recording of a process that is gone, or what looks like one; `age` in seconds. */
static void make_old(const char *name, const char *magic, int age)
{
	struct timespec times[2] = { { 0 } };
	static char bytes[OLD_SIZE];
	char path[128];
	int file;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	file = open(path, O_CREAT | O_WRONLY, 0600);
	strcpy(bytes, magic);
	MUST(file >= 0 && write(file, bytes, sizeof bytes) == sizeof bytes);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= age;
	times[1] = times[0];
	MUST(futimens(file, times) == 0);
	close(file);
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

START_TEST(the_oldest_recordings_of_processes_that_are_gone_make_room)
{
	char live[64];

	make_dir();
	snprintf(live, sizeof live, "tdt-%d-1.rec", getpid());
	make_old("tdt-99999991-1.rec", TDT_RECORDING_MAGIC, 10);
	make_old("tdt-99999992-1.rec", TDT_RECORDING_MAGIC, 30);
	make_old("tdt-99999993-1.rec", TDT_RECORDING_MAGIC, 20);
	make_old("tdt-99999994-1.rec", "another", 90);
	make_old("tdt-99999995-1.rec.gz", TDT_RECORDING_MAGIC, 90);
	make_old("notes", TDT_RECORDING_MAGIC, 90);
	/* Room for the own file, which has some 800 KB at first, and for one of these. */
	ck_assert_int_eq(start_in_dir(5 * OLD_SIZE / 2), 0);
	ck_assert(is_there("tdt-99999991-1.rec"));
	ck_assert(!is_there("tdt-99999992-1.rec"));
	ck_assert(!is_there("tdt-99999993-1.rec"));
	ck_assert(is_there("tdt-99999994-1.rec"));
	ck_assert(is_there("tdt-99999995-1.rec.gz"));
	ck_assert(is_there("notes"));
	remove_dir();
}
END_TEST

/* The name of a live process is that of process 1, whose start is read from /proc. */
START_TEST(recordings_of_live_processes_stay_and_leave_no_room)
{
	char name[64], text[1024] = "", *at;
	FILE *file = fopen("/proc/1/stat", "r");

	make_dir();
	MUST(file != NULL && fgets(text, sizeof text, file) != NULL);
	fclose(file);
	at = strrchr(text, ')');
	for (int i = 2; i < 22; i++)
		at = strchr(at + 1, ' ');
	snprintf(name, sizeof name, "tdt-1-%llu.rec", strtoull(at, NULL, 10));
	make_old(name, TDT_RECORDING_MAGIC, 90);
	ck_assert_int_eq(start_in_dir(OLD_SIZE), -ENOSPC);
	ck_assert(is_there(name));
	ck_assert_int_eq(count_files(), 1);
	remove_dir();
}
END_TEST

#define PARTIES 12

static tdt_poll_t wait_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static pthread_barrier_t all_polled;

static void *poll_in_thread(void *arg)
{
	struct hand *hand = arg;

	/* All have a ring at the same time, if there are so many. */
	pthread_barrier_wait(&all_polled);
	for (int i = 0; i < 1000; i++) {
		hand_poll(hand);
		usleep(1000);
	}
	pthread_barrier_wait(&all_polled);
	return NULL;
}

/* A file system of its own, in a child of its own, which needs the right to mount it. */
static int fill_file_system(void)
{
	static struct hand hands[PARTIES];
	struct tdt_recorder_status status = { .size = sizeof status };
	pthread_t thread[PARTIES];
	struct statvfs about;

	if (unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", dir, "tmpfs", 0, "size=900k") != 0)
		return 77;
	MUST(start_in_dir(0) == 0);
	pthread_barrier_init(&all_polled, NULL, PARTIES);
	for (int i = 0; i < PARTIES; i++) {
		test_waker_init(&hands[i].waker);
		hands[i].task = tdt_traced(((struct tdt_future){ NULL, wait_poll, drop_nothing }));
		MUST(pthread_create(&thread[i], NULL, poll_in_thread, &hands[i]) == 0);
	}
	for (int i = 0; i < PARTIES; i++)
		pthread_join(thread[i], NULL);
	MUST(tdt_recorder_info(&status) == 0 && status.missed_polls > 0);
	MUST(statvfs(dir, &about) == 0 && about.f_bavail * about.f_bsize < 2 * 65536);
	return 0;
}

START_TEST(a_full_file_system_costs_events_and_not_the_process)
{
	int status;
	pid_t child;

	make_dir();
	child = fork();
	if (child == 0)
		_exit(fill_file_system());
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	remove_dir();
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		puts("# not tried: no file system may be mounted here");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(more_of_a_file_is_allocated_only_within_the_limit)
{
	struct tdt__record_file file;
	struct stat about;
	void *memory;

	make_dir();
	ck_assert_int_eq(tdt__record_file_make(&file, dir, 300000, 1000000, 100000, &memory), 0);
	memcpy(memory, TDT_RECORDING_MAGIC, 8);
	ck_assert_int_eq(tdt__record_file_allocate(&file, 100000, 100000), 0);
	ck_assert_int_eq(tdt__record_file_allocate(&file, 200000, 200000), -ENOSPC);
	ck_assert_int_eq(stat(file.path, &about), 0);
	ck_assert_uint_ge((uint64_t)about.st_blocks * 512, 200000);
	ck_assert_uint_lt((uint64_t)about.st_blocks * 512, 300000);
	ck_assert_int_eq(unlink(file.path), 0);
	ck_assert_int_eq(tdt__record_file_allocate(&file, 200000, 10), -ENOENT);
	close(open(file.path, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(tdt__record_file_allocate(&file, 200000, 10), -ESTALE);
	remove_dir();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("files");
	TCase *own = tcase_create("own");
	TCase *wrong = tcase_create("wrong");
	TCase *size = tcase_create("size");

	tcase_add_test(own, the_file_has_a_name_with_the_process_and_only_its_owner_may_read_it);
	tcase_add_test(own, the_file_survives_a_kill);
	tcase_add_test(own, live_tasks_are_listed_again_and_again);
	tcase_add_test(own, a_child_of_fork_has_a_file_of_its_own_once_it_traces_a_future);
	tcase_add_test(own, the_recorder_goes_on_in_the_same_file);
	suite_add_tcase(suite, own);
	tcase_add_test(wrong, what_is_no_directory_is_refused);
	tcase_add_test(wrong, a_limit_of_file_sizes_is_no_signal);
	tcase_add_test(wrong, a_link_with_the_name_of_the_file_is_not_followed);
	suite_add_tcase(suite, wrong);
	tcase_add_test(size, the_oldest_recordings_of_processes_that_are_gone_make_room);
	tcase_add_test(size, recordings_of_live_processes_stay_and_leave_no_room);
	tcase_add_test(size, a_full_file_system_costs_events_and_not_the_process);
	tcase_add_test(size, more_of_a_file_is_allocated_only_within_the_limit);
	suite_add_tcase(suite, size);
	return test_run(suite);
}
