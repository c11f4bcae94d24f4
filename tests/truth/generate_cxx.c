// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Prints a random program of C++20 coroutines:
 *
 *	generate_cxx SEED
 *
 * As generate.c has it, but the kinds of futures, f0 to fN, are coroutines that await those with
 * higher numbers, alone or joined, or through a future that is written by hand; the last kinds are
 * leaves.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { KINDS_MAX = 20, LEAVES_MAX = 30 };

static int leaves[KINDS_MAX]; /* how many leaves a future of the kind has at most at a time */

static bool are_both(const char *a, const char *b, const char *one, const char *two)
{
	return (strcmp(a, one) == 0 && strcmp(b, two) == 0) ||
	       (strcmp(a, two) == 0 && strcmp(b, one) == 0);
}

/*
 * A flag for the compiler, beside `other`.  Clang 14 can't link instrumented programs of C++20 that
 * call std::allocator, as those with a std::string do.  For both, -pg needs the frame pointer.
 */
static const char *flag_for(bool clang, const char *other)
{
	static const char *const flags[] = {
		"",
		"",
		" -fomit-frame-pointer",
		" -fno-omit-frame-pointer",
		" -no-pie -fno-pie",
		" -fno-plt -Wl,-z,now",
		" -fcf-protection=full",
		" -ffunction-sections -Wl,--gc-sections",
		" -mavx",
		" -mno-red-zone",
		" -fno-inline",
		" -fno-optimize-sibling-calls",
		" -funroll-loops",
		" -fstack-protector-all",
		" -finstrument-functions",
		" -mstackrealign",
		" -fstack-clash-protection",
		" -pg",
		" -fprofile-arcs",
	};
	const char *flag;

	do
		flag = PICK(flags);
	while ((clang && strcmp(flag, " -finstrument-functions") == 0) ||
	       are_both(flag, other, " -pg", " -fomit-frame-pointer"));
	return flag;
}

static void print_build(void)
{
	static const char *const levels[] = { "-O0", "-O1", "-O2", "-O2", "-O3", "-Os", "-Og" };
	static const char *const debug[] = { "-gdwarf-4", "-gdwarf-5", "-g" };
	bool clang = one_in(2);
	const char *flag = flag_for(clang, "");

	printf("// %s %s %s%s", clang ? "clang++" : "g++", PICK(levels), PICK(debug), flag);
	if (one_in(2))
		printf("%s", flag_for(clang, flag));
	if (one_in(5))
		printf("%s", clang ? " -flto -fuse-ld=lld" : " -flto");
	printf(" : %s\n", one_in(3) ? "debuglink" : "whole");
}

/* A kind with a higher number than `i` that has not more than `room` leaves; the last has one. */
static int child_of(int i, int n, int room)
{
	int child = i + 1 + below(n - i - 1);

	while (leaves[child] > room)
		child = child == n - 1 ? i + 1 : child + 1;
	return child;
}

/* Print the futures that are joined by kind `i`; how many leaves they have. */
static int print_joined(int i, int n)
{
	int count = 2 + below(2), sum = 0;

	printf("%s(", one_in(3) ? "first_of" : "joined");
	for (int j = 0; j < count; j++) {
		int child = child_of(i, n, LEAVES_MAX - sum - (count - j - 1));

		printf("%sf%d(&here)", j > 0 ? ", " : "", child);
		sum += leaves[child];
	}
	printf(")");
	return sum;
}

/* Print what is awaited by kind `i`; how many leaves it has. */
static int print_awaited(int i, int n)
{
	int child;

	if (one_in(3))
		return print_joined(i, n);
	child = child_of(i, n, LEAVES_MAX);
	if (one_in(4))
		printf("passed(&here, [](const truth_here *at) { return f%d(at); })", child);
	else
		printf("f%d(&here)", child);
	return leaves[child];
}

/* What a coroutine has in its frame. */
static void print_local(void)
{
	static const char *const locals[] = {
		"\tstd::string text(static_cast<std::size_t>(truth_zero()) + 40, '.');\n\n",
		"\talignas(64) char room[100];\n\n\ttruth_use(room);\n",
		"\tchar room[5000];\n\n\ttruth_use(room);\n",
		"\tdouble a = truth_zero(), b = a * 2;\n\n\ttruth_use(&b);\n",
	};

	if (one_in(2))
		printf("%s", PICK(locals));
}

