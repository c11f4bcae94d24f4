// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/copy.  A copy of a recording has what was whole when it was made, also while
 * threads write to it.
 */

#include "lib/recording_maker.h"
#include "lib/test.h"
#include "recording/copy.h"
#include "recording/read.h"

static struct maker *maker;
static char *block;
static size_t size;
static void *copy;
static size_t copy_size;

/* Called before each read, with the offset; NULL: nothing is. */
static void (*before_read)(uint64_t offset);

/* Refuse whatever lies outside of the block. */
static int read_block(void *data, uint64_t address, void *to, size_t n)
{
	uint64_t offset = address - (uintptr_t)block;

	if (before_read != NULL)
		before_read(offset);
	if (offset > size || n > size - offset)
		return -EFAULT;
	memcpy(to, block + offset, n);
	return 0;
}

static int copy_block(uint64_t now, uint64_t since)
{
	const struct tdt__recording_source source = {
		.read = read_block, .address = (uintptr_t)block, .now = now, .since = since
	};

	return tdt__recording_copy(&source, &copy, &copy_size);
}

/* The tasks of all events of the copy, in the order of time, each with a space. */
static const char *tasks_of_copy(void)
{
	static char text[4096];
	struct tdt__recording_cursor cursor;
	struct tdt__recording *recording;
	struct tdt__recorded_item item;
	size_t n = 0;

	ck_assert_int_eq(tdt__recording_open(&recording, copy, copy_size), 0);
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	text[0] = '\0';
	while (tdt__recording_next(&cursor, &item))
		if (item.kind != TDT__RECORDED_END)
			n += (size_t)sprintf(text + n, "%u ", (unsigned)item.event.task);
	tdt__recording_end(&cursor);
	tdt__recording_close(recording);
	free(copy);
	return text;
}

/* A copy is made, without what is older than that, and has events of these tasks. */
static void expect_copy(uint64_t since, const char *tasks)
{
	ck_assert_int_eq(copy_block(1000, since), 0);
	ck_assert_str_eq(tasks_of_copy(), tasks);
}

static void end(void)
{
	before_read = NULL;
	free(block);
	maker_free(maker);
}

static unsigned begin(void)
{
	maker = maker_new();
	return maker_ring(maker, TDT_RING_POLLS, 64, 11);
}

CASE(copies, .teardown = end)

TEST(a_copy_has_all_and_is_no_larger_than_necessary)
{
	static const uint64_t pcs[] = { 1, 2 };
	struct tdt__recording *recording;
	const uint64_t *found;
	enum tdt_cut cut;
	uint32_t stack;
	unsigned ring = begin();

	maker_ring(maker, TDT_RING_POLLS, 1024, 0); /* nothing is in it */
	stack = maker_stack(maker, pcs, 2, 0);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, ring, 120, 8, 0);
	maker_entry(maker, ring)->task = 9;
	maker_entry(maker, ring)->since = 130;
	block = maker_block(maker, &size);
	ck_assert_int_eq(copy_block(1000, 0), 0);
	ck_assert_uint_lt(copy_size, 1024);
	ck_assert_int_eq(tdt__recording_open(&recording, copy, copy_size), 0);
	ck_assert_uint_eq(recording->until, 1000);
	ck_assert_uint_eq(tdt__recording_stack(recording, stack, &found, &cut), 2);
	ck_assert_uint_eq(found[1], 2);
	tdt__recording_close(recording);
	ck_assert_str_eq(tasks_of_copy(), "7 8 9 ");
}

/* Nobody writes to a snapshot, so all that it has is whole, and it has no spare slots. */
TEST(a_copy_of_a_snapshot_has_all_of_it)
{
	unsigned ring = begin();

	for (unsigned i = 0; i < 64; i++)
		maker_wake(maker, ring, 100 + i, 1 + i, 0);
	block = maker_block(maker, &size);
	ck_assert_int_eq(copy_block(1000, 160), 0);
	free(block);
	block = copy;
	size = copy_size;
	expect_copy(0, "61 62 63 64 ");
}

TEST(old_events_are_left_out_and_the_services_are_not)
{
	unsigned ring = begin(), service = maker_ring(maker, TDT_RING_SERVICE, 64, 12);

	maker_identity(maker, service, TDT_EVENT_TASK, 1, 1, 0, 0, "", "", 0);
	maker_wake(maker, ring, 100, 2, 0);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 101, 3, 0, 0, "", "", 0);
	maker_wait(maker, ring, 4, TDT_WAIT_IO, 5, 0, "a socket");
	maker_poll(maker, ring, 102, 10, 4, TDT_PENDING);
	maker_wake(maker, ring, 120, 5, 0);
	block = maker_block(maker, &size);
	expect_copy(102, "1 4 5 ");
	expect_copy(113, "1 5 ");
	expect_copy(121, "1 ");
}

