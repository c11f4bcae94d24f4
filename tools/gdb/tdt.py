# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The async tasks of a program that uses tdt, in gdb: `tdt ps` and `tdt bt`.

gdb loads this file by itself when it has loaded the library, if the file lies where `make install`
puts it.  Otherwise load it by `source FILE`.  It reads the task records that <tdt/registry.h>
describes, in a process that is stopped or in a core file.  It calls no function of the program and
writes nothing to its memory.

The memory may be damaged, so each number is checked before it is used, and each loop has an end.
"""

import collections
import locale
import os
import re
import struct
import time

import gdb
import gdb.unwinder

MOST_REGISTRIES = 16
MOST_SLABS = 65536
MOST_RECORDS = 1 << 20
MOST_COUNTERS = 4096
MOST_PANICS = 64
MOST_ENTRIES = 4096  # of a tree
MOST_LEAVES = 1000000
MOST_FRAMES = 512  # of a stack
MOST_WALKED = 4096  # frames, also inlined ones
MOST_LISTED = 1024  # frames of a task's list
MOST_STACKS = 16  # that a poll is on
MOST_SEARCHED = 1 << 30  # bytes of one section
NAMES_SHOWN = 8  # tasks of a group
WAITS_SHOWN = 8  # different waits of a group


# --- Memory -------------------------------------------------------------------------------


class Unreadable(Exception):
    """The target has no such memory, or what is there cannot be right."""


def read(address, size):
    """The bytes at `address`."""
    try:
        return gdb.selected_inferior().read_memory(address, size).tobytes()
    except (gdb.error, OverflowError, ValueError) as error:
        raise Unreadable from error


def read_text(address, size):
    """The string at `address`, or its first `size` bytes.  None: there is none."""
    text, most = b"", 4096
    while address != 0 and most > 0 and len(text) < size and b"\0" not in text:
        # The next page may not be there, and a core file may end anywhere.
        part = min(size - len(text), 4096 - (address + len(text)) % 4096, most)
        try:
            text += read(address + len(text), part)
        except Unreadable:
            most = part // 2
    return decode(text) if text else None


def decode(text):
    """The characters before the first NUL.  Bytes that are none become surrogates."""
    return text.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


class Layout:
    """A struct of <tdt/registry.h>: of each field the name, the offset and the code of struct."""

    def __init__(self, name, size, /, **fields):
        self.size = size
        self.tuple = collections.namedtuple(name, fields)
        self.format, end = "", 0
        for field in fields.values():
            offset, code = int(field.split()[0]), field.split()[1]
            self.format += "%dx%s" % (offset - end, code)
            end = offset + struct.calcsize("=" + code)
        self.format += "%dx" % (size - end)
        self.compiled = {order: struct.Struct(order + self.format) for order in "<>"}

    def take(self, order, data, at=0):
        return self.tuple._make(self.compiled[order].unpack_from(data, at))

    def read(self, order, address):
        return self.take(order, read(address, self.size))


REGISTRY = Layout(
    "Registry",
    256,
    magic="0 8s",
    version="8 I",
    size="12 I",
    self="16 Q",
    slabs="24 Q",
    record_size="32 I",
    stride="36 I",
    library="40 16s",
    pid="56 I",
    now="80 Q",
    counters="104 Q",
    n_counters="112 I",
    n_threads="116 I",
    threads="120 Q",
    panics="128 Q",
    n_panics="136 I",
    panic_size="140 I",
    misuse="168 Q",
)
SLAB = Layout("Slab", 24, next="0 Q", records="8 Q", used="16 I", room="20 I")
RECORD = Layout(
    "Record",
    280,
    child_state="8 Q",
    seq="16 I",
    state="20 I",
    polls="24 Q",
    since="32 Q",
    poll="40 Q",
    stack_top="48 Q",
    thread="56 I",
    own_bits="62 B",
    id="64 Q",
    woken="72 Q",
    woken_by="80 Q",
    woken_polls="88 I",
    wait_polls="92 I",
    wait_object="96 Q",
    wait_owner="104 Q",
    wait_name="112 Q",
    wait_kind="120 B",
    wait_count="121 B",
    outcome="122 B",
    name="128 64s",
    parent="192 Q",
    spawned="200 Q",
    file="208 Q",
    line="216 I",
    column="220 I",
    tree="224 Q",
    suspended_pc="232 Q",
    suspended_sp="240 Q",
    suspended_fp="248 Q",
    leaf="264 Q",
)
FIBER = Layout("Fiber", 56, moved_to="32 Q", moves="48 Q")
WATCHED = Layout("Watched", 16, published="8 I", room="12 I")
TREE = Layout(
    "Tree",
    56,
    polls="0 Q",
    when="8 Q",
    unloads="32 Q",
    n="40 I",
    leaves="44 I",
    elsewhere="48 I",
    lost="52 I",
)
ENTRY = Layout("Entry", 16, pc="0 Q", parent="8 I", leaves="12 I")
THREAD = Layout("Thread", 56, id="8 I", entered="32 Q")
COUNTERS = Layout("Counters", 64, spawned="0 Q", panicked="8 Q", polls="16 Q")
MISUSE = Layout("Misuse", 104, kind="8 I", task="16 Q", name="24 64s", reason="96 Q")
PANIC = Layout(
    "Panic",
    968,
    seq="0 I",
    number="8 Q",
    when="16 Q",
    id="24 Q",
    parent="32 Q",
    polls="48 Q",
    file="64 Q",
    line="72 I",
    column="76 I",
    name="80 64s",
)
PANIC_TREE, PANIC_ENTRIES = 144, 48
LIST = Layout("List", 32, kind="0 I", n="4 I", frames="8 Q", task="16 Q", polls="24 Q")
LISTED = Layout("Listed", 24, function="0 Q", file="8 Q", line="16 I", column="20 I")
LOCK = Layout("Lock", 16, magic="0 8s", owner="8 Q")
STACK = Layout(
    "Stack",
    56,
    low="0 Q",
    size="8 Q",
    base="16 Q",
    outer="24 Q",
    pc="32 Q",
    sp="40 Q",
    fp="48 Q",
)

FREE, IDLE, POLLING, ENDED = range(4)  # states of a record
TASK, MUTEX, CHANNEL, TIMER, IO, OTHER = 1, 2, 3, 4, 5, 6  # kinds of waits
PENDING, READY = 1, 0  # outcomes; others mean that the task panicked
TOP = 0xFFFFFFF0  # of a tree's entry
GUESSED = 1 << 31
LAST_MISUSE = 6  # kind


# --- Words, which are those of the program tdt ----------------------------------------------

UTF8 = locale.nl_langinfo(locale.CODESET) == "UTF-8"
LETTERS = dict(zip(range(7, 14), "abtnvfr"))
# Control characters, separators of lines, directions of writing, and invisible characters.
HARMFUL = re.compile(
    "[\\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def escape_character(character, quote):
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no character
        return "\\x%02x" % (code - 0xDC00)
    if HARMFUL.match(character) or (code >= 0x80 and not UTF8):
        if code in LETTERS:
            return "\\" + LETTERS[code]
        return ("\\x%02x" if code < 0x80 else "\\u%04x" if code < 0x10000 else "\\U%08x") % code
    return "\\" + character if character in ("\\", quote) else character


def escape(text, quote=None):
    """Text of the target, which may hold anything, as it may be printed."""
    return "".join(escape_character(character, quote) for character in text)


def count(n, one, many):
    return "{:,} {}".format(n, one if n == 1 else many)


def duration(ns):
    """Four digits and a unit, as "1.204 s"."""
    unit, name = 1, 0
    while name < 3 and ns // unit >= 1000:
        unit, name = unit * 1000, name + 1
    digits = "%03d" % (ns % unit) if unit == 1000 else str(ns % unit).zfill(len(str(unit)) - 1)
    whole, limit, rest = ns // unit, 1000, ""
    while unit > 1 and whole < limit and len(rest) < len(digits):
        rest, limit = rest + digits[len(rest)], limit // 10
    return "%d%s%s %s" % (whole, "." if rest else "", rest, ("ns", "us", "ms", "s")[name])


def duration_range(numbers):
    low, high = duration(min(numbers)), duration(max(numbers))
    if min(numbers) == 0:
        return "up to " + high
    return low if low == high else "%s to %s" % (low, high)


def task_name(task_id, name):
    return str(task_id) if not name else '%d "%s"' % (task_id, escape(name, '"'))


Wait = collections.namedtuple("Wait", "kind object owner name")


def wait_words(wait, self_id, name):
    """What a task waits for: "for a mutex (0x10) held by task 9".  `name` is the owner's."""
    quoted = ' "%s"' % escape(wait.name, '"') if wait.name else ""
    owned = " of "
    if wait.kind == TASK:
        words, owned = "", "for "
    elif wait.kind == TIMER:
        words = "for a timer" + quoted
    elif wait.kind == IO:
        words = ("for descriptor %d" % wait.object if wait.object else "for a descriptor") + quoted
    else:
        what = {MUTEX: "a mutex", CHANNEL: "a channel"}.get(wait.kind, "something")
        words = "for " + what + quoted + (" (0x%x)" % wait.object if wait.object else "")
        owned = " held by " if wait.kind == MUTEX else owned
    if wait.owner == 0:
        return words
    owner = "itself" if wait.owner == self_id else "task " + task_name(wait.owner, name)
    return words + owned + owner


