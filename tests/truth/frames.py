# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# For gdb: what gdb says of the stack of each leaf of a generated program (run.c), to the file that
# TRUTH names, as lines
#
#	POLL <tab> WHAT BECAME OF THE LEAF <tab> FRAME;FRAME;...
#
# A frame is FUNCTION@FILE:LINE, `|FILE:LINE` where addr2line knows another line, and ` inlined` or
# ` tail call`.
import os
import re
import subprocess

import gdb

program = gdb.objfiles()[0].filename


def entry_point():
    files = gdb.execute("info files", to_string=True)
    return int(re.search("Entry point: (0x[0-9a-f]+)", files)[1], 16)


class Lines:
    """addr2line as a server: the places of an address, those of inlined functions first."""

    def __init__(self):
        self.known = {}
        self.process = subprocess.Popen(["addr2line", "-ia", "-e", program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def at(self, address):
        if address not in self.known:
            # The answer to 0 ends that to the address.
            self.process.stdin.write("%#x\n0\n" % address)
            self.process.stdin.flush()
            lines = iter(lambda: self.process.stdout.readline().strip(), "0x%016x" % 0)
            places = [re.sub(r" \(.*", "", line).replace("/./", "/") for line in lines]
            self.known[address] = places[1:]
            self.process.stdout.readline()
        return self.known[address]


def place(frame):
    sal = frame.find_sal()
    file = sal.symtab.fullname() if sal.symtab else "?"
    return "%s:%d" % (file.replace("/./", "/"), sal.line)


def other_places(frames):
    """What addr2line says of a frame and those that were inlined into it, if it knows as many."""
    address = frames[0].pc() - 1 - bias
    inside = gdb.current_progspace().solib_name(frames[0].pc()) is None
    places = lines.at(address) if inside else []
    known = [place(frame) for frame in frames]
    if len(places) != len(frames) or any("?" in other for other in places):
        return known
    # With -flto, that is what addr2line 2.40 calls the first file of a line table.
    return [known[i] if "<artificial>" in other else other for i, other in enumerate(places)]


def words(frame, other):
    kind = {gdb.INLINE_FRAME: " inlined", gdb.TAILCALL_FRAME: " tail call"}.get(frame.type(), "")
    known = place(frame)
    return "%s@%s%s%s" % (frame.name() or "?", known, "|" + other if other != known else "", kind)


def stack(frame):
    """The frames up to truth_poll(), outermost first."""
    result, together = [], []
    while frame and frame.name() != "truth_poll":
        together.append(frame)
        if frame.type() != gdb.INLINE_FRAME:
            result += [words(*both) for both in zip(together, other_places(together))]
            together = []
        frame = frame.older()
    return ";".join(reversed(result)) if frame else "a stack without truth_poll()"


class Clone(gdb.Breakpoint):
    def stop(self):
        leaf = int(gdb.parse_and_eval("truth_leaf_now"))
        if leaf >= 0:
            stacks[leaf] = stack(gdb.newest_frame().older())
        return False


class Say(gdb.Breakpoint):
    def stop(self):
        poll, leaf, what = [gdb.parse_and_eval(name) for name in ("poll", "leaf", "what")]
        output.write("%d\t%s\t%s\n" % (int(poll), what.string(), stacks[int(leaf)]))
        return False


def begin(mode):
    """Starts the program."""
    global lines, bias
    gdb.execute("set pagination off")
    gdb.execute("set confirm off")
    lines, bias = Lines(), entry_point()
    gdb.execute("starti " + mode)
    bias = entry_point() - bias


stacks = {}
if __name__ == "__main__":
    begin("truth")
    with open(os.environ["TRUTH"], "w") as output:
        Clone("truth_waker_clone")
        Say("truth_say")
        gdb.execute("continue")
        output.write("end\n")