TEST(a_process_that_is_gone_was_last_seen_with_its_newest_event)
{
	struct tdt__recording *recording;
	unsigned ring = begin();

	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	block = maker_block(maker, &size);
	ck_assert_int_eq(copy_block(0, 0), 0);
	ck_assert_int_eq(tdt__recording_open(&recording, copy, copy_size), 0);
	ck_assert_uint_eq(recording->until, 110);
	tdt__recording_close(recording);
	free(copy);
}

/* A thread writes 20 more events between the reading of the slots and that of the head. */
static void overwrite(uint64_t offset)
{
	struct tdt_recording *header = (void *)block;
	struct tdt_recording_ring *ring = (void *)(block + header->rings);
	static int entries;

	if (offset != header->rings) {
		entries = offset == 0 ? 0 : entries;
		return;
	}
	if (entries++ == 1)
		ring->head += 20;
}

TEST(what_may_be_overwritten_meanwhile_is_left_out)
{
	struct tdt__recording *recording;
	const struct tdt__recorded_ring *rings;
	unsigned ring = begin();
	size_t n;

	for (unsigned i = 0; i < 100; i++)
		maker_wake(maker, ring, 100 + i, 1 + i, 0);
	block = maker_block(maker, &size);
	before_read = overwrite;
	ck_assert_int_eq(copy_block(1000, 0), 0);
	ck_assert_int_eq(tdt__recording_open(&recording, copy, copy_size), 0);
	rings = recording->ring;
	n = recording->n_rings;
	ck_assert_uint_eq(n, 1);
	/* From head 120 and 32 slots on, less the room; up to what was there at first. */
	ck_assert_uint_eq(rings[0].first, 120 + 32 - 64);
	ck_assert_uint_eq(rings[0].n, 100 - (120 + 32 - 64));
	tdt__recording_close(recording);
	ck_assert_str_eq(tasks_of_copy(), "89 90 91 92 93 94 95 96 97 98 99 100 ");
}

static int entries_read;
static int rounds; /* that the thread still makes around its ring */

/* The thread goes around the ring, each time between the reading of the slots and of the entry. */
static void go_around(uint64_t offset)
{
	struct tdt_recording *header = (void *)block;
	struct tdt_recording_ring *ring = (void *)(block + header->rings);

	if (offset != header->rings || entries_read++ % 2 == 0 || rounds == 0)
		return;
	rounds--;
	ring->head += ring->room;
}

static void make_rounds(int n)
{
	entries_read = 0;
	rounds = n;
	before_read = go_around;
	ck_assert_int_eq(copy_block(1000, 0), 0);
}

TEST(a_ring_that_is_overwritten_as_a_whole_is_read_again)
{
	const struct tdt_recording *header;
	const struct tdt_recording_ring *entry;
	unsigned ring = begin();

	for (unsigned i = 0; i < 100; i++)
		maker_wake(maker, ring, 100 + i, 1 + i, 0);
	block = maker_block(maker, &size);
	make_rounds(3);
	ck_assert_str_ne(tasks_of_copy(), "");
	/* For ever: the copy says that all is lost. */
	make_rounds(1000);
	header = copy;
	ck_assert_uint_eq(header->n_rings, 1);
	entry = (const void *)((const char *)copy + header->rings);
	ck_assert_uint_eq(entry->head, entry->first);
	ck_assert_uint_gt(entry->first, 100);
	ck_assert_str_eq(tasks_of_copy(), "");
}

static void change_current(uint64_t offset)
{
	struct tdt_recording *header = (void *)block;

	if (offset == header->rings)
		((struct tdt_recording_ring *)(void *)(block + header->rings))->since++;
}

TEST(a_poll_that_changes_while_it_is_read_is_left_out)
{
	unsigned ring = begin();

	maker_wake(maker, ring, 100, 7, 0);
	maker_entry(maker, ring)->task = 8;
	maker_entry(maker, ring)->since = 110;
	block = maker_block(maker, &size);
	expect_copy(0, "7 8 ");
	before_read = change_current;
	expect_copy(0, "7 ");
}

