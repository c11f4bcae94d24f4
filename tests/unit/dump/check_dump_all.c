// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers dump/dump_all.  A dump of the tasks of this process, from the request to the text. */

#include "lib/printed.h"
#include "lib/says.h"
#include "lib/test.h"

#define DUMP(...)                                                                                  \
	(&(struct tdt_dump_options){ .size = sizeof(struct tdt_dump_options), __VA_ARGS__ })

static tdt_poll_t waiting_poll(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static char *dump(const struct tdt_dump_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	errno = EDOM;
	ck_assert_int_eq(options != NULL ? tdt_dump_with(file, options) : tdt_dump(file), 0);
	ck_assert_int_eq(errno, EDOM); /* success leaves it alone */
	fclose(file);
	return text;
}

CASE(all)

TEST(a_dump_has_the_tasks_that_live_and_no_others)
{
	struct tdt_traced traced;
	char *text = dump(NULL);

	ck_assert_int_eq(strncmp(text, "no tasks", 8), 0);
	free(text);
	traced = tdt_traced_with((struct tdt_future){ &traced, waiting_poll, drop_nothing },
				 TDT_TASK_ATTR(.name = "here", .id = 77));
	text = dump(DUMP(.timeout_ns = 1000000)); /* nobody polls it */
	ck_assert_int_eq(strncmp(text, "1 task: 1 without a tree", 24), 0);
	ck_assert_ptr_nonnull(strstr(text, "\ntask 77 \"here\" pending"));
	ck_assert_ptr_nonnull(strstr(text, ", did not answer, spawned at "));
	free(text);
	SAYS(dump(DUMP(.timeout_ns = 1000000, .print = OPTIONS(JSON))),
	     "\"groups\":[{\"answer\":\"none\",\"tasks\":[{\"id\":77,\"name\":\"here\"");
	text = dump(DUMP(.timeout_ns = 1000000,
			 .filter = &(struct tdt_task_filter){
			     .size = sizeof(struct tdt_task_filter), .name = "there" }));
	ck_assert_int_eq(strncmp(text, "no tasks", 8), 0);
	free(text);
	end_traced(&traced);
}

TEST(wrong_options_are_told_before_anybody_is_asked)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	ck_assert_int_eq(tdt_dump_with(NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_dump(NULL), -EINVAL);
	ck_assert_int_eq(tdt_dump_with(file, &(struct tdt_dump_options){ 0 }), -EINVAL);
	ck_assert_int_eq(
	    tdt_dump_with(file, DUMP(.print = OPTIONS(.format = (enum tdt_print_format)3))),
	    -EINVAL);
	ck_assert_fails(tdt_dump_with(file, DUMP(.timeout_ns = -1)), EINVAL);
	fclose(file);
	ck_assert_str_eq(text, "");
	free(text);
}
