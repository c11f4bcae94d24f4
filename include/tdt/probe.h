/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_PROBE_H
#define TDT_PROBE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Probes of your own: static tracing points (USDT) in your program or library, which report the
 * task that is being polled.
 *
 *	TDT_PROBE(shop, order__start, order->id, order->customer);
 *	...
 *	TDT_PROBE(shop, order__end, order->id, total_in_cents);
 *
 * Add them where you have log statements, or would have them.  Nobody needs to read them: a probe
 * costs next to nothing until a tracer attaches to it, or the flight recorder (tdt/recorder.h)
 * runs.
 *
 *	bpftrace -e 'usdt:./shop:shop:order__start { printf("task %d: %s\n", arg0, str(arg2)); }'
 *
 * The header is for C11 and C++11, and later versions of both.  A program that contains TDT_PROBE()
 * is linked to libtdt.  It needs no header of SystemTap.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/decls.h>
#include <tdt/layout/recording.h>
#include <tdt/trace.h>

/*
 * Fire a probe of your own: its provider, its name, and up to 11 arguments.
 *
 *	TDT_PROBE(provider, name);
 *	TDT_PROBE(provider, name, argument, argument);
 *
 * The provider and the name are identifiers.  If one of them is a macro, it is expanded.
 *
 * While no tracer is attached to the probe and the flight recorder does not run, the statement is a
 * few loads, a test and a branch.  The arguments are not evaluated then, so they must not have side
 * effects.  Otherwise each argument is evaluated once.
 *
 * The first argument that a tracer sees (arg0) is the id of the task that is being polled on this
 * thread (tdt_current_task_id()), or 0 if there is none.  The program's arguments follow.  A tracer
 * sees each of them as a number of 64 bits:
 *
 *   signed integer    with its sign.
 *   unsigned integer  as it is.  bool is unsigned; an enumeration is what its type is.
 *   char pointer      the address of a text that ends with NUL, or NULL.  The probe reads the first
 *                     byte, so that a tracer finds the text in memory.
 *   other pointer     the address.  If a char pointer leads to no text, cast it to const void *.
 *   floating point    the bits of a double.
 *
 * The flight recorder records an event with the types and the values of the arguments.  In a
 * timeline it belongs to the task.  If the name ends in `__start`, a slice begins there, up to the
 * event of the same task whose name ends in `__end` and is otherwise equal.  Any other event is an
 * instant.  The event has room for some 900 bytes: longer texts are cut.
 *
 * A structure does not compile.  In C++, an argument that contains a comma outside of parentheses
 * needs parentheses around it.
 *
 * Several statements may have the same provider and name: in one file, in several files, in inline
 * functions and in templates.  They are sites of one probe.  Arguments at the same position should
 * have the same type at all sites, because perf accepts no others.  The probe belongs to the
 * program or to the shared library that contains the statement.  These commands list the probes of
 * a program:
 *
 *	bpftrace -l 'usdt:./shop:*'
 *	perf buildid-cache --add ./shop; perf list sdt
 *	gdb -batch -ex 'info probes stap' ./shop
 *
 * A site is a plain nop.  On other architectures than x86-64 and aarch64 there are no sites.
 *
 * Any thread.  Do not use it in a signal handler, or in a function that the compiler evaluates
 * (constexpr).
 */
#define TDT_PROBE(provider, ...)                                                                   \
	TDT__PROBE_EXPAND(TDT__PROBE_COUNT(__VA_ARGS__), provider, __VA_ARGS__, )

TDT_DECLS_BEGIN

/*
 * Record an event of the program, as TDT_PROBE() does.  The call is for languages that cannot use
 * the macro.  It does nothing while the flight recorder does not run.
 *
 * `task` is the id of the task that the event belongs to, or 0.  The event has `n` arguments, at
 * most 11.  `types` has an enum tdt_user_type for each of them.  `values` has their values: a
 * number, the bits of a double, or the address of a text, which is copied.  `provider`, `name` and
 * such a text end with NUL; NULL stands for an empty text.
 *
 *	const uint8_t types[] = { TDT_USER_UINT, TDT_USER_TEXT };
 *	const uint64_t values[] = { order, (uintptr_t)customer };
 *
 *	if (tdt_recorder_is_on())
 *		tdt_record_event("shop", "order", tdt_current_task_id(), 2, types, values);
 *
 * Any thread.  Not in a signal handler.
 */
void tdt_record_event(const char *provider, const char *name, uint64_t task, unsigned n,
		      const uint8_t *types, const uint64_t *values);