static void print_await(int i, int n)
{
	static const char *const heads[] = {
		"",
		"",
		"",
		"\tif (truth_zero() == 0)\n\t",
		"\tfor (int i = 0; i < 2; i++)\n\t",
		"\ttry {\n\t",
		"\tswitch (truth_zero()) {\n\tcase 0:\n\t",
	};
	int head = below(7), awaited;

	printf("%s\tAWAIT(", heads[head]);
	awaited = print_awaited(i, n);
	printf(");\n");
	if (head == 5)
		printf("\t} catch (const std::exception &) {\n\t}\n");
	if (head == 6)
		printf("\t}\n");
	leaves[i] = awaited > leaves[i] ? awaited : leaves[i];
}

/* The body is the same for all: of a function, of a lambda, of a member, or of a template. */
static void print_coroutine(int i, int n)
{
	enum { PLAIN, VALUE, LAMBDA, MEMBER, TEMPLATE, FORMS } form = (unsigned)below(FORMS);

	switch (form) {
	case LAMBDA:
		printf(
		    "static auto f%d = [](const truth_here *parent) -> tdt::task<> {\n"
		    "\tHERE(parent, \"lambda\");\n",
		    i);
		break;
	case MEMBER:
		printf("struct till%d {\n\tint number = 1;\n\n\ttdt::task<int> pay(const "
		       "truth_here *parent)\n\t{\n"
		       "\tHERE(parent, \"till%d::pay\");\n",
		       i, i);
		break;
	case TEMPLATE:
		printf(
		    "template <typename T> tdt::task<T> t%d(const truth_here *parent, T value)\n{\n"
		    "\tHERE(parent, \"t%d\");\n",
		    i, i);
		break;
	default:
		printf("static tdt::task<%s> f%d(const truth_here *parent)\n{\n\tHERE(parent, "
		       "\"f%d\");\n",
		       form == VALUE ? "int" : "", i, i);
		break;
	}
	print_local();
	for (int awaits = 1 + below(3); awaits > 0; awaits--)
		print_await(i, n);
	switch (form) {
	case LAMBDA:
		printf("\tco_return;\n};\n\n");
		break;
	case MEMBER:
		printf("\tco_return number;\n\t}\n};\n\nstatic till%d the_till%d;\n\n"
		       "static tdt::task<int> f%d(const truth_here *parent)\n{\n\treturn "
		       "the_till%d.pay(parent);\n"
		       "}\n\n",
		       i, i, i, i);
		break;
	case TEMPLATE:
		printf("\tco_return value;\n}\n\nstatic tdt::task<int> f%d(const truth_here "
		       "*parent)\n{\n"
		       "\treturn t%d(parent, 1);\n}\n\n",
		       i, i);
		break;
	default:
		printf("\tco_return%s;\n}\n\n", form == VALUE ? " 1" : "");
		break;
	}
}

static void print_leaf(int i)
{
	printf("static tdt_future f%d(const truth_here *parent)\n{\n\treturn leaf(parent, ", i);
	if (one_in(3))
		printf("%d", below(4));
	else
		printf("TRUTH_FOR_EVER");
	printf(", %s);\n}\n\n", one_in(3) ? "TRUTH_KEPT" : "TRUTH_EMPTIED");
	leaves[i] = 1;
}

int main(int argc, char **argv)
{
	int n;

	if (argc != 2)
		return 2;
	random_state = strtoull(argv[1], NULL, 0);
	print_build();
	printf(
	    "// generate_cxx %s\n#include \"truth.hpp\"\n\n"
	    "extern \"C\" const unsigned truth_plain_polls = %d;\n\n",
	    argv[1], one_in(2) ? 0 : below(64));
	n = 5 + below(KINDS_MAX - 5);
	for (int i = n - 1; i >= 0; i--) {
		if (i >= n - 2 || (i > n / 2 && one_in(3)))
			print_leaf(i);
		else
			print_coroutine(i, n);
	}
	printf("extern \"C\" tdt_future truth_root(void)\n{\n\treturn as_c(f0(nullptr));\n}\n");
	return 0;
}
