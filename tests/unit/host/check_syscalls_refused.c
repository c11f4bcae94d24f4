// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tdt/tdt.h.  A filter (seccomp) refuses system calls: whichever it refuses, and with
 * whatever error, the process lives, tasks are polled, and dumps come to their end.  What is lost
 * then is what tdt(3) says in "SYSTEM CALLS", and nothing else.
 */

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#include "lib/options.h"
#include "lib/refused.h"
#include "lib/test.h"

/* How long is waited for what must come, and for what won't, ns. */
#define LATE INT64_C(30000000000)
#define SOON INT64_C(100000000)

/* --- What may be lost ------------------------------------------------------------------ */

enum lost {
	NOTHING = 0,
	LOST_BLOCKED = 1,     /* polls that are blocked in the kernel are not read */
	LOST_RUNNING = 2,     /* nor are those that run */
	LOST_NAMES = 4,	      /* frames are module and offset */
	LOST_PLUGINS = 8,     /* those of modules that may be unloaded are */
	LOST_WATCH = 16,      /* tdt_watch() fails */
	LOST_ON_SIGNAL = 32,  /* tdt_dump_on_signal() fails */
	LOST_COROUTINES = 64, /* tdt_coroutine() fails */
	LOST_FORK = 128,      /* the host's own fork() fails, or its child can't have threads */
	LOST_CHILDS = 256, /* in a child of fork() tasks of other threads than that which forked are
			      not woken */
	LOST_CALLERS = 512 /* backtraces are cut, as they say */
};

static const char *lost_text(int lost)
{
	static const char *const names[] = { "blocked", "running",   "names",	   "plugins",
					     "watch",	"on-signal", "coroutines", "fork",
					     "childs",	"callers" };
	static char text[256];

	text[0] = '\0';
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if ((lost >> i & 1) != 0)
			strcat(strcat(text, " "), names[i]);
	return text;
}

/* Calls that are refused together, as a filter that means one of them would. */
struct refusal {
	const char *name;
	int lost;
	long call[4]; /* ends with 0: that is read(), on x86-64 */
};

#ifdef SYS_readlink
#define READLINK SYS_readlink
#define ACCESS SYS_access
#else
#define READLINK SYS_readlinkat
#define ACCESS SYS_faccessat
#endif

/*
 * Not among them is what no filter can refuse that wants the host to live: futex, mmap,
 * rt_sigreturn, exit; rseq, for glibc ends a process whose second thread can't have it; brk, whose
 * -1 glibc takes for an address; and getpid and gettid, which can't fail: -1 as a process id is
 * everybody.
 */
static const struct refusal refusals[] = {
	{ "nothing", NOTHING, { 0 } },
	{ "membarrier", NOTHING, { SYS_membarrier } },
	{ "process_vm_readv", NOTHING, { SYS_process_vm_readv } },
	/* What follows all kernels have. */
	{ "openat", LOST_NAMES | LOST_PLUGINS | LOST_BLOCKED | LOST_RUNNING, { SYS_openat } },
	{ "process_vm_readv and openat",
	  LOST_NAMES | LOST_PLUGINS | LOST_BLOCKED | LOST_RUNNING | LOST_CALLERS,
	  { SYS_process_vm_readv, SYS_openat } },
	{ "newfstatat, fstat", LOST_NAMES | LOST_PLUGINS, { SYS_newfstatat, SYS_fstat } },
	{ "fstatfs", NOTHING, { SYS_fstatfs } },
	{ "pread64", NOTHING, { SYS_pread64 } },
	{ "readlink", NOTHING, { READLINK, SYS_readlinkat } },
	{ "access", NOTHING, { ACCESS, SYS_faccessat } },
	{ "fcntl", NOTHING, { SYS_fcntl } },
	{ "ioctl", NOTHING, { SYS_ioctl } },
	{ "clone3 and clone",
	  LOST_PLUGINS | LOST_WATCH | LOST_ON_SIGNAL | LOST_CALLERS | LOST_FORK,
	  { SYS_clone, SYS_clone3 } },
	{ "prctl", NOTHING, { SYS_prctl } },
	{ "set_robust_list", NOTHING, { SYS_set_robust_list } },
	{ "rt_sigprocmask", NOTHING, { SYS_rt_sigprocmask } },
	{ "rt_sigaction", LOST_RUNNING | LOST_ON_SIGNAL, { SYS_rt_sigaction } },
	{ "rt_tgsigqueueinfo", LOST_RUNNING, { SYS_rt_tgsigqueueinfo } },
	{ "clock_nanosleep", NOTHING, { SYS_clock_nanosleep } },
	{ "sched_yield", NOTHING, { SYS_sched_yield } },
	{ "tgkill", LOST_CHILDS, { SYS_tgkill } },
	{ "getuid", NOTHING, { SYS_getuid } },
	{ "sched_getaffinity, prlimit64", NOTHING, { SYS_sched_getaffinity, SYS_prlimit64 } },
	{ "pipe2, mincore", NOTHING, { SYS_pipe2, SYS_mincore } },
	{ "madvise", NOTHING, { SYS_madvise } },
	{ "mremap", NOTHING, { SYS_mremap } },
	{ "mprotect",
	  LOST_PLUGINS | LOST_WATCH | LOST_ON_SIGNAL | LOST_COROUTINES | LOST_CALLERS,
	  { SYS_mprotect } },
	{ "sysinfo, getrandom", NOTHING, { SYS_sysinfo, SYS_getrandom } },
};

