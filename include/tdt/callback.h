/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CALLBACK_H
#define TDT_CALLBACK_H

/*
 * For programs that are callbacks on an event loop (libuv, GLib, libevent, epoll by hand): a
 * request is a task, which waits where its next callback is registered.
 *
 *	struct request {
 *		struct tdt_op op;
 *		uv_timer_t timer;
 *		...
 *	};
 *
 *	static void opened(uv_fs_t *file)
 *	{
 *		struct request *request = file->data;
 *
 *		TDT_RUNS(&request->op);                           // in each callback, first
 *		TDT_AWAITS(&request->op, uv_queue_work(loop, &request->work, work, after),
 *			   "uv_queue_work");                      // where the next one is registered
 *	}
 *
 *	static void start(struct request *request)
 *	{
 *		tdt_op_begin(&request->op, TDT_TASK_ATTR(.name = "request"));
 *		TDT_AWAITS(&request->op, uv_fs_open(loop, &request->file, path, O_RDONLY, 0, opened),
 *			   "uv_fs_open");
 *	}
 *	...
 *	tdt_op_end(&request->op);                                 // the request is over
 *
 * A dump, and tdt bt, then show the chain `start > opened > uv_queue_work`: in which functions the
 * request has awaited something, each with its line, and what it waits for now.  A function that
 * awaits again takes its old place in the chain, and what came after it is gone; so a loop does not
 * make the chain longer.
 *
 * (If TDT_RUNS() also stands behind tdt_op_begin(), recordings have what is awaited first.)
 *
 * A callback that awaits nothing else leaves the request waiting where it did, as one that is
 * called for each message should.
 *
 * Everything here takes an operation that could not be made for lack of memory, and then does
 * nothing but the call in TDT_AWAITS().  An operation is used by one thread at a time.  A callback
 * takes some 23 ns more, and 5 ns on top of that on a thread that does not report the time of each
 * turn of its loop (tdt_worker_now() in tdt/integrate/hooks.h).
 */

#include <stdint.h>

#include <tdt/integrate/leaf.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TDT_OP_DEPTH 8 /* functions of a chain; of a longer one the inner ones are shown */
#define TDT_OP_WAITS 4 /* so many things that an operation awaits at a time are shown */

/*
 * An operation that callbacks continue.  It belongs to the program, and stays where it is until
 * tdt_op_end().
 */
struct tdt_op {
	struct tdt_handle *task; /* NULL: not begun, or ended, or there is no memory */
	struct tdt_leaf leaf;
	struct tdt_leaf_wait wait[TDT_OP_WAITS];
	struct tdt_leaf_frame call[TDT_OP_DEPTH + 1];
	void (*callback)(void); /* of TDT_BOX() */
	void *data;
};

/* Begin an operation: a task, of which `attr` is as in tdt_task_new(). */
static inline void tdt_op_begin(struct tdt_op *op, const struct tdt_task_attr *attr)
{
	op->task = tdt_task_new(attr);
	op->leaf.kind = TDT_LEAF_NAMED;
	op->leaf.n = 0;
	op->leaf.frames = op->call;
	op->leaf.waits = op->wait;
	op->leaf.n_waits = 0;
}

/* End it.  Its memory may be freed then, also in the middle of TDT_RUNS(). */
static inline void tdt_op_end(struct tdt_op *op)
{
	tdt_task_end(op->task);
	op->task = NULL;
}

/*
 * The operation waits, in `function`, for `what`: what TDT_AWAITS() calls.  The strings stay as
 * they are as long as it waits.  `kind` and `object` are as in tdt_leaf_waits_on(); 0: unknown.
 */
static inline void tdt_op_awaits(struct tdt_op *op, const char *function, const char *file,
				 uint32_t line, const char *what, enum tdt_wait_kind kind,
				 const void *object)
{
	const struct tdt_leaf_frame here = { function, file, line, 0 };
	const struct tdt_leaf_frame awaited = { what, NULL, 0, 0 };
	const struct tdt_leaf_wait wait = { kind, 0, object, 0, what };
	uint32_t at = 0, n = op->leaf.n != 0 ? op->leaf.n - 1 : 0;

	if (op->task == NULL)
		return;
	tdt_leaf_at(op->task, NULL);
	while (at < n && op->call[at].function != function)
		at++;
	if (at == TDT_OP_DEPTH) /* the outermost one makes room */
		for (at = 0; at < TDT_OP_DEPTH - 1; at++)
			op->call[at] = op->call[at + 1];
	op->call[at] = here;
	op->call[at + 1] = awaited;
	op->leaf.n = at + 2;
	op->wait[0] = wait;
	op->leaf.n_waits = kind != 0;
	tdt_leaf_at(op->task, &op->leaf);
}

