// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers symbolize/namer, symbolize/debugfile.  Printing while a debug file can't be read, because
 * the file system it lies on has stalled: the test holds up the library's calls that open, read or
 * map the file, until it has seen that the printing is over.
 *
 * Without a cure all of these hang, but for those that say that the look-up makes no such call.
 */

#include "lib/apart.h"
#include "lib/calls.h"
#include "lib/host_plugins.h"
#include "lib/poll_now.h"
#include "lib/test.h"

#define MS INT64_C(1000000)

/* What a dump's summary says when frames were not named in time, behind their number. */
#define NOT_NAMED "not named in time"

static struct host_loaded loaded;

static void clone_and_drop(void *arg)
{
	struct tdt_context *cx = arg;

	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static tdt_poll_t waits_in_plugin(void *state, struct tdt_context *cx)
{
	host_run(&loaded, clone_and_drop, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* --- The file that can't be read ------------------------------------------------------- */

static enum call stalled_call;
static atomic_bool stalled, readable;

static void stall(enum call call, const char *path, bool done)
{
	if (call != stalled_call || done || path == NULL ||
	    strstr(path, "host_plugin_a.so") == NULL)
		return;
	atomic_store(&stalled, true);
	while (!atomic_load(&readable))
		usleep(1000);
}

/* --- Printing --------------------------------------------------------------------------- */

static struct poll_now task;

static int print_dump(FILE *out, enum tdt_print_format format, int64_t timeout_ns)
{
	struct tdt_print_options print = { .size = sizeof print, .format = format };
	struct tdt_dump_options options = { .size = sizeof options,
					    .print = &print,
					    .timeout_ns = timeout_ns };

	return tdt_dump_with(out, &options);
}

static int dump_text(FILE *out)
{
	return print_dump(out, TDT_PRINT_TEXT, 300 * MS);
}

static int dump_json(FILE *out)
{
	return print_dump(out, TDT_PRINT_JSON, 300 * MS);
}

static int print_trace(FILE *out)
{
	TRACE(trace, poll_now_ask(&task, 0));

	return tdt_trace_print(trace, out);
}

static const struct printing {
	int (*print)(FILE *out);
	const char *what;
	bool has_summary;
} printings[] = {
	{ dump_text, "a dump as text, of a file that can't be read", true },
	{ dump_json, "a dump as JSON, of a file that can't be read", false },
	{ print_trace, "printing a trace, of a file that can't be read", false },
};

struct plan {
	struct printing printing;
	enum call call;
};

static void must_have(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		printf("# not printed: %s\n%s", part, text);
	MUST(strstr(text, part) != NULL);
}

static void check_text(const char *text, const struct plan *plan)
{
	must_have(text, "host_plugin_a.so");
	if (plan->printing.print != dump_json)
		must_have(text, "host_plugin_a.so+0x");
	if (plan->printing.has_summary)
		must_have(text, NOT_NAMED);
}

/*
 * The file is opened and mapped.  On a busy machine the look-up may begin only when the printing is
 * over; or no task answers in time, and nothing is looked up until it is printed again.
 */
static void expect_stalled(const struct plan *plan)
{
	if (plan->call == CALL_PREAD && !atomic_load(&stalled))
		printf("# not tried: the look-up makes no such call\n");
	while (plan->call != CALL_PREAD && !atomic_load(&stalled)) {
		FILE *out = fopen("/dev/null", "we");

		MUST(out != NULL && plan->printing.print(out) == 0);
		fclose(out);
	}
}

static void print_stalled(void *arg)
{
	const struct plan *plan = arg;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(out != NULL);
	host_load(&loaded, 'a');
	poll_now_start(&task, future_of(waits_in_plugin, NULL));
	stalled_call = plan->call;
	calls_seen_by(stall);
	apart_doing(plan->printing.what);
	MUST(plan->printing.print(out) == 0);
	MUST(!atomic_load(&readable));
	fclose(out);
	if (atomic_load(&stalled))
		check_text(text, plan);
	expect_stalled(plan);
	apart_doing("ending");
	atomic_store(&readable, true);
	calls_seen_by(NULL);
	free(text);
	poll_now_end(&task);
}

CASE(host_naming, .timeout = APART_TEST_SECONDS)

TEST(printing_does_not_wait_for_a_file_that_can_not_be_read, .to = 9)
{
	static const enum call calls[] = { CALL_OPEN, CALL_MMAP, CALL_PREAD };
	struct plan plan = { printings[_i / 3], calls[_i % 3] };

	apart_must(print_stalled, &plan);
}