# --- Tasks --------------------------------------------------------------------------------


class Task:
    """What a record says of its task, as the program tdt reads it."""

    def __init__(self, tasks, address, record):
        self.tasks, self.address, self.record = tasks, address, record
        self.id, self.polls, self.parent = record.id, record.polls, record.parent
        self.name = decode(record.name[:63])
        self.file = tasks.file_name(record.file)
        self.ended = {READY: "ready", PENDING: "dropped"}.get(record.outcome, "panicked")
        woken = record.woken != 0 and record.woken_polls == record.polls & 0xFFFFFFFF
        self.state = (
            "ended"
            if record.state == ENDED
            else "polling"
            if record.state == POLLING
            else "runnable"
            if woken
            else "waiting"
        )
        self.woken_ns = tasks.since(record.woken)
        self.state_ns = self.woken_ns if self.state == "runnable" else tasks.since(record.since)
        self.age_ns = tasks.since(record.spawned)
        self.wait = self.read_wait() if self.waits() else None
        self.owned = False  # it is proven that it waits for the owner alone
        # Of its tree.
        self.answer, self.stacks = "none", ()
        self.leaves = self.elsewhere = self.lost = self.tree_age = self.polls_since = 0

    def waits(self):
        record = self.record
        return (
            self.state == "waiting"
            and record.wait_count != 0
            and record.wait_polls == record.polls & 0xFFFFFFFF
        )

    def read_wait(self):
        record = self.record
        kind = record.wait_kind if record.wait_kind <= OTHER else OTHER
        return Wait(
            kind, record.wait_object, record.wait_owner, read_text(record.wait_name, 63) or ""
        )

    def is_owned_now(self):
        """Whether the owner that was reported owns the object still."""
        if self.wait.kind == TASK:
            return True
        try:
            lock = LOCK.read(self.tasks.order, self.wait.object)
        except Unreadable:
            return False
        return (
            self.wait.kind == MUTEX
            and lock.magic == b"tdtlock\0"
            and lock.owner == self.wait.owner
        )

    def prove(self, wakes):
        """Whether the task waits for one other task, and nothing else wakes it."""
        record, seen = self.record, self.leaves + self.elsewhere
        if self.wait is None or self.wait.owner == 0 or record.wait_count != 1:
            return False
        own_polls = (self.polls - record.own_bits // 2) % 128  # not made for requests
        if record.woken == 0 and not (wakes and self.polls < 128 and own_polls == 1):
            return False
        if seen + self.lost != 0 and self.polls_since == 0 and seen != 1:
            return False
        return self.is_owned_now()


class Tasks:
    """The tasks of one registry."""

    def __init__(self, address, order, registry):
        self.address, self.order, self.registry = address, order, registry
        self.names, self.damaged, self.being_made = {}, False, 0
        self.counters = self.read_counters()
        records = list(self.read_slabs())
        self.now = self.read_clock(record for _, record in records)
        self.tasks = [Task(self, address, record) for address, record in records]
        self.task_names = {task.id: task.name for task in self.tasks}

    def read_counters(self):
        """The sums of the counters: of tasks that were spawned, that panicked, and of polls."""
        sums, registry = [0, 0, 0], self.registry
        for i in range(min(registry.n_counters, MOST_COUNTERS)):
            try:
                one = COUNTERS.read(self.order, registry.counters + i * COUNTERS.size)
            except Unreadable:
                break
            sums = [total + part for total, part in zip(sums, one)]
        return sums

    def read_slabs(self):
        """The records with a task, and their addresses.  What can be read is kept."""
        at, slabs, room = self.registry.slabs, set(), MOST_RECORDS
        try:
            while at != 0:
                slab = SLAB.read(self.order, at)
                room -= slab.used
                if at in slabs or len(slabs) == MOST_SLABS or slab.used > slab.room or room < 0:
                    raise Unreadable
                slabs.add(at)
                yield from self.read_slab(slab)
                at = slab.next
        except Unreadable:
            self.damaged = True

    def read_slab(self, slab):
        stride = self.registry.stride
        at_once = (1 << 20) // stride
        for first in range(0, slab.used, at_once):
            n = min(at_once, slab.used - first)
            address = slab.records + first * stride
            data = read(address, (n - 1) * stride + RECORD.size)
            for offset in range(0, n * stride, stride):
                record = RECORD.take(self.order, data, offset)
                self.being_made += record.seq % 2
                if record.seq % 2 == 0 and FREE < record.state <= ENDED:
                    yield address + offset, record

    def read_clock(self, records):
        """The time now.  In a core file: the latest time that is in it."""
        now = native_clock()
        if now is None:
            now = self.registry.now
            for record in records:
                now = max(now, record.since, record.woken)
        return now

    def since(self, then):
        return max(self.now - then, 0) if then != 0 else 0

    def file_name(self, address):
        if address not in self.names:
            self.names[address] = read_text(address, 4095)
        return self.names[address]

    def named(self, task_id):
        """The name of a task, if there is one with that id."""
        return self.task_names.get(task_id)


def monotonic_offset(pid):
    """What is to be added to CLOCK_MONOTONIC in the time namespace of a process."""
    try:
        with open("/proc/%s/timens_offsets" % pid, encoding="ascii") as offsets:
            words = offsets.readline().split()
        return int(words[1]) * 10**9 + int(words[2])
    except (OSError, ValueError, IndexError):
        return 0


def native_clock():
    """CLOCK_MONOTONIC of a process of this machine.  None: the target is none."""
    inferior = gdb.selected_inferior()
    connection = getattr(inferior, "connection", None)
    if connection is None or connection.type != "native":
        return None
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return now + monotonic_offset(inferior.pid) - monotonic_offset("self")


# --- Finding registries ---------------------------------------------------------------------


def sections():
    """The sections of initialized data; and in a core file that has none, all of its memory."""
    pattern = re.compile(r"^\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)", re.MULTILINE)
    found = pattern.findall(gdb.execute("info files", to_string=True))
    data = [line for line in found if line[2].startswith(".data")]
    loads = [line for line in found if line[2].startswith("load")]
    for group in (data, loads):
        yield [(int(start, 16), int(end, 16)) for start, end, _ in group]


def search(start, end):
    """The addresses of the magic in a section."""
    inferior, end = gdb.selected_inferior(), min(end, start + MOST_SEARCHED)
    while start < end:
        try:
            at = inferior.search_memory(start, end - start, b"tdt-reg\0")
        except (gdb.error, OverflowError, ValueError):
            return
        if at is None:
            return
        if at % 64 == 0:
            yield at
        start = at + 8


def look_at(address):
    """The registry at that address, with the order of its bytes.  None: there is none."""
    try:
        data = read(address, REGISTRY.size)
    except Unreadable:
        return None
    for order in "<>":
        registry = REGISTRY.take(order, data)
        if registry.self == address:
            return address, order, registry
    return None  # a copy


def is_known(registry):
    return (
        registry.version == 1
        and registry.size == REGISTRY.size
        and registry.record_size == RECORD.size
        and registry.record_size <= registry.stride <= 65536
    )


def find_registries():
    """All registries whose layout is known."""
    found = []
    for group in sections():
        for start, end in sorted(set(group)):
            for address in search(start, end):
                if len(found) < MOST_REGISTRIES and look_at(address):
                    found.append(look_at(address))
        if found:
            break
    if not found:
        raise gdb.GdbError(
            "no libtdt was found: the program does not use it, or has not started yet, or its "
            "files are missing here"
        )
    known = [registry for registry in found if is_known(registry[2])]
    if not known:
        raise gdb.GdbError(
            "the tasks are recorded in layout %d, and this script reads layout 1: use the one "
            "that belongs to the library in the process" % found[0][2].version
        )
    return sorted(known, key=lambda one: (one[2].slabs == 0, one[0]))


def must_stand_still():
    inferior = gdb.selected_inferior()
    if not inferior.is_valid() or not (inferior.pid or inferior.threads() or has_core()):
        raise gdb.GdbError("there is no process and no core file: run, attach or load one first")
    if any(thread.is_running() for thread in inferior.threads()):
        raise gdb.GdbError("a thread of the process is running: interrupt all threads first")


def has_core():
    return "core" in gdb.execute("info target", to_string=True)


def all_tasks():
    must_stand_still()
    for address, order, registry in find_registries():
        tasks = Tasks(address, order, registry)
        if tasks.damaged:
            gdb.write(
                "not all tasks could be read: the memory that has them is damaged, or missing in "
                "the core file\n",
                gdb.STDERR,
            )
        yield tasks


# --- Rings of waits -------------------------------------------------------------------------


def rings(tasks):
    """Rings of tasks that wait for each other, the smallest id first."""
    times = collections.Counter(task.id for task in tasks)
    waits = {
        task.id: task for task in tasks if task.wait and task.wait.owner and times[task.id] == 1
    }
    done, found = set(), []
    for start in waits:
        path, at = [], start
        while at in waits and at not in done:
            done.add(at)
            path.append(at)
            at = waits[at].wait.owner
        if at in path:
            ring = path[path.index(at) :]
            first = ring.index(min(ring))
            found.append([waits[member] for member in ring[first:] + ring[:first]])
    return sorted(found, key=lambda ring: (not is_deadlock(ring), ring[0].id))


def is_deadlock(ring):
    return all(task.owned for task in ring)


def prove(tasks, everybody):
    wakes = any(task.record.woken != 0 for task in everybody)
    for task in tasks:
        task.owned = task.prove(wakes)


# --- tdt ps ---------------------------------------------------------------------------------

TITLES = ("ID", "NAME", "STATE", "FOR", "AGE", "POLLS", "WOKEN BY", "WAITS FOR", "SPAWNED AT")
RIGHT = (True, False, False, True, True, True, True, False, False)


def row(task):
    place = escape(task.file) if task.file is not None else ""
    if place and task.record.line:
        place += ":%d" % task.record.line
    return (
        str(task.id),
        escape(task.name),
        task.state + (" (%s)" % task.ended if task.state == "ended" else ""),
        duration(task.state_ns) if task.state_ns else "",
        duration(task.age_ns) if task.age_ns else "",
        "{:,}".format(task.polls),
        str(task.record.woken_by) if task.record.woken_by else "",
        # The title of the column says "for".
        wait_words(task.wait, task.id, None)[4:] if task.wait else "",
        place,
    )


def write_table(rows):
    rows = [[cell or "-" for cell in line] for line in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for line in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, RIGHT)
        ]
        cells[-1] = line[-1]
        gdb.write("  ".join(cells) + "\n")


