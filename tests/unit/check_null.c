// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tdt/tdt.h.  Every public function that takes a pointer is called with NULL: it does
 * nothing, or says EINVAL, or takes NULL for the defaults, as its header says.  The functions are
 * those of the libraries' maps: a function that is missing here fails.
 */

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>
#include <tdt/integrate/stack.h>
#include <tdt/rt/blocking.h>
#include <tdt/rt/channel.h>
#include <tdt/rt/join_set.h>
#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>

#include "lib/options.h"
#include "lib/poll_now.h"
#include "lib/rt.h"
#include "lib/test.h"

/* --- What is expected --------------------------------------------------------------- */

/* The call is refused: `check` is what it returns then. */
#define REFUSED(check)                                                                             \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert(check);                                                                  \
		ck_assert_int_eq(errno, EINVAL);                                                   \
	} while (0)

#define NULL_REFUSED(call) REFUSED((call) == NULL)
#define INT_REFUSED(call) REFUSED((call) == -EINVAL)
#define ZERO_REFUSED(call) REFUSED((call) == 0)
#define FUTURE_REFUSED(call) REFUSED(is_none(call))

static bool is_none(struct tdt_future future)
{
	return tdt_future_is_none(&future);
}

/* --- What else the calls want ------------------------------------------------------- */

