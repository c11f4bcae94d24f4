// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/report_page, cli/report_redact, cli/report_timeline.  Pages of made documents. */

#include "cli/report.h"
#include "lib/made_recording.h"
#include "lib/no_memory.h"
#include "lib/says.h"
#include "lib/test.h"

#define HEAD                                                                                       \
	"{\"tdt\":1,\"dump\":{\"took_ns\":1,\"tasks\":2,\"fresh\":2,\"running\":0,\"last\":0,"     \
	"\"none\":0,\"lost\":0,\"outside\":true},\"deadlocks\":[],\"unproven\":[],\"rings\":[],"
#define FACTS "{\"tdt\":1,\"report\":{\"of\":\"process\",\"program\":\"alice's\",\"pid\":7}}\n"
#define TASK(id, name)                                                                             \
	"{\"id\":" id ",\"name\":\"" name "\",\"state\":\"waiting\",\"state_ns\":5,\"polls\":1,"   \
	"\"leaves\":1,\"leaves_elsewhere\":0,\"leaves_lost\":0"

static char *page_of(const char *documents, bool redact)
{
	return TEXT_WRITTEN(
	    out, ck_assert_int_eq(report_page(out, documents, strlen(documents), redact, NULL), 0));
}

static const char two_tasks[] = FACTS HEAD
    "\"groups\":[{\"answer\":\"fresh\",\"tasks\":[" TASK("1", "alice")
    ",\"file\":\"/home/alice/bank.c\",\"waits\":[{\"kind\":\"mutex\",\"object\":\"0x7f10\","
    "\"name\":\"</script><b>\",\"owner\":2,\"owner_name\":\"bob\"}]},"
    TASK("2", "bob") ",\"traceparent\":\"00-a11ceb0b00000000000000000000a11c-"
    "a11ceb0b00000001-01\"}],\"nodes\":[{\"id\":0,\"kind\":\"task\"},{\"id\":1,\"parent\":0,"
    "\"kind\":\"frame\",\"pc\":\"0x5510\",\"function\":\"alice_poll\",\"file\":"
    "\"/home/alice/bank.c\",\"line\":7},{\"id\":2,\"parent\":1,\"kind\":\"frame\",\"pc\":"
    "\"0x5520\",\"function\":\"tdt_mutex_lock\",\"file\":\"/home/alice/tdt/mutex.c\","
    "\"line\":9},{\"id\":3,\"parent\":2,\"kind\":\"frame\",\"pc\":\"0x5530\",\"function\":"
    "\"core::ptr::drop_in_place<alice::Foo>\",\"symbol\":\"_RINvNtCs1_4core3ptr13drop_in_place"
    "NtCs2_5alice3FooE\",\"file\":\"/rustc/4b91/library/core/src/ptr/mod.rs\","
    "\"line\":1,\"leaves\":1,\"unheard_of\":\"alice\"}]}]}\n";

CASE(page)

TEST(no_name_is_markup)
{
	SAYS(page_of(two_tasks, false), "!</script><b>", "\\u003c/script>\\u003cb>");
}

TEST(lines_are_those_of_the_dump)
{
	SAYS(page_of(two_tasks, false), "\"heading\":\"2 tasks", "[2,\"tdt_mutex_lock at ",
	     "a mutex \\\"\\u003c/script>\\u003cb>\\\" (0x7f10) held by task 2 \\\"bob\\\"");
}

TEST(names_paths_and_addresses_are_replaced)
{
	SAYS(page_of(two_tasks, true), "!alice", "!bob", "!/home", "!7f10", "!0x55", "!a11ceb0b",
	     "tdt_mutex_lock", "/rustc/4b91/library/core/src/ptr/mod.rs", "\"redacted\":true");
}

TEST(the_same_is_replaced_by_the_same)
{
	char *page = page_of(two_tasks, true), *owner = strstr(page, "\"owner_name\":\"name");
	char text[64];

	ck_assert_ptr_nonnull(owner);
	owner += strlen("\"owner_name\":");
	snprintf(text, sizeof text, "{\"id\":2,\"name\":%.*s", (int)strcspn(owner, "}"), owner);
	SAYS(page, text);
}

/* A group whose tree is a chain of so many frames. */
static void put_chain(FILE *out, int id, int frames)
{
	fprintf(out, "{\"answer\":\"fresh\",\"tasks\":[{\"id\":%d,\"state\":\"waiting\","
		     "\"state_ns\":5,\"polls\":1,\"leaves\":1,\"leaves_elsewhere\":0,"
		     "\"leaves_lost\":0}],\"nodes\":[{\"id\":0,\"kind\":\"task\"}", id);
	for (int i = 1; i <= frames; i++)
		fprintf(out, ",{\"id\":%d,\"parent\":%d,\"kind\":\"frame\",\"pc\":\"0x1\"%s}", i,
			i - 1, i == frames ? ",\"leaves\":1" : "");
	fputs("]}", out);
}

static void put_chains(FILE *out)
{
	fputs(FACTS HEAD "\"groups\":[", out);
	put_chain(out, 1, 6000);
	fputs(",", out);
	put_chain(out, 2, 6000);
	fputs("]}\n", out);
}

