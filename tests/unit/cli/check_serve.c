// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/serve.  A server in a child process, and clients of all kinds: also those that are too
 * slow, say too much, never take what they have asked for, or come in crowds.
 */

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cli/serve.h"
#include "lib/test.h"

#define CROWD 40                /* more clients than there is room for */
#define LARGE ((size_t)32 << 20) /* bytes, which no socket takes at once */

static struct serve_names names;
static struct serve_limits limits;
static size_t page_size;
static int page_error, profile_error;
static int gate[2]; /* a profile waits for a byte of this pipe */
static int listener;
static pid_t server;

static int make_page(void *arg, bool open_metrics, char **text, size_t *length)
{
	ck_assert_ptr_eq(arg, &page_size);
	if (page_error != 0)
		return page_error;
	*length = page_size != 0 ? page_size : strlen("open\n");
	*text = calloc(*length + 1, 1);
	if (page_size == 0)
		strcpy(*text, open_metrics ? "open\n" : "prom\n");
	return *text != NULL ? 0 : -ENOMEM;
}

static int make_profile(FILE *out, void *query)
{
	char byte;

	if (read(gate[0], &byte, 1) == 1)
		fprintf(out, "profile %s", (const char *)query);
	return byte == 'x' ? 1 : 0;
}

static int start_profile(void *arg, const char *query, struct apart *apart)
{
	char own[64];
	int error = profile_error;

	snprintf(own, sizeof own, "%.*s", (int)strcspn(query, " "), query);
	if (error == 0)
		error = apart_start(apart, make_profile, own, 60);
	return error != 0 ? error : 60;
}

static void start_at(const char *where)
{
	listener = serve_listen(where);
	ck_assert_int_ge(listener, 0);
	fflush(stdout);
	server = fork();
	ck_assert_int_ge(server, 0);
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener, &names, &limits,
		      &(const struct serve_pages){ make_page, start_profile, &page_size });
		_exit(1);
	}
}

static void start_server(void)
{
	start_at("0");
}

static void set_up(void)
{
	names = (struct serve_names){ "node7", "node7.example" };
	limits = (struct serve_limits){ 60 * TDT__SECOND, 60 * TDT__SECOND };
	page_size = 0;
	page_error = profile_error = 0;
	server = 0;
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
}

static void tear_down(void)
{
	if (server == 0)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
	close(listener);
}

/* --- Clients ------------------------------------------------------------------------ */

/* The server is started, unless it runs. */
static int connect_to_server(void)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	int connection;

	if (server == 0)
		start_server();
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	connection = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(connection, 0);
	ck_assert_int_eq(connect(connection, (struct sockaddr *)&address, length), 0);
	return connection;
}

static void say(int connection, const char *text)
{
	ck_assert_int_eq(send(connection, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

/* Read until the server ends the connection; it may do so without an answer. */
static void hear(int connection, char *text, size_t size)
{
	size_t length = 0;
	ssize_t n;

	while (length < size - 1 &&
	       (n = recv(connection, text + length, size - 1 - length, 0)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	close(connection);
}

static const char *answer_to(const char *request)
{
	static char text[1024];
	int connection = connect_to_server();

	say(connection, request);
	hear(connection, text, sizeof text);
	return text;
}

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static const char *body_of(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");

	return end != NULL ? end + 4 : "(no end of the head)";
}

#define GET "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

CASE(requests, .setup = set_up, .teardown = tear_down)

TEST(the_page_is_served_in_the_form_that_the_client_accepts)
{
	ck_assert_str_eq(answer_to(GET),
			 "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; "
			 "charset=utf-8\r\nContent-Length: 5\r\nConnection: close\r\n\r\nprom\n");
	ck_assert_str_eq(answer_to("GET /metrics HTTP/1.1\r\nX: y\r\n"
				   "aCCept: application/openmetrics-text;version=1.0.0,*/*\r\n"
				   "\r\n"),
			 "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; "
			 "version=1.0.0; charset=utf-8\r\n"
			 "Content-Length: 5\r\nConnection: close\r\n\r\nopen\n");
}

TEST(only_the_header_accept_chooses_the_form)
{
	ck_assert_str_eq(body_of(answer_to("GET /metrics?accept=application/openmetrics-text "
					   "HTTP/1.1\r\nAccept: text/plain\r\n"
					   "User-Agent: application/openmetrics-text\r\n\r\n")),
			 "prom\n");
}

TEST(a_head_has_no_body)
{
	const char *answer = answer_to("HEAD /metrics HTTP/1.0\r\n\r\n");

	ck_assert(begins(answer, "HTTP/1.1 200 OK\r\n"));
	ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 5\r\n"));
	ck_assert_str_eq(body_of(answer), "");
}

TEST(a_request_for_something_else_is_refused)
{
	static const char *const paths[] = { "/", "/metric", "/metricsx", "/metrics/", "//metrics",
					     "/..//metrics" };
	char request[128];

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n\r\n", paths[i]);
		ck_assert(begins(answer_to(request), "HTTP/1.1 404 "));
	}
}

/* The status of the answer to a request with this header. */
static int status_for(const char *host)
{
	char request[512];

	snprintf(request, sizeof request, "GET /metrics HTTP/1.1\r\n%s\r\n\r\n", host);
	return atoi(answer_to(request) + strlen("HTTP/1.1 "));
}

TEST(only_names_of_this_machine_are_answered)
{
	static const char *const own[] = { "Host: localhost", "host:LocalHost:9777",
					   "Host: 127.0.0.1:9777", "Host: 10.1.2.3",
					   "Host: [::1]:9777", "Host: [fe80::1]", "X: y",
					   "Host: node7", "Host: Node7.Example:9777",
					   "Host: node7.example.:9777", "Host: localhost." };
	static const char *const others[] = { "Host: evil.example", "Host: evil.example:9777",
					      "Host: localhost.evil.example", "Host:", "Host: .",
					      "Host: node7..", "Host: node8",
					      "Host: 127.0.0.1.evil.example",
					      "Host: [evil.example]:9777", "Host: [", "Host: []" };

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		ck_assert_int_eq(status_for(own[i]), 200);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		ck_assert_int_eq(status_for(others[i]), 403);
	ck_assert_str_eq(body_of(answer_to("GET /metrics HTTP/1.1\r\nHost: node8\r\n\r\n")),
			 "403 Forbidden: Host is neither an address, nor localhost, nor this "
			 "machine's own name, short or whole\n");
}

TEST(the_machine_has_its_own_name)
{
	char name[SERVE_NAME_MAX] = "";
	struct serve_names found;

	ck_assert_int_eq(gethostname(name, sizeof name - 1), 0);
	serve_find_names(&found);
	ck_assert_str_eq(found.name, name);
	ck_assert_str_ne(found.whole_name, "");
}

TEST(what_is_no_request_is_refused)
{
	static const char *const requests[] = {
		"\n\n",
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET /metrics\r\n\r\n",
		"GET /metrics HTTP/2\r\n\r\n",
		"GET metrics HTTP/1.1\r\n\r\n",
		"GET http://x/metrics HTTP/1.1\r\n\r\n",
		"get /metrics HTTP/1.1\r\n\r\n",
		"POST /metrics HTTP/1.1\r\n\r\n",
		"x\r\nGET /metrics HTTP/1.1\r\n\r\n",
		"GET /metrics\r\n HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x02 TLS \n\n",
	};

	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
		ck_assert(begins(answer_to(requests[i]), "HTTP/1.1 400 "));
}

TEST(a_page_that_cannot_be_made_is_an_error)
{
	page_error = -EIO;
	ck_assert(begins(answer_to(GET), "HTTP/1.1 500 "));
}

TEST(a_request_may_come_in_pieces)
{
	int connection = connect_to_server();
	char text[1024];

	for (const char *at = GET; *at != '\0'; at++) {
		say(connection, (char[]){ *at, '\0' });
		poll(NULL, 0, 1);
	}
	hear(connection, text, sizeof text);
	ck_assert_str_eq(body_of(text), "prom\n");
}

/* Who is held up for as long as the server has patience gets no answer, and asks again. */
static void serves_others(void)
{
	const char *answer;

	do
		answer = answer_to(GET);
	while (answer[0] == '\0');
	ck_assert_str_eq(body_of(answer), "prom\n");
}

#define PROFILE "GET /debug/pprof/tasks?seconds=5&pid=7 HTTP/1.1\r\nHost: localhost\r\n\r\n"

CASE(profiles, .setup = set_up, .teardown = tear_down)

/* Ask for a profile.  Its child has taken a place when the page has been served. */
static int await_profile(void)
{
	int connection = connect_to_server();

	say(connection, PROFILE);
	serves_others();
	return connection;
}

/* Whether there is no answer yet. */
static bool still_awaits(int connection)
{
	char byte;

	return recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void open_gate(const char *bytes)
{
	ck_assert_int_eq(write(gate[1], bytes, strlen(bytes)), (int)strlen(bytes));
}

TEST(a_profile_is_made_while_others_are_served)
{
	int connection = await_profile();
	char text[1024];

	open_gate("g");
	hear(connection, text, sizeof text);
	ck_assert_str_eq(text, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
			       "Content-Length: 23\r\nConnection: close\r\n\r\n"
			       "profile seconds=5&pid=7");
}

TEST(a_profile_that_fails_is_an_error)
{
	int connection = await_profile();
	char text[1024];

	open_gate("x");
	hear(connection, text, sizeof text);
	ck_assert(begins(text, "HTTP/1.1 500 "));
}

TEST(two_profiles_are_made_at_a_time_and_a_client_that_goes_makes_room)
{
	int first = await_profile(), second = await_profile(), third;
	char text[1024];

	ck_assert(begins(answer_to(PROFILE), "HTTP/1.1 503 "));
	close(first);
	while (third = await_profile(), !still_awaits(third))
		close(third);
	ck_assert(begins(answer_to(PROFILE), "HTTP/1.1 503 "));
	open_gate("gg");
	hear(second, text, sizeof text);
	ck_assert(begins(text, "HTTP/1.1 200 "));
	hear(third, text, sizeof text);
	ck_assert(begins(text, "HTTP/1.1 200 "));
}

TEST(a_profile_has_a_body_so_its_head_alone_is_refused)
{
	ck_assert(begins(answer_to("HEAD /debug/pprof/tasks HTTP/1.1\r\n\r\n"),
			 "HTTP/1.1 405 "));
}

TEST(a_query_that_is_not_understood_and_profiles_that_are_not_served_are_refused)
{
	profile_error = -EINVAL;
	ck_assert(begins(answer_to(PROFILE), "HTTP/1.1 400 "));
	tear_down();
	profile_error = -EPERM;
	ck_assert(begins(answer_to(PROFILE), "HTTP/1.1 403 "));
	ck_assert(begins(answer_to("GET /debug/pprof/tasks HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
			 "HTTP/1.1 403 "));
	ck_assert(begins(answer_to("GET /debug/pprof/ HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
}

CASE(hostile, .setup = set_up, .teardown = tear_down)

TEST(a_request_without_an_end_is_refused)
{
	char chunk[1024], text[1024];
	int connection = connect_to_server();

	memset(chunk, 'x', sizeof chunk);
	for (int i = 0; i < 1000; i++)
		if (send(connection, chunk, sizeof chunk, MSG_NOSIGNAL) < 0)
			break;
	hear(connection, text, sizeof text); /* the answer may be lost with the connection */
	ck_assert(text[0] == '\0' || begins(text, "HTTP/1.1 431 "));
	serves_others();
}

TEST(a_request_with_nul_bytes_does_no_harm)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nX: \0\r\n\r\n\0\n\n";
	int connection;

	limits.request_ns = TDT__SECOND / 10;
	connection = connect_to_server();
	ck_assert_int_eq(send(connection, request, sizeof request, MSG_NOSIGNAL),
			 (int)sizeof request);
	while (recv(connection, (char[64]){ 0 }, 64, 0) > 0)
		;
	close(connection);
	serves_others();
}

TEST(a_client_that_goes_away_does_no_harm)
{
	close(connect_to_server());
	for (int i = 0; i < 10; i++) {
		int connection = connect_to_server();
		const struct linger now = { 1, 0 };

		say(connection, i % 2 == 0 ? "GET /met" : GET);
		setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
		close(connection);
	}
	serves_others();
}

TEST(a_client_that_sends_too_slowly_has_to_go)
{
	char text[1024];
	int connection;

	limits.request_ns = TDT__SECOND / 10;
	connection = connect_to_server();
	say(connection, "GET /metrics");
	hear(connection, text, sizeof text);
	ck_assert_str_eq(text, "");
}

TEST(even_if_it_never_stops_sending)
{
	int connection;

	limits.request_ns = TDT__SECOND / 10;
	connection = connect_to_server();
	while (send(connection, "x", 1, MSG_NOSIGNAL) == 1)
		poll(NULL, 0, 20);
	close(connection);
	serves_others();
}

/* How many descriptors the server has. */
static unsigned count_descriptors(void)
{
	char path[64];
	unsigned n = 0;
	DIR *directory;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)server);
	directory = opendir(path);
	ck_assert_ptr_nonnull(directory);
	while (readdir(directory) != NULL)
		n++;
	closedir(directory);
	return n;
}

/* What the kernel has taken from the server already stays for the client. */
TEST(a_client_that_does_not_take_its_answer_has_to_go)
{
	static char part[1 << 16];
	unsigned without;
	size_t got = 0;
	int connection;
	ssize_t n;

	limits.answer_ns = TDT__SECOND / 10;
	page_size = LARGE;
	start_server();
	without = count_descriptors();
	/* Until an answer has begun: who is held up for so long has nothing to send any more. */
	for (int i = 0; i < 100; i++) {
		connection = connect_to_server();
		say(connection, GET);
		if (recv(connection, part, 1, MSG_PEEK) == 1)
			break;
		close(connection);
	}
	while (count_descriptors() > without)
		poll(NULL, 0, 10);
	while ((n = recv(connection, part, sizeof part, 0)) > 0)
		got += (size_t)n;
	ck_assert_uint_gt(got, 0);
	ck_assert_uint_lt(got, LARGE);
	close(connection);
}

TEST(a_crowd_that_says_nothing_does_not_keep_others_away)
{
	int crowd[CROWD];

	for (int i = 0; i < CROWD; i++)
		crowd[i] = connect_to_server();
	serves_others();
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
}

TEST(nor_does_a_crowd_that_takes_no_answer)
{
	int crowd[CROWD];
	char text[1024];
	int last;

	page_size = LARGE / 16;
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = connect_to_server();
		send(crowd[i], GET, strlen(GET), MSG_NOSIGNAL);
	}
	last = connect_to_server();
	say(last, GET);
	hear(last, text, sizeof text);
	ck_assert(begins(text, "HTTP/1.1 200 OK\r\n"));
	for (int i = 0; i < CROWD; i++)
		close(crowd[i]);
}

/* Listen there, and expect a URL that begins so. */
static void listens(const char *where, const char *expected)
{
	char url[SERVE_URL_MAX];

	listener = serve_listen(where);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(serve_url(listener, url), 0);
	ck_assert_msg(begins(url, expected), "%s", url);
	ck_assert_str_eq(strrchr(url, '/'), "/metrics");
	close(listener);
}

CASE(addresses, .setup = set_up, .teardown = tear_down)

TEST(a_port_alone_is_one_of_the_loopback_interface)
{
	listens("0", "http://127.0.0.1:");
	listens(":0", "http://127.0.0.1:");
}

TEST(another_address_is_taken_if_it_is_given)
{
	listens("127.0.0.2:0", "http://127.0.0.2:");
	listens("0.0.0.0:0", "http://0.0.0.0:");
}

TEST(addresses_of_ipv6_are_understood_with_and_without_brackets)
{
	int tried = serve_listen("[::1]:0");

	NOT_TRIED_IF(tried == -EADDRNOTAVAIL || tried == -EAFNOSUPPORT, "there is no IPv6 here");
	ck_assert_int_ge(tried, 0);
	close(tried);
	listens("[::1]:0", "http://[::1]:");
	listens("::1:0", "http://[::1]:");
	start_at("[::1]:0");
	serves_others();
}

TEST(what_is_no_address_is_not_understood)
{
	static const char *const wrong[] = {
		"", ":", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
		"127.0.0.1:123456", "127.0.0.1:-1", "127.0.0.1: 1", "localhost:1", "[::1]",
		"[::1:1", "::1]:1", "[]:1", "256.0.0.1:1", "http://127.0.0.1:1",
		"11111111111111111111111111111111111111111111111111111111111111111111111:1",
	};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		ck_assert_int_eq(serve_listen(wrong[i]), -EINVAL);
}

TEST(a_port_that_is_in_use_is_reported)
{
	char where[32];
	struct sockaddr_in address;
	socklen_t length = sizeof address;

	start_server();
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	snprintf(where, sizeof where, "127.0.0.1:%u", ntohs(address.sin_port));
	ck_assert_int_eq(serve_listen(where), -EADDRINUSE);
}
