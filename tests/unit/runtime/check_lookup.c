// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/lookup.  Names of hosts are looked up on a blocking thread, and all addresses of
 * the answer are tried; getaddrinfo() and connect() are wrapped (--wrap).
 */

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>

#include "lib/futures.h"
#include "lib/leaf.h"
#include "lib/no_threads.h"
#include "lib/request_waiting.h"
#include "lib/requester.h"
#include "lib/test.h"

/* --- A name server ------------------------------------------------------------------ */

static const char *const *answer; /* numeric addresses, up to NULL; NULL: that of the system */
static int answer_error, answer_errno;
static sem_t *held; /* getaddrinfo() waits for it, if it is not NULL */
static atomic_int asked, answered, freed;
static bool memory_ends; /* with the first connect() */

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **found);
void __real_freeaddrinfo(struct addrinfo *found);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);

/* The addresses are those of `answer`, each found as the number it is, behind one another. */
static int fill_answer(const char *const *address, const struct addrinfo *hints,
		       struct addrinfo **found)
{
	*found = NULL;
	for (; *address != NULL; address++, found = &(*found)->ai_next) {
		int error = __real_getaddrinfo(*address, NULL, hints, found);

		if (error != 0)
			return error;
	}
	return 0;
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **found)
{
	asked++;
	if (held != NULL)
		while (sem_wait(held) != 0)
			MUST(errno == EINTR);
	answered++;
	errno = answer_errno;
	if (answer_error != 0)
		return answer_error;
	return answer != NULL ? fill_answer(answer, hints, found)
			      : __real_getaddrinfo(name, service, hints, found);
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
	struct addrinfo *next;

	freed++;
	for (; found != NULL && answer != NULL; found = next) {
		next = found->ai_next;
		found->ai_next = NULL;
		__real_freeaddrinfo(found);
	}
	if (found != NULL)
		__real_freeaddrinfo(found);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	if (memory_ends)
		no_memory_begin(0);
	return __real_connect(fd, address, length);
}

/* --- What tests do ------------------------------------------------------------------ */

static struct tdt_rt *rt;
static struct tdt_tcp_listener *listener; /* at 127.0.0.1 alone */
static uint16_t port;
static struct tdt_tcp *tcp;
static int error;

static void setup(void)
{
	rt = tdt_rt_new(
	    &(struct tdt_rt_config){ .size = sizeof(struct tdt_rt_config), .workers = 1 });
	ck_assert_ptr_nonnull(rt);
	listener = tdt_tcp_listen("127.0.0.1", 0);
	ck_assert_ptr_nonnull(listener);
	port = tdt_tcp_listener_port(listener);
	error = 1;
}

static void teardown(void)
{
	tdt_tcp_free(tcp);
	tdt_tcp_listener_free(listener);
	tdt_rt_free(rt);
	ck_assert_int_eq(freed, asked > 0 && answer_error == 0);
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int connect_to(const char *host)
{
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_tcp_connect(host, port, &tcp, &error)), 0);
	ck_assert(error == 0 ? tcp != NULL : tcp == NULL);
	return error;
}

static void expect_peer(const char *address)
{
	char expected[64], peer[64];

	snprintf(expected, sizeof expected, "%s:%u", address, port);
	ck_assert_int_gt(tdt_tcp_peer(tcp, peer, sizeof peer), 0);
	ck_assert_str_eq(peer, expected);
}

static struct tdt_handle *spawn_connect(const char *host)
{
	struct tdt_handle *handle =
	    tdt_rt_spawn(rt, tdt_tcp_connect(host, port, &tcp, &error), NULL);

	ck_assert_ptr_nonnull(handle);
	return handle;
}

static int outcome_of(struct tdt_handle *handle)
{
	int outcome = 1;

	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(handle, &outcome)), 0);
	tdt_handle_unref(handle);
	return outcome;
}

CASE(names, .setup = setup, .teardown = teardown)

TEST(the_systems_names_are_known)
{
	struct addrinfo *found;

	NOT_TRIED_IF(in_valgrind(), "glibc's resolver keeps memory of its own");
	if (__real_getaddrinfo("localhost", NULL, NULL, &found) != 0) {
		puts("# not tried: this system does not know localhost");
		return;
	}
	__real_freeaddrinfo(found);
	ck_assert_int_eq(connect_to("localhost"), 0);
	expect_peer("127.0.0.1");
}

TEST(all_addresses_are_tried_in_turn)
{
	static const char *const addresses[] = { "127.0.0.2", "::1", "127.0.0.3", "127.0.0.1",
						 "127.0.0.4", NULL };
	int before = descriptors();

	answer = addresses;
	ck_assert_int_eq(connect_to("many.example"), 0);
	expect_peer("127.0.0.1");
	ck_assert_int_eq(descriptors(), before + 1);
}

TEST(if_none_accepts_the_last_error_is_reported)
{
	static const char *const addresses[] = { "127.0.0.2", "127.0.0.3", NULL };
	int before = descriptors();

	answer = addresses;
	ck_assert_int_eq(connect_to("none.example"), -ECONNREFUSED);
	ck_assert_int_eq(descriptors(), before);
}

