// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Runs a generated program: polls its future POLLS times.  With the argument `trace` the future is
 * traced, and for each poll a line a leaf is printed,
 *
 *	POLL <tab> FRAME;FRAME;... <tab> UNSURE
 *
 * The outermost frame is first; a frame is FUNCTION@FILE:LINE and ` inlined`, ` guessed`.  UNSURE
 * is how many leaves of the tree are marked, since some of them may be over.
 *
 * With `truth` nothing of the library but the combinators and nested traced futures is used. 
 * frames.py stops in truth_waker_clone(), where it looks at the stack of the leaf truth_leaf_now,
 * and in truth_say(), which tells of each leaf that cloned the waker in a poll whether it waits
 * now.  So it prints such lines, too: POLL, what became of the leaf, and the frames.
 *
 * With `outside` the future is traced, and nothing requests a tree: outside.py looks.
 *
 * Programs of coroutines know their stacks themselves, and print those lines with `truth`.
 *
 * This file is built with -O0 whatever the program is built with, and its functions are the ends
 * of the stacks.
 */

#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tdt/tree.h>

#include "step.h"

enum { POLLS = 6, LEAVES = 4096 };

/* --- Leaves ------------------------------------------------------------------ */

struct truth_leaf {
	int polls_left;
	enum truth_slot slot;
	const struct tdt_waker *clone;
	const struct truth_here *parent; /* of programs that know where they await */
	char *stack;
	enum { NOT_POLLED, WAITS, OVER } state; /* as of the present poll of the root */
};

static struct truth_leaf leaves[LEAVES];
static int n_leaves;
int truth_leaf_now = -1; /* the number of the leaf that clones */

static void leaf_over(struct truth_leaf *leaf)
{
	if (leaf->state == WAITS)
		leaf->state = OVER;
	if (leaf->slot == TRUTH_EMPTIED) {
		tdt_waker_drop(leaf->clone);
		leaf->clone = NULL;
	}
}

static void leaf_drop(void *state)
{
	leaf_over(state);
}

struct tdt_future truth_leaf_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), int polls,
				 enum truth_slot slot)
{
	struct truth_leaf *leaf = &leaves[n_leaves++];

	if (n_leaves > LEAVES)
		abort();
	*leaf = (struct truth_leaf){ .polls_left = polls, .slot = slot };
	return (struct tdt_future){ leaf, poll, leaf_drop };
}

void truth_leaf_polled(struct truth_leaf *leaf)
{
	truth_leaf_now = (int)(leaf - leaves);
}

void truth_leaf_cloned(struct truth_leaf *leaf, const struct tdt_waker *clone)
{
	truth_leaf_now = -1;
	tdt_waker_drop(leaf->clone);
	leaf->clone = clone;
	leaf->state = WAITS;
}

void truth_leaf_is_at(struct truth_leaf *leaf, const struct truth_here *parent)
{
	leaf->parent = parent;
}

static void print_here(FILE *out, const struct truth_here *here)
{
	if (here->parent != NULL) {
		print_here(out, here->parent);
		fputc(';', out);
	}
	fprintf(out, "%s@%s:%d", here->function, here->file, here->line);
}

void truth_leaf_cloned_at(struct truth_leaf *leaf, const struct tdt_waker *clone,
			  const char *function, const char *file, int line)
{
	const struct truth_here here = { leaf->parent, function, file, line };
	size_t size;
	FILE *out;

	truth_leaf_cloned(leaf, clone);
	free(leaf->stack);
	out = open_memstream(&leaf->stack, &size);
	if (out == NULL)
		abort();
	print_here(out, &here);
	fclose(out);
}

bool truth_leaf_ready(struct truth_leaf *leaf)
{
	if (leaf->polls_left > 0) {
		leaf->polls_left--;
		return false;
	}
	leaf_over(leaf);
	return true;
}

/* --- Combinators -------------------------------------------------------------- */

void truth_children_drop(struct truth_children *children)
{
	for (int i = 0; i < children->n; i++)
		tdt_future_drop(&children->child[i]);
}

static void children_free(void *state)
{
	truth_children_drop(state);
	free(state);
}

struct tdt_future truth_children_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), int n,
				     ...)
{
	struct truth_children *children = calloc(1, sizeof(*children));
	va_list futures;

	if (children == NULL)
		abort();
	children->n = n;
	va_start(futures, n);
	for (int i = 0; i < n; i++)
		children->child[i] = va_arg(futures, struct tdt_future);
	va_end(futures);
	return (struct tdt_future){ children, poll, children_free };
}

struct tdt_future truth_traced(struct tdt_future future)
{
	struct tdt_traced traced = tdt_traced(future);

	tdt_handle_unref(traced.handle);
	return traced.future;
}

int truth_use(const void *memory)
{
	(void)memory;
	return 0;
}

int truth_zero(void)
{
	return 0;
}

/* --- A waker ------------------------------------------------------------------- */

const struct tdt_waker *truth_waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { truth_waker_clone, waker_nothing, waker_nothing,
						waker_nothing };
static const struct tdt_waker waker = { &vtable };

/* --- The truth ----------------------------------------------------------------- */

void truth_say(int poll, int leaf, const char *what)
{
	if (leaves[leaf].stack != NULL)
		printf("%d\t%s\t%s\n", poll, what, leaves[leaf].stack);
}

