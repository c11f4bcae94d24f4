// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/fold, tree-printer/operation, tree-printer/origin.  Which calls the text form
 * folds, as whole trees: each has a line for each frame, indented by its depth, with a `*` for each
 * leaf.
 */

#include "lib/printed.h"
#include "lib/says.h"
#include "lib/test.h"
#include "tree-printer/operation.h"
#include "tree-printer/origin.h"

#define APP .directory = "/home/me/app", .module = "/home/me/app/target/serve"
#define CARGO "/home/me/.cargo/registry/src/mirror-1949cf8c6b5b557f/"
#define RUSTC "/rustc/4b91a6ea7258a947e59c6522cd5898e7c0a6a88f/library/"

/* Frames of a Rust program, by one letter. */
static const struct letter {
	char letter;
	struct tdt_frame frame;
} letters[] = {
	{ 's', FRAME(APP, .function = "serve::run::{async}", .line = 1,
		     .file = "/home/me/app/src/main.rs") },
	{ 'g', FRAME(APP, .function = "serve::greet::{async}", .line = 2,
		     .file = "/home/me/app/src/main.rs") },
	{ 'h', FRAME(APP, .function = "serve::halt::{async}", .line = 3,
		     .file = "/home/me/app/src/main.rs") },
	{ 'm', FRAME(APP, .function = "serve::run::{async}::{closure}", .line = 4,
		     .file = CARGO "tokio-1.24.2/src/macros/select.rs") },
	{ 'p', FRAME(APP, .function = "<core::pin::Pin<P> as core::future::future::Future>::poll",
		     .line = 5, .file = RUSTC "core/src/future/future.rs") },
	{ 'c', FRAME(APP, .function = "<core::task::wake::Waker as core::clone::Clone>::clone",
		     .line = 6, .file = RUSTC "core/src/task/wake.rs") },
	{ 'd', FRAME(APP, .function = "std::thread::sleep", .line = 7,
		     .file = RUSTC "std/src/thread/mod.rs") },
	{ 'l', FRAME(.function = "clock_nanosleep", .line = 8, .file = "../sysdeps/nanosleep.c",
		     .module = "/lib/x86_64-linux-gnu/libc.so.6") },
	{ 'j', FRAME(APP, .line = 9,
		     .function = "<futures_util::future::join_all::JoinAll<F> as "
				 "core::future::future::Future>::poll",
		     .file = CARGO "futures-util-0.3.21/src/future/join_all.rs") },
	{ 'J', FRAME(APP, .function = "futures_util::future::maybe_done::MaybeDone<Fut>::poll",
		     .line = 10,
		     .file = CARGO "futures-util-0.3.21/src/future/maybe_done.rs") },
	{ 't', FRAME(.function = "<tokio::time::sleep::Sleep as "
				 "core::future::future::Future>::poll",
		     .line = 11, .file = CARGO "tokio-1.24.2/src/time/sleep.rs",
		     .directory = CARGO "tokio-1.24.2", .module = "/home/me/app/target/serve") },
	{ 'e', FRAME(.function = "tokio::runtime::time::entry::StateCell::poll", .line = 12,
		     .file = CARGO "tokio-1.24.2/src/runtime/time/entry.rs",
		     .directory = CARGO "tokio-1.24.2", .module = "/home/me/app/target/serve") },
	{ 'r', FRAME(APP, .function = "tokio::sync::mpsc::bounded::Receiver<T>::recv::{async}",
		     .line = 13, .file = CARGO "tokio-1.24.2/src/sync/mpsc/bounded.rs") },
	{ 'b', FRAME(APP, .function = "tdt::rust_clone", .line = 14,
		     .file = "/home/me/tdt/src/lib.rs") },
	{ 'B', FRAME(APP, .function = "tdt::sync::Mutex<T>::lock::{async}", .line = 15,
		     .file = "/home/me/tdt/src/sync.rs") },
	{ 'w', FRAME(.function = "tdt::traced::poll_future", .module = "/home/me/app/target/serve",
		     .module_offset = 0x30) },
	{ 'k', FRAME(.function = "tdt::waker::substitute_clone",
		     .module = "/home/me/app/target/serve", .module_offset = 0x40) },
	{ 'f', FRAME(.function = "foo_read", .module = "/usr/lib/libfoo.so.1",
		     .module_offset = 0x10) },
	{ 'u', FRAME(.module = "/home/me/app/target/serve", .module_offset = 0x20,
		     .unnamed = 1) },
	{ 'T', FRAME(.function = "tdt_sleep_ms", .line = 16, .file = "/b/src/runtime/sleep.c",
		     .directory = "/b", .module = "/usr/lib/libtdt-rt.so.0") },
	{ 'o', FRAME(.function = "app_core::work", .line = 17, .file = "/home/me/app/core/work.cc",
		     .directory = "/home/me/app/core", .module = "/home/me/app/libcore.so") },
	{ 'v', FRAME(.function = "uv_write", .line = 18, .file = "/home/me/libuv/src/stream.c",
		     .directory = "/home/me/libuv", .module = "/usr/local/lib/libuv.so.1") },
	{ 'n', FRAME(.function = "static_thing", .module = "/home/me/app/target/serve") },
	{ 'i', FRAME(APP, .function = "<tokio::time::timeout::Timeout<T> as "
				      "core::future::future::Future>::poll", .line = 19,
		     .file = CARGO "tokio-1.24.2/src/time/timeout.rs") },
	{ 'I', FRAME(APP, .function = "<tokio::time::timeout::Timeout<T> as "
				      "core::future::future::Future>::poll", .line = 20,
		     .file = CARGO "tokio-1.24.2/src/time/timeout.rs") },
	{ 'M', FRAME(APP, .function = "<tokio::future::maybe_done::MaybeDone<Fut> as "
				      "core::future::future::Future>::poll", .line = 26,
		     .file = CARGO "tokio-1.24.2/src/future/maybe_done.rs") },
	{ 'A', FRAME(APP, .function = "futures_core::task::__internal::atomic_waker::AtomicWaker::"
				      "register", .line = 27,
		     .file = CARGO "futures-core-0.3.21/src/task/__internal/atomic_waker.rs") },
	{ 'R', FRAME(APP, .function = "<tokio::io::util::read::Read<R> as "
				      "core::future::future::Future>::poll", .line = 21,
		     .file = CARGO "tokio-1.24.2/src/io/util/read.rs") },
	{ 'U', FRAME(APP, .function = "<tokio::io::util::buf_reader::BufReader<R> as "
				      "tokio::io::async_read::AsyncRead>::poll_read", .line = 22,
		     .file = CARGO "tokio-1.24.2/src/io/util/buf_reader.rs") },
	{ 'x', FRAME(APP, .function = "<tokio::net::tcp::stream::TcpStream as "
				      "tokio::io::async_read::AsyncRead>::poll_read", .line = 23,
		     .file = CARGO "tokio-1.24.2/src/net/tcp/stream.rs") },
	{ 'H', FRAME(APP, .function = "<hyper::client::conn::Connection<T,B> as "
				      "core::future::future::Future>::poll", .line = 24,
		     .file = CARGO "hyper-0.14.19/src/client/conn.rs") },
	{ 'q', FRAME(APP, .function = "<futures_util::stream::futures_unordered::"
				      "FuturesUnordered<Fut> as futures_core::stream::Stream>"
				      "::poll_next", .line = 25,
		     .file = CARGO "futures-util-0.3.21/src/stream/futures_unordered/mod.rs") },
};