static tdt_poll_t pending(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static struct poll_now task;
static struct tdt_trace *built;
static FILE *file;

static void set_up(void)
{
	const struct tdt_task_info info = { .size = sizeof(info), .id = 1 };

	poll_now_start(&task, future_of(pending, NULL));
	built = tdt_trace_new(&info);
	file = tmpfile();
	ck_assert(built != NULL && file != NULL);
}

static void tear_down(void)
{
	fclose(file);
	tdt_trace_free(built);
	poll_now_end(&task);
}

/* See that `future` is one, and drop it. */
static void drop_made(struct tdt_future future)
{
	ck_assert(!tdt_future_is_none(&future));
	tdt_future_drop(&future);
}

static int visit(struct tdt_handle *visited, const struct tdt_task_info *info, void *arg)
{
	return 0;
}

static int co_main(void *arg)
{
	return 0;
}

static const struct tdt_future none;

struct tried {
	const char *name;
	void (*call)(void); /* NULL: it takes no pointer */
};

/* The linker makes a table of the functions, as of the tests (lib/test.h). */
#define TRIED(name, call)                                                                          \
	static const struct tried tried_##name = { #name, call };                                  \
	static const struct tried *const row_of_##name                                             \
	    __attribute__((used, section("tdt_tried"))) = &tried_##name;

extern const struct tried *const __start_tdt_tried[];
extern const struct tried *const __stop_tdt_tried[];

/* The calls of `name` are those of the block behind it; or it is called once, as `...` says. */
#define CALL(name)                                                                                 \
	static void call_##name(void);                                                             \
	TRIED(name, call_##name)                                                                   \
	static void call_##name(void)
#define ONE(name, ...)                                                                             \
	CALL(name)                                                                                 \
	{                                                                                          \
		__VA_ARGS__;                                                                       \
	}
#define NO_POINTER(name) TRIED(name, NULL)

/* --- libtdt --------------------------------------------------------------------------- */

NO_POINTER(tdt__await_ready)
NO_POINTER(tdt__recorder_on)
NO_POINTER(tdt_context_labels)
NO_POINTER(tdt_current_task_id)
NO_POINTER(tdt_leaf_wakers)
NO_POINTER(tdt_version)
NO_POINTER(tdt_version_number)
NO_POINTER(tdt_misused)
NO_POINTER(tdt_recorder_stop)
NO_POINTER(tdt_task_find)
NO_POINTER(tdt_task_id_base)
NO_POINTER(tdt_worker_now)
NO_POINTER(tdt_worker_thread_park)
NO_POINTER(tdt_worker_thread_stop)
NO_POINTER(tdt_worker_thread_unpark)
ONE(tdt_backtrace, NULL_REFUSED(tdt_backtrace(NULL)))
ONE(tdt_backtrace_last, NULL_REFUSED(tdt_backtrace_last(NULL)))
ONE(tdt_co_await, INT_REFUSED(tdt_co_await(none)))
ONE(tdt_counters, INT_REFUSED(tdt_counters(NULL)))
ONE(tdt_panic_hook_add, INT_REFUSED(tdt_panic_hook_add(NULL, NULL)))
ONE(tdt_panic_hook_remove, ck_assert_int_eq(tdt_panic_hook_remove(NULL, NULL), -ENOENT))
ONE(tdt_panics, INT_REFUSED(tdt_panics(NULL, NULL)))
ONE(tdt_recorder_on_trigger, ck_assert_int_eq(tdt_recorder_on_trigger(NULL), 0))
ONE(tdt_recorder_snapshot, INT_REFUSED(tdt_recorder_snapshot(NULL, NULL)))
ONE(tdt_recorder_info, INT_REFUSED(tdt_recorder_info(NULL)))
ONE(tdt_watch, ck_assert_int_eq(tdt_watch(0, NULL), 0))
ONE(tdt_dump, INT_REFUSED(tdt_dump(NULL)))
ONE(tdt_fiber_base, tdt_fiber_base(NULL, 1))
ONE(tdt_fiber_end, tdt_fiber_end(NULL))
ONE(tdt_fiber_handle, ck_assert_ptr_null(tdt_fiber_handle(NULL)))
ONE(tdt_fiber_resume, tdt_fiber_resume(NULL))
ONE(tdt_fiber_suspend, tdt_fiber_suspend(NULL))
ONE(tdt_handle_id, ck_assert_uint_eq(tdt_handle_id(NULL), 0))
ONE(tdt_handle_ref, ck_assert_ptr_null(tdt_handle_ref(NULL)))
ONE(tdt_handle_room, ck_assert_ptr_null(tdt_handle_room(NULL)))
ONE(tdt_handle_unref, tdt_handle_unref(NULL))
ONE(tdt_leaf_waits_on, tdt_leaf_waits_on(TDT_WAIT_MUTEX, NULL, 0))
ONE(tdt_leaf_waits_on_lock, tdt_leaf_waits_on_lock(NULL, NULL))
ONE(tdt_lock_take, tdt_lock_take(NULL, 1))
ONE(tdt_lock_hand, tdt_lock_hand(NULL, 1))
ONE(tdt_leaf_waits_on_named, tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, NULL, 0, NULL))
ONE(tdt_waker_beneath, ck_assert_ptr_null(tdt_waker_beneath(NULL)))
ONE(tdt_node_first_child, NULL_REFUSED(tdt_node_first_child(NULL)))
ONE(tdt_node_frame, NULL_REFUSED(tdt_node_frame(NULL)))
ONE(tdt_node_id, ZERO_REFUSED(tdt_node_id(NULL)))
ONE(tdt_node_leaves, ZERO_REFUSED(tdt_node_leaves(NULL)))
ONE(tdt_node_next, NULL_REFUSED(tdt_node_next(NULL)))
ONE(tdt_node_next_sibling, NULL_REFUSED(tdt_node_next_sibling(NULL)))
ONE(tdt_node_parent, NULL_REFUSED(tdt_node_parent(NULL)))
ONE(tdt_snapshot_free, tdt_snapshot_free(NULL))
ONE(tdt_stack_enter, tdt_stack_enter(NULL))
ONE(tdt_stack_leave, tdt_stack_leave(NULL))
ONE(tdt_task_abort, INT_REFUSED(tdt_task_abort(NULL)))
ONE(tdt_task_context, ck_assert_int_eq(tdt_task_context(NULL, NULL), -ESRCH))
ONE(tdt_task_end, tdt_task_end(NULL))
ONE(tdt_task_enter_at, tdt_task_enter(NULL))
ONE(tdt_task_leave, tdt_task_leave(NULL))
ONE(tdt_hook_adopt, tdt_hook_adopt(NULL, 7))
ONE(tdt_hook_poll_end, tdt_hook_poll_end(NULL))
ONE(tdt_hook_spawn, tdt_hook_spawn(NULL))
ONE(tdt_hook_terminate, tdt_hook_terminate(NULL))
ONE(tdt_task_woken, tdt_task_woken(NULL))
ONE(tdt_trace_free, tdt_trace_free(NULL))
ONE(tdt_trace_info, NULL_REFUSED(tdt_trace_info(NULL)))
ONE(tdt_trace_new, NULL_REFUSED(tdt_trace_new(NULL)))
ONE(tdt_trace_root, NULL_REFUSED(tdt_trace_root(NULL)))
ONE(tdt_trace_stacks, ZERO_REFUSED(tdt_trace_stacks(NULL)))

CALL(tdt_backtrace_async)
{
	struct tdt_trace *answer;

	FUTURE_REFUSED(tdt_backtrace_async(NULL, NULL, &answer, NULL));
	FUTURE_REFUSED(tdt_backtrace_async(task.traced.handle, NULL, NULL, NULL));
	drop_made(tdt_backtrace_async(task.traced.handle, NULL, &answer, NULL));
}

CALL(tdt_backtrace_with)
{
	TRACE(answer, tdt_backtrace_with(task.traced.handle, NULL));

	NULL_REFUSED(tdt_backtrace_with(NULL, NULL));
}

CALL(tdt_coroutine)
{
	drop_made(tdt_coroutine(co_main, NULL, NULL));
	FUTURE_REFUSED(tdt_coroutine(NULL, NULL, NULL));
}

CALL(tdt_recorder_start)
{
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
}

CALL(tdt_record_event)
{
	tdt_record_event(NULL, NULL, 0, 0, NULL, NULL);
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	tdt_record_event(NULL, NULL, 0, 3, NULL, NULL);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
}

CALL(tdt_recorder_on_signal)
{
	INT_REFUSED(tdt_recorder_on_signal(SIGUSR2, NULL, NULL));
	ck_assert_int_eq(tdt_recorder_on_signal(0, NULL, NULL), 0);
}

CALL(tdt_recorder_summary)
{
	INT_REFUSED(tdt_recorder_summary(NULL, NULL));
	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	ck_assert_int_eq(tdt_recorder_summary(file, NULL), 0);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
}

CALL(tdt_dump_on_signal)
{
	ck_assert_int_eq(tdt_dump_on_signal(SIGUSR1, NULL), 0);
	ck_assert_int_eq(tdt_dump_on_signal(0, NULL), 0);
}

CALL(tdt_listen)
{
	int error = tdt_listen(NULL);

	ck_assert(error == 0 || error == -EPERM);
}

CALL(tdt_worker_thread_start)
{
	tdt_worker_thread_start(NULL);
	tdt_worker_thread_stop();
}

CALL(tdt_dump_with)
{
	INT_REFUSED(tdt_dump_with(NULL, NULL));
	ck_assert_int_eq(tdt_dump_with(file, NULL), 0);
}

CALL(tdt_fiber_moved)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);

	tdt_fiber_moved(NULL, "", "", 1);
	tdt_fiber_moved(fiber, NULL, "", 1);
	tdt_fiber_moved(fiber, "", NULL, 1);
	tdt_fiber_end(fiber);
}

