// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/dump_signal.  TDT_DUMP is read before main(), so this program runs itself, with the
 * variable and with the name of a role, which it plays instead of testing.
 *
 * A role has no tasks left when it dumps: a dump is the line "no tasks (took ...)".  The stand-in
 * for a set-user-ID program is a secure_getenv() that finds nothing.
 */

#include "lib/folder.h"
#include "lib/no_threads.h"
#include "lib/options.h"
#include "lib/test.h"
#include "lib/threads.h"

char *__wrap_secure_getenv(const char *name)
{
	return getenv("CHECK_SECURE") == NULL ? getenv(name) : NULL;
}

/* --- What roles do ----------------------------------------------------------------------- */

#define FOLDER getenv("CHECK_FOLDER")

static tdt_poll_t never_polled(void *state, struct tdt_context *cx)
{
	return TDT_READY;
}

/* The library starts its threads with the first traced future. */
static void make_task(void)
{
	TRACED(traced, tdt_traced(((struct tdt_future){ NULL, never_polled, drop_nothing })));
}

/* How many dumps the file has; 0 if there is none. */
static int dumps_in(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[4096];
	int n = 0;

	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		n += strncmp(line, "no tasks (took ", 15) == 0 ||
		     strncmp(line, "{\"tdt\":1,\"dump\":{", 17) == 0;
	if (file != NULL)
		fclose(file);
	return n;
}

/* The file that TDT_DUMP names, in this process. */
static const char *file_of(pid_t process)
{
	static char path[IN_FOLDER_SIZE];

	snprintf(path, sizeof path, "%s/%ld.tdt", FOLDER, (long)process);
	return path;
}

static bool become_at_least(const char *path, int n)
{
	for (int i = 0; i < 20000 && dumps_in(path) < n; i++)
		usleep(1000);
	return dumps_in(path) >= n;
}

/* Raise the signal, and wait for the dump, the `n`th in this file. */
static void expect_dump(int signo, const char *path, int n)
{
	raise(signo);
	MUST(become_at_least(path, n) && dumps_in(path) == n);
}

static void expect_nothing(void)
{
	usleep(100000);
	MUST(access(file_of(getpid()), F_OK) != 0);
}

/* --- The roles ----------------------------------------------------------------------------- */

static void only_raises(void)
{
	for (int i = 0; i < 3; i++)
		raise(SIGUSR1);
	MUST(threads_named("tdt-") == 0);
}

static void has_a_task_later(void)
{
	raise(SIGUSR1);
	MUST(threads_named("tdt-dump") == 0);
	make_task();
	expect_nothing();
	expect_dump(SIGUSR1, file_of(getpid()), 1);
	expect_dump(SIGUSR1, file_of(getpid()), 2);
}

static void has_closed_everything(void)
{
	for (int fd = 0; fd < 100; fd++)
		close(fd);
	make_task();
	expect_dump(SIGUSR1, file_of(getpid()), 1);
}

static void writes_json(void)
{
	char path[IN_FOLDER_SIZE];

	snprintf(path, sizeof path, "%s/%ld.json", FOLDER, (long)getpid());
	make_task();
	expect_dump(SIGUSR1, path, 1);
	expect_dump(SIGUSR1, path, 2);
}

