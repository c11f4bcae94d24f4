// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The epoch: see epoch.h. */

#include <config.h>

#include "watch/epoch.h"

struct tdt__epoch tdt__epoch;

pthread_mutex_t tdt__watch_lock = PTHREAD_MUTEX_INITIALIZER;
