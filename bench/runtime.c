// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What libtdt-rt costs, beside what a program would have without it: a pool of threads with one queue, a mutex and a
 * condition variable, and two threads that take turns with these.  Rounds of all are interleaved, so that what disturbs
 * one disturbs all.
 *
 *   spawn       1,000,000 tasks that are ready at their first poll, 10,000 at a time, from a thread and from a task
 *   ping-pong   two tasks that wake each other in turn
 *   asleep      10,000 tasks that sleep: memory, and how often the process wakes while nothing is due
 *
 * Every task is traced and can be asked where it waits; the pool's jobs are calls of a function.
 */

#include <config.h>

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tdt/registry.h>
#include <tdt/runtime.h>

#include "measure.h"

#define ROUNDS 7
#define BATCH 10000
#define BATCHES 100
#define TURNS 100000
#define SLEEPERS 10000

static unsigned n_workers;

/* --- Figures ---------------------------------------------------------------------- */

static void add(struct figure *figure, int64_t ns, int of)
{
	figure->value[figure->n++] = (double)ns / of;
}

static void print(struct figure *figure, struct figure *baseline)
{
	double middle = median(figure);

	printf("%-44s %10.0f %10.0f %10.0f", figure->name, figure->value[0], middle, figure->value[figure->n - 1]);
	if (baseline != NULL)
		printf("   x %.2f", middle / median(baseline));
	putchar('\n');
}

/* --- The pool of threads ------------------------------------------------------------ */

struct job {
	struct job *next;
	void (*call)(void *data);
	void *data;
};

static struct pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct job *first, *last;
	bool stopping;
	pthread_t *threads;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void *pool_thread(void *unused)
{
	struct job *job;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&pool.lock);
		while (pool.first == NULL && !pool.stopping)
			pthread_cond_wait(&pool.more, &pool.lock);
		job = pool.first;
		if (job != NULL)
			pool.first = job->next;
		pthread_mutex_unlock(&pool.lock);
		if (job == NULL)
			return NULL;
		job->call(job->data);
		free(job);
	}
}

static void pool_submit(void (*call)(void *data), void *data)
{
	struct job *job = malloc(sizeof *job);

	if (job == NULL)
		die("malloc");
	*job = (struct job){ NULL, call, data };
	pthread_mutex_lock(&pool.lock);
	if (pool.first == NULL)
		pool.first = job;
	else
		pool.last->next = job;
	pool.last = job;
	pthread_mutex_unlock(&pool.lock);
	pthread_cond_signal(&pool.more);
}

static void pool_start(void)
{
	pool.threads = calloc(n_workers, sizeof *pool.threads);
	if (pool.threads == NULL)
		die("calloc");
	pool.stopping = false;
	for (unsigned i = 0; i < n_workers; i++)
		if (pthread_create(&pool.threads[i], NULL, pool_thread, NULL) != 0)
			die("pthread_create");
}

static void pool_stop(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.stopping = true;
	pthread_mutex_unlock(&pool.lock);
	pthread_cond_broadcast(&pool.more);
	for (unsigned i = 0; i < n_workers; i++)
		pthread_join(pool.threads[i], NULL);
	free(pool.threads);
}

/* --- Spawning ----------------------------------------------------------------------- */

static struct tdt_rt *rt;

static void spawn(struct tdt_future fut)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, fut, NULL);

	if (handle == NULL)
		die("tdt_rt_spawn");
	tdt_handle_unref(handle);
}

static void nothing(void *state)
{
	(void)state;
}

static atomic_int left;	 /* of a batch */
static sem_t batch_over; /* for a thread that waits for it */
static sem_t all_over;

static tdt_poll_t trivial_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	if (atomic_fetch_sub(&left, 1) == 1)
		sem_post(&batch_over);
	return TDT_READY;
}

static const struct tdt_future trivial = { NULL, trivial_poll, nothing };

