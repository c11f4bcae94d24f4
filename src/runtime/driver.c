// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "driver.h"

int tdt__driver_new(struct tdt__driver **driver)
{
	*driver = 0;
	return 0;
}

void tdt__driver_stop(struct tdt__driver *driver)
{
	(void)driver;
}

struct tdt__driver *tdt__driver_ref(struct tdt__driver *driver)
{
	return driver;
}

void tdt__driver_unref(struct tdt__driver *driver)
{
	(void)driver;
}
