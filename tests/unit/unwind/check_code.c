// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers unwind/code, unwind/instruction.  How machine code is read.  The assembler puts the
 * instructions into this program's own code.
 */

#include "lib/test.h"
#include "unwind/code.h"

/* `name` is the address of `code` in this program. */
#define CODE(name, code)                                                                           \
	__asm__(".pushsection .text\n" #name ":\n\t" code "\n\t.skip 16, 0x90\n\t.popsection");

static uintptr_t address_of(const unsigned char *label)
{
	return (uintptr_t)label;
}

extern const unsigned char the_function[] __attribute__((visibility("hidden")));
CODE(the_function, "ret")
CODE(another_function, "ret")
CODE(plt_plain, "jmp *the_pointer(%rip)")
CODE(plt_marked, "endbr64\n\tjmp *the_pointer(%rip)")
CODE(plt_marked_and_bound, "endbr64\n\t.byte 0xf2\n\tjmp *the_pointer(%rip)") /* bnd jmp */
CODE(plt_of_another, "jmp *other_pointer(%rip)")
__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\n"
	"the_pointer: .quad the_function\n"
	"other_pointer: .quad another_function\n"
	".popsection");

#define CALLS(CALL)                                                                                \
	CALL(DIRECT, "call the_function")                                                          \
	CALL(DIRECT, "call plt_plain")                                                             \
	CALL(DIRECT, "call plt_marked")                                                            \
	CALL(DIRECT, "call plt_marked_and_bound")                                                  \
	CALL(ANOTHER, "call plt_of_another")                                                       \
	CALL(ANOTHER, "call another_function")                                                     \
	CALL(DIRECT, "call *the_pointer(%rip)")                                                    \
	CALL(INDIRECT, "call *other_pointer(%rip)")                                                \
	CALL(INDIRECT, "call *%rax")                                                               \
	CALL(INDIRECT, "call *%rdi")                                                               \
	CALL(INDIRECT, "call *%r8")                                                                \
	CALL(INDIRECT, "call *%r15")                                                               \
	CALL(INDIRECT, "call *(%rax)")                                                             \
	CALL(INDIRECT, "call *(%r11)")                                                             \
	CALL(INDIRECT, "call *(%rsp)")                                                             \
	CALL(INDIRECT, "call *(%r12)")                                                             \
	CALL(INDIRECT, "call *(%rbp)")                                                             \
	CALL(INDIRECT, "call *8(%rax)")                                                            \
	CALL(INDIRECT, "call *-8(%r13)")                                                           \
	CALL(INDIRECT, "call *(%rax,%rbx,8)")                                                      \
	CALL(INDIRECT, "call *8(%rsp)")                                                            \
	CALL(INDIRECT, "call *8(%rax,%rbx,4)")                                                     \
	CALL(INDIRECT, "call *1000(%rax)")                                                         \
	CALL(INDIRECT, "call *1000(%r14)")                                                         \
	CALL(INDIRECT, "call *1000(%rsp)")                                                         \
	CALL(INDIRECT, "call *0x1000(,%rax,8)")                                                    \
	CALL(NONE, "nop")                                                                          \
	CALL(NONE, "ret")                                                                          \
	CALL(NONE, "jmp the_function")                                                             \
	CALL(NONE, "jmp *%rax")                                                                    \
	CALL(NONE, "jmp *(%rax)")                                                                  \
	CALL(NONE, "push (%rax)")                                                                  \
	CALL(NONE, "mov %rsp, %rbp")                                                               \
	CALL(NONE, ".byte 0xe8\n\t.long 0x40000000") /* a call to where there is no code */

#define CALL_TEXT(kind, text) { TDT__CALL_##kind, text },
static const struct {
	enum tdt__call kind;
	const char *text;
} calls[] = { CALLS(CALL_TEXT) };

/* Each call stands among nops; where it ends, its return address, is in `call_ends`. */
#define CALL_SITE(kind, text)                                                                      \
	"\t.skip 16, 0x90\n\t" text                                                                \
	"\n\t.pushsection .data.rel, \"aw\"\n\t.quad 1f\n\t.popsection\n1:\n\t.skip 16, 0x90\n"
__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\ncall_ends:\n\t.popsection\n"
	".pushsection .text\n" CALLS(CALL_SITE) ".popsection");
extern const uintptr_t call_ends[] __attribute__((visibility("hidden")));

