# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# For gdb: stops a generated program (run.c) in some leaves, while they are polled, and has the
# program tdt read the stack of that poll, of the process that stands still and of a core file of
# it.  Writes what gdb says of the stack to the file that TRUTH names, and what tdt says to OURS, as
# compare.awk takes them; each answer counts as a poll of its own.  A stack of tdt's that is marked,
# as a guess or as cut, has `marked`.
import json
import os
import subprocess
import sys
import tempfile

import gdb

sys.path.insert(0, os.environ["HERE"])
import frames  # noqa: E402

STOPS = (1, 4, 9)  # the clones of wakers at which the program is looked at
tdt, folder = os.environ["TDT"], tempfile.mkdtemp(prefix="truth-", dir=os.environ["FOLDER"])


def in_library(frame):
    return os.path.basename(frame.pc() and gdb.solib_name(frame.pc()) or "").startswith("libtdt.")


def stack_of_task():
    """As stack(), without the frames of the library that poll the task."""
    frame, polls = gdb.newest_frame(), 0
    while frame.name() != "truth_poll":
        polls = polls + 1 if in_library(frame) else 0
        frame = frame.older()
    return ";".join(frames.stack(gdb.newest_frame().older()).split(";")[polls:])


def said(words):
    """The stack of the root task's poll that tdt prints, and its mark."""
    done = subprocess.run([tdt, "bt", "--json", "--no-request", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    for group in json.loads(done.stdout)["groups"] if done.returncode == 0 else ():
        if any(task.get("name") == "root" for task in group["tasks"]):
            nodes = [node for node in group.get("nodes", ()) if node["kind"] != "task"]
            return ";".join(map(frame_of, nodes[:-1])), "marked" if any(
                node["kind"] == "cut" or node.get("guessed") for node in nodes) else "0"
    return "no answer " + done.stderr.replace("\n", " "), "0"


def frame_of(node):
    if node["kind"] == "cut":
        return "cut " + node["cut"]
    file = node.get("file", "?")
    if not file.startswith("/") and node.get("directory"):
        file = node["directory"] + "/" + file
    return "%s@%s:%d%s" % (node.get("function") or node.get("symbol", "?"), file,
                           node.get("line", 0), " inlined" if node.get("inlined") else "")


frames.begin("outside")
pid, core = gdb.selected_inferior().pid, os.path.join(folder, "core")
gdb.Breakpoint("truth_waker_clone")
with open(os.environ["TRUTH"], "w") as true, open(os.environ["OURS"], "w") as ours:
    for clone in range(STOPS[-1] + 1):
        gdb.execute("continue")
        if not gdb.selected_inferior().pid:
            break
        if clone not in STOPS or int(gdb.parse_and_eval("truth_leaf_now")) < 0:
            continue
        true_stack = stack_of_task()
        if not true_stack:
            continue  # the library clones, after the poll
        gdb.execute("generate-core-file " + core, to_string=True)
        for way, words in enumerate(([str(pid)], ["--core=" + core])):
            true.write("%d\twaits\t%s\n" % (2 * clone + way, true_stack))
            ours.write("%d\t%s\t%s\n" % (2 * clone + way, *said(words)))
        os.remove(core)
    true.write("end\n")
gdb.execute("kill" if gdb.selected_inferior().pid else "info inferiors", to_string=True)
