// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Starting and stopping the recorder, and the recorder's thread.
 *
 * A block is made once, and is used again when the recorder is started again.  If the options ask
 * for another one, the old block loses its slots, but its header and tables stay mapped for ever: a
 * thread may be in the middle of writing an event.
 */

#include <config.h>

#include "recorder/recorder.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tdt/probe.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/service.h"
#include "host/start.h"
#include "recorder/block.h"
#include "recorder/clock.h"
#include "recorder/files.h"
#include "recorder/record.h"
#include "recorder/rings.h"
#include "recorder/service.h"
#include "recorder/trigger.h"
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
static struct tdt__record_file record_file;
static bool on;       /* the recorder runs */
static bool for_program, for_outside; /* who wants it to run: the program, readers outside */
static bool busy;     /* a thread starts the recorder, and has given up the lock */
static bool has_thread;
static bool started;  /* tdt_recorder_start() was called: the environment no longer counts */
static int environment_error;
static pthread_cond_t switched = PTHREAD_COND_INITIALIZER; /* when `on` changes */

static struct tdt_recording *the_block(void)
{
	return atomic_load_explicit(&tdt__recording_block, memory_order_relaxed);
}

/* --- The options ----------------------------------------------------------- */

#define MIB ((size_t)1 << 20)
#define TOTAL_LEAST (4 * MIB) /* unless the options have another */