CASE(calls)

TEST(a_call_is_told_by_the_instruction_before_its_return_address,
     .to = sizeof calls / sizeof calls[0])
{
	uintptr_t called;
	enum tdt__call kind = tdt__code_call(call_ends[_i], address_of(the_function), &called);

	ck_assert_msg(kind == calls[_i].kind, "%s: %d", calls[_i].text, kind);
	if (strncmp(calls[_i].text, "call *", 6) == 0)
		ck_assert_uint_eq(called, 0);
	else if (kind == TDT__CALL_DIRECT)
		ck_assert_uint_eq(called, address_of(the_function));
	else if (kind == TDT__CALL_ANOTHER)
		ck_assert_uint_ne(called, address_of(the_function));
}

TEST(of_an_unknown_function_no_call_is_direct, .to = sizeof calls / sizeof calls[0])
{
	uintptr_t called;
	enum tdt__call kind = tdt__code_call(call_ends[_i], 0, &called);
	enum tdt__call expected = calls[_i].kind;

	if (expected == TDT__CALL_DIRECT)
		expected = strstr(calls[_i].text, "*the_pointer") != NULL ? TDT__CALL_INDIRECT
									  : TDT__CALL_ANOTHER;
	ck_assert_msg(kind == expected, "%s: %d", calls[_i].text, kind);
}

TEST(outside_of_all_code_there_is_no_call)
{
	static const unsigned char call_rax[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *memory =
	    mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t called;

	MUST(memory != MAP_FAILED);
	memcpy(memory, call_rax, sizeof call_rax);
	ck_assert_int_eq(tdt__code_call(address_of(memory) + sizeof call_rax, 0, &called),
			 TDT__CALL_NONE);
	munmap(memory, page);
	ck_assert_int_eq(tdt__code_call(address_of(memory) + sizeof call_rax, 0, &called),
			 TDT__CALL_NONE);
	ck_assert_int_eq(tdt__code_call(0, 0, &called), TDT__CALL_NONE);
	ck_assert_int_eq(tdt__code_call(UINTPTR_MAX, 0, &called), TDT__CALL_NONE);
}

/* --- Jumps ------------------------------------------------------------------------------ */

extern const unsigned char another_function[] __attribute__((visibility("hidden")));

/* Where functions jump to that are not this: to the_function, to another_function, by a pointer. */
#define JUMPS(JUMP)                                                                                \
	JUMP(0, 0, 1, "ret")                                                                       \
	JUMP(0, 0, 1, "call another_function\n\tret")                                              \
	JUMP(1, 0, 1, "jmp the_function")                                                          \
	JUMP(1, 0, 1, "je the_function\n\tret")                                                    \
	JUMP(1, 0, 1, "jmp plt_plain")                                                             \
	JUMP(1, 1, 1, "jmp the_function\n\tjne another_function\n\tjs the_function")               \
	JUMP(0, 0, 1, "1: dec %eax\n\tjne 1b\n\tjmp 2f\n2:\tret")                                  \
	JUMP(0, 0, 1, "mov $0xe9, %al\n\t.byte 0xb8, 0xe9, 0, 0, 0\n\tret") /* in a constant */    \
	JUMP(0, 0, 0, "jmp *%rax")                                                                 \
	JUMP(0, 0, 0, "jmp *8(%rdi)")                                                              \
	JUMP(1, 0, 0, "jmp *%r11\n\tjmp the_function")                                             \
	JUMP(0, 0, 1, "notrack jmp *%rax") /* by a table: within the function */                   \
	JUMP(0, 0, 1, "add %rdx, %rax\n\tjmp *%rax")                                               \
	JUMP(0, 0, 1, "jmp *0x1000(,%rax,8)")                                                      \
	JUMP(0, 0, 0, ".byte 0x06")

#define JUMP_TEXT(to_the, to_another, all, text) { to_the, to_another, all, text },
static const struct {
	bool to_the, to_another, all;
	const char *text;
} jumps[] = { JUMPS(JUMP_TEXT) };

#define JUMP_SITE(to_the, to_another, all, text)                                                   \
	"\t.skip 16, 0x90\n\t.pushsection .data.rel, \"aw\"\n\t.quad 8f, "                         \
	"9f\n\t.popsection\n8:\n\t" text "\n9:\n\t.skip 16, 0x90\n"
__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\njump_codes:\n\t.popsection\n"
	".pushsection .text\n" JUMPS(JUMP_SITE) ".popsection");
