// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The signal, and the slots in which requesters and the handler meet.
 *
 * One requester at a time uses a slot.  Slots are never freed, so a signal that comes late still
 * finds its slot.  A signal carries the slot's *number*, which is different for each use.  The
 * slot's word says which number is valid, and who may do what:
 *
 * 	FREE ──requester──▶ CLAIMED ──requester──▶ ARMED ──handler──▶ BUSY ──handler──▶ DONE ──requester──▶ FREE
 * 	                                             │                  │
 * 	                                             │ requester        │ requester
 * 	                                             ▼                  ▼
 * 	                                            FREE              LEFT ──handler──▶ FREE
 *
 * A requester gives up an ARMED or BUSY slot at its deadline: it cannot wait for ever for a thread
 * that may be stopped in the handler.  The handler writes the rest of a slot only while the slot is
 * BUSY, and requesters only while it is CLAIMED.
 */

#include "capture/interrupt.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/chain.h"
#include "capture/fiber.h"
#include "capture/stack_pieces.h"
#include "host/peek.h"
#include "host/proc_thread.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "unwind/interrupted.h"

/*
 * How long a thread may block the signal before the request fails: so many checks, so many
 * nanoseconds apart.
 */
#define HANDLED_TRIES 60
#define HANDLED_NS 50000

enum slot_state { SLOT_FREE, SLOT_CLAIMED, SLOT_ARMED, SLOT_BUSY, SLOT_DONE, SLOT_LEFT };

#define STATE_BITS 3
#define SLOT_BITS 3
#define SLOTS (1 << SLOT_BITS) /* so many requesters are served at once; further ones wait */

struct request_slot {
	_Alignas(64) atomic_uint word; /* the number << STATE_BITS, and the state; a futex */
	const struct tdt_handle *task;
	uint64_t polls;
	unsigned char *buffer; /* TDT__STACK_COPY_MAX bytes, never freed; NULL: none yet */
	int error;	       /* 0: `copy` is the stack */
	struct tdt__pieces copy;
};

static struct request_slot slots[SLOTS];

static unsigned slot_word(unsigned number, enum slot_state state)
{
	return number << STATE_BITS | state;
}

/* Acquire what the slot's previous owner wrote; release what this one wrote.  Pairs with itself. */
static bool pass(struct request_slot *slot, unsigned number, enum slot_state from,
		 enum slot_state to)
{
	unsigned word = slot_word(number, from);

	return atomic_compare_exchange_strong_explicit(&slot->word, &word, slot_word(number, to),
						       memory_order_acq_rel, memory_order_acquire);
}

/* --- The thread's side: async-signal-safe ------------------------------------- */

/* Copy from the thread's own stack directly, for the case that the kernel refuses to copy. */
static __attribute__((no_sanitize("address", "thread"))) size_t
copy_own_stack(void *to, uintptr_t from, size_t size)
{
	volatile uintptr_t *words = to;

	if (from < tdt__thread.stack_low || from + size > tdt__thread.stack_high)
		return 0;
	for (size_t i = 0; i < size / sizeof *words; i++)
		words[i] = ((const volatile uintptr_t *)from)[i];
	return size;
}

static size_t read_own_stack(void *to, uintptr_t from, size_t size)
{
	size_t got = tdt__peek(to, from, size);

	return got != 0 ? got : copy_own_stack(to, from, size);
}

/* Copy the stack of the requested poll, if that poll is still in progress. */
static void serve(struct request_slot *slot, const ucontext_t *context)
{
	const struct tdt_task_record *record = &slot->task->record;
	struct tdt_stack fiber;

	slot->error = -EAGAIN;
	if (!tdt__polled_here(slot->task) || record->polls != slot->polls ||
	    record->state != TDT_TASK_RECORD_POLLING)
		return;
	slot->error = tdt__pieces_plan(&slot->copy, tdt__interrupted(context), record->stack_top,
				       &tdt__thread,
				       tdt__fiber_stack(slot->task, &fiber) ? &fiber : NULL);
	tdt__interrupted_all(slot->copy.registers, context);
	slot->copy.has_registers = true;
	if (slot->error == 0)
		slot->error = tdt__pieces_read(&slot->copy, slot->buffer, read_own_stack);
}

