// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A server: it sends the file that a line names.  At SIGTERM it ends what it has begun. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/rt/blocking.h>
#include <tdt/rt/join_set.h>
#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

struct file {
	char name[256], bytes[65536];
	ssize_t n;
};

struct request {
	struct tdt_async async;
	struct tdt_tcp *tcp;
	struct file *file, *lent; /* `lent`: to a job, until that is over */
	ssize_t n;
};

static void read_file(void *arg) /* on a blocking thread */
{
	struct file *file = arg;
	int fd = open(file->name, O_RDONLY | O_CLOEXEC);

	file->n = fd >= 0 ? read(fd, file->bytes, sizeof file->bytes) : 0;
	if (fd >= 0)
		close(fd);
}

static tdt_poll_t request_poll(void *state, struct tdt_context *cx)
{
	struct request *r = state;

	TDT_BEGIN(&r->async, cx);
	TDT_AWAIT(tdt_tcp_read(r->tcp, r->file->name, sizeof r->file->name - 1, &r->n));
	r->file->name[strcspn(r->file->name, "\r\n")] = '\0';
	r->lent = r->file;
	r->file = NULL;
	TDT_AWAIT(tdt_spawn_blocking(read_file, r->lent, free));
	r->file = r->lent;
	if (r->file->n > 0)
		TDT_AWAIT(tdt_tcp_write(r->tcp, r->file->bytes, (size_t)r->file->n, &r->n));
	TDT_END();
}

static void request_fini(void *state) /* after its end, its time, or its abort */
{
	struct request *r = state;

	tdt_tcp_free(r->tcp);
	free(r->file);
}

/* Takes `tcp` over. */
static struct tdt_future request(struct tdt_tcp *tcp)
{
	struct request r = { .async.fini = request_fini, .tcp = tcp };
	struct tdt_future all = TDT_FUTURE_NONE, limited;

	r.file = calloc(1, sizeof *r.file);
	if (r.file != NULL)
		all = TDT_ASYNC_NEW(request_poll, r);
	if (tdt_future_is_none(&all))
		request_fini(&r);
	limited = tdt_timeout_ms(all, 30000, NULL);
	if (tdt_future_is_none(&limited))
		tdt_future_drop(&all);
	return limited; /* TDT_FUTURE_NONE: there is no memory */
}

struct server {
	struct tdt_async async;
	struct tdt_tcp_listener *listener;
	struct tdt_join_set *requests;
	struct tdt_future either[2], drain; /* `either`: the next connection, or a signal */
	struct tdt_tcp *tcp;
	size_t winner;
	int error, signal;
	bool late;
};

static tdt_poll_t server_poll(void *state, struct tdt_context *cx)
{
	struct server *s = state;

	TDT_BEGIN(&s->async, cx);
	s->either[1] = tdt_signal_wait((const int[]){ SIGINT, SIGTERM, 0 }, &s->signal);
	for (;;) {
		if (tdt_future_is_none(&s->either[0]))
			s->either[0] = tdt_tcp_accept(s->listener, &s->tcp, &s->error);
		TDT_AWAIT(tdt_select_keep(s->either, 2, &s->winner));
		if (s->winner == 1)
			break;
		if (s->error == 0)
			tdt_join_set_go(s->requests, request(s->tcp),
					TDT_TASK_ATTR(.name = "request"));
		else
			TDT_AWAIT(tdt_sleep_ms(100)); /* no descriptor is left */
	}
	tdt_future_drop(&s->either[0]);
	tdt_tcp_listener_free(s->listener); /* who connects now is refused */
	s->drain = tdt_join_set_wait(s->requests);
	TDT_AWAIT(tdt_timeout_ms(s->drain, 10000, &s->late));
	if (s->late)
		tdt_join_set_abort(s->requests);
	TDT_AWAIT(tdt_join_set_wait(s->requests)); /* until each request_fini() has run */
	TDT_END();
}

int main(int argc, char **argv)
{
	uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 7008;
	struct server server = { .listener = NULL };
	struct tdt_rt *rt;
	sigset_t signals;

	if (argc > 1 && argv[1][0] == '-') {
		bool help = strcmp(argv[1], "--help") == 0;

		fputs("Usage: server [PORT | --help]\nSend files.\n", help ? stdout : stderr);
		return help ? EXIT_SUCCESS : 2;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before there are other threads */
	tdt_dump_on_signal(SIGUSR1, NULL);
	if ((server.listener = tdt_tcp_listen("127.0.0.1", port)) == NULL ||
	    (rt = tdt_rt_new(NULL)) == NULL ||
	    (server.requests = tdt_join_set_new(rt)) == NULL) {
		perror("server");
		return EXIT_FAILURE;
	}
	tdt_join_set_forget(server.requests); /* nobody looks how a request has ended */
	printf("listening at port %u\n", tdt_tcp_listener_port(server.listener));
	fflush(stdout);
	if (tdt_rt_block_on(rt, TDT_ASYNC_NEW(server_poll, server)) != 0)
		perror("server");
	tdt_join_set_free(server.requests);
	tdt_rt_free(rt);
}
