// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A daemon closes all descriptors it knows nothing of, and gets the numbers again for its own: a
 * capture must not touch them.  Here all from 3 up are sockets with a byte to read in each, and the
 * byte must be there afterwards, alone.
 *
 * A program of its own, since Check has descriptors too.
 */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/trace.h>
#include <tdt/tree.h>

#define SOCKETS 64

static void sockets_open(void)
{
	for (int i = 3; i < 3 + SOCKETS; i++)
		close(i);
	for (int i = 3; i < 3 + SOCKETS; i += 2) {
		int pair[2] = { 0, 0 };

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0 ||
		    pair[0] != i || write(pair[0], "x", 1) != 1 || write(pair[1], "x", 1) != 1) {
			printf("Bail out! no sockets\n");
			exit(EXIT_FAILURE);
		}
	}
}

static int sockets_whole(void)
{
	for (int i = 3; i < 3 + SOCKETS; i++) {
		char bytes[4];

		if (recv(i, bytes, sizeof bytes, MSG_PEEK) != 1 || bytes[0] != 'x') {
			printf("# descriptor %d\n", i);
			return 0;
		}
	}
	return 1;
}

/* --- Stacks ------------------------------------------------------------------- */

static __attribute__((noinline)) void leaf(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
}

void (*without_info_calls)(struct tdt_context *cx);
void without_info(struct tdt_context *cx);

#if defined(__x86_64__)
__asm__(".text\n"
	".type without_info, @function\n"
	"without_info:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	mov without_info_calls@GOTPCREL(%rip), %rax\n"
	"	call *(%rax)\n"
	"	pop %rbp\n"
	"	ret\n"
	".size without_info, . - without_info\n");
#else
void without_info(struct tdt_context *cx)
{
	without_info_calls(cx);
	TDT_KEEP_FRAME();
}
#endif

static __attribute__((noinline)) void big(struct tdt_context *cx)
{
	char buffer[1 << 20];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	leaf(cx);
	__asm__ volatile("" : : "r"(buffer) : "memory");
}

static __attribute__((noinline)) void aligned(struct tdt_context *cx, size_t size)
{
	char buffer[64] __attribute__((aligned(64)));
	char *more = __builtin_alloca(size);

	__asm__ volatile("" : : "r"(buffer), "r"(more) : "memory");
	big(cx);
	__asm__ volatile("" : : "r"(buffer), "r"(more) : "memory");
}

static int first = 1;

static tdt_poll_t poll(void *state, struct tdt_context *cx)
{
	(void)state;
	leaf(cx);
	if (!first) {
		aligned(cx, 100);
		without_info(cx);
	}
	return TDT_PENDING;
}

/* --- A task that is polled when it is woken --------------------------------------- */

static struct tdt_future future;
static int polling;

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	return waker;
}

static void waker_wake(const struct tdt_waker *waker)
{
	struct tdt_context cx = { waker };

	if (polling)
		return;
	polling = 1;
	tdt_future_poll(&future, &cx);
	polling = 0;
}

static void nothing(const struct tdt_waker *waker)
{
	(void)waker;
}

static void drop(void *state)
{
	(void)state;
}

static const struct tdt_waker_vtable vtable = { waker_clone, waker_wake, waker_wake, nothing };
static const struct tdt_waker waker = { &vtable };

/* Whether the capture has its leaves, and the sockets are whole. */
static int capture(struct tdt_handle *handle)
{
	struct tdt_trace *trace = tdt_backtrace(handle);
	int good = trace != NULL && tdt_trace_info(trace)->leaves == (first ? 1 : 3);

	tdt_trace_free(trace);
	return good && (first || sockets_whole());
}

static void claim(int number, int good, const char *text)
{
	printf("%sok %d - %s\n", good ? "" : "not ", number, text);
}

int main(void)
{
	struct tdt_future untraced = { NULL, poll, drop };
	struct tdt_traced traced = tdt_traced(untraced);

	without_info_calls = big;
	future = traced.future;
	waker_wake(&waker);
	printf("1..3\n");
	/* What is opened once a process, if anything, is now. */
	claim(1, capture(traced.handle), "a task is captured");
	first = 0;
	sockets_open();
	claim(2, capture(traced.handle),
	      "a capture of frames not seen before leaves descriptors alone");
	claim(3, capture(traced.handle),
	      "a capture of frames seen before leaves descriptors alone");
	tdt_future_drop(&future);
	tdt_handle_unref(traced.handle);
	return EXIT_SUCCESS;
}
