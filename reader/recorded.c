// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Copying the recording of a target: the block that is in its memory, and behind it what only a
 * living process knows, in events of the same kinds that the recorder writes: the tasks that have
 * records, and the modules.
 */

#include "reader/recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/layout/recording.h>

#include "base/clock.h"
#include "reader/core.h"
#include "reader/records.h"
#include "reader/tasks.h"
#include "recording/copy.h"
#include "recording/describe.h"
#include "recording/read.h"
#include "recording/supplement.h"
#include "symbolize/modules.h"

/* --- Memory ------------------------------------------------------------------------------- */

#define READ_AT_ONCE ((size_t)256 << 20) /* process_vm_readv(2) reads less than 2 GiB */

/*
 * Acquire: what the next call reads was not written before what this call reads.  The kernel copies
 * each aligned word at once.  See copy.h.
 */
static int read_recorded(void *data, uint64_t address, void *to, size_t n)
{
	const struct tdt__target *target = data;
	char *bytes = to;

	while (n > 0) {
		size_t part = n < READ_AT_ONCE ? n : READ_AT_ONCE;

		if (!tdt__target_read(target, address, bytes, part))
			return -EFAULT;
		address += part;
		bytes += part;
		n -= part;
	}
	atomic_thread_fence(memory_order_acquire);
	return 0;
}

/* How many bytes of the process can be read, or of the core file. */
static uint64_t readable_bytes(const struct tdt__target *target)
{
	uint64_t bytes = 0;

	for (size_t i = 0; target->core != NULL && i < target->core->n_segments; i++)
		bytes += target->core->segment[i].size;
	for (size_t i = 0; target->core == NULL && i < target->n_mappings; i++)
		if (target->mapping[i].readable)
			bytes += target->mapping[i].end - target->mapping[i].start;
	return bytes;
}

/* --- Time --------------------------------------------------------------------------------- */

/* The time now in ticks of that clock; 0: it is not a clock of this machine. */
static uint64_t ticks_now(const struct tdt__target *target, uint32_t clock)
{
	uint64_t ticks = 0;

	if (clock == TDT_RECORDING_MONOTONIC)
		ticks = tdt__clock() + (uint64_t)target->clock_offset;
#if defined(__x86_64__)
	if (clock == TDT_RECORDING_TSC)
		ticks = __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (clock == TDT_RECORDING_CNTVCT)
		asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#endif
	return ticks;
}

/* --- The block ---------------------------------------------------------------------------- */

static uint64_t rings_of(const struct tdt__target *target, const struct tdt__found *found)
{
	uint64_t rings = 0;

	tdt__target_read(target, found->address + offsetof(struct tdt_registry, rings), &rings,
			 sizeof rings);
	return rings;
}

static int copy_rings(struct tdt__target *target, uint64_t rings, void **copy, size_t *size)
{
	struct tdt__recording_source source = { .read = read_recorded,
						.data = target,
						.address = rings,
						.bytes = readable_bytes(target) };
	struct tdt_recording header;

	if (!tdt__target_read(target, rings, &header, sizeof header))
		return -EFAULT;
	if (target->core == NULL)
		source.now = ticks_now(target, header.clock);
	return tdt__recording_copy(&source, copy, size);
}

/* The block that there is.  One that lies where a former one was has another start. */
struct current {
	uint64_t rings, start;
};

static struct current current_block(const struct tdt__target *target,
				    const struct tdt__found *found)
{
	const uint64_t start = offsetof(struct tdt_recording, start_ticks);
	struct current current = { .rings = rings_of(target, found) };

	if (current.rings != 0)
		tdt__target_read(target, current.rings + start, &current.start,
				 sizeof current.start);
	return current;
}

#define ATTEMPTS_TO_COPY 3

/* If another block comes meanwhile, this one loses its slots. */
static int copy_current(struct tdt__target *target, const struct tdt__found *found, void **copy,
			size_t *size)
{
	for (int i = 0; i < ATTEMPTS_TO_COPY; i++) {
		struct current before = current_block(target, found), after;
		int error = before.rings != 0 ? copy_rings(target, before.rings, copy, size)
					      : -ENODATA;

		after = current_block(target, found);
		if (after.rings == before.rings && after.start == before.start)
			return error;
		if (error == 0)
			free(*copy);
	}
	return -EAGAIN;
}

/* --- What is added ------------------------------------------------------------------------ */

static void add_live_task(struct tdt__supplement *supplement, const struct tdt__seen *seen,
			  struct tdt__images *images, uint64_t entry, uint64_t now)
{
	const struct tdt_task_record *record = &seen->record;
	struct tdt_event event = { .kind = TDT_EVENT_TASK, .time = now };
	char file[512], payload[TDT__IDENTITY_MAX];
	struct tdt__identified identified = { .record = record, .entry = entry, .file = file };
	size_t size;

	if (record->file == 0 || !tdt__images_string(images, record->file, file, sizeof file))
		file[0] = '\0';
	tdt__seen_context(images->target, seen, &identified.context);
	size = tdt__describe_task(&event, &identified, payload);
	tdt__supplement_add(supplement, &event, payload, size);
}

