// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/attr.  The strings of struct tdt_task_attr that do not end with a NUL, and the
 * default name.
 */

#include "lib/test.h"

static tdt_poll_t never(void *state, struct tdt_context *cx)
{
	return TDT_PANICKED;
}

static const struct tdt_future leaf = { NULL, never, drop_nothing };

static struct tdt_traced traced_with(const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = tdt_traced_with(leaf, attr);

	ck_assert_ptr_nonnull(traced.handle);
	return traced;
}

/* Copies of the strings of one task; the file's address, which stays. */
struct seen {
	char name[TDT_TASK_NAME_MAX + 1];
	const char *file;
};

static int see(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
{
	struct seen *seen = arg;

	strcpy(seen->name, info->name != NULL ? info->name : "");
	seen->file = info->file;
	return 0;
}

static struct seen seen_with(const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = traced_with(attr);
	struct seen seen;

	ck_assert_int_eq(tdt_task_inspect(traced.handle, see, &seen), 0);
	end_traced(&traced);
	return seen;
}

static void expect_name(const struct tdt_task_attr *attr, const char *name)
{
	struct seen seen = seen_with(attr);

	ck_assert_str_eq(seen.name, name);
}

CASE(names)

TEST(a_name_with_a_length_ends_there_or_at_a_nul)
{
	char many[200];

	memset(many, 'x', sizeof(many));
	expect_name(TDT_TASK_ATTR(.name = "connection 7", .name_length = 10), "connection");
	expect_name(TDT_TASK_ATTR(.name = "cat\0fish", .name_length = 8), "cat");
	expect_name(TDT_TASK_ATTR(.name = many, .name_length = sizeof(many)),
		    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

TEST(a_default_name_is_for_tasks_without_a_name)
{
	expect_name(TDT_TASK_ATTR(.default_name = "serve"), "serve");
	expect_name(TDT_TASK_ATTR(.default_name = "serve", .name = ""), "serve");
	expect_name(TDT_TASK_ATTR(.default_name = "serve", .name = "c1"), "c1");
	expect_name(TDT_TASK_ATTR(.default_name = "serve it", .default_name_length = 5), "serve");
	expect_name(TDT_TASK_ATTR(.default_name = ""), "");
	expect_name(TDT_TASK_ATTR(.default_name = NULL, .default_name_length = 5), "");
}

#define SIXTY "a23456789_b23456789_c23456789_d23456789_e23456789_f23456789_"

TEST(the_end_of_a_long_default_name_is_kept_from_a_word_on)
{
	static const char *const names[][2] = {
		{ SIXTY "123", SIXTY "123" },
		{ "shop::" SIXTY, SIXTY },
		{ "shop::front::desk::clerk::orders::ship_to_the_customer::{{closure}}",
		  "front::desk::clerk::orders::ship_to_the_customer::{{closure}}" },
		{ "one two three four five six seven eight nine ten eleven twelve thirteen",
		  "three four five six seven eight nine ten eleven twelve thirteen" },
		{ "a_module::{impl#0}::{impl#1}::{impl#2}::{impl#3}::{impl#4}::{closure}",
		  "{impl#0}::{impl#1}::{impl#2}::{impl#3}::{impl#4}::{closure}" },
		{ "x" SIXTY "1234", &(SIXTY "1234")[1] },
		/* If only a short word were left, the name is cut anywhere. */
		{ SIXTY "12345::{}", &(SIXTY "12345::{}")[6] },
		/* Not in the middle of a character. */
		{ "\xf0\x9f\x8c\x8d" SIXTY, SIXTY },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		expect_name(TDT_TASK_ATTR(.default_name = names[i][0]), names[i][1]);
		expect_name(TDT_TASK_ATTR(.default_name = names[i][0],
					  .default_name_length = strlen(names[i][0])),
			    names[i][1]);
	}
}

TEST(bytes_that_are_no_text_give_an_empty_or_a_short_name)
{
	char bytes[100];

	memset(bytes, '\xbf', sizeof(bytes));
	expect_name(TDT_TASK_ATTR(.default_name = bytes, .default_name_length = sizeof(bytes)), "");
	memset(bytes, '\0', sizeof(bytes));
	expect_name(TDT_TASK_ATTR(.default_name = bytes, .default_name_length = sizeof(bytes)), "");
}

/* TDT_TASK_ATTR() sets the file itself. */
#define ATTR(...) (&(struct tdt_task_attr){ .size = sizeof(struct tdt_task_attr), __VA_ARGS__ })

CASE(files)

TEST(a_file_without_a_length_is_not_copied)
{
	static const char file[] = "shop.c";

	ck_assert_ptr_eq(seen_with(ATTR(.file = file)).file, file);
}

TEST(a_file_with_a_length_is_copied_once)
{
	char first[] = "src/shop.rsXXX", second[] = "src/shop.rs";
	const char *file = seen_with(ATTR(.file = first, .file_length = 11)).file;

	memset(first, 'y', 11);
	ck_assert_str_eq(file, "src/shop.rs");
	ck_assert_ptr_eq(seen_with(ATTR(.file = second, .file_length = 11)).file, file);
	ck_assert_str_eq(seen_with(ATTR(.file = second, .file_length = 10)).file, "src/shop.r");
	ck_assert_str_eq(seen_with(ATTR(.file = "a\0b", .file_length = 3)).file, "a");
	ck_assert_ptr_null(seen_with(ATTR(.file = NULL, .file_length = 3)).file);
}

/* More files than there are buckets, of one length and with the same end. */
TEST(many_files_stay_apart)
{
	enum { MANY = 500 };
	const char *files[MANY];
	char file[40];

	for (int turn = 0; turn < 2; turn++)
		for (int i = 0; i < MANY; i++) {
			int length = sprintf(file, "crate-%03d/src/some/module/lib.rs", i);
			struct seen seen =
			    seen_with(ATTR(.file = file, .file_length = (size_t)length));

			ck_assert_str_eq(seen.file, file);
			ck_assert(turn == 0 || seen.file == files[i]);
			files[i] = seen.file;
		}
}

#define THREADS 4
#define FILES 200

static pthread_barrier_t barrier;

static void *name_files(void *arg)
{
	const char **files = arg;
	char file[20];

	for (int i = 0; i < FILES; i++) {
		size_t length = (size_t)sprintf(file, "race-%d.rs", i);

		pthread_barrier_wait(&barrier);
		files[i] = seen_with(ATTR(.file = file, .file_length = length)).file;
	}
	return NULL;
}

TEST(threads_that_name_the_same_file_share_one_copy)
{
	static const char *files[THREADS][FILES];
	pthread_t threads[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, name_files, files[i]), 0);
	threads_join(threads, THREADS);
	pthread_barrier_destroy(&barrier);
	for (int i = 1; i < THREADS; i++)
		for (int j = 0; j < FILES; j++)
			ck_assert_ptr_eq(files[i][j], files[0][j]);
}

TEST(without_memory_for_a_file_the_future_stays_untraced)
{
	struct tdt_traced traced;
	struct tdt_traced first = traced_with(NULL); /* memory for all that is needed once */
	int error;

	if (!no_memory_possible()) {
		end_traced(&first);
		return;
	}
	no_memory_begin(0);
	traced = tdt_traced_with(leaf, ATTR(.file = "new.rs", .file_length = 6));
	error = errno;
	no_memory_end();
	ck_assert_ptr_null(traced.handle);
	ck_assert_int_eq(error, ENOMEM);
	ck_assert(traced.future.poll == never);
	end_traced(&traced);
	end_traced(&first);
}
