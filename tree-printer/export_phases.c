// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The phases of tasks in a Perfetto trace: what they wait for, and when they change. */

#include <config.h>

#include "exporter.h"

#include <inttypes.h>
#include <string.h>

#include "base/name.h"
#include "words.h"

/* Behind the name of a phase that began when polls of some threads are lost. */
#define UNSURE " (unsure, since polls are lost)"

static const struct tdt_print_options print_options = { .size = sizeof(print_options),
							.utf8 = TDT_PRINT_YES,
							.color = TDT_PRINT_NO };

/* --- What tasks wait for --- */

/* The name of the task that a wait depends on; NULL: it has none, or it is unknown. */
static const char *owner_name(const struct tdt__exporter *exporter, uint64_t owner)
{
	uint32_t number =
	    owner == 0 ? TDT__RECORDED_NONE : tdt__recording_task(exporter->recording, owner);

	return number == TDT__RECORDED_NONE || exporter->task[number].name[0] == '\0'
		   ? NULL
		   : exporter->task[number].name;
}

static uint32_t print_wait(struct tdt__exporter *exporter, const struct tdt__waited *waited,
			   uint64_t self, const char *object_name)
{
	struct tdt_wait wait = { .kind = (enum tdt_wait_kind)waited->kind,
				 .object = waited->object,
				 .owner = waited->owner };

	exporter->text.n = 0;
	tdt__string_puts(&exporter->text, "waiting ");
	if (waited->waits != 0) {
		tdt__name_copy(wait.name, object_name);
		tdt__wait_for(&exporter->text, &wait, self, owner_name(exporter, wait.owner),
			      &print_options);
	}
	if (waited->waits > 1)
		tdt__string_printf(&exporter->text, " and %" PRIu32 " more", waited->waits - 1);
	if (waited->waits == 0)
		exporter->text.n--; /* the space */
	if (!waited->sure)
		tdt__string_puts(&exporter->text, UNSURE);
	return tdt__export_text(exporter);
}

/* Read what the task waits for after the poll that begins. */
void tdt__export_waits(struct tdt__exporter *exporter, const struct tdt__recorded_item *begin,
		       struct tdt__waited *last)
{
	struct tdt__waited waited = { .sure = tdt__export_is_sure(exporter, begin->end) };
	struct tdt__recorded_item part, first = { .n_parts = 0 };
	char payload[TDT__PAYLOAD_MAX + 1] = "";

	for (uint32_t i = 0; i < begin->n_parts; i++) {
		tdt__recording_part(exporter->recording, begin, i, &part);
		if (part.event.kind == TDT_EVENT_WAIT && waited.waits++ == 0)
			first = part;
	}
	if (waited.waits != 0) {
		size_t n = tdt__recording_payload(exporter->recording, &first, payload);

		waited.object = first.event.c;
		waited.owner = first.event.time;
		waited.kind = first.event.detail;
		waited.hash = tdt__hash_bytes(TDT__HASH_START, payload, n);
	}
	waited.printed = last->printed;
	if (last->printed == 0 || memcmp(last, &waited, sizeof(waited)) != 0)
		waited.printed = print_wait(exporter, &waited, begin->event.task, payload);
	*last = waited;
}

/* --- Phases --- */

void tdt__export_close_phase(struct tdt__exporter *exporter, uint32_t number, uint64_t ns)
{
	struct tdt__task_track *track = &exporter->task_track[number];

	if (!track->open)
		return;
	tdt__export_event(
	    exporter, ns,
	    (struct tdt__packet_event){ .type = TDT__PACKET_END, .track = track->uuid });
	track->open = false;
}

void tdt__export_phase(struct tdt__exporter *exporter, const struct tdt__step *step)
{
	struct tdt__task_track *track = &exporter->task_track[step->task];
	enum tdt__phase phase = step->after.phase;
	uint32_t name;

	if (step->before.phase == phase)
		return;
	tdt__export_close_phase(exporter, step->task, step->item.ns);
	name = exporter->phase[tdt__export_is_sure(exporter, step->item.ns)][phase];
	if (name == 0)
		return;
	if (phase == TDT__WAITING && track->waited.printed != 0)
		name = track->waited.printed;
	tdt__export_event(
	    exporter, step->item.ns,
	    (struct tdt__packet_event){ .track = tdt__export_task(exporter, step->task),
					.type = TDT__PACKET_BEGIN,
					.name = name });
	track->open = true;
}

void tdt__export_phase_names(struct tdt__exporter *exporter)
{
	static const char *const names[TDT__PHASES] = {
		[TDT__SPAWNED] = "spawned",
		[TDT__WAITING] = "waiting",
		[TDT__RUNNABLE] = "runnable",
	};
	struct tdt__packets *packets = &exporter->packets;

	exporter->phase[0][TDT__POLLING] = tdt__packets_name(packets, TDT__EVENT_NAMES, "polling");
	exporter->phase[1][TDT__POLLING] = exporter->phase[0][TDT__POLLING];
	for (int i = 0; i < TDT__PHASES; i++) {
		if (names[i] == NULL)
			continue;
		exporter->phase[1][i] = tdt__packets_name(packets, TDT__EVENT_NAMES, names[i]);
		exporter->text.n = 0;
		tdt__string_puts(&exporter->text, names[i]);
		tdt__string_puts(&exporter->text, UNSURE);
		exporter->phase[0][i] = tdt__export_text(exporter);
	}
}