static void trivial_call(void *unused)
{
	trivial_poll(unused, NULL);
}

static int64_t tasks_from_a_thread(void)
{
	int64_t start = now();

	for (int i = 0; i < BATCHES; i++) {
		atomic_store(&left, BATCH);
		for (int j = 0; j < BATCH; j++)
			spawn(trivial);
		sem_wait(&batch_over);
	}
	return now() - start;
}

static int64_t jobs_from_a_thread(void)
{
	int64_t start = now();

	for (int i = 0; i < BATCHES; i++) {
		atomic_store(&left, BATCH);
		for (int j = 0; j < BATCH; j++)
			pool_submit(trivial_call, NULL);
		sem_wait(&batch_over);
	}
	return now() - start;
}

/* From a task: the last of a batch wakes who spawned it. */
static const struct tdt_waker *spawner;
static int batches;

static tdt_poll_t child_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	if (atomic_fetch_sub(&left, 1) == 1)
		tdt_waker_wake(spawner);
	return TDT_READY;
}

static tdt_poll_t spawner_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	if (batches++ == BATCHES) {
		sem_post(&all_over);
		return TDT_READY;
	}
	spawner = tdt_waker_clone(cx->waker);
	atomic_store(&left, BATCH);
	for (int i = 0; i < BATCH; i++)
		spawn((struct tdt_future){ NULL, child_poll, nothing });
	return TDT_PENDING;
}

static int64_t tasks_from_a_task(void)
{
	int64_t start = now();

	batches = 0;
	spawn((struct tdt_future){ NULL, spawner_poll, nothing });
	sem_wait(&all_over);
	return now() - start;
}

static void submitter_call(void *unused);

static void child_call(void *unused)
{
	if (atomic_fetch_sub(&left, 1) == 1)
		pool_submit(submitter_call, unused);
}

static void submitter_call(void *unused)
{
	if (batches++ == BATCHES) {
		sem_post(&all_over);
		return;
	}
	atomic_store(&left, BATCH);
	for (int i = 0; i < BATCH; i++)
		pool_submit(child_call, unused);
}

static int64_t jobs_from_a_job(void)
{
	int64_t start = now();

	batches = 0;
	pool_submit(submitter_call, NULL);
	sem_wait(&all_over);
	return now() - start;
}

/* --- Ping-pong ---------------------------------------------------------------------- */

struct player {
	struct player *other;
	const struct tdt_waker *_Atomic waker; /* of a player that waits for its turn */
	atomic_int turns;		       /* that it was given */
	int played;
};

/* Take the turns there are; each gives one to the other. */
static tdt_poll_t player_poll(void *state, struct tdt_context *cx)
{
	struct player *player = state;
	const struct tdt_waker *clone;

	for (;;) {
		clone = tdt_waker_clone(cx->waker);
		tdt_waker_drop(atomic_exchange(&player->waker, clone));
		if (atomic_load(&player->turns) == player->played)
			return TDT_PENDING;
		player->played++;
		atomic_fetch_add(&player->other->turns, 1);
		tdt_waker_wake(atomic_exchange(&player->other->waker, NULL));
		if (player->played == TURNS) {
			tdt_waker_drop(atomic_exchange(&player->waker, NULL));
			sem_post(&all_over);
			return TDT_READY;
		}
	}
}

static int64_t two_tasks(void)
{
	struct player players[2] = { { .other = &players[1], .turns = 1 }, { .other = &players[0] } };
	int64_t start = now();

	for (int i = 0; i < 2; i++)
		spawn((struct tdt_future){ &players[i], player_poll, nothing });
	for (int i = 0; i < 2; i++)
		sem_wait(&all_over);
	start = now() - start;
	for (int i = 0; i < 2; i++)
		tdt_waker_drop(atomic_exchange(&players[i].waker, NULL));
	return start;
}

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int whose; /* turn; under `table` */

