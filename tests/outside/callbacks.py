#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compare the answers with what callbacks.c says of itself.

	callbacks.py TRUTH ANSWER WHAT      ANSWER: JSON of a dump or of tdt bt (WHAT is trees),
	                                    or of tdt ps (WHAT is records; or a number, of a
	                                    recording: it may lack what is overwritten, and what
	                                    a thread did before it had a ring, but proves so many)
"""

import json
import sys

OURS = "begin first second third block"


def chain_of(nodes):
    """The functions of this program, and what is awaited, the outermost first."""
    by_id = {node["id"]: node for node in nodes}
    leaf = next(node for node in nodes if node.get("leaves"))
    chain = []
    while leaf is not None:
        name = leaf.get("function", "?").split("::")[-1]
        if name in OURS.split() or name.startswith("a ") or leaf["kind"] == "cut":
            chain.insert(0, name if leaf["kind"] == "frame" else "(cut)")
        leaf = by_id.get(leaf.get("parent"))
    return ">".join(name for name in chain if name != "?")


def wait_of(task):
    return task["waits"][0]["kind"] if task.get("waits") else "-"


def seen(answer, what):
    if what != "trees":
        for entry in answer["tasks"]:
            task = entry["task"]
            yield task["id"], task["state"].replace("polling", "running"), wait_of(task), None
        return
    for group in answer["groups"]:
        chain = chain_of(group["nodes"]) if group["answer"] != "none" else "-"
        for task in group["tasks"]:
            yield task["id"], task["state"], wait_of(task), chain


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.split(" ", 3) for line in file.read().splitlines()]
    truth = {line[0]: line[1:] for line in lines if len(line) == 4}
    with open(sys.argv[2], encoding="utf-8") as file:
        answer = json.load(file)
    wrong = silent = n = 0
    for task, state, kind, chain in seen(answer, sys.argv[3]):
        n += 1
        true = truth.get(str(task))
        got = [state.replace("pending", "waiting"), kind, true[2] if true and chain is None else chain]
        if sys.argv[3].isdigit() and (state == "unknown" or true and got[:2] == [true[0], "-"]):
            silent += got != true
        elif got != true:
            wrong += 1
            if wrong < 10:
                print(f"task {task}: {got}, not {true}", file=sys.stderr)
    print(f"{n} tasks of {len(truth)}, {wrong} wrong, {silent} silent")
    least = int(sys.argv[3]) if sys.argv[3].isdigit() else len(truth)
    return 0 if n - silent >= least and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
