// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A program that goes through all that the library does, one phase after the other, for
 *tests/outside/syscalls.sh to trace.
 *
 * Each phase begins with a write to descriptor -1, which a tracer sees and nobody else does:
 *
 *	write(-1, "phase Printing; host: kill", ...) = -1 EBADF
 *
 * Its name is that of a table in tdt(3), "SYSTEM CALLS".  After `host:` come the calls that this
 *program itself makes in the phase.  What it does between phases belongs to the phase "the host",
 *which has no table.
 */

#include <config.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <tdt/integrate/fiber.h>
#include <tdt/layout/outside.h>
#include <tdt/tdt.h>

#include "lib/folder.h"
#include "lib/must.h"
#include "lib/options.h"
#include "lib/visitor.h"

#define LONG INT64_C(30000000000)

/* Whether another thread than this one isn't asleep. */
static bool is_busy(const char *id)
{
	char path[64], state = 'X';
	FILE *file;

	if (id[0] == '.' || atoi(id) == gettid())
		return false;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", atoi(id));
	file = fopen(path, "re");
	if (file == NULL)
		return false; /* it has ended */
	MUST(fscanf(file, "%*d (%*[^)]) %c", &state) != 0);
	fclose(file);
	return state != 'S' && state != 'X' && state != 'Z';
}

static atomic_bool spin; /* a thread of the host's does, for as long as that is so */

/* Wait until the library's threads have done what they have to do: else they would do it in the
 * next phase. */
static void settle(void)
{
	int quiet = 0;

	while (!atomic_load(&spin) && quiet < 3) {
		DIR *tasks = opendir("/proc/self/task");
		bool busy = false;
		struct dirent *task;

		MUST(tasks != NULL);
		while ((task = readdir(tasks)) != NULL)
			busy = busy || is_busy(task->d_name);
		closedir(tasks);
		quiet = busy ? 0 : quiet + 1;
		usleep(1000);
	}
}

static void phase(const char *name)
{
	char text[128];
	int n = snprintf(text, sizeof text, "phase %s", name);

	syscall(SYS_write, -1, text, (size_t)n);
}

static void host(void)
{
	phase("the host");
	settle();
}

/* --- A task on the requester's thread -------------------------------------------------- */

struct task {
	struct tdt_waker waker;
	struct tdt_traced traced;
	bool held; /* a wake-up doesn't poll */
	bool polling;
};

static void poll_task(struct task *task)
{
	struct tdt_context cx = { &task->waker };

	task->polling = true;
	tdt_future_poll(&task->traced.future, &cx);
	task->polling = false;
}

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	struct task *task = (struct task *)(uintptr_t)waker;

	if (!task->held && !task->polling)
		poll_task(task);
}

static void waker_drop(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, waker_drop };

static void drop_nothing(void *state)
{
	(void)state;
}

static void task_init(struct task *task, tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
		      void *state)
{
	struct tdt_future future = { state, poll, drop_nothing };

	*task = (struct task){ .waker = { &vtable }, .traced = tdt_traced(future) };
	MUST(task->traced.handle != NULL);
}

static void task_fini(struct task *task)
{
	tdt_future_drop(&task->traced.future);
	tdt_handle_unref(task->traced.handle);
}

