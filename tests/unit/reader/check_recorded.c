// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/recorded.  The target is this process, which records: so what is copied is compared
 * with what was done, also while a thread writes all the time.  And memory that is damaged.
 */

#include <tdt/layout/recording.h>

#include "lib/poll_now.h"
#include "lib/read_self.h"
#include "lib/refused.h"
#include "lib/test.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "registry/registry.h"

static void *copy;
static size_t size;

static int copy_self(void)
{
	return tdt__recorded_copy(&target, &images, &found[0], &copy, &size, &trouble);
}

static void start(size_t ring_size)
{
	const struct tdt_recorder_options options = { .size = sizeof options,
						      .ring_size = ring_size };

	ck_assert_int_eq(tdt_recorder_start(&options), 0);
}

static struct tdt__recording *open_copy(void)
{
	struct tdt__recording *recording;

	ck_assert_int_eq(tdt__recording_open(&recording, copy, size), 0);
	return recording;
}

static void close_copy(struct tdt__recording *recording)
{
	tdt__recording_close(recording);
	free(copy);
}

/* --- A task whose polls record pairs of numbers ------------------------------------------- */

static uint64_t pair;

static tdt_poll_t record_pair(void *state, struct tdt_context *cx)
{
	pair++;
	TDT_PROBE(check, pair, pair, ~pair);
	return TDT_PENDING;
}

static struct tdt_traced spawn_pairs(void)
{
	struct tdt_traced traced = tdt_traced_with(future_of(record_pair, NULL),
						   TDT_TASK_ATTR(.name = "pairs"));

	ck_assert_ptr_nonnull(traced.handle);
	return traced;
}

static void poll_pairs(struct tdt_traced *traced)
{
	poll_idly(&traced->future);
}

/* The number of a pair, which must be whole; 0: the item is no pair. */
static uint64_t pair_of(const struct tdt__recording *recording,
			const struct tdt__recorded_item *item)
{
	struct tdt__recorded_argument first, second;
	char payload[TDT__PAYLOAD_MAX + 1];
	struct tdt__recorded_user user;
	size_t n;

	if (item->event.kind != TDT_EVENT_USER)
		return 0;
	n = tdt__recording_payload(recording, item, payload);
	ck_assert(tdt__recorded_user(&user, &item->event, payload, n));
	ck_assert_str_eq(user.name, "pair");
	ck_assert(tdt__recorded_user_next(&user, &first));
	ck_assert(tdt__recorded_user_next(&user, &second));
	ck_assert_uint_eq(first.u, ~second.u);
	return first.u;
}

/* How many pairs the copy has, which must follow each other. */
static uint64_t count_pairs(uint64_t *last)
{
	struct tdt__recording *recording = open_copy();
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	uint32_t ring = 0;
	uint64_t n = 0;

	*last = 0;
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	while (tdt__recording_next(&cursor, &item)) {
		uint64_t number = pair_of(recording, &item);

		if (number == 0)
			continue;
		/* A thread changes to a larger ring, which may have lost its oldest events. */
		ck_assert(*last == 0 || number == *last + 1 ||
			  (item.parts.ring != ring && number > *last));
		ring = item.parts.ring;
		*last = number;
		n++;
	}
	tdt__recording_end(&cursor);
	close_copy(recording);
	return n;
}

CASE(copies)

TEST(without_a_recording_the_trouble_says_so)
{
	TRACED(traced, spawn_pairs());

	open_self();
	ck_assert_int_eq(copy_self(), -ENODATA);
	ck_assert_ptr_nonnull(strstr(trouble.text, "TDT_RECORD="));
	ck_assert(!tdt__recorded_runs(&target, &found[0]));
	close_self();
}

TEST(all_that_was_recorded_is_copied)
{
	uint64_t last;
	struct tdt_traced traced = spawn_pairs();

	start(1 << 16);
	for (int i = 0; i < 100; i++)
		poll_pairs(&traced);
	open_self();
	ck_assert(tdt__recorded_runs(&target, &found[0]));
	ck_assert_int_eq(copy_self(), 0);
	ck_assert_uint_eq(count_pairs(&last), 100);
	ck_assert_uint_eq(last, 100);
	tdt_recorder_stop();
	ck_assert(!tdt__recorded_runs(&target, &found[0]));
	ck_assert_int_eq(copy_self(), 0);
	ck_assert_uint_eq(count_pairs(&last), 100);
	close_self();
	end_traced(&traced);
}

