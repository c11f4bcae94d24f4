// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Which version this library is. */

#include <config.h>

#include <tdt/version.h>

const char *tdt_version(void)
{
	return PACKAGE_VERSION;
}

uint32_t tdt_version_number(void)
{
	return TDT_VERSION;
}