#define OLDER_KERNELS 3 /* so many may be missing in one */

/* On all threads there are. */
static void refuse(const struct refusal *refusal, int error)
{
	struct sock_filter code[16];
	struct sock_fprog program = { .filter = code };
	unsigned short n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < 4 && refusal->call[i] != 0; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)refusal->call[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 SECCOMP_RET_ERRNO | (unsigned)error);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
	     0);
}

/* --- Tasks ----------------------------------------------------------------------------- */

static __attribute__((noinline)) void some_leaf(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	some_leaf(cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static sem_t gate;
static atomic_bool spin = true;
static atomic_int stuck;

static __attribute__((noinline)) tdt_poll_t blocked_poll(void *state, struct tdt_context *cx)
{
	atomic_fetch_add(&stuck, 1);
	while (sem_wait(&gate) != 0)
		;
	return TDT_READY;
}

static __attribute__((noinline)) tdt_poll_t spinning_poll(void *state, struct tdt_context *cx)
{
	atomic_fetch_add(&stuck, 1);
	while (atomic_load(&spin))
		;
	return TDT_READY;
}

/* A task with a thread of its own, which polls when it is woken. */
struct task {
	struct tdt_waker waker; /* first */
	struct tdt_traced traced;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	pthread_t thread;
	sem_t ready; /* the thread has started, and takes signals */
	sem_t woken;
	atomic_int polls;
	atomic_bool over;
};

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	sem_post(&((struct task *)(uintptr_t)waker)->woken);
}

static void waker_drop(const struct tdt_waker *waker)
{
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, waker_drop };

static void *work(void *argument)
{
	struct task *task = argument;
	struct tdt_context cx = { &task->waker };

	sem_post(&task->ready);
	for (;;) {
		while (sem_wait(&task->woken) != 0)
			;
		if (atomic_load(&task->over))
			return NULL;
		tdt_future_poll(&task->traced.future, &cx);
		atomic_fetch_add(&task->polls, 1);
	}
}

/* The thread starts before the filter, the task comes after it.  False: threads are refused. */
static bool task_prepare(struct task *task, tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	*task = (struct task){ .waker = { &vtable }, .poll = poll };
	sem_init(&task->ready, 0, 0);
	sem_init(&task->woken, 0, 0);
	if (pthread_create(&task->thread, NULL, work, task) != 0)
		return false;
	while (sem_wait(&task->ready) != 0)
		;
	return true;
}

static void task_start(struct task *task)
{
	struct tdt_future future = { NULL, task->poll, drop_nothing };

	task->traced = tdt_traced(future);
	MUST(task->traced.handle != NULL);
	waker_wake(&task->waker);
}

static void task_end(struct task *task)
{
	atomic_store(&task->over, true);
	waker_wake(&task->waker);
	MUST(pthread_join(task->thread, NULL) == 0);
	end_traced(&task->traced);
}

/* --- What is found to be lost ---------------------------------------------------------- */

static char *text_of(const struct tdt_trace *trace)
{
	return TEXT_WRITTEN(out, MUST(tdt_trace_print(trace, out) == 0));
}

/* Its tree has `function`, or what is told instead. */
static int look_at(const struct tdt_trace *trace, const char *function, const char *module,
		   int lost_names)
{
	TEXT(text, text_of(trace));
	int lost = NOTHING;

	MUST(tdt_trace_info(trace)->leaves == 1);
	if (strstr(text, "cut") != NULL || strstr(text, "missing") != NULL)
		lost |= LOST_CALLERS;
	if (strstr(text, function) == NULL) {
		MUST(strstr(text, (lost & LOST_CALLERS) == 0 ? module : " 0x") != NULL);
		lost |= lost_names;
	}
	if (lost != NOTHING)
		printf("# %s", text);
	return lost;
}

static int ask(struct task *task, const char *function, const char *module, int lost_names)
{
	struct tdt_trace *trace = backtrace_timed(task->traced.handle, LATE);
	int lost;

	MUST(trace != NULL);
	lost = look_at(trace, function, module, lost_names);
	tdt_trace_free(trace);
	return lost;
}

/*
 * If the machine has no time for the library's thread that knows whether a module was unloaded, the
 * callers are marked as missing, whatever is refused: then ask again.
 */
static int ask_plugged(struct task *task, int may_lose)
{
	int lost;

	while (((lost = ask(task, "plugin_a_leaf at ", "plugin_a.so+0x", LOST_PLUGINS)) &
		~may_lose) != 0)
		usleep(100000);
	return lost;
}

static int ask_stuck(struct task *task, int may_lose)
{
	struct tdt_trace *trace =
	    backtrace_timed(task->traced.handle, may_lose != NOTHING ? SOON : LATE);

	if (trace == NULL) {
		MUST(errno == ETIMEDOUT);
		return may_lose;
	}
	MUST(tdt_trace_info(trace)->state == TDT_TASK_RUNNING);
	tdt_trace_free(trace);
	return NOTHING;
}

/* All tasks are in it, each with what it can show; and it says how many can't. */
static void dump(int lost)
{
	size_t unread = (size_t)((lost & LOST_BLOCKED) != 0) + (size_t)((lost & LOST_RUNNING) != 0);
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = unread == 0 ? LATE : 20 * SOON };
	char *text = TEXT_WRITTEN(out, MUST(tdt_dump_with(out, &options) == 0)), wanted[64];

	printf("# %.*s\n", (int)strcspn(text, "\n"), text);
	MUST(strncmp(text, "4 tasks: 2 answered", 19) == 0);
	snprintf(wanted, sizeof wanted, ", %zu running", 2 - unread);
	MUST((strstr(text, wanted) != NULL) == (unread < 2));
	snprintf(wanted, sizeof wanted, ", %zu without a tree", unread);
	MUST((strstr(text, wanted) != NULL) == (unread > 0));
	free(text);
}

