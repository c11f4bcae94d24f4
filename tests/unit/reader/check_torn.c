// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/records, reader/history.  What is read of a record or a panic that is given to
 * another task while it is read.  The target is this process.  process_vm_readv() is defined here,
 * and copies the record word by word, so that the record changes between any two words.
 */

#include <sys/syscall.h>
#include <sys/uio.h>

#include <tdt/layout/registry.h>

#include "lib/refused.h"
#include "lib/test.h"
#include "reader/history.h"
#include "reader/records.h"

#define RECORD_WORDS (sizeof(struct tdt_task_record) / sizeof(uint64_t))
#define PANIC_WORDS (sizeof(struct tdt_registry_panic) / sizeof(uint64_t))

static union {
	struct tdt_task_record record;
	struct tdt_registry_panic panic;
	uint64_t word[1024];
} memory;

/* What happens to the memory before each word of it that is copied; NULL: nothing. */
static void (*happens)(void);
static bool is_backwards; /* each range is copied from its last word to its first one */

static void copy_words(uint64_t *to, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = is_backwards ? n - 1 - i : i;

		happens();
		to[at] = from[at];
	}
}

static void copy_local(char *to, const char *from, size_t size)
{
	if (size % sizeof(uint64_t) == 0) {
		copy_words((uint64_t *)(void *)to, (const uint64_t *)(const void *)from,
			   size / sizeof(uint64_t));
		return;
	}
	happens();
	memcpy(to, from, size);
}

static bool is_ours(const struct iovec *range)
{
	return (uintptr_t)range->iov_base - (uintptr_t)&memory < sizeof memory;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to,
			 const struct iovec *from, unsigned long n_from, unsigned long flags)
{
	ssize_t size = 0;

	if (happens == NULL || n_to != n_from || !is_ours(from))
		return syscall(SYS_process_vm_readv, pid, to, n_to, from, n_from, flags);
	for (unsigned long i = 0; i < n_from; i++) {
		ck_assert(is_ours(&from[i]));
		copy_local(to[i].iov_base, from[i].iov_base, from[i].iov_len);
		size += (ssize_t)from[i].iov_len;
	}
	return size;
}

static struct tdt__target target;
static struct tdt__images images;

static void open_target(void)
{
	const struct tdt__places places = { 0 };
	struct tdt__trouble trouble;

	ck_assert_int_eq(tdt__target_open_process(&target, getpid(), &trouble), 0);
	ck_assert_int_eq(tdt__images_init(&images, &target, &places), 0);
}

static void close_target(void)
{
	tdt__images_fini(&images);
	tdt__target_close(&target);
}

/* So many words are copied while `seq` is odd, and of how many words a turn consists. */
#define WORDS_ODD 3
static unsigned n_words, words_a_turn;

enum event { NONE, BEGINS, ENDS };

/* Whether another task begins to take the memory over, or has done so. */
static enum event next_event(void)
{
	unsigned at = n_words++ % words_a_turn;

	return at == 0 ? BEGINS : at == WORDS_ODD ? ENDS : NONE;
}

/* --- Records ------------------------------------------------------------------------ */

static void be_task(uint64_t n)
{
	memory.record.id = n;
	memory.record.line = (uint32_t)n;
	memory.record.column = (uint32_t)n;
	memory.record.parent = n;
	memory.record.spawned = n;
	memory.record.child_state = n;
	memory.record.poll = n;
	memory.record.leaf = n;
	memory.record.joiners = n;
	memory.record.state = TDT_TASK_RECORD_IDLE;
	memory.record.seq++;
}

/* The record is given to other tasks, one after the other; and each is polled all the time. */
static void pass_on(void)
{
	enum event event = next_event();

	memory.record.polls++;
	if (event == BEGINS)
		memory.record.seq++;
	if (event == ENDS)
		be_task(n_words);
}

