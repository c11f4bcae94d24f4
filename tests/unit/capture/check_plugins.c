// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/capture, capture/judge.  Captures in modules that come and go: they are opened and
 * closed with dlopen(), one takes the place of another, also between the request and its answer.
 */

#include <dlfcn.h>

#include "lib/expected.h"
#include "lib/poll_now.h"
#include "lib/says.h"
#include "lib/test.h"

/* A future whose poll lies in a plugin. */
struct plugin {
	void *library;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
};

static void plugin_open(struct plugin *plugin, const char *name)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/plugin_%s.so", PLUGINS, name);
	plugin->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(plugin->library != NULL, "%s", dlerror());
	*(void **)&plugin->poll = dlsym(plugin->library, "plugin_poll");
	ck_assert(plugin->poll != NULL);
}

/* Put b in the place of a; false: it came to lie elsewhere. */
static bool plugin_replace(struct plugin *plugin)
{
	tdt_poll_t (*old)(void *state, struct tdt_context *cx) = plugin->poll;

	ck_assert_int_eq(dlclose(plugin->library), 0);
	plugin_open(plugin, "b");
	if (plugin->poll != old)
		printf("# not tried: the other plugin is not at the same address\n");
	return plugin->poll == old;
}

static NOINLINE tdt_poll_t calls_plugin(void *state, struct tdt_context *cx)
{
	struct plugin *plugin = state;

	if (plugin->poll != NULL)
		plugin->poll(NULL, cx);
	return TDT_PENDING;
}

static NOINLINE tdt_poll_t also_calls_plugin(void *state, struct tdt_context *cx)
{
	struct plugin *plugin = state;

	plugin->poll(NULL, cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

/* Whether the tree is the caller's and the plugin's functions, and nothing else. */
static void check_plugin_tree(const struct tdt_trace *trace, const char *caller, const char *name)
{
	char *text = tree_text(trace), *words = strdup(text), wanted[256];

	for (char *from = text, *to = words; (*to = *from) != '\0'; from++)
		if (*from == ':')
			from += strspn(from, ":0123456789") - 1;
		else
			to++;
	snprintf(wanted, sizeof wanted,
		 "%s\n plugin_poll\n  plugin_%s_middle\n   plugin_%s_leaf x1\n", caller, name,
		 name);
	ck_assert_str_eq(words, wanted);
	free(words);
	free(text);
}

/*
 * So many waits for the thread that counts unloaded modules, the reporter, reach their deadline
 * before it begins, as where all CPUs are busy: that of the rules, and the first of the judge.
 */
#define LATE_WAITS 2

static bool reporter_is_late;
static atomic_int waits;

/* Of the delays (tests/lib/delays.c), or of libc. */
static int (*next_setname)(pthread_t, const char *);
static int (*next_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
			     const struct timespec *);

/* Not when a thread is named: dlsym() waits for the loader. */
static __attribute__((constructor)) void find_next(void)
{
	*(void **)&next_setname = dlsym(RTLD_NEXT, "pthread_setname_np");
	*(void **)&next_clockwait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	if (reporter_is_late && strcmp(name, "tdt-unloads") == 0)
		while (atomic_load(&waits) <= LATE_WAITS)
			usleep(1000);
	return next_setname(thread, name);
}

/*
 * All other waits, which are for the reporter or for names, last until these are there: a tree is
 * exact only if the machine has time for the library's threads.
 */
int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
			   const struct timespec *until)
{
	if (reporter_is_late && atomic_fetch_add(&waits, 1) < LATE_WAITS)
		return next_clockwait(cond, mutex, clock, until);
	return pthread_cond_wait(cond, mutex);
}

CASE(plugins)

TEST(a_plugin_that_was_closed_has_its_names)
{
	struct plugin plugin;

	plugin_open(&plugin, "a");
	POLL_NOW(task, future_of(calls_plugin, &plugin));
	TRACE(trace, poll_now_ask(&task, 0));
	ck_assert_int_eq(dlclose(plugin.library), 0);
	check_plugin_tree(trace, "calls_plugin", "a");
}

TEST(a_plugin_has_its_names_though_the_count_of_unloads_comes_late)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *trace;

	reporter_is_late = true;
	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	trace = poll_now_ask(&task, 0);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}

TEST(a_plugin_in_the_place_of_another_is_exact)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *traces[2];

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	traces[0] = poll_now_ask(&task, 0);
	if (plugin_replace(&plugin)) {
		traces[1] = poll_now_ask(&task, 0);
		check_plugin_tree(traces[1], "calls_plugin", "b");
		check_plugin_tree(traces[0], "calls_plugin", "a");
		tdt_trace_free(traces[1]);
	}
	tdt_trace_free(traces[0]);
	poll_now_end(&task);
	dlclose(plugin.library);
}

TEST(a_plugin_opened_after_the_question_has_its_names)
{
	struct plugin plugin = { NULL, NULL };
	struct poll_now task, requester;
	struct tdt_trace *trace = NULL;

	poll_now_start(&task, future_of(calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace, NULL));
	plugin_open(&plugin, "a");
	poll_now(&task);
	ck_assert_int_eq(requester.result, TDT_READY);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&requester);
	poll_now_end(&task);
	dlclose(plugin.library);
}

/*
 * The plugin is replaced between request and answer: so the requester's rules are wrong, and
 * must not be believed because newer ones were learned for a frame further out.
 */
TEST(a_plugin_replaced_after_the_question_is_exact)
{
	struct plugin plugin;
	struct poll_now task, requester;
	struct tdt_trace *trace = NULL;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	tdt_trace_free(poll_now_ask(&task, 0));
	poll_now_end(&task);

	poll_now_start(&task, future_of(also_calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace, NULL));
	if (plugin_replace(&plugin)) {
		for (int i = 0; i < 3 && requester.result == TDT_PENDING; i++)
			poll_now(&task);
		ck_assert_int_eq(requester.result, TDT_READY);
		check_plugin_tree(trace, "also_calls_plugin", "b");
	}
	poll_now_end(&requester);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}

/*
 * The plugin was replaced, and the task ends at the second request: the first answer is given, and
 * says what it is.
 */
TEST(an_answer_gone_astray_is_given_if_no_better_one_comes)
{
	struct plugin plugin;
	struct poll_now task, requester;
	struct tdt_trace *trace = NULL;
	int error = 1;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(also_calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace, &error));
	dlclose(plugin.library);
	plugin_open(&plugin, "b");
	poll_now(&task);
	ck_assert_int_eq(requester.result, TDT_PENDING);
	poll_now_end(&task);
	ck_assert_int_eq(requester.result, TDT_READY);
	ck_assert_int_eq(error, 0);
	ck_assert_ptr_nonnull(trace);
	ck_assert(tdt_node_frame(tdt_node_next(tdt_trace_root(trace)))->guessed);
	poll_now_end(&requester);
	tdt_trace_free(trace);
	dlclose(plugin.library);
}

/*
 * A trace that was never right, however often it was requested, is given all the same; and says so.
 */
TEST(plugins_replaced_at_every_question_are_marked)
{
	struct plugin plugin;
	struct poll_now task, requester;
	struct tdt_trace *trace = NULL;
	const struct tdt_node *node;

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(also_calls_plugin, &plugin));
	task.held = true;
	poll_now_start(&requester, tdt_backtrace_async(task.traced.handle, NULL, &trace, NULL));
	for (int i = 0; i < 10 && requester.result == TDT_PENDING; i++) {
		dlclose(plugin.library);
		plugin_open(&plugin, i % 2 == 0 ? "b" : "a");
		poll_now(&task);
	}
	ck_assert_int_eq(requester.result, TDT_READY);
	ck_assert_ptr_nonnull(trace);
	node = tdt_trace_root(trace);
	while ((node = tdt_node_next(node)) != NULL)
		ck_assert(tdt_node_frame(node)->kind == TDT_NODE_CUT ||
			  tdt_node_frame(node)->inlined || tdt_node_frame(node)->guessed);
	poll_now_end(&requester);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}

