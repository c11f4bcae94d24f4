#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Ask for the tasks of matrix.c in every way, and compare the answers with what is true.

	matrix.py tdt=PROGRAM pid=PID truth=FILE folder=FOLDER table=FILE configuration=NAME
	          parts=PART,... [PART=ARGUMENT]
	matrix.py limits TABLE                  prints the table for docs/limits.md

FILE is what the program has printed; what is asked, and what is answered, goes to FOLDER.  A part
is a method of Asker.

A *way* is a command, or a call of the library.  Each gives some *facts* of each task; a *cell* is a
fact of a task by one way.  A cell that is not the truth is silent (it says nothing, or a part of
what is true, and marks that), or it says something else.  The marks are `part` and `unknown` of
leaves, `at least` of times, and `unproven` of rings.  matrix.tsv declares the cells that differ,
and why.

It prints what is not declared, and what is declared and does not happen, and is 1 then; and how
many cells there are and how many differ, by class and way.
"""

import collections
import json
import os
import re
import subprocess
import sys
import time

# No limit of the method may concern these.
NEVER_LIMITED = ("exists", "state", "rests")

RECORD = "exists state since waits holder verdict"
TREES = RECORD + " leaves stacks"
GIVES = {
    "tasks": "exists state since waits holder",
    "backtrace": "state since waits holder leaves stacks",
    "dump": TREES,
    "ps": RECORD,
    "bt_read": TREES,
    "bt_ptrace": TREES,
    "bt": TREES,
    "top": RECORD,
    "metrics": "state verdict",
    "diff": "exists state since waits holder rests",
    "profile": "exists state waits stacks",
    "profile_recorded": "exists state waits",
    "summary": "state since waits holder verdict stacks",
    "perfetto": "exists state since waits holder verdict",
    "core_ps": RECORD,
    "core_bt": TREES,
    "gdb_ps": RECORD,
    "gdb_bt": TREES,
    "dir_ps": RECORD,
    "dir_bt": TREES,
    "asked_dir_ps": "exists state since",
    "fork_ps": RECORD,
    "fork_bt": TREES,
}
# These list the last tasks that panicked.
LIST_PANICS = ("dump", "bt", "bt_read", "bt_ptrace", "core_bt", "fork_bt", "gdb_bt", "summary")
# These give no answer, however long one waits for it.
GIVE_NONE = ("late", "never", "callback_runs")
# The watch notes the time now and then, so the clock of a core file is right by chance: there, what
# is silent is not compared.
BY_CHANCE = (("watch:core_ps", "since"), ("watch:core_bt", "since"))
# A recording proves nothing but that a lock is orphaned: there, a deadlock is a ring.
PROVE_LITTLE = ("dir_ps", "dir_bt", "summary", "perfetto")
NAME_NO_RINGS = ("summary", "perfetto")


class Shape:
    """What is true of a task."""

    def __init__(self, line):
        fields = line.split()
        self.name, self.id, self.exists, self.state = fields[0], int(fields[1]), *fields[2:4]
        self.after, self.before = int(fields[4]), int(fields[5])
        self.waits = collections.Counter(multiplied(fields[6], "+"))
        self.holder, self.leaves = fields[7], int(fields[8])
        self.stacks = None if fields[9] == "?" else collections.Counter(multiplied(fields[9], "|"))
        self.verdict = fields[10]


def multiplied(text, between):
    """The parts of `text`; 15*x is x, 15 times."""
    for part in [] if text == "-" else text.split(between):
        times, star, rest = part.partition("*")
        yield from [rest] * int(times) if star else [part]


class Seen:
    """What a way says of a task.  None: nothing."""

    def __init__(self, state):
        self.state = {"running": "polling", "spawned": "waiting"}.get(state, state)
        self.since = None  # from when to when, as it was asked in between
        self.waits = collections.Counter()
        self.holders = set()
        self.at_least = False  # it may be that for longer
        self.moved = False  # because it was asked
        self.leaves = self.stacks = None
        self.leaves_known = "all"
        self.partly = False  # the tree says that it lacks something
        self.verdict = "-"
        self.rests = None


# --- What the ways say ---


def wait(seen, kind, owner=None):
    if kind != "unknown":
        seen.waits[kind] += 1
    if owner:
        seen.holders.add(int(owner))


def task_seen(task, asked, answered):
    seen = Seen(task["state"])
    if int(task.get("state_ns", 0)):
        seen.since = (asked - int(task["state_ns"]), answered - int(task["state_ns"]))
    for one in task.get("waits", []):
        wait(seen, one["kind"], one.get("owner"))
        if "orphaned" in one:
            seen.verdict = "orphaned"
    seen.moved = "moved" in task
    return seen


def is_ours(node):
    return os.path.basename(node.get("file", "")) == "matrix.c"


def add_tree(seen, nodes, task):
    """The stacks of a tree: of each leaf, the functions of matrix.c, the outermost first."""
    parents = {node.get("parent") for node in nodes}
    leaves = [n for n in nodes if n.get("leaves")] or \
        [n for n in nodes if n["id"] not in parents and n["kind"] == "frame"]
    seen.stacks = collections.Counter()
    seen.partly = any(n["kind"] == "cut" or n.get("guessed") or
                      n["kind"] == "frame" and "function" not in n for n in nodes)
    # A leaf of a running poll is the place where it is.
    if seen.state == "polling":
        seen.leaves = 1
    else:
        seen.leaves = int(task.get("leaves", 0))
        seen.leaves_known = task.get("leaves_known", "all")
    for leaf in leaves:
        stack, node = [], leaf
        while node is not None:
            if is_ours(node):
                stack.insert(0, node["function"])
            node = nodes[node["parent"]] if "parent" in node else None
        seen.stacks[">".join(stack)] += leaf.get("leaves", 1)


def verdicts(tasks, answer):
    for name, verdict in (("rings", "ring"), ("unproven", "unproven"), ("deadlocks", "deadlock")):
        for ring in answer.get(name, []):
            for task in ring:
                if int(task) in tasks:
                    tasks[int(task)].verdict = verdict
    for lock in answer.get("futurelocks", []):
        tasks[int(lock["task"])].verdict = "futurelock"
    for lost in answer.get("lost_wakeups", []):
        tasks[int(lost["tasks"][0]["id"])].verdict = "lost"
    return tasks


def now_of(head):
    """When the tasks were read.  A core file has no clock."""
    return (int(head["process"]["now_ns"]),) * 2


def mark_times(tasks, head):
    for seen in tasks.values():
        seen.at_least = head.get("at_least", False)
    return tasks


def of_ps(answer, when):
    tasks = {int(t["task"]["id"]): task_seen(t["task"], *when) for t in answer["tasks"]}
    return mark_times(verdicts(tasks, answer), answer["ps"])


def of_dump(answer, asked, answered):
    tasks = {}
    for group in answer["groups"] + answer.get("panics", []):
        for task in group["tasks"]:
            seen = tasks[int(task["id"])] = task_seen(task, asked, answered)
            if group["answer"] != "none":
                add_tree(seen, group["nodes"], task)
    return mark_times(verdicts(tasks, answer), answer["dump"])


def of_trace(answer, asked, answered):
    seen = task_seen(answer["task"], asked, answered)
    add_tree(seen, answer["nodes"], answer["task"])
    return {int(answer["task"]["id"]): seen}


def of_diff(answer, asked, answered):
    tasks = {}
    for group in answer["groups"]:
        for task in group["tasks"]:
            seen = tasks[int(task["id"])] = task_seen(task, asked, answered)
            seen.rests = group["fate"]
    return tasks


def of_profile(answer, shapes, places):
    tasks = {}
    ids = {shape.name: shape.id for shape in shapes}
    for row in answer["places"] if places else answer.get("recorded", {}).get("tasks", []):
        if row.get("task") not in ids:
            continue
        seen = tasks.setdefault(ids[row["task"]], Seen(row["state"]))
        if row.get("kind") and not places:
            wait(seen, row["kind"])
        if places:
            # A task's time is shared among its places.
            if row.get("kind"):
                seen.waits |= collections.Counter([row["kind"]])
            if row.get("frames"):
                ours = [f["function"] for f in row["frames"] if is_ours(f)]
                seen.stacks = (seen.stacks or collections.Counter())
                seen.stacks[">".join(reversed(ours))] += 1
    return tasks


def of_summary(answer):
    tasks = {}
    for kind in ("slow_polls", "locks", "waits", "delays"):
        for row in answer[kind]:
            if not row.get("going_on"):
                continue
            state = {"slow_polls": "polling", "delays": "runnable"}.get(kind, "waiting")
            seen = tasks[int(row["task"]["id"])] = Seen(state)
            start = int(row.get("start_ns", row.get("at_ns", 0)))
            seen.since = (start, start)
            if state == "waiting":
                wait(seen, row.get("kind", "unknown"), row.get("owner", {}).get("id"))
            if row.get("orphaned"):
                seen.verdict = "orphaned"
            if "nodes" in row:
                add_tree(seen, row["nodes"], row["task"])
    for row in answer["panics"]:
        tasks[int(row["task"]["id"])] = Seen("panicked")
    return tasks


def of_perfetto(text):
    """The slices that are still open at the end.  Times are increments, except of what is past."""
    names, tracks, tasks, last = {}, {}, {}, 0
    for packet in re.split(r"(?m)^packet \{", text)[1:]:
        base = re.search(r"clock_id: 64\s+timestamp: (\d+)", packet)
        if base:
            last = int(base[1])
            continue
        for one in re.finditer(r'event_names \{\s*iid: (\d+)\s*\w+: "((?:\\.|[^"])*)"', packet):
            names[one[1]] = one[2]
        one = re.search(r'(?s)track_descriptor \{.*?uuid: (\d+).*?\bname: "([^"]*)"', packet)
        if one:
            tracks[one[1]] = one[2]
        if "track_event {" not in packet:
            continue
        stamp = re.search(r"(?m)^  timestamp: (\d+)", packet)
        now = int(stamp[1])
        if field_of(packet, "timestamp_clock_id") is None:
            now = last = last + now
        track = tracks.get(field_of(packet, "track_uuid"), "")
        if not re.fullmatch(r"\S+ \d+", track):
            continue
        task = int(track.split()[1])
        kind = field_of(packet, "type")
        if kind == "TYPE_SLICE_END":
            tasks.pop(task, None)
        elif kind == "TYPE_SLICE_BEGIN":
            what = names[re.search(r"\n    name_iid: (\d+)", packet)[1]]
            seen = tasks[task] = Seen(re.match(r"\w+", what)[0])
            seen.since = (now, now)
            wait_of_text(seen, what)
            if "has ended without giving it back" in what:
                seen.verdict = "orphaned"
    return tasks


def field_of(text, name):
    found = re.search(r"\b" + name + r": (\w+)", text)
    return found[1] if found else None


# --- Text ---


def time_of(text):
    """From and until what a printed time may be, in nanoseconds."""
    number, unit = text.split()
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}[unit]
    digit = 10.0 ** -len(number.partition(".")[2]) # the last one may be rounded, or cut off
    return (float(number) - digit) * unit, (float(number) + digit) * unit


TIME = r"\d+(?:\.\d+)? (?:ns|us|ms|s|min|h)"


def wait_of_text(seen, text):
    found = re.search(r"an? (timer|mutex|channel)\b|\btask (\d+)", text)
    if not found:
        return
    owner = re.search(r"(?:held by|to) task (\d+)", text)
    wait(seen, found[1] or "task", owner[1] if owner else found[2])


def verdicts_of_text(tasks, text):
    for line in text.splitlines():
        word = re.match(r"(deadlock|unproven|ring|futurelock|lost)\b.*?:", line)
        if not word:
            continue
        verdict = word[1]
        for task in re.findall(r"task (\d+)", line):
            if int(task) in tasks:
                tasks[int(task)].verdict = verdict
    return tasks


def of_list(text, asked, answered):
    """tdt top."""
    tasks = {}
    for line in text.splitlines():
        row = re.match(r" *(\d+)  ?(\S+) +(\w+)(?: \((\w+)\))? +(" + TIME + r"|-) +(.*)", line)
        if not row:
            continue
        seen = tasks[int(row[1])] = Seen(row[4] or row[3])
        if row[5] != "-":
            least, most = time_of(row[5])
            seen.since = (asked - most, answered - least)
        wait_of_text(seen, row[6].partition("spawned at")[0])
        if "has ended without giving it back" in row[6]:
            seen.verdict = "orphaned"
    return verdicts_of_text(tasks, text)


def of_metrics(text):
    found = dict(re.findall(r"(?m)^(tdt_\S+) (\d+)$", text))
    return {
        "(waiting)": found.get('tdt_tasks{state="waiting"}'),
        "(runnable)": found.get('tdt_tasks{state="runnable"}'),
        "(polling)": found.get('tdt_tasks{state="polling"}'),
        "(panicked)": found.get("tdt_task_panics_total"),
        "(deadlocks)": found.get("tdt_deadlocks"),
        "(orphans)": found.get("tdt_orphaned_locks"),
        "(lost)": found.get("tdt_lost_wakeups_total"),
        "(held)": found.get("tdt_tasks_held"),
    }, found["tdt_rings_unproven"]


# --- Asking ---


class Asker:
    """Its methods are the parts of which the answers consist."""

    def __init__(self, tdt, pid, folder, shapes):
        self.tdt, self.pid, self.folder, self.shapes = tdt, str(pid), folder, shapes
        self.ways, self.times, self.counts, self.unproven = {}, {}, None, 0
        self.held = {}  # how many tasks have ended whose handles are held, by way

    def run(self, name, *command, status=(0,)):
        """What the command prints, and when."""
        asked = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        answered = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(done.stdout + done.stderr)
        self.times[name] = (answered - asked) / 1e9
        if done.returncode not in status:
            sys.exit(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")
        return done.stdout, asked, answered

    def program(self, name, *arguments):
        return self.run(name, self.tdt, *arguments)

    def json(self, name, *arguments):
        text, asked, answered = self.program(name, *arguments)
        return json.loads(text), asked, answered

    def ps(self, name, *arguments, when=None):
        answer = self.json(name, "ps", "--json", *arguments)[0]
        self.ways[name] = of_ps(answer, when or now_of(answer["ps"]))
        if "counts" in answer:
            self.held[name] = int(answer["counts"].get("held", 0))

    def bt(self, name, *arguments, when=None):
        answer = self.json(name, "bt", "--json", *arguments)[0]
        self.ways[name] = of_dump(answer, *(when or now_of(answer["dump"])))
        if "recorded" not in answer["dump"]:
            self.held[name] = int(answer["dump"].get("held", 0))

    def inside(self, name):
        """What the library has left in the folder."""
        with open(f"{self.folder}/{name}.json", encoding="utf-8") as file:
            text = file.read()
        while text:
            answer, end = json.JSONDecoder().raw_decode(text)
            yield answer["answer"], answer["asked"], answer["answered"]
            text = text[end:].lstrip()

    def tasks(self):
        self.ways["tasks"] = {int(answer["id"]): task_seen(answer, *when)
                              for answer, *when in self.inside("tasks")}

    def trees(self):
        dump = next(self.inside("dump"))
        self.ways["dump"] = of_dump(*dump)
        self.held["dump"] = int(dump[0]["dump"].get("held", 0))
        self.ways["backtrace"] = {}
        for answer in self.inside("backtrace"):
            self.ways["backtrace"].update(of_trace(*answer))

    def without_requests(self):
        self.ps("ps", self.pid)
        self.bt("bt_read", "--no-request", self.pid)
        self.bt("bt_ptrace", "--no-request", "--ptrace", self.pid)
        # A round shows twenty tasks at most: these choices show all shapes.
        self.ways["top"] = {}
        for choice in ("sort=suspicion", "sort=id", "name=ed", "name=co", "name=er", "name=back",
                       "name=for", "name=ring", "name=dead", "name=lost"):
            text, *when = self.program("top", "top", "-n1", "--no-request", f"--{choice}", self.pid)
            self.ways["top"].update(of_list(text, *when))
        self.held["top"] = int((re.search(r"(\d+) still held", text) or [0, 0])[1])
        self.counts, self.unproven = of_metrics(self.program("metrics", "metrics", self.pid)[0])

    def recording(self):
        self.program("record", "record", "-o", f"{self.folder}/summary.json", self.pid)
        with open(f"{self.folder}/summary.json", encoding="utf-8") as file:
            self.ways["summary"] = of_summary(json.load(file))

    def perfetto(self):
        self.program("record", "record", "-o", f"{self.folder}/trace.pftrace", self.pid)
        here = os.path.dirname(os.path.abspath(__file__))
        with open(f"{self.folder}/trace.pftrace", "rb") as file:
            text = subprocess.run(["protoc", f"--proto_path={here}", "--decode=Trace",
                                   "perfetto.proto"], stdin=file, stdout=subprocess.PIPE,
                                  check=True).stdout.decode(errors="replace")
        with open(f"{self.folder}/trace.txt", "w", encoding="utf-8") as file:
            file.write(text)
        self.ways["perfetto"] = of_perfetto(text)

    def until_answered(self, way, ask):
        """Ask until all tasks have answered that can: on a busy machine some may be too late."""
        for _ in range(20):
            ask()
            trees = {task for task, seen in self.ways[way].items() if seen.stacks}
            if all(shape.id in trees or shape.exists != "live" or shape.stacks is None
                   or shape.name in GIVE_NONE for shape in self.shapes):
                return

    def with_requests(self):
        self.until_answered("bt", lambda: self.bt("bt", self.pid))
        answer, asked, answered = self.json("diff", "diff", "--json", "--after=1ms", self.pid)
        self.ways["diff"] = of_diff(answer, asked, answered)
        self.until_answered("profile", self.profile)

    def profile(self):
        answer = self.json("profile", "profile", "-d", "200ms", "--json", self.pid)[0]
        self.ways["profile"] = of_profile(answer, self.shapes, True)
        self.ways["profile_recorded"] = of_profile(answer, self.shapes, False)

    def core(self, script):
        core = f"{self.folder}/core"
        _, *when = self.run("gcore", "gdb", "-nx", "-batch", "-ex", f"generate-core-file {core}",
                            "-p", self.pid)
        self.ps("core_ps", f"--core={core}", when=when)
        self.bt("core_bt", f"--core={core}", when=when)
        text = self.run("gdb", "gdb", "-nx", "-batch", "-p", self.pid, "-ex", f"source {script}",
                        "-ex", f"set tdt-program {self.tdt}", "-ex", "tdt ps --json",
                        "-ex", "tdt bt --json")[0]
        ps, bt = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
        self.ways["gdb_ps"] = of_ps(ps, now_of(ps["ps"]))
        self.ways["gdb_bt"] = of_dump(bt, *now_of(bt["dump"]))
        os.remove(core)

    def fork(self, child):
        self.ps("fork_ps", child)
        self.bt("fork_bt", "--no-request", child)

    def unasked(self, folder):
        """A recording that is as it was before any request."""
        self.ps("dir_ps", f"--dir={folder}")
        self.bt("dir_bt", f"--dir={folder}")

    def asked(self, folder):
        self.ps("asked_dir_ps", f"--dir={folder}")


# --- Comparing ---


def sub(part, whole):
    """Whether the Counter `part` has nothing that `whole` lacks."""
    return not part - whole


def skips(part, whole):
    """Whether the functions of the stack `part` are some of `whole`, in that order."""
    rest = iter(whole.split(">"))
    return all(function in rest for function in part.split(">") if function)


def compare(way, fact, shape, seen, names):
    """None if the cell is true; else whether it is silent, and what it says."""
    if fact == "exists":
        live = seen is not None and seen.state not in ("ready", "panicked", "ended", "dropped")
        if live == (shape.exists == "live"):
            return None
        return False, f"listed as {seen.state}" if live else "not listed"
    if seen is None and fact == "state":
        expected = (way in LIST_PANICS and shape.name == "panicked" or
                    way == "summary" and is_in_summary(shape))
        return (False, "not listed") if expected else None
    if seen is None:
        no_answer = way == "backtrace" and fact == "leaves" and shape.exists == "live"
        return (True, "-") if no_answer and shape.stacks else None
    if fact == "state":
        state = {"dropped": "panicked"}.get(seen.state, seen.state)
        # A task that has ended may be called that.
        if state == shape.state or (state == "ended" and shape.exists == "ended"):
            return None
        return state.startswith("unknown"), state
    if shape.exists != "live":
        return None
    if fact == "since":
        if seen.since is None:
            return True, "-"
        if seen.moved: # nothing does
            return False, "moved"
        if seen.since[0] <= shape.before and seen.since[1] >= shape.after:
            return None
        off = seen.since[0] - shape.before if seen.since[0] > shape.before else \
            seen.since[1] - shape.after
        return seen.at_least and off > 0, f"{off / 1e6:+.3f} ms"
    if fact in ("waits", "holder") and (shape.state != "waiting" or seen.state != "waiting"):
        return None
    if fact == "waits":
        if way == "profile":
            return compare_kinds(shape, seen)
        if seen.waits == shape.waits:
            return None
        return sub(seen.waits, shape.waits), "+".join(seen.waits.elements()) or "-"
    if fact == "holder":
        got = {names.get(holder, str(holder)) for holder in seen.holders}
        if got == ({shape.holder} - {"-"}):
            return None
        return not got, "+".join(sorted(got)) or "-"
    if fact == "verdict":
        true = shape.verdict
        if way in PROVE_LITTLE:
            proved = {"deadlock": "ring", "unproven": "unproven", "ring": "ring"}
            if way in NAME_NO_RINGS:
                proved = {}
            true = proved.get(true, "orphaned" if true == "orphaned" else "-")
        if seen.verdict == true:
            return None
        return seen.verdict == "unproven" and true in ("deadlock", "ring"), seen.verdict
    if fact == "rests":
        return None if seen.rests == "stuck" else (False, str(seen.rests))
    if fact == "leaves":
        if shape.stacks is None or (seen.leaves, seen.leaves_known) == (shape.leaves, "all"):
            return None
        if seen.leaves is None:
            return True, "-"
        marked = seen.leaves_known != "all" or seen.partly
        return marked and seen.leaves <= shape.leaves, f"{seen.leaves} ({seen.leaves_known})"
    return compare_stacks(way, shape, seen)


def is_in_summary(shape):
    """It lists all tasks that poll, or wait and have been polled; but one task for each lock."""
    return shape.exists == "live" and (shape.state != "waiting" or shape.stacks is not None and
                                       "mutex" not in shape.waits)


def compare_kinds(shape, seen):
    got = set(seen.waits)
    if got == set(shape.waits):
        return None
    return got <= set(shape.waits), "+".join(sorted(got)) or "-"


def compare_stacks(way, shape, seen):
    if shape.stacks is None:
        return None
    got, true = seen.stacks or collections.Counter(), shape.stacks
    if way == "profile" or way == "summary":
        got, true = (collections.Counter(set(stacks)) for stacks in (got, true))
    if got == true:
        return None
    text = "|".join(got) or "-"
    marked = seen.partly or seen.leaves_known != "all"
    if sub(got, true):
        return marked or not got or way == "profile", text
    return marked and all(any(skips(g, t) for t in true) for g in got), text


def cells(asker):
    """Each cell: way, fact, shape, and what is wrong with it, if it is."""
    names = {shape.id: shape.name for shape in asker.shapes}
    for way, tasks in asker.ways.items():
        for fact in GIVES[way].split():
            for shape in asker.shapes:
                yield way, fact, shape.name, compare(way, fact, shape, tasks.get(shape.id), names)
    held = sum(shape.exists == "ended" for shape in asker.shapes)
    for way, got in asker.held.items():
        yield way, "state", "(held)", None if got == held else (False, f"{got}, not {held}")
    if asker.counts is None:
        return
    for name, got in asker.counts.items():
        fact, silent = "state", got is None
        if name == "(deadlocks)":
            # A ring has two tasks here.  It is proven, or it is unproven.
            fact, got, unproven = "verdict", int(got), int(asker.unproven)
            true = sum(s.verdict == "deadlock" for s in asker.shapes) // 2
            rings = sum(s.verdict in ("deadlock", "ring") for s in asker.shapes) // 2
            silent = got < true and got + unproven == rings
        elif name == "(orphans)":
            fact, true = "verdict", sum(s.verdict == "orphaned" for s in asker.shapes)
        elif name == "(lost)":
            fact, true = "verdict", sum(s.verdict == "lost" for s in asker.shapes)
        elif name == "(panicked)":
            true = sum(s.name == "panicked" for s in asker.shapes)
        elif name == "(held)":
            true = held
        else:
            true = sum(s.exists == "live" and s.state == name[1:-1] for s in asker.shapes)
        yield "metrics", fact, name, None if str(true) == str(got) else \
            (silent, f"{got}, not {true}")


class Line:
    """A line of the table.  @NAME stands for the shapes of a line before that defines it."""

    def __init__(self, text, sets):
        self.text = text
        self.ways, self.fact, self.of, self.kind, self.why = text.split("\t")
        self.ways = self.ways.split(",")
        self.shapes = []
        for shape in self.of.split(","):
            self.shapes += sets[shape].shapes if shape[0] == "@" else [shape]
        self.used = set()

    def find(self, way, fact, shape):
        if fact != self.fact:
            return None
        ways = [w for w in self.ways if is_way(w, way)]
        shapes = [s for s in self.shapes if s in ("*", shape)]
        return (ways[0], shapes[0]) if ways and shapes else None


def is_way(declared, way):
    """`way` is CONFIGURATION:WAY; what is declared may be for all of them."""
    return declared in (way, way.partition(":")[2])


class Set:
    def __init__(self, text):
        _, self.words, shapes = text.split("\t")
        self.shapes = shapes.split(",")


def read_table(path):
    lines, sets = [], {}
    with open(path, encoding="utf-8") as file:
        for text in file:
            text = text.rstrip("\n")
            if text.startswith("@"):
                sets[text.split("\t")[0]] = Set(text)
            elif text and text[0] != "#":
                lines.append(Line(text, sets))
    return lines, sets


def judge(asker, table, configuration):
    """Print what is undeclared, what is declared wrongly, and what is declared in vain."""
    bad, declared = collections.defaultdict(list), collections.Counter()
    n = differ = 0
    for way, fact, shape, wrong in cells(asker):
        way = f"{configuration}:{way}"
        if (way, fact) in BY_CHANCE and (wrong is None or wrong[0]):
            continue
        n += 1
        if wrong is None:
            continue
        with open(f"{asker.folder}/differences", "a", encoding="utf-8") as file:
            print(way, fact, shape, *wrong, file=file)
        differ += 1
        silent, text = wrong
        found = [(line, line.find(way, fact, shape)) for line in table]
        found = [(line, place) for line, place in found if place]
        if not found:
            bad["undeclared", way, fact].append(f"{shape} ({text})")
        for line, place in found:
            line.used |= {place[0], "shape " + place[1]}
            declared[line.kind, way.partition(":")[2]] += 1
            if line.kind == "LIMIT" and not silent:
                bad["says something else, so it is no LIMIT", way, fact].append(f"{shape} ({text})")
        if len(found) > 1:
            bad["declared twice", way, fact].append(shape)
    for line in table:
        bad["declared, but does not happen", line.text.replace("\t", " "), ""] = \
            in_vain(line, asker, configuration)
        if line.kind not in ("LIMIT", "BUG") or line.kind == "LIMIT" and line.fact in NEVER_LIMITED:
            bad["may not be of that class", line.text.replace("\t", " "), ""] = [line.kind]
    bad = {what: which for what, which in sorted(bad.items()) if which}
    for (what, way, fact), which in bad.items():
        print(f"{what}: {way} {fact}: {', '.join(which)}")
    print(f"cells {n} {differ}", *(f"{kind}:{way}={count}"
                                   for (kind, way), count in sorted(declared.items())))
    return not bad


def in_vain(line, asker, configuration):
    """Which ways and shapes of the line were asked, and did not differ."""
    ways = [f"{configuration}:{way}"
            for way in list(asker.ways) + (["metrics"] if asker.counts else [])]
    asked = [w for w in line.ways if any(is_way(w, way) for way in ways)]
    shapes = [s.name for s in asker.shapes] + list(asker.counts or ()) + ["(held)"]
    return [w for w in asked if w not in line.used] + \
        [s for s in line.shapes if asked and s in shapes and "shape " + s not in line.used]


WORDS = {
    "tasks": "`tdt_tasks()`", "backtrace": "`tdt_backtrace()`", "dump": "`tdt_dump()`",
    "ps": "`tdt ps`", "metrics": "`tdt metrics`", "bt": "`tdt bt`",
    "bt_read": "`tdt bt --no-request`", "bt_ptrace": "`tdt bt --no-request --ptrace`",
    "top": "`tdt top`", "profile": "`tdt profile`",
    "profile_recorded": "`tdt profile` (recorded)", "summary": "`tdt record --summary`",
    "perfetto": "Perfetto", "core_ps": "`tdt ps --core`", "core_bt": "`tdt bt --core`",
    "gdb_ps": "`tdt ps` in gdb", "gdb_bt": "`tdt bt` in gdb", "dir_ps": "`tdt ps --dir`",
    "dir_bt": "`tdt bt --dir`", "fork_ps": "`tdt ps` of a child of fork()",
    "fork_bt": "`tdt bt --no-request` of a child of fork()",
    "plain": "of a process without a watch", "watch": "of a process that is watched",
}


def in_words(ways):
    """Ways, for people."""
    by_configuration = {}
    for way in ways:
        configuration, _, way = way.rpartition(":")
        by_configuration.setdefault(configuration, []).append(WORDS[way])
    return "; ".join(", ".join(words) + (", " + WORDS[configuration] if configuration else "")
                     for configuration, words in by_configuration.items())


def limits(table, sets):
    """The table of docs/limits.md."""
    print("| asked by | for | it does not say | why |\n|---|---|---|---|")
    for line in table:
        if line.kind == "LIMIT":
            of = ", ".join(sets[name].words for name in line.of.split(","))
            fact = {"waits": "some of the waits", "holder": "who holds the lock",
                    "since": "since when", "leaves": "the number of leaves",
                    "verdict": "whether it is proven"}.get(line.fact, line.fact)
            print(f"| {in_words(line.ways)} | {of} | {fact} | {line.why} |")


def main():
    if sys.argv[1] == "limits":
        limits(*read_table(sys.argv[2]))
        return 0
    options = dict(word.split("=", 1) for word in sys.argv[1:])
    with open(options["truth"], encoding="utf-8") as file:
        lines = file.read().splitlines()
    shapes = [Shape(line) for line in lines if len(line.split()) == 11]
    asker = Asker(options["tdt"], options["pid"], options["folder"], shapes)
    for part in options["parts"].split(","):
        getattr(asker, part)(*(options[part].split(",") if part in options else ()))
    judged = judge(asker, read_table(options["table"])[0], options["configuration"])
    if options.get("times"):
        print("#", *(f"{name} {took:.2f} s" for name, took in asker.times.items()))
    return 0 if judged else 1


if __name__ == "__main__":
    sys.exit(main())