static struct tdt_frame frame_of(char letter)
{
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i].letter == letter)
			return letters[i].frame;
	ck_abort_msg("no frame has the letter %c", letter);
	return letters[0].frame;
}

/* A tree: each letter is a child of the one before; `(` and `)` as in grow(); `*` is a leaf. */
static struct tdt_trace *tree_of(const char *text)
{
	struct tdt_trace *trace = new_trace(1);
	const struct tdt_node *at[32] = { tdt_trace_root(trace) }, *node = at[0];
	int depth = 0;

	for (; *text != '\0'; text++) {
		if (*text == '(') {
			at[++depth] = node;
		} else if (*text == ')' || *text == '|') {
			node = at[depth];
			depth -= *text == ')';
		} else {
			uint32_t leaves = (uint32_t)strspn(text + 1, "*");

			node = add(trace, node, frame_of(*text), leaves);
			text += leaves;
		}
	}
	return trace;
}

static void expect_options(const char *tree, const struct tdt_print_options *options,
			   const char *expected)
{
	TRACE(trace, tree_of(tree));
	TEXT(text, print(trace, options));

	ck_assert_str_eq(strchr(text, '\n') + 1, expected);
}

static void expect(const char *tree, const char *expected)
{
	expect_options(tree, OPTIONS(ASCII), expected);
}

