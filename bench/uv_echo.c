// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "uv_echo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "load.h"
#include "report.h"

#define BUFFER 4096

struct connection {
	uv_tcp_t tcp; /* first */
	uv_write_t write;
	char buffer[BUFFER]; /* one message at a time is under way */
};

static void lend_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct connection *connection = (struct connection *)handle;

	(void)suggested;
	*buffer = uv_buf_init(connection->buffer, BUFFER);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct connection *connection = (struct connection *)stream;
	uv_buf_t echo = uv_buf_init(buffer->base, (unsigned)(n > 0 ? n : 0));

	if (n > 0)
		uv_write(&connection->write, stream, &echo, 1, NULL);
	else if (n < 0)
		uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct connection *connection = calloc(1, sizeof *connection);

	if (status != 0 || connection == NULL)
		die("a connection");
	uv_tcp_init(listener->loop, &connection->tcp);
	if (uv_accept(listener, (uv_stream_t *)&connection->tcp) != 0)
		die("uv_accept");
	uv_tcp_nodelay(&connection->tcp, 1);
	uv_read_start((uv_stream_t *)&connection->tcp, lend_buffer, on_read);
}

static void run(int fd)
{
	uv_loop_t loop;
	uv_tcp_t listener;

	if (uv_loop_init(&loop) != 0 || uv_tcp_init(&loop, &listener) != 0 ||
	    uv_tcp_open(&listener, fd) != 0 ||
	    uv_listen((uv_stream_t *)&listener, LOAD_CONNECTIONS, on_connection) != 0)
		die("libuv");
	uv_run(&loop, UV_RUN_DEFAULT);
}

pid_t uv_echo_start(int cpu, uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t pid;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
	    listen(fd, LOAD_CONNECTIONS) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		die("a port");
	*port = ntohs(address.sin_port);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		load_pin(cpu);
		run(fd);
		_exit(1);
	}
	close(fd);
	return pid;
}

void uv_echo_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int64_t uv_echo_used(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		die("clock_getcpuclockid");
	return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}
