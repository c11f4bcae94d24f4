// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Prints a random program:
 *
 *	generate SEED LINKS
 *
 * Its first line says how it is to be built (run.sh): `// COMPILER FLAGS... : PACKAGING`.  It
 * has up to 30 kinds of futures, f0 to fN: a function fI makes a future, which only awaits kinds
 * with a higher number, so no kind contains itself; the last kinds are leaves.  Between the poll
 * of a future and those of its children there may be functions of all kinds, hI_0, hI_1..., made
 * of what the file LINKS has.  The same seed gives the same program.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { KINDS_MAX = 30, LEAVES_MAX = 40, LINKS_MAX = 4 };

static bool clang;
static int leaves[KINDS_MAX]; /* how many leaves a future of the kind has at most at a time */

/* --- How it is built ------------------------------------------------------------ */

static void print_build(void)
{
	static const char *const levels[] = { "-O0", "-O1", "-O2", "-O2", "-O3", "-Os", "-Og" };
	static const char *const debug[] = { "-gdwarf-4", "-gdwarf-5", "-g", "-g",
					     "-g -gsplit-dwarf" };
	static const char *const frame_pointers[] = { "", " -fomit-frame-pointer",
						      " -fno-omit-frame-pointer" };
	static const char *const kinds[] = { "", "", " -no-pie -fno-pie", " -pie -fPIE",
					     " -fno-plt -Wl,-z,now" };
	static const char *const common[] = {
		" -fstack-protector-all",
		" -fstack-clash-protection",
		" -ffunction-sections -Wl,--gc-sections",
		" -mno-red-zone",
		" -fcf-protection=full",
		" -fno-optimize-sibling-calls",
		" -fno-inline",
		" -funroll-loops",
		" -mstackrealign",
		" -fno-semantic-interposition",
		" -mavx",
		" -ftrapv",
		" -gz",
		" -fno-jump-tables",
	};
	static const char *const of_gcc[] = {
		" -fipa-pta",
		" -fno-ipa-icf",
		" -fno-reorder-blocks-and-partition",
		" -maccumulate-outgoing-args",
		" -fno-shrink-wrap",
		" -finline-limit=2000",
		" -fno-partial-inlining",
		" -mpreferred-stack-boundary=5",
		" -freorder-blocks-algorithm=simple",
		" -fno-dwarf2-cfi-asm",
	};
	static const char *const of_clang[] = {
		" -fuse-ld=lld",  " -mllvm -enable-machine-outliner", " -fno-vectorize",
		" -gcolumn-info", " -mllvm -inline-threshold=2000",   " -gline-directives-only -g",
	};
	static const char *const packagings[] = { "whole", "whole", "whole", "debuglink",
						  "symbols" };

	const char *debug_info = PICK(debug);

	printf("// %s %s %s%s%s", clang ? "clang" : "gcc", PICK(levels), debug_info,
	       PICK(frame_pointers), PICK(kinds));
	for (int n = below(3); n > 0; n--)
		printf("%s", PICK(common));
	if (one_in(2))
		printf("%s", clang ? PICK(of_clang) : PICK(of_gcc));
	if (one_in(4) &&
	    strstr(debug_info, "split") == NULL) /* both together give what gdb can't read */
		printf("%s", clang ? " -flto -fuse-ld=lld" : " -flto");
	printf(" : %s\n", PICK(packagings));
}

/* --- Links: functions between a poll and the poll of a child ----------------------- */

/* What a link does around its call: see the file `links`. */
struct link {
	char *compiler; /* "any", "gcc", "clang" */
	char *head;	/* attributes */
	char *body;
};

static struct link links[64];
static int n_links;

/* The text up to `end`, which is overwritten; `*text` is behind it then. */
static char *up_to(char **text, const char *end)
{
	char *start = *text, *found = strstr(start, end);

	if (found == NULL) {
		*text = start + strlen(start);
		return start;
	}
	*found = '\0';
	*text = found + strlen(end);
	return start;
}

static void read_links(const char *path)
{
	static char all[1 << 16];
	FILE *file = fopen(path, "r");
	char *text = all;

	if (file == NULL || fread(all, 1, sizeof all - 1, file) == 0) {
		perror(path);
		exit(2);
	}
	fclose(file);
	up_to(&text, "\n== ");
	while (*text != '\0' && n_links < (int)(sizeof links / sizeof links[0])) {
		struct link *link = &links[n_links++];

		link->compiler = up_to(&text, " ");
		link->head = up_to(&text, "\n");
		link->body = up_to(&text, "\n== ");
	}
}

