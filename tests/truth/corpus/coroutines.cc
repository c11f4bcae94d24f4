// g++ -O2 -g -fstack-protector-all : whole
// Coroutines of all kinds stand in the tree where they await.
#include "truth.hpp"

extern "C" const unsigned truth_plain_polls = 0;

static tdt::task<int> member(const truth_here *parent)
{
	HERE(parent, "member");
	alignas(64) char room[100];

	truth_use(room);
	AWAIT(leaf(&here, 1, TRUTH_EMPTIED));
	AWAIT(leaf(&here, TRUTH_FOR_EVER, TRUTH_EMPTIED));
	co_return 1;
}

static auto nameless = [](const truth_here *parent) -> tdt::task<> {
	HERE(parent, "lambda");

	AWAIT(passed(&here, [](const truth_here *at) { return member(at); }));
};

static tdt::task<> root()
{
	HERE(nullptr, "root");

	AWAIT(joined(member(&here), nameless(&here)));
}

extern "C" tdt_future truth_root(void)
{
	return as_c(root());
}
