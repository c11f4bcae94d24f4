// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The spans of a recording, in a file or at a collector: see write_otlp() in recordings.h. */

#include "cli/recordings.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/post.h"
#include "cli/tdt.h"
#include "tree-printer/otlp.h"
#include "tree-printer/words.h"

/* A collector's answer beside its status: how many spans it rejects, or a code; and why. */
struct verdict {
	uint64_t number;
	char text[256];
};

struct otlp_sending {
	const struct recording_read *read;
	const struct options *options;
	struct tdt__otlp_counts counts;
	uint64_t taken;		/* spans that were sent */
	struct verdict partial; /* of all messages */
	struct post_place place;
	struct post_answer answer;
};

/* Report how many spans were written. */
static void report_spans(const struct otlp_sending *sending)
{
	const struct tdt__otlp_counts *counts = &sending->counts;
	uint64_t longer = sending->options->longer;

	if (counts->spans == 0 && counts->shorter == 0) {
		fprintf(stderr,
			"%s: no spans: the recording has no phase of a task that belongs to a "
			"trace\n",
			program_name);
		return;
	}
	fprintf(stderr, "%s: %s", program_name, TDT__COUNTED(counts->spans, "span"));
	if (longer != 0)
		fprintf(stderr, "; %s shorter than %s left out",
			TDT__COUNTED(counts->shorter, "phase"), TDT__DURATION(longer));
	fputc('\n', stderr);
}

/* A tdt__otlp_fn. */
static int save_message(void *arg, const void *message, size_t n, uint64_t spans)
{
	(void)spans;
	return fwrite(message, 1, n, arg) == n ? 0 : -errno;
}

/* An apart_fn. */
static int put_spans(FILE *out, void *arg)
{
	struct otlp_sending *sending = arg;
	int error;

	recording_name_tasks(sending->read, sending->options);
	error = tdt__otlp_write(sending->read->recording, sending->options->longer, save_message,
				out, &sending->counts);
	if (error == 0 && fflush(out) != 0)
		error = -errno;
	if (error == 0)
		report_spans(sending);
	return error;
}

static bool take_varint(const char **at, const char *end, uint64_t *number)
{
	*number = 0;
	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		*number |= (uint64_t)(**at & 0x7f) << shift;
		if ((*(*at)++ & 0x80) == 0)
			return true;
	}
	return false;
}

/*
 * Read the message ExportTracePartialSuccess, which is field 1 of the answer if that is a success,
 * or Status, which is the answer if it is none.  Both have a number as field 1, and a text as field
 * 2.  What else there is, as a page of HTML, is no message.
 */
static void read_verdict(const char *at, const char *end, bool success, struct verdict *verdict)
{
	uint64_t tag, number;

	while (take_varint(&at, end, &tag) && take_varint(&at, end, &number)) {
		bool text = (tag & 7) == 2;

		if (tag == (1 << 3) && !success)
			verdict->number += number;
		if ((tag & 7) != 0 && (!text || number > (uint64_t)(end - at)))
			return;
		if (tag == (1 << 3 | 2) && success)
			read_verdict(at, at + number, false, verdict);
		if (tag == (2 << 3 | 2) && !success)
			snprintf(verdict->text, sizeof verdict->text, "%.*s", (int)number, at);
		if (text)
			at += number;
	}
}

/* Report why the spans were not taken, and which were before.  Returns -ECANCELED. */
static int report_refusal(const struct otlp_sending *sending, const char *what, const char *why,
			  const char *more)
{
	report_trouble("%s: %s%s%s%s", sending->options->otlp, what, why,
		       more[0] != '\0' ? ": " : "", more);
	if (sending->taken != 0)
		report_trouble("%s were sent before", TDT__COUNTED(sending->taken, "span"));
	return -ECANCELED;
}

/* A tdt__otlp_fn. */
static int post_message(void *arg, const void *message, size_t n, uint64_t spans)
{
	struct otlp_sending *sending = arg;
	const struct post_answer *answer = &sending->answer;
	struct verdict status = { 0 };
	char why[64];
	int error;

	bound_more(n);
	error = post(&sending->place, "application/x-protobuf", message, n, &sending->answer);
	if (error != 0)
		return report_refusal(sending, "no collector took the spans: ",
				      error == -EPROTO ? "the answer is not HTTP"
						       : strerror(-error),
				      "");
	if (answer->status / 100 == 2) {
		read_verdict(answer->body, answer->body + answer->n, true, &sending->partial);
		sending->taken += spans;
		return 0;
	}
	read_verdict(answer->body, answer->body + answer->n, false, &status);
	if (status.text[0] == '\0')
		snprintf(status.text, sizeof status.text, "%.*s",
			 (int)strcspn(answer->body, "\r\n"), answer->body);
	snprintf(why, sizeof why, "%d %.50s", answer->status, answer->reason);
	return report_refusal(sending, "the spans are refused: ", why, status.text);
}

static int end_sending(const struct otlp_sending *sending)
{
	const struct verdict *partial = &sending->partial;

	report_spans(sending);
	if (partial->number == 0 && partial->text[0] != '\0')
		report_trouble("%s: %s", sending->options->otlp, partial->text);
	if (partial->number == 0)
		return EXIT_SUCCESS;
	return report_trouble("%s: %s of these rejected: %s", sending->options->otlp,
			      TDT__COUNTED(partial->number, "span"), partial->text);
}

static int send_spans(struct otlp_sending *sending)
{
	const char *wrong =
	    post_place_init(&sending->place, sending->options->otlp, "4318", "/v1/traces");
	int error;

	if (wrong != NULL)
		return report_trouble("%s: %s", sending->options->otlp, wrong);
	recording_name_tasks(sending->read, sending->options);
	error = tdt__otlp_write(sending->read->recording, sending->options->longer, post_message,
				sending, &sending->counts);
	post_place_fini(&sending->place);
	if (error == 0)
		return end_sending(sending);
	return error == -ENOMEM ? report_no_memory() : TDT_TROUBLE;
}

int write_otlp(const struct recording_read *read, const struct options *options)
{
	struct otlp_sending sending = { .read = read, .options = options };
	const char *to = options->otlp;

	if (tdt__starts_with(to, "http://"))
		return send_spans(&sending);
	if (strstr(to, "://") != NULL)
		return report_trouble("%s: only http:// is known: send to a collector near by, "
				      "which may pass spans on by other ways",
				      to);
	return print_named(put_spans, &sending, read->modules, options,
			   strcmp(to, "-") != 0 ? to : NULL);
}
