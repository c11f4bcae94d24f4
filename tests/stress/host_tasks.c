// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See host_tasks.h. */

#include <config.h>

#include "stress/host_tasks.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/host_plugins.h"
#include "lib/must.h"
#include "lib/sanitized.h"
#include "lib/seeded.h"
#include "stress/host_ops.h"

#define TASKS 24
#define POLLERS 6
#define POLLS_OF_THREAD 40
#define POLLS_OF_TASK 30
#define MS 1000000

struct host_parts host_parts = { true, true, true, true, true, true, true, true, true, true, true };
struct host_counts host_counts;

static atomic_bool ending;

/* --- The loader ------------------------------------------------------------------------ */

static pthread_rwlock_t loader;

static __attribute__((constructor)) void init_loader(void)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	/* Else there would always be a reader. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	MUST(pthread_rwlock_init(&loader, &attr) == 0);
	pthread_rwlockattr_destroy(&attr);
}

void host_loader_enter(void)
{
	pthread_rwlock_rdlock(&loader);
}

void host_loader_leave(void)
{
	pthread_rwlock_unlock(&loader);
}

void host_loader_close(void)
{
	pthread_rwlock_wrlock(&loader);
}

void host_loader_open(void)
{
	pthread_rwlock_unlock(&loader);
}

/* --- Plugins ----------------------------------------------------------------------------- */

/* The plugin that a poll runs in; '\0': none. */
static char plugin_of_poll(uint64_t id, uint64_t poll)
{
	unsigned state = (unsigned)(id * 2654435761u + poll * 40503u);
	unsigned choice = (random_below(&state, 1000), random_below(&state, 64));

	if (!host_parts.plugins || choice < 6)
		return '\0';
	if (choice == 6 && host_parts.constructor)
		return 'd';
	return choice < 10 ? 'e' : "abc"[choice % 3];
}

/* Which plugin was last seen at an address. */
static void note_place(const void *place, char plugin)
{
	static _Atomic(const void *) places[256];
	static atomic_char plugins[256];
	size_t i = ((uintptr_t)place >> 12) % 256;

	/* Of two that come at once one may be counted wrongly: it is only a count. */
	if (atomic_exchange(&places[i], place) == place && atomic_load(&plugins[i]) != plugin)
		atomic_fetch_add(&host_counts.same_place, 1);
	atomic_store(&plugins[i], plugin);
}

/* Each polling thread has copies of its own, so that its plugin really goes when it is unloaded. */
static _Thread_local unsigned copy;

static void load(struct host_loaded *loaded, char plugin)
{
	host_loader_enter();
	ops_begin("dlopen() of a plugin in a poll");
	host_load_copy(loaded, plugin, copy);
	ops_end();
	host_loader_leave();
	note_place(loaded->plugin, plugin);
	atomic_fetch_add(&host_counts.loads, 1);
}

static void unload(struct host_loaded *loaded)
{
	host_loader_enter();
	ops_begin("dlclose() of a plugin in a poll");
	host_unload(loaded);
	ops_end();
	host_loader_leave();
}

/* --- Tasks ----------------------------------------------------------------------------------- */

struct task {
	pthread_mutex_t turn; /* its holder polls, and reads and writes the rest */
	struct tdt_traced traced;
	uint64_t id;
	uint64_t polls;
	unsigned seed;
	const struct tdt_waker *kept[2]; /* clones, until the next poll */
};

static struct task tasks[TASKS];

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };
const struct tdt_waker host_waker = { &vtable };

static void drop_kept(struct task *task)
{
	for (int i = 0; i < 2; i++) {
		tdt_waker_drop(task->kept[i]);
		task->kept[i] = NULL;
	}
}

/* What happens inside a plugin, or elsewhere. */
struct stay {
	struct task *task;
	struct tdt_context *cx;
};

static void spin(unsigned ns)
{
	uint64_t end = ops_now() + ns;

	while (ops_now() < end)
		;
}

static void spend_time(unsigned *seed)
{
	unsigned kind = random_below(seed, 8), ms = random_below(seed, 25);
	struct timespec time = { 0, (long)ms * MS };

	if (kind < 2)
		spin(ms * MS / 4);
	else if (kind < 5)
		nanosleep(&time, NULL);
	else if (kind < 7)
		ppoll(NULL, 0, &time, NULL);
}

static __attribute__((noinline)) void stay(void *arg)
{
	struct stay *here = arg;
	struct task *task = here->task;
	bool early = random_below(&task->seed, 2) == 0;

	if (early)
		task->kept[0] = tdt_waker_clone(here->cx->waker);
	spend_time(&task->seed);
	if (!early && random_below(&task->seed, 2) == 0)
		task->kept[0] = tdt_waker_clone(here->cx->waker);
	TDT_KEEP_FRAME();
}

