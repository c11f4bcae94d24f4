// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Fibers: the coroutines of a library that is not part of tdt, and has no futures, polls or wakers.
 *
 * The first half is such a library, in its smallest form: coroutines with stacks of their own, made
 * with ucontext, which switch from one to the next.  Six lines were added for tdt ("added for
 * tdt").  With them every coroutine is a task: it is listed, and the stack on which it stands still
 * is read whenever somebody asks.
 *
 * The second half is a program.  Three coroutines share a printer that has run out of paper.  The
 * thread that would have to run them prints where each of them waits.
 */

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/tdt.h>

#include "help.h"

/* --- A library of coroutines --- */

#define STACK_SIZE (64 * 1024)

struct co {
	ucontext_t context;
	void (*function)(void *arg);
	void *arg;
	struct co *next;	 /* in a line */
	struct tdt_fiber *fiber; /* added for tdt */
	char *stack;
};

/* Coroutines that wait in line.  All zero: nobody does. */
struct line {
	struct co *first, *last;
};

static struct co main_co; /* main(), on the stack of the thread */
static struct co *running = &main_co;
static struct line ready;

static void line_push(struct line *line, struct co *co)
{
	co->next = NULL;
	*(line->first == NULL ? &line->first : &line->last->next) = co;
	line->last = co;
}

static struct co *line_pop(struct line *line)
{
	struct co *co = line->first;

	if (co != NULL)
		line->first = co->next;
	return co;
}

/* Go on with the next coroutine that is ready, or else with main(). */
static void co_switch(void)
{
	struct co *self = running, *next = line_pop(&ready);

	running = next != NULL ? next : &main_co;
	tdt_fiber_suspend(self->fiber); /* added for tdt */
	swapcontext(&self->context, &running->context);
	tdt_fiber_resume(self->fiber); /* added for tdt */
}

/* Wait in line until co_wake(). */
static void co_wait(struct line *line)
{
	line_push(line, running);
	co_switch();
}

static void co_wake(struct line *line)
{
	struct co *co = line_pop(line);

	if (co != NULL)
		line_push(&ready, co);
}

/* The outermost function on the stack of a coroutine. */
static void co_main(void)
{
	struct co *self = running;

	TDT_FIBER_BASE(self->fiber);   /* added for tdt */
	tdt_fiber_resume(self->fiber); /* added for tdt */
	self->function(self->arg);
	tdt_fiber_end(self->fiber); /* added for tdt */
	self->fiber = NULL;
	co_switch();
}

static bool co_start(struct co *co, void (*function)(void *), void *arg,
		     const struct tdt_task_attr *attr)
{
	co->function = function;
	co->arg = arg;
	co->stack = malloc(STACK_SIZE);
	if (co->stack == NULL || getcontext(&co->context) != 0)
		return false;
	co->context.uc_stack.ss_sp = co->stack;
	co->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&co->context, co_main, 0);
	co->fiber = tdt_fiber_new(co->stack, STACK_SIZE, attr); /* added for tdt */
	line_push(&ready, co);
	return true;
}

/* --- A program --- */

struct printer {
	int sheets;
	uint64_t holder; /* the task that prints, or 0 */
	struct line users, out_of_paper;
};

static void take_printer(struct printer *printer)
{
	while (printer->holder != 0) {
		/* Optional: with this line a dump also says for whom the coroutine waits. */
		tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, printer, printer->holder, "the printer");
		co_wait(&printer->users);
	}
	printer->holder = tdt_current_task_id();
}

static void leave_printer(struct printer *printer)
{
	printer->holder = 0;
	co_wake(&printer->users);
}

static void feed_sheet(struct printer *printer)
{
	while (printer->sheets == 0)
		co_wait(&printer->out_of_paper);
	printer->sheets--;
}

static void print_pages(struct printer *printer, int pages)
{
	take_printer(printer);
	for (int page = 0; page < pages; page++)
		feed_sheet(printer);
	leave_printer(printer);
}

static void print_letter(void *printer)
{
	print_pages(printer, 2);
	printf("The letter is printed.\n");
}

static void print_invoice(void *printer)
{
	print_pages(printer, 1);
	printf("The invoice is printed.\n");
}

static void print_poster(void *printer)
{
	print_pages(printer, 1);
	printf("The poster is printed.\n");
}

static const char fibers_help[] =
	"Usage: fibers [--help]\n"
	"Print where the coroutines of a foreign library wait, and let them go on.\n";

int main(int argc, char **argv)
{
	struct printer printer = { .sheets = 1 };
	struct co letter, invoice, poster;
	int error = read_options(argc, argv, fibers_help);

	if (error >= 0)
		return error;
	setlocale(LC_ALL, ""); /* in a UTF-8 locale the trees are drawn in UTF-8 */
	if (!co_start(&letter, print_letter, &printer, TDT_TASK_ATTR(.name = "letter")) ||
	    !co_start(&invoice, print_invoice, &printer, TDT_TASK_ATTR(.name = "invoice")) ||
	    !co_start(&poster, print_poster, &printer, TDT_TASK_ATTR(.name = "poster"))) {
		perror("fibers");
		return EXIT_FAILURE;
	}
	co_switch(); /* until none of them is ready */
	error = tdt_dump(stdout);
	printer.sheets += 3;
	co_wake(&printer.out_of_paper);
	co_switch();
	free(letter.stack);
	free(invoice.stack);
	free(poster.stack);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
