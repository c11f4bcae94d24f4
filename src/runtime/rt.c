// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include <tdt/runtime.h>

#include "current.h"

__thread __attribute__((tls_model("initial-exec"))) struct tdt__current tdt__current;

struct tdt_rt *tdt_rt_current(void)
{
	return tdt__current.rt;
}
