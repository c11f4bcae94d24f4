// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/recorder_snapshot, dump/recorder_copy, base/new_file, base/write_signals.  What is in
 * a snapshot, while threads write and while they do not; and what happens to the file.
 */

#include <dirent.h>

#include <tdt/layout/recording.h>

#include "dump/recorder_snapshot.h"
#include "lib/folder.h"
#include "lib/hand.h"
#include "lib/options.h"
#include "lib/test.h"
#include "recording/read.h"

/* --- A folder for the snapshots ----------------------------------------------------------- */

static char folder[FOLDER_SIZE];
static char path[IN_FOLDER_SIZE];

static void begin(void)
{
	ck_assert(make_folder(folder));
	snprintf(path, sizeof path, "%s/rec", folder);
}

static int files(void)
{
	DIR *dir = opendir(folder);
	int n = 0;

	MUST(dir != NULL);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void end(void)
{
	char command[IN_FOLDER_SIZE];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

static void start(size_t ring_size)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = ring_size };

	ck_assert_int_eq(tdt_recorder_start(&options), 0);
}

/* --- Reading ------------------------------------------------------------------------ */

struct snapshot {
	void *block;
	size_t size;
	struct tdt__recording *recording;
};

static struct snapshot read_file(void)
{
	struct snapshot snapshot = { 0 };
	struct stat about;
	int fd = open(path, O_RDONLY);

	MUST(fd >= 0 && fstat(fd, &about) == 0);
	snapshot.size = (size_t)about.st_size;
	snapshot.block = malloc(snapshot.size);
	MUST(snapshot.block != NULL);
	MUST(read(fd, snapshot.block, snapshot.size) == about.st_size);
	close(fd);
	return snapshot;
}

static void open_snapshot(struct snapshot *snapshot)
{
	MUST(tdt__recording_open(&snapshot->recording, snapshot->block, snapshot->size) == 0);
}

static struct snapshot read_snapshot(void)
{
	struct snapshot snapshot = read_file();

	open_snapshot(&snapshot);
	return snapshot;
}

static struct snapshot take(uint64_t since_ns)
{
	const struct tdt_recorder_snapshot_options options = { .size = sizeof options,
							       .since_ns = since_ns };

	ck_assert_int_eq(tdt_recorder_snapshot(path, &options), 0);
	return read_snapshot();
}

static void free_snapshot(struct snapshot *snapshot)
{
	tdt__recording_close(snapshot->recording);
	free(snapshot->block);
}

/* How many events of this kind the task has; polls count when they end.  Id 0: any task. */
static unsigned count(const struct snapshot *snapshot, enum tdt_event_kind kind, uint64_t id)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	unsigned n = 0;

	ck_assert_int_eq(tdt__recording_begin(&cursor, snapshot->recording), 0);
	while (tdt__recording_next(&cursor, &item))
		n += item.event.kind == kind && (id == 0 || item.event.task == id) &&
		     item.kind != TDT__RECORDED_BEGIN && !item.remarkable;
	tdt__recording_end(&cursor);
	return n;
}

static const struct tdt__recorded_task *find_task(const struct snapshot *snapshot, uint64_t id)
{
	uint32_t number = tdt__recording_task(snapshot->recording, id);

	ck_assert_uint_ne(number, TDT__RECORDED_NONE);
	return &snapshot->recording->task[number];
}

CASE(content, .timeout = 60, .setup = begin, .teardown = end)

