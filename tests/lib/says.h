/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SAYS_H
#define TESTS_SAYS_H

/* Claims on a text: the parts that it has, and those that it has not. */

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * The text, which is freed, has each of the parts.  Those that begin with ! it has not: without
 * that character.
 *
 *	SAYS(dump(), "1 task: 1 answered", "!deadlock");
 */
#define SAYS(text, ...) says_each(text, (const char *const[]){ __VA_ARGS__, NULL }, __LINE__)

static inline void says_each(char *text, const char *const *parts, int line)
{
	for (; *parts != NULL; parts++) {
		bool there = **parts != '!';
		const char *part = *parts + !there;

		ck_assert_msg((strstr(text, part) != NULL) == there, "line %d: %s \"%s\" in:\n%s",
			      line, there ? "no" : "there is", part, text);
	}
	free(text);
}

#endif