/*
 * The events of a task that waits since before the oldest one are missing, and what orphans a lock
 * is in no event: so readers get a listing, as in a file.
 */
static void add_tasks(struct tdt__supplement *supplement, const struct tdt__records *records,
		      struct tdt__images *images, const struct tdt__found *found, uint64_t now)
{
	struct tdt__tasks tasks = { .target = images->target, .registry = found->registry };
	struct tdt__lock_places locks = tdt__tasks_locks(&tasks);

	for (size_t i = 0; i < records->n; i++) {
		const struct tdt_task_record *record = &records->seen[i].record;
		struct tdt__listed_state listed;
		struct tdt_event event;

		if (record->state == TDT_TASK_RECORD_ENDED)
			continue;
		event = tdt__describe_state(record, &locks, now, &listed);
		tdt__supplement_add(supplement, &event, (const char *)&listed, sizeof listed);
		add_live_task(supplement, &records->seen[i], images,
			      tdt__seen_entry(&tasks, record), now);
	}
}

static void add_modules(struct tdt__supplement *supplement, const struct tdt__modules *modules,
			uint64_t now)
{
	for (size_t i = 0; i < modules->n; i++) {
		const struct tdt__module *module = &modules->module[i];
		const struct tdt_event event = { .kind = TDT_EVENT_MODULE,
						 .time = now,
						 .task = module->start,
						 .c = module->end };
		char payload[TDT__DESCRIPTION_MAX];

		tdt__supplement_add(supplement, &event, payload,
				    tdt__describe_module(module->bias, module->build_id,
							 module->path, payload));
	}
}

static int add_what_is_known(struct tdt__target *target, struct tdt__images *images,
			     const struct tdt__found *found, void **copy, size_t *size)
{
	uint64_t taken = ((const struct tdt_recording *)*copy)->taken;
	struct tdt__supplement supplement = { 0 };
	struct tdt__records records;

	if (tdt__records_read(&records, target, &found->registry) != 0)
		return -ENOMEM;
	add_tasks(&supplement, &records, images, found, taken);
	add_modules(&supplement, images->table, taken);
	tdt__records_fini(&records);
	return tdt__supplement_append(&supplement, copy, size);
}

/* --- Troubles ----------------------------------------------------------------------------- */

static int not_readable(const struct tdt__target *target, uint64_t rings,
			struct tdt__trouble *trouble)
{
	const struct tdt__mapping *mapping = tdt__target_mapping(target, rings);

	if (target->core == NULL || mapping == NULL || !mapping->is_file)
		return tdt__trouble(trouble, -EFAULT,
				    "the recording cannot be read: the memory that has it is "
				    "damaged, or missing in the core file");
	return tdt__trouble(trouble, -ENXIO,
			    "the recording is not in the core file, but in a file of its own: "
			    "use --dir=%s",
			    mapping->path);
}

static int report_of(int error, const struct tdt__target *target, const struct tdt__found *found,
		     struct tdt__trouble *trouble)
{
	switch (error) {
	case 0:
		return 0;
	case -ENODATA:
		return tdt__trouble(trouble, error,
				    "the process has never recorded anything: have it start with "
				    "TDT_RECORD=16M in its environment, or call "
				    "tdt_recorder_start()");
	case -EFAULT:
		return not_readable(target, rings_of(target, found), trouble);
	case -EINVAL:
		return tdt__trouble(trouble, error, "the recording is damaged");
	case -ENOTSUP:
		return tdt__trouble(trouble, error,
				    "the recording has another layout: use the tdt that belongs to "
				    "libtdt %s",
				    found->registry.library);
	case -EAGAIN:
		return tdt__trouble(trouble, error,
				    "the recorder is being started again and again");
	default:
		return tdt__trouble(trouble, error, "there is not enough memory");
	}
}

int tdt__recorded_copy(struct tdt__target *target, struct tdt__images *images,
		       const struct tdt__found *found, void **copy, size_t *size,
		       struct tdt__trouble *trouble)
{
	int error = copy_current(target, found, copy, size);

	if (error == 0) {
		error = add_what_is_known(target, images, found, copy, size);
		if (error != 0)
			free(*copy);
	}
	return report_of(error, target, found, trouble);
}

int tdt__recorded_open(struct tdt__target *target, struct tdt__images *images,
		       const struct tdt__found *found, void **copy,
		       struct tdt__recording **recording, struct tdt__trouble *trouble)
{
	size_t size;
	int error = tdt__recorded_copy(target, images, found, copy, &size, trouble);

	if (error != 0)
		return error;
	error = tdt__recording_open(recording, *copy, size);
	if (error != 0)
		free(*copy);
	return report_of(error, target, found, trouble);
}

bool tdt__recorded_runs(const struct tdt__target *target, const struct tdt__found *found)
{
	uint64_t rings = rings_of(target, found);
	struct tdt_recording header;

	return target->core == NULL && rings != 0 &&
	       tdt__target_read(target, rings, &header, sizeof header) &&
	       memcmp(header.magic, TDT_RECORDING_MAGIC, sizeof header.magic) == 0 &&
	       header.recording == 1;
}
