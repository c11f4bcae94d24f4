// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include <tdt/sync.h>