TEST(a_snapshot_has_each_poll_and_the_names_of_tasks)
{
	const struct tdt__recorded_module *modules;
	const struct tdt__recorded_task *task;
	struct snapshot snapshot;
	size_t n, found = 0;
	struct stat about;

	HAND(before, 99, TDT_READY, "before");
	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	for (int i = 0; i < 50; i++)
		hand_poll(&hand);
	errno = EDOM;
	snapshot = take(0);
	ck_assert_int_eq(errno, EDOM);
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 50);
	ck_assert_str_eq(find_task(&snapshot, hand_id(&hand))->name, "hand");
	task = find_task(&snapshot, hand_id(&before));
	ck_assert_str_eq(task->name, "before");
	/* No event says what it does, so it is listed. */
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_STATE, hand_id(&before)), 1);
	ck_assert_uint_ge(count(&snapshot, TDT_EVENT_CLOCK, 0), 2);
	modules = snapshot.recording->module;
	n = snapshot.recording->n_modules;
	for (size_t i = 0; i < n; i++)
		found += modules[i].start <= task->poll_function &&
			 task->poll_function < modules[i].end;
	ck_assert_uint_ge(found, 1);
	ck_assert_uint_ne(snapshot.recording->header.taken, 0);
	ck_assert_int_eq(stat(path, &about), 0);
	ck_assert_uint_eq(about.st_mode & 07777, 0600);
	ck_assert_int_eq(files(), 1);
	free_snapshot(&snapshot);
}

TEST(a_snapshot_may_leave_out_what_is_old)
{
	const struct timespec pause = { 0, 300000000 };
	struct snapshot snapshot;

	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	for (int i = 0; i < 20; i++)
		hand_poll(&hand);
	nanosleep(&pause, NULL);
	hand_poll(&hand);
	hand_poll(&hand);
	snapshot = take(200000000);
	ck_assert_uint_le(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 2);
	ck_assert_str_eq(find_task(&snapshot, hand_id(&hand))->name, "hand");
	free_snapshot(&snapshot);
	snapshot = take(UINT64_MAX);
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 22);
	free_snapshot(&snapshot);
}

TEST(what_was_recorded_can_be_had_after_the_recorder_was_stopped)
{
	struct snapshot snapshot;

	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
	hand_poll(&hand);
	snapshot = take(0);
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 1);
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_STOP, 0), 1);
	free_snapshot(&snapshot);
}

/* The first bytes of a snapshot in the form that the suffix chooses. */
static void expect_form(const char *suffix, const char *bytes, size_t n)
{
	char start[16];
	int fd;

	snprintf(path, sizeof path, "%s/rec%s", folder, suffix);
	ck_assert_int_eq(tdt_recorder_snapshot(path, NULL), 0);
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(read(fd, start, sizeof start), sizeof start);
	close(fd);
	ck_assert_mem_eq(start, bytes, n);
}

TEST(the_suffix_chooses_the_form)
{
	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	expect_form("", TDT_RECORDING_MAGIC, 8);
	expect_form(".pftrace", "\x0a", 1); /* a packet: field 1, with a length */
	expect_form(".pftrace.gz", "\x1f\x8b", 2);
	ck_assert_int_eq(files(), 3);
}

/* Whether the file contains the text. */
static bool has_text(const char *text)
{
	static char bytes[1 << 20];
	FILE *file = fopen(path, "re");
	size_t n;

	MUST(file != NULL);
	n = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	return memmem(bytes, n, text, strlen(text)) != NULL;
}

TEST(a_trace_has_the_names_of_tasks_and_of_their_functions)
{
	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	expect_form(".pftrace", "\x0a", 1);
	ck_assert(has_text("hand"));
	ck_assert(has_text("test_future_poll"));
	ck_assert(!has_text("test_future_drop"));
}

/* --- While threads write ------------------------------------------------------------ */

#define WRITERS 3

static atomic_bool over;
static _Atomic uint64_t written[WRITERS];

/* Events that check themselves: their numbers follow each other. */
static void *write_events(void *data)
{
	_Atomic uint64_t *mine = data;
	uint64_t which = (uint64_t)(mine - written), number = 0;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		TDT_PROBE(test, numbered, which, number, ~number);
		atomic_store(mine, ++number);
	}
	return NULL;
}

static uint64_t next_number(struct tdt__recorded_user *user)
{
	struct tdt__recorded_argument argument;

	MUST(tdt__recorded_user_next(user, &argument) && argument.type == TDT_USER_UINT);
	return argument.u;
}

