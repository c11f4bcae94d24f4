// SPDX-License-Identifier: Apache-2.0 OR MIT
/* There is no GNU Pth. */

#include <config.h>

#include "pth.h"

const bool have_pth = false;

int64_t pth_spawns(int n)
{
	(void)n;
	return 0;
}

int64_t pth_turns(int n)
{
	(void)n;
	return 0;
}