static void on_request(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	unsigned number;
	struct request_slot *slot;

	(void)signal;
	/* A signal that another program, or the host, has sent. */
	if (info->si_code != SI_QUEUE || info->si_pid != getpid())
		return;
	number = (unsigned)(uintptr_t)info->si_value.sival_ptr;
	slot = &slots[number % SLOTS];
	if (!pass(slot, number / SLOTS, SLOT_ARMED, SLOT_BUSY))
		return; /* the signal comes late */
	/*
	 * Another requester that finds the thread blocked in this handler must not take that for
	 * the place where the poll is.  That requester reads the flag while the thread stands still
	 * (running.c), so it is enough that the compiler keeps the order.
	 */
	tdt__thread.interrupted = true;
	atomic_signal_fence(memory_order_seq_cst);
	serve(slot, context);
	if (pass(slot, number / SLOTS, SLOT_BUSY, SLOT_DONE))
		syscall(SYS_futex, &slot->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	else
		pass(slot, number / SLOTS, SLOT_LEFT, SLOT_FREE);
	atomic_signal_fence(memory_order_seq_cst);
	tdt__thread.interrupted = false;
	errno = saved;
}

/* --- The signal ----------------------------------------------------------------- */

atomic_bool tdt__has_small_stacks;

pthread_mutex_t tdt__interrupt_lock = PTHREAD_MUTEX_INITIALIZER;

static int chosen_signal; /* under tdt__interrupt_lock; 0: none yet */

/*
 * Whether the signal is ours.  With `install`, a signal with the default disposition becomes ours.
 */
static bool is_our_signal(int signal, bool install)
{
	struct sigaction ours = { .sa_sigaction = on_request,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART },
			 now;

	if (sigaction(signal, NULL, &now) != 0)
		return false;
	if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_request)
		return true;
	if (!install || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
		return false;
	sigfillset(&ours.sa_mask);
	if (sigaction(signal, &ours, &now) != 0)
		return false;
	if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
		return true;
	sigaction(signal, &now, NULL); /* the host has installed a handler just before */
	return false;
}

/* The signal to send; 0: all signals are taken. */
static int choose_signal(void)
{
	int signal;

	pthread_mutex_lock(&tdt__interrupt_lock);
	if (chosen_signal == 0 || !is_our_signal(chosen_signal, false))
		for (chosen_signal = SIGRTMAX;
		     chosen_signal >= SIGRTMIN && !is_our_signal(chosen_signal, true);
		     chosen_signal--)
			;
	if (chosen_signal < SIGRTMIN)
		chosen_signal = 0;
	signal = chosen_signal;
	pthread_mutex_unlock(&tdt__interrupt_lock);
	return signal;
}

static int send(uint32_t thread, int signal, unsigned number)
{
	siginfo_t info = { .si_signo = signal, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)(uintptr_t)number;
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, signal, &info) == 0 ? 0 : -errno;
}

/* --- The requester's side ------------------------------------------------------------- */

/* Claim a slot; NULL: all are in use. */
static struct request_slot *claim_slot(unsigned *number)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		/*
		 * Acquire: the previous user is done with it.  Pairs with pass() and
		 * release_slot().
		 */
		unsigned word = atomic_load_explicit(&slots[i].word, memory_order_acquire);

		*number = ((word >> STATE_BITS) + 1) & (UINT_MAX >> (STATE_BITS + SLOT_BITS));
		if (word % (1 << STATE_BITS) == SLOT_FREE &&
		    atomic_compare_exchange_strong_explicit(
			&slots[i].word, &word, slot_word(*number, SLOT_CLAIMED),
			memory_order_acquire, memory_order_relaxed))
			return &slots[i];
	}
	return NULL;
}

static struct request_slot *claim_until(uint64_t deadline, unsigned *number)
{
	struct request_slot *slot = claim_slot(number);