/* How many rings say that all their events are lost, since they were overwritten meanwhile. */
static int count_lost(const struct snapshot *snapshot)
{
	const struct tdt_recording *header = snapshot->block;
	const struct tdt_recording_ring *ring = (const void *)((char *)snapshot->block +
							       header->rings);
	int n = 0;

	for (uint32_t i = 0; i < header->n_rings; i++)
		n += ring[i].head != 0 && ring[i].head == ring[i].first;
	return n;
}

/*
 * The numbers of each thread follow each other without a gap in each ring, and go on to `least` at
 * least, unless the ring says that its events are lost.  (A thread that fills its small ring gets a
 * large one, which may lose its oldest events, too.)
 */
static void check_numbers(const struct snapshot *snapshot, const uint64_t least[WRITERS])
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	char payload[TDT__PAYLOAD_MAX + 1];
	uint64_t next[WRITERS] = { 0 };
	uint32_t ring[WRITERS] = { 0 };
	int absent = 0;

	ck_assert_int_eq(tdt__recording_begin(&cursor, snapshot->recording), 0);
	while (tdt__recording_next(&cursor, &item)) {
		struct tdt__recorded_user user;
		uint64_t which, number;
		size_t n;

		if (item.event.kind != TDT_EVENT_USER)
			continue;
		n = tdt__recording_payload(snapshot->recording, &item, payload);
		ck_assert(tdt__recorded_user(&user, &item.event, payload, n));
		ck_assert_str_eq(user.name, "numbered");
		which = next_number(&user);
		number = next_number(&user);
		ck_assert_uint_lt(which, WRITERS);
		ck_assert_uint_eq(~number, next_number(&user));
		ck_assert(next[which] == 0 || number == next[which] ||
			  (ring[which] != item.parts.ring && number > next[which]));
		next[which] = number + 1;
		ring[which] = item.parts.ring;
	}
	tdt__recording_end(&cursor);
	for (int i = 0; i < WRITERS; i++)
		absent += next[i] < least[i];
	ck_assert_int_ge(count_lost(snapshot), absent);
}

#define SNAPSHOTS 20

/*
 * A thread that begins to write may take the small ring of one that has just got a large one, and
 * overwrite it.  If the copy has passed the large one before, it has nothing of that thread, and
 * does not say so.  So all threads have begun before the first snapshot.
 */
static void wait_for_writers(void)
{
	for (int i = 0; i < WRITERS; i++)
		while (atomic_load(&written[i]) == 0)
			usleep(1000);
}

/* They are looked at when nobody writes any more: that takes long. */
TEST(a_snapshot_that_is_taken_while_threads_write_has_no_gap_and_nothing_wrong, .from = 9, .to = 13)
{
	static struct snapshot snapshots[SNAPSHOTS];
	static uint64_t least[SNAPSHOTS][WRITERS];
	pthread_t threads[WRITERS];
	int lost = 0, n = (int)times_here(SNAPSHOTS);

	start(64 << _i);
	for (int i = 0; i < WRITERS; i++)
		MUST(pthread_create(&threads[i], NULL, write_events,
				    (void *)(uintptr_t)&written[i]) == 0);
	wait_for_writers();
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < WRITERS; j++)
			least[i][j] = atomic_load(&written[j]);
		ck_assert_int_eq(tdt_recorder_snapshot(path, NULL), 0);
		snapshots[i] = read_file();
	}
	atomic_store(&over, true);
	threads_join(threads, WRITERS);
	for (int i = 0; i < n; i++) {
		open_snapshot(&snapshots[i]);
		check_numbers(&snapshots[i], least[i]);
		lost += count_lost(&snapshots[i]);
		free_snapshot(&snapshots[i]);
	}
	ck_assert_int_le(lost, n > 1 ? n * WRITERS - 1 : WRITERS);
}

CASE(file, .setup = begin, .teardown = end)

TEST(without_a_recording_there_is_no_snapshot)
{
	ck_assert_fails(tdt_recorder_snapshot(path, NULL), ENODATA);
	ck_assert_int_eq(files(), 0);
}