extern const uintptr_t jump_codes[][2] __attribute__((visibility("hidden")));

static bool has(const struct tdt__jumps *found, const unsigned char *function)
{
	for (unsigned i = 0; i < found->n; i++)
		if (found->to[i] == address_of(function))
			return true;
	return false;
}

CASE(frames)

TEST(jumps_out_of_a_function_are_found_and_no_others, .to = sizeof jumps / sizeof jumps[0])
{
	struct tdt__jumps found;

	tdt__code_jumps(jump_codes[_i][0], jump_codes[_i][1], &found);
	ck_assert_msg(has(&found, the_function) == jumps[_i].to_the, "%s", jumps[_i].text);
	ck_assert_msg(has(&found, another_function) == jumps[_i].to_another, "%s", jumps[_i].text);
	ck_assert_msg(found.all == jumps[_i].all, "%s", jumps[_i].text);
	ck_assert_uint_eq(found.n, (unsigned)jumps[_i].to_the + jumps[_i].to_another);
}

TEST(of_code_that_cannot_be_read_nothing_is_known)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *memory =
	    mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tdt__jumps found;
	uintptr_t end;

	MUST(memory != MAP_FAILED && munmap(memory + page, page) == 0);
	memset(memory, 0x90, page);
	memcpy(memory + page - 100, "\x55\x48\x89\xe5", 4);
	end = address_of(memory) + page;
	tdt__code_jumps(end - 100, end + 100, &found);
	ck_assert(!found.all);
	tdt__code_jumps(end, end + 100, &found);
	ck_assert(!found.all);
	ck_assert_int_eq(tdt__code_frame_size(end - 100, end, end - 50), 0);
	ck_assert_int_eq(tdt__code_frame_size(end - 100, end + 100, end - 50), -1);
	ck_assert_int_eq(tdt__code_frame_size(end, end + 100, end), -1);
	munmap(memory, page);
}

/* --- The size of a frame ------------------------------------------------------------------ */

#define THEN_ROOM "\n\tsub $0x10, %rsp"

/*
 * How far rsp is below rbp behind this code of a function that has just made its frame pointer; or
 * -1.
 */
