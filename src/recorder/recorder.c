// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Starting and stopping the recorder, and the recorder's thread.
 *
 * The program's block is used again when the recorder is started again.  If the options ask for
 * another one, or if the recorder has only run for readers outside and they are gone, the block is
 * *retired*: nobody begins to use it any more, and the recorder's thread frees it when nobody does.
 * A thread may be in the middle of writing an event.
 */

#include "recorder/recorder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/probe.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "base/service.h"
#include "base/text.h"
#include "host/start.h"
#include "recorder/block.h"
#include "recorder/clock.h"
#include "recorder/record.h"
#include "recorder/request.h"
#include "recorder/rings.h"
#include "recorder/service.h"
#include "recorder/trigger.h"
#include "recording/process.h"
#include "watch/watch.h"

pthread_mutex_t tdt__recorder_lock = PTHREAD_MUTEX_INITIALIZER;

/* What the options decide, besides tdt__record_options. */
struct settings {
	struct tdt__block_plan plan;
	enum tdt_recorder_stacks stacks;
	uint32_t every;
	uint64_t long_poll;
	uint64_t long_wait;
	char dir[PATH_MAX]; /* "": in memory */
	uint64_t dir_size;
};

/* All under tdt__recorder_lock. */
static struct settings in_force;
static struct tdt__block *in_use; /* NULL: there is none */
static bool for_readers;	   /* only readers outside have wanted the current block */
static struct tdt__block *retired; /* those that may still be in use */
static bool on;       /* the recorder runs */
static bool for_program, for_outside; /* who wants it to run: the program, readers outside */
static bool busy;     /* a thread starts the recorder, and has given up the lock */
static atomic_bool has_thread; /* without the lock: whoever exchanges false for true starts it */
static bool started;  /* tdt_recorder_start() was called: the environment no longer counts */
static int environment_error;
static pthread_cond_t switched = PTHREAD_COND_INITIALIZER; /* when `on` changes */

static struct tdt_recording *the_block(void)
{
	return in_use != NULL ? in_use->base : NULL;
}

/* --- The options ----------------------------------------------------------- */

#define MIB ((size_t)1 << 20)
#define TOTAL_LEAST (4 * MIB) /* unless the options have another */

