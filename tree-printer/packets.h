/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The packets of a Perfetto trace: the way out to a file, the clocks, the tracks, the events, and
 * the texts and stacks that events refer to by numbers ("interned").
 *
 * All packets are one sequence.  Most have the time since the packet before, of a clock that only
 * this sequence knows; the first packet says what that clock has to do with the system's clocks.
 * An event from before the packet before has its time of CLOCK_MONOTONIC, which takes more bytes.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "base/texts.h"
#include "perfetto.h"
#include "protobuf.h"

/* TrackEvent.Type. */
enum tdt__packet_type {
	TDT__PACKET_BEGIN = 1,
	TDT__PACKET_END = 2,
	TDT__PACKET_INSTANT = 3,
	TDT__PACKET_COUNTER = 4
};

/* The fields of InternedData. */
enum tdt__interned {
	TDT__EVENT_NAMES = 2,
	TDT__ANNOTATION_NAMES = 3,
	TDT__FUNCTION_NAMES = 5,
	TDT__FRAMES = 6,
	TDT__CALLSTACKS = 7,
	TDT__BUILD_IDS = 16,
	TDT__MAPPING_PATHS = 17,
	TDT__SOURCE_PATHS = 18,
	TDT__MAPPINGS = 19,
	TDT__INTERNED = 20
};

/* A stack of the recording, and its number in the trace. */
struct tdt__interned_stack {
	uint32_t number;
	uint32_t iid;
};

struct tdt__packets {
	FILE *file;
	bool gzip;
	z_stream stream;
	int error;     /* 0 or a negative errno */
	uint64_t last; /* the time of the last packet, ns */
	uint64_t next_track;
	struct tdt__string interned; /* for the next packet: a part of its InternedData */
	struct tdt__string scratch;
	struct tdt__string packet; /* that is made */

	struct tdt__texts
	    texts[TDT__INTERNED]; /* of each field; numbers in the trace are from 1 on */
	TDT__TABLE(struct tdt__interned_stack, stack,
		   n_stacks); /* by the number in the recording */
	const struct tdt__perfetto_options *options;

	size_t used;
	unsigned char buffer[1 << 16];
};

/* An event.  What is 0 is left out. */
struct tdt__packet_event {
	enum tdt__packet_type type;
	uint64_t track;
	uint32_t name;	    /* interned */
	uint32_t callstack; /* interned */
	uint64_t flow;	    /* a flow that begins here */
	uint64_t flow_end;  /* one that ends here */
	const struct tdt__string *annotations;
	int64_t value; /* of a counter */
};

/*
 * Begin a trace.  `seed` is a number that no other trace has: tracks of two traces that are joined
 * must have different numbers.  Returns 0 or -ENOMEM.
 */
int tdt__packets_begin(struct tdt__packets *packets, const struct tdt__perfetto_options *options,
		       FILE *file, uint64_t seed);
/* Write what is left.  Returns `error`.  Frees all but the struct. */
int tdt__packets_end(struct tdt__packets *packets);

/* The times of the system's clocks, of which `monotonic` is the time of the packet. */
void tdt__packets_clocks(struct tdt__packets *packets, uint64_t monotonic, uint64_t boot,
			 uint64_t real);

/*
 * Write a TrackDescriptor, whose fields but the uuid are `descriptor`, and empty that.  Returns the
 * track's uuid.
 */
uint64_t tdt__packets_track(struct tdt__packets *packets, struct tdt__string *descriptor);

void tdt__packets_event(struct tdt__packets *packets, uint64_t ns,
			const struct tdt__packet_event *event);

/* The number of a text of `n` bytes, which is valid UTF-8. */
uint32_t tdt__packets_intern(struct tdt__packets *packets, enum tdt__interned field,
			     const char *text, size_t n);

/* The number of a name that may have any bytes. */
uint32_t tdt__packets_name(struct tdt__packets *packets, enum tdt__interned field,
			   const char *name);

/* The frames of a return address, as `names` of the options finds them. */
size_t tdt__packets_frames(const struct tdt__packets *packets, uint64_t pc,
			   struct tdt_frame frames[TDT__PERFETTO_INLINED_MAX]);

/* The number of a stack of the recording; 0: there is no such stack. */
uint32_t tdt__packets_stack(struct tdt__packets *packets, const struct tdt__recording *recording,
			    uint32_t number);

/* Add an annotation whose name is interned.  Many events have one. */
void tdt__packets_annotate_named(struct tdt__string *annotations, uint32_t name, uint64_t value);

/* Add an annotation to those of an event.  A text may have any bytes. */
void tdt__packets_annotate_value(struct tdt__packets *packets, struct tdt__string *annotations,
				 const char *name, const struct tdt__recorded_argument *value);

static inline void tdt__packets_annotate(struct tdt__packets *packets,
					 struct tdt__string *annotations, const char *name,
					 uint64_t number)
{
	tdt__packets_annotate_value(
	    packets, annotations, name,
	    &(struct tdt__recorded_argument){ .type = TDT_USER_UINT, .u = number });
}

static inline void tdt__packets_annotate_text(struct tdt__packets *packets,
					      struct tdt__string *annotations, const char *name,
					      const char *text)
{
	tdt__packets_annotate_value(
	    packets, annotations, name,
	    &(struct tdt__recorded_argument){ .type = TDT_USER_TEXT, .text = text });
}

/* There was no memory for something. */
static inline void tdt__packets_fail(struct tdt__packets *packets)
{
	if (packets->error == 0)
		packets->error = -ENOMEM;
}
