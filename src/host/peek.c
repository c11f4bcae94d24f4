// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading memory that may not be there. */

#include "host/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * The same as tdt__peek() by a file, for systems that refuse process_vm_readv(), with whatever
 * error (some containers do).  The system calls are made directly, since the C library's functions
 * are cancellation points: a thread that is cancelled there would never release a lock that its
 * caller holds.
 */
static ssize_t read_file(void *to, uintptr_t address, size_t size)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (file < 0)
		return -1;
	n = syscall(SYS_pread64, file, to, size, (off_t)address);
	syscall(SYS_close, file);
	return n;
}

size_t tdt__peek(void *to, uintptr_t address, size_t size)
{
	struct iovec into = { to, size }, from = { (void *)address, size };
	int saved = errno; /* the caller's call may succeed all the same */
	ssize_t n = syscall(SYS_process_vm_readv, getpid(), &into, 1, &from, 1, 0);

	if (n < 0 && errno != EFAULT)
		n = read_file(to, address, size);
	errno = saved;
	return n > 0 ? (size_t)n : 0;
}