static int watch(struct task *task)
{
	struct tdt_trace *last = NULL;

	if (tdt_watch(1000000, NULL) != 0)
		return LOST_WATCH;
	while (last == NULL) {
		int polls = atomic_load(&task->polls);

		waker_wake(&task->waker);
		while (atomic_load(&task->polls) == polls)
			usleep(1000);
		last = tdt_backtrace_last(task->traced.handle);
	}
	tdt_trace_free(last);
	MUST(tdt_watch(0, NULL) == 0);
	return NOTHING;
}

/*
 * stderr is a pipe to this test for a while.  The signal comes from a timer (a task spins
 * meanwhile), which can hit no other process.  (A filter makes nonsense of what a call returns:
 * kill(getpid(), ...) would be kill(-1, ...), of all processes there are.)
 */
static int dump_on_signal(const int pipe[2])
{
	const struct itimerval once = { .it_value = { .tv_usec = 1000 } };
	int old = dup(STDERR_FILENO);
	char byte;

	MUST(old >= 0);
	if (tdt_dump_on_signal(SIGVTALRM, NULL) != 0) {
		close(old);
		return LOST_ON_SIGNAL;
	}
	MUST(dup2(pipe[1], STDERR_FILENO) == STDERR_FILENO);
	MUST(setitimer(ITIMER_VIRTUAL, &once, NULL) == 0);
	MUST(read(pipe[0], &byte, 1) == 1);
	MUST(tdt_dump_on_signal(0, NULL) == 0);
	MUST(dup2(old, STDERR_FILENO) == STDERR_FILENO);
	close(old);
	return NOTHING;
}

