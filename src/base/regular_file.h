/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Opening a file for reading whose name is not to be trusted: it comes from a target, a core file,
 * a recording or a debug file, or the file lies in a directory of somebody else.  Opening a device
 * or a FIFO may do something (rewind a tape, start a watchdog, wake a writer), and so may reading
 * the kernel's own files (/proc/kmsg, trace_pipe, the registers of a device in /sys).  So nothing
 * but a regular file of another file system is opened.  tests/project/opens.sh fails on any other
 * way to open a file in the sources that read targets.
 */

/*
 * Open `path`, which is relative to the directory `at` or to AT_FDCWD.  Returns a descriptor or a
 * negative errno; -EINVAL: it is not such a file.  Without /proc no file can be opened.
 */
int tdt__regular_open(int at, const char *path);

/*
 * Open what was found with TDT__LOOK_FLAGS, and close `found`.  A negative `found` is returned.
 * Otherwise as above.
 */
int tdt__regular_open_found(int found);

#define TDT__LOOK_FLAGS (O_PATH | O_CLOEXEC)