def write_summary(tasks, several):
    registry, n = tasks.registry, collections.Counter(task.state for task in tasks.tasks)
    copy = " (the copy at 0x%x)" % tasks.address if several else ""
    counts = [count(len(tasks.tasks), "task", "tasks")]
    for state in ("waiting", "runnable", "polling", "ended"):
        if n[state]:
            counts.append("{:,} {}".format(n[state], state))
    gdb.write(
        "process %d, libtdt %s%s: %s\n"
        % (registry.pid, escape(decode(registry.library[:15])), copy, ", ".join(counts))
    )
    write_counts(tasks)
    write_misuse(tasks)


def write_counts(tasks):
    """What happened since the library began its work."""
    spawned, panicked, polls = tasks.counters
    live = sum(task.state != "ended" for task in tasks.tasks) + tasks.being_made
    polls += sum(task.polls for task in tasks.tasks)
    if spawned == 0:
        return
    parts = [count(spawned, "task", "tasks") + " spawned"]
    if spawned > live:
        parts.append("{:,} ended".format(spawned - live))
    if panicked:
        parts.append("{:,} panicked".format(panicked))
    if polls:
        parts.append(count(polls, "poll", "polls"))
    gdb.write("since the start: %s\n" % ", ".join(parts))


def write_misuse(tasks):
    """The first misuse of the library, if one was noticed.  Returns whether it was."""
    if tasks.registry.misuse == 0:
        return False
    try:
        misuse = MISUSE.read(tasks.order, tasks.registry.misuse)
    except Unreadable:
        return False
    reason = read_text(misuse.reason, 255)
    if not 1 <= misuse.kind <= LAST_MISUSE or reason is None:
        return False
    task = " (task %s)" % task_name(misuse.task, decode(misuse.name[:63])) if misuse.task else ""
    gdb.write("misuse: %s%s\n" % (escape(reason), task))
    return True