static __attribute__((noinline)) void leaf(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	leaf(cx);
	leaf(cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Ask, have the task polled in a phase of its own, and take the answer. */
static struct tdt_trace *ask(struct task *task, const char *polled)
{
	struct tdt_trace *trace = NULL;
	struct task requester = { .waker = { &vtable }, .held = true };
	struct tdt_context cx = { &requester.waker };
	struct tdt_future future;

	phase("Requests");
	future = tdt_backtrace_async(task->traced.handle, NULL, &trace, NULL);
	task->held = true;
	tdt_future_poll(&future, &cx);
	phase(polled);
	poll_task(task);
	phase("Requests");
	MUST(tdt_future_poll(&future, &cx) == TDT_READY && trace != NULL);
	tdt_future_drop(&future);
	host();
	task->held = false;
	return trace;
}

/* --- First use, polls, requests -------------------------------------------------------- */

static sem_t go, done;

static void *poll_on_thread(void *argument)
{
	sem_wait(&go);
	poll_task(argument);
	sem_post(&done);
	sem_wait(&go);
	return NULL;
}

static void first_use(struct task *task)
{
	struct task other;
	pthread_t thread;

	phase("First use");
	task_init(task, waiting_poll, NULL);
	poll_task(task);
	host();
	task_init(&other, waiting_poll, NULL);
	MUST(pthread_create(&thread, NULL, poll_on_thread, &other) == 0);
	settle();
	phase("First use");
	sem_post(&go);
	sem_wait(&done);
	host();
	sem_post(&go);
	pthread_join(thread, NULL);
	task_fini(&other);
}

static void polls(struct task *task)
{
	phase("Polls");
	for (int i = 0; i < 3; i++)
		poll_task(task);
	host();
	tdt_trace_free(ask(task, "Polls that learn"));
	tdt_trace_free(ask(task, "Polls"));
}

/* Polls whenever it is woken. */
struct worker {
	struct tdt_waker waker; /* first */
	struct tdt_traced traced;
	sem_t woken;
	atomic_bool over;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
};

static void worker_wake(const struct tdt_waker *waker)
{
	sem_post(&((struct worker *)(uintptr_t)waker)->woken);
}

static const struct tdt_waker_vtable worker_vtable = { waker_clone, worker_wake, worker_wake,
						       waker_drop };

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct tdt_context cx = { &worker->waker };

	while (!atomic_load(&worker->over)) {
		tdt_future_poll(&worker->traced.future, &cx);
		sem_post(&done);
		while (sem_wait(&worker->woken) != 0)
			;
	}
	return NULL;
}

static void worker_init(struct worker *worker,
			tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct tdt_future future = { NULL, poll, drop_nothing };

	*worker = (struct worker){ .waker = { &worker_vtable }, .traced = tdt_traced(future) };
	MUST(worker->traced.handle != NULL);
	sem_init(&worker->woken, 0, 0);
}

static void requests(void)
{
	struct worker worker;
	pthread_t thread;

	worker_init(&worker, waiting_poll);
	MUST(pthread_create(&thread, NULL, work, &worker) == 0);
	sem_wait(&done);
	tdt_trace_free(tdt_backtrace(worker.traced.handle)); /* its thread learns */
	for (int i = 0; i < 10; i++) {
		struct tdt_trace *trace;

		phase("Requests");
		trace = backtrace_timed(worker.traced.handle, LONG);
		MUST(trace != NULL && tdt_trace_info(trace)->leaves == 2);
		tdt_trace_free(trace);
		host();
	}
	atomic_store(&worker.over, true);
	sem_post(&worker.woken);
	pthread_join(thread, NULL);
	tdt_future_drop(&worker.traced.future);
	tdt_handle_unref(worker.traced.handle);
	sem_init(&done, 0, 0);
}

/* --- On a stack that nobody told of ---------------------------------------------------- */

static ucontext_t here, there;

static void poll_there(void)
{
	struct task task;

	task_init(&task, waiting_poll, NULL);
	poll_task(&task);
	for (int i = 0; i < 2; i++)
		tdt_trace_free(ask(&task, "Polls that learn"));
	task_fini(&task);
}

static void odd_stacks(void)
{
	void *stack = malloc(1 << 17);

	MUST(stack != NULL);
	getcontext(&there);
	there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = 1 << 17 };
	there.uc_link = &here;
	makecontext(&there, poll_there, 0);
	swapcontext(&here, &there);
	free(stack);
}

/* --- Running polls --------------------------------------------------------------------- */

static int gate[2];
static atomic_bool entered;

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	char byte;

	(void)state;
	(void)cx;
	atomic_store(&entered, true);
	if (atomic_load(&spin))
		while (atomic_load(&spin))
			;
	else
		MUST(read(gate[0], &byte, 1) == 1);
	return TDT_READY;
}

static void start_stuck(struct worker *worker, pthread_t *thread, bool spins)
{
	worker_init(worker, stuck_poll);
	atomic_store(&spin, spins);
	atomic_store(&entered, false);
	MUST(pthread_create(thread, NULL, work, worker) == 0);
	while (!atomic_load(&entered))
		usleep(1000);
	settle();
}

static void end_stuck(struct worker *worker, pthread_t thread)
{
	if (!atomic_exchange(&spin, false))
		MUST(write(gate[1], "x", 1) == 1);
	sem_wait(&done);
	atomic_store(&worker->over, true);
	sem_post(&worker->woken);
	pthread_join(thread, NULL);
	tdt_future_drop(&worker->traced.future);
	tdt_handle_unref(worker->traced.handle);
}