	while (slot == NULL && tdt__clock() < deadline) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 500000 }, NULL);
		slot = claim_slot(number);
	}
	return slot;
}

/* Release: the next claim comes after all that was done with the slot.  Pairs with claim_slot(). */
static void release_slot(struct request_slot *slot, unsigned number)
{
	atomic_store_explicit(&slot->word, slot_word(number, SLOT_FREE), memory_order_release);
}

/*
 * Wait until the handler is done.  At the deadline, give up the slot, so that the handler does not
 * serve the request any more.  Returns whether the handler is done.
 */
static bool wait_copied(struct request_slot *slot, unsigned number, uint64_t deadline)
{
	const struct timespec until = tdt__timespec(deadline);

	for (;;) {
		/* Acquire the copy.  Pairs with the handler's pass(). */
		unsigned word = atomic_load_explicit(&slot->word, memory_order_acquire);

		if (word == slot_word(number, SLOT_DONE))
			return true;
		if (syscall(SYS_futex, &slot->word, FUTEX_WAIT_BITSET_PRIVATE, word, &until, NULL,
			    FUTEX_BITSET_MATCH_ANY) == 0 ||
		    errno != ETIMEDOUT)
			continue;
		if (pass(slot, number, SLOT_ARMED, SLOT_FREE) ||
		    pass(slot, number, SLOT_BUSY, SLOT_LEFT))
			return false;
	}
}

static int request_copy(struct request_slot *slot, unsigned number, uint32_t thread, int signal,
			uint64_t deadline, struct tdt__pieces *copy)
{
	int error;

	if (slot->buffer == NULL) {
		void *buffer =
			mmap(NULL, TDT__STACK_COPY_MAX, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (buffer == MAP_FAILED) {
			release_slot(slot, number);
			return -ENOMEM;
		}
		slot->buffer = buffer;
	}
	pass(slot, number, SLOT_CLAIMED, SLOT_ARMED);
	error = send(thread, signal, number * SLOTS + (unsigned)(slot - slots));
	if (error != 0) {
		release_slot(slot, number); /* no signal was sent with this number */
		return error;
	}
	if (!wait_copied(slot, number, deadline))
		return -ETIMEDOUT;
	error = slot->error != 0 ? slot->error : tdt__pieces_dup(copy, &slot->copy);
	release_slot(slot, number);
	return error;
}

/*
 * Whether the thread would take the signal.  If the thread blocked it, the signal would stay
 * pending for longer than anybody remembers it, even across execve().  The signal is also blocked
 * while a handler runs, such as ours that serves another requester, so this waits a little.
 */
static int may_send(uint32_t thread, int signal, uint64_t deadline)
{
	uint64_t blocked;
	int error;

	for (int i = 0; i < HANDLED_TRIES; i++) {
		error = tdt__proc_signals_blocked(thread, &blocked);
		if (error != 0)
			return error == -ESRCH ? error : -EPERM;
		if ((blocked >> (signal - 1) & 1) == 0)
			return 0;
		if (tdt__clock() >= deadline)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = HANDLED_NS },
				NULL);
	}
	return -EPERM;
}

int tdt__interrupt(const struct tdt_handle *task, uint64_t polls, uint32_t thread,
		   uint64_t deadline, struct tdt__pieces *copy)
{
	struct request_slot *slot;
	unsigned number;
	int signal, error;

	if (atomic_load_explicit(&tdt__has_small_stacks, memory_order_relaxed))
		return -EPERM;
	signal = choose_signal();
	if (signal == 0)
		return -EBUSY;
	slot = claim_until(deadline, &number);
	if (slot == NULL)
		return -ETIMEDOUT;
	error = may_send(thread, signal, deadline);
	if (error != 0) {
		release_slot(slot, number);
		return error;
	}
	slot->task = task;
	slot->polls = polls;
	return request_copy(slot, number, thread, signal, deadline, copy);
}

void tdt__interrupt_forked(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned word = atomic_load_explicit(&slots[i].word, memory_order_relaxed);

		release_slot(&slots[i], word >> STATE_BITS);
	}
}
