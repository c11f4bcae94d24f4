/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_UV_ECHO_H
#define BENCH_UV_ECHO_H

/* The baseline: an echo server on bare libuv, one loop on one thread, in a process of its own. */

#include <stdint.h>
#include <sys/types.h>

/* Starts it, on `cpu` unless that is negative; on a port that is free. */
pid_t uv_echo_start(int cpu, uint16_t *port);
void uv_echo_stop(pid_t pid);

/* The CPU time it has used, ns. */
int64_t uv_echo_used(pid_t pid);

#endif