CALL(tdt_fiber_new)
{
	struct tdt_fiber *fiber = tdt_fiber_new(NULL, 0, NULL);

	ck_assert_ptr_nonnull(fiber);
	tdt_fiber_end(fiber);
	errno = 0;
	ck_assert_ptr_null(tdt_fiber_new(NULL, 1, NULL));
	ck_assert_int_eq(errno, EINVAL);
}

CALL(tdt_fiber_of)
{
	errno = 0;
	ck_assert_ptr_null(tdt_fiber_of(NULL, NULL, 0));
	ck_assert_int_eq(errno, EINVAL);
}

CALL(tdt_future_handle)
{
	ck_assert_ptr_null(tdt_future_handle(NULL));
	ck_assert_ptr_null(tdt_future_handle(&none));
}

CALL(tdt_join)
{
	int outcome;

	FUTURE_REFUSED(tdt_join(NULL, &outcome));
	drop_made(tdt_join(task.traced.handle, NULL));
}

CALL(tdt_join_all)
{
	FUTURE_REFUSED(tdt_join_all(NULL, 1));
	FUTURE_REFUSED(tdt_join_all(&none, 1));
}

CALL(tdt_leaf_at)
{
	struct tdt_leaf leaf = { .kind = TDT_LEAF_NAMED, .n = 1, .frames = NULL };

	tdt_leaf_at(NULL, NULL);
	tdt_leaf_at(NULL, &leaf);
	tdt_leaf_at(task.traced.handle, NULL);
}