TEST(trees_beyond_the_room_are_left_out)
{
	WRITTEN(documents, out, put_chains(out));

	SAYS(page_of(documents, false), "\"left_out\":[\"the tree of 1 group",
	     "{\"answer\":\"none\",\"tasks\":[{\"id\":2,");
}

TEST(a_process_that_has_ended_since_says_how)
{
	SAYS(TEXT_WRITTEN(out, ck_assert_int_eq(report_page(out, two_tasks, strlen(two_tasks),
							    false, "by signal 9"),
						0)),
	     "\"ended\":\"by signal 9\"");
}

TEST(a_document_that_was_cut_is_left_out)
{
	WRITTEN(documents, out, fprintf(out, "{\"tdt\":1,\"summ\n%s", two_tasks));

	SAYS(page_of(documents, false), "!\"summ", "\"heading\":\"2 tasks");
}

TEST(a_page_that_has_no_place_says_so)
{
	STREAM(out, fopen("/dev/full", "w"));

	ck_assert_int_eq(report_page(out, two_tasks, strlen(two_tasks), false, NULL), -ENOSPC);
}

TEST(there_is_no_page_without_a_dump)
{
	STREAM(out, fopen("/dev/null", "w"));

	ck_assert_int_eq(report_page(out, FACTS, strlen(FACTS), false, NULL), -ENODATA);
}

static int write_page(void *redact)
{
	static char buffer[BUFSIZ];
	FILE *out = fopen("/dev/null", "w");
	int error;

	if (out == NULL)
		return -errno;
	setvbuf(out, buffer, _IOFBF, sizeof buffer);
	error = report_page(out, two_tasks, strlen(two_tasks), redact != NULL, "by signal 9");
	fclose(out);
	return error;
}

TEST(every_allocation_of_a_page_may_fail, .to = 2)
{
	no_memory_each(write_page, _i != 0 ? (void *)(uintptr_t)two_tasks : NULL, 50);
}

/* Tasks that wait for locks of each other, each with a tree of its own. */
static void put_tasks(FILE *out, int n)
{
	fprintf(out, "%s%s\"groups\":[", FACTS, HEAD);
	for (int id = 1; id <= n; id++) {
		fprintf(out,
			"%s{\"answer\":\"fresh\",\"tasks\":[{\"id\":%d,\"name\":"
			"\"session #%d\",\"state\":\"waiting\",\"state_ns\":5000000000,"
			"\"polls\":20,\"leaves\":1,\"leaves_elsewhere\":0,\"leaves_lost\":0,"
			"\"spawned_ns\":6000000000,\"parent\":1,\"file\":"
			"\"/build/server/session.c\",\"line\":217,\"waits\":[{\"kind\":"
			"\"mutex\",\"object\":\"0x7f1000%06x\",\"name\":\"account %d\","
			"\"owner\":%d,\"owner_name\":\"session #%d\"}]}],\"nodes\":[{\"id\":0,"
			"\"kind\":\"task\"}",
			id > 1 ? "," : "", id, id, id, id, id % n + 1, id % n + 1);
		for (int i = 1; i <= 8; i++)
			fprintf(out,
				",{\"id\":%d,\"parent\":%d,\"kind\":\"frame\",\"pc\":"
				"\"0x5555%06x%02x\",\"function\":\"serve_%d_%d\",\"file\":"
				"\"/build/server/serve.c\",\"line\":%d%s}",
				i, i - 1, id, i, id, i, id, i == 8 ? ",\"leaves\":1" : "");
		fputs("]}", out);
	}
	fputs("]}\n", out);
}

/* Each poll begins and ends a wait for a lock; the locks and their owners differ. */
static void record_polls(unsigned polls, unsigned tasks)
{
	unsigned ring;

	maker = maker_new();
	ring = maker_ring(maker, TDT_RING_POLLS, 1 << 20, 11);
	for (unsigned i = 0; i < tasks; i++)
		maker_identity(maker, ring, TDT_EVENT_TASK, i + 1, i + 1, 0, 1, "session", "s",
			       217);
	for (unsigned i = 0; i < polls; i++) {
		unsigned task = i % tasks + 1;
		uint64_t ns = 1000000 + 70001 * (uint64_t)i;

		maker_wake(maker, ring, ns, task, task % tasks + 1);
		maker_wait(maker, ring, task, TDT_WAIT_MUTEX, 0x7f1000000000 + i * 64,
			   task % tasks + 1, "account");
		maker_poll(maker, ring, ns + 20123, 30456, task, TDT_PENDING);
	}
	maker_header(maker)->taken = 70001 * (uint64_t)polls + 2000000;
	open_block();
}

CASE(large, .timeout = 120, .teardown = end)

TEST(a_large_incident_stays_below_15_mb_and_says_what_is_left_out)
{
	char *page;

	record_polls(200000, 10000);
	WRITTEN(documents, out, ck_assert_int_eq(report_timeline(recording, out), 0);
		put_tasks(out, 10000));
	page = page_of(documents, false);
	ck_assert_uint_lt(strlen(page), 15000000);
	SAYS(page, "\"left_out\":[\"the tree of ", "\"left_out\":250000,\"by_kind\":",
	     "{\"id\":10000,\"name\":\"session #10000\",");
}