/* Requests the outer and the inner task; the plugin is replaced in between. */
TEST(nested_futures_are_walked_by_the_newest_rules)
{
	struct plugin plugin;
	struct tdt_traced inner = tdt_traced(future_of(calls_plugin, &plugin));
	struct nested nested = { inner.future, NULL };
	struct poll_now task, requesters[2];
	struct tdt_trace *traces[2] = { NULL, NULL };

	plugin_open(&plugin, "a");
	poll_now_start(&task, future_of(outer, &nested));
	tdt_trace_free(poll_now_ask(&task, 0));
	task.held = true;
	poll_now_start(&requesters[0], tdt_backtrace_async(inner.handle, NULL, &traces[0], NULL));
	if (plugin_replace(&plugin)) {
		poll_now_start(&requesters[1],
			       tdt_backtrace_async(task.traced.handle, NULL, &traces[1], NULL));
		for (int i = 0; i < 3 && (requesters[0].result == TDT_PENDING ||
					  requesters[1].result == TDT_PENDING);
		     i++)
			poll_now(&task);
		ck_assert_int_eq(requesters[0].result, TDT_READY);
		ck_assert_int_eq(requesters[1].result, TDT_READY);
		check_plugin_tree(traces[0], "calls_plugin", "b");
		SAYS(tree_text(traces[1]), "  plugin_b_middle", "   plugin_b_leaf", "!cut");
		poll_now_end(&requesters[1]);
	}
	poll_now_end(&requesters[0]);
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	poll_now_end(&task);
	tdt_future_drop(&nested.inner);
	tdt_handle_unref(inner.handle);
	dlclose(plugin.library);
}

static struct plugin opened_late;

static void open_late(void)
{
	plugin_open(&opened_late, "a");
}

/*
 * The walk is the inner one's, and so is what it learns on its way; the outer one's frames need
 * names as well.
 */
TEST(nested_futures_all_know_a_plugin_opened_meanwhile)
{
	struct tdt_traced inner = tdt_traced(future_of(calls_plugin, &opened_late));
	struct nested nested = { inner.future, NULL };
	struct poll_now task;
	struct tdt_trace *traces[2];

	poll_now_start(&task, future_of(outer, &nested));
	nested.before = open_late;
	ask_both(&task, task.traced.handle, inner.handle, traces);
	check_plugin_tree(traces[1], "calls_plugin", "a");
	SAYS(tree_text(traces[0]), "  plugin_a_middle");
	tdt_trace_free(traces[0]);
	tdt_trace_free(traces[1]);
	poll_now_end(&task);
	tdt_future_drop(&nested.inner);
	tdt_handle_unref(inner.handle);
	dlclose(opened_late.library);
}

static tdt_poll_t calls_late_without_memory(void *state, struct tdt_context *cx)
{
	const bool *scarce = state;

	if (*scarce) {
		open_late();
		no_memory_begin(0);
		opened_late.poll(NULL, cx);
		no_memory_end();
	}
	return TDT_PENDING;
}

TEST(rules_that_there_is_no_memory_for_are_not_guessed)
{
	bool scarce = false;
	struct poll_now task;
	struct tdt_trace *trace;
	enum tdt_cut cut;

	NEEDS_FAILING_MEMORY();
	poll_now_start(&task, future_of(calls_late_without_memory, &scarce));
	scarce = true;
	trace = poll_now_ask(&task, 0);
	ck_assert_uint_eq(tdt_trace_stacks(trace), 1);
	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, &cut), 1);
	ck_assert_int_eq(cut, TDT_CUT_MEMORY);
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(opened_late.library);
}

TEST(a_plugin_opened_by_a_relative_path_has_its_names)
{
	struct plugin plugin;
	struct poll_now task;
	struct tdt_trace *trace;

	ck_assert_int_eq(chdir(PLUGINS), 0);
	plugin.library = dlopen("./plugin_a.so", RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(plugin.library);
	*(void **)&plugin.poll = dlsym(plugin.library, "plugin_poll");
	poll_now_start(&task, future_of(calls_plugin, &plugin));
	ck_assert_int_eq(chdir("/"), 0);
	trace = poll_now_ask(&task, 0);
	check_plugin_tree(trace, "calls_plugin", "a");
	tdt_trace_free(trace);
	poll_now_end(&task);
	dlclose(plugin.library);
}