def write_ring(ring):
    names = ["task " + task_name(task.id, task.name) for task in ring + ring[:1]]
    gdb.write(
        "%s: %s waits for %s\n"
        % (
            "deadlock" if is_deadlock(ring) else "ring of waits",
            names[0],
            ", which waits for ".join(names[1:]),
        )
    )


def list_tasks(tasks, several):
    live = [task for task in tasks.tasks if task.state != "ended"]
    prove(live, tasks.tasks)
    write_summary(tasks, several)
    for ring in rings(live):
        write_ring(ring)
    gdb.write("\n")
    if tasks.tasks:
        write_table([TITLES] + [row(task) for task in sorted(tasks.tasks, key=lambda t: t.id)])


# --- Frames ---------------------------------------------------------------------------------

# Of each architecture: the registers pc, sp and fp; and how far above its stack pointer a frame
# begins at least.
REGISTERS = {"i386:x86-64": ("rip", "rsp", "rbp", 1), "aarch64": ("pc", "sp", "x29", 0)}
ADDRESSES = (1 << 64) - 1

LIMIT = "more frames than the limit"
NO_INFO = "a frame without unwind information"
CUTS = {
    1: LIMIT,
    2: NO_INFO,
    3: "the stack or its unwind information is corrupt",
    4: "the leaf was polled on another stack",
    5: "no memory for more frames",
    6: "a frame whose unwind information can't be followed",
}

# Names that begin so are plumbing, but no public calls.
INNER = ("tdt_substitute_", "tdt_probe_", "tdt_async_", "tdt_future_", "tdt_waker_")


class Frame:
    """A function on a stack, as it is printed."""

    def __init__(self, function, file="", line=0, module="", inlined=False):
        place = " at " + escape(file) + (":%d" % line if line else "") if file else ""
        if module and not file:
            place = " (%s)" % escape(module)
        self.text = escape(function) + place
        self.inlined = inlined
        self.plumbing = function.startswith("tdt_") or module.startswith(
            ("libtdt.so", "libtdt-rt.so")
        )
        self.helper = function.startswith("tdt__coroutine_") or (
            "/tdt/" in file and file.endswith(".h")
        )
        self.public = (
            function.startswith("tdt_") and "__" not in function and not function.startswith(INNER)
        )

    def __eq__(self, other):
        return isinstance(other, Frame) and self.text == other.text

    def __hash__(self):
        return hash(self.text)


def cut(reason):
    return Frame("... cut: " + reason)


def to_frame(frame):
    """What gdb knows of one of its frames."""
    sal, module = frame.find_sal(), gdb.solib_name(frame.pc() - 1)
    if module is None:
        module = gdb.current_progspace().filename
    file, line = ("", 0) if sal.symtab is None else (sal.symtab.filename, sal.line)
    return Frame(
        frame.name() or "0x%x" % frame.pc(),
        os.path.normpath(file) if file else "",
        line,
        os.path.basename(module or ""),
        frame.type() == gdb.INLINE_FRAME,
    )


def registers_of(frame):
    """The names of a frame's registers."""
    try:
        return REGISTERS[frame.architecture().name()]
    except KeyError as error:
        raise Unreadable from error


def stack_pointer(frame):
    return int(frame.read_register(registers_of(frame)[1])) & ADDRESSES