/* What the block becomes when the second ring is about to be read. */
static char *later;
static uint64_t first_entry;

static void go_to_a_large_ring(uint64_t offset)
{
	uint64_t entries = ((struct tdt_recording *)(void *)block)->rings;

	if (offset < entries || offset >= entries + 2 * sizeof(struct tdt_recording_ring))
		return;
	if (first_entry == 0)
		first_entry = offset;
	else if (offset != first_entry)
		memcpy(block, later, size);
}

TEST(a_thread_that_gets_a_larger_ring_meanwhile_is_in_the_copy)
{
	unsigned large = (maker = maker_new(), maker_ring(maker, TDT_RING_POLLS, 64, 0)),
		 small = maker_ring(maker, TDT_RING_POLLS, 64, 11);

	maker_wake(maker, small, 100, 7, 0);
	block = maker_block(maker, &size);
	maker_entry(maker, large)->thread = 11;
	maker_wake(maker, large, 200, 8, 0);
	maker_entry(maker, small)->thread = 12;
	for (unsigned i = 0; i < 128; i++)
		maker_wake(maker, small, 300, 9, 0);
	later = maker_block(maker, &size);
	before_read = go_to_a_large_ring;
	expect_copy(0, "7 8 ");
	free(later);
}

CASE(damage, .teardown = end)

TEST(what_cannot_be_read_is_an_error)
{
	struct tdt_recording *header;
	unsigned ring = begin();

	maker_wake(maker, ring, 100, 7, 0);
	block = maker_block(maker, &size);
	header = (void *)block;
	header->magic[0]++;
	ck_assert_int_eq(copy_block(1000, 0), -EINVAL);
	ck_assert_ptr_null(copy);
	header->magic[0]--;
	header->version++;
	ck_assert_int_eq(copy_block(1000, 0), -ENOTSUP);
	header->version--;
	header->rings = size;
	ck_assert_int_eq(copy_block(1000, 0), -EINVAL);
	header->rings = sizeof(*header);
	header->stacks = size - 8;
	ck_assert_int_eq(copy_block(1000, 0), -EFAULT);
	header->stacks = 0;
	expect_copy(0, "7 ");
}

/* What is appended to a copy must be aligned. */
TEST(a_table_of_stacks_of_an_odd_length_is_cut)
{
	static const uint64_t pcs[] = { 1, 2 };
	struct tdt_recording_stacks *stacks;

	begin();
	maker_stack(maker, pcs, 2, 0);
	block = maker_block(maker, &size);
	stacks = (void *)(block + ((struct tdt_recording *)(void *)block)->stacks);
	stacks->bytes -= 3;
	ck_assert_int_eq(copy_block(1000, 0), 0);
	ck_assert_uint_eq(copy_size % 8, 0);
	free(copy);
}

static int reads;

static void count_read(uint64_t offset)
{
	reads++;
}

TEST(a_table_of_rings_that_is_larger_than_the_memory_is_refused_at_once)
{
	struct tdt__recording_source source = { .read = read_block, .now = 1 };
	struct tdt_recording *header;
	unsigned ring = begin();
	uint32_t n_rings;

	maker_wake(maker, ring, 100, 7, 0);
	block = maker_block(maker, &size);
	header = (void *)block;
	source.address = (uintptr_t)block;
	source.bytes = size;
	header->bytes = UINT64_C(1) << 40;
	n_rings = header->n_rings;
	header->n_rings = 1 << 30;
	before_read = count_read;
	ck_assert_int_eq(tdt__recording_copy(&source, &copy, &copy_size), -EINVAL);
	ck_assert_int_eq(reads, 1); /* the header */
	before_read = NULL;
	header->n_rings = n_rings;
	header->bytes = size - 1;
	ck_assert_int_eq(copy_block(1000, 0), -EINVAL);
}

/* Many entries that describe the same slots would make a copy that is larger than the block. */
TEST(a_copy_is_no_larger_than_the_block_may_be)
{
	struct tdt_recording *header;
	unsigned ring = begin(), other = maker_ring(maker, TDT_RING_POLLS, 64, 12);

	for (unsigned i = 0; i < 64; i++) {
		maker_wake(maker, ring, 100 + i, 7, 0);
		maker_wake(maker, other, 100 + i, 7, 0);
	}
	maker_entry(maker, ring)->room = 64;
	block = maker_block(maker, &size);
	header = (void *)block;
	header->bytes = header->rings + 2 * sizeof(struct tdt_recording_ring) + 64 * 32;
	ck_assert_int_eq(copy_block(1000, 0), 0);
	ck_assert_uint_lt(copy_size, size);
	free(copy);
}

