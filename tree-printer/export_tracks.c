// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tracks of a Perfetto trace, the names of tasks, and events: see exporter.h. */

#include "exporter.h"

#include <inttypes.h>
#include <string.h>

/* Fields of TrackDescriptor and what it contains. */
enum {
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5
};

uint64_t tdt__export_process(struct tdt__exporter *exporter)
{
	const struct tdt_recording *header = tdt__recording_header(exporter->recording);
	struct tdt__string track = { 0 }, process = { 0 }, name = { 0 };
	uint64_t uuid;

	tdt__string_escape(&name, header->program, true, '\0');
	tdt__proto_add_uint(&process, PROCESS_PID, header->pid);
	tdt__proto_add_message(&process, PROCESS_NAME, &name);
	tdt__proto_add_message(&track, TRACK_PROCESS, &process);
	uuid = tdt__packets_track(&exporter->packets, &track);
	tdt__string_free(&track);
	tdt__string_free(&process);
	tdt__string_free(&name);
	return uuid;
}

uint64_t tdt__export_thread(struct tdt__exporter *exporter, uint32_t number)
{
	const struct tdt_recording *header = tdt__recording_header(exporter->recording);
	const struct tdt__recorded_thread *thread = &exporter->thread[number];
	struct tdt__string track = { 0 }, message = { 0 }, name = { 0 };

	if (exporter->thread_track[number] != 0)
		return exporter->thread_track[number];
	tdt__proto_add_uint(&message, THREAD_PID, header->pid);
	tdt__proto_add_uint(&message, THREAD_TID, thread->id);
	tdt__string_escape(&name, thread->name, true, '\0');
	if (name.n != 0 || name.failed)
		tdt__proto_add_message(&message, THREAD_NAME, &name);
	tdt__proto_add_message(&track, TRACK_THREAD, &message);
	tdt__proto_add_uint(&track, TRACK_PARENT, exporter->process);
	exporter->thread_track[number] = tdt__packets_track(&exporter->packets, &track);
	tdt__string_free(&track);
	tdt__string_free(&message);
	tdt__string_free(&name);
	return exporter->thread_track[number];
}

uint64_t tdt__export_track(struct tdt__exporter *exporter, uint64_t parent, const char *name,
			   size_t n)
{
	struct tdt__string track = { 0 };
	uint64_t uuid;

	tdt__proto_add_bytes(&track, TRACK_NAME, name, n);
	tdt__proto_add_uint(&track, TRACK_PARENT, parent);
	uuid = tdt__packets_track(&exporter->packets, &track);
	tdt__string_free(&track);
	return uuid;
}

/* The name of a task's poll function; "task" if that is unknown. */
static void add_function(struct tdt__exporter *exporter, const struct tdt__recorded_task *task)
{
	const struct tdt__perfetto_options *options = exporter->packets.options;
	struct tdt_frame frames[TDT__PERFETTO_INLINED_MAX];
	size_t n = 0;

	memset(frames, 0, sizeof(frames));
	/* The address is that of the function's first instruction, not a return address. */
	if (options->names != NULL && task->poll_function != 0)
		n = options->names(options->data, task->poll_function + 1, frames,
				   TDT__PERFETTO_INLINED_MAX);
	if (n != 0 && frames[n - 1].function != NULL)
		tdt__string_escape(&exporter->text, frames[n - 1].function, true, '\0');
	else
		tdt__string_puts(&exporter->text, "task");
}

/* Make `text` the start, and then "conn 7", as the task is called everywhere in the trace. */
static void print_task(struct tdt__exporter *exporter, uint32_t number, const char *start)
{
	const struct tdt__recorded_task *task = &exporter->task[number];

	exporter->text.n = 0;
	tdt__string_puts(&exporter->text, start);
	if (task->name[0] != '\0')
		tdt__string_escape(&exporter->text, task->name, true, '\0');
	else
		add_function(exporter, task);
	tdt__string_printf(&exporter->text, " %" PRIu64, task->id);
}

uint32_t tdt__export_text(struct tdt__exporter *exporter)
{
	if (exporter->text.failed) {
		tdt__packets_fail(&exporter->packets);
		return 0;
	}
	return tdt__packets_intern(&exporter->packets, TDT__EVENT_NAMES, exporter->text.bytes,
				   exporter->text.n);
}

uint32_t tdt__export_task_name(struct tdt__exporter *exporter, uint32_t number, const char *start,
			       uint32_t *name)
{
	if (*name == 0) {
		print_task(exporter, number, start);
		*name = tdt__export_text(exporter);
	}
	return *name;
}

/* The annotations of the first event on a task's track: what the task is. */
static void annotate_identity(struct tdt__exporter *exporter, const struct tdt__recorded_task *task)
{
	struct tdt__packets *packets = &exporter->packets;
	struct tdt__string *to = &exporter->annotations;

	tdt__packets_annotate(packets, to, "task", task->id);
	if (task->parent != 0)
		tdt__packets_annotate(packets, to, "parent", task->parent);
	if (task->file[0] != '\0') {
		tdt__packets_annotate_text(packets, to, "spawned in", task->file);
		tdt__packets_annotate(packets, to, "line", task->line);
	}
	exporter->text.n = 0;
	add_function(exporter,
		     &(struct tdt__recorded_task){ .poll_function = task->poll_function });
	tdt__string_add(&exporter->text, "", 1);
	if (!exporter->text.failed && strcmp(exporter->text.bytes, "task") != 0)
		tdt__packets_annotate_text(packets, to, "poll function", exporter->text.bytes);
}

uint64_t tdt__export_task(struct tdt__exporter *exporter, uint32_t number)
{
	struct tdt__task_track *track = &exporter->task_track[number];

	if (track->uuid == 0) {
		print_task(exporter, number, "");
		track->uuid = tdt__export_track(exporter, exporter->process, exporter->text.bytes,
						exporter->text.n);
		annotate_identity(exporter, &exporter->task[number]);
	}
	return track->uuid;
}

void tdt__export_event(struct tdt__exporter *exporter, uint64_t ns, struct tdt__packet_event event)
{
	if (exporter->annotations.n != 0 || exporter->annotations.failed)
		event.annotations = &exporter->annotations;
	tdt__packets_event(&exporter->packets, ns, &event);
	exporter->annotations.n = 0;
}

void tdt__export_put(struct tdt__exporter *exporter, uint64_t ns, enum tdt__packet_type type,
		     uint64_t track, uint32_t name)
{
	tdt__export_event(exporter, ns,
			  (struct tdt__packet_event){ .type = type, .track = track, .name = name });
}

void tdt__export_mark(struct tdt__exporter *exporter, uint64_t ns, uint64_t track, const char *name)
{
	tdt__export_put(exporter, ns, TDT__PACKET_INSTANT, track,
			tdt__packets_name(&exporter->packets, TDT__EVENT_NAMES, name));
}

void tdt__export_annotate(struct tdt__exporter *exporter, const char *name, uint64_t value)
{
	tdt__packets_annotate(&exporter->packets, &exporter->annotations, name, value);
}

void tdt__export_cpu(struct tdt__exporter *exporter, const struct tdt_event *event)
{
	if (event->b != UINT16_MAX)
		tdt__packets_annotate_named(&exporter->annotations, exporter->cpu, event->b);
}