def walk(frame):
    """The frame and its callers, with their stack pointers, as far as gdb can tell."""
    try:
        for _ in range(MOST_WALKED):
            if frame is None or not frame.is_valid():
                return
            yield frame, stack_pointer(frame)
            frame = frame.older()
    except gdb.error:
        return


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Pretence(gdb.unwinder.Unwinder):
    """Lets gdb look at frames that no thread has now.

    While it is used, the newest frame of the selected thread seems to have been called by such a
    frame.  Nothing is written to the target."""

    def __init__(self):
        super().__init__("tdt")
        self.enabled, self.callers = False, {}

    def __call__(self, pending):
        pc, sp, fp, _ = registers_of(pending)
        at = int(pending.read_register(sp)) & ADDRESSES
        if at not in self.callers:
            return None
        own, caller = self.callers[at]
        # gdb wants the frames of a stack to lie one above the other.
        info = pending.create_unwind_info(
            FrameId(like(own, pending, sp), pending.read_register(pc))
        )
        for name, value in zip((pc, sp, fp), caller):
            info.add_saved_register(name, like(value, pending, name))
        return info

    def frames(self, callers):
        """The frames behind those of the newest frame, with their stack pointers.

        `callers` gives, by the stack pointer of a frame (0: of the newest), where that frame is
        said to lie, and the pc, sp and fp of its caller."""
        first = stack_pointer(gdb.newest_frame())
        self.callers = {sp or first: caller for sp, caller in callers.items()}
        self.enabled = True
        gdb.invalidate_cached_frames()
        try:
            for frame, sp in walk(gdb.newest_frame()):
                if sp != first:
                    yield frame, sp
        finally:
            self.enabled = False
            gdb.invalidate_cached_frames()


def like(value, pending, name):
    return gdb.Value(value).cast(pending.read_register(name).type)


PRETENCE = Pretence()
gdb.unwinder.register_unwinder(None, PRETENCE, replace=True)


class Selection:
    """Keeps the user's thread and frame as they are."""

    def __enter__(self):
        self.thread = gdb.selected_thread()
        try:
            self.level = gdb.selected_frame().level()
        except gdb.error:
            self.level = 0

    def __exit__(self, *_):
        if self.thread is None or not self.thread.is_valid():
            return
        self.thread.switch()
        try:
            frame = gdb.newest_frame()
            for _ in range(self.level):
                frame = frame.older()
            frame.select()
        except (gdb.error, AttributeError):
            pass


NAMED_AT_ONCE = 256
MADE_UP = 1 << 16  # where frames seem to lie whose return addresses alone are known
MADE_UP_SIZE = 64


class Names:
    """The frames of return addresses: the innermost inlined function first."""

    def __init__(self):
        self.frames = {}

    def look_up(self, addresses):
        new = [pc for pc in dict.fromkeys(addresses) if pc not in self.frames]
        for i in range(0, len(new), NAMED_AT_ONCE):
            self.look_up_chain(new[i : i + NAMED_AT_ONCE])

    def look_up_chain(self, chain):
        """Have gdb look at frames of which each seems to have called the one before."""
        callers, own = {}, 0
        for i, pc in enumerate(chain + [0]):
            sp = MADE_UP + (i + 1) * MADE_UP_SIZE
            callers[own] = (sp - MADE_UP_SIZE, (pc, sp, 0))
            own = sp
        try:
            for frame, sp in PRETENCE.frames(callers):
                i = (sp - MADE_UP) // MADE_UP_SIZE - 1
                if i < len(chain):
                    self.frames.setdefault(chain[i], []).append(to_frame(frame))
        except (gdb.error, Unreadable):
            pass  # there are the addresses

    def find(self, pc):
        return self.frames.get(pc) or [Frame("0x%x" % pc)]


# --- Stacks -----------------------------------------------------------------------------------
#
# A stack is the number of its leaves, and its frames, the innermost one first.  Each is a pair: a
# Frame, or a return address whose name is to be looked up; and whether the step to its caller is
# only a best guess.


def named(frames):
    return tuple((frame, False) for frame in frames)


def frames_up_to(frames, top, room):
    """The frames that lie below `top` (0: all), and whether there are frames above."""
    found = []
    for frame, sp in frames:
        if top != 0 and sp + room > top:
            return found, True
        found.append(to_frame(frame))
    return found, False


def without_outermost(frames):
    """Without the function whose frame begins at `top`: it polls the task, or began the fiber."""
    n = len(frames) - 1
    while n > 0 and frames[n - 1].inlined:
        n -= 1
    return frames[: max(n, 0)]


def entered_stack(tasks, address, sp):
    """The innermost entered stack that `sp` is on.  None: it is on none."""
    for _ in range(MOST_STACKS):
        if address == 0:
            return None
        stack = STACK.read(tasks.order, address)
        if stack.low <= sp < stack.low + stack.size:
            return stack
        address = stack.outer
    return None


def entered_by(tasks, thread):
    """Where the innermost struct of a stack is that the thread has entered; 0: none."""
    registry = tasks.registry
    if registry.n_threads == 0:
        return 0
    try:
        slot = registry.threads + 8 * (thread % registry.n_threads)
        (address,) = struct.unpack(tasks.order + "Q", read(slot, 8))
        found = THREAD.read(tasks.order, address)
    except Unreadable:
        return 0
    return found.entered if found.id == thread else 0


def poll_frames(tasks, record):
    """The frames of a poll of the selected thread, through all stacks that it has entered."""
    top, room = record.stack_top, registers_of(gdb.newest_frame())[3]
    entered, found = entered_by(tasks, record.thread), []
    source, sp = walk(gdb.newest_frame()), stack_pointer(gdb.newest_frame())
    for _ in range(MOST_STACKS):
        stack = entered_stack(tasks, entered, sp)
        inner = stack is not None and not sp < top <= stack.low + stack.size
        frames, arrived = frames_up_to(source, stack.base if inner else top, room)
        found += frames
        if not inner and arrived:
            return without_outermost(found)
        if not inner:
            return found + [cut(NO_INFO)]
        if stack.base == 0:
            return found + [cut(CUTS[4])]
        entered, sp = stack.outer, stack.sp
        source = PRETENCE.frames({0: (stack.sp - 64, (stack.pc, stack.sp, stack.fp))})
    return found + [cut(LIMIT)]


def poll_stack(task):
    """The stack of a poll that goes on."""
    record = task.record
    threads = [t for t in gdb.selected_inferior().threads() if t.ptid[1] == record.thread]
    if not threads or record.stack_top == 0:
        return ()
    threads[0].switch()
    frames = poll_frames(task.tasks, record)
    return ((1, named(frames)),) if frames else ()


def is_moved(task):
    """Whether a part of the fiber's stack lies elsewhere."""
    if task.record.poll != 0:
        return False
    fiber = FIBER.read(task.tasks.order, task.record.child_state)
    return fiber.moves % 2 != 0 or fiber.moved_to != 0


def suspended_stack(task):
    """The stack of a coroutine that was switched away from."""
    record = task.record
    if record.state != IDLE or record.suspended_pc == 0 or is_moved(task):
        return ()
    at = (record.suspended_pc, record.suspended_sp, record.suspended_fp)
    top = record.stack_top if record.poll == 0 else 0
    frames, arrived = frames_up_to(
        PRETENCE.frames({0: (record.suspended_sp - 64, at)}),
        top,
        registers_of(gdb.newest_frame())[3],
    )
    frames = without_outermost(frames) if arrived else frames
    return ((1, named(frames)),) if frames else ()