#define RUN "- serve::run::{async} at src/main.rs:1\n"
#define GREET " `- serve::greet::{async} at src/main.rs:2\n"
#define SLEEP "tokio::time::Sleep at tokio-1.24.2/src/time/sleep.rs:11"
#define RECV "tokio::sync::mpsc::Receiver::recv at tokio-1.24.2/src/sync/mpsc/bounded.rs:13"

#define TIMEOUT "tokio::time::Timeout at tokio-1.24.2/src/time/timeout.rs:"
#define READ "tokio::io::util::Read at tokio-1.24.2/src/io/util/read.rs:21"

CASE(shown)

TEST(what_own_code_called_stands_for_the_calls_below)
{
	expect("stecb*", RUN " `- " SLEEP "\n");
	expect("spptecb*", RUN " `- " SLEEP "\n");
	expect("sre*", RUN " `- " RECV "\n");
	expect("sf*", RUN " `- foo_read (libfoo.so.1+0x10)\n");
	expect("sv*", RUN " `- uv_write at libuv/src/stream.c:18\n");
	expect("sn*", RUN " `- static_thing (serve)\n");
}

TEST(calls_between_own_functions_are_hidden)
{
	expect("pbpsppgte*", RUN GREET "    `- " SLEEP "\n");
	expect("sjJgt*", RUN GREET "    `- " SLEEP "\n");
	expect("flsg*", RUN GREET);
}

TEST(without_debug_information_the_wrappers_of_the_crate_are_hidden_by_name)
{
	expect("wnnk*", "- static_thing (serve)\n `- static_thing (serve)\n");
	expect_options("wn*", OPTIONS(ASCII, .full = 1),
		       "- tdt::traced::poll_future (serve+0x30)\n `- static_thing (serve)\n");
}

TEST(a_call_into_another_module_that_calls_back_is_shown)
{
	expect("sffgt*", RUN " `- foo_read (libfoo.so.1+0x10)\n"
			     "    `- serve::greet::{async} at src/main.rs:2\n"
			     "       `- " SLEEP "\n");
	expect("slgt*", RUN GREET "    `- " SLEEP "\n");
}

TEST(a_library_s_function_that_branches_gives_the_tree_its_shape)
{
	expect("sjJ(gt*|ht*)",
	       RUN " `- futures_util::future::JoinAll at "
		   "futures-util-0.3.21/src/future/join_all.rs:9\n"
		   "    |- serve::greet::{async} at src/main.rs:2\n"
		   "    |  `- " SLEEP "\n"
		   "    `- serve::halt::{async} at src/main.rs:3\n"
		   "       `- " SLEEP "\n");
	expect("sj(gt*|e*)",
	       RUN " `- futures_util::future::JoinAll at "
		   "futures-util-0.3.21/src/future/join_all.rs:9\n"
		   "    |- serve::greet::{async} at src/main.rs:2\n"
		   "    |  `- " SLEEP "\n"
		   "    `- tokio::runtime::time::StateCell::poll at "
		   "tokio-1.24.2/src/runtime/time/entry.rs:12\n");
}

