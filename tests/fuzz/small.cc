// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A small program that has all that the symbolizer reads: inlined functions, blocks, names that are
 * put together from the DIEs around them, lists of ranges.  It is small because a fuzzer tries more
 * changes a second of a small file, and more of them matter.
 */

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

extern "C" int main();

static volatile int sink;

INLINE void inner(int n)
{
	while (n-- > 0) {
		int twice = 2 * n;

		sink = twice;
	}
}

namespace space
{
namespace
{
struct thing {
	NOINLINE static void method(int n)
	{
		inner(n);
		sink = n;
		inner(n + 1);
	}
};
}

NOINLINE __attribute__((cold)) static void hidden()
{
	thing::method(sink);
}
}

int main()
{
	if (__builtin_expect(sink, 0))
		space::hidden();
	inner(3);
	return 0;
}