def list_frame(tasks, kind, data, at):
    if kind == 1:
        return struct.unpack_from(tasks.order + "Q", data, at)[0]
    listed = LISTED.take(tasks.order, data, at)
    return Frame(
        read_text(listed.function, 255) or "0x0",
        read_text(listed.file, 255) or "",
        listed.line,
    )


def list_stack(task):
    """The list of frames at which the task waits."""
    record, tasks = task.record, task.tasks
    if record.state != IDLE or record.leaf == 0:
        return ()
    found = LIST.read(tasks.order, record.leaf)
    if found.task != record.id or found.polls != record.polls or found.kind not in (1, 2):
        return ()
    if found.n == 0:
        return ((1, named([Frame("(unknown)")])),)
    size, n = 8 if found.kind == 1 else LISTED.size, min(found.n, MOST_LISTED)
    data = read(found.frames + (found.n - n) * size, n * size)
    frames = [list_frame(tasks, found.kind, data, i * size) for i in reversed(range(n))]
    return ((1, named(frames + ([cut(LIMIT)] if n < found.n else []))),)


def tree_stack(entries, i):
    """The stack whose innermost frame is entry `i`."""
    frames = []
    while i < len(entries):
        if len(frames) == MOST_FRAMES:
            return tuple(frames) + named([cut(LIMIT)])
        entry, i = entries[i], entries[i].parent
        frames.append((entry.pc, entry.leaves & GUESSED != 0))
    if i < TOP or i - TOP > max(CUTS):
        raise Unreadable
    return tuple(frames) + (named([cut(CUTS[i - TOP])]) if i > TOP else ())


def take_tree(task, data, room):
    """The stacks of a tree, and what else it says of the task."""
    order, tree = task.tasks.order, TREE.take(task.tasks.order, data)
    if tree.n > min(room, MOST_ENTRIES):
        raise Unreadable
    entries = [ENTRY.take(order, data, TREE.size + i * ENTRY.size) for i in range(tree.n)]
    leaves = [entry.leaves & ~GUESSED for entry in entries]
    if sum(leaves) != tree.leaves or tree.leaves > MOST_LEAVES:
        raise Unreadable
    stacks = tuple((leaves[i], tree_stack(entries, i)) for i in range(tree.n) if leaves[i])
    task.leaves, task.elsewhere, task.lost = tree.leaves, tree.elsewhere, tree.lost
    task.tree_age = max(task.tasks.now - tree.when, 0)
    task.polls_since = max(task.polls - tree.polls, 0)
    return stacks


def last_tree(task):
    """The stacks of the last tree of a task that is watched."""
    record, order = task.record, task.tasks.order
    if record.tree == 0:
        return ()
    head = WATCHED.read(order, record.tree)
    size = TREE.size + head.room * ENTRY.size
    if head.published == 0 or head.room > 65536:
        return ()
    data = read(record.tree + WATCHED.size + head.published % 2 * size, size)
    stacks = take_tree(task, data, head.room)
    task.answer = "last"
    return stacks


def find_stacks(task):
    """Set the best stacks of the task that there are, and from where they come."""
    ways = ((suspended_stack, "fresh"), (list_stack, "fresh"), (last_tree, "last"))
    if task.state == "polling":
        ways = ((poll_stack, "running"), (last_tree, "last"))
    for way, answer in ways:
        try:
            task.stacks = way(task)
        except (Unreadable, gdb.error):
            continue
        if task.stacks or task.answer == "last":
            task.answer = answer
            break
    if task.answer in ("fresh", "running"):
        task.leaves = 1


# --- Trees ------------------------------------------------------------------------------------

ROOT, CHILD, LAST, LINE, BLANK, TIMES = (
    ("╼ ", "├╼ ", "└╼ ", "│  ", "   ", " ×")
    if UTF8
    else ("- ", "|- ", "`- ", "|  ", "   ", " x")
)
MOST_LEVELS = 256


class Node:
    """A frame of a call tree.  Which frames of tdt are shown: see tdt-tree(1)."""

    def __init__(self, frame, guessed):
        self.frame, self.guessed = frame, guessed
        self.children, self.leaves = {}, 0

    def child(self, frame, guessed):
        key = (frame, guessed)
        if key not in self.children:
            self.children[key] = Node(frame, guessed)
        return self.children[key]

    def mark_calls(self):
        """Find the innermost public calls below which no code of a user runs."""
        self.users = self.call_below = False
        for child in self.children.values():
            child.mark_calls()
            self.users |= child.users or not child.frame.plumbing
            self.call_below |= child.call_below or child.call
        frame = self.frame
        self.call = frame.public and not (frame.helper or self.users or self.call_below)

    def mark_shown(self, bare):
        """Choose the frames to show.  `bare`: nothing outside this one would be shown."""
        bare = bare and self.frame.plumbing and not self.call
        self.ways = 1 if self.leaves else 0
        for child in self.children.values():
            child.mark_shown(bare)
            self.ways += 1 if child.shown else child.ways
        branches = self.ways > 1 and not self.frame.helper
        lone = bare and self.leaves > 0
        self.shown = not self.frame.plumbing or self.call or branches or lone

    def gather(self, blocks):
        """Add the blocks of what is shown from here on to `blocks`.  Return the leaves hidden."""
        own = {} if self.shown else blocks
        leaves = self.leaves
        for child in self.children.values():
            leaves += child.gather(own)
        if not self.shown:
            return leaves
        text = self.frame.text + (" (callers may be missing)" if self.guessed else "")
        if leaves > 1 or (leaves and own):
            text += " (%s)" % leaves_words(leaves)
        block = (text, tuple(own.items()))
        blocks[block] = blocks.get(block, 0) + 1
        return 0


def leaves_words(n):
    return "%d lea%s" % (n, "f" if n == 1 else "ves")


def write_blocks(blocks, prefix, depth):
    for i, ((text, inner), times) in enumerate(blocks):
        last = i + 1 == len(blocks)
        glyph = ROOT if depth == 1 else LAST if last else CHILD
        gdb.write(prefix + glyph + text + (TIMES + str(times) if times > 1 else "") + "\n")
        more = " " if depth == 1 else BLANK if last else LINE
        write_blocks(inner, prefix + more, depth + 1)