/* The task was spawned before the recorder ran, so no event has its name. */
TEST(the_copy_names_live_tasks_and_all_modules)
{
	const struct tdt__recorded_module *module;
	const struct tdt__recorded_task *task;
	struct tdt__recording *recording;
	bool known = false;
	size_t n;
	struct tdt_traced traced = spawn_pairs();

	start(TDT_RING_SIZE_MIN);
	for (int i = 0; i < 10; i++)
		poll_pairs(&traced);
	open_self();
	ck_assert_int_eq(copy_self(), 0);
	recording = open_copy();
	task = recording->task;
	n = recording->n_tasks;
	task += tdt__recording_task(recording, tdt_handle_id(traced.handle));
	ck_assert_uint_eq(task->spawned, 0);
	ck_assert_str_eq(task->name, "pairs");
	ck_assert_ptr_nonnull(strstr(task->file, "check_recorded.c"));
	ck_assert_uint_eq(task->poll_function, (uintptr_t)record_pair);
	module = recording->module;
	n = recording->n_modules;
	for (size_t i = 0; i < n; i++)
		known |= module[i].start <= (uintptr_t)record_pair &&
			 (uintptr_t)record_pair < module[i].end;
	ck_assert(known);
	close_copy(recording);
	close_self();
	end_traced(&traced);
}

/* In the event that the recorder has written, and in the one that is added to the copy. */
TEST(the_function_that_a_task_began_with_is_known, .to = 2)
{
	const struct tdt_task_attr *attr = TDT_TASK_ATTR(.entry = (uintptr_t)record_pair);
	struct tdt_handle *task = _i == 0 ? tdt_task_new(attr) : NULL;
	const struct tdt__recorded_task *recorded;
	struct tdt__recording *recording;

	start(TDT_RING_SIZE_MIN);
	if (_i == 1)
		task = tdt_task_new(attr);
	ck_assert_ptr_nonnull(task);
	open_self();
	ck_assert_int_eq(copy_self(), 0);
	recording = open_copy();
	recorded = &recording->task[tdt__recording_task(recording, tdt_handle_id(task))];
	ck_assert_int_eq(recorded->spawned != 0, _i == 1);
	ck_assert(recorded->has_entry);
	ck_assert_uint_eq(recorded->poll_function, (uintptr_t)record_pair);
	close_copy(recording);
	close_self();
	tdt_task_end(task);
}

static int copy_and_free(void *argument)
{
	int error = copy_self();

	if (error == 0)
		free(copy);
	return error;
}

TEST(without_memory_the_trouble_says_so)
{
	struct tdt_traced traced = spawn_pairs();

	start(1 << 16);
	poll_pairs(&traced);
	open_self();
	no_memory_each(copy_and_free, NULL, 4);
	close_self();
	end_traced(&traced);
}

/* --- While a thread writes ---------------------------------------------------------------- */

static atomic_bool stop_writing;

static void *write_pairs(void *argument)
{
	while (!atomic_load(&stop_writing))
		poll_pairs(argument);
	return NULL;
}

/*
 * The ring is so small that the thread goes around it while it is read.  The thread may have to
 * wait for a CPU before it writes anything.
 */
static void copy_while_written(size_t ring_size, int copies)
{
	uint64_t all = 0, last, before = 0;
	pthread_t writer;
	struct tdt_traced traced = spawn_pairs();

	start(ring_size);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_pairs, &traced), 0);
	open_self();
	for (int i = 0; i < copies || all == 0; i++) {
		ck_assert_int_eq(copy_self(), 0);
		all += count_pairs(&last);
		ck_assert(last == 0 || last >= before);
		before = last > before ? last : before;
	}
	atomic_store(&stop_writing, true);
	pthread_join(writer, NULL);
	close_self();
	end_traced(&traced);
	printf("# %llu events were whole\n", (unsigned long long)all);
}

CASE(writers)

TEST(no_event_is_torn_while_a_thread_goes_around_its_ring)
{
	bool slow = in_valgrind() || is_delayed();

	copy_while_written(TDT_RING_SIZE_MIN, slow ? 10 : test_in_full() ? 300 : 60);
}