/* It waits for this, too: what TDT_AWAITS_TOO() calls. */
static inline void tdt_op_awaits_too(struct tdt_op *op, const char *what, enum tdt_wait_kind kind,
				     const void *object)
{
	const struct tdt_leaf_wait wait = { kind, 0, object, 0, what };

	if (op->task == NULL || op->leaf.n_waits == TDT_OP_WAITS)
		return;
	tdt_leaf_at(op->task, NULL);
	op->wait[op->leaf.n_waits++] = wait;
	tdt_leaf_at(op->task, &op->leaf);
}

/* `call` registers the callback with which the operation goes on; `what` is a name for it. */
#define TDT_AWAITS(op, call, what) TDT_AWAITS_FOR(op, call, what, TDT_WAIT_UNKNOWN, 0)

/* The same if it is known what for: TDT_WAIT_IO and the descriptor, TDT_WAIT_TIMER and 0. */
#define TDT_AWAITS_FOR(op, call, what, kind, object)                                               \
	(tdt_op_awaits((op), __func__, __FILE__, __LINE__, (what), (kind),                         \
		       (const void *)(uintptr_t)(object)),                                         \
	 (call))

/*
 * Behind TDT_AWAITS_FOR(), if the operation goes on with what comes first, an answer or a timeout:
 * the chain ends with the first `what`, and all are shown as what it waits for.  The next
 * TDT_AWAITS_FOR() begins anew, and has the rest forgotten.
 */
#define TDT_AWAITS_TOO(op, call, what, kind, object)                                               \
	(tdt_op_awaits_too((op), (what), (kind), (const void *)(uintptr_t)(object)), (call))

/*
 * For interfaces that take a callback and one pointer, which the program needs itself: the pointer
 * is the operation, which remembers the program's callback and pointer.  One such callback of an
 * operation is registered at a time: for more, pass a struct of the program with the operation, the
 * callback and the pointer.
 *
 *	static void ready(GObject *object, GAsyncResult *result, gpointer op)
 *	{
 *		TDT_RUNS((struct tdt_op *)op);
 *		TDT_BOXED_CALLBACK(op, GAsyncReadyCallback)(object, result, TDT_BOXED_DATA(op));
 *	}
 *	...
 *	g_output_stream_flush_async(stream, 0, NULL, ready, TDT_BOX(&request->op, flushed, request));
 */
#define TDT_BOX(op, callback, data) tdt_op_box((op), (void (*)(void))(callback), (data))
#define TDT_BOXED_CALLBACK(op, type) ((type)((struct tdt_op *)(op))->callback)
#define TDT_BOXED_DATA(op) (((struct tdt_op *)(op))->data)

/* Have the operation remember them: what TDT_BOX() calls.  Returns `op`. */
static inline struct tdt_op *tdt_op_box(struct tdt_op *op, void (*callback)(void), void *data)
{
	op->callback = callback;
	op->data = data;
	return op;
}

/*
 * This thread runs the operation until the end of the enclosing block.  (The operation may end
 * before: its id tells.)
 */
#define TDT_RUNS(op)                                                                               \
	struct tdt__op_run tdt__op_run __attribute__((cleanup(tdt__op_leave))) = { (op)->task,     \
										   0 };            \
	tdt_task_enter(tdt__op_run.task);                                                          \
	tdt__op_run.id = tdt_current_task_id()

struct tdt__op_run {
	struct tdt_handle *task;
	uint64_t id;
};

static inline void tdt__op_leave(struct tdt__op_run *run)
{
	if (run->task != NULL && tdt_current_task_id() == run->id)
		tdt_task_leave(run->task);
}

#ifdef __cplusplus
}
#endif

#endif