static void running(void)
{
	MUST(pipe(gate) == 0);
	for (int spins = 0; spins < 2; spins++) {
		struct worker worker;
		struct tdt_trace *trace;
		pthread_t thread;

		start_stuck(&worker, &thread, spins);
		for (int i = 0; i < 3; i++) {
			phase("Running polls");
			trace = backtrace_timed(worker.traced.handle, LONG);
			host();
			MUST(trace != NULL && tdt_trace_info(trace)->state == TDT_TASK_RUNNING);
			tdt_trace_free(trace);
		}
		end_stuck(&worker, thread);
	}
}

/* --- Printing, plugins ----------------------------------------------------------------- */

static void print(struct task *task)
{
	FILE *out = tmpfile();

	MUST(out != NULL);
	for (int i = 0; i < 2; i++) {
		struct tdt_trace *trace = ask(task, "Polls");

		phase("Printing");
		MUST(tdt_trace_print(trace, out) == 0 && fflush(out) == 0);
		host();
		tdt_trace_free(trace);
	}
	MUST(ftell(out) > 0);
	fclose(out);
}

static tdt_poll_t plugin_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t (*poll)(void *, struct tdt_context *) =
	    *(tdt_poll_t(**)(void *, struct tdt_context *))state;

	poll(NULL, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void plugins(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	tdt_poll_t (*poll)(void *, struct tdt_context *);
	struct task task;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(library != NULL && out != NULL);
	*(void **)&poll = dlsym(library, "plugin_poll");
	MUST(poll != NULL);
	task_init(&task, plugin_poll, &poll);
	poll_task(&task);
	for (int i = 0; i < 3; i++) {
		struct tdt_trace *trace;

		phase("Plugins");
		trace = tdt_backtrace(task.traced.handle);
		MUST(trace != NULL);
		phase("Printing");
		tdt_trace_print(trace, out);
		host();
		tdt_trace_free(trace);
	}
	fclose(out);
	MUST(strstr(text, "plugin_poll at ") != NULL);
	free(text);
	task_fini(&task);
	dlclose(library);
}

/* --- Watch, dumps ---------------------------------------------------------------------- */

static void watch(struct task *task)
{
	struct tdt_trace *last = NULL;

	phase("Watching");
	MUST(tdt_watch(1000000, NULL) == 0);
	while (last == NULL) {
		poll_task(task);
		last = tdt_backtrace_last(task->traced.handle);
	}
	MUST(tdt_watch(0, NULL) == 0);
	tdt_trace_free(last);
	host();
}

/* The first round of the recorder's thread comes at once. */
static void recording(struct task *task)
{
	char dir[FOLDER_SIZE];
	struct tdt_recorder_options options = { .size = sizeof options,
						.ring_size = TDT_RING_SIZE_MIN,
						.stacks = TDT_STACKS_EVERY,
						.every = 1,
						.dir = dir };
	char path[4096];
	struct tdt_recorder_status status = { .size = sizeof status,
					      .path = path,
					      .path_size = sizeof path };

	MUST(make_folder(dir));
	phase("Recording");
	MUST(tdt_recorder_start(&options) == 0);
	poll_task(task);
	usleep(50000);
	MUST(tdt_recorder_info(&status) == 0 && tdt_recorder_stop() == 0);
	host();
	MUST(unlink(path) == 0 && rmdir(dir) == 0);
}

static void snapshot_to(const char *dir, const char *name)
{
	char path[IN_FOLDER_SIZE];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	MUST(tdt_recorder_snapshot(path, NULL) == 0);
	unlink(path);
}

static void snapshots(void)
{
	char dir[FOLDER_SIZE];

	MUST(make_folder(dir));
	phase("Snapshots; host: unlink");
	snapshot_to(dir, "rec");
	snapshot_to(dir, "rec.pftrace.gz");
	MUST(tdt_recorder_snapshot("/dev/null", NULL) == -EINVAL);
	MUST(tdt_recorder_snapshot("/nonexistent/x", NULL) == -ENOENT);
	host();
	MUST(rmdir(dir) == 0);
}

static void dumps(struct task *task)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = LONG };
	struct worker worker[2];
	pthread_t thread;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(out != NULL);
	task->held = false;
	start_stuck(&worker[0], &thread, false);
	phase("Dumps");
	MUST(tdt_dump_with(out, &options) == 0);
	host();
	end_stuck(&worker[0], thread);
	start_stuck(&worker[1], &thread, true);
	phase("Dumps");
	MUST(tdt_dump_with(out, &options) == 0);
	host();
	end_stuck(&worker[1], thread);
	fclose(out);
	MUST(strstr(text, "stuck_poll") != NULL && strstr(text, "waiting_poll") != NULL);
	free(text);
}

