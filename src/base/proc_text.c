// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading what the kernel says in a file. */

#include "base/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ssize_t tdt__proc_text(int directory, const char *name, char *text, size_t size)
{
	int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n;

	text[0] = '\0';
	if (file < 0)
		return -errno;
	do {
		n = read(file, text + length, size - 1 - length);
		if (n > 0)
			length += (size_t)n;
	} while ((n > 0 && length < size - 1) || (n < 0 && errno == EINTR));
	n = n < 0 ? -errno : (ssize_t)length;
	close(file);
	text[length] = '\0';
	return n;
}