static void assert_one_task(const struct tdt_task_record *record)
{
	ck_assert_uint_eq(record->seq % 2, 0);
	ck_assert_uint_eq(record->line, record->id);
	ck_assert_uint_eq(record->column, record->id);
	ck_assert_uint_eq(record->parent, record->id);
	ck_assert_uint_eq(record->spawned, record->id);
	ck_assert_uint_eq(record->child_state, record->id);
	ck_assert_uint_eq(record->poll, record->id);
	ck_assert_uint_eq(record->leaf, record->id);
	ck_assert_uint_eq(record->joiners, record->id);
}

/* Read the record while it is passed on every few words.  Returns whether it was read. */
static size_t read_record(unsigned words, bool backwards)
{
	struct tdt_registry_slab slab = { .records = (uintptr_t)&memory.record,
					  .used = 1,
					  .room = 1 };
	struct tdt_registry registry = { .slabs = (uintptr_t)&slab,
					 .stride = sizeof memory.record };
	struct tdt__records records;
	size_t n;

	memset(&memory, 0, sizeof memory);
	be_task(1);
	memory.record.seq = 2;
	n_words = WORDS_ODD + 1;
	words_a_turn = words;
	is_backwards = backwards;
	happens = pass_on;
	ck_assert_int_eq(tdt__records_read(&records, &target, &registry), 0);
	happens = NULL;
	n = records.n;
	for (size_t i = 0; i < n; i++) {
		ck_assert(!records.seen[i].still);
		assert_one_task(&records.seen[i].record);
	}
	tdt__records_fini(&records);
	return n;
}

CASE(torn, .setup = open_target, .teardown = close_target)

TEST(a_record_that_is_passed_on_while_it_is_read_is_of_one_task, .to = 2)
{
	size_t read = 0;

	for (unsigned words = WORDS_ODD + 1; words <= 8 * RECORD_WORDS; words++)
		read += read_record(words, _i != 0);
	ck_assert_uint_ge(read, 4 * RECORD_WORDS); /* those with enough time */
}

/* --- Panics ------------------------------------------------------------------------- */

static void be_panic(uint64_t n)
{
	memory.panic.number = n;
	memory.panic.id = n;
	memory.panic.line = (uint32_t)n;
	memory.panic.polls = n;
	memory.panic.name[0] = (char)('a' + n % 26);
	memory.panic.seq++;
}

static void panic_again(void)
{
	enum event event = next_event();

	if (event == BEGINS)
		memory.panic.seq++;
	if (event == ENDS)
		be_panic(n_words);
}

/* Read the panic while other tasks panic every few words.  Returns whether it was read. */
static size_t read_panic(unsigned words, bool backwards)
{
	const struct tdt__tasks tasks = { .registry = { .panics = (uintptr_t)&memory.panic,
							.n_panics = 1,
							.panic_size = sizeof memory.panic },
					  .target = &target,
					  .images = &images };
	struct tdt__tree_reader reader = { .tasks = &tasks, .unloads_known = true };
	struct tdt__findings *findings = tdt__findings_new();
	size_t n;

	ck_assert_ptr_nonnull(findings);
	memset(&memory, 0, sizeof memory);
	memory.panic.seq = 1;
	be_panic(1);
	n_words = WORDS_ODD + 1;
	words_a_turn = words;
	is_backwards = backwards;
	happens = panic_again;
	tdt__history_panics(&reader, findings);
	happens = NULL;
	n = findings->public.n_panics;
	for (size_t i = 0; i < n; i++) {
		const struct tdt_task_info *info = findings->public.panics[i]->tasks[0];

		ck_assert_uint_eq(info->line, info->id);
		ck_assert_uint_eq(info->polls, info->id);
		ck_assert_int_eq(info->name[0], (char)('a' + info->id % 26));
	}
	tdt__findings_free(findings);
	tdt__tree_reader_fini(&reader);
	return n;
}

TEST(a_panic_that_is_overwritten_while_it_is_read_is_of_one_task, .to = 2)
{
	size_t read = 0;

	for (unsigned words = WORDS_ODD + 1; words <= 8 * PANIC_WORDS; words++)
		read += read_panic(words, _i != 0);
	ck_assert_uint_ge(read, 4 * PANIC_WORDS);
}

SUITE_SKIP(reading_refused())