static void *player_thread(void *number)
{
	int me = number != NULL;

	pthread_mutex_lock(&table);
	for (int i = 0; i < TURNS; i++) {
		while (whose != me)
			pthread_cond_wait(&turned, &table);
		whose = !me;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&table);
	return NULL;
}

static int64_t two_threads(void)
{
	int64_t start = now();
	pthread_t other;

	whose = 0;
	if (pthread_create(&other, NULL, player_thread, &whose) != 0)
		die("pthread_create");
	player_thread(NULL);
	pthread_join(other, NULL);
	return now() - start;
}

/* --- Asleep ------------------------------------------------------------------------------ */

/* How often all threads but this one have gone to sleep so far: that is once a wake-up. */
static long sleeps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	long sum = 0, n;

	if (tasks == NULL)
		die("/proc/self/task");
	while ((entry = readdir(tasks)) != NULL) {
		char path[300], line[200];
		FILE *file;

		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		while (fgets(line, sizeof line, file) != NULL)
			if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		fclose(file);
	}
	closedir(tasks);
	return sum;
}

static void many_asleep(void)
{
	struct mallinfo2 before, after;
	long slept;

	rt = tdt_rt_new(NULL);
	if (rt == NULL)
		die("tdt_rt_new");
	before = mallinfo2();
	for (int i = 0; i < SLEEPERS; i++)
		spawn(tdt_sleep_ms(3600000));
	sleep(1);
	after = mallinfo2();
	/* Their records are where those of other tasks were. */
	printf("\n%d tasks asleep: %.0f bytes of memory each\n", SLEEPERS,
	       (double)(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / SLEEPERS +
		       tdt_registry.stride);
	slept = sleeps();
	sleep(2);
	printf("%d tasks asleep: %ld wake-ups of the runtime's threads in 2 s\n", SLEEPERS, sleeps() - slept);
	tdt_rt_free(rt);
}

/* --- All of it ------------------------------------------------------------------------------ */

static struct figure from_a_thread = { .name = "a task spawned from a thread" };
static struct figure pool_from_a_thread = { .name = "  a job of a pool, submitted from a thread" };
static struct figure from_a_task = { .name = "a task spawned from a task" };
static struct figure pool_from_a_job = { .name = "  a job of a pool, submitted from a job" };
static struct figure ping_pong = { .name = "a turn of two tasks" };
static struct figure thread_ping_pong = { .name = "  a turn of two threads" };

static void round_of_all(void)
{
	rt = tdt_rt_new(NULL);
	if (rt == NULL)
		die("tdt_rt_new");
	add(&from_a_thread, tasks_from_a_thread(), BATCHES * BATCH);
	add(&from_a_task, tasks_from_a_task(), BATCHES * BATCH);
	add(&ping_pong, two_tasks(), 2 * TURNS);
	tdt_rt_free(rt);
	pool_start();
	add(&pool_from_a_thread, jobs_from_a_thread(), BATCHES * BATCH);
	add(&pool_from_a_job, jobs_from_a_job(), BATCHES * BATCH);
	pool_stop();
	add(&thread_ping_pong, two_threads(), 2 * TURNS);
}

int main(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
		die("sched_getaffinity");
	n_workers = (unsigned)CPU_COUNT(&cpus);
	sem_init(&batch_over, 0, 0);
	sem_init(&all_over, 0, 0);
	for (int i = 0; i < ROUNDS; i++)
		round_of_all();
	printf("%u workers, %d rounds; ns                     %12s %10s %10s   beside the pool, or threads\n",
	       n_workers, ROUNDS, "min", "median", "max");
	print(&from_a_thread, &pool_from_a_thread);
	print(&pool_from_a_thread, NULL);
	print(&from_a_task, &pool_from_a_job);
	print(&pool_from_a_job, NULL);
	print(&ping_pong, &thread_ping_pong);
	print(&thread_ping_pong, NULL);
	many_asleep();
	return 0;
}