static int copy_and_free(void *argument)
{
	int err = copy_block(1000, 0);

	free(copy);
	return err;
}

/* The rest is mapped when a ring needs it. */
TEST(a_block_may_be_larger_than_the_memory_that_it_has)
{
	struct tdt__recording_source source = { .read = read_block, .now = 1 };
	unsigned ring = begin();

	maker_wake(maker, ring, 100, 7, 0);
	block = maker_block(maker, &size);
	source.address = (uintptr_t)block;
	source.bytes = size;
	((struct tdt_recording *)(void *)block)->bytes = UINT64_C(1) << 40;
	ck_assert_int_eq(tdt__recording_copy(&source, &copy, &copy_size), 0);
	ck_assert_str_eq(tasks_of_copy(), "7 ");
}

TEST(without_memory_copying_says_so)
{
	static const uint64_t pcs[200];
	unsigned ring = begin();

	maker_stack(maker, pcs, 200, 0);
	for (unsigned i = 0; i < 64; i++)
		maker_wake(maker, ring, 100, 7, 0);
	block = maker_block(maker, &size);
	no_memory_each(copy_and_free, NULL, 3);
}

/* --- A thread that writes all the time ------------------------------------------------------ */

static atomic_bool stop;

/* Words, each of which is written at once: as the recorder does it. */
static void put_words(uint64_t *to, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	__atomic_store_n(&to[0], a, __ATOMIC_RELAXED);
	__atomic_store_n(&to[1], b, __ATOMIC_RELAXED);
	__atomic_store_n(&to[2], c, __ATOMIC_RELAXED);
	__atomic_store_n(&to[3], d, __ATOMIC_RELAXED);
}

/* Wake-ups whose words all tell their number: now at full speed, now so that a copy is faster. */
static void *write_on(void *argument)
{
	struct tdt_recording *header = (void *)block;
	struct tdt_recording_ring *ring = (void *)(block + header->rings);
	uint64_t *slots = (uint64_t *)(void *)(block + ring->slots);

	for (uint64_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		put_words(slots + 4 * (i & (ring->room - 1)), TDT_EVENT_WAKE, i + 1, i + 1, i + 1);
		__atomic_store_n(&ring->head, i + 1, __ATOMIC_RELEASE);
		atomic_thread_fence(memory_order_release);
		for (volatile unsigned wait = i / 4096 % 2 != 0 ? 100 : 0; wait > 0; wait--)
			;
	}
	return NULL;
}

static int read_words(void *data, uint64_t address, void *to, size_t n)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)address;
	uint64_t *words = to;

	for (size_t i = 0; i < n / 8; i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
	return 0;
}

/* Returns how many events of the copy there were, each of which must be whole. */
static uint64_t count_whole(void)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recording *recording;
	struct tdt__recorded_item item;
	uint64_t n = 0, last = 0;

	ck_assert_int_eq(tdt__recording_open(&recording, copy, copy_size), 0);
	ck_assert_int_eq(tdt__recording_begin(&cursor, recording), 0);
	for (; tdt__recording_next(&cursor, &item); n++) {
		ck_assert(item.event.time == item.event.task && item.event.time == item.event.c);
		ck_assert(last == 0 || item.event.time == last + 1);
		last = item.event.time;
	}
	tdt__recording_end(&cursor);
	tdt__recording_close(recording);
	free(copy);
	return n;
}

CASE(writers, .timeout = 60)

TEST(all_events_are_whole_while_a_thread_writes)
{
	struct tdt__recording_source source = { .read = read_words, .now = 1 };
	uint64_t whole = 0;
	pthread_t writer;

	maker = maker_new();
	maker_ring(maker, TDT_RING_POLLS, 1024, 11);
	block = maker_block(maker, &size);
	source.address = (uintptr_t)block;
	ck_assert_int_eq(pthread_create(&writer, NULL, write_on, NULL), 0);
	for (unsigned i = 0; i < times_here(300);) {
		uint64_t n;

		ck_assert_int_eq(tdt__recording_copy(&source, &copy, &copy_size), 0);
		n = count_whole();
		whole += n;
		i += n > 0;
	}
	stop = true;
	pthread_join(writer, NULL);
	printf("# %llu events were whole\n", (unsigned long long)whole);
	end();
}
