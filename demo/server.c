// SPDX-License-Identifier: Apache-2.0 OR MIT
/* server [PORT [MS]]: sends back what it gets.  At SIGTERM connections have MS (10000) to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/rt/join_set.h>
#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

struct connection {
	struct tdt_async async;
	struct tdt_tcp *tcp;
	char bytes[4096];
	ssize_t n;
};

static tdt_poll_t connection_poll(void *state, struct tdt_context *cx)
{
	struct connection *it = state;

	TDT_BEGIN(&it->async, cx);
	do {
		TDT_AWAIT(tdt_tcp_read(it->tcp, it->bytes, sizeof it->bytes, &it->n));
		if (it->n > 0)
			TDT_AWAIT(tdt_tcp_write(it->tcp, it->bytes, (size_t)it->n, &it->n));
	} while (it->n > 0); /* 0 is the peer's end, and less an error */
	TDT_END();
}

static void connection_fini(void *state) /* after its end, or its abort */
{
	tdt_tcp_free(((struct connection *)state)->tcp);
}

static void serve(struct tdt_join_set *connections, struct tdt_tcp *tcp) /* takes `tcp` over */
{
	struct connection it = { .async.fini = connection_fini, .tcp = tcp };
	struct tdt_future future = TDT_ASYNC_NEW(connection_poll, it);

	if (tdt_future_is_none(&future)) /* there is no memory, and none goes on */
		tdt_tcp_free(tcp);
	tdt_join_set_go(connections, future, TDT_TASK_ATTR(.name = "connection"));
}

struct server {
	struct tdt_async async;
	struct tdt_tcp_listener *listener;
	struct tdt_join_set *connections;
	struct tdt_tcp *tcp;
	int error, signal;
};

static tdt_poll_t accept_poll(void *state, struct tdt_context *cx)
{
	struct server *server = state;

	TDT_BEGIN(&server->async, cx);
	for (;;) {
		TDT_AWAIT(tdt_tcp_accept(server->listener, &server->tcp, &server->error));
		if (server->error == 0)
			serve(server->connections, server->tcp);
		else
			TDT_AWAIT(tdt_sleep_ms(100)); /* no descriptor is left */
	}
	TDT_END();
}

int main(int argc, char **argv)
{
	const uint64_t grace = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000;
	struct server server = { .listener = NULL };
	struct tdt_future until[2];
	struct tdt_rt *rt;
	sigset_t blocked;

	if (argc > 1 && argv[1][0] == '-') {
		fputs("Usage: server [PORT [MS]]\n", strcmp(argv[1], "--help") ? stderr : stdout);
		return strcmp(argv[1], "--help") ? 2 : EXIT_SUCCESS;
	}
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL); /* before there are other threads */
	tdt_dump_on_signal(SIGUSR1, NULL);
	server.listener = tdt_tcp_listen("127.0.0.1", (uint16_t)(argc > 1 ? atoi(argv[1]) : 7008));
	if (server.listener == NULL || (rt = tdt_rt_new(NULL)) == NULL ||
	    (server.connections = tdt_join_set_new(rt)) == NULL) {
		perror("server");
		return EXIT_FAILURE;
	}
	tdt_join_set_forget(server.connections); /* nobody looks how one has ended */
	fprintf(stderr, "listening at port %u\n", tdt_tcp_listener_port(server.listener));
	until[0] = tdt_signal_wait((const int[]){ SIGINT, SIGTERM, 0 }, &server.signal);
	until[1] = TDT_ASYNC_NEW(accept_poll, server);
	if (tdt_rt_block_on(rt, tdt_select(until, 2, NULL)) != 0) /* the accepting ends, too */
		perror("server");
	tdt_tcp_listener_free(server.listener); /* who connects now is refused */
	tdt_rt_block_on(rt, tdt_timeout_ms(tdt_join_set_wait(server.connections), grace, NULL));
	tdt_join_set_free(server.connections); /* aborts those that are left */
	tdt_rt_free(rt); /* each connection_fini() has run then */
}
