/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * void tdt__switch_stacks(void **from, void *to): leave this stack and store its stack pointer in
 * `*from`; go on at the stack pointer `to`.  What lies on a stack that was left is struct tdt__left
 * (left.h).
 *
 * This function does not switch shadow stacks.  (The C library's contexts do; but nothing unmaps
 * the shadow stack that makecontext() maps for each context.)  So this object is marked for
 * indirect branch tracking, but not for shadow stacks.  A library or program is marked if all its
 * objects are marked, and a process has shadow stacks if all its modules are marked.  The code is
 * in a file of its own because the compiler would mark an object that it compiles by its flags.
 */

.text
.p2align 4
.hidden tdt__switch_stacks
.globl tdt__switch_stacks
.type tdt__switch_stacks, @function
tdt__switch_stacks:
	.cfi_startproc
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq %r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq %r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq %r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq %r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr (%rsp)
	fnstcw 4(%rsp)
	movq %rsp, (%rdi)
	movq %rsi, %rsp /* the stack left there has the same layout */
	ldmxcsr (%rsp)
	fldcw 4(%rsp)
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	popq %r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	popq %r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	popq %r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r13
	popq %r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	popq %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
.size tdt__switch_stacks, . - tdt__switch_stacks

	.section .note.gnu.property, "a", @note
	.p2align 3
	.long 4, 16, 5		  /* sizes of name and contents, NT_GNU_PROPERTY_TYPE_0 */
	.asciz "GNU"
	.long 0xc0000002, 4, 1, 0 /* GNU_PROPERTY_X86_FEATURE_1_AND, its size, IBT, and padding */

	.section .note.GNU-stack, "", @progbits