static tdt_poll_t task_poll(void *state, struct tdt_context *cx)
{
	struct task *task = state;
	struct stay here = { task, cx };
	struct host_loaded loaded;
	char plugin = plugin_of_poll(task->id, ++task->polls);

	drop_kept(task);
	if (plugin != '\0') {
		load(&loaded, plugin);
		host_run(&loaded, stay, &here);
		unload(&loaded);
	} else {
		stay(&here);
	}
	if (task->polls >= POLLS_OF_TASK + task->id % POLLS_OF_TASK)
		return TDT_READY;
	task->kept[1] = tdt_waker_clone(cx->waker);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void task_drop(void *state)
{
	drop_kept(state);
}

static void task_start(struct task *task)
{
	struct tdt_future future = { task, task_poll, task_drop };

	task->polls = 0;
	ops_begin("tdt_traced()");
	task->traced = tdt_traced(future);
	ops_end();
	MUST(task->traced.handle != NULL);
	task->id = tdt_handle_id(task->traced.handle);
	atomic_fetch_add(&host_counts.tasks, 1);
}

static void task_end(struct task *task)
{
	ops_begin("dropping a task");
	tdt_future_drop(&task->traced.future);
	tdt_handle_unref(task->traced.handle);
	ops_end();
}

static void poll_one(struct task *task)
{
	struct tdt_context cx = { &host_waker };
	tdt_poll_t result = tdt_future_poll(&task->traced.future, &cx);

	MUST(result != TDT_PANICKED);
	atomic_fetch_add(&host_counts.polls, 1);
	if (result == TDT_PENDING)
		return;
	task_end(task);
	task_start(task);
}

/* --- Alternate stacks ----------------------------------------------------------------------- */

/* What a handler may take beyond an empty one. */
#define HANDLER_ROOM 1024

static void handle(int number)
{
	(void)number;
	atomic_fetch_add(&host_counts.handled, 1);
}

/* How far down the stack a signal with this handler goes; the stack was filled with a pattern. */
static size_t depth_of_handler(unsigned char *stack, size_t size)
{
	size_t untouched = 0;

	memset(stack, 0x5a, size);
	raise(SIGUSR1);
	while (untouched < size && stack[untouched] == 0x5a)
		untouched++;
	return size - untouched;
}

static size_t small_size; /* of an alternate stack */

static void measure_handler(void)
{
	static unsigned char stack[1 << 16];
	stack_t large = { .ss_sp = stack, .ss_size = sizeof stack },
		none = { .ss_flags = SS_DISABLE };

	MUST(sigaltstack(&large, NULL) == 0);
	small_size = (depth_of_handler(stack, sizeof stack) + HANDLER_ROOM + 15) & ~(size_t)15;
	MUST(sigaltstack(&none, NULL) == 0);
	printf("# alternate stacks have %zu bytes, of which an empty handler takes %zu\n",
	       small_size, small_size - HANDLER_ROOM);
}

/* An alternate stack whose low end is that of its memory: one that goes beyond it hits a guard. */
struct altstack {
	unsigned char *memory;
	size_t size;
};

static void altstack_begin(struct altstack *altstack)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	stack_t stack = { .ss_size = small_size };

	altstack->size = page + ((small_size + page - 1) & ~(page - 1));
	altstack->memory =
	    mmap(NULL, altstack->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(altstack->memory != MAP_FAILED);
	MUST(mprotect(altstack->memory, page, PROT_NONE) == 0);
	stack.ss_sp = altstack->memory + page;
	MUST(sigaltstack(&stack, NULL) == 0);
}

static void altstack_end(const struct altstack *altstack)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	MUST(sigaltstack(&none, NULL) == 0);
	munmap(altstack->memory, altstack->size);
}

/* --- Threads that poll ------------------------------------------------------------------------ */

static struct poller {
	unsigned seed;
	atomic_int thread; /* its id; 0: none */
	pthread_t supervisor;
} pollers[POLLERS];

static bool has_altstack(void)
{
	return host_parts.altstacks && !ASAN && !TSAN;
}

static void poll_some(struct poller *poller)
{
	for (int i = 0; i < POLLS_OF_THREAD && !atomic_load(&ending);) {
		struct task *task = &tasks[random_below(&poller->seed, TASKS)];

		if (pthread_mutex_trylock(&task->turn) != 0)
			continue;
		poll_one(task);
		pthread_mutex_unlock(&task->turn);
		usleep(random_below(&poller->seed, 1000));
		i++;
	}
}

