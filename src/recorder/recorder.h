/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Starting and stopping the recorder: <tdt/recorder.h>. */

#include <pthread.h>

#include <tdt/recorder.h>

/*
 * Protects the state of recorder.c and service.c, and the rings of the service.  Held across fork
 * (fork.c).
 */
extern pthread_mutex_t tdt__recorder_lock;

/* Start the recorder if the environment requests it. */
void tdt__recorder_by_environment(void);

/*
 * Readers outside want the recorder to run.  If it runs for the program, it goes on as it is.  If
 * `options->ring_size` is 0, the rings are those of the last recording, if there was one.
 * `*by_program` says whether the program wants it, too.  Returns 0, or a negative errno:
 * -EBUSY (another thread is starting it), -EINVAL, -ENOMEM, -EAGAIN.
 */
int tdt__recorder_outside_start(const struct tdt_recorder_options *options, bool *by_program);

/* Readers do not want it any more. */
void tdt__recorder_outside_stop(bool *by_program);

/*
 * Have the recorder's thread, with all that it takes of the process for ever.  Returns 0 or a
 * negative errno.  What a recording takes besides is given back.
 */
int tdt__recorder_need_thread(void);

/* In a child of fork, under tdt__recorder_lock: go on in a block of its own. */
void tdt__recorder_forked(void);

/* In a child of fork that traces futures, too: start the thread, and keep a file if necessary. */
void tdt__recorder_resume(void);

/* The number of bytes that `text` means, such as 16M; -1: it is not understood. */
int64_t tdt__recorder_parse_size(const char *text);

/* Read a value of TDT_RECORD_STACKS.  False: it is not understood. */
bool tdt__recorder_parse_stacks(const char *text, struct tdt_recorder_options *options);