/* A poll of the task tells that the dump has come to it. */
static atomic_int polled;

static tdt_poll_t counting_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	leaf(cx);
	atomic_fetch_add(&polled, 1);
	return TDT_PENDING;
}

/* Have the signal dump, to `path` (NULL: stderr); it has the task polled for the `n`th time. */
static void one_dump(const char *path, int n)
{
	phase("Dumps on a signal; host: getpid gettid tgkill");
	MUST(tdt_dump_on_signal(SIGUSR1, TO(path)) == 0);
	raise(SIGUSR1);
	while (atomic_load(&polled) < n)
		;
	host(); /* it prints */
}

static void dump_on_signal(void)
{
	char dir[FOLDER_SIZE], path[IN_FOLDER_SIZE];
	struct stat about;
	struct task task;

	MUST(make_folder(dir));
	snprintf(path, sizeof path, "%s/dump", dir);
	task_init(&task, counting_poll, NULL);
	poll_task(&task);
	one_dump(NULL, 2);
	one_dump(path, 3);
	MUST(stat(path, &about) == 0 && about.st_size > 0);
	MUST(unlink(path) == 0 && rmdir(dir) == 0);
	phase("Dumps on a signal");
	MUST(tdt_dump_on_signal(0, NULL) == 0);
	host(); /* its thread ends */
	task_fini(&task);
}

/* --- Coroutines, fork ------------------------------------------------------------------ */

static int co(void *argument)
{
	(void)argument;
	return 0;
}

static void coroutines(void)
{
	struct tdt_future future;

	phase("Coroutines");
	future = tdt_coroutine(co, NULL, NULL);
	MUST(!tdt_future_is_none(&future));
	tdt_future_drop(&future);
	host();
}

/* A fiber whose stack is this one. */
static __attribute__((noinline)) void fibers(void)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);
	struct tdt_trace *trace;

	MUST(fiber != NULL);
	phase("Polls");
	TDT_FIBER_BASE(fiber);
	tdt_fiber_resume(fiber);
	tdt_fiber_suspend(fiber);
	phase("Fibers");
	trace = tdt_backtrace(tdt_fiber_handle(fiber));
	MUST(trace != NULL);
	tdt_trace_free(trace);
	host();
	tdt_fiber_end(fiber);
}

/* What the door's thread does for a reader belongs to this phase. */
static void listening(void)
{
	const struct tdt_outside_trees request = { VISITOR_HEADER(tdt_outside_trees, TREES),
						   .most = 1 };
	char message[TDT_OUTSIDE_MESSAGE_MAX];
	int door, connection;

	phase("Listening");
	MUST(tdt_listen(NULL) == 0);
	host();
	door = visitor_door();
	connection = visitor_come(door);
	visitor_send(connection, &request, sizeof request);
	while (visitor_receive(connection, message, sizeof message) !=
	       sizeof(struct tdt_outside_done))
		;
	close(connection);
	close(door);
	settle();
}

static void forks(struct task *task)
{
	struct tdt_trace *trace;
	struct worker worker;
	pthread_t thread;
	int status;
	pid_t child;

	/* Nobody polls it in the child. */
	worker_init(&worker, waiting_poll);
	MUST(pthread_create(&thread, NULL, work, &worker) == 0);
	sem_wait(&done);
	phase("fork; host: wait4 exit_group");
	child = fork();
	if (child == 0) {
		poll_task(task);
		trace = tdt_backtrace(task->traced.handle);
		MUST(trace != NULL);
		MUST(backtrace_timed(worker.traced.handle, 1000) == NULL);
		tdt_trace_free(trace);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	host();
	atomic_store(&worker.over, true);
	sem_post(&worker.woken);
	pthread_join(thread, NULL);
	tdt_future_drop(&worker.traced.future);
	tdt_handle_unref(worker.traced.handle);
}

int main(int argc, char **argv)
{
	struct task task;

	MUST(argc == 2);
	sem_init(&go, 0, 0);
	sem_init(&done, 0, 0);
	first_use(&task);
	polls(&task);
	requests();
	odd_stacks();
	running();
	print(&task);
	plugins(argv[1]);
	watch(&task);
	recording(&task);
	snapshots();
	dumps(&task);
	dump_on_signal();
	coroutines();
	fibers();
	listening();
	forks(&task);
	task_fini(&task);
	puts("through");
	return EXIT_SUCCESS;
}
