// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A server in one thread: it waits for all clients at once, and while it serves, no call blocks but
 * that which makes the page.  The resolver is asked before.  Children that make profiles have
 * copies of all connections, so a connection is shut down before it is closed.
 */

#include "cli/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/program.h"

#define MOST_CLIENTS 16
#define MOST_REQUEST 8192 /* bytes */
#define HEAD_MAX 512      /* bytes of the head of an answer */
#define MOST_PROFILES 2   /* that are made at a time */
#define PROFILE_MAX ((off_t)64 << 20) /* bytes */

static int open_listener(const struct addrinfo *address)
{
	int listener = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
	    error;

	if (listener < 0)
		return -errno;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(listener, address->ai_addr, address->ai_addrlen) == 0 &&
	    listen(listener, MOST_CLIENTS) == 0)
		return listener;
	error = -errno;
	close(listener);
	return error;
}

int serve_listen(const char *where)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *address;
	const char *host, *port = NULL;
	char text[80];
	int listener;

	if (strlen(where) >= sizeof text)
		return -EINVAL;
	host = program_split_host(strcpy(text, where), &port);
	if (port == NULL)
		port = host;
	if (port == host || text[0] == '\0')
		host = "127.0.0.1";
	if (!tdt__is_port(port) || getaddrinfo(host, port, &hints, &address) != 0)
		return -EINVAL;
	listener = open_listener(address);
	freeaddrinfo(address);
	return listener;
}

int serve_url(int listener, char url[SERVE_URL_MAX])
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	char host[64], port[8];

	if (getsockname(listener, (struct sockaddr *)&address, &length) != 0)
		return -errno;
	if (getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return -EINVAL;
	snprintf(url, SERVE_URL_MAX, strchr(host, ':') != NULL ? "http://[%s]:%s/metrics"
							       : "http://%s:%s/metrics",
		 host, port);
	return 0;
}