CALL(tdt_select)
{
	size_t winner;

	FUTURE_REFUSED(tdt_select(NULL, 1, &winner));
	FUTURE_REFUSED(tdt_select(&none, 1, NULL));
}

CALL(tdt_select_keep)
{
	struct tdt_future kept[] = { future_of(pending, NULL) };

	FUTURE_REFUSED(tdt_select_keep(NULL, 1, NULL));
	drop_made(tdt_select_keep(kept, 1, NULL));
}

CALL(tdt_snapshot_print)
{
	SNAPSHOT(snapshot, tdt_snapshot_take(NULL));

	INT_REFUSED(tdt_snapshot_print(NULL, file, NULL));
	INT_REFUSED(tdt_snapshot_print(snapshot, NULL, NULL));
	ck_assert_int_eq(tdt_snapshot_print(snapshot, file, NULL), 0);
}

CALL(tdt_snapshot_take)
{
	SNAPSHOT(snapshot, tdt_snapshot_take(NULL));
}

CALL(tdt_task_inspect)
{
	INT_REFUSED(tdt_task_inspect(NULL, visit, NULL));
	INT_REFUSED(tdt_task_inspect(task.traced.handle, NULL, NULL));
}

CALL(tdt_task_new)
{
	struct tdt_handle *made = tdt_task_new(NULL);

	ck_assert_ptr_nonnull(made);
	tdt_task_end(made);
}

CALL(tdt_task_waits_on)
{
	tdt_task_waits_on(NULL, TDT_WAIT_MUTEX, NULL, 0, NULL);
	tdt_task_waits_on(task.traced.handle, TDT_WAIT_MUTEX, NULL, 0, NULL);
}

