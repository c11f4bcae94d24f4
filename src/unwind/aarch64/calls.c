// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The calls of aarch64: see unwind/code.h. */

#include "host/loaded.h"
#include "host/peek.h"
#include "unwind/code.h"

enum tdt__call tdt__code_call(uintptr_t address, uintptr_t function, uintptr_t *called)
{
	uintptr_t target;
	uint32_t code;

	*called = 0;
	if (!tdt__is_loaded(address - 1) || address % 4 != 0 ||
	    tdt__peek(&code, address - 4, sizeof code) != sizeof code)
		return TDT__CALL_NONE;
	if ((code & 0xfffffc1f) == 0xd63f0000 || (code & 0xfefff800) == 0xd63f0800)
		return TDT__CALL_INDIRECT; /* blr; blraa and its kin */
	if ((code & 0xfc000000) != 0x94000000) /* bl */
		return TDT__CALL_NONE;
	/* The offset is a signed number of 26 bits that counts words of 4 bytes. */
	target = address + (uintptr_t)((intptr_t)((uintptr_t)code << 38) >> 36) - 4;
	*called = tdt__is_loaded(target) ? tdt__code_through_plt(target) : target;
	return target == function || *called == function ? TDT__CALL_DIRECT : TDT__CALL_ANOTHER;
}
