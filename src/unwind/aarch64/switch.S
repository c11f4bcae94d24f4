/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * void tdt__switch_stacks(void **from, void *to): leave this stack and store its stack pointer in
 * `*from`; go on at the stack pointer `to`.  What lies on a stack that was left is struct tdt__left
 * (left.h).  Behind the switch `ret` goes to an address that was stored here, or to a function's
 * begin; branch target identification has no objection to either.  The guarded control stack is not
 * switched, so this object is not marked for it.
 */

.text
.p2align 4
.hidden tdt__switch_stacks
.globl tdt__switch_stacks
.type tdt__switch_stacks, @function
tdt__switch_stacks:
	.cfi_startproc
	hint #34 /* bti c */
	stp x29, x30, [sp, #-176]!
	.cfi_def_cfa_offset 176
	.cfi_offset x29, -176
	.cfi_offset x30, -168
	stp x19, x20, [sp, #16]
	.cfi_offset x19, -160
	.cfi_offset x20, -152
	stp x21, x22, [sp, #32]
	.cfi_offset x21, -144
	.cfi_offset x22, -136
	stp x23, x24, [sp, #48]
	.cfi_offset x23, -128
	.cfi_offset x24, -120
	stp x25, x26, [sp, #64]
	.cfi_offset x25, -112
	.cfi_offset x26, -104
	stp x27, x28, [sp, #80]
	.cfi_offset x27, -96
	.cfi_offset x28, -88
	stp d8, d9, [sp, #96]
	stp d10, d11, [sp, #112]
	stp d12, d13, [sp, #128]
	stp d14, d15, [sp, #144]
	mrs x2, fpcr
	stp x2, x30, [sp, #160]
	mov x3, sp
	str x3, [x0]
	mov sp, x1 /* the stack left there has the same layout */
	ldp x3, x4, [sp, #160]
	cmp x3, x2 /* to write the modes takes long */
	b.eq 1f
	msr fpcr, x3
1:	ldp d14, d15, [sp, #144]
	ldp d12, d13, [sp, #128]
	ldp d10, d11, [sp, #112]
	ldp d8, d9, [sp, #96]
	ldp x27, x28, [sp, #80]
	ldp x25, x26, [sp, #64]
	ldp x23, x24, [sp, #48]
	ldp x21, x22, [sp, #32]
	ldp x19, x20, [sp, #16]
	ldp x29, x30, [sp], #176
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	.cfi_restore x19
	.cfi_restore x20
	.cfi_restore x21
	.cfi_restore x22
	.cfi_restore x23
	.cfi_restore x24
	.cfi_restore x25
	.cfi_restore x26
	.cfi_restore x27
	.cfi_restore x28
	ret x4
	.cfi_endproc
.size tdt__switch_stacks, . - tdt__switch_stacks

	.section .note.gnu.property, "a", @note
	.p2align 3
	.long 4, 16, 5		  /* sizes of name and contents, NT_GNU_PROPERTY_TYPE_0 */
	.asciz "GNU"
	.long 0xc0000000, 4, 1, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND, its size, BTI, padding */

	.section .note.GNU-stack, "", @progbits