void serve_find_names(struct serve_names *names)
{
	const struct addrinfo hints = { .ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	*names = (struct serve_names){ .name = "localhost" };
	gethostname(names->name, sizeof names->name - 1);
	strcpy(names->whole_name, names->name);
	if (getaddrinfo(names->name, NULL, &hints, &found) != 0)
		return;
	if (found->ai_canonname != NULL)
		snprintf(names->whole_name, sizeof names->whole_name, "%s", found->ai_canonname);
	freeaddrinfo(found);
}

struct client {
	int connection; /* -1: there is no such client */
	uint64_t since; /* when it came */
	uint64_t until; /* when it has to go */
	char request[MOST_REQUEST + 1]; /* ends with NUL */
	size_t received;
	bool awaits;  /* a profile, which a child makes */
	struct apart profile;
	char *answer; /* NULL: the request is not complete, or the profile */
	size_t length, sent;
};

struct server {
	int listener;
	const struct serve_names *names;
	const struct serve_limits *limits;
	const struct serve_pages *pages;
	struct client client[MOST_CLIENTS];
};

/* Returns what the child has returned. */
static int end_profile(struct client *client, bool too_long)
{
	const char *why;

	client->awaits = false;
	return apart_end(&client->profile, too_long, &why);
}

static void drop_client(struct client *client)
{
	if (client->awaits) {
		end_profile(client, true);
		close(client->profile.file);
	}
	shutdown(client->connection, SHUT_RDWR);
	close(client->connection);
	free(client->answer);
	client->connection = -1;
	client->answer = NULL;
}

/* A place for a client: the oldest one has to go if there is none. */
static struct client *place_for_client(struct server *server)
{
	struct client *oldest = &server->client[0];

	for (size_t i = 0; i < MOST_CLIENTS; i++) {
		struct client *client = &server->client[i];

		if (client->connection < 0)
			return client;
		if (client->since < oldest->since)
			oldest = client;
	}
	drop_client(oldest);
	return oldest;
}

static void accept_client(struct server *server)
{
	int connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (connection < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			poll(NULL, 0, 100); /* there is no memory or no descriptor just now */
		return;
	}
	client = place_for_client(server);
	client->connection = connection;
	client->since = tdt__clock();
	client->until = client->since + server->limits->request_ns;
	client->received = client->sent = 0;
}

/* The value of a header of the request, up to the end of its line: `*n` bytes.  NULL: none. */
static const char *header_of(const char *request, const char *name, size_t *n)
{
	for (const char *line = strchr(request, '\n'); line != NULL; line = strchr(line, '\n')) {
		const char *value = ++line + strlen(name);

		if (strncasecmp(line, name, strlen(name)) != 0 || *value != ':')
			continue;
		value++;
		value += strspn(value, " \t");
		*n = strcspn(value, "\r\n");
		return value;
	}
	return NULL;
}

/* Whether the client accepts OpenMetrics. */
static bool accepts_open_metrics(const char *request)
{
	size_t n;
	const char *types = header_of(request, "accept", &n);
	const char *type = types != NULL ? strcasestr(types, "application/openmetrics-text") : NULL;

	return type != NULL && type < types + n;
}

/*
 * Whether the client means this machine: by an address, as localhost, or by the machine's own name.
 * Any other name may be one that somebody else had resolved to an address here, so that pages of
 * theirs in a user's browser could read what only this machine may.
 */
static bool is_for_this_machine(const struct server *server, const char *request)
{
	struct in6_addr address;
	char name[SERVE_NAME_MAX];
	size_t n;
	const char *host = header_of(request, "host", &n);
	bool bracket = host != NULL && host[0] == '[';

	if (host == NULL)
		return true; /* no browser leaves it out */
	n = bracket ? strcspn(host++, "]\r\n") - 1 : strcspn(host, ": \t\r\n");
	if (n >= sizeof name)
		return false;
	memcpy(name, host, n);
	if (n > 1 && name[n - 1] == '.') /* the root of all names */
		n--;
	name[n] = '\0';
	return inet_pton(bracket ? AF_INET6 : AF_INET, name, &address) == 1 ||
	       strcasecmp(name, "localhost") == 0 || strcasecmp(name, server->names->name) == 0 ||
	       strcasecmp(name, server->names->whole_name) == 0;
}

static bool has_line_of_request(const char *request, const char *method)
{
	size_t path = strlen(method);
	size_t end = path + strcspn(request + path, " \r\n");

	return tdt__starts_with(request, method) && request[path] == '/' &&
	       tdt__starts_with(request + end, " HTTP/1.");
}

static bool is_path(const char *path, const char *page)
{
	size_t length = strcspn(path, "? ");

	return length == strlen(page) && memcmp(path, page, length) == 0;
}

/* The answer is to be sent.  Without memory there is none. */
static void set_answer(struct client *client, const char *status, const char *type,
		       const char *text, size_t length, bool body)
{
	client->answer = malloc(HEAD_MAX + length);
	if (client->answer == NULL)
		return;
	client->length = (size_t)snprintf(client->answer, HEAD_MAX,
					  "HTTP/1.1 %s\r\nContent-Type: %s\r\n"
					  "Content-Length: %zu\r\nConnection: close\r\n\r\n",
					  status, type, length);
	if (!body)
		return;
	memcpy(client->answer + client->length, text, length);
	client->length += length;
}

/* The text is the status, and `more`. */
static void set_refusal(struct client *client, const char *status, const char *more)
{
	char text[256];
	int length = snprintf(text, sizeof text, "%s%s\n", status, more);

	set_answer(client, status, "text/plain; charset=utf-8", text, (size_t)length, true);
}

static void set_page(struct server *server, struct client *client, bool body)
{
	bool open_metrics = accepts_open_metrics(client->request);
	char *text = NULL;
	size_t length = 0;

	if (server->pages->page(server->pages->arg, open_metrics, &text, &length) == 0)
		set_answer(client, "200 OK",
			   open_metrics
				   ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				   : "text/plain; version=0.0.4; charset=utf-8",
			   text, length, body);
	else
		set_refusal(client, "500 Internal Server Error", "");
	free(text);
}

static unsigned count_profiles(const struct server *server)
{
	unsigned n = 0;

	for (size_t i = 0; i < MOST_CLIENTS; i++)
		n += server->client[i].awaits;
	return n;
}

static void start_profile_for(struct server *server, struct client *client, const char *path)
{
	const char *query = path + strcspn(path, "? ");
	int seconds = -EBUSY;

	if (count_profiles(server) < MOST_PROFILES)
		seconds = server->pages->start(server->pages->arg, query + (*query == '?'),
					       &client->profile);
	client->awaits = seconds >= 0;
	if (seconds == -EBUSY)
		set_refusal(client, "503 Service Unavailable", ": two profiles are made already");
	else if (seconds == -EINVAL)
		set_refusal(client, "400 Bad Request",
			    ": ?seconds=1 to 60, and with --all also &pid=NUMBER");
	else if (seconds == -ESRCH)
		set_refusal(client, "404 Not Found", ": no such process is served here");
	else if (seconds == -EPERM)
		set_refusal(client, "403 Forbidden",
			    ": a profile has names of tasks and functions, so it needs --names");
	else if (seconds < 0)
		set_refusal(client, "500 Internal Server Error", "");
	else
		client->until = tdt__clock() + (uint64_t)seconds * TDT__SECOND;
}

/* The child has ended: what it has written is the answer. */
static void answer_profile(struct server *server, struct client *client)
{
	int status = end_profile(client, false), file = client->profile.file;
	struct stat found = { .st_size = 0 };
	char *text = NULL;

	if (status == 0 && fstat(file, &found) == 0 && found.st_size <= PROFILE_MAX)
		text = malloc((size_t)found.st_size + 1);
	if (text != NULL && pread(file, text, (size_t)found.st_size, 0) == found.st_size)
		set_answer(client, "200 OK", "application/octet-stream", text,
			   (size_t)found.st_size, true);
	else
		set_refusal(client, "500 Internal Server Error",
			    ": the process has ended, or may not be read, or does not use libtdt");
	free(text);
	close(file);
	client->until = tdt__clock() + server->limits->answer_ns;
	if (client->answer == NULL)
		drop_client(client);
}

static void answer_request(struct server *server, struct client *client)
{
	const char *path = strchr(client->request, '/');
	bool get = has_line_of_request(client->request, "GET "),
	     head = has_line_of_request(client->request, "HEAD ");

	if (!get && !head)
		set_refusal(client, "400 Bad Request", "");
	else if (!is_for_this_machine(server, client->request))
		set_refusal(client, "403 Forbidden",
			    ": Host is neither an address, nor localhost, nor this machine's "
			    "own name, short or whole");
	else if (is_path(path, "/metrics"))
		set_page(server, client, get);
	else if (!is_path(path, "/debug/pprof/tasks"))
		set_refusal(client, "404 Not Found", "");
	else if (head)
		set_refusal(client, "405 Method Not Allowed", "");
	else
		start_profile_for(server, client, path);
	if (client->awaits)
		return;
	client->until = tdt__clock() + server->limits->answer_ns;
	if (client->answer == NULL)
		drop_client(client);
}

static bool is_complete(const char *request)
{
	return strstr(request, "\r\n\r\n") != NULL || strstr(request, "\n\n") != NULL;
}

static void receive_request(struct server *server, struct client *client)
{
	ssize_t n = recv(client->connection, client->request + client->received,
			 MOST_REQUEST - client->received, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_client(client);
		return;
	}
	client->received += (size_t)n;
	client->request[client->received] = '\0';
	if (is_complete(client->request))
		answer_request(server, client);
	else if (client->received == MOST_REQUEST)
		set_refusal(client, "431 Request Header Fields Too Large", "");
}

static void send_to_client(struct client *client)
{
	ssize_t n = send(client->connection, client->answer + client->sent,
			 client->length - client->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		client->sent += (size_t)n;
	if (n < 0 || client->sent == client->length)
		drop_client(client);
}

/* `gone`: the client of a profile has closed the connection. */
static void serve_client(struct server *server, struct client *client, short events, bool gone)
{
	if (gone)
		drop_client(client);
	else if (events != 0 && client->awaits)
		answer_profile(server, client);
	else if (events != 0 && client->answer == NULL)
		receive_request(server, client);
	else if (events != 0)
		send_to_client(client);
	if (client->connection >= 0 && tdt__clock() >= client->until)
		drop_client(client);
}

/* What is waited for: the listener, what each client is to do, and the end of one that awaits. */
#define EVENTS (1 + 2 * MOST_CLIENTS)

/* Returns for how many milliseconds to wait; -1: for ever. */
static int list_events(const struct server *server, struct pollfd event[EVENTS])
{
	uint64_t now = tdt__clock(), first = UINT64_MAX;

	event[0] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
	for (size_t i = 0; i < MOST_CLIENTS; i++) {
		const struct client *client = &server->client[i];

		event[1 + i] = (struct pollfd){
			.fd = client->awaits ? client->profile.pipe : client->connection,
			.events = client->answer != NULL ? POLLOUT : POLLIN,
		};
		event[1 + MOST_CLIENTS + i] = (struct pollfd){
			.fd = client->awaits ? client->connection : -1, .events = POLLRDHUP
		};
		if (client->connection >= 0 && client->until < first)
			first = client->until;
	}
	if (first == UINT64_MAX)
		return -1;
	return first > now ? (int)((first - now) / 1000000 + 1) : 0;
}

static int serve_once(struct server *server)
{
	struct pollfd event[EVENTS];
	int most_ms = list_events(server, event);

	if (poll(event, EVENTS, most_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < MOST_CLIENTS; i++)
		if (server->client[i].connection >= 0)
			serve_client(server, &server->client[i], event[1 + i].revents,
				     event[1 + MOST_CLIENTS + i].revents != 0);
	if (event[0].revents != 0)
		accept_client(server);
	return 0;
}

int serve(int listener, const struct serve_names *names, const struct serve_limits *limits,
	  const struct serve_pages *pages)
{
	struct server *server = calloc(1, sizeof *server);
	int error = 0;

	if (server == NULL)
		return -ENOMEM;
	server->listener = listener;
	server->names = names;
	server->limits = limits;
	server->pages = pages;
	for (size_t i = 0; i < MOST_CLIENTS; i++)
		server->client[i].connection = -1;
	while (error == 0)
		error = serve_once(server);
	for (size_t i = 0; i < MOST_CLIENTS; i++)
		if (server->client[i].connection >= 0)
			drop_client(&server->client[i]);
	free(server);
	return error;
}
