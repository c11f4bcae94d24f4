/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Damaged DWARF: 64 functions of C++, each declared in the one before, with a name so long that no
 * two of them fit into one name.  What is put together of such names is not kept, and is put together
 * again for each function around each function, eight levels deep.
 */

	.text
	.globl main
main:
	.fill 64, 1, 0
main_end:

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11			/* a unit, with children: */
	.byte 1
	.uleb128 0x13, 0x0b			/* language, 1 byte */
	.uleb128 0x11, 0x01			/* low_pc, an address */
	.uleb128 0x12, 0x06			/* high_pc, 4 bytes */
	.uleb128 0, 0
	.uleb128 2, 0x2e			/* a function, with children: */
	.byte 1
	.uleb128 0x03, 0x0e			/* name, in .debug_str */
	.uleb128 0, 0
	.uleb128 3, 0x2e			/* a function that has code: */
	.byte 0
	.uleb128 0x03, 0x0e			/* name, in .debug_str */
	.uleb128 0x11, 0x01			/* low_pc, an address */
	.uleb128 0x12, 0x06			/* high_pc, 4 bytes */
	.uleb128 0, 0
	.uleb128 0

	.section .debug_str, "", %progbits
	.fill 1000, 1, 0x61
	.byte 0

	.section .debug_info, "", %progbits
unit:
	.4byte unit_end - unit_version
unit_version:
	.2byte 4
	.4byte 0				/* the abbreviations */
	.byte 8					/* bytes an address */
	.uleb128 1
	.byte 4					/* C++ */
	.8byte main
	.4byte main_end - main
	.rept 64
	.uleb128 2
	.4byte 0
	.endr
	.uleb128 3
	.4byte 0
	.8byte main
	.4byte main_end - main
	.fill 65, 1, 0				/* the ends of all lists of children */
unit_end:
