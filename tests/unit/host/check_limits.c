// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recorder/recorder, recorder/files, door/door.  Hosts as people deploy them: with locked
 * memory, under limits and in memory cgroups, without rights or in another root after their start,
 * behind hidepid, in directories of other users, as many workers; and readers that die.  Such a
 * host lives, its limits hold, and no event is lost where that is promised.
 *
 * Each host is a process of its own, which sets the limits before it uses the library; `tdt record`
 * and raw readers look at it from the test's process, which never uses the library.
 */

#include <dirent.h>
#include <ftw.h>
#include <grp.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <tdt/layout/outside.h>
#include <tdt/layout/recording.h>

#include "dump/dump_file.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "lib/threads.h"
#include "lib/visitor.h"
#include "registry/registry.h"

#define MIB ((uint64_t)1 << 20)
#define THREADS 4
#define NOBODY 65534

/* What a thread that polls takes of a recording at most, and the recorder itself. */
#define RING_MOST (17 * MIB)
#define RECORDING_MOST ((THREADS + 2) * RING_MOST)

/* --- A host -------------------------------------------------------------------------------- */

/* In memory that the host and the test share. */
static struct host {
	sem_t wanted, done;
	sem_t polled;	   /* posted by each thread or worker that has begun */
	void (*run)(void); /* what the host is to do next; NULL: to end */
	atomic_ulong polls;
	long result;
	int door; /* a copy of the host's, with this number there */
	char dir[FOLDER_SIZE];
	char path[2 * FOLDER_SIZE];
} * host;

static pid_t host_pid;

/* Ends the test if the host has died. */
static void expect_host_alive(void)
{
	int status = 0;

	if (waitpid(host_pid, &status, WNOHANG) == 0)
		return;
	host_pid = 0;
	ck_abort_msg("the host has ended with status %#x", (unsigned)status);
}

/* Sleep until the condition holds; if it never does, Check ends the test. */
#define UNTIL(condition)                                                                           \
	while (!(condition)) {                                                                     \
		expect_host_alive();                                                               \
		usleep(1000);                                                                      \
	}

static atomic_bool over;