def write_tree(stacks, names):
    root = Node(Frame(""), False)
    for leaves, stack in stacks:
        path = []
        for what, guessed in stack:
            frames = [what] if isinstance(what, Frame) else names.find(what)
            # The last one is not inlined.
            path += [(frame, guessed and frame is frames[-1]) for frame in frames]
        if len(path) > MOST_LEVELS:
            path = path[:MOST_LEVELS] + [(cut(LIMIT), False)]
        node = root
        for frame, guessed in reversed(path):
            node = node.child(frame, guessed)
        node.leaves += leaves
    blocks = {}
    for child in root.children.values():
        child.mark_calls()
        child.mark_shown(True)
        child.gather(blocks)
    write_blocks(tuple(blocks.items()), "", 1)


# --- tdt bt -----------------------------------------------------------------------------------

STATES = {
    "waiting": "pending",
    "polling": "running",
    "runnable": "runnable",
    "panicked": "panicked",
}


def state_words(tasks):
    """The state of tasks that are alike, and how long they have been in it."""
    times, state = [task.state_ns for task in tasks], STATES[tasks[0].state]
    before = " for " if state in ("running", "runnable") else " "
    after = " ago" if state == "panicked" else ""
    if max(times) != 0:
        words = duration(times[0]) if len(tasks) == 1 else duration_range(times)
        return state + before + words + after
    return state + (" less than 10 ms" if state == "pending" and tasks[0].polls else "")


def no_leaves(task):
    return ", has not run yet" if task.polls == 0 else ", no leaves (the poll cloned no waker)"


def has_no_leaves(task):
    return task.state == "waiting" and not task.leaves and not task.elsewhere and not task.lost


def leaves_of(task):
    if task.answer == "none":
        return ""
    text = ""
    if has_no_leaves(task):
        text = no_leaves(task)
    elif task.state != "polling" or task.leaves > 1:
        text = ", " + (leaves_words(task.leaves) if task.leaves else "no leaves")
    if task.elsewhere:
        text += ", %d more on other threads" % task.elsewhere
    if task.lost:
        text += ", %d more lost for want of memory" % task.lost
    return text


def answer_words(task):
    if task.answer == "fresh" and task.state in ("waiting", "runnable"):
        return ", read just now"
    if task.answer != "none":
        return ""
    return ", no stack could be read" if task.state == "polling" else ", record only"


def age_words(tasks):
    """How old the trees are."""
    ages, polls = [task.tree_age for task in tasks], [task.polls_since for task in tasks]
    if tasks[0].answer != "last":
        return panic_age_words(ages[0], polls[0]) if tasks[0].state == "panicked" else ""
    age = duration(ages[0]) if len(tasks) == 1 else duration_range(ages)
    low = "{:,} to ".format(min(polls)) if min(polls) != max(polls) else ""
    return ", watched %s ago, %s%s since" % (age, low, count(max(polls), "poll", "polls"))


def panic_age_words(age, polls):
    words = ([duration(age)] if age else []) + ([count(polls, "poll", "polls")] if polls else [])
    return ", as seen %s ago" % " and ".join(words) if words else ""