static void prints_to_stderr(void)
{
	char text[15] = "";
	int ends[2];

	MUST(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	make_task();
	raise(SIGUSR1);
	MUST(read(ends[0], text, sizeof text) == sizeof text);
	MUST(memcmp(text, "no tasks (took ", sizeof text) == 0);
}

static void becomes_a_daemon(void)
{
	IN_A_CHILD {
		raise(SIGUSR1);
		setsid();
		has_closed_everything();
	}
	expect_nothing();
}

static void forks_with_tasks(void)
{
	make_task();
	IN_A_CHILD {
		raise(SIGUSR1);
		expect_nothing();
		make_task();
		expect_nothing();
		expect_dump(SIGUSR1, file_of(getpid()), 1);
	}
	expect_nothing();
	expect_dump(SIGUSR1, file_of(getpid()), 1);
}

static void chooses_another_signal(void)
{
	struct sigaction action;
	char other[IN_FOLDER_SIZE];

	snprintf(other, sizeof other, "%s/other", FOLDER);
	MUST(tdt_dump_on_signal(SIGUSR2, NULL) == 0);
	expect_dump(SIGUSR2, file_of(getpid()), 1);
	expect_dump(SIGUSR1, file_of(getpid()), 2);
	MUST(tdt_dump_on_signal(SIGUSR2, TO(other)) == 0);
	expect_dump(SIGUSR1, other, 1);
	MUST(tdt_dump_on_signal(0, NULL) == 0);
	MUST(sigaction(SIGUSR2, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	expect_dump(SIGUSR1, file_of(getpid()), 3);
	MUST(threads_named("tdt-dump") == 1);
}

static void chooses_the_same_signal(void)
{
	MUST(tdt_dump_on_signal(SIGUSR1, NULL) == 0);
	expect_dump(SIGUSR1, file_of(getpid()), 1);
	MUST(tdt_dump_on_signal(SIGUSR2, NULL) == 0);
	expect_dump(SIGUSR1, file_of(getpid()), 2);
	MUST(tdt_dump_on_signal(0, NULL) == 0);
	expect_dump(SIGUSR1, file_of(getpid()), 3);
}

static volatile sig_atomic_t handled;

static void theirs(int signo)
{
	handled = signo;
}

static void has_a_handler(void)
{
	signal(SIGUSR1, theirs);
	make_task();
	raise(SIGUSR1);
	MUST(handled == SIGUSR1);
	expect_nothing();
}

static void overwrites_its_environment(void)
{
	char *value = getenv("TDT_DUMP");

	memset(value, 'x', strlen(value));
	make_task();
	expect_dump(SIGUSR1, file_of(getpid()), 1);
}

/* The folder is made after the first dump. */
static void has_no_folder_yet(void)
{
	char folder[IN_FOLDER_SIZE], path[IN_FOLDER_SIZE + 8];

	snprintf(folder, sizeof folder, "%s/late", FOLDER);
	snprintf(path, sizeof path, "%s/dump", folder);
	make_task();
	raise(SIGUSR1);
	usleep(100000);
	MUST(mkdir(folder, 0700) == 0);
	raise(SIGUSR1);
	/* If the thread was late, the first one is there, too. */
	MUST(become_at_least(path, 1));
}

static void starts_no_threads(void)
{
	threads_left = 0;
	make_task();
	raise(SIGUSR1);
	expect_nothing();
	threads_left = -1;
	MUST(tdt_dump_on_signal(SIGUSR1, NULL) == 0);
	expect_dump(SIGUSR1, file_of(getpid()), 1);
}

#define ROLE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct {
	const char *name;
	void (*play)(void);
} roles[] = {
	ROLE(only_raises),	 ROLE(has_a_task_later),	   ROLE(has_closed_everything),
	ROLE(writes_json),	 ROLE(prints_to_stderr),	   ROLE(becomes_a_daemon),
	ROLE(forks_with_tasks),	 ROLE(chooses_another_signal),	   ROLE(chooses_the_same_signal),
	ROLE(has_a_handler),	 ROLE(overwrites_its_environment), ROLE(has_no_folder_yet),
	ROLE(starts_no_threads),
};

int test_play(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (argc == 2 && strcmp(roles[i].name, argv[1]) == 0) {
			roles[i].play();
			return EXIT_SUCCESS;
		}
	}
	return EXIT_FAILURE;
}

/* --- The tests ------------------------------------------------------------------------------ */

static char folder[FOLDER_SIZE];

static void setup(void)
{
	ck_assert(make_folder(folder));
	setenv("CHECK_FOLDER", folder, 1);
}

static void teardown(void)
{
	char command[IN_FOLDER_SIZE];

	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* Play a role with this value, in which "@" stands for the folder.  Returns the status of wait().
 */
static int status_of(const char *role, const char *value)
{
	size_t n = strcspn(value, "@");
	char variable[2 * FOLDER_SIZE], program[PATH_MAX] = "";
	pid_t child;

	/* Under valgrind, /proc/self/exe is another program for execl(), but not for readlink(). */
	MUST(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
	snprintf(variable, sizeof variable, "%.*s%s%s", (int)n, value,
		 value[n] != '\0' ? folder : "", value[n] != '\0' ? value + n + 1 : "");
	child = fork();
	if (child == 0) {
		setenv("TDT_DUMP", variable, 1);
		execl(program, "check_dump_environment", role, NULL);
		_exit(127);
	}
	return child_status(child);
}

#define TO_FILE "USR1:@/%p.tdt"
#define GOES_WELL(role, value) ck_assert_int_eq(status_of(role, value), 0)

CASE(variable, .setup = setup, .teardown = teardown)

TEST(a_signal_before_the_first_task_harms_nobody)
{
	GOES_WELL("only_raises", "USR1");
	GOES_WELL("only_raises", "SIGUSR1:");
	GOES_WELL("only_raises", "10:/nowhere/at/all");
	GOES_WELL("only_raises", TO_FILE);
}

TEST(from_the_first_task_on_it_dumps)
{
	GOES_WELL("has_a_task_later", TO_FILE);
	GOES_WELL("writes_json", "USR1:@/%p.json");
	GOES_WELL("prints_to_stderr", "USR1");
}

TEST(a_file_needs_no_stderr)
{
	GOES_WELL("has_closed_everything", TO_FILE);
}

/* ThreadSanitizer's runtime starts no threads in a child of a process that had several. */
TEST(children_of_fork_have_files_of_their_own)
{
	GOES_WELL("becomes_a_daemon", TO_FILE);
	if (TSAN)
		printf("# not tried: ThreadSanitizer wants no threads in a child\n");
	else
		GOES_WELL("forks_with_tasks", TO_FILE);
}

TEST(the_program_may_choose_another_signal_or_the_same)
{
	GOES_WELL("chooses_another_signal", TO_FILE);
	GOES_WELL("chooses_the_same_signal", TO_FILE);
}

TEST(a_handler_of_the_program_s_stays)
{
	GOES_WELL("has_a_handler", TO_FILE);
}

TEST(a_signal_that_was_ignored_dumps)
{
	signal(SIGUSR1, SIG_IGN);
	GOES_WELL("has_a_task_later", TO_FILE);
}

TEST(the_program_may_overwrite_its_environment)
{
	GOES_WELL("overwrites_its_environment", TO_FILE);
}

TEST(a_file_that_cannot_be_opened_loses_one_dump_only)
{
	GOES_WELL("has_no_folder_yet", "USR1:@/late/dump");
}

TEST(without_a_thread_the_signal_does_nothing)
{
	GOES_WELL("starts_no_threads", TO_FILE);
}

TEST(a_value_that_is_not_understood_changes_nothing)
{
	static const char *const wrong[] = { "", "USR3", "USR2", "KILL", "SEGV", "32", "65" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(status_of("only_raises", wrong[i]) == SIGUSR1, "%s", wrong[i]);
}

TEST(a_set_user_id_program_ignores_it)
{
	setenv("CHECK_SECURE", "1", 1);
	ck_assert_int_eq(status_of("only_raises", "USR1"), SIGUSR1);
}