#define FRAMES(FRAME)                                                                              \
	FRAME(0, "ret")                                                                            \
	FRAME(0, "call the_function")                                                              \
	FRAME(0, "call *%rax")                                                                     \
	FRAME(0, "call *%r11")                                                                     \
	FRAME(0, "jmp *%rdx")                                                                      \
	FRAME(0, "jmp the_function")                                                               \
	FRAME(0, ".byte 0xeb, 0")                                                                  \
	FRAME(0, "je . + 2")                                                                       \
	FRAME(0, "jne the_function")                                                               \
	FRAME(8, "push %rbx\n\tret")                                                               \
	FRAME(8, "push %rax\n\tret")                                                               \
	FRAME(40, "push %r15\n\tpush %r14\n\tpush %r13\n\tpush %r12\n\tpush %rbx\n\tret")          \
	FRAME(0x28, "push %r12\n\tpush %rbx\n\tsub $0x18, %rsp")                                   \
	FRAME(0x1238, "push %rbx\n\tsub $0x1230, %rsp")                                            \
	FRAME(0x1020, "sub $0x1000, %rsp\n\torq $0, (%rsp)\n\tsub $0x20, %rsp")                    \
	FRAME(0x1020, "sub $0x1000, %rsp\n\tmovq $0, (%rsp)\n\tsub $0x20, %rsp")                   \
	FRAME(                                                                                     \
	    -1,                                                                                    \
	    "1: sub $0x1000, %rsp\n\torq $0, (%rsp)\n\tcmp %r11, %rsp\n\tjne 1b") /* in a loop */  \
	FRAME(8, "push %rdi")                                                                      \
	FRAME(16, "push %rbx\n\tpush $7")                                                          \
	FRAME(8, "push %rbx\n\tpush %rax\n\tpush 8(%rdi)\n\tcall the_function\n\tadd $0x10, %rsp") \
	FRAME(8, "push %rbx\n\tje 1f\n\tpush %rdi\n\tcall the_function\n\tpop %rdi\n1:")           \
	FRAME(                                                                                     \
	    8,                                                                                     \
	    "push %rbx\n\tje 1f\n\tpush %rdi\n\tcall the_function\n1:") /* which never returns */  \
	FRAME(8, "push %rbx\n\tje 1f\n\tpop %rbx\n\tpop %rbp\n\tret\n1:")                          \
	FRAME(16, "push %rbx\n\tpush %rax\n\tje the_function\n\tadd $8, %rsp\n\tpop %rbx\n\tpop "  \
		  "%rbp\n\tret")                                                                   \
	FRAME(16, "push %rbx\n\tpush %rax\n\tjs the_function\n\tleave\n\tjmp *%rax")               \
	FRAME(16, "push %rbx\n\tsub $0x48, %rsp\n\tlea -0x10(%rbp), %rsp")                         \
	FRAME(8, "push %rbx\n\tpop %rax\n\tpush %rax")                                             \
	FRAME(-1, "and $-32, %rsp") /* aligned */                                                  \
	FRAME(-1, "mov %rax, %rsp")                                                                \
	FRAME(-1, "mov (%rax), %rsp")                                                              \
	FRAME(-1, "pop %rsp")                                                                      \
	FRAME(8, "lea -8(%rsp), %rsp")                                                             \
	FRAME(-1, "sub %rax, %rsp") /* alloca() */                                                 \
	FRAME(-1, "jmp 1f\n\tsub %rax, %rsp\n1:")                                                  \
	FRAME(128, "add $-128, %rsp")                                                              \
	FRAME(-1, "add $0x1000, %rsp") /* there is no frame above its pointer */                   \
	FRAME(-1, "shl $1, %rsp")                                                                  \
	FRAME(-1, "pop %rbx")                                                                      \
	FRAME(-1, "mov %rsp, %rbp\n\tsub $8, %rsp\n\tmov %rsp, %rbp") /* it has two */             \
	FRAME(0, "syscall")                                                                        \
	FRAME(0, "cpuid")                                                                          \
	FRAME(-1, ".byte 0x06") /* not an instruction */                                           \
	FRAME(16, ".skip 2000, 0x90" THEN_ROOM)                                                    \
	/* What may stand between: it leaves rsp alone, and its length is known. */                \
	FRAME(16, "mov %rdi, %rax" THEN_ROOM)                                                      \
	FRAME(16, "mov %rsp, %rax" THEN_ROOM)                                                      \
	FRAME(16, "mov %r12, %rsi" THEN_ROOM)                                                      \
	FRAME(16, "mov %esp, %r12d" THEN_ROOM)                                                     \
	FRAME(16, "mov -8(%rbp), %rax" THEN_ROOM)                                                  \
	FRAME(16, "mov %rax, -0x100(%rbp)" THEN_ROOM)                                              \
	FRAME(16, "mov (%rsp), %rax" THEN_ROOM)                                                    \
	FRAME(16, "mov 8(%rsp), %rax" THEN_ROOM)                                                   \
	FRAME(16, "mov 0x100(%rsp), %rax" THEN_ROOM)                                               \
	FRAME(16, "mov 0x1000(,%rax,8), %rax" THEN_ROOM)                                           \
	FRAME(16, "mov the_pointer(%rip), %rax" THEN_ROOM)                                         \
	FRAME(16, "mov %fs:0x28, %rax" THEN_ROOM)                                                  \
	FRAME(16, "mov %ax, (%rdi)" THEN_ROOM)                                                     \
	FRAME(16, "movb %al, (%rdi)" THEN_ROOM)                                                    \
	FRAME(16, "movb (%rdi), %al" THEN_ROOM)                                                    \
	FRAME(16, "movb $1, -1(%rbp)" THEN_ROOM)                                                   \
	FRAME(16, "movw $0x1234, -2(%rbp)" THEN_ROOM)                                              \
	FRAME(16, "movl $0x12345678, -4(%rbp)" THEN_ROOM)                                          \
	FRAME(16, "movq $0, -8(%rbp)" THEN_ROOM)                                                   \
	FRAME(16, "mov $7, %eax" THEN_ROOM)                                                        \
	FRAME(16, "mov $7, %r8d" THEN_ROOM)                                                        \
	FRAME(16, "movabs $0x123456789abcdef0, %rax" THEN_ROOM)                                    \
	FRAME(16, "lea -0x40(%rbp), %rdi" THEN_ROOM)                                               \
	FRAME(16, "lea 0x10(%rsp), %rdi" THEN_ROOM)                                                \
	FRAME(16, "movslq %edi, %rax" THEN_ROOM)                                                   \
	FRAME(16, "movzbl %dil, %eax" THEN_ROOM)                                                   \
	FRAME(16, "movzwl (%rdi), %eax" THEN_ROOM)                                                 \
	FRAME(16, "movsbl (%rdi), %eax" THEN_ROOM)                                                 \
	FRAME(16, "movswl (%rdi), %eax" THEN_ROOM)                                                 \
	FRAME(16, "test %rdi, %rdi" THEN_ROOM)                                                     \
	FRAME(16, "testb %dil, %dil" THEN_ROOM)                                                    \
	FRAME(16, "cmp %rsi, %rdi" THEN_ROOM)                                                      \
	FRAME(16, "cmp (%rsi), %rdi" THEN_ROOM)                                                    \
	FRAME(16, "cmpb %sil, (%rdi)" THEN_ROOM)                                                   \
	FRAME(16, "cmpb (%rdi), %sil" THEN_ROOM)                                                   \
	FRAME(16, "cmpb $0, (%rdi)" THEN_ROOM)                                                     \
	FRAME(16, "cmpl $0x1000, (%rdi)" THEN_ROOM)                                                \
	FRAME(16, "cmpw $0x1000, (%rdi)" THEN_ROOM)                                                \
	FRAME(16, "cmpq $7, (%rdi)" THEN_ROOM)                                                     \
	FRAME(16, "add %rsi, %rdi" THEN_ROOM)                                                      \
	FRAME(16, "add (%rsi), %rdi" THEN_ROOM)                                                    \
	FRAME(16, "sub %rsi, %rdi" THEN_ROOM)                                                      \
	FRAME(16, "sub (%rsi), %rdi" THEN_ROOM)                                                    \
	FRAME(16, "and %rsi, %rdi" THEN_ROOM)                                                      \
	FRAME(16, "and (%rsi), %rdi" THEN_ROOM)                                                    \
	FRAME(16, "or %rsi, %rdi" THEN_ROOM)                                                       \
	FRAME(16, "or (%rsi), %rdi" THEN_ROOM)                                                     \
	FRAME(16, "xor %eax, %eax" THEN_ROOM)                                                      \
	FRAME(16, "xor (%rsi), %eax" THEN_ROOM)                                                    \
	FRAME(16, "and $-32, %r12" THEN_ROOM)                                                      \
	FRAME(16, "shl $3, %rdi" THEN_ROOM)                                                        \
	FRAME(16, "nop" THEN_ROOM)                                                                 \
	FRAME(16, "nopw 0x100(%rax,%rax)" THEN_ROOM)                                               \
	FRAME(16, "movups %xmm0, -0x20(%rbp)" THEN_ROOM)                                           \
	FRAME(16, "movss (%rdi), %xmm0" THEN_ROOM)                                                 \
	FRAME(16, "movsd %xmm0, (%rdi)" THEN_ROOM)                                                 \
	FRAME(16, "movhps (%rdi), %xmm0" THEN_ROOM)                                                \
	FRAME(16, "movhps %xmm0, (%rdi)" THEN_ROOM)                                                \
	FRAME(16, "movaps %xmm0, -0x20(%rbp)" THEN_ROOM)                                           \
	FRAME(16, "movaps (%rdi), %xmm8" THEN_ROOM)                                                \
	FRAME(16, "xorps %xmm0, %xmm0" THEN_ROOM)                                                  \
	FRAME(16, "pxor %xmm0, %xmm0" THEN_ROOM)                                                   \
	FRAME(16, "punpcklqdq %xmm0, %xmm0" THEN_ROOM)                                             \
	FRAME(16, "movd %edi, %xmm0" THEN_ROOM)                                                    \
	FRAME(16, "movq %rdi, %xmm0" THEN_ROOM)                                                    \
	FRAME(16, "movq %xmm0, (%rdi)" THEN_ROOM)                                                  \
	FRAME(16, "movdqa (%rdi), %xmm0" THEN_ROOM)                                                \
	FRAME(16, "movdqu %xmm0, (%rdi)" THEN_ROOM)                                                \
	FRAME(16, "vmovdqu %ymm0, -0x20(%rbp)" THEN_ROOM)                                          \
	FRAME(16, "vpbroadcastb %xmm0, %ymm1" THEN_ROOM)                                           \
	FRAME(16, "vpcmpeqb 0x40(%rdi), %ymm0, %ymm1" THEN_ROOM)                                   \
	FRAME(16, "vpalignr $3, %ymm0, %ymm1, %ymm2" THEN_ROOM)                                    \
	FRAME(16, "vzeroupper" THEN_ROOM)                                                          \
	FRAME(16, "pshufb %xmm1, %xmm0" THEN_ROOM)                                                 \
	FRAME(16, "palignr $3, %xmm1, %xmm0" THEN_ROOM)                                            \
	FRAME(16, "pshufd $3, 0x10(%rdi,%rsi,4), %xmm0" THEN_ROOM)                                 \
	FRAME(16, "lock cmpxchg %rsi, (%rdi)" THEN_ROOM)                                           \
	FRAME(16, "rep stosq" THEN_ROOM)                                                           \
	FRAME(16, "imul $0x1000, %rdi, %rax" THEN_ROOM)                                            \
	FRAME(16, "imul $8, %rdi, %rax" THEN_ROOM)                                                 \
	FRAME(16, "testb $1, (%rdi)" THEN_ROOM)                                                    \
	FRAME(16, "testl $0x1000, (%rdi)" THEN_ROOM)                                               \
	FRAME(16, "notl (%rdi)" THEN_ROOM)                                                         \
	FRAME(16, "bt $3, %rax" THEN_ROOM)                                                         \
	FRAME(16, "bswap %rax" THEN_ROOM)                                                          \
	FRAME(16, "shld $3, %rax, %rdx" THEN_ROOM)                                                 \
	FRAME(16, "movabs 0x123456789abcdef0, %al" THEN_ROOM)                                      \
	FRAME(16, "fldt 0x10(%rsp)" THEN_ROOM)                                                     \
	FRAME(24, "mov %rdi, %rax\n\tpush %rbx\n\tmov %rsi, %rbx" THEN_ROOM)

