// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A chat server on epoll, by hand: a client says its name, and then each of its lines goes to all
 * others.  A client that does not read is waited for, up to 64 KiB.
 *
 *	chat PORT
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE 512
#define BACKLOG (64 << 10)

struct client {
	int fd;
	void (*goes_on)(struct client *client); /* when epoll has an event for it */
	char name[32];
	char line[LINE];
	size_t line_n;
	char *out; /* what was not written yet */
	size_t out_n;
	struct client *next;
};

static int epoll;
static struct client *clients;

static void await(struct client *client, uint32_t events, void (*goes_on)(struct client *client))
{
	struct epoll_event event = { .events = events, .data.ptr = client };

	client->goes_on = goes_on;
	epoll_ctl(epoll, EPOLL_CTL_MOD, client->fd, &event);
}

static void leave(struct client *client)
{
	struct client **link = &clients;

	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	close(client->fd);
	free(client->out);
	free(client);
}

/* Returns 1: a line is there; 0: not yet; -1: the client is gone. */
static int read_line(struct client *client)
{
	ssize_t n = read(client->fd, client->line + client->line_n, LINE - 1 - client->line_n);

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -1;
	client->line_n += (size_t)n;
	client->line[client->line_n] = '\0';
	if (strchr(client->line, '\n') == NULL && client->line_n < LINE - 1)
		return 0;
	client->line_n = 0;
	return 1;
}

static void write_rest(struct client *client);
static void take_line(struct client *client);

static void await_line(struct client *client)
{
	await(client, EPOLLIN, take_line);
}

static void await_room(struct client *client)
{
	await(client, EPOLLOUT, write_rest);
}

static void send_text(struct client *client, const char *text, size_t n)
{
	ssize_t sent = client->out_n == 0 ? write(client->fd, text, n) : 0;
	size_t rest = n - (size_t)(sent > 0 ? sent : 0);
	char *out;

	if (rest == 0 || client->out_n + rest > BACKLOG)
		return;
	out = realloc(client->out, client->out_n + rest);
	if (out == NULL)
		return;
	memcpy(out + client->out_n, text + n - rest, rest);
	client->out = out;
	client->out_n += rest;
	await_room(client);
}

static void write_rest(struct client *client)
{
	ssize_t sent = write(client->fd, client->out, client->out_n);

	if (sent > 0) {
		client->out_n -= (size_t)sent;
		memmove(client->out, client->out + sent, client->out_n);
	}
	if (client->out_n == 0)
		await_line(client);
}

static void take_line(struct client *client)
{
	char text[sizeof client->name + 2 + LINE];
	int n, is_there = read_line(client);

	if (is_there < 0) {
		leave(client);
	} else if (is_there > 0) {
		n = snprintf(text, sizeof text, "%s: %s", client->name, client->line);
		for (struct client *other = clients; other != NULL; other = other->next)
			if (other != client && other->name[0] != '\0')
				send_text(other, text, (size_t)n);
	}
}

static void take_name(struct client *client)
{
	int is_there = read_line(client);

	if (is_there < 0)
		leave(client);
	if (is_there <= 0)
		return;
	snprintf(client->name, sizeof client->name, "%.*s",
		 (int)strcspn(client->line, "\r\n"), client->line);
	await_line(client);
}

static void greet(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct client *client = calloc(1, sizeof *client);

	if (client == NULL)
		exit(EXIT_FAILURE);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	client->fd = fd;
	client->next = clients;
	clients = client;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	send_text(client, "Who are you?\n", 13);
	await(client, EPOLLIN, take_name);
}

static int listen_at(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1024) != 0)
		exit(EXIT_FAILURE);
	return fd;
}

int main(int argc, char **argv)
{
	int listener = listen_at((uint16_t)(argc > 1 ? atoi(argv[1]) : 7008));
	struct epoll_event events[64], event = { .events = EPOLLIN };

	signal(SIGPIPE, SIG_IGN);
	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int n = epoll_wait(epoll, events, 64, -1);

		for (int i = 0; i < n; i++) {
			struct client *client = events[i].data.ptr;

			if (client == NULL)
				greet(accept(listener, NULL, NULL));
			else
				client->goes_on(client);
		}
	}
}