CALL(tdt_hook_poll_start)
{
	tdt_hook_poll_start(NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
}

CALL(tdt_hook_poll_start_at)
{
	tdt_hook_poll_start_at(NULL, 0);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
}

CALL(tdt_tasks)
{
	INT_REFUSED(tdt_tasks(NULL, NULL, NULL));
	ck_assert_int_eq(tdt_tasks(NULL, visit, NULL), 0);
}

CALL(tdt_trace_add)
{
	const struct tdt_frame frame = { .size = sizeof(frame), .kind = TDT_NODE_FRAME };

	NULL_REFUSED(tdt_trace_add(NULL, NULL, &frame, 0));
	NULL_REFUSED(tdt_trace_add(built, NULL, NULL, 0));
	ck_assert_ptr_nonnull(tdt_trace_add(built, NULL, &frame, 0));
}

CALL(tdt_trace_print)
{
	INT_REFUSED(tdt_trace_print(NULL, file));
	INT_REFUSED(tdt_trace_print(built, NULL));
}

CALL(tdt_trace_print_with)
{
	INT_REFUSED(tdt_trace_print_with(NULL, file, NULL));
	INT_REFUSED(tdt_trace_print_with(built, NULL, NULL));
	ck_assert_int_eq(tdt_trace_print_with(built, file, NULL), 0);
}

CALL(tdt_trace_stack)
{
	TRACE(answer, tdt_backtrace(task.traced.handle));
	enum tdt_cut cut = TDT_CUT_LIMIT;
	uint64_t pc;

	ZERO_REFUSED(tdt_trace_stack(NULL, 0, &pc, 1, &cut));
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	ZERO_REFUSED(tdt_trace_stack(answer, 0, NULL, 1, &cut));
	ck_assert_uint_gt(tdt_trace_stack(answer, 0, NULL, 0, NULL), 0);
}

CALL(tdt_traced_with)
{
	struct tdt_traced traced = tdt_traced_with(future_of(pending, NULL), NULL);

	ck_assert_ptr_nonnull(traced.handle);
	end_traced(&traced);
	NULL_REFUSED(tdt_traced_with(none, NULL).handle);
}

/* --- libtdt-rt ------------------------------------------------------------------------ */

NO_POINTER(tdt_mutex_new)
NO_POINTER(tdt_notify_new)
NO_POINTER(tdt_rt_current)
NO_POINTER(tdt_tcp_adopt)
NO_POINTER(tdt_tcp_listener_adopt)
NO_POINTER(tdt_semaphore_new)
NO_POINTER(tdt_sleep_ms)
NO_POINTER(tdt_yield_now)
ONE(tdt_channel_close, INT_REFUSED(tdt_channel_close(NULL)))
ONE(tdt_channel_ref, ck_assert_ptr_null(tdt_channel_ref(NULL)))
ONE(tdt_channel_send, FUTURE_REFUSED(tdt_channel_send(NULL, NULL, NULL)))
ONE(tdt_channel_set_name, INT_REFUSED(tdt_channel_set_name(NULL, "x")))
ONE(tdt_channel_try_send, INT_REFUSED(tdt_channel_try_send(NULL, NULL)))
ONE(tdt_channel_unref, tdt_channel_unref(NULL))
ONE(tdt_join_set_abort, tdt_join_set_abort(NULL))
ONE(tdt_join_set_forget, tdt_join_set_forget(NULL))
ONE(tdt_join_set_free, tdt_join_set_free(NULL))
ONE(tdt_join_set_go, INT_REFUSED(tdt_join_set_go(NULL, none, NULL)))
ONE(tdt_join_set_new, NULL_REFUSED(tdt_join_set_new(NULL)))
ONE(tdt_join_set_set_name, INT_REFUSED(tdt_join_set_set_name(NULL, "x")))
ONE(tdt_join_set_wait, FUTURE_REFUSED(tdt_join_set_wait(NULL)))
ONE(tdt_mutex_free, tdt_mutex_free(NULL))
ONE(tdt_mutex_set_name, INT_REFUSED(tdt_mutex_set_name(NULL, "x")))
ONE(tdt_mutex_guard, FUTURE_REFUSED(tdt_mutex_guard(NULL, none)))
ONE(tdt_mutex_lock, FUTURE_REFUSED(tdt_mutex_lock(NULL)))
ONE(tdt_mutex_try_lock, ZERO_REFUSED(tdt_mutex_try_lock(NULL)))
ONE(tdt_mutex_unlock, INT_REFUSED(tdt_mutex_unlock(NULL)))
ONE(tdt_notify_all, INT_REFUSED(tdt_notify_all(NULL)))
ONE(tdt_notify_free, tdt_notify_free(NULL))
ONE(tdt_notify_one, INT_REFUSED(tdt_notify_one(NULL)))
ONE(tdt_notify_set_name, INT_REFUSED(tdt_notify_set_name(NULL, "x")))
ONE(tdt_notify_wait, FUTURE_REFUSED(tdt_notify_wait(NULL)))
ONE(tdt_oneshot_receiver_free, tdt_oneshot_receiver_free(NULL))
ONE(tdt_oneshot_send, INT_REFUSED(tdt_oneshot_send(NULL, NULL)))
ONE(tdt_oneshot_set_name, INT_REFUSED(tdt_oneshot_set_name(NULL, "x")))
ONE(tdt_oneshot_sender_free, tdt_oneshot_sender_free(NULL))
ONE(tdt_rt_block_on, INT_REFUSED(tdt_rt_block_on(NULL, future_of(pending, NULL))))
ONE(tdt_rt_free, tdt_rt_free(NULL))
ONE(tdt_rt_go, INT_REFUSED(tdt_rt_go(NULL, none, NULL)))
ONE(tdt_rt_spawn, NULL_REFUSED(tdt_rt_spawn(NULL, future_of(pending, NULL), NULL)))
ONE(tdt_semaphore_acquire, FUTURE_REFUSED(tdt_semaphore_acquire(NULL)))
ONE(tdt_semaphore_free, tdt_semaphore_free(NULL))
ONE(tdt_semaphore_release, INT_REFUSED(tdt_semaphore_release(NULL)))
ONE(tdt_semaphore_set_name, INT_REFUSED(tdt_semaphore_set_name(NULL, "x")))
ONE(tdt_semaphore_try_acquire, ZERO_REFUSED(tdt_semaphore_try_acquire(NULL)))
ONE(tdt_tcp_free, tdt_tcp_free(NULL))
ONE(tdt_tcp_listen, NULL_REFUSED(tdt_tcp_listen(NULL, 0)))
ONE(tdt_tcp_listener_free, tdt_tcp_listener_free(NULL))
ONE(tdt_tcp_listener_set_name, INT_REFUSED(tdt_tcp_listener_set_name(NULL, "x")))
ONE(tdt_tcp_set_name, INT_REFUSED(tdt_tcp_set_name(NULL, "x")))
ONE(tdt_tcp_listener_port, ZERO_REFUSED(tdt_tcp_listener_port(NULL)))
ONE(tdt_tcp_shutdown, INT_REFUSED(tdt_tcp_shutdown(NULL)))

CALL(tdt_channel_new)
{
	struct tdt_channel *channel = tdt_channel_new(1, NULL);

	ck_assert_ptr_nonnull(channel);
	tdt_channel_unref(channel);
}

CALL(tdt_channel_receive)
{
	struct tdt_channel *channel = tdt_channel_new(1, NULL);
	void *value;

	FUTURE_REFUSED(tdt_channel_receive(NULL, &value, NULL));
	FUTURE_REFUSED(tdt_channel_receive(channel, NULL, NULL));
	tdt_channel_unref(channel);
}

CALL(tdt_channel_try_receive)
{
	struct tdt_channel *channel = tdt_channel_new(1, NULL);
	void *value;

	INT_REFUSED(tdt_channel_try_receive(NULL, &value));
	INT_REFUSED(tdt_channel_try_receive(channel, NULL));
	tdt_channel_unref(channel);
}

CALL(tdt_join_set_next)
{
	RT(rt, tdt_rt_new(NULL));
	struct tdt_join_set *set = tdt_join_set_new(rt);

	FUTURE_REFUSED(tdt_join_set_next(NULL, NULL, NULL));
	drop_made(tdt_join_set_next(set, NULL, NULL));
	tdt_join_set_free(set);
}

CALL(tdt_oneshot)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;

	INT_REFUSED(tdt_oneshot(NULL, &receiver, NULL));
	INT_REFUSED(tdt_oneshot(&sender, NULL, NULL));
	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	tdt_oneshot_sender_free(sender);
	tdt_oneshot_receiver_free(receiver);
}