static int snapshot_to(const char *name)
{
	char whole[IN_FOLDER_SIZE];

	snprintf(whole, sizeof whole, "%s/%s", folder, name);
	return tdt_recorder_snapshot(whole, NULL);
}

static void make_link(const char *to, const char *name)
{
	char whole[IN_FOLDER_SIZE];

	snprintf(whole, sizeof whole, "%s/%s", folder, name);
	ck_assert_int_eq(symlink(to, whole), 0);
}

TEST(a_path_that_is_no_regular_file_is_refused)
{
	static char longest[PATH_MAX];
	struct stat about;

	start(0);
	make_link("target", "dangling");
	make_link("/dev/null", "null");
	ck_assert_int_eq(tdt_recorder_snapshot(NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_recorder_snapshot("", NULL), -EINVAL);
	ck_assert_int_eq(snapshot_to("dangling"), -ELOOP);
	ck_assert_int_eq(snapshot_to("null"), -ELOOP);
	ck_assert_int_eq(snapshot_to("."), -EINVAL);
	ck_assert_int_eq(snapshot_to("no/such"), -ENOENT);
	ck_assert_int_eq(tdt_recorder_snapshot("/dev/full", NULL), -EINVAL);
	ck_assert_int_eq(stat("/dev/full", &about), 0);
	ck_assert(S_ISCHR(about.st_mode));
	memset(longest, 'x', sizeof longest - 3);
	ck_assert_int_eq(tdt_recorder_snapshot(longest, NULL), -ENAMETOOLONG);
	ck_assert_int_eq(files(), 2);
}

/* Check writes to a file of its own with each assertion: so the limit holds for this call only. */
static int snapshot_within(rlim_t bytes)
{
	const struct rlimit limit = { bytes, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	int error;

	MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	error = tdt_recorder_snapshot(path, NULL);
	MUST(setrlimit(RLIMIT_FSIZE, &none) == 0);
	return error;
}

/* The signal of the limit would end a process that does nothing about it, as most do. */
TEST(a_snapshot_that_cannot_be_written_leaves_the_previous_one)
{
	struct snapshot snapshot;

	start(0);
	HAND(hand, 999, TDT_READY, "hand");
	hand_poll(&hand);
	snapshot = take(0);
	free_snapshot(&snapshot);
	for (int i = 0; i < 200; i++)
		hand_poll(&hand);
	ck_assert_int_eq(snapshot_within(4096), -EFBIG);
	ck_assert_int_eq(files(), 1);
	snapshot = read_snapshot();
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 1);
	free_snapshot(&snapshot);
}

static volatile sig_atomic_t signals;

static void count_signal(int signo)
{
	signals++;
}

static void expect_too_large(void)
{
	snprintf(path, sizeof path, "%s/rec.pftrace", folder);
	ck_assert_int_eq(snapshot_within(4096), -EFBIG);
	snprintf(path, sizeof path, "%s/rec", folder);
	ck_assert_int_eq(snapshot_within(4096), -EFBIG);
	ck_assert_int_eq(files(), 0);
}

TEST(the_signal_of_the_limit_stays_the_programs_own)
{
	sigset_t set, mask;

	start(0);
	HAND(hand, 999, TDT_READY, "hand");
	for (int i = 0; i < 200; i++)
		hand_poll(&hand);
	signal(SIGXFSZ, count_signal);
	expect_too_large();
	ck_assert_int_eq(signals, 0);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	ck_assert_int_eq(sigismember(&mask, SIGXFSZ), 0);
	/* One that is pending already is the program's. */
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	raise(SIGXFSZ);
	expect_too_large();
	ck_assert_int_eq(signals, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	ck_assert_int_eq(signals, 1);
}

static int snapshot_there(void *nothing)
{
	return tdt_recorder_snapshot(path, NULL);
}

TEST(without_memory_there_is_no_snapshot)
{
	start(4096);
	HAND(hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	ck_assert_int_eq(snapshot_there(NULL), 0);
	no_memory_each(snapshot_there, NULL, 5);
	ck_assert_int_eq(files(), 1);
}

CASE(content)

TEST(a_child_of_fork_has_a_recording_of_its_own)
{
	start(0);
	HAND(hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	IN_A_CHILD {
		struct snapshot snapshot;

		hand_poll(&hand);
		hand_poll(&hand);
		snapshot = take(0);
		MUST(snapshot.recording->header.pid == (uint32_t)getpid());
		MUST(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)) == 2);
	}
}

/* Until the folder has so many files, none of which is being written; 20 s at most. */
static bool become_files(int n)
{
	struct stat about;

	for (int i = 0; i < 20000 && (files() != n || stat(path, &about) != 0); i++)
		usleep(1000);
	return files() == n && stat(path, &about) == 0;
}

CASE(by_signal)

TEST(a_signal_writes_a_snapshot)
{
	struct snapshot snapshot;
	char pattern[IN_FOLDER_SIZE];
	struct hand hand;

	begin();
	start(0);
	hand_begin(&hand, 99, TDT_READY, "hand");
	hand_poll(&hand);
	snprintf(pattern, sizeof pattern, "%s/%%p", folder);
	snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
	ck_assert_int_eq(tdt_recorder_on_signal(SIGUSR2, pattern, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR2, NULL), -EBUSY);
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, TO("/dev/null")), 0);
	ck_assert_int_eq(tdt_recorder_on_signal(SIGUSR1, pattern, NULL), -EBUSY);
	raise(SIGUSR1);
	raise(SIGUSR2);
	ck_assert(become_files(1));
	snapshot = read_snapshot();
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, hand_id(&hand)), 1);
	free_snapshot(&snapshot);
	ck_assert_int_eq(tdt_recorder_on_signal(0, NULL, NULL), 0);
	ck_assert_ptr_eq(signal(SIGUSR2, SIG_DFL), SIG_DFL);
	hand_end(&hand);
	end();
}

