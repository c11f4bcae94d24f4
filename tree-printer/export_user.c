// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The program's own events in a Perfetto trace: marks and slices on the tracks of tasks. */

#include "exporter.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "recording/recording.h"

/* The arguments of an end have names of their own: a slice has those of its beginning, too. */
static void annotate_arguments(struct tdt__exporter *exporter, struct tdt__recorded_user *user,
			       bool ends)
{
	struct tdt__packets *packets = &exporter->packets;
	struct tdt__string *to = &exporter->annotations;
	struct tdt__recorded_argument argument;
	char name[32];

	for (unsigned i = 1; tdt__recorded_user_next(user, &argument); i++) {
		snprintf(name, sizeof(name), ends ? "argument %u of the end" : "argument %u", i);
		if (argument.type == TDT_USER_INT)
			tdt__packets_annotate_int(packets, to, name, argument.i);
		else if (argument.type == TDT_USER_UINT)
			tdt__packets_annotate(packets, to, name, argument.u);
		else if (argument.type == TDT_USER_DOUBLE)
			tdt__packets_annotate_double(packets, to, name, argument.d);
		else
			tdt__packets_annotate_text(packets, to, name, argument.text);
	}
}

/* The track of the slices of this name (valid UTF-8) on a track.  NULL: no memory. */
static struct tdt__user_track *user_track(struct tdt__exporter *exporter, uint64_t parent,
					  const char *text, size_t n)
{
	uint32_t name = tdt__packets_intern(&exporter->packets, TDT__EVENT_NAMES, text, n), i;
	uint32_t hash = (uint32_t)tdt__mix(parent, name);
	struct tdt__user_track track = { .parent = parent, .name = name };

	TDT__INDEX_EACH (i, &exporter->user_table.index, hash)
		if (exporter->user[i].parent == parent && exporter->user[i].name == name)
			return &exporter->user[i];
	track.uuid = tdt__export_track(exporter, parent, text, n);
	i = tdt__table_add(&exporter->user_table, hash, &track, sizeof track);
	if (i != TDT__INDEX_NONE)
		return &exporter->user[i];
	tdt__packets_fail(&exporter->packets);
	return NULL;
}

/* An end without a beginning is a mark: the beginning was overwritten. */
static void put_slice(struct tdt__exporter *exporter, uint64_t ns, uint64_t parent, bool begins)
{
	struct tdt__user_track *track =
	    user_track(exporter, parent, exporter->text.bytes, exporter->text.n);
	enum tdt__packet_type type;

	if (track == NULL)
		return;
	type = begins		  ? TDT__PACKET_BEGIN
	       : track->open != 0 ? TDT__PACKET_END
				  : TDT__PACKET_INSTANT;
	track->open += begins ? 1u : 0u;
	track->open -= type == TDT__PACKET_END ? 1u : 0u;
	tdt__export_put(exporter, ns, type, track->uuid, type == TDT__PACKET_END ? 0 : track->name);
}

/* If `text` ends with `end`, cut that off. */
static bool cut_end(struct tdt__string *text, const char *end)
{
	size_t n = strlen(end);

	if (text->failed || text->n <= n || memcmp(text->bytes + text->n - n, end, n) != 0)
		return false;
	text->n -= n;
	return true;
}

void tdt__export_user(struct tdt__exporter *exporter, const struct tdt__recorded_item *item)
{
	uint32_t task = tdt__recording_task(exporter->recording, item->event.task);
	char payload[TDT__PAYLOAD_MAX + 1];
	size_t n = tdt__recording_payload(exporter->recording, item, payload);
	struct tdt__recorded_user user;
	uint64_t track;
	bool begins, ends;

	if (!tdt__recorded_user(&user, &item->event, payload, n))
		return;
	track = item->event.task == 0 || task == TDT__RECORDED_NONE
		    ? tdt__export_thread(exporter, item->thread)
		    : tdt__export_task(exporter, task);
	exporter->text.n = 0;
	tdt__string_escape(&exporter->text, user.provider, true, '\0');
	tdt__string_puts(&exporter->text, ":");
	tdt__string_escape(&exporter->text, user.name, true, '\0');
	begins = cut_end(&exporter->text, "__start");
	ends = cut_end(&exporter->text, "__end");
	annotate_arguments(exporter, &user, ends);
	if (begins || ends)
		put_slice(exporter, item->ns, track, begins);
	else
		tdt__export_put(exporter, item->ns, TDT__PACKET_INSTANT, track,
				tdt__export_text(exporter));
}
