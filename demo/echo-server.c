// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A TCP echo server on libtdt-rt.  On SIGUSR1 or SIGUSR2 it prints where each of its tasks waits.
 *
 * Its tasks are in echo.c.  This is the main thread: it starts them, polls none, awaits signals.
 */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>

#include "echo.h"
#include "metrics.h"
#include "number.h"

#define ANSWER_NS 500000000 /* the time that a task has to answer a request */

static char server_name[] = "echo-server";

static const char usage[] =
    "Usage: echo-server [OPTION]...\n"
    "Send back what comes, until SIGINT or SIGTERM; on SIGUSR1 print where all tasks wait to "
    "standard error,\n"
    "on SIGUSR2 a trace of each as JSON, a line a task, to standard output.\n"
    "\n"
    "  --host=ADDRESS   where to listen, IPv4 or IPv6 (127.0.0.1)\n"
    "  --port=N         (7007); 0: any that is free.  The first line of the output tells\n"
    "  --workers=N      threads that poll tasks (0: one a core)\n"
    "  --idle=MS        close a connection from which nothing comes for so long (60000)\n"
    "  --report=MS      how often what was echoed is told, if anything was (1000)\n"
    "  --metrics=PORT   serve numbers for Prometheus at http://127.0.0.1:PORT\n"
    "  --drain=MS       how long connections may go on after SIGINT or SIGTERM (0)\n"
    "  --wedge          let the third connection lock a mutex twice\n"
    "  --help, --version\n";

static int bad_usage(const char *what)
{
	fprintf(stderr, "echo-server: %s\nTry 'echo-server --help'.\n", what);
	return 2;
}

/* Returns 0 to go on, an exit status, or -1 to exit successfully. */
static int parse_option(struct echo_options *to, int option, const char *value)
{
	switch (option) {
	case 'h':
		to->host = value;
		return 0;
	case 'p':
		return parse_number(value, 0, UINT16_MAX, &to->port)
			   ? 0
			   : bad_usage("--port is 0 to 65535");
	case 'w':
		if (!parse_number(value, 0, TDT_RT_MAX_WORKERS, &to->workers))
			return bad_usage("--workers is 0 to 1024");
		return 0;
	case 'i':
		return parse_number(value, 1, ULONG_MAX, &to->idle_ms)
			   ? 0
			   : bad_usage("--idle is 1 or more");
	case 'r':
		return parse_number(value, 1, ULONG_MAX, &to->report_ms)
			   ? 0
			   : bad_usage("--report is 1 or more");
	case 'm':
		return parse_number(value, 1, UINT16_MAX, &to->metrics_port)
			   ? 0
			   : bad_usage("--metrics is 1 to 65535");
	case 'd':
		return parse_number(value, 0, ULONG_MAX, &to->drain_ms)
			   ? 0
			   : bad_usage("--drain is a number");
	case 'W':
		to->wedge = true;
		return 0;
	case 'H':
		fputs(usage, stdout);
		return -1;
	case 'v':
		puts("echo-server (tdt " TDT_DEMO_VERSION ")");
		return -1;
	default: /* getopt_long() has printed a message */
		return bad_usage("wrong option");
	}
}

static int parse(struct echo_options *to, int argc, char **argv)
{
	static const struct option options[] = {
		{ "host", required_argument, NULL, 'h' },
		{ "port", required_argument, NULL, 'p' },
		{ "workers", required_argument, NULL, 'w' },
		{ "idle", required_argument, NULL, 'i' },
		{ "report", required_argument, NULL, 'r' },
		{ "metrics", required_argument, NULL, 'm' },
		{ "drain", required_argument, NULL, 'd' },
		{ "wedge", no_argument, NULL, 'W' },
		{ "help", no_argument, NULL, 'H' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status;

	argv[0] = server_name; /* getopt_long() begins its messages with it */
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_option(to, option, optarg);
		if (status != 0)
			return status;
	}
	return optind == argc ? 0 : bad_usage("there are no arguments but options");
}

static int print_trace(struct tdt_handle *handle, const struct tdt_task_info *info, void *out)
{
	const struct tdt_print_options json = { .size = sizeof(json), .format = TDT_PRINT_JSON };
	struct tdt_trace *trace = tdt_backtrace_with(handle,
		&(const struct tdt_backtrace_options){ .size = sizeof(struct tdt_backtrace_options),
						.timeout_ns = ANSWER_NS });

	if (trace != NULL)
		tdt_trace_print_with(trace, out, &json);
	else if (errno != ESRCH) /* ESRCH: the task has ended meanwhile */
		fprintf(stderr, "echo-server: task %" PRIu64 " does not answer: %s\n", info->id,
			strerror(errno));
	tdt_trace_free(trace);
	return 0;
}

static int serve(struct service *service, const sigset_t *signals)
{
	int signal_number;

	printf("listening at %s port %u\n", service->options->host,
	       tdt_tcp_listener_port(service->listener));
	fflush(stdout);
	while (sigwait(signals, &signal_number) == 0) {
		if (signal_number != SIGUSR2)
			break;
		tdt_tasks(NULL, print_trace, stdout);
	}
	service_drain(service);
	service_stop(service);
	if (service->accept_failed)
		fputs("echo-server: no memory left to accept\n", stderr);
	return service->accept_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct echo_options options = {
		.host = "127.0.0.1", .port = 7007, .idle_ms = 60000, .report_ms = 1000
	};
	struct service service;
	sigset_t signals;
	const char *what;
	int status, error;

	setlocale(LC_ALL, ""); /* in a UTF-8 locale trees are drawn in UTF-8 */
	status = parse(&options, argc, argv);
	if (status != 0)
		return status == -1 ? EXIT_SUCCESS : status;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* the runtime's threads inherit this */
	error = service_start(&service, &options, &what);
	if (error == 0) {
		what = "SIGUSR1";
		error = tdt_dump_on_signal(SIGUSR1, NULL);
	}
	if (error == 0 && options.metrics_port != 0) {
		what = "metrics";
		error = metrics_start((uint16_t)options.metrics_port);
	}
	if (error == 0)
		return serve(&service, &signals);
	service_stop(&service);
	fprintf(stderr, "echo-server: %s: %s\n", what, strerror(-error));
	return EXIT_FAILURE;
}