TEST(a_signal_needs_a_path)
{
	static char longest[PATH_MAX + 1];

	memset(longest, 'x', PATH_MAX);
	ck_assert_int_eq(tdt_recorder_on_signal(SIGUSR2, NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_recorder_on_signal(SIGUSR2, "", NULL), -EINVAL);
	ck_assert_int_eq(tdt_recorder_on_signal(SIGUSR2, longest, NULL), -ENAMETOOLONG);
	ck_assert_int_eq(tdt_recorder_on_signal(SIGKILL, "x", NULL), -EINVAL);
	ck_assert_ptr_eq(signal(SIGUSR2, SIG_DFL), SIG_DFL);
}

/* What the environment's program does: it polls once, sends the signal, and waits to be ended. */
int test_play(int argc, char **argv)
{
	struct tdt_traced task =
	    tdt_traced(((struct tdt_future){ NULL, stay_pending, drop_nothing }));
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };

	MUST(argc == 2 && strcmp(argv[1], "environment") == 0);
	test_waker_init(&waker);
	MUST(task.handle != NULL && tdt_future_poll(&task.future, &cx) == TDT_PENDING);
	raise(SIGUSR2);
	return (int)sleep(60);
}

TEST(the_environment_chooses_a_signal_and_a_file)
{
	char self[PATH_MAX] = "", mode[] = "environment", value[IN_FOLDER_SIZE + 8];
	char *arguments[] = { self, mode, NULL };
	struct snapshot snapshot;
	pid_t child;

	/* Under valgrind, /proc/self/exe is another program for execv(), but not for readlink(). */
	MUST(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	begin();
	snprintf(value, sizeof value, "USR2:%s", path);
	child = fork();
	if (child == 0) {
		setenv("TDT_RECORD_FILE", value, 1);
		setenv("TDT_RECORD", "64K", 1);
		execv(self, arguments);
		_exit(127);
	}
	ck_assert(become_files(1));
	snapshot = read_snapshot();
	ck_assert_uint_eq(snapshot.recording->header.pid, (uint32_t)child);
	ck_assert_uint_eq(count(&snapshot, TDT_EVENT_POLL, 0), 1);
	free_snapshot(&snapshot);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	end();
}