static const char *word(const struct truth_leaf *leaf)
{
	if (leaf->state == WAITS)
		return "waits";
	return leaf->slot == TRUTH_KEPT ? "over, its waker kept" : "over";
}

/* Stacks are looked at up to here. */
tdt_poll_t truth_poll(const struct tdt_future *future)
{
	struct tdt_context cx = { &waker };

	for (int i = 0; i < n_leaves; i++)
		leaves[i].state = NOT_POLLED;
	return future->poll(future->state, &cx);
}

static void truth(void)
{
	struct tdt_future future = truth_root();

	for (int poll = 0; poll < POLLS && truth_poll(&future) == TDT_PENDING; poll++)
		for (int i = 0; i < n_leaves; i++)
			if (leaves[i].state != NOT_POLLED && !(truth_plain_polls >> poll & 1))
				truth_say(poll, i, word(&leaves[i]));
	tdt_future_drop(&future);
	printf("end\n");
}

/* --- The library's trees ---------------------------------------------------------- */

static void print_frame(const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);

	if (tdt_node_parent(tdt_node_parent(node)) != NULL) {
		print_frame(tdt_node_parent(node));
		putchar(';');
	}
	if (frame->kind == TDT_NODE_CUT)
		printf("cut %d", (int)frame->cut);
	else
		printf("%s@%s:%u%s%s", frame->function != NULL ? frame->function : "?",
		       frame->file != NULL ? frame->file : "?", frame->line,
		       frame->inlined ? " inlined" : "", frame->guessed ? " guessed" : "");
}

static void print_trace(int poll, const struct tdt_trace *trace)
{
	const struct tdt_node *node = tdt_trace_root(trace);
	uint32_t unsure = tdt_trace_info(trace)->leaves_unsure; /* known with the names */

	for (; node != NULL; node = tdt_node_next(node)) {
		for (uint32_t leaf = 0; leaf < tdt_node_leaves(node); leaf++) {
			printf("%d\t", poll);
			if (tdt_node_parent(node) != NULL)
				print_frame(node);
			printf("\t%u\n", unsure);
		}
	}
}

static int trace(void)
{
	struct tdt_traced traced = tdt_traced(truth_root());
	tdt_poll_t polled = TDT_PENDING;

	for (int poll = 0; poll < POLLS && polled == TDT_PENDING; poll++) {
		bool requested = !(truth_plain_polls >> poll & 1);
		struct tdt_context cx = { &waker };
		struct tdt_future request = TDT_FUTURE_NONE;
		struct tdt_trace *answer = NULL;
		int error = 0;

		if (requested) {
			request = tdt_backtrace_async(traced.handle, NULL, &answer, &error);
			tdt_future_poll(&request, &cx);
		}
		polled = truth_poll(&traced.future);
		if (requested && tdt_future_poll(&request, &cx) != TDT_READY)
			error = -ETIMEDOUT;
		tdt_future_drop(&request);
		if (error != 0) {
			printf("no answer: %s\n", strerror(-error));
			return EXIT_FAILURE;
		}
		if (polled == TDT_PENDING && requested)
			print_trace(poll, answer);
		tdt_trace_free(answer);
	}
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return EXIT_SUCCESS;
}

/* --- Polls that are read from outside -------------------------------------------------- */

/* outside.py stops in the leaves. */
static int outside(void)
{
	struct tdt_traced traced = tdt_traced_with(truth_root(), TDT_TASK_ATTR(.name = "root"));

	for (int poll = 0; poll < POLLS && truth_poll(&traced.future) == TDT_PENDING; poll++)
		;
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	return EXIT_SUCCESS;
}

/* --- Polls that are stepped ----------------------------------------------------------- */

static struct tdt_traced stepped;

/* Stops itself, for step.c to step it from there on. */
static void *poll_stepped(void *nothing)
{
	(void)nothing;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		abort();
	syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP);
	for (int poll = 0; poll < POLLS && truth_poll(&stepped.future) == TDT_PENDING; poll++)
		;
	_exit(EXIT_SUCCESS);
}

static void answer_request(struct step_answer *answer)
{
	struct tdt_trace *trace = tdt_backtrace_with(stepped.handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = INT64_C(500000000) });
	enum tdt_cut cut = TDT_CUT_NOT;

	*answer = (struct step_answer){ .error = trace != NULL ? 0 : -errno };
	if (trace == NULL)
		return;
	answer->state = (int32_t)tdt_trace_info(trace)->state;
	answer->n = (uint32_t)tdt_trace_stack(trace, 0, answer->pcs, STEP_PCS_MAX, &cut);
	answer->cut = (int32_t)cut;
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		answer->guessed += tdt_node_frame(node)->guessed;
	tdt_trace_free(trace);
}

static int step(void)
{
	struct step_answer answer;
	pthread_t thread;
	char byte;

	stepped = tdt_traced(truth_root());
	if (pthread_create(&thread, NULL, poll_stepped, NULL) != 0)
		return EXIT_FAILURE;
	while (read(STEP_REQUESTS, &byte, 1) == 1) {
		answer_request(&answer);
		if (write(STEP_ANSWERS, &answer, sizeof answer) != sizeof answer)
			break;
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "trace") == 0)
		return trace();
	if (argc > 1 && strcmp(argv[1], "outside") == 0)
		return outside();
	if (argc > 1 && strcmp(argv[1], "step") == 0)
		return step();
	truth();
	return EXIT_SUCCESS;
}