static const struct link *pick_link(void)
{
	const struct link *link;

	do
		link = &links[below(n_links)];
	while (strcmp(link->compiler, "any") != 0 &&
	       strcmp(link->compiler, clang ? "clang" : "gcc") != 0);
	return link;
}

/* Print `body` with the call in place, and the name of the function. */
static void print_body(const char *body, const char *name, const char *call)
{
	for (; *body != '\0'; body++) {
		if (strncmp(body, "CALL", 4) == 0) {
			fputs(call, stdout);
			body += 3;
		} else if (*body == '@') {
			fputs(name, stdout);
		} else {
			putchar(*body);
		}
	}
}

/* How a link is called: as it is, by a pointer, with arguments on the stack, or by bsearch(). */
enum way { PLAIN, POINTER, ARGUMENTS, BSEARCH };

static void print_way(const char *name, enum way way)
{
	switch (way) {
	case PLAIN:
		break;
	case POINTER:
		printf("static __typeof__(%s) *volatile %s_pointer = %s;\n\n", name, name, name);
		break;
	case ARGUMENTS:
		printf(
		    "static __attribute__((noinline)) tdt_poll_t %s_many("
		    "long a, long b, long c, long d, long e, long f, long g,\n"
		    "\tconst struct tdt_future *child, struct tdt_context *cx, int n)\n{\n"
		    "\ttdt_poll_t r = %s(child, cx, n);\n\n"
		    "\ttruth_use((char *)child + a + b + c + d + e + f + g);\n"
		    "\treturn r;\n}\n\n",
		    name, name);
		break;
	case BSEARCH:
		printf("struct %s_key {\n\tconst struct tdt_future *child;\n\tstruct tdt_context "
		       "*cx;\n"
		       "\ttdt_poll_t r;\n};\n\n"
		       "static int %s_compare(const void *key, const void *member)\n{\n"
		       "\tstruct %s_key *k = (void *)key;\n\n"
		       "\tk->r = %s(k->child, k->cx, *(const int *)member);\n\treturn "
		       "truth_zero();\n}\n\n",
		       name, name, name, name);
		printf(
		    "static tdt_poll_t %s_search(const struct tdt_future *child, "
		    "struct tdt_context *cx, int n)\n{\n"
		    "\tstruct %s_key key = { child, cx, TDT_PANICKED };\n\n"
		    "\tbsearch(&key, &n, 1, sizeof(n), %s_compare);\n\treturn key.r;\n}\n\n",
		    name, name, name);
		break;
	}
}

/* The call of a link, with the arguments `child`, cx and `n`. */
static void call_of(char *call, size_t size, const char *name, enum way way, const char *child,
		    const char *n)
{
	static const char *const heads[] = {
		[PLAIN] = "(",
		[POINTER] = "_pointer(",
		[ARGUMENTS] = "_many(1, 2, 3, 4, 5, 6, 7, ",
		[BSEARCH] = "_search(",
	};

	snprintf(call, size, "%s%s%s, cx, %s)", name, heads[way], child, n);
}

struct chain {
	char name[32]; /* of the outermost link; empty: the child is polled as it is */
	enum way way;
};

/* Print links of kind `i`, the `number`th chain of them. */
static struct chain print_chain(int i, int number)
{
	struct chain chain = { "", PLAIN };
	int n = below(LINKS_MAX);

	for (int j = 0; j < n; j++) {
		const struct link *link = pick_link();
		char call[160] = "tdt_future_poll(child, cx)", name[32];

		if (chain.name[0] != '\0')
			call_of(call, sizeof call, chain.name, chain.way, "child", "n");
		snprintf(name, sizeof name, "h%d_%d_%d", i, number, j);
		printf("%s\ntdt_poll_t %s(const struct tdt_future *child, struct tdt_context *cx, "
		       "int n)\n{\n"
		       "\ttdt_poll_t r;\n\n",
		       link->head, name);
		print_body(link->body, name, call);
		printf("}\n\n");
		memcpy(chain.name, name, sizeof name);
		chain.way = one_in(2) ? PLAIN : (enum way)below(4);
		print_way(chain.name, chain.way);
	}
	return chain;
}

