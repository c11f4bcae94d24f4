// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The client: connections to each of the servers, of which those to one are used at a time. */

#include <config.h>

#include "load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"

#define MOST_SERVERS 4
#define MESSAGE 64 /* bytes */
#define NOBODY 0xff
#define EVENTS 64

struct connection {
	int fd;
	size_t received; /* of the message that is out */
	int64_t sent_at;
};

struct server {
	struct connection connection[LOAD_CONNECTIONS];
	unsigned connections; /* how many there are yet */
	uint16_t port;
	int epoll;
};

static uint64_t turn_of(int server, unsigned connections, unsigned account)
{
	return (uint64_t)account << 32 | (uint64_t)connections << 8 |
	       (server < 0 ? NOBODY : (uint64_t)server);
}

void load_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		die("sched_setaffinity");
}

void load_cpus(int cpu[2])
{
	cpu_set_t set;
	int n = 0;

	cpu[0] = cpu[1] = -1;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n < 2)
		cpu[0] = -1;
}

/* --- In the process of its own ----------------------------------------------------- */

static void count(struct load_account *account, uint64_t took)
{
	uint64_t step = took / LOAD_STEP < LOAD_STEPS ? took / LOAD_STEP : LOAD_STEPS - 1;

	atomic_fetch_add_explicit(&account->echoes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&account->took[step], 1, memory_order_relaxed);
	if (took > atomic_load_explicit(&account->longest, memory_order_relaxed))
		atomic_store_explicit(&account->longest, took, memory_order_relaxed);
}

static void say(struct connection *connection)
{
	static const char message[MESSAGE];

	connection->received = 0;
	connection->sent_at = now();
	if (send(connection->fd, message, sizeof message, MSG_NOSIGNAL) != MESSAGE)
		die("send");
}

/* Whether the message has come back. */
static bool hear(struct connection *connection)
{
	char message[MESSAGE];
	ssize_t n = recv(connection->fd, message, sizeof message - connection->received, 0);

	if (n <= 0)
		die("recv");
	connection->received += (size_t)n;
	return connection->received == MESSAGE;
}

/* Make another connection. */
static void dial(struct server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(server->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct connection *connection = &server->connection[server->connections++];
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };

	connection->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connection->fd < 0 ||
	    connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0)
		die("connect");
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0)
		die("epoll_ctl");
}

/* Whether it is the turn to go on as in `turn`; if to another account, that is the turn now. */
static bool goes_on(struct load *load, uint64_t *turn)
{
	uint64_t next = atomic_load_explicit(&load->turn, memory_order_relaxed);

	if (next == *turn)
		return true;
	if ((uint32_t)next != (uint32_t)*turn)
		return false;
	*turn = next;
	/* Release what was counted in the turn before.  Pairs with load_turn(). */
	atomic_store_explicit(&load->done, next, memory_order_release);
	return true;
}

/* Talk to the server until it is another's turn. */
static void talk_to(struct load *load, struct server *server, uint64_t turn)
{
	unsigned out = turn >> 8 & 0xffffff; /* messages */
	struct epoll_event events[EVENTS];

	while (server->connections < out)
		dial(server);
	for (unsigned i = 0; i < out; i++)
		say(&server->connection[i]);
	while (out > 0) {
		int n = epoll_wait(server->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct connection *connection = events[i].data.ptr;

			if (!hear(connection))
				continue;
			count(&load->account[turn >> 32], (uint64_t)(now() - connection->sent_at));
			if (goes_on(load, &turn))
				say(connection);
			else
				out--;
		}
	}
}

static void run(struct load *load, int ports)
{
	static struct server server[MOST_SERVERS];
	uint16_t port[MOST_SERVERS];
	ssize_t n = read(ports, port, sizeof port);

	for (ssize_t i = 0; i < n / (ssize_t)sizeof port[0]; i++) {
		server[i].port = port[i];
		server[i].epoll = epoll_create1(0);
		if (server[i].epoll < 0)
			die("epoll_create1");
	}
	for (;;) {
		uint64_t turn = atomic_load_explicit(&load->turn, memory_order_relaxed);

		/* Release what was counted in the turn before.  Pairs with load_turn(). */
		atomic_store_explicit(&load->done, turn, memory_order_release);
		if ((turn & 0xff) == NOBODY)
			usleep(100);
		else
			talk_to(load, &server[turn & 0xff], turn);
	}
}

/* --- In its parent ------------------------------------------------------------------ */

struct load *load_start(int cpu, unsigned accounts)
{
	size_t size = sizeof(struct load) + accounts * sizeof(struct load_account);
	struct load *load =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ports[2];
	pid_t pid;

	if (load == MAP_FAILED || pipe(ports) != 0)
		die("the client");
	load->size = size;
	atomic_init(&load->turn, turn_of(-1, 0, 0));
	atomic_init(&load->done, UINT64_MAX); /* no turn */
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		load_pin(cpu);
		run(load, ports[0]);
	}
	close(ports[0]);
	load->pid = pid;
	load->ports = ports[1];
	return load;
}

void load_connect(struct load *load, const uint16_t *ports, size_t n)
{
	if (write(load->ports, ports, n * sizeof ports[0]) != (ssize_t)(n * sizeof ports[0]))
		die("the client");
}

void load_turn(struct load *load, int server, unsigned connections, unsigned account)
{
	uint64_t turn = turn_of(server, connections, account);

	atomic_store_explicit(&load->turn, turn, memory_order_relaxed);
	/* Acquire what was counted.  Pairs with run(). */
	while (atomic_load_explicit(&load->done, memory_order_acquire) != turn) {
		if (waitpid(load->pid, NULL, WNOHANG) != 0)
			exit(1); /* it has said why */
		usleep(50);
	}
}

void load_stop(struct load *load)
{
	kill(load->pid, SIGKILL);
	waitpid(load->pid, NULL, 0);
	close(load->ports);
	munmap(load, load->size);
}

double load_quantile(const struct load_account *account, double quantile)
{
	double wanted = quantile * (double)atomic_load(&account->echoes), n = 0;
	unsigned step = 0;

	while (step < LOAD_STEPS - 1 && (n += atomic_load(&account->took[step])) < wanted)
		step++;
	return (double)(step + 1) * LOAD_STEP;
}

void load_clear(struct load_account *account)
{
	memset(account, 0, sizeof *account);
}