static size_t or_default(size_t value, size_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static int read_stack_options(struct settings *settings, const struct tdt_recorder_options *options)
{
	if (options->stacks < TDT_STACKS_REMARKABLE || options->stacks > TDT_STACKS_EVERY)
		return -EINVAL;
	settings->stacks = (enum tdt_recorder_stacks)options->stacks;
	if (settings->stacks == TDT_STACKS_EVERY)
		settings->every = options->every != 0 ? options->every : 100;
	return 0;
}

static int read_sizes(struct settings *settings, const struct tdt_recorder_options *options)
{
	size_t size = or_default(options->ring_size, 16 * MIB);

	/* The number of slots of a ring has 32 bits. */
	if (size < TDT_RING_SIZE_MIN || size > UINT64_C(1) << 36)
		return -EINVAL;
	size = (size_t)1 << (63 - __builtin_clzll(size)); /* a power of two */
	settings->plan.ring_size = size;
	settings->plan.total_size =
		or_default(options->total_size, size < TOTAL_LEAST / 64 ? TOTAL_LEAST : 64 * size);
	settings->plan.is_file = options->dir != NULL;
	settings->dir_size = or_default(options->dir_size, 1024 * MIB);
	return tdt__block_plan(&settings->plan) ? 0 : -EINVAL;
}

static int read_recorder_options(struct settings *settings,
				 const struct tdt_recorder_options *theirs)
{
	struct tdt_recorder_options options;
	int error = tdt__options_read(&options, sizeof options, theirs);

	if (error == 0)
		error = read_stack_options(settings, &options);
	if (error == 0)
		error = read_sizes(settings, &options);
	settings->long_poll = or_default(options.long_poll_ns, 1000000);
	settings->long_wait = or_default(options.long_wait_ns, 100000000);
	if (error != 0 || options.dir == NULL)
		return error;
	if (options.dir[0] == '\0')
		return -EINVAL;
	/* The process may change its directory, and a child of fork() makes its file there, too. */
	return tdt__record_dir(settings->dir, options.dir);
}

/* --- The block ------------------------------------------------------------- */

static bool same_block(const struct settings *a, const struct settings *b)
{
	return memcmp(&a->plan, &b->plan, sizeof a->plan) == 0 && strcmp(a->dir, b->dir) == 0 &&
	       a->dir_size == b->dir_size;
}

static void fill_start(struct tdt_recording *block)
{
	struct tdt__moment now;

	tdt__moment_now(&now);
	block->clock = tdt__record_options.clock;
	block->hz = tdt__record_options.hz;
	block->start_ticks = now.ticks;
	block->start = now.monotonic;
	block->start_boot = now.boot;
	block->start_real = now.real;
	block->alive = now.boot;
	block->pid_namespace = tdt__process_namespace();
	strncpy(block->program, program_invocation_short_name, sizeof block->program - 1);
}

/*
 * Make a block that no other thread knows, in a file of `dir` if that is not "".  Returns 0 or a
 * negative errno.
 */
static int make_block(const struct settings *settings, const char *dir, struct tdt__block **made,
		      bool names_modules)
{
	struct tdt__block *block;
	int error = tdt__block_make(&block, &settings->plan, dir, settings->dir_size);

	if (error != 0)
		return error;
	block->names_modules = names_modules;
	fill_start(block->base);
	error = tdt__service_rings(block);
	if (error == 0) {
		*made = block;
		return 0;
	}
	tdt__record_file_remove(&block->file);
	tdt__block_free(block);
	return error;
}

/* Let threads use the block in the place of the current one, which is retired.  NULL: none. */
static void publish_block(struct tdt__block *block)
{
	struct tdt__block *old = in_use;

	in_use = block;
	/* Release the tables.  Sequentially consistent: pairs with tdt__block_enter(). */
	atomic_store_explicit(&tdt__recording_block, the_block(), memory_order_seq_cst);
	TDT__POKE(tdt__registry.rings, (uintptr_t)the_block());
	tdt__rings_abandon();
	if (old == NULL)
		return;
	old->next = retired;
	retired = old;
}

/* Free the retired blocks that nobody uses.  The recorder's thread. */
static void free_retired(void)
{
	struct tdt__block **at = &retired, *block;

	while ((block = *at) != NULL) {
		if (tdt__block_is_left(block->base)) {
			*at = block->next;
			tdt__block_free(block);
		} else
			at = &block->next;
	}
}

/* --- Starting and stopping ------------------------------------------------- */

static void apply_options(struct tdt_recording *block, const struct settings *settings)
{
	block->long_poll = settings->long_poll;
	block->long_wait = settings->long_wait;
	block->stack_every = settings->every;
	TDT__POKE(tdt__record_options.long_poll, tdt__ticks_of_ns(settings->long_poll));
	TDT__POKE(tdt__record_options.long_wait, settings->long_wait);
	TDT__POKE(tdt__record_options.every, settings->every);
	TDT__POKE(tdt__record_options.stacks, settings->stacks != TDT_STACKS_OFF);
}

static void record_to(struct tdt_recording *block)
{
	apply_options(block, &in_force);
	tdt__service_mark(block, TDT_EVENT_START);
	TDT__POKE(block->recording, 1);
}

static void switch_on(void)
{
	record_to(the_block());
	on = true;
	tdt__epoch_flag(TDT__EPOCH_RECORDING, true);
	tdt__recorder_on = 1;
	pthread_cond_signal(&switched);
}

static void switch_off(void)
{
	tdt__recorder_on = 0;
	tdt__epoch_flag(TDT__EPOCH_RECORDING, false);
	on = false;
	TDT__POKE(the_block()->recording, 0);
	tdt__service_mark(the_block(), TDT_EVENT_STOP);
	pthread_cond_signal(&switched);
}

/* Sleep until the next round, or until the recorder is switched. */
static void sleep_ms(unsigned ms)
{
	const struct timespec until = tdt__timespec(tdt__clock() + ms * UINT64_C(1000000));

	pthread_cond_clockwait(&switched, &tdt__recorder_lock, CLOCK_MONOTONIC, &until);
}

#define RETIRED_MS 10	 /* between two looks at retired blocks */
#define ROUND_MS 20      /* between two rounds while there is something to see */
#define IDLE_ROUND_MS 100
#define FIRST_ROUND_MS 2 /* at first, when threads begin to poll and take rings */
#define FIRST_ROUNDS 200u

/* For those who make room in the directory, in another PID namespace: each second is enough. */
static void show_life(struct tdt_recording *block)
{
	uint64_t now = tdt__clock_of(CLOCK_BOOTTIME);

	if (TDT__PEEK(block->alive) < now - now % (uint64_t)TDT__SECOND)
		TDT__POKE(block->alive, now);
}

/*
 * The thread allocates before it does anything else.  With the first allocation of a thread, glibc
 * reserves address space for ever: a host that listens has that from the beginning, and not from
 * the first long poll of a recording on.
 */
static void *tdt_recorder_thread(void *nothing)
{
	void *volatile first = malloc(1);
	unsigned rounds = 0; /* since the recorder was switched on */

	(void)nothing;
	free(first);
	pthread_setname_np(pthread_self(), "tdt-recorder");
	pthread_mutex_lock(&tdt__recorder_lock);
	for (;;) {
		struct tdt__block *block = in_use;
		bool active;

		free_retired();
		if (!on) {
			if (retired != NULL)
				sleep_ms(RETIRED_MS);
			else
				pthread_cond_wait(&switched, &tdt__recorder_lock);
			rounds = 0;
			continue;
		}
		pthread_mutex_unlock(&tdt__recorder_lock);
		show_life(block->base);
		active = tdt__service_round(block);
		tdt__trigger_round();
		pthread_mutex_lock(&tdt__recorder_lock);
		if (on && rounds++ < FIRST_ROUNDS)
			sleep_ms(FIRST_ROUND_MS);
		else if (on)
			sleep_ms(active ? ROUND_MS : IDLE_ROUND_MS);
	}
	return NULL;
}

/*
 * At exit() and the end of main().  A child of a raw clone(2) may have the block of its
 * parent.  What destructors after this one do, and threads meanwhile, is recorded still.
 */
__attribute__((destructor)) static void note_exit(void)
{
	struct tdt_recording *block = tdt__block_enter();

	if (block == NULL)
		return;
	if (block->pid == (uint32_t)getpid())
		TDT__POKE(block->end, TDT_RECORDING_END_EXIT);
	tdt__block_leave();
}

/* Without the lock: see base/service.h. */
int tdt__recorder_need_thread(void)
{
	bool had = atomic_exchange(&has_thread, true);
	int error = had ? 0 : tdt__service_start(tdt_recorder_thread);

	if (error != 0)
		atomic_store(&has_thread, false);
	return error;
}

/* Make what the recorder needs, without the lock. */
static int prepare(const struct settings *settings, bool same, bool names_modules,
		   struct tdt__block **block)
{
	int error = tdt__recorder_need_thread();

	tdt__ticks_begin();
	if (error == 0 && settings->every != 0 && !tdt__watch_stock_spares())
		error = -ENOMEM;
	if (error == 0 && !same)
		error = make_block(settings, settings->dir, block, names_modules);
	return error;
}

/*
 * Start the recorder for the program or for readers outside: `*wants` becomes true.  If it runs for
 * the others, readers leave it as it is; the program's options replace those of readers.  Under the
 * lock, which is given up in between.
 */
static int start_locked(const struct settings *settings, bool *wants)
{
	struct tdt__block *block = NULL;
	bool same = the_block() != NULL && same_block(settings, &in_force);
	int error;

	if (*wants || busy)
		return -EALREADY;
	if (on && wants == &for_outside) {
		for_outside = true;
		return 0;
	}
	if (on)
		switch_off();
	busy = true;
	pthread_mutex_unlock(&tdt__recorder_lock);
	error = prepare(settings, same, wants == &for_program, &block);
	pthread_mutex_lock(&tdt__recorder_lock);
	busy = false;
	if (error == 0 && block != NULL) {
		publish_block(block);
		for_readers = true;
	}
	if (error == 0) {
		in_force = *settings;
		*wants = true;
		for_readers &= wants == &for_outside;
		if (!for_readers)
			TDT__POKE(in_use->names_modules, true);
	}
	if (for_program || for_outside)
		switch_on();
	return error;
}

/* Under the lock. */
static int stop_locked(bool *wants)
{
	if (!*wants)
		return -EALREADY;
	*wants = false;
	if (!on || for_program || for_outside)
		return 0;
	switch_off();
	if (for_readers)
		publish_block(NULL);
	return 0;
}

int tdt_recorder_start(const struct tdt_recorder_options *options)
{
	struct settings settings = { 0 };
	int saved = errno, error = read_recorder_options(&settings, options);

	if (error == 0)
		error = tdt__start();
	if (error == 0) {
		pthread_mutex_lock(&tdt__recorder_lock);
		started = true;
		error = start_locked(&settings, &for_program);
		pthread_mutex_unlock(&tdt__recorder_lock);
	}
	errno = error == 0 ? saved : -error;
	return error;
}

int tdt_recorder_stop(void)
{
	int saved = errno, error;

	pthread_mutex_lock(&tdt__recorder_lock);
	started = true;
	error = stop_locked(&for_program);
	pthread_mutex_unlock(&tdt__recorder_lock);
	errno = error == 0 ? saved : -error;
	return error;
}

/* --- For readers outside --------------------------------------------------- */

int tdt__recorder_outside_start(const struct tdt_recorder_options *options, bool *by_program)
{
	struct settings settings = { 0 };
	int error = read_recorder_options(&settings, options);

	if (error != 0)
		return error;
	pthread_mutex_lock(&tdt__recorder_lock);
	if (options->ring_size == 0 && the_block() != NULL) { /* go on in the block that there is */
		settings.plan = in_force.plan;
		settings.dir_size = in_force.dir_size;
		strcpy(settings.dir, in_force.dir);
	}
	if (!for_outside)
		error = start_locked(&settings, &for_outside);
	*by_program = for_program;
	pthread_mutex_unlock(&tdt__recorder_lock);
	return error == -EALREADY ? -EBUSY : error;
}

void tdt__recorder_outside_stop(bool *by_program)
{
	pthread_mutex_lock(&tdt__recorder_lock);
	stop_locked(&for_outside);
	*by_program = for_program;
	pthread_mutex_unlock(&tdt__recorder_lock);
}

/* --- How the recorder does ------------------------------------------------- */

static void fill_info(struct tdt_recorder_status *info, const struct tdt_recording *block)
{
	const struct tdt_recording_stacks *stacks;

	info->recording = on;
	info->environment = environment_error;
	if (block == NULL)
		return;
	stacks = (const void *)((const char *)block + block->stacks);
	info->missed = TDT__PEEK(block->missed);
	info->missed_polls = TDT__PEEK(block->missed_polls);
	info->lost_stacks = TDT__PEEK(stacks->lost);
	info->rings = tdt__rings_taken(block);
}

/* False: it has no room. */
static bool fill_path(const struct tdt_recorder_status *info, const struct tdt_recording *block)
{
	const char *path = block != NULL ? in_use->file.path : "";
	size_t size = strlen(path) + 1;

	if (info->path != NULL && size <= info->path_size)
		memcpy(info->path, path, size);
	return info->path == NULL || size <= info->path_size;
}

int tdt_recorder_info(struct tdt_recorder_status *info)
{
	struct tdt_recorder_status asked = { 0 }, ours = { 0 };
	size_t size = info != NULL ? info->size : 0;
	int error = size < sizeof size ? -EINVAL : 0;

	if (error == 0) {
		memcpy(&asked, info, size < sizeof asked ? size : sizeof asked);
		ours.size = size;
		ours.path = asked.path;
		ours.path_size = asked.path_size;
		pthread_mutex_lock(&tdt__recorder_lock);
		fill_info(&ours, the_block());
		error = fill_path(&ours, the_block()) ? 0 : -ERANGE;
		pthread_mutex_unlock(&tdt__recorder_lock);
	}
	if (error != 0)
		return tdt__result(error);
	memset(info, 0, size);
	memcpy(info, &ours, size < sizeof ours ? size : sizeof ours);
	return 0;
}

/* --- At a fork ------------------------------------------------------------- */

/*
 * The child goes on in memory.  A file would be too early: most children only execute another
 * program.  If there is no memory, the child does not record.  It does not record either for
 * readers of its parent.
 */
void tdt__recorder_forked(void)
{
	struct tdt__block *block;

	switched = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	has_thread = false;
	busy = false;
	for_outside = false;
	if (in_use != NULL)
		publish_block(NULL);
	/* Only this thread is left, and it does not write now.  The file is the parent's. */
	while ((block = retired) != NULL) {
		retired = block->next;
		tdt__block_free(block);
	}
	if (for_program && make_block(&in_force, "", &block, true) == 0) {
		publish_block(block);
		record_to(block->base);
		return;
	}
	tdt__recorder_on = 0;
	tdt__epoch_forked(TDT__EPOCH_RECORDING, false);
	on = for_program = false;
}

/*
 * Without the lock, `busy` keeps others away.  If no file can be made, the child goes on in memory.
 */
void tdt__recorder_resume(void)
{
	struct tdt__block *block;
	bool made;

	pthread_mutex_lock(&tdt__recorder_lock);
	if (on && !busy && !has_thread) {
		busy = true;
		pthread_mutex_unlock(&tdt__recorder_lock);
		tdt__recorder_need_thread();
		made = in_force.dir[0] != '\0' &&
		       make_block(&in_force, in_force.dir, &block, true) == 0;
		pthread_mutex_lock(&tdt__recorder_lock);
		busy = false;
		if (made) {
			publish_block(block);
			record_to(block->base);
			TDT__POKE(block->base->recording, on);
		}
	}
	pthread_mutex_unlock(&tdt__recorder_lock);
}

/* --- The environment ------------------------------------------------------- */

int64_t tdt__recorder_parse_size(const char *text)
{
	uint64_t bytes = 0;

	return *text == '\0' || (tdt__text_bytes(text, &bytes) && bytes <= INT64_MAX)
		       ? (int64_t)bytes
		       : -1;
}

bool tdt__recorder_parse_stacks(const char *text, struct tdt_recorder_options *options)
{
	char *end;
	unsigned long every;

	if (strcmp(text, "off") == 0)
		options->stacks = TDT_STACKS_OFF;
	else if (strcmp(text, "remarkable") == 0)
		options->stacks = TDT_STACKS_REMARKABLE;
	else if (*text >= '1' && *text <= '9') {
		every = strtoul(text, &end, 10);
		options->stacks = TDT_STACKS_EVERY;
		options->every = (uint32_t)every;
		return *end == '\0' && every <= UINT32_MAX;
	} else
		return *text == '\0';
	return true;
}

/*
 * What the environment says.  Returns 1 (record), 0 (do not) or a negative errno, because of the
 * variable `*wrong`.
 */
static int read_environment(struct tdt_recorder_options *options, const char **wrong)
{
	const char *size = secure_getenv("TDT_RECORD"),
		   *dir_size = secure_getenv("TDT_RECORD_DIR_SIZE"),
		   *stacks = secure_getenv("TDT_RECORD_STACKS");
	int64_t bytes = size != NULL ? tdt__recorder_parse_size(size) : 0,
		dir_bytes = dir_size != NULL ? tdt__recorder_parse_size(dir_size) : 0;

	*wrong = bytes < 0	 ? "TDT_RECORD"
		 : dir_bytes < 0 ? "TDT_RECORD_DIR_SIZE"
		 : stacks != NULL && !tdt__recorder_parse_stacks(stacks, options)
			 ? "TDT_RECORD_STACKS"
			 : NULL;
	if (*wrong != NULL)
		return -EINVAL;
	options->ring_size = (size_t)bytes;
	options->dir_size = (size_t)dir_bytes;
	options->dir = secure_getenv("TDT_RECORD_DIR");
	if (options->dir != NULL && options->dir[0] == '\0')
		options->dir = NULL;
	return bytes > 0;
}

/* If the directory cannot be used, record without it. */
static int start_by_environment(struct tdt_recorder_options *options)
{
	struct settings settings = { 0 };
	int error = read_recorder_options(&settings, options);

	if (error == 0)
		error = start_locked(&settings, &for_program);
	if (error != 0 && options->dir != NULL) {
		options->dir = NULL;
		start_by_environment(options);
	}
	return error;
}

void tdt__recorder_by_environment(void)
{
	struct tdt_recorder_options options = { .size = sizeof options };
	const char *wrong;
	int saved = errno, wanted = read_environment(&options, &wrong), error;
	bool records;

	pthread_mutex_lock(&tdt__recorder_lock);
	environment_error = wanted < 0 ? wanted : 0;
	if (wanted > 0 && !started)
		environment_error = start_by_environment(&options);
	error = environment_error;
	records = for_program;
	pthread_mutex_unlock(&tdt__recorder_lock);
	/* Without the lock, since a fork waits for that. */
	if (error != 0 && records)
		tdt__record_say("TDT_RECORD_DIR", error, "recording in memory only");
	else if (error != 0)
		tdt__record_say(wrong != NULL ? wrong : "TDT_RECORD", error, "nothing is recorded");
	errno = saved;
}