/* In a child: ask a task of a thread of the child's.  Returns what is lost: LOST_FORK, or
 * LOST_CHILDS. */
static int child_lost(int may_lose)
{
	struct tdt_trace *trace;
	struct task task;

	if (!task_prepare(&task, waiting_poll))
		return LOST_FORK;
	task_start(&task);
	while (atomic_load(&task.polls) == 0)
		usleep(1000);
	trace =
	    backtrace_timed(task.traced.handle, (may_lose & LOST_CHILDS) != 0 ? SOON : LATE);
	MUST(trace != NULL || errno == ETIMEDOUT);
	return trace != NULL ? NOTHING : LOST_CHILDS;
}

static int in_child(int may_lose)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return LOST_FORK;
	if (child == 0)
		_exit(child_lost(may_lose) / LOST_FORK);
	MUST(waitpid(child, &status, 0) == child);
	MUST(WIFEXITED(status));
	return WEXITSTATUS(status) * LOST_FORK;
}

static int co(void *argument)
{
	return 0;
}

static int coroutine(void)
{
	struct tdt_future future = tdt_coroutine(co, NULL, NULL);

	if (tdt_future_is_none(&future))
		return LOST_COROUTINES;
	tdt_future_drop(&future);
	return NOTHING;
}

/* --- Plugins, and stacks that nobody told of ------------------------------------------- */

static tdt_poll_t (*plugin)(void *state, struct tdt_context *cx);

