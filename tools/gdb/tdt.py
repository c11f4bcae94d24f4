# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The async tasks of a program that uses tdt, in gdb: `tdt ps` and `tdt bt`.

gdb loads this file by itself when it has loaded the library, if the file lies where `make install`
puts it.  Otherwise load it by `source FILE`.

The commands run the program tdt on the process that gdb has stopped, or on the core file that gdb
has loaded, and print what the program prints.  They call no function of the process, and write
nothing to its memory.
"""

import os
import re
import subprocess
import tempfile

import gdb

SAVE_ONE = 'save a core file ("generate-core-file FILE"), and ask it in a shell: tdt %s --core=FILE'


class Program(gdb.Parameter):
    """The program tdt, which "tdt ps" and "tdt bt" run."""

    set_doc = "Set which program tdt the commands tdt ps and tdt bt run."
    show_doc = "Show which program tdt the commands tdt ps and tdt bt run."

    def __init__(self):
        super().__init__("tdt-program", gdb.COMMAND_FILES, gdb.PARAM_FILENAME)
        self.value = "tdt"  # as the shell finds it

    def get_set_string(self):
        return ""

    def get_show_string(self, value):
        return 'The program tdt is "%s".' % value


def run(words):
    """Runs the program, prints its messages, and returns its status, output and messages."""
    program = os.path.expanduser(gdb.parameter("tdt-program"))
    try:
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise gdb.GdbError(
            'the program "%s" does not start: %s.  Install tdt, or say where it is '
            "(set tdt-program FILE)" % (program, error.strerror)
        ) from error
    return (
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def show(status, output, messages):
    """Prints what the program has printed.  1 and 3 are answers of --check."""
    gdb.write(output)
    if status not in (0, 1, 3):
        raise gdb.GdbError(messages.strip() or "tdt failed with status %d" % status)
    gdb.write(messages, gdb.STDERR)


def core_words():
    """The options for the core file that gdb has loaded."""
    # Of gdb's files, the core file is named first.
    name = re.search("^\t`(.*)', ", gdb.execute("info target", to_string=True), re.MULTILINE)
    if name is None:
        raise gdb.GdbError("gdb does not say which core file it has loaded")
    words, sysroot = ["--core=" + name[1]], gdb.parameter("sysroot")
    if gdb.current_progspace().filename:
        words.append("--exe=" + gdb.current_progspace().filename)
    if sysroot and not sysroot.startswith("target:"):
        words.append("--sysroot=" + sysroot)
    return words


def ask_saved_core(pid, command, words, why):
    """Asks a core file that is saved for this one command: gdb may read more than a program that
    gdb starts, where kernel.yama.ptrace_scope is 1."""
    with tempfile.TemporaryDirectory(prefix="tdt-") as folder:
        core = os.path.join(folder, "core.%d" % pid)
        gdb.write(
            "%s\ngdb saves a core file of the process for this command, and removes it then: %s\n"
            "If there is too little room, or that takes long, %s\n"
            % (why.strip(), core, SAVE_ONE % command),
            gdb.STDERR,
        )
        gdb.execute("generate-core-file " + core, to_string=True)
        show(*run([command, "--core=" + core, *words]))


def ask(command, words):
    """Asks what gdb looks at."""
    pid = gdb.selected_inferior().pid
    stack = gdb.execute("maint print target-stack", to_string=True)
    targets = re.findall(r"- (\S+) \(", stack)
    if "core" in targets:
        show(*run([command, *core_words(), *words]))
    elif pid == 0:
        raise gdb.GdbError("there is no process and no core file: run, attach or load one first")
    elif "native" not in targets:
        raise gdb.GdbError(
            "the process is not on this machine, or gdb reads it through a server: "
            + SAVE_ONE % command
        )
    else:
        status, output, messages = run([command, str(pid), *words])
        if status == 2 and "may not be read" in messages:
            ask_saved_core(pid, command, words, messages)
        else:
            show(status, output, messages)


class Tdt(gdb.Command):
    """Show the async tasks of a program that uses tdt.

    tdt ps [OPTION]...               list them: what they do, since when, what they wait for
    tdt bt [OPTION]... [ID...|all]   print where they wait

The process must be stopped; a core file will do.  The program tdt answers, and its options may be
given: see tdt(1).  "set tdt-program FILE" says where the program is.  If the system does not let it
read the process, gdb saves a core file in $TMPDIR, and removes it afterwards."""

    def __init__(self):
        super().__init__("tdt", gdb.COMMAND_STATUS, prefix=True)

    def invoke(self, argument, from_tty):
        raise gdb.GdbError('tdt ps, or tdt bt: see "help tdt"')


class TdtPs(gdb.Command):
    """List the async tasks: tdt ps [OPTION]...

The columns and the options are those of the program tdt: see tdt(1)."""

    def __init__(self):
        super().__init__("tdt ps", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        ask("ps", gdb.string_to_argv(argument))


class TdtBt(gdb.Command):
    """Print where async tasks wait: tdt bt [OPTION]... [ID...|all]

The form and the options are those of the program tdt: see tdt(1).  No request is made to any task.
A tree is the stack of a poll that goes on, the stack of a suspended fiber, or the last tree of a
task that is watched (TDT_WATCH=10ms in the environment of the program)."""

    def __init__(self):
        super().__init__("tdt bt", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        words = [word for word in gdb.string_to_argv(argument) if word != "all"]
        ask("bt", ["--no-request", *words])


Program()
Tdt()
TdtPs()
TdtBt()