TEST(a_join_of_operations_is_shown_with_them)
{
	expect("sjJtecb***",
	       RUN " `- futures_util::future::JoinAll at "
		   "futures-util-0.3.21/src/future/join_all.rs:9\n"
		   "    `- " SLEEP " (3 leaves)\n");
	expect("sjJ(tecb*|rcb*)",
	       RUN " `- futures_util::future::JoinAll at "
		   "futures-util-0.3.21/src/future/join_all.rs:9\n"
		   "    |- " SLEEP "\n"
		   "    `- " RECV "\n");
	/* Every leaf keeps a waker. */
	expect("sj(tecb*|Ac*)",
	       RUN " `- futures_util::future::JoinAll at "
		   "futures-util-0.3.21/src/future/join_all.rs:9 (1 leaf)\n"
		   "    `- " SLEEP "\n");
	/* One leaf needs one line. */
	expect("sjJtecb*", RUN " `- futures_util::future::JoinAll at "
			       "futures-util-0.3.21/src/future/join_all.rs:9\n");
}

TEST(a_macro_s_closure_in_own_code_is_hidden)
{
	expect("spm(te*|pgt*|re*)", RUN " |- " SLEEP "\n"
					" |- serve::greet::{async} at src/main.rs:2\n"
					" |  `- " SLEEP "\n"
					" `- " RECV "\n");
	expect("spmM(te*|ire*)", RUN " |- " SLEEP "\n"
				     " `- " TIMEOUT "19\n");
	/* And what the macro made of tokio's is its own affair. */
	expect("smr(gt*|ht*)", RUN " |- serve::greet::{async} at src/main.rs:2\n"
				   " |  `- " SLEEP "\n"
				   " `- serve::halt::{async} at src/main.rs:3\n"
				   "    `- " SLEEP "\n");
}

TEST(cloning_the_waker_is_no_operation)
{
	expect("sg*", RUN GREET);
	expect("sgcb*", RUN GREET);
	expect("sgppc*", RUN GREET);
}

TEST(the_language_s_function_is_the_operation_if_no_package_is_called)
{
	expect("sdl*", RUN " `- std::thread::sleep at library/std/src/thread/mod.rs:7\n");
	expect("sl*", RUN " `- clock_nanosleep at ../sysdeps/nanosleep.c:8\n");
}

TEST(a_binding_s_function_is_an_operation_if_it_waits_for_one)
{
	expect("sBrecb*", RUN " `- tdt::sync::Mutex::lock at /home/me/tdt/src/sync.rs:15\n");
}

TEST(calls_of_tdt_are_shown_as_ever)
{
	expect("spT*", RUN " `- tdt_sleep_ms at src/runtime/sleep.c:16\n");
	expect_options("spT*", OPTIONS(ASCII, .full = 1),
		       RUN " `- <core::pin::Pin<P> as core::future::future::Future>::poll at "
			   "library/core/src/future/future.rs:5\n"
			   "    `- tdt_sleep_ms at src/runtime/sleep.c:16\n");
}

TEST(a_library_built_with_the_program_is_own_code)
{
	expect("sot*", RUN " `- app_core::work at work.cc:17\n    `- " SLEEP "\n");
}

TEST(a_frame_that_was_not_named_in_time_is_shown)
{
	expect("sput*", RUN " `- serve+0x20 (not named in time)\n    `- " SLEEP "\n");
}

TEST(a_task_of_packages_is_their_outermost_functions)
{
	expect("pjJte*",
	       "- futures_util::future::JoinAll at futures-util-0.3.21/src/future/join_all.rs:9\n"
	       " `- " SLEEP "\n");
	expect("Rxe*", "- " READ " (on tokio::net::TcpStream)\n");
}