CALL(tdt_oneshot_receive)
{
	struct tdt_oneshot_sender *sender;
	struct tdt_oneshot_receiver *receiver;
	void *value;
	int error;

	ck_assert_int_eq(tdt_oneshot(&sender, &receiver, NULL), 0);
	FUTURE_REFUSED(tdt_oneshot_receive(NULL, &value, &error));
	FUTURE_REFUSED(tdt_oneshot_receive(receiver, NULL, &error));
	tdt_oneshot_sender_free(sender);
	tdt_oneshot_receiver_free(receiver);
}

CALL(tdt_rt_new)
{
	RT(rt, tdt_rt_new(NULL));

	NULL_REFUSED(tdt_rt_spawn(rt, none, NULL));
}

CALL(tdt_tcp_accept)
{
	struct tdt_tcp_listener *listener = tdt_tcp_listen("127.0.0.1", 0);
	struct tdt_tcp *tcp;
	int error;

	FUTURE_REFUSED(tdt_tcp_accept(NULL, &tcp, &error));
	if (listener != NULL)
		FUTURE_REFUSED(tdt_tcp_accept(listener, NULL, &error));
	tdt_tcp_listener_free(listener);
}

CALL(tdt_tcp_connect)
{
	struct tdt_tcp *tcp;
	int error;

	FUTURE_REFUSED(tdt_tcp_connect(NULL, 1, &tcp, &error));
	FUTURE_REFUSED(tdt_tcp_connect("127.0.0.1", 1, NULL, &error));
}