def woken_words(task):
    if task.state not in ("runnable", "waiting"):
        return ""
    by, ago = task.record.woken_by, task.woken_ns
    by_words = " by task %d" % by if by else ""
    if task.state == "runnable":
        return ", woken" + by_words if by else ""
    if ago == 0 or (by == 0 and ago >= task.state_ns // 2):
        return ""
    return ", last woken %s ago%s" % (duration(ago), by_words)


def place_words(task):
    if task.file is None:
        return ""
    line, column = task.record.line, task.record.column
    text = ", spawned at " + escape(task.file)
    if line:
        text += ":%d" % line + (":%d" % column if column else "")
    return text


def parent_words(task):
    if task.parent == 0:
        return ""
    return "%s by task %d" % ("" if task.file is not None else ", spawned", task.parent)


def thread_words(task):
    return " on thread %d" % task.record.thread if task.state == "polling" else ""


def is_news(wait):
    """Whether a wait says more than the tree does."""
    if wait is None:
        return False
    return bool(wait.owner or wait.name or (wait.object and wait.kind in (MUTEX, CHANNEL)))


def write_task(task):
    gdb.write(
        "task %s %s%s%s%s%s%s%s%s\n"
        % (
            task_name(task.id, task.name),
            state_words([task]),
            thread_words(task),
            leaves_of(task),
            answer_words(task),
            age_words([task]),
            woken_words(task),
            place_words(task),
            parent_words(task),
        )
    )
    if is_news(task.wait):
        owner = task.tasks.named(task.wait.owner)
        gdb.write("   waits %s\n" % wait_words(task.wait, task.id, owner))


def some_names(tasks):
    names = [task_name(task.id, task.name) + thread_words(task) for task in tasks[:NAMES_SHOWN]]
    if len(tasks) > NAMES_SHOWN:
        return ", e.g. %s and {:,} more".format(len(tasks) - NAMES_SHOWN) % ", ".join(names)
    return ": %s and %s" % (", ".join(names[:-1]), names[-1])


def write_waits(tasks):
    waits = collections.Counter(task.wait for task in tasks if is_news(task.wait))
    order = sorted(waits, key=lambda wait: (-waits[wait], wait.owner, wait.object, wait.kind))
    for wait in order[:WAITS_SHOWN]:
        n = waits[wait]
        words = wait_words(wait, 0, tasks[0].tasks.named(wait.owner))
        gdb.write("   {:,} {} {}\n".format(n, "waits" if n == 1 else "wait", words))
    if len(order) > WAITS_SHOWN:
        gdb.write("   and for {:,} more\n".format(len(order) - WAITS_SHOWN))


def write_group(tasks):
    """The line of tasks that wait at the same places."""
    first = tasks[0]
    text = count(len(tasks), "task", "tasks") + " " + state_words(tasks)
    if first.answer == "fresh" and has_no_leaves(first):
        text += no_leaves(first)
    text += answer_words(first) + age_words(tasks) + some_names(tasks)
    if len({place_words(task) for task in tasks}) == 1:
        text += place_words(first)
        if len({task.parent for task in tasks}) == 1:
            text += parent_words(first)
    gdb.write(text + "\n")
    write_waits(tasks)


def write_ring_of_waits(ring):
    waits = [
        wait_words(task.wait, task.id, ring[(i + 1) % len(ring)].name)
        for i, task in enumerate(ring)
    ]
    shown = waits[:NAMES_SHOWN]
    first = task_name(ring[0].id, ring[0].name)
    if is_deadlock(ring):
        text = "deadlock (from records): task "
    else:
        text = "ring of waits (another leaf may still bring one on): task "
    text += first + " waits " + ", which waits ".join(shown)
    if len(waits) > len(shown):
        text += ", and so on by {:,} more to task ".format(len(waits) - len(shown)) + first
    gdb.write(text + "\n")


def write_answers(tasks, panicked, deadlocks):
    n = collections.Counter(task.answer for task in tasks)
    text = count(len(tasks), "task", "tasks") if tasks else "no tasks"
    if deadlocks:
        text += ", " + count(deadlocks, "deadlock", "deadlocks")
    parts = [
        "{:,} {}".format(n[answer], words)
        for answer, words in (
            ("fresh", "suspended"),
            ("running", "running"),
            ("last", "as last watched"),
            ("none", "without a tree"),
        )
        if n[answer]
    ]
    if panicked:
        parts.append("{:,} panicked since the start".format(panicked))
    gdb.write(text + (": " + ", ".join(parts) if parts else "") + "\n\n")


def by_suspicion(task):
    return ("polling", "runnable", "waiting").index(task.state), -task.state_ns, task.id


def groups_of(tasks, in_ring):
    """Tasks that are alike, in the order of their first ones.  `in_ring`: tasks of deadlocks."""
    groups = {}
    for task in sorted(tasks, key=by_suspicion):
        ring = in_ring.get(task)
        key = (ring, task.answer, task.state, task.stacks, task.elsewhere, task.lost)
        groups.setdefault(key, []).append(task)
    return groups


def write_tasks(group, names):
    if len(group) == 1:
        write_task(group[0])
    else:
        write_group(group)
    write_tree(group[0].stacks, names)
    gdb.write("\n")


class Panic:
    """A task that panicked, as far as it is printed."""

    state, answer, wait = "panicked", "fresh", None

    def __init__(self, tasks, data):
        panic = PANIC.take(tasks.order, data)
        if panic.number == 0 or panic.seq % 2 != 0:
            raise Unreadable
        self.tasks, self.record, self.number = tasks, panic, panic.number
        self.id, self.polls, self.parent = panic.id, panic.polls, panic.parent
        self.name, self.file = decode(panic.name[:63]), tasks.file_name(panic.file)
        self.state_ns = tasks.since(panic.when)
        self.stacks = take_tree(self, data[PANIC_TREE:], PANIC_ENTRIES)
        if not self.stacks or self.polls_since == 0:
            self.tree_age = self.polls_since = 0


def read_panics(tasks):
    """The last tasks that panicked, the last one first."""
    registry, found = tasks.registry, []
    if registry.panic_size != PANIC.size or registry.n_panics > MOST_PANICS:
        return found
    for i in range(registry.n_panics):
        try:
            found.append(Panic(tasks, read(registry.panics + i * PANIC.size, PANIC.size)))
        except Unreadable:
            pass
    return sorted(found, key=lambda panic: -panic.number)


def look_up_names(tasks):
    """The names in the stacks of the tasks."""
    names, stacks = Names(), {stack for task in tasks for _, stack in task.stacks}
    names.look_up(what for stack in stacks for what, _ in stack if not isinstance(what, Frame))
    return names


def write_groups(groups, found, names):
    """The rings of waits, and the tasks, those that are alike together."""
    for i, ring in enumerate(found):
        write_ring_of_waits(ring)
        # The members in the order of the ring, each with those that are like it.
        of_ring = [key for key in groups if key[0] == i]
        for key in sorted(of_ring, key=lambda key: min(map(ring.index, groups[key]))):
            write_tasks(groups.pop(key), names)
        if not of_ring:
            gdb.write("\n")
    for group in groups.values():
        write_tasks(group, names)


def write_backtraces(tasks, ids):
    """The tasks with these ids (None: all), and what is wrong first."""
    chosen = [
        task for task in tasks.tasks if task.state != "ended" and (ids is None or task.id in ids)
    ]
    panics = read_panics(tasks) if ids is None else []
    with Selection():
        for task in chosen:
            find_stacks(task)
        names = look_up_names(chosen + panics)
    prove(chosen, tasks.tasks)
    found = rings(chosen)
    deadlocks = [ring for ring in found if is_deadlock(ring)]
    in_ring = {task: i for i, ring in enumerate(deadlocks) for task in ring}
    write_answers(chosen, tasks.counters[1] if ids is None else 0, len(deadlocks))
    if write_misuse(tasks):
        gdb.write("\n")
    write_groups(groups_of(chosen, in_ring), found, names)
    for panic in panics:
        write_tasks([panic], names)


def chosen_ids(argument):
    """The ids that the user wants.  None: all."""
    words = argument.split()
    if not words:
        raise gdb.GdbError('which tasks?  Say "tdt bt all", or their ids, as "tdt bt 7 8"')
    if words == ["all"]:
        return None
    for word in words:
        if not re.fullmatch("[0-9]{1,20}", word):
            raise gdb.GdbError("not the id of a task: " + word)
    return {int(word) for word in words}


# --- The commands -----------------------------------------------------------------------------


class Tdt(gdb.Command):
    """Show the async tasks of a program that uses tdt.

    tdt ps              list them: what they do, since when, what they wait for
    tdt bt ID...|all    print where they wait

The process must be stopped; a core file will do.  Nothing is called in it or written to it.
The program tdt prints the same of a process that runs: see tdt(1)."""

    def __init__(self):
        super().__init__("tdt", gdb.COMMAND_STATUS, prefix=True)

    def invoke(self, argument, from_tty):
        raise gdb.GdbError('tdt ps, or tdt bt: see "help tdt"')


class TdtPs(gdb.Command):
    """List the async tasks: tdt ps

The columns are those of the program tdt: see tdt(1)."""

    def __init__(self):
        super().__init__("tdt ps", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if argument.strip():
            raise gdb.GdbError("tdt ps takes no arguments")
        every = list(all_tasks())
        for tasks in every:
            list_tasks(tasks, len(every) > 1)


class TdtBt(gdb.Command):
    """Print where async tasks wait: tdt bt ID...|all

The form is that of the program tdt: see tdt(1).  No request is made to any task.  A tree is the
stack of a poll that goes on, the stack of a suspended fiber, or the last tree of a task that is
watched (TDT_WATCH=10ms in the environment of the program)."""

    def __init__(self):
        super().__init__("tdt bt", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        ids = chosen_ids(argument)
        for tasks in all_tasks():
            write_backtraces(tasks, ids)


Tdt()
TdtPs()
TdtBt()
