// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers host/peek.  Reading memory that may not be there, also where the kernel refuses
 * process_vm_readv().
 */

#include "host/peek.h"
#include "lib/refuse_call.h"
#include "lib/test.h"

/* A page that can be read, and behind it one that can't. */
static char *last_page(size_t *size)
{
	char *pages;

	*size = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, 2 * *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(pages != MAP_FAILED && munmap(pages + *size, *size) == 0);
	memset(pages, 'x', *size);
	return pages;
}

static void expect_copies(void)
{
	char here[] = "some words", copy[64] = "", *page;
	size_t size;

	ck_assert_uint_eq(tdt__peek(copy, (uintptr_t)here, sizeof here), sizeof here);
	ck_assert_str_eq(copy, here);

	page = last_page(&size);
	ck_assert_uint_eq(tdt__peek(copy, (uintptr_t)(page + size - 5), 60), 5);
	ck_assert_int_eq(memcmp(copy, "xxxxx", 5), 0);
	ck_assert_str_eq(copy + 5, here + 5);
	ck_assert_uint_eq(tdt__peek(copy, (uintptr_t)(page + size), 1), 0);
	munmap(page, size);

	ck_assert_uint_eq(tdt__peek(copy, 0, 8), 0);
	ck_assert_uint_eq(tdt__peek(copy, UINTPTR_MAX - 7, 8), 0);
}

CASE(peek)

TEST(memory_is_copied_up_to_the_first_byte_that_cannot_be_read)
{
	expect_copies();
}

TEST(where_the_call_is_refused_or_missing_a_file_is_read_instead, .to = 2)
{
	if (refuse_call(SYS_process_vm_readv, _i == 0 ? EPERM : ENOSYS))
		expect_copies();
}

TEST(where_no_file_can_be_opened_either_nothing_is_copied)
{
	char here[] = "some words", copy[64] = "";
	struct rlimit files, none;
	size_t got;

	if (!refuse_call(SYS_process_vm_readv, EPERM))
		return;
	MUST(getrlimit(RLIMIT_NOFILE, &files) == 0);
	none = (struct rlimit){ 0, files.rlim_max };
	MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
	got = tdt__peek(copy, (uintptr_t)here, sizeof here);
	MUST(setrlimit(RLIMIT_NOFILE, &files) == 0);
	ck_assert_uint_eq(got, 0);
	ck_assert_str_eq(copy, "");
}

/* That is what the call says of memory which is not there: a file would say it, too. */
TEST(a_bad_address_is_final)
{
	char here[] = "some words", copy[64] = "";

	if (refuse_call(SYS_process_vm_readv, EFAULT))
		ck_assert_uint_eq(tdt__peek(copy, (uintptr_t)here, sizeof here), 0);
}