/* Private to the next function and to TDT_PROBE().  Only the library stores it. */
extern volatile uint32_t tdt__recorder_on;

/* Return whether the flight recorder runs.  Takes a load.  Any thread; async-signal-safe. */
static inline bool tdt_recorder_is_on(void)
{
	return tdt__recorder_on != 0;
}

TDT_DECLS_END

/* --- The parts of the macro, which are of no use elsewhere --------------------------- */

/* The number of arguments that follow the name. */
#define TDT__PROBE_COUNT(...)                                                                      \
	TDT__PROBE_13TH(__VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define TDT__PROBE_13TH(a, b, c, d, e, f, g, h, i, j, k, l, m, ...) m

/*
 * TDT__PROBE_EACH_3(what, a, b, c, ) is what(a) what(b) what(c).  The list ends with a comma, so
 * that `...` always has an argument: strict compilers demand one.
 */
#define TDT__PROBE_EACH_0(what, ...)
#define TDT__PROBE_EACH_1(what, a, ...) what(a) TDT__PROBE_EACH_0(what, __VA_ARGS__)
#define TDT__PROBE_EACH_2(what, a, ...) what(a) TDT__PROBE_EACH_1(what, __VA_ARGS__)
#define TDT__PROBE_EACH_3(what, a, ...) what(a) TDT__PROBE_EACH_2(what, __VA_ARGS__)
#define TDT__PROBE_EACH_4(what, a, ...) what(a) TDT__PROBE_EACH_3(what, __VA_ARGS__)
#define TDT__PROBE_EACH_5(what, a, ...) what(a) TDT__PROBE_EACH_4(what, __VA_ARGS__)
#define TDT__PROBE_EACH_6(what, a, ...) what(a) TDT__PROBE_EACH_5(what, __VA_ARGS__)
#define TDT__PROBE_EACH_7(what, a, ...) what(a) TDT__PROBE_EACH_6(what, __VA_ARGS__)
#define TDT__PROBE_EACH_8(what, a, ...) what(a) TDT__PROBE_EACH_7(what, __VA_ARGS__)
#define TDT__PROBE_EACH_9(what, a, ...) what(a) TDT__PROBE_EACH_8(what, __VA_ARGS__)
#define TDT__PROBE_EACH_10(what, a, ...) what(a) TDT__PROBE_EACH_9(what, __VA_ARGS__)
#define TDT__PROBE_EACH_11(what, a, ...) what(a) TDT__PROBE_EACH_10(what, __VA_ARGS__)

/*
 * The arguments as the note of a site describes them: a size, `@`, and a place.  The size is an
 * operand of the assembler text.  It is negative if the number is signed.
 *
 * On x86-64 the arguments are in memory, at the address in rax, because there are not always enough
 * registers.  On aarch64 they are in registers, because perf knows hardly any other place there.
 */
#define TDT__PROBE_PLACES_0 "8@" TDT__PROBE_FIRST
#define TDT__PROBE_PLACES_1 TDT__PROBE_PLACES_0 TDT__PROBE_PLACE(0, 1, 8)
#define TDT__PROBE_PLACES_2 TDT__PROBE_PLACES_1 TDT__PROBE_PLACE(1, 2, 16)
#define TDT__PROBE_PLACES_3 TDT__PROBE_PLACES_2 TDT__PROBE_PLACE(2, 3, 24)
#define TDT__PROBE_PLACES_4 TDT__PROBE_PLACES_3 TDT__PROBE_PLACE(3, 4, 32)
#define TDT__PROBE_PLACES_5 TDT__PROBE_PLACES_4 TDT__PROBE_PLACE(4, 5, 40)
#define TDT__PROBE_PLACES_6 TDT__PROBE_PLACES_5 TDT__PROBE_PLACE(5, 6, 48)
#define TDT__PROBE_PLACES_7 TDT__PROBE_PLACES_6 TDT__PROBE_PLACE(6, 7, 56)
#define TDT__PROBE_PLACES_8 TDT__PROBE_PLACES_7 TDT__PROBE_PLACE(7, 8, 64)
#define TDT__PROBE_PLACES_9 TDT__PROBE_PLACES_8 TDT__PROBE_PLACE(8, 9, 72)
#define TDT__PROBE_PLACES_10 TDT__PROBE_PLACES_9 TDT__PROBE_PLACE(9, 10, 80)
#define TDT__PROBE_PLACES_11 TDT__PROBE_PLACES_10 TDT__PROBE_PLACE(10, 11, 88)

#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)
#define TDT__PROBE_SITES 1
#define TDT__PROBE_FIRST "0(%%rax)"
#define TDT__PROBE_PLACE(size, n, offset) " %c" #size "@" #offset "(%%rax)"
#define TDT__PROBE_INPUTS(n) [values] "a"(tdt__values)
#define TDT__PROBE_LOAD(symbol)                                                                    \
	"{movzwl " symbol "(%%rip), %0|movzx %0, WORD PTR " symbol "[rip]}"
#elif defined(__aarch64__) && defined(__LP64__) && defined(__ELF__)
#define TDT__PROBE_SITES 1
#define TDT__PROBE_FIRST "%x[v0]"
#define TDT__PROBE_PLACE(size, n, offset) " %c" #size "@%x[v" #n "]"
#define TDT__PROBE_INPUTS(n) TDT__PROBE_INPUTS_##n
#define TDT__PROBE_INPUTS_0 [v0] "r"(tdt__values[0])
#define TDT__PROBE_INPUTS_1 TDT__PROBE_INPUTS_0, [v1] "r"(tdt__values[1])
#define TDT__PROBE_INPUTS_2 TDT__PROBE_INPUTS_1, [v2] "r"(tdt__values[2])
#define TDT__PROBE_INPUTS_3 TDT__PROBE_INPUTS_2, [v3] "r"(tdt__values[3])
#define TDT__PROBE_INPUTS_4 TDT__PROBE_INPUTS_3, [v4] "r"(tdt__values[4])
#define TDT__PROBE_INPUTS_5 TDT__PROBE_INPUTS_4, [v5] "r"(tdt__values[5])
#define TDT__PROBE_INPUTS_6 TDT__PROBE_INPUTS_5, [v6] "r"(tdt__values[6])
#define TDT__PROBE_INPUTS_7 TDT__PROBE_INPUTS_6, [v7] "r"(tdt__values[7])
#define TDT__PROBE_INPUTS_8 TDT__PROBE_INPUTS_7, [v8] "r"(tdt__values[8])
#define TDT__PROBE_INPUTS_9 TDT__PROBE_INPUTS_8, [v9] "r"(tdt__values[9])
#define TDT__PROBE_INPUTS_10 TDT__PROBE_INPUTS_9, [v10] "r"(tdt__values[10])
#define TDT__PROBE_INPUTS_11 TDT__PROBE_INPUTS_10, [v11] "r"(tdt__values[11])
#define TDT__PROBE_LOAD(symbol)                                                                    \
	"adrp %x0, " symbol "\n\tldrh %w0, [%x0, :lo12:" symbol "]"
#endif

#define TDT__PROBE_INPUT_SIZE(a) "n"(TDT__PROBE_TYPE(a) == TDT_USER_INT ? -8 : 8),
#define TDT__PROBE_VALUE_OF(a) , TDT__PROBE_VALUE(a)
#define TDT__PROBE_TYPE_OF(a) , (uint8_t)TDT__PROBE_TYPE(a)

/*
 * A compiler that decides about inlining takes each line of assembler text for an instruction,
 * unless it is told by `inline` that the text is short.
 */
#if (!defined(__clang__) && __GNUC__ >= 9) || (defined(__clang__) && __clang_major__ >= 11)
#define TDT__PROBE_ASM __asm__ __volatile__ __inline__
#else
#define TDT__PROBE_ASM __asm__ __volatile__
#endif

/*
 * The semaphore: two bytes, which the kernel increments while a tracer is attached.  Every object
 * file that uses the probe defines it in a group of sections, and the linker keeps one of these
 * groups.  It is hidden, so each program or library has a semaphore of its own.  Only assembler
 * text names it: so a C++ namespace does not change its name, and link-time optimization does not
 * look for a definition.
 */
#define TDT__PROBE_SYMBOL(provider, name) "tdt_semaphore." provider "." name
#define TDT__PROBE_SEMAPHORE(symbol)                                                               \
	".ifndef " symbol "\n\t"                                                                   \
	".pushsection .probes, \"awG\", \"progbits\", " symbol ", comdat\n\t"                      \
	".balign 2\n\t"                                                                            \
	".weak " symbol "\n\t"                                                                     \
	".hidden " symbol "\n\t"                                                                   \
	".type " symbol ", STT_OBJECT\n\t"                                                         \
	".size " symbol ", 2\n"                                                                    \
	symbol ": .zero 2\n\t"                                                                     \
	".popsection\n\t"                                                                          \
	".endif\n\t"

/* Tracers compare the address of this byte with the one in the note, because of prelink(8). */
#define TDT__PROBE_BASE                                                                            \
	".ifndef _.stapsdt.base\n\t"                                                               \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n\t"              \
	".weak _.stapsdt.base\n\t"                                                                 \
	".hidden _.stapsdt.base\n\t"                                                               \
	".size _.stapsdt.base, 1\n"                                                                \
	"_.stapsdt.base: .zero 1\n\t"                                                              \
	".popsection\n\t"                                                                          \
	".endif\n\t"

/*
 * The site and its note, in the form that SystemTap has established.  `?` has the note join the
 * group of sections of an inline function, so that the linker keeps both of them, or neither.
 */
#define TDT__PROBE_SITE(symbol, provider, name, places)                                            \
	TDT__PROBE_SEMAPHORE(symbol)                                                               \
	TDT__PROBE_BASE                                                                            \
	"771: nop\n\t"                                                                             \
	".pushsection .note.stapsdt, \"?\", \"note\"\n\t"                                          \
	".balign 4\n\t"                                                                            \
	".4byte 773f - 772f, 775f - 774f, 3\n"                                                     \
	"772: .asciz \"stapsdt\"\n"                                                                \
	"773: .balign 4\n"                                                                         \
	"774: .8byte 771b, _.stapsdt.base, " symbol "\n\t"                                         \
	".asciz \"" provider "\"\n\t"                                                              \
	".asciz \"" name "\"\n\t"                                                                  \
	".asciz \"" places "\"\n"                                                                  \
	"775: .balign 4\n\t"                                                                       \
	".popsection"

#ifdef TDT__PROBE_SITES
/* Sets `on` if a tracer is attached. */
#define TDT__PROBE_ATTACHED(on, symbol)                                                            \
	do {                                                                                       \
		uint32_t tdt__attached;                                                            \
                                                                                                   \
		__asm__ __volatile__(TDT__PROBE_LOAD(symbol) : "=r"(tdt__attached));               \
		(on) |= tdt__attached;                                                             \
	} while (0)
#define TDT__PROBE_FIRE(symbol, provider, name, n, ...)                                            \
	TDT__PROBE_ASM(TDT__PROBE_SITE(symbol, provider, name, TDT__PROBE_PLACES_##n)              \
		       :                                                                           \
		       : TDT__PROBE_EACH_##n(TDT__PROBE_INPUT_SIZE, __VA_ARGS__)                   \
			     TDT__PROBE_INPUTS(n)                                                  \
		       : "memory")
#else
#define TDT__PROBE_ATTACHED(on, symbol) (void)0
#define TDT__PROBE_FIRE(symbol, provider, name, n, ...) (void)0
#endif

/* Expands the provider and the name, which # does not. */
#define TDT__PROBE_EXPAND(n, provider, ...) TDT__PROBE_WITH(n, provider, __VA_ARGS__)
#define TDT__PROBE_WITH(n, provider, name, ...)                                                    \
	do {                                                                                       \
		uint32_t tdt__on = tdt__recorder_on;                                               \
                                                                                                   \
		TDT__PROBE_ATTACHED(tdt__on, TDT__PROBE_SYMBOL(#provider, #name));                 \
		if (__builtin_expect(tdt__on != 0, 0)) {                                           \
			const uint64_t tdt__values[] = {                                           \
				tdt_current_task_id()                                              \
				TDT__PROBE_EACH_##n(TDT__PROBE_VALUE_OF, __VA_ARGS__)              \
			};                                                                         \
			const uint8_t tdt__types[] = {                                             \
				TDT_USER_UINT                                                      \
				TDT__PROBE_EACH_##n(TDT__PROBE_TYPE_OF, __VA_ARGS__)               \
			};                                                                         \
                                                                                                   \
			TDT__PROBE_FIRE(TDT__PROBE_SYMBOL(#provider, #name), #provider, #name, n,  \
					__VA_ARGS__);                                              \
			tdt_record_event(#provider, #name, tdt__values[0], n, tdt__types + 1,      \
					 tdt__values + 1);                                         \
		}                                                                                  \
	} while (0)

/* --- Types of arguments ---------------------------------------------------------------- */

#ifdef __cplusplus

extern "C++" { /* some programs include C headers inside of extern "C" */

#include <type_traits>

namespace tdt
{
namespace detail
{

template <typename T, bool = std::is_enum<T>::value> struct probe_number {
	typedef T type;
};
template <typename T> struct probe_number<T, true> {
	typedef typename std::underlying_type<T>::type type;
};

template <typename T> struct probe_type {
	typedef typename std::decay<T>::type type;
	typedef typename probe_number<type>::type number;

	static_assert(std::is_arithmetic<type>::value || std::is_enum<type>::value ||
			  std::is_pointer<type>::value,
		      "an argument of TDT_PROBE() must be a number or a pointer");
	enum {
		value = std::is_floating_point<type>::value     ? TDT_USER_DOUBLE
			: std::is_same<type, char *>::value       ? TDT_USER_TEXT
			: std::is_same<type, const char *>::value ? TDT_USER_TEXT
			: std::is_signed<number>::value           ? TDT_USER_INT
								  : TDT_USER_UINT
	};
};

template <typename T>
inline typename std::enable_if<std::is_integral<T>::value || std::is_enum<T>::value, uint64_t>::type
probe_value(T number)
{
	return static_cast<uint64_t>(number);
}

template <typename T>
inline typename std::enable_if<std::is_floating_point<T>::value, uint64_t>::type
probe_value(T number)
{
	double value = static_cast<double>(number);
	uint64_t bits;

	__builtin_memcpy(&bits, &value, sizeof bits);
	return bits;
}

template <typename T> inline uint64_t probe_value(T *pointer)
{
	return reinterpret_cast<uint64_t>(pointer);
}

inline uint64_t probe_value(const char *text)
{
	if (text != nullptr)
		(void)*static_cast<const volatile char *>(text);
	return reinterpret_cast<uint64_t>(text);
}

inline uint64_t probe_value(char *text)
{
	return probe_value(static_cast<const char *>(text));
}

} // namespace detail
} // namespace tdt

} // extern "C++"

#define TDT__PROBE_TYPE(a) (int(::tdt::detail::probe_type<decltype(a)>::value))
#define TDT__PROBE_VALUE(a) ::tdt::detail::probe_value(a)

#else

static inline uint64_t tdt__probe_int(int64_t number)
{
	return (uint64_t)number;
}

static inline uint64_t tdt__probe_uint(uint64_t number)
{
	return number;
}

static inline uint64_t tdt__probe_double(double number)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &number, sizeof bits);
	return bits;
}

static inline uint64_t tdt__probe_long_double(long double number)
{
	return tdt__probe_double((double)number);
}

static inline uint64_t tdt__probe_text(const char *text)
{
	if (text != NULL)
		(void)*(const volatile char *)text;
	return (uint64_t)text;
}

static inline uint64_t tdt__probe_pointer(const volatile void *pointer)
{
	return (uint64_t)pointer;
}

#define TDT__PROBE_TYPE(a)                                                                         \
	__extension__ _Generic((a),                                                                \
		char: (char)-1 < 0 ? TDT_USER_INT : TDT_USER_UINT,                                 \
		signed char: TDT_USER_INT,                                                         \
		short: TDT_USER_INT,                                                               \
		int: TDT_USER_INT,                                                                 \
		long: TDT_USER_INT,                                                                \
		long long: TDT_USER_INT,                                                           \
		_Bool: TDT_USER_UINT,                                                              \
		unsigned char: TDT_USER_UINT,                                                      \
		unsigned short: TDT_USER_UINT,                                                     \
		unsigned: TDT_USER_UINT,                                                           \
		unsigned long: TDT_USER_UINT,                                                      \
		unsigned long long: TDT_USER_UINT,                                                 \
		float: TDT_USER_DOUBLE,                                                            \
		double: TDT_USER_DOUBLE,                                                           \
		long double: TDT_USER_DOUBLE,                                                      \
		char *: TDT_USER_TEXT,                                                             \
		const char *: TDT_USER_TEXT,                                                       \
		default: TDT_USER_UINT)

#define TDT__PROBE_VALUE(a)                                                                        \
	__extension__ _Generic((a),                                                                \
		char: tdt__probe_int,                                                              \
		signed char: tdt__probe_int,                                                       \
		short: tdt__probe_int,                                                             \
		int: tdt__probe_int,                                                               \
		long: tdt__probe_int,                                                              \
		long long: tdt__probe_int,                                                         \
		_Bool: tdt__probe_uint,                                                            \
		unsigned char: tdt__probe_uint,                                                    \
		unsigned short: tdt__probe_uint,                                                   \
		unsigned: tdt__probe_uint,                                                         \
		unsigned long: tdt__probe_uint,                                                    \
		unsigned long long: tdt__probe_uint,                                               \
		float: tdt__probe_double,                                                          \
		double: tdt__probe_double,                                                         \
		long double: tdt__probe_long_double,                                               \
		char *: tdt__probe_text,                                                           \
		const char *: tdt__probe_text,                                                     \
		default: tdt__probe_pointer)(a)

#endif

#endif