static size_t or_default(size_t value, size_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static size_t power_below(size_t size)
{
	return (size_t)1 << (63 - __builtin_clzll(size));
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
	size = power_below(size);
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
	return realpath(options.dir, settings->dir) != NULL ? 0 : -errno;
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
	strncpy(block->program, program_invocation_short_name, sizeof block->program - 1);
}

#define FIRST_MOST 16

/* Rings of polls that are allocated in a file at first: a runtime has a worker on each CPU. */
static uint32_t first_rings(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 && cpus < FIRST_MOST ? (uint32_t)cpus + 1 : FIRST_MOST;
}

/* Make a block that no other thread knows.  Returns 0 or a negative errno. */
static int make_block(const struct settings *settings, struct tdt__record_file *file,
		      struct tdt_recording **made)
{
	uint64_t size = tdt__block_size(&settings->plan);
	void *memory = NULL;
	int error = 0;

	file->path[0] = '\0';
	if (settings->dir[0] != '\0')
		error = tdt__record_file_make(file, settings->dir, settings->dir_size, size,
					      tdt__block_plan_fixed(&settings->plan), &memory);
	else if ((memory = tdt__block_map(size)) == NULL)
		error = -ENOMEM;
	if (error != 0)
		return error;
	*made = memory;
	tdt__block_fill(*made, &settings->plan);
	fill_start(*made);
	error = tdt__service_rings(*made, file, first_rings());
	if (error == 0)
		return 0;
	munmap(memory, size);
	tdt__record_file_remove(file);
	return error;
}

/* Let threads use the block in place of the in_force one, which loses its slots. */
static void publish_block(struct tdt_recording *block)
{
	struct tdt_recording *old = the_block();

	/* Release the tables.  Pairs with the threads that take rings. */
	atomic_store_explicit(&tdt__recording_block, block, memory_order_release);
	TDT__POKE(tdt__registry.rings, (uintptr_t)block);
	if (old == NULL)
		return;
	tdt__rings_abandon(old);
	tdt__block_drop_slots(old);
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

static void switch_on(void)
{
	apply_options(the_block(), &in_force);
	tdt__service_mark(the_block(), TDT_EVENT_START);
	TDT__POKE(the_block()->recording, 1);
	on = true;
	tdt__epoch_record(true);
	tdt_recorder_on = 1;
	pthread_cond_signal(&switched);
}

static void switch_off(void)
{
	tdt_recorder_on = 0;
	tdt__epoch_record(false);
	on = false;
	TDT__POKE(the_block()->recording, 0);
	tdt__service_mark(the_block(), TDT_EVENT_STOP);
	pthread_cond_signal(&switched);
}

/* Sleep until the next round, or until the recorder is switched. */
static void sleep_ms(unsigned ms)
{
	uint64_t time = tdt__clock() + ms * UINT64_C(1000000);
	const struct timespec until = { (time_t)(time / TDT__SECOND), (long)(time % TDT__SECOND) };

	pthread_cond_clockwait(&switched, &tdt__recorder_lock, CLOCK_MONOTONIC, &until);
}

#define ROUND_MS 20      /* between two rounds while there is something to see */
#define IDLE_ROUND_MS 100
#define FIRST_ROUND_MS 2 /* at first, when threads begin to poll and take rings */
#define FIRST_ROUNDS 200u

static void *tdt_recorder_thread(void *nothing)
{
	unsigned rounds = 0; /* since the recorder was switched on */

	(void)nothing;
	pthread_setname_np(pthread_self(), "tdt-recorder");
	pthread_mutex_lock(&tdt__recorder_lock);
	for (;;) {
		struct tdt_recording *block = the_block();
		struct tdt__record_file file = record_file;
		bool active;

		if (!on) {
			pthread_cond_wait(&switched, &tdt__recorder_lock);
			rounds = 0;
			continue;
		}
		pthread_mutex_unlock(&tdt__recorder_lock);
		active = tdt__service_round(block, &file);
		tdt__trigger_round();
		pthread_mutex_lock(&tdt__recorder_lock);
		if (on && rounds++ < FIRST_ROUNDS)
			sleep_ms(FIRST_ROUND_MS);
		else if (on)
			sleep_ms(active ? ROUND_MS : IDLE_ROUND_MS);
	}
	return NULL;
}

/* Without the lock: see base/service.h.  `busy` keeps others away. */
static int need_recorder_thread(void)
{
	int error = has_thread ? 0 : tdt__service_start(tdt_recorder_thread);

	has_thread = error == 0;
	return error;
}

/* Make what the recorder needs, without the lock. */
static int prepare(const struct settings *settings, bool same, struct tdt__record_file *file,
		   struct tdt_recording **block)
{
	int error = need_recorder_thread();

	tdt__ticks_begin();
	if (error == 0 && settings->every != 0 && !tdt__watch_stock_spares())
		error = -ENOMEM;
	if (error == 0 && !same)
		error = make_block(settings, file, block);
	return error;
}

/*
 * Start the recorder for the program or for readers outside: `*wants` becomes true.  If it runs for
 * the others, readers leave it as it is; the program's options replace those of readers.  Under the
 * lock, which is given up in between.
 */
static int start_locked(const struct settings *settings, bool *wants)
{
	static struct tdt__record_file file;
	struct tdt_recording *block = NULL;
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
	error = prepare(settings, same, &file, &block);
	pthread_mutex_lock(&tdt__recorder_lock);
	busy = false;
	if (error == 0 && block != NULL) {
		publish_block(block);
		record_file = file;
	}
	if (error == 0) {
		in_force = *settings;
		*wants = true;
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
	if (on && !for_program && !for_outside)
		switch_off();
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

/* Go on in the block that there is.  Under the lock. */
static void keep_block(struct settings *settings)
{
	settings->plan = in_force.plan;
	settings->dir_size = in_force.dir_size;
	strcpy(settings->dir, in_force.dir);
}

int tdt__recorder_outside_start(const struct tdt_recorder_options *options, bool *by_program)
{
	struct settings settings = { 0 };
	int error = read_recorder_options(&settings, options);

	if (error != 0)
		return error;
	pthread_mutex_lock(&tdt__recorder_lock);
	if (options->ring_size == 0 && the_block() != NULL)
		keep_block(&settings);
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
	strcpy(info->path, record_file.path);
}

int tdt_recorder_info(struct tdt_recorder_status *info)
{
	struct tdt_recorder_status ours = { 0 };
	size_t size = info != NULL ? info->size : 0;

	if (size < sizeof size) {
		errno = EINVAL;
		return -EINVAL;
	}
	pthread_mutex_lock(&tdt__recorder_lock);
	fill_info(&ours, the_block());
	pthread_mutex_unlock(&tdt__recorder_lock);
	ours.size = size;
	memset(info, 0, size);
	memcpy(info, &ours, size < sizeof ours ? size : sizeof ours);
	return 0;
}

/* --- At a fork ------------------------------------------------------------- */

/*
 * The child goes on in memory, in a block at the same address.  A file would be too early: most
 * children only execute another program.  If there is no memory, the child does not record.  It
 * does not record either for readers of its parent.
 */
void tdt__recorder_forked(void)
{
	struct tdt_recording *block = the_block();

	switched = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	has_thread = false;
	busy = false;
	record_file.path[0] = '\0';
	if (block == NULL)
		return;
	for_outside = false;
	if (!for_program || !tdt__block_renew(block, &in_force.plan)) {
		atomic_store_explicit(&tdt__recording_block, NULL, memory_order_relaxed);
		TDT__POKE(tdt__registry.rings, 0);
		tdt_recorder_on = 0;
		tdt__epoch_forked(false);
		on = for_program = false;
		return;
	}
	fill_start(block);
	tdt__service_rings(block, &record_file, 0);
	apply_options(block, &in_force);
	tdt__service_mark(block, TDT_EVENT_START);
	block->recording = 1;
}

/*
 * Without the lock; `busy` keeps others away.  If no file can be made, the child goes on in memory.
 */
static struct tdt_recording *make_own_file(const struct settings *settings,
					   struct tdt__record_file *file)
{
	struct tdt_recording *block = NULL;

	if (settings->dir[0] == '\0' || make_block(settings, file, &block) != 0)
		file->path[0] = '\0';
	return block;
}

void tdt__recorder_resume(void)
{
	static struct tdt__record_file file;
	struct tdt_recording *block;

	pthread_mutex_lock(&tdt__recorder_lock);
	if (on && !busy && !has_thread) {
		busy = true;
		pthread_mutex_unlock(&tdt__recorder_lock);
		need_recorder_thread();
		block = make_own_file(&in_force, &file);
		pthread_mutex_lock(&tdt__recorder_lock);
		busy = false;
		if (block != NULL) {
			publish_block(block);
			record_file = file;
			apply_options(block, &in_force);
			tdt__service_mark(block, TDT_EVENT_START);
			TDT__POKE(block->recording, on);
		}
	}
	pthread_mutex_unlock(&tdt__recorder_lock);
}

/* --- The environment ------------------------------------------------------- */

int64_t tdt__recorder_parse_size(const char *text)
{
	static const char units[] = "KMG";
	int64_t value = 0;
	const char *unit;

	if (*text == '\0')
		return 0;
	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *text - '0', &value))
			return -1;
	if (*text == '\0')
		return value;
	unit = strchr(units, *text);
	if (unit == NULL || text[1] != '\0' ||
	    __builtin_mul_overflow(value, (int64_t)1024 << 10 * (unit - units), &value))
		return -1;
	return value;
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

/* What the environment says.  Returns 1 (record), 0 (do not) or a negative errno. */
static int read_environment(struct tdt_recorder_options *options)
{
	const char *size = secure_getenv("TDT_RECORD"),
		   *stacks = secure_getenv("TDT_RECORD_STACKS");
	int64_t bytes = size != NULL ? tdt__recorder_parse_size(size) : 0;

	if (bytes < 0 || (stacks != NULL && !tdt__recorder_parse_stacks(stacks, options)))
		return -EINVAL;
	options->ring_size = (size_t)bytes;
	options->dir = secure_getenv("TDT_RECORD_DIR");
	if (options->dir != NULL && options->dir[0] == '\0')
		options->dir = NULL;
	return bytes > 0;
}

static int start_with(const struct tdt_recorder_options *options)
{
	struct settings settings = { 0 };
	int error = read_recorder_options(&settings, options);

	return error == 0 ? start_locked(&settings, &for_program) : error;
}

/* If the directory cannot be used, record without it. */
static int start_by_environment(struct tdt_recorder_options *options)
{
	int error = start_with(options);

	if (error != 0 && options->dir != NULL) {
		options->dir = NULL;
		start_with(options);
	}
	return error;
}

static void record_by_environment(void)
{
	struct tdt_recorder_options options = { .size = sizeof options };
	int saved = errno, wanted = read_environment(&options);

	pthread_mutex_lock(&tdt__recorder_lock);
	environment_error = wanted < 0 ? wanted : 0;
	if (wanted > 0 && !started)
		environment_error = start_by_environment(&options);
	pthread_mutex_unlock(&tdt__recorder_lock);
	errno = saved;
}

void tdt__recorder_by_environment(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, record_by_environment);
}
