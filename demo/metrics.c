// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A page for Prometheus, over HTTP, from a thread of its own: it answers even if all workers are
 * blocked.
 */

#include "metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tdt/counters.h>

static void print_metric(FILE *out, const char *name, const char *type, uint64_t value)
{
	fprintf(out, "# TYPE %s %s\n%s %" PRIu64 "\n", name, type, name, value);
}

static void print_seconds(FILE *out, const char *name, uint64_t ns)
{
	fprintf(out, "# TYPE %s gauge\n%s %" PRIu64 ".%09" PRIu64 "\n", name, name,
		ns / 1000000000, ns % 1000000000);
}

int metrics_print(FILE *out)
{
	struct tdt_counts counts = { .size = sizeof(counts) };

	if (tdt_counters(&counts) != 0)
		return -errno;
	fprintf(out, "# TYPE tdt_tasks gauge\n");
	fprintf(out, "tdt_tasks{state=\"waiting\"} %" PRIu64 "\n", counts.waiting);
	fprintf(out, "tdt_tasks{state=\"runnable\"} %" PRIu64 "\n", counts.runnable);
	fprintf(out, "tdt_tasks{state=\"polling\"} %" PRIu64 "\n", counts.running);
	print_metric(out, "tdt_spawned_total", "counter", counts.spawned);
	print_metric(out, "tdt_ended_total", "counter", counts.ended);
	print_metric(out, "tdt_task_panics_total", "counter", counts.panicked);
	print_metric(out, "tdt_polls_total", "counter", counts.polls);
	print_metric(out, "tdt_captures_total", "counter", counts.captures);
	print_metric(out, "tdt_dumps_total", "counter", counts.dumps);
	print_metric(out, "tdt_lost_wakeups_total", "counter", counts.lost_wakeups);
	print_metric(out, "tdt_tasks_held", "gauge", counts.held);
	print_seconds(out, "tdt_longest_poll_seconds", counts.longest_poll_ns);
	print_seconds(out, "tdt_longest_wait_seconds", counts.longest_wait_ns);
	return 0;
}

/* Whatever the client asks for, it gets the page. */
static void answer(int client)
{
	char request[1024];
	FILE *out;

	if (recv(client, request, sizeof(request), 0) <= 0 || (out = fdopen(client, "w")) == NULL) {
		close(client);
		return;
	}
	fputs("HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n", out);
	metrics_print(out);
	fclose(out);
}

static void *serve(void *listener)
{
	const struct timeval patience = { .tv_sec = 1 };
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL); /* a client may go away before it has the page */
	for (;;) {
		int client = accept((int)(intptr_t)listener, NULL, NULL);

		if (client < 0)
			continue;
		setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		answer(client);
	}
	return NULL;
}

int metrics_start(uint16_t port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;
	pthread_t thread;

	if (listener < 0)
		return -errno;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener, 8) != 0) {
		error = -errno;
		close(listener);
		return error;
	}
	error = -pthread_create(&thread, NULL, serve, (void *)(intptr_t)listener);
	if (error == 0)
		pthread_detach(thread);
	return error;
}
