// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers base/version.  The version of the headers and that of the library, as text and number. */

#include "lib/test.h"

CASE(version)

TEST(text_and_number_are_one_version)
{
	char text[32];

	snprintf(text, sizeof text, "%d.%d.%d", TDT_VERSION_MAJOR, TDT_VERSION_MINOR,
		 TDT_VERSION_PATCH);
	ck_assert_str_eq(TDT_VERSION_TEXT, text);
	ck_assert_str_eq(tdt_version(), text);
	ck_assert_uint_eq(tdt_version_number(), TDT_VERSION);
}

TEST(later_versions_have_larger_numbers)
{
	ck_assert_uint_lt(TDT_VERSION_OF(0, 1, 255), TDT_VERSION_OF(0, 2, 0));
	ck_assert_uint_lt(TDT_VERSION_OF(0, 255, 255), TDT_VERSION_OF(1, 0, 0));
}
