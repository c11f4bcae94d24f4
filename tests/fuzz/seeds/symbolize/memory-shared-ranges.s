/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Damaged DWARF: 6,000 functions that all have one list of 6,000 ranges.  A table of all ranges of
 * all functions, of 32 bytes each, takes more than a gigabyte, for a file of 140 KB.
 */

	.text
	.globl main
main:
	.fill 6001, 1, 0
main_end:

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11			/* a unit, with children: */
	.byte 1
	.uleb128 0x11, 0x01			/* low_pc, an address */
	.uleb128 0x12, 0x06			/* high_pc, 4 bytes */
	.uleb128 0, 0
	.uleb128 2, 0x2e			/* a function: */
	.byte 0
	.uleb128 0x55, 0x17			/* ranges, in .debug_ranges */
	.uleb128 0, 0
	.uleb128 0

	.section .debug_ranges, "", %progbits
	.set at, 0
	.rept 6000
	.8byte at, at + 1
	.set at, at + 1
	.endr
	.8byte 0, 0

	.section .debug_info, "", %progbits
unit:
	.4byte unit_end - unit_version
unit_version:
	.2byte 4
	.4byte 0				/* the abbreviations */
	.byte 8					/* bytes an address */
	.uleb128 1
	.8byte main
	.4byte main_end - main
	.rept 6000
	.uleb128 2
	.4byte 0
	.endr
	.byte 0
unit_end:
