// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark measures the naming of a trace's frames: those of a small program, of C++
 * templates, of one huge unit, of the same unit by link-time optimization, and of a library with
 * 300 MB of debug information.  Of the last three it measures the memory, too.
 *
 * Each of these is a library that is made here.  In each round a process of its own loads the
 * library and enters it from a future's poll, down to a leaf that lies 27 frames in.  The time
 * for the names is compared with eu-addr2line and addr2line, given the same addresses.  (Their
 * times include the start of a process; ours includes the names of this program's own frames.)
 */

#include <config.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tdt/async.h>
#include <tdt/trace.h>
#include <tdt/tree.h>

#include "report.h"

#define FRAMES 27
#define CHAIN (FRAMES - 1) /* from enter() to the leaf */
#define WARM 100 /* traces */

/* --- The programs ----------------------------------------------------------- */

static char directory[192];

/* Have all that is written here removed when this process ends, however it does. */
static void make_directory(void)
{
	const char *tmp = getenv("TMPDIR");
	char command[sizeof directory + 16], byte;
	int ends[2];
	pid_t pid;

	snprintf(directory, sizeof directory, "%s/tdt-symbols-XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(directory) == NULL || chdir(directory) != 0 || pipe2(ends, O_CLOEXEC) != 0)
		die(directory);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		setsid(); /* signals to those who wait for us are not for this one */
		close(ends[1]);
		close(STDOUT_FILENO);
		_exit(read(ends[0], &byte, 1) == 0 ? system(command) : 1);
	}
	close(ends[0]);
}

static FILE *source(const char *path)
{
	FILE *file = fopen(path, "we");

	if (file == NULL)
		die(path);
	return file;
}

/*
 * Functions, each with so many inlined levels.  CHAIN of them, far from each other, lead from
 * enter() to the leaf.
 */
static void write_chain(const char *path, int functions, int levels)
{
	FILE *file = source(path);
	int step = functions / CHAIN;

	fprintf(
	    file,
	    "#define INLINE static inline __attribute__((always_inline))\nvolatile int sink;\n");
	for (int i = 0; i < functions; i++)
		fprintf(file, "__attribute__((noinline)) int f%d(void (*leaf)(void));\n", i);
	for (int i = 0; i < functions; i++) {
		fprintf(file, "INLINE int f%d_0(void (*leaf)(void))\n{\n", i);
		if (i + step < CHAIN * step)
			fprintf(file, "\tsink += f%d(leaf);\n", i + step);
		else
			fprintf(file, "\tleaf();\n");
		fprintf(file, "\treturn sink;\n}\n");
		for (int level = 1; level < levels; level++)
			fprintf(
			    file,
			    "INLINE int f%d_%d(void (*leaf)(void))\n{\n\tsink += f%d_%d(leaf);\n"
			    "\treturn sink;\n}\n",
			    i, level, i, level - 1);
		fprintf(file, "int f%d(void (*leaf)(void))\n{\n\treturn sink += f%d_%d(leaf);\n}\n",
			i, i, levels - 1);
	}
	fprintf(file, "int enter(void (*leaf)(void))\n{\n\treturn sink += f0(leaf);\n}\n");
	fclose(file);
}

static void write_templates(const char *path)
{
	FILE *file = source(path);

	fprintf(file,
		"namespace outer { namespace {\n"
		"template <typename A, typename B> struct pair {};\n"
		"template <int N, typename T> struct step {\n"
		"\ttemplate <typename F> static __attribute__((noinline)) int run(F leaf)\n"
		"\t{\n\t\treturn 1 + step<N - 1, pair<int, T>>::run(leaf);\n\t}\n};\n"
		"template <typename T> struct step<0, T> {\n"
		"\ttemplate <typename F> static int run(F leaf)\n\t{\n\t\tleaf();\n\t\treturn "
		"1;\n\t}\n};\n"
		"} }\n"
		"extern \"C\" int enter(void (*leaf)(void))\n{\n"
		"\treturn 1 + outer::step<%d, long>::run(leaf);\n}\n",
		CHAIN);
	fclose(file);
}

/* A unit that is mostly types, for all others to be copies of it. */
static void write_types(const char *path, int types)
{
	FILE *file = source(path);

	for (int i = 0; i < types; i++) {
		fprintf(file, "struct s%d { struct s%d *a; ", i, i > 0 ? i - 1 : 0);
		for (int j = 0; j < 20; j++)
			fprintf(file, "%s m%d; ", j % 2 == 0 ? "int" : "long", j);
		fprintf(file, "};\n");
	}
	fprintf(file, "struct chain {\n\tint at, step, frames;\n\tvoid (*leaf)(void);\n};\n"
		      "extern int (*const __start_steps[])(struct chain *);\n"
		      "static __attribute__((noinline)) int step(struct chain *chain)\n{\n"
		      "\tint sum = 1;\n\tchain->at += chain->step;\n"
		      "\tif (--chain->frames > 0)\n\t\tsum += __start_steps[chain->at](chain);\n"
		      "\telse\n\t\tchain->leaf();\n\treturn sum + chain->at;\n}\n"
		      "static int (*const here)(struct chain *) __attribute__((section(\"steps\"), "
		      "used)) = step;\n");
	fclose(file);
}

static void write_types_entry(const char *path, int units)
{
	FILE *file = source(path);

	fprintf(file,
		"struct chain {\n\tint at, step, frames;\n\tvoid (*leaf)(void);\n};\n"
		"extern int (*const __start_steps[])(struct chain *);\n"
		"int enter(void (*leaf)(void))\n{\n"
		"\tstruct chain chain = { 0, %d, %d, leaf };\n\treturn __start_steps[0](&chain) + "
		"chain.at;\n}\n",
		units / CHAIN, CHAIN);
	fclose(file);
}

/* Run by the shell, with no output.  False: it failed. */
static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
	char command[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof command, format, arguments);
	va_end(arguments);
	return system(command) == 0;
}

static const char *compiler(const char *name, const char *configured)
{
	const char *chosen = getenv(name);

	return chosen != NULL && chosen[0] != '\0' ? chosen : configured;
}

static bool compile_c(const char *from, const char *to, const char *flags)
{
	return run("%s -g -O1 -fPIC -shared -Wl,--build-id %s %s -o %s >log 2>&1",
		   compiler("CC", BENCH_CC), flags, from, to);
}

static bool make_small(const char *library)
{
	write_chain("small.c", CHAIN, 1);
	return compile_c("small.c", library, "");
}

static bool make_huge(const char *library)
{
	write_chain("huge.c", quick ? 100 : 3000, 8);
	return compile_c("huge.c", library, "");
}

static bool make_lto(const char *library)
{
	write_chain("lto.c", quick ? 100 : 3000, 8);
	return compile_c("lto.c", library, "-flto");
}

static bool make_templates(const char *library)
{
	write_templates("templates.cc");
	return run("%s -g -O1 -fPIC -shared -Wl,--build-id templates.cc -o %s >log 2>&1",
		   compiler("CXX", BENCH_CXX), library);
}

/*
 * The same object again and again: the linker makes units of their own of them, and nothing in them
 * has a name.
 */
static bool make_big(const char *library)
{
	int units = quick ? 3 * FRAMES : 900;
	FILE *file = source("objects");

	for (int i = 0; i < units; i++)
		fprintf(file, "types.o\n");
	fclose(file);
	write_types("types.c", quick ? 10 : 1300);
	write_types_entry("entry.c", units);
	return run("%s -g -O1 -fno-eliminate-unused-debug-types -fPIC -c types.c >log 2>&1",
		   compiler("CC", BENCH_CC)) &&
	       compile_c("entry.c @objects", library, "");
}

/* --- Ours: in a process of its own ---------------------------------------------- */

struct memory {
	double anonymous, file; /* MB */
};

struct named {
	double first, warm; /* us, ns a frame */
	struct memory memory;
	int n;
	uint64_t address[FRAMES + 3]; /* in the file, of the calls */
};

static struct tdt_context *context;
static int (*enter)(void (*leaf)(void));

static void leaf(void)
{
	const struct tdt_waker *clone = tdt_waker_clone(context->waker);

	tdt_waker_drop(clone);
}

static tdt_poll_t poll_library(void *state, struct tdt_context *cx)
{
	(void)state;
	context = cx;
	enter(leaf);
	return TDT_PENDING;
}

static void nothing(void *state)
{
	(void)state;
}

static const struct tdt_waker *same(const struct tdt_waker *waker)
{
	return waker;
}

static void wake(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable idle = { same, wake, wake, wake };
static const struct tdt_waker nobody = { &idle };

static struct tdt_trace *take(struct tdt_traced *traced)
{
	struct tdt_context cx = { &nobody };
	struct tdt_trace *trace = NULL;
	struct tdt_future asked = tdt_backtrace_async(traced->handle, NULL, &trace, NULL);

	for (int i = 0; i < 3 && tdt_future_poll(&asked, &cx) == TDT_PENDING; i++)
		tdt_future_poll(&traced->future, &cx);
	tdt_future_drop(&asked);
	if (trace == NULL)
		die("tdt_backtrace_async");
	return trace;
}

static double name(const struct tdt_trace *trace)
{
	int64_t start = now();

	if (tdt_trace_root(trace) == NULL)
		die("tdt_trace_root");
	return (double)(now() - start);
}

static struct memory resident(void)
{
	struct memory memory = { 0, 0 };
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long size;

	if (file == NULL)
		die("/proc/self/status");
	while (fgets(line, sizeof line, file) != NULL) {
		if (sscanf(line, "RssAnon: %ld", &size) == 1)
			memory.anonymous = (double)size / 1024;
		else if (sscanf(line, "RssFile: %ld", &size) == 1)
			memory.file = (double)size / 1024;
	}
	fclose(file);
	return memory;
}

static void keep_addresses(struct named *named, const struct tdt_trace *trace)
{
	uint64_t pc[2 * FRAMES];
	size_t n = tdt_trace_stack(trace, 0, pc, 2 * FRAMES, NULL);
	Dl_info library, around;

	if (dladdr((void *)(uintptr_t)enter, &library) == 0)
		die("dladdr");
	for (size_t i = 0; i < n && i < 2 * FRAMES && named->n < FRAMES + 3; i++)
		if (dladdr((void *)(uintptr_t)(pc[i] - 1), &around) != 0 &&
		    around.dli_fbase == library.dli_fbase)
			named->address[named->n++] = pc[i] - 1 - (uintptr_t)library.dli_fbase;
}

static struct named name_in(const char *library)
{
	void *opened = dlopen(library, RTLD_NOW);
	struct named named = { .n = 0 };
	struct tdt_traced traced = tdt_traced((struct tdt_future){ NULL, poll_library, nothing });
	struct memory before, after;
	struct tdt_trace *trace;

	if (opened == NULL || (*(void **)&enter = dlsym(opened, "enter")) == NULL ||
	    traced.handle == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	trace = take(&traced);
	before = resident();
	named.first = name(trace) / 1000;
	after = resident();
	named.memory =
	    (struct memory){ after.anonymous - before.anonymous, after.file - before.file };
	keep_addresses(&named, trace);
	tdt_trace_free(trace);
	for (int i = 0; i < WARM; i++) {
		trace = take(&traced);
		named.warm += name(trace) / WARM / named.n;
		tdt_trace_free(trace);
	}
	return named;
}

static struct named name_in_child(const char *library)
{
	struct named named;
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		named = name_in(library);
		_exit(write(ends[1], &named, sizeof named) == (ssize_t)sizeof named ? 0 : 1);
	}
	close(ends[1]);
	if (read(ends[0], &named, sizeof named) != (ssize_t)sizeof named ||
	    waitpid(pid, NULL, 0) != pid)
		die(library);
	close(ends[0]);
	return named;
}

/* --- Theirs: as processes -------------------------------------------------------- */

struct ran {
	double time;   /* us */
	double memory; /* MB at most */
};

/* False: it failed. */
static bool run_addr2line(const char *program, const char *library, const struct named *named,
			  struct ran *ran)
{
	char text[FRAMES + 3][24];
	const char *argument[FRAMES + 9] = { program, "-i", "-f", "-e", library };
	posix_spawn_file_actions_t quietly;
	struct rusage usage;
	int64_t start = now();
	pid_t pid;
	int status;

	for (int i = 0; i < named->n; i++) {
		snprintf(text[i], sizeof text[i], "%#" PRIx64, named->address[i]);
		argument[5 + i] = text[i];
	}
	posix_spawn_file_actions_init(&quietly);
	posix_spawn_file_actions_addopen(&quietly, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&quietly, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, program, &quietly, NULL, (char **)(uintptr_t)argument, environ) !=
		0 ||
	    wait4(pid, &status, 0, &usage) != pid)
		die(program);
	posix_spawn_file_actions_destroy(&quietly);
	*ran = (struct ran){ (double)(now() - start) / 1000, (double)usage.ru_maxrss / 1024 };
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* --- Both ------------------------------------------------------------------------ */

/* The figures of one program, or of its memory. */
struct other {
	const char *program;
	struct figure *time, *memory;
};

static bool is_there(const char *program)
{
	return run("command -v %s >/dev/null 2>&1", program);
}

static struct figure *other_figure(const char *program, const char *name, bool measured)
{
	struct figure *it = figure(name, NULL);

	if (!is_there(program))
		remark("  (%s is not installed)", program);
	else if (!measured)
		remark("  (%s knows none of the addresses: perhaps there is no .debug_aranges)",
		       program);
	return it;
}

static void measure(const char *what, bool (*make)(const char *library), bool memory)
{
	static int made;
	struct other elf = { "eu-addr2line", NULL, NULL }, bin = { "addr2line", NULL, NULL };
	struct figure *first, *warm, *anonymous = NULL, *file = NULL;
	bool use_elf, use_bin;
	struct named named;
	char library[sizeof directory + 32];
	struct ran ran;

	snprintf(library, sizeof library, "%s/library%d.so", directory, made++);
	if (!make(library)) {
		remark("%s: can't be compiled.", what);
		return;
	}
	named = name_in_child(library);
	use_elf = is_there(elf.program) && run_addr2line(elf.program, library, &named, &ran);
	use_bin = is_there(bin.program) && run_addr2line(bin.program, library, &named, &ran);
	remark("%s, a trace of %d frames:", what, named.n);
	elf.time = other_figure(elf.program, "  eu-addr2line -i, as a process", use_elf);
	bin.time = other_figure(bin.program, "  addr2line -i, as a process", use_bin);
	first = figure("  the first tdt_trace_root() in a process", elf.time);
	if (use_elf)
		ratio_at_most(first, 1);
	warm = figure("  another", NULL);
	in_unit(warm, "ns a frame");
	at_most(warm, 1000);
	if (memory) {
		elf.memory = figure("  eu-addr2line, all of its memory", NULL);
		in_unit(elf.memory, "MB");
		bin.memory = figure("  addr2line, all of its memory", NULL);
		in_unit(bin.memory, "MB");
		anonymous = figure("  ours more after the first, of its own", NULL);
		in_unit(anonymous, "MB");
		file = figure("  ours more after the first, mapped files", NULL);
		in_unit(file, "MB");
	}
	for (int i = 0; i < rounds; i++) {
		named = name_in_child(library);
		add(first, named.first);
		add(warm, named.warm);
		if (memory) {
			add(anonymous, named.memory.anonymous);
			add(file, named.memory.file);
		}
		if (use_elf && run_addr2line(elf.program, library, &named, &ran)) {
			add(elf.time, ran.time);
			if (memory)
				add(elf.memory, ran.memory);
		}
		if (use_bin && run_addr2line(bin.program, library, &named, &ran)) {
			add(bin.time, ran.time);
			if (memory)
				add(bin.memory, ran.memory);
		}
	}
	unlink(library);
}

int main(int argc, char **argv)
{
	report_start(argc, argv, "What does it cost to name the frames of a trace?", "us", 7);
	make_directory();
	measure("A small program", make_small, false);
	measure("C++ templates", make_templates, false);
	measure(quick ? "100 functions with 8 inlined levels"
		      : "3,000 functions with 8 inlined levels",
		make_huge, true);
	measure("The same by -flto", make_lto, true);
	measure(quick ? "81 units" : "900 units, 300 MB of debug information", make_big, true);
	return report_end();
}
