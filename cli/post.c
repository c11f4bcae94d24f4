// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sending messages by HTTP: see post.h. */

#include "cli/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/program.h"

const char *post_place_init(struct post_place *place, const char *url, const char *port,
			    const char *path)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *at = url + strlen("http://");
	size_t length = strcspn(at, "/");
	char authority[sizeof place->authority];
	const char *host, *given = "";
	int error;

	for (const char *c = at; *c != '\0'; c++)
		if (*c <= ' ' || *c > '~' || *c == '#' || *c == '@' || *c == '?')
			return "it has characters that it must not have";
	if (length == 0 || length >= sizeof authority)
		return "it has no host";
	if (at[length] != '\0' && at[length + 1] != '\0')
		path = at + length;
	if (strlen(path) >= sizeof place->path)
		return "it is too long";
	snprintf(place->path, sizeof place->path, "%s", path);
	snprintf(place->authority, sizeof place->authority, "%.*s", (int)length, at);
	strcpy(authority, place->authority);
	place->silence = 10;
	host = program_split_host(authority, &given);
	if (given[0] != '\0')
		port = given;
	if (!tdt__is_port(port))
		return "its port is none";
	error = getaddrinfo(host, port, &hints, &place->addresses);
	return error != 0 ? gai_strerror(error) : NULL;
}

void post_place_fini(struct post_place *place)
{
	freeaddrinfo(place->addresses);
}

/* Returns a socket or a negative errno. */
static int connect_to(const struct addrinfo *address, unsigned seconds)
{
	const struct timeval silence = { .tv_sec = seconds };
	int connection = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (connection < 0)
		return -errno;
	/* The second limit is that of connect(2), too. */
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
	setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
	if (connect(connection, address->ai_addr, address->ai_addrlen) == 0)
		return connection;
	error = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	close(connection);
	return error;
}

/* Returns 0 or a negative errno. */
static int send_bytes(int connection, const void *bytes, size_t n)
{
	for (const char *at = bytes; n > 0;) {
		ssize_t sent = send(connection, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		at += sent;
		n -= (size_t)sent;
	}
	return 0;
}

/* Whether the last chunk of a body has come, whose end has a NUL. */
static bool has_last_chunk(const char *at, const char *end)
{
	for (;;) {
		char *behind;
		size_t length = strtoul(at, &behind, 16);
		const char *line = strchr(behind, '\n');

		if (behind == at || line == NULL || length > (size_t)(end - line - 1))
			return false;
		if (length == 0)
			return true;
		at = line + 1 + length;
	}
}

/* Whether `n` bytes are a whole answer.  One that does not say so ends with its connection. */
static bool is_whole_answer(const char *answer, size_t n)
{
	const char *head_end = strstr(answer, "\r\n\r\n"), *body, *field;
	const char *chunked = strcasestr(answer, "\ntransfer-encoding: chunked");
	size_t blanks;

	if (head_end == NULL)
		return false;
	if (strncmp(answer, "HTTP/1.1 204", strlen("HTTP/1.1 204")) == 0)
		return true; /* no content */
	body = head_end + 4;
	if (chunked != NULL && chunked < head_end)
		return has_last_chunk(body, answer + n);
	field = strcasestr(answer, "\ncontent-length:");
	if (field == NULL || field > head_end)
		return false;
	field += strlen("\ncontent-length:");
	blanks = strspn(field, " \t");
	return tdt__is_digit(field[blanks]) &&
	       strtoull(field, NULL, 10) <= (size_t)(answer + n - body);
}

/* Receive the answer, or until the server closes the connection.  Returns 0 or a negative errno. */
static int receive_answer(int connection, struct post_answer *answer, size_t *n)
{
	ssize_t got = 1;

	*n = 0;
	answer->bytes[0] = '\0';
	while (got != 0 && *n < POST_ANSWER_MAX && !is_whole_answer(answer->bytes, *n)) {
		got = recv(connection, answer->bytes + *n, POST_ANSWER_MAX - *n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		*n += (size_t)got;
		answer->bytes[*n] = '\0';
	}
	if (got >= 0)
		return 0;
	return errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* Put the chunks of a body together.  Returns how long they are; what is damaged is left out. */
static size_t join_chunks(char *body, size_t n)
{
	char *to = body, *at = body, *end = body + n;

	for (;;) {
		size_t length = strtoul(at, &at, 16);
		char *line = memchr(at, '\n', (size_t)(end - at));

		if (length == 0 || line == NULL || length > (size_t)(end - line - 1))
			break;
		memmove(to, line + 1, length);
		to += length;
		at = line + 1 + length;
	}
	return (size_t)(to - body);
}

/* Read the head of an answer of `n` bytes.  Returns 0 or -EPROTO. */
static int parse_answer(struct post_answer *answer, size_t n)
{
	char *body = strstr(answer->bytes, "\r\n\r\n"), *line;

	if (body == NULL || sscanf(answer->bytes, "HTTP/1.%*1[01]%*1[ ]%3d", &answer->status) != 1)
		return -EPROTO;
	*body = '\0';
	line = answer->bytes + strcspn(answer->bytes, "\r");
	answer->body = body += 4;
	answer->n = n - (size_t)(body - answer->bytes);
	if (strcasestr(line, "\ntransfer-encoding: chunked") != NULL)
		answer->n = join_chunks(body, answer->n);
	body[answer->n] = '\0';
	*line = '\0';
	line = strchr(answer->bytes, ' ');
	answer->reason = line + 1 + strcspn(line + 1, " ");
	answer->reason += strspn(answer->reason, " ");
	return 0;
}

/*
 * A server that refuses a message may answer, and close the connection, before it has all of it: so
 * the answer counts if there is one.
 */
static int exchange(int connection, const char *head, const void *message, size_t n,
		    struct post_answer *answer)
{
	int error = send_bytes(connection, head, strlen(head)), received;
	size_t length;

	if (error == 0)
		error = send_bytes(connection, message, n);
	received = receive_answer(connection, answer, &length);
	if (parse_answer(answer, length) == 0)
		return 0;
	if (error != 0 || received != 0)
		return error != 0 ? error : received;
	return -EPROTO;
}

int post(const struct post_place *place, const char *type, const void *message, size_t n,
	 struct post_answer *answer)
{
	char head[sizeof place->authority + sizeof place->path + 256];
	int connection = -EADDRNOTAVAIL, error;

	for (const struct addrinfo *a = place->addresses; a != NULL && connection < 0;
	     a = a->ai_next)
		connection = connect_to(a, place->silence);
	if (connection < 0)
		return connection;
	snprintf(head, sizeof head,
		 "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: tdt\r\nContent-Type: %s\r\n"
		 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		 place->path, place->authority, type, n);
	error = exchange(connection, head, message, n, answer);
	close(connection);
	return error;
}
