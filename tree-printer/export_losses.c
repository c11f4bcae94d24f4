// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What is not in a recording, as its Perfetto trace tells it: on the track of each thread a slice
 * up to its oldest event, if older ones were overwritten; and marks for what was never recorded.
 */

#include "exporter.h"

#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
	const struct tdt__loss *x = a, *y = b;

	return (x->until > y->until) - (x->until < y->until);
}

/* Begin a slice on the track of the ring's thread. */
static void begin_loss(struct tdt__exporter *exporter, const struct tdt__recorded_ring *ring)
{
	struct tdt__loss loss = { .until = ring->from };

	if (ring->first == 0 || (ring->kind != TDT_RING_POLLS && ring->kind != TDT_RING_OTHERS) ||
	    ring->n == 0)
		return;
	loss.track = tdt__export_thread(exporter, ring->first_thread);
	tdt__export_put(exporter, exporter->recording->from, TDT__PACKET_BEGIN,
			loss.track,
			tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, "events are lost"));
	exporter->loss[exporter->n_losses++] = loss;
}

static void begin_losses(struct tdt__exporter *exporter)
{
	const struct tdt__recorded_ring *rings = exporter->recording->ring;
	size_t n = exporter->recording->n_rings;

	exporter->loss = calloc(n + 1, sizeof(*exporter->loss));
	if (exporter->loss == NULL) {
		tdt__packets_fail(&exporter->packets);
		return;
	}
	for (size_t i = 0; i < n; i++)
		begin_loss(exporter, &rings[i]);
	qsort(exporter->loss, exporter->n_losses, sizeof(*exporter->loss), by_time);
}

void tdt__export_losses(struct tdt__exporter *exporter)
{
	const struct tdt_recording *header = &exporter->recording->header;
	uint64_t from = exporter->recording->from;
	uint32_t stacks = tdt__recording_stacks_lost(exporter->recording);

	if (header->missed != 0) {
		tdt__export_annotate(exporter, "events", header->missed);
		tdt__export_annotate(exporter, "polls", header->missed_polls);
		tdt__export_mark(exporter, from, exporter->process,
				 "events were not recorded: there was no ring for their thread");
	}
	if (stacks != 0) {
		tdt__export_annotate(exporter, "stacks", stacks);
		tdt__export_mark(exporter, from, exporter->process,
				 "stacks were not recorded: their table was full, or no capture "
				 "was left");
	}
	begin_losses(exporter);
}

void tdt__export_losses_until(struct tdt__exporter *exporter, uint64_t ns)
{
	while (exporter->next_loss < exporter->n_losses &&
	       exporter->loss[exporter->next_loss].until <= ns) {
		const struct tdt__loss *loss = &exporter->loss[exporter->next_loss++];

		tdt__export_put(exporter, loss->until, TDT__PACKET_END, loss->track, 0);
	}
}
