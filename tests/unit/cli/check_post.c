// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/post.  Messages to servers in child processes, which take them, refuse them, say
 * nothing, or say what is not HTTP.
 */

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "cli/post.h"
#include "lib/test.h"

static struct post_place place;
static struct post_answer answer;
static char url[64];
static int listener;
static pid_t server;
static bool stays_open; /* the server waits until the client closes the connection */

/* Nobody else gets the port, also if nobody listens there. */
static void take_any_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	sprintf(url, "http://127.0.0.1:%u", ntohs(address.sin_port));
}

/* Read up to the end of the head, and then `length` bytes. */
static void receive(int connection, char *request, size_t room, size_t length)
{
	size_t n = 0;
	char *end = NULL;

	while (end == NULL || n < (size_t)(end + 4 - request) + length) {
		ssize_t got = recv(connection, request + n, room - 1 - n, 0);

		MUST(got > 0);
		n += (size_t)got;
		request[n] = '\0';
		end = strstr(request, "\r\n\r\n");
	}
}

/* A server that takes one request, with a message of so many bytes, and gives the answer. */
static void serve_once(size_t length, const char *text)
{
	static char request[1 << 16];
	int connection;

	ck_assert_int_eq(listen(listener, 4), 0);
	fflush(stdout);
	server = fork();
	ck_assert_int_ge(server, 0);
	if (server != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	connection = accept(listener, NULL, NULL);
	if (length != 0)
		receive(connection, request, sizeof request, length);
	if (strcmp(text, "echo") == 0) {
		dprintf(connection, "HTTP/1.1 200 OK\r\n\r\n");
		text = request;
	}
	MUST(send(connection, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
	while (stays_open && recv(connection, request, sizeof request, 0) > 0)
		;
	close(connection);
	_exit(0);
}

static void set_up(void)
{
	server = 0;
	take_any_port();
	ck_assert_ptr_null(post_place_init(&place, url, "1", "/v1/traces"));
	place.silence = 60; /* no machine is that slow */
}

static void tear_down(void)
{
	post_place_fini(&place);
	close(listener);
	if (server == 0)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static int post_hello(void)
{
	return post(&place, "text/x", "hello", 5, &answer);
}

CASE(answers, .setup = set_up, .teardown = tear_down)

TEST(a_message_is_one_post_of_http)
{
	char expected[512];

	serve_once(5, "echo");
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_int_eq(answer.status, 200);
	ck_assert_str_eq(answer.reason, "OK");
	snprintf(expected, sizeof expected,
		 "POST /v1/traces HTTP/1.1\r\nHost: %s\r\nUser-Agent: tdt\r\n"
		 "Content-Type: text/x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
		 url + strlen("http://"));
	ck_assert_str_eq(answer.body, expected);
	ck_assert_uint_eq(answer.n, strlen(expected));
}

TEST(a_refusal_has_its_reason_and_its_body)
{
	serve_once(5, "HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\n\r\nlater");
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_int_eq(answer.status, 503);
	ck_assert_str_eq(answer.reason, "Service Unavailable");
	ck_assert_str_eq(answer.body, "later");
}

/* The server takes nothing of the message, which no socket takes at once. */
TEST(an_answer_counts_that_comes_before_the_message_is_sent)
{
	size_t n = (size_t)64 << 20;
	void *message = calloc(n, 1);
	int error;

	serve_once(0, "HTTP/1.1 413 Too Large\r\n\r\n");
	error = post(&place, "text/x", message, n, &answer);
	free(message);
	/* The kernel may drop the answer of a server that leaves bytes unread. */
	if (error == 0)
		ck_assert_int_eq(answer.status, 413);
	else
		ck_assert(error == -ECONNRESET || error == -EPIPE);
}

TEST(chunks_are_put_together)
{
	serve_once(5, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		      "3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\n\r\n");
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_str_eq(answer.body, "abc0123456789");
	ck_assert_uint_eq(answer.n, 13);
}

TEST(an_answer_ends_where_it_says, .to = 3)
{
	static const char *const answers[] = {
		"Content-Length: 3\r\n\r\nabc", "content-length:3\r\nX: y\r\n\r\nabc",
		"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
	};
	char text[200];

	place.silence = 3600;
	stays_open = true;
	snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s", answers[_i]);
	serve_once(5, text);
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_str_eq(answer.body, "abc");
}

TEST(an_answer_without_content_is_whole)
{
	place.silence = 3600;
	stays_open = true;
	serve_once(5, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n");
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_uint_eq(answer.n, 0);
}

TEST(a_length_that_is_none_ends_with_the_connection, .to = 2)
{
	static const char *const lengths[] = { "-1", "99999999999999999999999" };
	char text[200];

	snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\nabc",
		 lengths[_i]);
	serve_once(5, text);
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_str_eq(answer.body, "abc");
}

TEST(damaged_chunks_are_left_out, .to = 3)
{
	static const char *const chunks[] = { "3\r\nabc\r\nffffffffffffffff\r\nx", "3\r\nabc\r\n9",
					      "3\r\nabc\r\nnonsense\r\n" };
	char text[200];

	snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s",
		 chunks[_i]);
	serve_once(5, text);
	ck_assert_int_eq(post_hello(), 0);
	ck_assert_str_eq(answer.body, "abc");
}

TEST(what_is_no_http_is_an_error, .to = 7)
{
	static const char *const texts[] = {
		"",
		"SSH-2.0-x\r\n\r\n",
		"HTTP/1.1 200 OK\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1200\r\n\r\n",
		"HTTP/1.1\t200\r\n\r\n",
		"HTTP/1.1\r\n200 OK\r\n\r\n",
	};

	serve_once(5, texts[_i]);
	ck_assert_int_eq(post_hello(), -EPROTO);
}

TEST(a_server_that_says_nothing_is_not_waited_for_for_ever)
{
	ck_assert_int_eq(listen(listener, 4), 0);
	place.silence = 1; /* nobody accepts the connection */
	ck_assert_int_eq(post_hello(), -ETIMEDOUT);
}

TEST(a_port_where_nobody_listens_refuses)
{
	ck_assert_int_eq(post_hello(), -ECONNREFUSED);
}

CASE(urls)

TEST(a_url_has_a_host_and_may_have_a_port_and_a_path)
{
	static const struct {
		const char *url, *authority, *path;
		unsigned port;
	} good[] = {
		{ "http://127.0.0.1", "127.0.0.1", "/usual", 4318 },
		{ "http://127.0.0.1/", "127.0.0.1", "/usual", 4318 },
		{ "http://127.0.0.1:80/a/b", "127.0.0.1:80", "/a/b", 80 },
		{ "http://127.0.0.1:/", "127.0.0.1:", "/usual", 4318 },
		{ "http://[::1]:81", "[::1]:81", "/usual", 81 },
		{ "http://[::1]", "[::1]", "/usual", 4318 },
	};

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		const struct sockaddr_in *found;

		ck_assert_ptr_null(post_place_init(&place, good[i].url, "4318", "/usual"));
		ck_assert_str_eq(place.authority, good[i].authority);
		ck_assert_str_eq(place.path, good[i].path);
		/* The port stands at the same place of both families. */
		found = (const struct sockaddr_in *)(const void *)place.addresses->ai_addr;
		ck_assert_uint_eq(ntohs(found->sin_port), good[i].port);
		post_place_fini(&place);
	}
}

TEST(other_urls_are_refused)
{
	static const char *const bad[] = { "http://",
					   "http:///v1/traces",
					   "http://a b",
					   "http://a\r\nX: y",
					   "http://me@a",
					   "http://127.0.0.1:x",
					   "http://127.0.0.1:70000",
					   "http://127.0.0.1:+80",
					   "http://[::1",
					   "http://127.0.0.1/\xff",
					   "http://127.0.0.1/a?b" };
	char longest[1024];

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_ptr_nonnull(post_place_init(&place, bad[i], "4318", "/usual"));
	snprintf(longest, sizeof longest, "http://127.0.0.1/%0900d", 1);
	ck_assert_ptr_nonnull(post_place_init(&place, longest, "4318", "/usual"));
	snprintf(longest, sizeof longest, "http://%0900d", 1);
	ck_assert_ptr_nonnull(post_place_init(&place, longest, "4318", "/usual"));
}
