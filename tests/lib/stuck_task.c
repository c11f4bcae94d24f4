// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tasks that are stuck on threads of their own. */

#include <config.h>

#include "lib/stuck_task.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "lib/must.h"
#include "lib/options.h"

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static void drop_nothing(void *state)
{
	(void)state;
}

static void *poll_on_thread(void *argument)
{
	struct stuck_task *task = argument;
	struct tdt_context cx = { &task->waker };

	if (task->before != NULL)
		task->before();
	atomic_store(&task->tid, (unsigned)gettid());
	task->result = tdt_future_poll(&task->traced.future, &cx);
	return NULL;
}

void stuck_task_start(struct stuck_task *task,
		      tdt_poll_t (*poll)(void *state, struct tdt_context *cx), void *state)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };

	task->waker.vtable = &vtable;
	task->traced = tdt_traced(((struct tdt_future){ state, poll, drop_nothing }));
	MUST(task->traced.handle != NULL);
	MUST(pthread_create(&task->thread, task->attr, poll_on_thread, task) == 0);
	while (atomic_load(&task->tid) == 0)
		usleep(200);
}

void stuck_task_end(struct stuck_task *task)
{
	MUST(pthread_join(task->thread, NULL) == 0);
	tdt_future_drop(&task->traced.future);
	tdt_handle_unref(task->traced.handle);
}

void stuck_task_settle(const struct stuck_task *task, bool runs)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof path, "/proc/self/task/%u/syscall", atomic_load(&task->tid));
	/* The number of a system call; -1: it is blocked elsewhere, in a page fault, say. */
	for (int same = 0; same < 3;) {
		int file = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n;

		MUST(file >= 0);
		n = read(file, text, sizeof text - 1);
		close(file);
		MUST(n > 0);
		text[n] = '\0';
		same = (runs ? strncmp(text, "running", 7) == 0 : text[0] >= '0' && text[0] <= '9')
			   ? same + 1
			   : 0;
		usleep(1000);
	}
}

struct tdt_trace *stuck_task_ask(const struct stuck_task *task)
{
	struct tdt_trace *trace = backtrace_timed(task->traced.handle, INT64_C(30000000000));
	const struct tdt_task_info *info;

	ck_assert_msg(trace != NULL, "no trace: errno is %m");
	info = tdt_trace_info(trace);
	ck_assert_int_eq(info->state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info->thread, atomic_load(&task->tid));
	ck_assert_uint_eq(info->polls, 1);
	ck_assert_uint_eq(info->leaves, 1);
	ck_assert_uint_eq(tdt_trace_stacks(trace), 1);
	return trace;
}

void stuck_init(struct stuck *stuck, const struct stuck_poll *kind)
{
	*stuck = (struct stuck){ .in = kind->in, .sleep_ms = 1500 };
	MUST(pipe(stuck->pipe) == 0);
	stuck->epoll = epoll_create1(EPOLL_CLOEXEC);
	MUST(stuck->epoll >= 0);
	MUST(epoll_ctl(stuck->epoll, EPOLL_CTL_ADD, stuck->pipe[0],
		       &(struct epoll_event){ .events = EPOLLIN }) == 0);
	pthread_mutex_init(&stuck->mutex, NULL);
	pthread_mutex_lock(&stuck->mutex);
}

void stuck_let_go(struct stuck *stuck)
{
	atomic_store(&stuck->over, true);
	MUST(write(stuck->pipe[1], "", 1) == 1);
	pthread_mutex_unlock(&stuck->mutex);
}

void stuck_fini(struct stuck *stuck)
{
	close(stuck->pipe[0]);
	close(stuck->pipe[1]);
	close(stuck->epoll);
	pthread_mutex_destroy(&stuck->mutex);
}

char *stuck_path(const struct tdt_trace *trace)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const struct tdt_node *node = tdt_node_first_child(tdt_trace_root(trace));

	MUST(out != NULL);
	for (; node != NULL; node = tdt_node_first_child(node)) {
		const struct tdt_frame *frame = tdt_node_frame(node);

		MUST(tdt_node_next_sibling(node) == NULL);
		if (frame->kind == TDT_NODE_CUT)
			fprintf(out, "cut:%d ", (int)frame->cut);
		else
			fprintf(out, "%s%s%s ", frame->guessed ? "~" : "",
				frame->inlined ? "+" : "",
				frame->function != NULL ? frame->function : "?");
	}
	fclose(out);
	if (size > 0)
		text[size - 1] = '\0';
	return text;
}

const char *stuck_impossible(void)
{
	return in_valgrind()   ? "under valgrind threads are not where the kernel says"
	       : is_emulated() ? "emulated: threads are not where the kernel says"
			       : NULL;
}

int stuck_signal(void)
{
	for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
		struct sigaction now;

		if (sigaction(signal, NULL, &now) == 0 && now.sa_handler != SIG_DFL)
			return signal;
	}
	return 0;
}