static void *poll_on(void *arg)
{
	struct poller *poller = arg;
	struct altstack altstack = { 0 };

	if (has_altstack())
		altstack_begin(&altstack);
	atomic_store(&poller->thread, gettid());
	copy = 1 + (unsigned)(poller - pollers);
	do
		poll_some(poller);
	while (!host_parts.threads && !atomic_load(&ending));
	atomic_store(&poller->thread, 0);
	if (has_altstack())
		altstack_end(&altstack);
	ops_leave();
	return NULL;
}

static void *supervise(void *arg)
{
	while (!atomic_load(&ending)) {
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, poll_on, arg) == 0);
		MUST(pthread_join(thread, NULL) == 0);
		atomic_fetch_add(&host_counts.threads, 1);
	}
	return NULL;
}

void host_signal_one(unsigned *state)
{
	int thread = atomic_load(&pollers[random_below(state, POLLERS)].thread);

	if (thread != 0 && syscall(SYS_tgkill, getpid(), thread, SIGUSR1) == 0)
		atomic_fetch_add(&host_counts.signals, 1);
}

void host_tasks_begin(unsigned seed)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART };

	sigfillset(&action.sa_mask);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	if (has_altstack())
		measure_handler();
	for (const char *plugin = "abcde"; *plugin != '\0'; plugin++)
		host_copy(*plugin, POLLERS);
	for (int i = 0; i < TASKS; i++) {
		pthread_mutex_init(&tasks[i].turn, NULL);
		tasks[i].seed = seed + 1000 + (unsigned)i;
		task_start(&tasks[i]);
	}
	for (int i = 0; i < POLLERS; i++) {
		pollers[i].seed = seed + (unsigned)i;
		MUST(pthread_create(&pollers[i].supervisor, NULL, supervise, &pollers[i]) == 0);
	}
}

void host_tasks_end(void)
{
	atomic_store(&ending, true);
	for (int i = 0; i < POLLERS; i++)
		pthread_join(pollers[i].supervisor, NULL);
	for (int i = 0; i < TASKS; i++)
		task_end(&tasks[i]);
}

/* --- What traces say ---------------------------------------------------------------------------
 */

/* Only the first few are printed. */
static void complain(const struct tdt_trace *trace, char right, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (atomic_fetch_add(&host_counts.wrong, 1) >= 3)
		return;
	out = open_memstream(&text, &size);
	MUST(out != NULL);
	tdt_trace_print(trace, out);
	fclose(out);
	printf("# %s (the poll was in plugin %c):\n%s", what, right != '\0' ? right : '-', text);
	fflush(stdout);
	free(text);
}

/* The plugin in which the poll was that the tree is of. */
static char right_plugin(const struct tdt_task_info *info)
{
	return plugin_of_poll(info->id, info->polls - info->polls_since);
}

/* ThreadSanitizer calls handlers later: the stack of a poll that ran is by then another. */
static bool may_be_late(const struct tdt_task_info *info)
{
	return TSAN && info->state == TDT_TASK_RUNNING;
}

static void judge(const struct tdt_trace *trace, const struct tdt_task_info *info,
		  const struct host_said *said)
{
	const char *wrong = said->wrong;

	if (wrong == NULL && said->plugin != '\0' && said->plugin != right_plugin(info))
		wrong = "a plugin is named that the poll was not in";
	if (wrong == NULL)
		return;
	if (said->guessed || may_be_late(info))
		atomic_fetch_add(&host_counts.wrong_marked, 1);
	else
		complain(trace, right_plugin(info), wrong);
}

static struct host_said look(const struct tdt_trace *trace)
{
	struct host_said said;

	ops_begin("looking up the names of a trace");
	MUST(tdt_trace_root(trace) != NULL);
	ops_end();
	said = host_said(trace);
	if (said.plugin != '\0') {
		atomic_fetch_add(&host_counts.named, 1);
		atomic_fetch_add(&host_counts.guessed, said.guessed);
	}
	return said;
}

void host_check(const struct tdt_trace *trace)
{
	struct host_said said = look(trace);

	judge(trace, tdt_trace_info(trace), &said);
}

void host_check_group(const struct tdt_snapshot_group *group)
{
	struct host_said said;

	if (group->trace == NULL)
		return;
	said = look(group->trace);
	for (size_t i = 0; i < group->n; i++)
		judge(group->trace, group->tasks[i], &said);
}

static tdt_poll_t host_idle_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void drop_nothing(void *state)
{
	(void)state;
}

struct tdt_future host_idle_future(void)
{
	return (struct tdt_future){ NULL, host_idle_poll, drop_nothing };
}