TEST(what_several_calls_of_a_function_wait_for_is_shown)
{
	expect("s(ireb*|Iptecb*)", RUN " |- " TIMEOUT "19\n"
				       " |  `- " RECV "\n"
				       " `- " TIMEOUT "20\n"
				       "    `- " SLEEP "\n");
	/* Own code says so itself. */
	expect("s(igreb*|Iptecb*)", RUN " |- serve::greet::{async} at src/main.rs:2\n"
					" |  `- " RECV "\n"
					" `- " TIMEOUT "20\n");
	/* One call. */
	expect("sireb*", RUN " `- " TIMEOUT "19\n");
}

TEST(an_adapter_s_object_is_named)
{
	expect("sRxe*", RUN " `- " READ " (on tokio::net::TcpStream)\n");
	expect("sRUxe*", RUN " `- " READ " (on tokio::net::TcpStream)\n");
	expect("sRUe*", RUN " `- " READ " (on tokio::io::util::BufReader)\n");
	expect("sxe*", RUN " `- tokio::net::TcpStream::poll_read at "
			   "tokio-1.24.2/src/net/tcp/stream.rs:23\n");
	expect("sHRUxe*", RUN " `- hyper::client::Connection at "
			      "hyper-0.14.19/src/client/conn.rs:24 (on tokio::net::TcpStream)\n");
	/* With several leaves it may be another object for each. */
	expect("sR(xe*|Ue*)", RUN " `- " READ " (2 leaves)\n");
}

TEST(futures_that_no_tree_shows_are_mentioned)
{
	expect("sjq*", RUN " `- futures_util::future::JoinAll at "
			   "futures-util-0.3.21/src/future/join_all.rs:9 "
			   "(on futures_util::stream::FuturesUnordered) "
			   "(futures that wait in it are not in this tree)\n");
	expect_options("sq*", OPTIONS(ASCII, .full = 1),
		       RUN " `- <futures_util::stream::futures_unordered::FuturesUnordered<Fut> as "
			   "futures_core::stream::Stream>::poll_next at "
			   "futures-util-0.3.21/src/stream/futures_unordered/mod.rs:25 "
			   "(futures that wait in it are not in this tree)\n");
}

TEST(a_tree_of_unknown_code_is_shown_as_a_whole)
{
	expect("of*", "- app_core::work at work.cc:17\n `- foo_read (libfoo.so.1+0x10)\n");
	expect("unf*", "- serve+0x20 (not named in time)\n `- static_thing (serve)\n"
		       "    `- foo_read (libfoo.so.1+0x10)\n");
}

TEST(the_full_form_folds_nothing)
{
	expect_options("spt*", OPTIONS(ASCII, .full = 1),
		       RUN " `- <core::pin::Pin<P> as core::future::future::Future>::poll at "
			   "library/core/src/future/future.rs:5\n"
			   "    `- <tokio::time::sleep::Sleep as "
			   "core::future::future::Future>::poll at "
			   "tokio-1.24.2/src/time/sleep.rs:11\n");
	expect_options("spt*", OPTIONS(ASCII, .full_paths = 1),
		       "- serve::run::{async} at /home/me/app/src/main.rs:1\n"
		       " `- tokio::time::Sleep at " CARGO "tokio-1.24.2/src/time/sleep.rs:11\n");
}

TEST(folded_stacks_and_json_have_all_calls)
{
	TRACE(trace, tree_of("spt*"));
	char *text = print(trace, OPTIONS(FOLDED));

	ck_assert_str_eq(text, "task 1;serve::run::{async};"
			       "<core::pin::Pin<P> as core::future::future::Future>::poll;"
			       "<tokio::time::sleep::Sleep as "
			       "core::future::future::Future>::poll 1\n");
	free(text);
	SAYS(print(trace, OPTIONS(JSON)), "core::pin::Pin", "!hides_futures");
}

TEST(json_says_which_functions_hide_futures)
{
	TRACE(trace, tree_of("sq*"));

	SAYS(print(trace, OPTIONS(JSON)), "\"hides_futures\":true");
}

CASE(rules)