static const struct {
	int error, with_errno, expected;
} failures[] = {
	{ EAI_NONAME, 0, -ENOENT },	 { EAI_NODATA, 0, -ENOENT },
	{ EAI_ADDRFAMILY, 0, -ENOENT },	 { EAI_AGAIN, 0, -EAGAIN },
	{ EAI_FAIL, 0, -EIO },		 { EAI_MEMORY, 0, -ENOMEM },
	{ EAI_SYSTEM, EMFILE, -EMFILE }, { EAI_SYSTEM, 0, -EIO },
	{ EAI_SYSTEM, ENOTSUP, -ENOTSUP },
};

TEST(failures_are_negative_errnos, .to = sizeof failures / sizeof *failures)
{
	answer_error = failures[_i].error;
	answer_errno = failures[_i].with_errno;
	ck_assert_int_eq(connect_to("failing.example"), failures[_i].expected);
}

TEST(numbers_are_not_looked_up)
{
	ck_assert_int_eq(connect_to("127.0.0.1"), 0);
	ck_assert_int_eq(asked, 0);
}

/* --- Meanwhile ---------------------------------------------------------------------- */

TEST(who_waits_for_a_name_says_so)
{
	sem_t wait;
	struct tdt_handle *handle;
	struct tdt_trace *trace;
	char *text;

	sem_init(&wait, 0, 0);
	held = &wait;
	answer = (const char *const[]){ "127.0.0.1", NULL };
	handle = spawn_connect("slow.example");
	UNTIL(asked == 1);
	/* The thread of the look-up may be there before the poll that began it has ended. */
	trace = request_waiting(handle);
	text = TEXT_WRITTEN(out, tdt_trace_print(trace, out));
	ck_assert_msg(strstr(text, "\"looking up slow.example\"") != NULL, "%s", text);
	ck_assert_int_eq(test_nodes_of(trace, "tdt_tcp_connect"), 1);
	free(text);
	tdt_trace_free(trace);
	sem_post(&wait);
	ck_assert_int_eq(outcome_of(handle), 0);
}

TEST(a_dropped_connect_leaves_its_memory_to_the_job)
{
	sem_t wait;
	struct tdt_handle *handle;

	sem_init(&wait, 0, 0);
	held = &wait;
	answer = (const char *const[]){ "127.0.0.1", NULL };
	handle = spawn_connect("slow.example");
	UNTIL(asked == 1);
	ck_assert_int_eq(tdt_task_abort(handle), 0);
	ck_assert_int_eq(outcome_of(handle), -ECANCELED);
	ck_assert_int_eq(answered, 0);
	ck_assert_int_eq(freed, 0);
	sem_post(&wait);
	UNTIL(freed == 1);
	ck_assert_ptr_null(tcp);
	ck_assert_int_eq(error, 1);
}

TEST(a_connect_that_waits_for_its_second_address_can_be_dropped)
{
	/* The second is a listener whose queue is full. */
	struct sockaddr_in address = { .sin_family = AF_INET };
	int full = socket(AF_INET, SOCK_STREAM, 0), before, fill[2];
	struct tdt_future future;
	bool elapsed = false;

	inet_pton(AF_INET, "127.0.0.5", &address.sin_addr);
	address.sin_port = htons(port);
	ck_assert_int_eq(bind(full, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(full, 0), 0);
	for (int i = 0; i < 2; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		__real_connect(fill[i], (struct sockaddr *)&address, sizeof address);
	}
	/* The last packet of the first one may come after connect() has returned. */
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = full, .events = POLLIN }, 1, 30000), 1);
	before = descriptors();
	answer = (const char *const[]){ "127.0.0.2", "127.0.0.5", NULL };
	future = tdt_tcp_connect("full.example", port, &tcp, &error);
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_timeout_ms(future, 50, &elapsed)), 0);
	ck_assert(elapsed);
	ck_assert_int_eq(descriptors(), before);
	for (int i = 0; i < 2; i++)
		close(fill[i]);
	close(full);
}

/* --- What there may not be ------------------------------------------------------------ */

TEST(without_a_thread_it_reports_that)
{
	threads_left = 0;
	ck_assert_int_eq(connect_to("some.example"), -EAGAIN);
	threads_left = -1;
}

static int make_one(void *nothing)
{
	struct tdt_future future = tdt_tcp_connect("localhost", 1, &tcp, &error);

	(void)nothing;
	if (tdt_future_is_none(&future))
		return -errno;
	tdt_future_drop(&future);
	return 0;
}

TEST(without_memory_there_is_no_future)
{
	no_memory_each(make_one, NULL, 5);
}

TEST(without_memory_for_another_socket_the_error_is_the_first_ones)
{
	int result;

	NEEDS_FAILING_MEMORY();
	answer = (const char *const[]){ "127.0.0.2", "127.0.0.1", NULL };
	memory_ends = true;
	result = tdt_rt_block_on(rt, tdt_tcp_connect("two.example", port, &tcp, &error));
	no_memory_end();
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(error, -ECONNREFUSED);
}

TEST(without_a_runtime_it_panics)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	struct tdt_future future = tdt_tcp_connect("localhost", 1, &tcp, &error);

	test_waker_init(&waker);
	errno = 0;
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	tdt_future_drop(&future);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(error, 1);
}