TEST(nor_in_a_ring_that_takes_long_to_read)
{
	copy_while_written(1 << 20, in_valgrind() ? 1 : 10);
}

static void *start_anew(void *argument)
{
	struct tdt_recorder_options options = { .size = sizeof options };

	for (unsigned i = 0; !atomic_load(&stop_writing); i++) {
		options.ring_size = TDT_RING_SIZE_MIN << i % 2;
		tdt_recorder_stop();
		tdt_recorder_start(&options);
	}
	return argument;
}

/* Each start makes another block, and the old one loses its slots. */
TEST(a_recorder_that_is_started_anew_is_copied_or_refused)
{
	pthread_t starter;
	int error;

	start(TDT_RING_SIZE_MIN);
	open_self();
	ck_assert_int_eq(pthread_create(&starter, NULL, start_anew, NULL), 0);
	for (int i = 0; i < (in_valgrind() ? 5 : 50); i++) {
		error = copy_self();
		ck_assert(error == 0 || error == -EAGAIN || error == -EFAULT);
		if (error == 0)
			close_copy(open_copy());
	}
	atomic_store(&stop_writing, true);
	pthread_join(starter, NULL);
	close_self();
}

/* --- Memory that is damaged, or was made to do harm --------------------------------------- */

#define PAGE 4096

/* A registry that leads to `rings`. */
static void lead_to(uint64_t rings)
{
	found[1] = found[0];
	found[1].registry.rings = rings;
	found[1].address = (uintptr_t)&found[1].registry;
}

static int copy_from(uint64_t rings)
{
	lead_to(rings);
	return tdt__recorded_copy(&target, &images, &found[1], &copy, &size, &trouble);
}

static struct tdt_recording *make_header(void *memory)
{
	struct tdt_recording *header = memory;

	*header = (struct tdt_recording){ .magic = TDT_RECORDING_MAGIC,
					  .version = TDT_RECORDING_VERSION,
					  .size = sizeof *header,
					  .bytes = 2 * PAGE,
					  .rings = sizeof *header,
					  .ring_size = sizeof(struct tdt_recording_ring) };
	return header;
}

/* Two pages that can be read, with one behind them that cannot. */
static void *make_memory(void)
{
	char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(memory + 2 * PAGE, PAGE, PROT_NONE), 0);
	return memory;
}

CASE(damage)

TEST(a_block_does_not_leave_its_memory)
{
	struct tdt_recording *header = make_header(make_memory());

	open_self();
	ck_assert_int_eq(copy_from((uintptr_t)header), 0);
	free(copy);
	/* The table of rings, to where there is no memory. */
	header->bytes = 3 * PAGE;
	header->n_rings = 2 * PAGE / sizeof(struct tdt_recording_ring);
	ck_assert_int_eq(copy_from((uintptr_t)header), -EFAULT);
	header->n_rings = 0;
	/* Around the end of the address space, to where there is memory. */
	header->bytes = 0 - (uintptr_t)header + (uintptr_t)&target / 8 * 8;
	ck_assert_int_eq(copy_from((uintptr_t)header), -EINVAL);
	header->bytes = 2 * PAGE;
	header->n_rings = UINT32_MAX;
	ck_assert_int_eq(copy_from((uintptr_t)header), -EINVAL);
	header->n_rings = 0;
	header->version = TDT_RECORDING_VERSION + 1;
	ck_assert_int_eq(copy_from((uintptr_t)header), -ENOTSUP);
	close_self();
	munmap(header, 3 * PAGE);
}

TEST(an_address_without_memory_is_a_trouble)
{
	char *memory = make_memory();

	open_self();
	ck_assert_int_eq(copy_from((uintptr_t)memory), -EINVAL); /* no recording */
	ck_assert_int_eq(copy_from((uintptr_t)memory + 2 * PAGE), -EFAULT);
	ck_assert_int_eq(copy_from((uintptr_t)memory + 2 * PAGE - 8), -EFAULT);
	ck_assert_int_eq(copy_from(UINT64_MAX - 7), -EFAULT);
	ck_assert_int_eq(copy_from(1), -EFAULT);
	close_self();
	munmap(memory, 3 * PAGE);
}

SUITE_SKIP(reading_refused())