static __attribute__((noinline)) tdt_poll_t in_plugin_poll(void *state, struct tdt_context *cx)
{
	plugin(NULL, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void plugin_open(void)
{
	void *library = dlopen(PLUGINS "/plugin_a.so", RTLD_NOW | RTLD_LOCAL);

	ck_assert_msg(library != NULL, "%s", dlerror());
	*(void **)&plugin = dlsym(library, "plugin_poll");
	MUST(plugin != NULL);
}

static ucontext_t here, there;
static struct task *there_task;
static struct tdt_trace *there_trace;

/* The whole poll, and its wrapper, on one such stack: polled twice, of which the second answers. */
static void poll_there(void)
{
	struct tdt_context cx = { &there_task->waker }, requester_cx = { &there_task->waker };
	struct tdt_future future = { NULL, waiting_poll, drop_nothing }, requester;

	there_task->traced = tdt_traced(future);
	tdt_future_poll(&there_task->traced.future, &cx);
	requester = tdt_backtrace_async(there_task->traced.handle, NULL, &there_trace, NULL);
	tdt_future_poll(&requester, &requester_cx);
	tdt_future_poll(&there_task->traced.future, &cx);
	MUST(tdt_future_poll(&requester, &requester_cx) == TDT_READY && there_trace != NULL);
	tdt_future_drop(&requester);
	end_traced(&there_task->traced);
}

static int on_odd_stack(void)
{
	struct task task = { .waker = { &vtable } };
	char *stack = malloc(1 << 17);
	int lost;

	MUST(stack != NULL);
	sem_init(&task.woken, 0, 0);
	there_task = &task;
	getcontext(&there);
	there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = 1 << 17 };
	there.uc_link = &here;
	makecontext(&there, poll_there, 0);
	if (swapcontext(&here, &there) != 0) { /* for it saves the signals that are blocked */
#ifdef __x86_64__
		__asm__ volatile("" ::: "r12"); /* glibc 2.36 returns with another one then */
#endif
		free(stack);
		return NOTHING;
	}
	lost = look_at(there_trace, "some_leaf at ", "check_syscalls_refused+0x", LOST_NAMES);
	tdt_trace_free(there_trace);
	free(stack);
	return lost;
}

/* --- All of it ------------------------------------------------------------------------- */

static int find_lost(const struct refusal *refusal, int error, bool later)
{
	struct task waiting, plugged, blocked, spinning;
	int lost = NOTHING, pipes[2];

	MUST(pipe(pipes) == 0);
	sem_init(&gate, 0, 0);
	plugin_open();
	MUST(task_prepare(&waiting, waiting_poll));
	MUST(task_prepare(&plugged, in_plugin_poll));
	MUST(task_prepare(&blocked, blocked_poll));
	MUST(task_prepare(&spinning, spinning_poll));
	if (later) {
		task_start(&waiting);
		MUST(ask(&waiting, "some_leaf at ", "", LOST_NAMES) == NOTHING);
	}
	refuse(refusal, error);
	if (!later)
		task_start(&waiting);
	task_start(&plugged);
	for (int i = 0; i < 3; i++)
		lost |= ask(&waiting, "some_leaf at ", "check_syscalls_refused+0x", LOST_NAMES);
	for (int i = 0; i < 3; i++)
		lost |= ask_plugged(&plugged, refusal->lost);
	lost |= on_odd_stack();
	task_start(&blocked);
	task_start(&spinning);
	while (atomic_load(&stuck) < 2)
		usleep(1000);
	lost |= ask_stuck(&blocked, refusal->lost & LOST_BLOCKED);
	lost |= ask_stuck(&spinning, refusal->lost & LOST_RUNNING);
	dump(lost);
	lost |= watch(&waiting);
	lost |= dump_on_signal(pipes);
	lost |= in_child(refusal->lost);
	lost |= coroutine();
	sem_post(&gate);
	atomic_store(&spin, false);
	task_end(&waiting);
	task_end(&plugged);
	task_end(&blocked);
	task_end(&spinning);
	return lost;
}

static void check_lost(const struct refusal *refusal, int error, bool later)
{
	/* What was named before has its names. */
	int wanted = later ? refusal->lost & ~LOST_NAMES : refusal->lost;
	int lost = find_lost(refusal, error, later);

	/* Without new threads the library has those that it began with. */
	if (later && (refusal->lost & LOST_WATCH) != 0)
		wanted &= ~(LOST_PLUGINS | LOST_CALLERS);
	ck_assert_msg(lost == wanted, "%s, %s:%s is lost", refusal->name, strerrorname_np(error),
		      lost_text(lost));
}

static const char *impossible(void)
{
	const unsigned action = SECCOMP_RET_ERRNO;

	if (ASAN || TSAN || in_valgrind())
		return "sanitizers and valgrind have calls of their own refused, too";
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
		return "the kernel has no filters for system calls";
	return reading_refused();
}

SUITE_SKIP(impossible())

CASE(syscalls_refused)

/*
 * Each is refused at the beginning, or when the library is in use, and then with another error, as
 * some filters have it.  Which of the two is chosen at random, unless both are tried.
 */
static int count_moments(void)
{
	return (test_in_full() ? 2 : 1) * (int)(sizeof refusals / sizeof refusals[0]);
}

TEST(refused_with_any_error_the_host_loses_what_the_manual_says, .rounds = count_moments)
{
	unsigned random = seed_of_program() + (unsigned)_i;
	bool later = test_in_full() ? _i % 2 != 0 : random_below(&random, 2) != 0;

	check_lost(&refusals[test_in_full() ? _i / 2 : _i], later ? EACCES : EPERM, later);
}

TEST(refused_with_enosys_the_host_loses_what_the_manual_says, .to = OLDER_KERNELS)
{
	check_lost(&refusals[_i], ENOSYS, false); /* as kernels without them do */
}
