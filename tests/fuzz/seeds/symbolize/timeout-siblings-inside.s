/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Damaged DWARF: 48 nested blocks, of which each says that its next sibling is its own first child.
 * A walk that enters children and goes on to siblings comes to the innermost block 2^47 times.
 */

	.text
	.globl main
main:
	.fill 64, 1, 0
main_end:

	.section .debug_abbrev, "", %progbits
	.uleb128 1, 0x11			/* a unit, with children: */
	.byte 1
	.uleb128 0x11, 0x01			/* low_pc, an address */
	.uleb128 0x12, 0x06			/* high_pc, 4 bytes */
	.uleb128 0, 0
	.uleb128 2, 0x0b			/* a block, with children: */
	.byte 1
	.uleb128 0x01, 0x13			/* sibling, a reference of 4 bytes */
	.uleb128 0, 0
	.uleb128 0

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
	.rept 48
	.uleb128 2
	.4byte 1f - unit
1:
	.endr
	.fill 49, 1, 0				/* the ends of all lists of children */
unit_end:
