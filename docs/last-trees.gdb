# SPDX-License-Identifier: Apache-2.0 OR MIT
# For gdb: print the last watched tree of each task, of a core file or of a process.
#
#	gdb -batch -x docs/last-trees.gdb PROGRAM CORE-FILE
#	gdb -batch -x docs/last-trees.gdb -p PID
#
# It reads what <tdt/layout/registry.h> documents, and calls nothing in the program.  The types come
# from the debug information of libtdt.  A stack is printed from the leaf outwards; each address is
# one below the return address, so that it lies in the call.

define tdt_print_tree
  set $watched = (struct tdt_registry_watched *)$task->tree
  set $size = sizeof(struct tdt_registry_tree) \
    + $watched->room * sizeof(struct tdt_registry_entry)
  set $tree = (struct tdt_registry_tree *)((char *)($watched + 1) \
    + ($watched->published & 1) * $size)
  set $entries = (struct tdt_registry_entry *)($tree + 1)
  set $leaf = 0
  while $leaf < $tree->n
    if $entries[$leaf].leaves & 0x7fffffff
      set $at = $leaf
      while $at < $tree->n
        printf "  "
        output/a $entries[$at].pc - 1
        echo \n
        set $at = $entries[$at].parent
      end
      echo \n
    end
    set $leaf = $leaf + 1
  end
end

define tdt_print_tasks
  set $slab = (struct tdt_registry_slab *)tdt__registry.slabs
  while $slab != 0
    set $i = 0
    while $i < $slab->used
      set $task = (struct tdt_task_record *)($slab->records + $i * tdt__registry.stride)
      if $task->state == 1
        printf "task %lu \"%s\" waiting\n", $task->id, $task->name
        if $task->tree != 0
          tdt_print_tree
        end
      end
      if $task->state == 2
        printf "task %lu \"%s\" in a poll on thread %u\n", $task->id, $task->name, $task->thread
      end
      set $i = $i + 1
    end
    set $slab = (struct tdt_registry_slab *)$slab->next
  end
end

tdt_print_tasks