TEST(what_a_function_polls_follows_from_its_trait)
{
	static const struct {
		const char *function;
		enum tdt__polled polled;
		bool future;
	} cases[] = {
		{ "<a::S as a::AsyncRead>::poll_read", TDT__POLLED_OBJECT, false },
		{ "<a::B<a::S> as a::AsyncRead>::poll_read", TDT__POLLED_ADAPTER, false },
		{ "<&mut a::S as a::AsyncRead>::poll_read", TDT__POLLED_NOTHING, false },
		{ "<T as a::AsyncRead>::poll_read", TDT__POLLED_NOTHING, false },
		{ "<core::pin::Pin<P> as a::AsyncRead>::poll_read", TDT__POLLED_NOTHING, false },
		{ "<a::S as core::future::future::Future>::poll", TDT__POLLED_NOTHING, true },
		{ "a::S::poll_read", TDT__POLLED_NOTHING, false },
		{ "<a::S>::poll_read", TDT__POLLED_NOTHING, false },
		{ "<a::S as a::R>::poll_read::{async}", TDT__POLLED_OBJECT, true },
		{ "a::f::{async}", TDT__POLLED_NOTHING, true },
		{ "<a::S as", TDT__POLLED_NOTHING, false },
		{ "<", TDT__POLLED_NOTHING, false },
		{ "", TDT__POLLED_NOTHING, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(tdt__polled(cases[i].function), cases[i].polled);
		ck_assert_int_eq(tdt__polls_future(cases[i].function), cases[i].future);
	}
	ck_assert(tdt__keeps_wakers("a::task::AtomicWaker::register"));
	ck_assert(!tdt__keeps_wakers("a::Waker2::take"));
	ck_assert(!tdt__keeps_wakers("a::atomic_waker::f"));
	ck_assert(!tdt__keeps_wakers("a::Waker<"));
	ck_assert(tdt__hides_futures("futures_util::future::future::shared::Shared<F>::peek"));
	ck_assert(!tdt__hides_futures("futures_util::stream::StreamExt::next"));
}

CASE(shown)

TEST(the_depth_counts_what_is_shown)
{
	expect_options("ppsppgpte*", OPTIONS(ASCII, .max_depth = 2),
		       RUN GREET "    `- ... 1 frame and 1 leaf below\n");
}

CASE(rules)

TEST(whose_code_a_frame_is_follows_from_its_place)
{
	static const struct {
		struct tdt_frame frame;
		enum tdt__origin origin;
	} cases[] = {
		{ FRAME(.file = "/a/x.c", .module = "/bin/a"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = "x.c", .module = "a"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.function = "reported"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.pc = 7), TDT__ORIGIN_UNKNOWN },
		{ FRAME(.function = "f", .module = "/bin/a"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/a/x.c", .module = "/l/liba.so"), TDT__ORIGIN_LIBRARY },
		{ FRAME(.file = "/a/x.c", .module = "/l/liba.so.1.2"), TDT__ORIGIN_LIBRARY },
		{ FRAME(.function = "f", .module = "/l/liba.so"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.unnamed = 1, .module = "/l/liba.so"), TDT__ORIGIN_UNKNOWN },
		{ FRAME(.function = "read", .module = "/l/libc.so.6"), TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/usr/include/c++/12/bits/invoke.h", .module = "a"),
		  TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/usr/lib/llvm-14/include/c++/v1/__functional/invoke.h"),
		  TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = RUSTC "core/src/pin.rs", .module = "a"), TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/usr/src/rustc-1.63.0/library/core/src/pin.rs"),
		  TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/t/lib/rustlib/src/rust/library/std/src/panic.rs"),
		  TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/home/me/rustc/books/library/shelf.rs"), TDT__ORIGIN_LANGUAGE },
		{ FRAME(.file = "/home/me/rust/library/shelf.rs"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = CARGO "tokio-1.24.2/src/lib.rs"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/usr/share/cargo/registry/tokio-1.24.2/src/lib.rs"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/h/.cargo/git/checkouts/mio-1ab/5f3/src/lib.rs"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/a/vendor/tokio/src/lib.rs"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "vendor/tokio/src/lib.rs"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/a/third_party/rust/tokio/src/lib.rs"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "registry/src/x/a-1.0.0/src/lib.rs"), TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/deps/index.crates.io-1949cf8c6b5b557f/a-1.0.0/src/lib.rs"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/a/of-1949cf8c6b5b557f/main.rs"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = "/a/vendor/invoice.rs"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = "/a/src/vendor/invoice/mod.rs"), TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = "/a/build/_deps/fmt-src/src/format.cc", .directory = "/a/build"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/usr/include/boost/asio/post.hpp", .directory = "/a"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.file = "/usr/src/googletest/src/gtest.cc", .directory = "/a"),
		  TDT__ORIGIN_PACKAGE },
		/* As in many containers. */
		{ FRAME(.file = "/usr/src/app/src/main.rs", .directory = "/usr/src/app"),
		  TDT__ORIGIN_PROGRAM },
		{ FRAME(.file = "/usr/local/cargo/registry/src/x/a-1.0.0/src/lib.rs",
			.directory = "/usr/local/cargo/registry/src/x/a-1.0.0"),
		  TDT__ORIGIN_PACKAGE },
		{ FRAME(.function = "tdt_join_all", .module = "a"), TDT__ORIGIN_TDT },
		{ FRAME(.function = "f", .module = "/l/libtdt.so.0"), TDT__ORIGIN_TDT },
		{ FRAME(.function = "tdt::task<>::resume", .file = "/i/tdt/coroutine.hpp"),
		  TDT__ORIGIN_BINDING },
		{ FRAME(.function = "<tdt::Traced<F> as core::future::future::Future>::poll",
			.file = "/h/tdt/src/lib.rs"),
		  TDT__ORIGIN_BINDING },
		{ FRAME(.function = "greet::tdt::poll_rust", .file = "/h/greet/src/tdt.rs"),
		  TDT__ORIGIN_BINDING },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(tdt__origin(&cases[i].frame) == cases[i].origin, "case %zu is %d", i,
			      (int)tdt__origin(&cases[i].frame));
}

TEST(sources_lie_together_below_the_directory_of_the_build)
{
	static const struct {
		const char *file, *own_file, *own_directory;
		bool together;
	} cases[] = {
		{ "/home/me/app/lib/x.c", "/home/me/app/src/y.c", "/home/me/app", true },
		{ "/home/me/app/lib/x.c", "/home/me/app/src/y.c", "/home/me/app/build", true },
		{ "/home/me/app/lib/x.c", "/home/me/app/build/../src/y.c", "/home/me/app/build",
		  true },
		{ "/app/lib/x.c", "/app/src/y.c", "/app", true },
		{ "/home/me/apple/x.c", "/home/me/app/y.c", "/home/me/app", false },
		{ "/home/me/lib/x.c", "/home/me/app/y.c", "/home/me/build", false },
		{ "/home/me/lib/x.c", "/home/me/app/y.c", NULL, false },
		{ "/x.c", "/y.c", "/", false },
		{ "lib/x.c", "y.c", ".", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tdt_frame frame = FRAME(.file = cases[i].file);
		const struct tdt_frame own = FRAME(.file = cases[i].own_file,
						   .directory = cases[i].own_directory);

		ck_assert_msg(tdt__lies_with(&frame, &own) == cases[i].together, "case %zu", i);
	}
}

TEST(an_operation_has_the_name_that_its_user_knows)
{
	static const char *const cases[][2] = {
		{ "<tokio::time::sleep::Sleep as core::future::future::Future>::poll",
		  "tokio::time::Sleep" },
		{ "tokio::sync::mutex::Mutex<T>::lock::{async}", "tokio::sync::Mutex::lock" },
		{ "<tokio::sync::mutex::Mutex<u32>>::lock::{async}::{closure#0}",
		  "tokio::sync::Mutex::lock" },
		{ "tokio::sync::mpsc::bounded::Receiver<T>::recv::{{closure}}",
		  "tokio::sync::mpsc::Receiver::recv" },
		{ "tokio::fs::read::read::{async}", "tokio::fs::read" },
		{ "<futures_util::stream::stream::next::Next<St> as "
		  "core::future::future::Future>::poll",
		  "futures_util::stream::Next" },
		{ "tokio::sync::notify::Notified::poll_notified",
		  "tokio::sync::notify::Notified" },
		{ "tokio::sync::mpsc::chan::Rx<T,S>::poll_recv",
		  "tokio::sync::mpsc::Rx::poll_recv" },
		{ "tokio::net::tcp::stream::TcpStream::connect::<&str>::{async}",
		  "tokio::net::TcpStream::connect" },
		{ "tokio::sync::once_cell::OnceCell<T>::get", "tokio::sync::OnceCell::get" },
		{ "<tokio::net::tcp::stream::TcpStream as tokio::io::AsyncRead>::poll_read",
		  "tokio::net::TcpStream::poll_read" },
		{ "<&mut T as tokio::io::async_read::AsyncRead>::poll_read",
		  "tokio::io::AsyncRead::poll_read" },
		{ "tokio::time::timeout::Timeout", "tokio::time::Timeout" },
		{ "boost::asio::async_read<boost::asio::ip::tcp::socket, int (*)(long)>",
		  "boost::asio::async_read" },
		{ "std::this_thread::sleep_for<long, std::ratio<1l, 1l> >",
		  "std::this_thread::sleep_for" },
		{ "(anonymous namespace)::wait", "(anonymous namespace)::wait" },
		{ "app::operator<<", "app::operator<<" },
		{ "app::f<operator<", "app::f<operator<" },
		{ "broken<", "broken<" },
		{ "broken>", "broken>" },
		{ "<>", "<>" },
		{ "<", "<" },
		{ "::", "::" },
		{ "{closure}", "{closure}" },
		{ "read", "read" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt__string name = { 0 };

		tdt__operation_name(&name, cases[i][0]);
		ck_assert_str_eq(name.bytes, cases[i][1]);
		tdt__string_free(&name);
	}
}

CASE(paths)

/* The paths are those of the environment in which the program began. */
TEST(more_paths_of_packages_may_be_given)
{
	const struct tdt_frame package = FRAME(.file = "/opt/deps/a/lib.rs", .function = "f");
	const struct tdt_frame other = FRAME(.file = "/opt/depths/a/lib.rs", .function = "f");
	const bool given = getenv("TDT_FOLD") != NULL;
	char path[PATH_MAX] = "";

	ck_assert_int_eq(tdt__origin(&package),
			 given ? TDT__ORIGIN_PACKAGE : TDT__ORIGIN_PROGRAM);
	ck_assert_int_eq(tdt__origin(&other), TDT__ORIGIN_PROGRAM);
	if (given)
		return;
	ck_assert_int_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
	ck_assert_int_eq(setenv("TDT_FOLD", "/srv::/opt/deps/", 1), 0);
	ck_assert_int_eq(setenv("CK_RUN_CASE", "paths", 1), 0);
	ck_assert_int_eq(unsetenv("CK_TAP_LOG_FILE_NAME"), 0);
	ck_assert_int_eq(system(path), 0);
}

/* ---- What may go wrong ---- */

struct printing {
	const struct tdt_trace *trace;
	FILE *file;
};

static int print_once(void *arg)
{
	struct printing *printing = arg;

	rewind(printing->file);
	return tdt_trace_print_with(printing->trace, printing->file, OPTIONS(ASCII));
}

CASE(wrong)

TEST(every_allocation_may_fail)
{
	char text[4096], buffer[512];
	TRACE(trace, tree_of("sj(gt*|ovt*|dl*|Rxe*|q*)"));
	struct printing printing = { trace, fmemopen(text, sizeof(text), "w") };

	setvbuf(printing.file, buffer, _IOFBF, sizeof(buffer));
	no_memory_each(print_once, &printing, 20);
	fclose(printing.file);
}