static tdt_poll_t last_now_and_then(void *state, struct tdt_context *cx)
{
	unsigned *polls = state;

	if (++*polls % 512 == 0)
		usleep(3000);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void poll_new_task(tdt_poll_t (*poll)(void *, struct tdt_context *), unsigned long n,
			  void (*between)(void))
{
	unsigned polled = 0;
	TRACED(task, tdt_traced(((struct tdt_future){ &polled, poll, drop_nothing })));

	for (unsigned long i = 0; i < n && !atomic_load(&over); i++) {
		if (i % 128 == 0)
			between();
		poll_idly(&task.future);
		atomic_fetch_add(&host->polls, 1);
	}
}

/* The threads do not take all the time of a small machine. */
static void rest(void)
{
	usleep(200);
}

static void *poll_on(void *nothing)
{
	poll_new_task(last_now_and_then, 1000, rest);
	sem_post(&host->polled);
	poll_new_task(last_now_and_then, ULONG_MAX, rest);
	return nothing;
}

static void serve(void)
{
	do {
		sem_post(&host->done);
		while (sem_wait(&host->wanted) != 0)
			; /* a signal was handled */
		if (host->run != NULL)
			host->run();
	} while (host->run != NULL);
}

static _Noreturn void be_host(void (*prepare)(void), int n)
{
	pthread_t threads[THREADS];

	if (prepare != NULL)
		prepare();
	MUST(tdt_listen(NULL) == 0);
	host->door = visitor_door();
	while (threads_named("tdt-recorder") == 0)
		usleep(1000);
	threads_start(threads, n, poll_on, NULL);
	for (int i = 0; i < n; i++)
		sem_wait(&host->polled);
	serve();
	atomic_store(&over, true);
	threads_join(threads, n);
	if (ASAN && access("/proc/self", F_OK) != 0)
		_exit(0); /* LeakSanitizer fails without /proc */
	exit(0);
}

static void await_host(void)
{
	UNTIL(sem_trywait(&host->done) == 0);
}

static void start_host(void (*prepare)(void), int threads)
{
	fflush(stdout);
	host_pid = fork();
	if (host_pid == 0)
		be_host(prepare, threads);
	ck_assert_int_gt(host_pid, 0);
	await_host();
}

/* Have the host's main thread do something. */
static void in_host(void (*run)(void))
{
	host->run = run;
	sem_post(&host->wanted);
	await_host();
}

static void poll_more(unsigned long n)
{
	unsigned long until = atomic_load(&host->polls) + n;

	UNTIL(atomic_load(&host->polls) >= until);
}

/* The host polls as before, and ends as it does without tdt. */
static void end_host(bool polls)
{
	if (polls)
		poll_more(1000);
	host->run = NULL;
	sem_post(&host->wanted);
	ck_assert_int_eq(child_status(host_pid), 0);
}

/* --- Before and after a test --------------------------------------------------------------- */

static void make_host(void)
{
	host = mmap(NULL, sizeof *host, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(host, MAP_FAILED);
	sem_init(&host->wanted, 1, 0);
	sem_init(&host->done, 1, 0);
	sem_init(&host->polled, 1, 0);
	ck_assert(make_folder(host->dir));
	ck_assert_int_eq(chmod(host->dir, 0755), 0);
}

static int remove_one(const char *path, const struct stat *about, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void remove_host(void)
{
	nftw(host->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of what has this name in the test's directory. */
static const char *in_dir(const char *name)
{
	static char path[2 * FOLDER_SIZE];

	snprintf(path, sizeof path, "%s/%s", host->dir, name);
	return path;
}

static const char *not_as_root(void)
{
	return geteuid() != 0 ? "only root may do that" : NULL;
}

static const char *sanitizers_lock(void)
{
	return ASAN || TSAN ? "sanitizers map terabytes" : NULL;
}

/* --- What a host takes --------------------------------------------------------------------- */

struct size {
	uint64_t space, memory; /* bytes */
};

static FILE *open_of_host(const char *name, const char *mode)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)host_pid, name);
	file = fopen(path, mode);
	ck_assert_ptr_nonnull(file);
	return file;
}

static struct size size_of_host(void)
{
	FILE *file = open_of_host("statm", "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long space, memory;

	ck_assert_int_eq(fscanf(file, "%lu %lu", &space, &memory), 2);
	fclose(file);
	return (struct size){ space * page, memory * page };
}

static bool is_back(const struct size *before)
{
	struct size now = size_of_host();

	return now.space <= before->space + 2 * MIB && now.memory <= before->memory + 2 * MIB;
}

/* From now on most_memory() is what the host takes at most. */
static void forget_most_memory(void)
{
	FILE *file = open_of_host("clear_refs", "we");

	fputs("5", file);
	ck_assert_int_eq(fclose(file), 0);
}

static uint64_t most_memory(void)
{
	FILE *file = open_of_host("status", "re");
	unsigned long most = 0;
	char line[256];

	while (fgets(line, sizeof line, file) != NULL)
		sscanf(line, "VmHWM: %lu kB", &most);
	fclose(file);
	return most * 1024;
}

/* --- Readers ------------------------------------------------------------------------------- */

/* Run tdt, and return its exit status.  What it prints is in a file. */
static __attribute__((format(printf, 1, 2))) int run_tdt(const char *format, ...)
{
	const char *build = getenv("top_builddir");
	char arguments[512], command[1024];
	va_list list;
	int status;

	va_start(list, format);
	vsnprintf(arguments, sizeof arguments, format, list);
	va_end(list);
	snprintf(command, sizeof command, "%s/tdt %s >'%s' 2>&1", build != NULL ? build : ".",
		 arguments, in_dir("said"));
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *all_said(void)
{
	static char text[1 << 16];
	FILE *file = fopen(in_dir("said"), "re");
	size_t n;

	ck_assert_ptr_nonnull(file);
	n = fread(text, 1, sizeof text - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

/* What comes behind `key` in what tdt has said; -1: it has not said that. */
static long said(const char *key)
{
	const char *at = strstr(all_said(), key);

	return at != NULL ? strtol(at + strlen(key), NULL, 10) : -1;
}

static void record(void)
{
	int status = run_tdt("record -d 300ms --json %d", (int)host_pid);

	ck_assert_msg(status == 0, "tdt record ended with %d: %s", status, all_said());
	ck_assert_int_gt(said("\"polls\":"), 0);
}

/* Whether another process may be read and its descriptors be taken. */
static const char *no_readers_here(void)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = self >= 0 ? (int)syscall(SYS_pidfd_getfd, self, 0, 0) : -1;

	if (self >= 0)
		close(self);
	if (copy < 0 && errno != EBADF)
		return "pidfd_getfd(2) is refused here";
	return geteuid() != 0 ? "only root may read any process" : NULL;
}

/* --- Locked memory ------------------------------------------------------------------------- */

static const char *no_locks_here(void)
{
	struct rlimit limit;
	const char *why = sanitizers_lock();

	if (why == NULL)
		why = no_readers_here();
	MUST(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	if (why == NULL && limit.rlim_cur != RLIM_INFINITY && geteuid() != 0)
		why = "memory may not be locked here";
	return why;
}

CASE(locked, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = no_locks_here)

static void lock_memory(void)
{
	MUST(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
}

TEST(a_host_that_locks_its_memory_is_recorded_within_the_size_and_gets_all_back)
{
	struct size before;

	start_host(lock_memory, THREADS);
	before = size_of_host();
	for (int i = 0; i < 2; i++) {
		forget_most_memory();
		record();
		ck_assert_uint_le(most_memory(), before.memory + RECORDING_MOST);
		UNTIL(is_back(&before));
	}
	end_host(true);
}

static void lock_and_record(void)
{
	lock_memory();
	setenv("TDT_RECORD", "16M", 1);
}

TEST(a_host_that_locks_its_memory_and_records_takes_what_its_threads_write)
{
	start_host(lock_and_record, THREADS);
	poll_more(20000);
	record();
	ck_assert_uint_le(most_memory(), 64 * MIB + RECORDING_MOST);
	end_host(true);
}

CASE(space, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = no_locks_here)

static void allow_more_space(uint64_t more)
{
	struct rlimit limit = { 0 };
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "re");

	MUST(file != NULL && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	limit.rlim_cur = limit.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
	MUST(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void allow_much_space(void)
{
	allow_more_space(256 * MIB);
}

static void allow_little_space(void)
{
	allow_more_space(4 * MIB);
}

/* How many MiB the host can map at once. */
static void find_room(void)
{
	long n = 256;
	void *mapped;

	while (n > 0) {
		mapped = mmap(NULL, (size_t)n * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (mapped != MAP_FAILED)
			break;
		n--;
	}
	if (n > 0)
		munmap(mapped, (size_t)n * MIB);
	host->result = n;
}

static long room(void)
{
	in_host(find_room);
	return host->result;
}

TEST(a_host_can_map_as_much_as_before_it_was_recorded)
{
	long before;

	start_host(NULL, THREADS);
	in_host(allow_much_space);
	before = room();
	ck_assert_int_gt(before, 200);
	for (int i = 0; i < 2; i++) {
		record();
		UNTIL(room() >= before - 2);
	}
	end_host(true);
}

TEST(without_address_space_for_a_recording_the_host_goes_on)
{
	struct size before;

	start_host(NULL, THREADS);
	in_host(allow_little_space);
	before = size_of_host();
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(run_tdt("record -d 100ms --json %d", (int)host_pid), 2);
		UNTIL(is_back(&before));
	}
	end_host(true);
}

CASE(files, .setup = make_host, .teardown = remove_host, .timeout = 120)

static uint64_t file_limit;

static void record_in_dir(void)
{
	setenv("TDT_RECORD", "16M", 1);
	setenv("TDT_RECORD_DIR", in_dir("rec"), 1);
}

static void limit_files_and_record(void)
{
	const struct rlimit limit = { file_limit, file_limit };

	record_in_dir();
	MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void poll_much(void)
{
	poll_new_task(stay_pending, 300000, rest);
}

static void take_snapshot(void)
{
	struct sigaction action;
	sigset_t pending;
	int error = tdt_recorder_snapshot(in_dir("own.rec"), NULL);

	MUST(error == 0 || error == -EFBIG);
	MUST(sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	MUST(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
	host->result = error;
}

struct found {
	int n;
	uint64_t largest; /* bytes */
	char path[3 * FOLDER_SIZE];
};

/* The files of a directory whose names begin with `prefix`. */
static struct found find_files(const char *name, const char *prefix)
{
	struct found found = { 0 };
	const struct dirent *entry;
	struct stat about;
	char path[2 * FOLDER_SIZE];
	DIR *entries;

	snprintf(path, sizeof path, "%s", in_dir(name));
	entries = opendir(path);
	while (entries != NULL && (entry = readdir(entries)) != NULL) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		found.n++;
		ck_assert_int_eq(fstatat(dirfd(entries), entry->d_name, &about, 0), 0);
		if ((uint64_t)about.st_size > found.largest)
			found.largest = (uint64_t)about.st_size;
		MUST(snprintf(found.path, sizeof found.path, "%s/%.60s", path, entry->d_name) > 0);
	}
	if (entries != NULL)
		closedir(entries);
	return found;
}

/* A recording in a directory, and a snapshot: from those that have no room to those that do. */
TEST(a_limit_of_file_sizes_costs_events_and_not_the_host, .to = 4)
{
	static const uint64_t limits[] = { 64 << 10, 4 << 20, 48 << 20, 96 << 20 };
	struct found found;

	file_limit = limits[_i];
	start_host(limit_files_and_record, 0);
	in_host(poll_much);
	in_host(take_snapshot);
	found = find_files("rec", "tdt-");
	ck_assert_uint_le(found.largest, file_limit);
	found = find_files(".", "own.rec");
	ck_assert_int_eq(found.n, host->result == 0);
	ck_assert_uint_le(found.largest, file_limit);
	end_host(false);
}

/* --- A memory cgroup ----------------------------------------------------------------------- */

static char cgroup[128];

static bool write_to_cgroup(const char *name, const char *text)
{
	char path[192];
	FILE *file;
	bool written;

	snprintf(path, sizeof path, "%s/%s", cgroup, name);
	file = fopen(path, "r+e"); /* make none */
	if (file == NULL)
		return false;
	written = fputs(text, file) >= 0;
	return fclose(file) == 0 && written;
}

/* In either version. */
static bool make_cgroup(uint64_t limit)
{
	static const char *const versions[][2] = {
		{ "/sys/fs/cgroup", "memory.max" },
		{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	};
	char text[32];

	snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
	for (int i = 0; i < 2; i++) {
		snprintf(cgroup, sizeof cgroup, "%s/tdt-test-%d", versions[i][0], (int)getpid());
		if (mkdir(cgroup, 0755) != 0)
			continue;
		if (write_to_cgroup(versions[i][1], text))
			return true;
		rmdir(cgroup);
	}
	return false;
}

static const char *no_cgroups_here(void)
{
	if (!make_cgroup(MIB))
		return "no memory cgroup can be made here";
	rmdir(cgroup);
	return no_readers_here();
}

CASE(cgroup, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = no_cgroups_here)

/* How many processes of the group were killed for want of memory. */
static long killed_of_cgroup(void)
{
	static const char *const names[] = { "memory.events", "memory.oom_control" };
	char path[192], line[128];
	long killed = -1;

	for (int i = 0; i < 2; i++) {
		FILE *file;

		snprintf(path, sizeof path, "%s/%s", cgroup, names[i]);
		file = fopen(path, "re");
		while (file != NULL && fgets(line, sizeof line, file) != NULL)
			sscanf(line, "oom_kill %ld", &killed);
		if (file != NULL)
			fclose(file);
	}
	return killed;
}

static void join_cgroup(void)
{
	char text[32];

	snprintf(text, sizeof text, "%d", (int)getpid());
	MUST(write_to_cgroup("cgroup.procs", text));
	if (!ASAN && !TSAN)
		lock_memory();
}

TEST(a_host_in_a_memory_cgroup_is_recorded_and_not_killed)
{
	struct size before;

	ck_assert(make_cgroup(ASAN || TSAN ? 1024 * MIB : 192 * MIB));
	start_host(join_cgroup, THREADS);
	before = size_of_host();
	for (int i = 0; i < 3; i++) {
		record();
		/* There is no room for two recordings. */
		UNTIL(ASAN || TSAN || is_back(&before));
	}
	ck_assert_int_eq(killed_of_cgroup(), 0);
	end_host(true);
	ck_assert_int_eq(rmdir(cgroup), 0);
}

CASE(changed, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = not_as_root)

/* The largest ring of polls of this thread, without Check's assertions: they write to a pipe. */
static const struct tdt_recording_ring *own_ring(void)
{
	const char *block = (const char *)(uintptr_t)TDT__PEEK(tdt__registry.rings);
	const struct tdt_recording *header = (const void *)block;
	uint32_t self = (uint32_t)gettid();

	for (uint32_t i = 0; block != NULL && i < header->n_rings; i++) {
		const struct tdt_recording_ring *ring =
		    (const struct tdt_recording_ring *)(block + header->rings) + i;

		if (ring->kind == TDT_RING_POLLS && TDT__PEEK(ring->thread) == self)
			return ring;
	}
	return NULL;
}

/*
 * Wait until that ring has room for more polls than come before the next call, or is as large as it
 * may become.  A small one is not `ready` for more: from its middle on the thread has a large one.
 */
static void wait_for_room(void)
{
	for (;; usleep(500)) {
		const struct tdt_recording_ring *ring = own_ring();

		if (ring == NULL || TDT__PEEK(ring->ready) == 0 ||
		    TDT__PEEK(ring->head) + 256 <= TDT__PEEK(ring->ready) ||
		    TDT__PEEK(ring->ready) == ring->most)
			return;
	}
}

static void poll_a_little(void)
{
	poll_new_task(stay_pending, 2000, wait_for_room);
}

static void poll_without_loss(void)
{
	poll_new_task(stay_pending, 200000, wait_for_room);
}

static void drop_rights(void)
{
	MUST(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0);
	MUST(setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void change_root(void)
{
	MUST(mkdir(in_dir("root"), 0755) == 0 && chroot(in_dir("root")) == 0 && chdir("/") == 0);
}

static void change_root_and_drop_rights(void)
{
	change_root();
	drop_rights();
}

/* The recording of the host has each of its polls. */
static void expect_all_recorded(void)
{
	struct found found = find_files("rec", "tdt-");

	ck_assert_int_eq(found.n, 1);
	ck_assert_int_eq(run_tdt("print --summary --json '%s'", found.path), 0);
	ck_assert_int_eq(said("\"polls\":"), (long)atomic_load(&host->polls));
	ck_assert_int_eq(said("\"missed\":"), 0);
}

/* The directory is root's.  The file gets most of its bytes after the change. */
TEST(after_setuid_and_chroot_no_event_is_lost, .to = 3)
{
	static void (*const changes[])(void) = { drop_rights, change_root,
						 change_root_and_drop_rights };

	start_host(record_in_dir, 0);
	in_host(poll_a_little);
	in_host(changes[_i]);
	in_host(poll_without_loss);
	expect_all_recorded();
	end_host(false);
	expect_all_recorded();
}

/* 8 MiB, of which a ring of 16 MiB would take twice as much. */
static void record_in_small_dir(void)
{
	record_in_dir();
	setenv("TDT_RECORD_DIR_SIZE", "8M", 1);
}

TEST(after_setuid_the_size_of_the_directory_is_kept)
{
	struct stat about;

	start_host(record_in_small_dir, 0);
	in_host(poll_a_little);
	in_host(drop_rights);
	in_host(poll_much);
	ck_assert_int_eq(stat(find_files("rec", "tdt-").path, &about), 0);
	ck_assert_uint_le((uint64_t)about.st_blocks * 512, 8 * MIB);
	end_host(false);
}

/* --- Behind hidepid ------------------------------------------------------------------------ */

/* In a mount namespace of its own. */
static bool mount_hiding_proc(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("proc", "/proc", "proc", 0, "hidepid=2") == 0;
}

static int status_of(pid_t child)
{
	int status = -1;

	MUST(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const char *no_mounts_here(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(mount_hiding_proc() ? 0 : 1);
	return status_of(child) != 0 ? "/proc may not be mounted here" : NULL;
}

CASE(hidden, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = no_mounts_here)

/* Another user's process needs room in the directory: returns what its start returns. */
static int start_hidden(void)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .dir = in_dir("rec"),
						      .dir_size = 5 * MIB };

	MUST(mount_hiding_proc());
	drop_rights();
	MUST(kill(host_pid, 0) == -1 && errno == EPERM);
	return -tdt_recorder_start(&options);
}

TEST(behind_hidepid_the_recordings_of_live_processes_stay)
{
	struct found found;
	pid_t child;

	start_host(record_in_dir, 0);
	in_host(poll_a_little);
	ck_assert_int_eq(chmod(in_dir("rec"), 0777), 0); /* whoever wants may remove files */
	found = find_files("rec", "tdt-");
	ck_assert_int_eq(found.n, 1);
	ck_assert_int_eq(chown(found.path, NOBODY, NOBODY), 0); /* so are the files of daemons */
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(start_hidden());
	ck_assert_int_eq(status_of(child), ENOSPC);
	in_host(poll_without_loss);
	expect_all_recorded();
	end_host(false);
}

CASE(planted, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = not_as_root)

static const char planted_text[] = "somebody else's\n";

/* A file of another user, which all may write to. */
static void plant(const char *path)
{
	int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);

	MUST(file >= 0 && write(file, planted_text, sizeof planted_text) == sizeof planted_text);
	MUST(fchmod(file, 0666) == 0 && fchown(file, NOBODY, NOBODY) == 0);
	close(file);
}

static void expect_as_planted(const char *path)
{
	char text[sizeof planted_text + 1];
	int file = open(path, O_RDONLY);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(read(file, text, sizeof text), sizeof planted_text);
	ck_assert_mem_eq(text, planted_text, sizeof planted_text);
	close(file);
}

/* The time when this process was started, as /proc says it. */
static unsigned long long start_of_self(void)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char text[1024] = "", *at;

	MUST(file != NULL && fgets(text, sizeof text, file) != NULL);
	fclose(file);
	at = strrchr(text, ')');
	for (int i = 2; i < 22; i++)
		at = strchr(at + 1, ' ');
	return strtoull(at, NULL, 10);
}

/* The files that the host records and dumps to are there before, and another user's. */
static void have_all_planted(void)
{
	MUST(mkdir(in_dir("rec"), 0777) == 0 && chmod(in_dir("rec"), 01777) == 0);
	snprintf(host->path, sizeof host->path, "%s/rec/tdt-%d-%llu.rec", host->dir, (int)getpid(),
		 start_of_self());
	plant(host->path);
	plant(in_dir("rec/dump"));
	record_in_dir();
}

static void dump_to_planted(void)
{
	host->result = tdt__dump_to_file(in_dir("rec/dump"));
}

TEST(files_of_other_users_in_a_sticky_directory_are_left_alone)
{
	start_host(have_all_planted, 0);
	in_host(poll_much);
	in_host(dump_to_planted);
	ck_assert(host->result == -EPERM || host->result == -EACCES); /* or fs.protected_regular */
	expect_as_planted(host->path);
	expect_as_planted(in_dir("rec/dump"));
	end_host(false);
	expect_as_planted(host->path);
}

CASE(deaths, .setup = make_host, .teardown = remove_host, .timeout = 120, .skip = no_readers_here)

static int door_of_host(void)
{
	int process = (int)syscall(SYS_pidfd_open, host_pid, 0), door;

	ck_assert_int_ge(process, 0);
	door = (int)syscall(SYS_pidfd_getfd, process, host->door, 0);
	ck_assert_int_ge(door, 0);
	close(process);
	return door;
}

#define MESSAGES 5

/* Send the first messages, and die: before the answer to the last one, or behind it. */
static _Noreturn void die_at_message(int door, int last, bool answered)
{
	static const struct tdt_outside_watch watch = { VISITOR_HEADER(tdt_outside_watch, WATCH),
							.interval_ns = 5000000 };
	static const struct tdt_outside_record request = {
		VISITOR_HEADER(tdt_outside_record, RECORD), .on = 1, .stacks = TDT_STACKS_EVERY
	};
	static const struct tdt_outside_trees trees = { VISITOR_HEADER(tdt_outside_trees, TREES),
							.timeout_ns = 1000000000 };
	static const struct tdt_outside_header counters =
	    VISITOR_HEADER(tdt_outside_header, COUNTERS);
	const struct {
		const void *message;
		size_t size;
	} messages[MESSAGES] = { { NULL, 0 },
				 { &watch, sizeof watch },
				 { &request, sizeof request },
				 { &trees, sizeof trees },
				 { &counters, sizeof counters } };
	static char answer[1 << 16];
	int connection = visitor_enter(door);

	for (int i = 0; i <= last; i++) {
		if (i > 0)
			visitor_send(connection, messages[i].message, messages[i].size);
		if (i < last || answered)
			MUST(visitor_receive(connection, answer, sizeof answer) > 0);
	}
	raise(SIGKILL);
	abort();
}

static void let_reader_die(int door, int last, bool answered)
{
	int status = 0;
	pid_t reader;

	fflush(stdout);
	reader = fork();
	if (reader == 0)
		die_at_message(door, last, answered);
	ck_assert_int_eq(waitpid(reader, &status, 0), reader);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void find_what_is_wanted(void)
{
	struct tdt_recorder_status status = { .size = sizeof status };

	MUST(tdt_recorder_info(&status) == 0);
	host->result = status.recording || TDT__PEEK(tdt__registry.watch_ns) != 0;
}

static bool wants_nothing(void)
{
	in_host(find_what_is_wanted);
	return host->result == 0;
}

static int descriptors_of_host(void)
{
	char path[64];
	DIR *entries;
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)host_pid);
	entries = opendir(path);
	ck_assert_ptr_nonnull(entries);
	while (readdir(entries) != NULL)
		n++;
	closedir(entries);
	return n;
}

/*
 * With the first allocation of each thread, as with the first tree that it answers, glibc reserves
 * address space for good.  Which of the host's threads has answered by when is chance.
 */
static void have_one_arena(void)
{
	MUST(ASAN || TSAN || mallopt(M_ARENA_MAX, 1) == 1);
}

TEST(a_reader_that_dies_at_any_message_leaves_nothing_behind)
{
	struct size before;
	int door, n;

	start_host(have_one_arena, THREADS);
	door = door_of_host();
	/* What the library takes once it has by now. */
	n = descriptors_of_host();
	for (int i = 0; i < 3; i++)
		let_reader_die(door, MESSAGES - 1, true);
	UNTIL(wants_nothing());
	before = size_of_host();
	for (int i = 0; i < 2 * MESSAGES; i++) {
		let_reader_die(door, i / 2, i % 2 == 1);
		UNTIL(wants_nothing());
		UNTIL(descriptors_of_host() <= n + 2); /* the pipe of libunwind */
		UNTIL(ASAN || TSAN || is_back(&before));
	}
	close(door);
	end_host(true);
}

/* --- Workers that share a directory -------------------------------------------------------- */

/* One of 24 hung in its first allocation. */
static const char *no_workers_here(void)
{
	return TSAN ? "ThreadSanitizer may be locked in children of fork()" : NULL;
}

CASE(workers, .setup = make_host, .teardown = remove_host, .timeout = 240, .skip = no_workers_here)

#define WORKERS 24
#define POLLS_OF_WORKER 5000
#define DIR_SIZE_MIB 200

static pid_t workers[WORKERS];

static _Noreturn void be_worker(void)
{
	poll_new_task(stay_pending, POLLS_OF_WORKER, wait_for_room);
	sem_post(&host->polled);
	for (;;)
		pause();
}

/* All live at the same time. */
static void start_workers(void)
{
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			be_worker();
		MUST(workers[i] > 0);
	}
	for (int i = 0; i < WORKERS; i++)
		while (sem_wait(&host->polled) != 0)
			; /* a signal was handled */
}

static void kill_workers(void)
{
	for (int i = 0; i < WORKERS; i++) {
		MUST(kill(workers[i], SIGKILL) == 0);
		MUST(waitpid(workers[i], NULL, 0) == workers[i]);
	}
}

static void restart_workers(void)
{
	kill_workers();
	start_workers();
}

/* AddressSanitizer may be locked in children of a process with threads. */
static void record_and_start_workers(void)
{
	record_in_dir();
	setenv("TDT_RECORD_DIR_SIZE", "200M", 1);
	if (!ASAN)
		poll_new_task(stay_pending, POLLS_OF_WORKER, wait_for_room);
	start_workers();
}

/* The bytes that the files of a directory take, of which `*whole` have the polls of a worker. */
static uint64_t look_at_recordings(int *whole)
{
	const struct dirent *entry;
	DIR *entries = opendir(in_dir("rec"));
	uint64_t all = 0;
	struct stat about;

	ck_assert_ptr_nonnull(entries);
	*whole = 0;
	while ((entry = readdir(entries)) != NULL) {
		if (strncmp(entry->d_name, "tdt-", 4) != 0)
			continue;
		if (fstatat(dirfd(entries), entry->d_name, &about, 0) != 0)
			continue; /* a worker has removed that of one that was killed */
		all += (uint64_t)about.st_blocks * 512;
		*whole += run_tdt("print --summary --json '%s/rec/%.60s'", host->dir,
				  entry->d_name) == 0 &&
			  said("\"polls\":") == POLLS_OF_WORKER && said("\"missed\":") == 0;
	}
	closedir(entries);
	return all;
}

/* As a server forks its workers, and as all of them are killed and replaced. */
TEST(each_of_many_workers_has_all_its_events_in_a_file_of_its_own)
{
	int whole, rounds = ASAN ? 1 : 4;

	start_host(record_and_start_workers, 0);
	for (int i = 0; i < rounds; i++) {
		if (i > 0)
			in_host(restart_workers);
		/* Workers that take room at the same moment may take some too much. */
		ck_assert_uint_le(look_at_recordings(&whole), (DIR_SIZE_MIB + WORKERS) * MIB);
		ck_assert_int_ge(whole, WORKERS);
	}
	in_host(kill_workers);
	end_host(false);
}