CALL(tdt_signal_wait)
{
	int signal;

	FUTURE_REFUSED(tdt_signal_wait(NULL, &signal));
	FUTURE_REFUSED(tdt_signal_wait((const int[]){ 15, 0 }, NULL));
}

CALL(tdt_spawn_blocking)
{
	FUTURE_REFUSED(tdt_spawn_blocking(NULL, NULL, NULL));
}

CALL(tdt_tcp_peer)
{
	char text[8];

	INT_REFUSED(tdt_tcp_peer(NULL, text, sizeof text));
}

CALL(tdt_tcp_ready)
{
	int error;

	FUTURE_REFUSED(tdt_tcp_ready(NULL, false, &error));
}

CALL(tdt_tcp_writev)
{
	struct iovec part = { NULL, 0 };
	ssize_t n;

	FUTURE_REFUSED(tdt_tcp_writev(NULL, &part, 1, &n));
}

CALL(tdt_tcp_read)
{
	char byte;
	ssize_t n;

	FUTURE_REFUSED(tdt_tcp_read(NULL, &byte, 1, &n));
}

CALL(tdt_tcp_write)
{
	ssize_t n;

	FUTURE_REFUSED(tdt_tcp_write(NULL, "", 1, &n));
}

CALL(tdt_timeout_ms)
{
	drop_made(tdt_timeout_ms(future_of(pending, NULL), 1, NULL));
	FUTURE_REFUSED(tdt_timeout_ms(none, 1, NULL));
}

/* --- All of them ---------------------------------------------------------------------- */

static int functions(void)
{
	return (int)(__stop_tdt_tried - __start_tdt_tried);
}

CASE(null, .setup = set_up, .teardown = tear_down)

TEST(null_crashes_no_function, .rounds = functions)
{
	const struct tried *function = __start_tdt_tried[_i];

	printf("# %s\n", function->name);
	fflush(stdout);
	if (function->call != NULL)
		function->call();
}

static bool is_listed(const char *name)
{
	for (int i = 0; i < functions(); i++)
		if (strcmp(__start_tdt_tried[i]->name, name) == 0)
			return true;
	return false;
}

/* A line of a map is `<tab>name;`. */
static int look_up_all_of(const char *map)
{
	const char *top = getenv("top_srcdir");
	char path[4096], line[256], name[256], end;
	int n = 0;
	FILE *lines;

	snprintf(path, sizeof(path), "%s/%s", top != NULL ? top : ".", map);
	lines = fopen(path, "re");
	ck_assert_msg(lines != NULL, "%s can't be read", path);
	while (fgets(line, sizeof(line), lines) != NULL) {
		/* The poll of a leaf goes on with a dot. */
		if (sscanf(line, "\ttdt_%250[a-z_]%c", name + 4, &end) != 2 || end != ';')
			continue;
		memcpy(name, "tdt_", 4);
		ck_assert_msg(is_listed(name), "%s is not tried: add it to this test", name);
		n++;
	}
	fclose(lines);
	return n;
}

TEST(all_functions_of_the_maps_are_tried)
{
	ck_assert_int_eq(look_up_all_of("src/libtdt.map") +
			     look_up_all_of("src/runtime/libtdt-rt.map"),
			 functions());
}