#define FRAME_TEXT(size, text) { size, text },
static const struct {
	intptr_t size;
	const char *text;
} frames[] = { FRAMES(FRAME_TEXT) };

/* Where each function begins, where it is then, and where it ends. */
#define FRAME_SITE(size, text)                                                                     \
	"\t.skip 16, 0x90\n\t.pushsection .data.rel, \"aw\"\n\t.quad 7f, 8f, 9f\n\t.popsection\n"  \
	"7:\n\tpush %rbp\n\tmov %rsp, %rbp\n\t" text                                               \
	"\n8:\n\tnop\n\tleave\n\tret\n9:\n\t.skip 16, 0x90\n"
__asm__(".pushsection .data.rel, \"aw\"\n\t.balign 8\nframe_codes:\n\t.popsection\n"
	".pushsection .text\n" FRAMES(FRAME_SITE) ".popsection");
extern const uintptr_t frame_codes[][3] __attribute__((visibility("hidden")));

TEST(the_size_of_a_frame_is_told_by_the_instructions_of_the_function_or_not_at_all,
     .to = sizeof frames / sizeof frames[0])
{
	intptr_t size =
	    tdt__code_frame_size(frame_codes[_i][0], frame_codes[_i][2], frame_codes[_i][1]);

	ck_assert_msg(size == frames[_i].size, "%s: %jd", frames[_i].text, (intmax_t)size);
}

TEST(there_is_no_frame_before_its_pointer_is_made)
{
	ck_assert_int_eq(
	    tdt__code_frame_size(frame_codes[0][0], frame_codes[0][2], frame_codes[0][0]), -1);
	ck_assert_int_eq(
	    tdt__code_frame_size(frame_codes[0][0], frame_codes[0][2], frame_codes[0][0] + 1), -1);
	ck_assert_int_eq(
	    tdt__code_frame_size(frame_codes[0][0], frame_codes[0][2], frame_codes[0][0] + 4), 0);
	/* Nor in the middle of an instruction, or outside. */
	ck_assert_int_eq(
	    tdt__code_frame_size(frame_codes[0][0], frame_codes[0][2], frame_codes[0][0] + 2), -1);
	ck_assert_int_eq(
	    tdt__code_frame_size(frame_codes[0][0], frame_codes[0][2], frame_codes[0][2] + 1), -1);
}