/* The poll of `child` through the chain. */
static const char *poll_of(const struct chain *chain, const char *child)
{
	static char call[160];

	if (chain->name[0] != '\0')
		call_of(call, sizeof call, chain->name, chain->way, child, "0");
	else
		snprintf(call, sizeof call, "tdt_future_poll(%s, cx)", child);
	return call;
}

/* --- Kinds of futures ---------------------------------------------------------------- */

static void print_head(int i)
{
	printf("static%s tdt_poll_t f%d_poll(void *state, struct tdt_context *cx)\n{\n",
	       one_in(4) ? " inline" : "", i);
}

static void print_leaf(int i)
{
	static const char *const slots[] = { "TRUTH_EMPTIED", "TRUTH_EMPTIED", "TRUTH_KEPT" };
	bool late = one_in(2), helped = one_in(2), ends = one_in(3);

	leaves[i] = 1;
	if (helped)
		printf(
		    "static%s void f%d_wait(struct truth_leaf *leaf, struct tdt_context *cx)\n{\n"
		    "\ttruth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));\n}\n\n",
		    one_in(2) ? " inline" : " __attribute__((noinline))", i);
	print_head(i);
	printf("\tstruct truth_leaf *leaf = state;\n\n\ttruth_leaf_polled(leaf);\n");
	/* A leaf that looks first clones only if it waits, one that looks late clones always. */
	if (!late)
		printf("\tif (truth_leaf_ready(leaf))\n\t\treturn TDT_READY;\n");
	if (helped)
		printf("\tf%d_wait(leaf, cx);\n", i);
	else
		printf("\ttruth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));\n");
	printf(late ? "\treturn truth_leaf_ready(leaf) ? TDT_READY : TDT_PENDING;\n}\n\n"
		    : "\treturn TDT_PENDING;\n}\n\n");
	printf("static struct tdt_future f%d(void)\n{\n\treturn truth_leaf_new(f%d_poll, ", i, i);
	if (ends)
		printf("%d", below(4));
	else
		printf("TRUTH_FOR_EVER");
	printf(", %s);\n}\n\n", PICK(slots));
}

/* A kind with a higher number than `i` that has not more than `room` leaves; the last has one. */
static int child_of(int i, int n, int room)
{
	int child = i + 1 + below(n - i - 1);

	while (leaves[child] > room)
		child = child == n - 1 ? i + 1 : child + 1;
	return child;
}

/* Print the children of a future; how many leaves they have together. */
static int print_children(int i, int n, int count)
{
	int sum = 0;

	printf("static struct tdt_future f%d(void)\n{\n\treturn truth_children_new(f%d_poll, %d", i,
	       i, count);
	for (int j = 0; j < count; j++) {
		int child = child_of(i, n, LEAVES_MAX - sum - (count - j - 1));

		printf(", f%d()", child);
		sum += leaves[child];
	}
	printf(");\n}\n\n");
	return sum;
}

static void print_async(int i, int n)
{
	int awaits = 1 + below(4);

	printf("struct f%d {\n\tstruct tdt_async async;\n\tint i;\n};\n\n", i);
	print_head(i);
	printf("\tstruct f%d *f = state;\n\n\tTDT_BEGIN(&f->async, cx);\n", i);
	for (int j = 0; j < awaits; j++) {
		int child = child_of(i, n, LEAVES_MAX);

		switch (below(4)) {
		case 0:
			printf("\tfor (f->i = 0; f->i < %d; f->i++)\n\t", 1 + below(4));
			break;
		case 1:
			printf("\tif (truth_zero() == 0)\n\t");
			break;
		default:
			break;
		}
		if (one_in(8))
			printf("\tTDT_AWAIT(truth_traced(f%d()));\n", child);
		else
			printf("\tTDT_AWAIT(f%d());\n", child);
		leaves[i] = leaves[child] > leaves[i] ? leaves[child] : leaves[i];
	}
	printf("\tTDT_END();\n}\n\n");
	printf(
	    "static struct tdt_future f%d(void)\n{\n"
	    "\treturn TDT_ASYNC_NEW(f%d_poll, (struct f%d){ 0 });\n}\n\n",
	    i, i, i);
}

static void print_single(int i, int n)
{
	struct chain chain = print_chain(i, 0);

	print_head(i);
	printf("\tstruct truth_children *children = state;\n\ttdt_poll_t r = %s;\n\n",
	       poll_of(&chain, "&children->child[0]"));
	if (!one_in(4)) /* else it may be a tail position */
		printf("\tTDT_KEEP_FRAME();\n");
	printf("\treturn r;\n}\n\n");
	leaves[i] = print_children(i, n, 1);
}

static void print_loop(int i, int n, bool join)
{
	struct chain chain = print_chain(i, 0);

	print_head(i);
	printf("\tstruct truth_children *children = state;\n\tint pending = 0;\n\n"
	       "\tfor (int i = 0; i < children->n; i++) {\n"
	       "\t\tstruct tdt_future *child = &children->child[i];\n"
	       "\t\ttdt_poll_t r;\n\n\t\tif (tdt_future_is_none(child))\n\t\t\tcontinue;\n\t\tr = "
	       "%s;\n"
	       "\t\tif (r == TDT_PENDING)\n\t\t\tpending++;\n",
	       poll_of(&chain, "child"));
	if (join)
		printf(
		    "\t\telse\n\t\t\ttdt_future_drop(child);\n\t}\n"
		    "\treturn pending != 0 ? TDT_PENDING : TDT_READY;\n}\n\n");
	else
		printf("\t\telse {\n\t\t\ttruth_children_drop(children);\n\t\t\treturn "
		       "TDT_READY;\n\t\t}\n\t}\n"
		       "\treturn TDT_PENDING;\n}\n\n");
	leaves[i] = print_children(i, n, 2 + below(3));
}

/* The children one by one in the text: all, or each after the one before is ready. */
static void print_straight(int i, int n, bool join)
{
	int count = 2 + below(2);
	struct chain chains[3];

	for (int j = 0; j < count; j++)
		chains[j] = print_chain(i, j);
	print_head(i);
	printf("\tstruct truth_children *children = state;\n\tint pending = 0;\n\n");
	for (int j = 0; j < count; j++) {
		char child[32];

		snprintf(child, sizeof child, "&children->child[%d]", j);
		printf("\tif (!tdt_future_is_none(%s)) {\n\t\tif (%s == "
		       "TDT_PENDING)\n\t\t\t%s;\n\t\telse\n"
		       "\t\t\ttdt_future_drop(%s);\n\t\tTDT_KEEP_FRAME();\n\t}\n",
		       child, poll_of(&chains[j], child), join ? "pending++" : "return TDT_PENDING",
		       child);
	}
	printf("\treturn pending != 0 ? TDT_PENDING : TDT_READY;\n}\n\n");
	leaves[i] = print_children(i, n, count);
}

static void print_combined(int i, int n)
{
	int count = 2 + below(3);

	printf("static struct tdt_future f%d(void)\n{\n\tstruct tdt_future futures[] = { ", i);
	for (int j = 0; j < count; j++) {
		int child = child_of(i, n, LEAVES_MAX - leaves[i] - (count - j - 1));

		printf("%sf%d()", j > 0 ? ", " : "", child);
		leaves[i] += leaves[child];
	}
	printf(" };\n\n\treturn %s;\n}\n\n",
	       one_in(3) ? "tdt_select(futures, sizeof(futures) / sizeof(futures[0]), NULL)"
			 : "tdt_join_all(futures, sizeof(futures) / sizeof(futures[0]))");
}

int main(int argc, char **argv)
{
	int n = 0;

	if (argc != 3)
		return 2;
	read_links(argv[2]);
	random_state = strtoull(argv[1], NULL, 0);
	clang = one_in(2);
	print_build();
	printf("// generate %s\n#include \"truth.h\"\n\nconst unsigned truth_plain_polls = %d;\n\n",
	       argv[1], one_in(2) ? 0 : below(64));
	n = 8 + below(KINDS_MAX - 8);
	for (int i = n - 1; i >= 0; i--) {
		if (i >= n - 2 || (i > n / 2 && one_in(3))) {
			print_leaf(i);
			continue;
		}
		switch (i > 0 ? below(8)
			      : 2 + 2 * below(2)) { /* the root joins, so it seldom ends */
		case 0:
		case 1:
			print_single(i, n);
			break;
		case 2:
			print_loop(i, n, true);
			break;
		case 3:
			print_loop(i, n, false);
			break;
		case 4:
			print_straight(i, n, i == 0 || !one_in(4));
			break;
		case 5:
			print_combined(i, n);
			break;
		default:
			print_async(i, n);
			break;
		}
	}
	printf("struct tdt_future truth_root(void)\n{\n\treturn f0();\n}\n");
	return 0;
}
