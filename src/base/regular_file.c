// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Opening regular files only: see regular_file.h. */

#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Reading such a file may read a device, or take what another reader waits for. */
static bool is_of_the_kernel(int found)
{
	struct statfs about;

	return fstatfs(found, &about) == 0 &&
	       (about.f_type == PROC_SUPER_MAGIC || about.f_type == SYSFS_MAGIC ||
		about.f_type == DEBUGFS_MAGIC || about.f_type == TRACEFS_MAGIC);
}

/*
 * O_PATH finds a file without opening it.  The link in /proc leads to what was found, whatever the
 * path names by now.
 */
int tdt__regular_open_found(int found)
{
	struct stat status;
	char name[32];
	int file = -EINVAL;

	if (found < 0)
		return found;
	snprintf(name, sizeof name, "/proc/self/fd/%d", found);
	if (fstat(found, &status) == 0 && S_ISREG(status.st_mode) && !is_of_the_kernel(found)) {
		file = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (file < 0)
			file = -errno;
	}
	close(found);
	return file;
}

int tdt__regular_open(int at, const char *path)
{
	int found = openat(at, path, TDT__LOOK_FLAGS);

	return tdt__regular_open_found(found >= 0 ? found : -errno);
}
