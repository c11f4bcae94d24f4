// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading call-frame information: finding the entry for a PC, running the instructions of its
 * table, and evaluating expressions.  If any part is not understood, there is no answer.
 */

#include "unwind/cfi.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "host/pages.h"

/* --- Reading ----------------------------------------------------------------------- */

/* Reads bytes from `at` up to `end`.  After a failure, everything that is read is 0. */
struct cfi_reader {
	uintptr_t at, end;
	bool failed;
};

static uint64_t read_number(struct cfi_reader *reader, size_t size)
{
	uint64_t value = 0;

	if (reader->failed || reader->end < reader->at || reader->end - reader->at < size ||
	    tdt__pages_copy(&value, reader->at, size) != size) {
		reader->failed = true;
		return 0;
	}
	reader->at += size;
	return value;
}

static uint8_t byte(struct cfi_reader *reader)
{
	return (uint8_t)read_number(reader, 1);
}

static int64_t signed_number(struct cfi_reader *reader, size_t size)
{
	unsigned unused = 64 - 8 * (unsigned)size;

	return (int64_t)(read_number(reader, size) << unused) >> unused;
}

#define LEB_BITS 140 /* a LEB128 number may be padded; but a longer one is damage */

static uint64_t leb(struct cfi_reader *reader, unsigned *bits)
{
	uint64_t value = 0;
	uint8_t part;

	*bits = 0;
	do {
		part = byte(reader);
		if (*bits < 64)
			value |= (uint64_t)(part & 0x7f) << *bits;
		*bits += 7;
	} while ((part & 0x80) != 0 && *bits < LEB_BITS);
	reader->failed = reader->failed || (part & 0x80) != 0;
	return value;
}

static uint64_t uleb(struct cfi_reader *reader)
{
	unsigned bits;

	return leb(reader, &bits);
}

static int64_t sleb(struct cfi_reader *reader)
{
	unsigned bits;
	uint64_t value = leb(reader, &bits);

	if (bits < 64 && (value >> (bits - 1) & 1) != 0)
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

/*
 * Read a pointer in one of the encodings DW_EH_PE_*, from the module's own memory.  A pointer to
 * the pointer (DW_EH_PE_indirect) is not supported.
 */
static uintptr_t pointer(struct cfi_reader *reader, uint8_t encoding)
{
	uint8_t relative = encoding & 0x70;
	uintptr_t base = relative == DW_EH_PE_pcrel ? reader->at : 0;

	if (relative != 0 && relative != DW_EH_PE_pcrel)
		reader->failed = true;
	switch (encoding & 0x8f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return base + read_number(reader, 8);
	case DW_EH_PE_udata2:
		return base + read_number(reader, 2);
	case DW_EH_PE_udata4:
		return base + read_number(reader, 4);
	case DW_EH_PE_sdata2:
		return base + (uintptr_t)signed_number(reader, 2);
	case DW_EH_PE_sdata4:
		return base + (uintptr_t)signed_number(reader, 4);
	default:
		reader->failed = true;
		return 0;
	}
}

/* --- Finding the entry ----------------------------------------------------------------- */

#define LENGTH_MAX (1u << 20) /* bytes; limits the time for which the lock is held */

/* What an FDE says about one function, and what its CIE says about many functions. */
struct function_cfi {
	uintptr_t start, end; /* of the function */
	struct cfi_reader first; /* the CIE's instructions */
	struct cfi_reader then;	 /* the FDE's instructions */
	uint64_t code_unit;
	int64_t data_unit;
	uint64_t return_address; /* the number of the column of the return address */
	uint8_t encoding;
	bool augmented;
	bool interrupted; /* as in struct tdt__cfi_row */
};

/*
 * The rest of the CIE or FDE at `address`, behind its length.  A length that no compiler writes is
 * damage.
 */
static struct cfi_reader body(uintptr_t address)
{
	struct cfi_reader reader = { .at = address, .end = address + 4 };
	uint32_t length = (uint32_t)read_number(&reader, 4);

	reader.failed = reader.failed || length == 0 || length > LENGTH_MAX;
	reader.end = reader.at + length;
	return reader;
}

/* Read the data for those letters of the augmentation that are known; the first letter is 'z'. */
static void read_augmentation(struct function_cfi *entry, struct cfi_reader *reader,
			      const char *letters)
{
	uint64_t length = uleb(reader);
	uintptr_t end = reader->at + length;

	entry->augmented = true;
	for (letters++; *letters != '\0'; letters++) {
		if (*letters == 'R')
			entry->encoding = byte(reader);
		else if (*letters == 'L')
			byte(reader);
		else if (*letters == 'P')
			pointer(reader, byte(reader) & 0x7f);
		else if (*letters == 'S')
			entry->interrupted = true;
	}
	reader->failed = reader->failed || reader->at > end;
	reader->at = end;
}

static bool read_cie(struct function_cfi *entry, uintptr_t address)
{
	struct cfi_reader reader = body(address);
	uint32_t id = (uint32_t)read_number(&reader, 4);
	uint8_t version = byte(&reader);
	char letters[9];
	size_t n = 0;

	while (n < sizeof letters && (letters[n] = (char)byte(&reader)) != '\0')
		n++;
	if (reader.failed || id != 0 || (version != 1 && version != 3) || n == sizeof letters)
		return false;
	entry->code_unit = uleb(&reader);
	entry->data_unit = sleb(&reader);
	entry->return_address = version == 1 ? byte(&reader) : uleb(&reader);
	if (letters[0] == 'z')
		read_augmentation(entry, &reader, letters);
	entry->first = reader;
	return !reader.failed && (letters[0] == 'z' || letters[0] == '\0');
}

static bool read_fde(struct function_cfi *entry, uintptr_t address)
{
	struct cfi_reader reader = body(address);
	uintptr_t here = reader.at;

	if (!read_cie(entry, here - (uint32_t)read_number(&reader, 4)))
		return false;
	entry->start = pointer(&reader, entry->encoding);
	entry->end = entry->start + pointer(&reader, entry->encoding & 0x0f);
	if (entry->augmented)
		reader.at += uleb(&reader);
	entry->then = reader;
	return !reader.failed;
}

bool tdt__cfi_table(uintptr_t pc, struct dl_find_object *module, uint32_t *entries)
{
	struct cfi_reader reader;

	if (_dl_find_object((void *)pc, module) != 0 || module->dlfo_eh_frame == NULL)
		return false;
	reader = (struct cfi_reader){ .at = (uintptr_t)module->dlfo_eh_frame };
	reader.end = reader.at + TDT__CFI_HEAD;
	/*
	 * All linkers write version 1, a length of 4 bytes, and a table of pairs of 4-byte numbers
	 * that are relative to the head.
	 */
	if ((read_number(&reader, 8) & 0xffff00ff) != 0x3b030001)
		return false;
	*entries = (uint32_t)read_number(&reader, 4);
	return !reader.failed && *entries != 0;
}

/*
 * Search the table of `high` entries behind `head` for the address of the FDE of the function at
 * `pc`; 0: the table has none.  An entry is the address of a function, and that of its FDE.
 */
static uintptr_t search_table(uintptr_t head, uint32_t high, uintptr_t pc)
{
	uintptr_t table = head + TDT__CFI_HEAD;
	struct cfi_reader reader = { .end = table + (uintptr_t)high * 8 };
	uint32_t low = 0;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		reader.at = table + (uintptr_t)middle * 8;
		if (head + (uintptr_t)signed_number(&reader, 4) <= pc)
			low = middle;
		else
			high = middle;
	}
	reader.at = table + (uintptr_t)low * 8 + 4;
	high = (uint32_t)signed_number(&reader, 4);
	return reader.failed ? 0 : head + (uintptr_t)(intptr_t)(int32_t)high;
}

static int find_entry(struct function_cfi *entry, uintptr_t pc)
{
	struct dl_find_object module;
	uint32_t entries;
	uintptr_t fde;

	*entry = (struct function_cfi){ .encoding = 0 };
	if (!tdt__cfi_table(pc, &module, &entries))
		return -ENOENT;
	fde = search_table((uintptr_t)module.dlfo_eh_frame, entries, pc);
	if (fde == 0)
		return -ENOENT;
	if (!read_fde(entry, fde))
		return -ENOTSUP;
	return pc >= entry->start && pc < entry->end ? 0 : -ENOENT;
}

uintptr_t tdt__cfi_function(uintptr_t pc, uintptr_t *end)
{
	struct function_cfi entry;

	if (find_entry(&entry, pc) != 0)
		return 0;
	*end = entry.end;
	return entry.start;
}

/* --- Running the instructions -------------------------------------------------------------- */

#define REMEMBERED 8

struct row_state {
	const struct function_cfi *entry;
	struct tdt__cfi_row row, initial;
	struct tdt__cfi_row remembered[REMEMBERED];
	unsigned depth;
	uintptr_t at; /* the row holds from this address on */
};

static void set_place(struct row_state *table, uint64_t number, enum tdt__cfi_kind kind, intptr_t n)
{
	if (number < TDT__CFI_REGISTERS)
		table->row.place[number] = (struct tdt__cfi_place){ kind, 0, n };
}

static void restore(struct row_state *table, uint64_t number)
{
	if (number < TDT__CFI_REGISTERS)
		table->row.place[number] = table->initial.place[number];
}

/* Return the address of the expression that comes next, and skip the expression. */
static intptr_t expression(struct cfi_reader *reader)
{
	uintptr_t address = reader->at;
	uint64_t length = uleb(reader);

	if (length > reader->end - reader->at)
		reader->failed = true;
	else
		reader->at += length;
	return (intptr_t)address;
}

static bool remember(struct row_state *table)
{
	if (table->depth == REMEMBERED)
		return false;
	table->remembered[table->depth++] = table->row;
	return true;
}

static bool recall(struct row_state *table)
{
	if (table->depth == 0)
		return false;
	table->row = table->remembered[--table->depth];
	return true;
}

/* Run an instruction whose opcode takes a whole byte.  False: it is not understood. */
static bool run_other(struct row_state *table, struct cfi_reader *reader, uint8_t instruction)
{
	int64_t data_unit = table->entry->data_unit;
	struct tdt__cfi_place *cfa = &table->row.cfa;
	uint64_t number;

	switch (instruction) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_offset_extended:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_AT_CFA, (int64_t)uleb(reader) * data_unit);
		return true;
	case DW_CFA_restore_extended:
		restore(table, uleb(reader));
		return true;
	case DW_CFA_undefined:
		set_place(table, uleb(reader), TDT__CFI_LOST, 0);
		return true;
	case DW_CFA_same_value:
		set_place(table, uleb(reader), TDT__CFI_SAME, 0);
		return true;
	case DW_CFA_register:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_PLUS, 0);
		if (number < TDT__CFI_REGISTERS)
			table->row.place[number].number = (uint32_t)uleb(reader);
		else
			uleb(reader);
		return true;
	case DW_CFA_remember_state:
		return remember(table);
	case DW_CFA_restore_state:
		return recall(table);
	case DW_CFA_def_cfa:
		cfa->kind = TDT__CFI_PLUS;
		cfa->number = (uint32_t)uleb(reader);
		cfa->n = (intptr_t)uleb(reader);
		return true;
	case DW_CFA_def_cfa_register:
		cfa->number = (uint32_t)uleb(reader);
		return cfa->kind == TDT__CFI_PLUS;
	case DW_CFA_def_cfa_offset:
		cfa->n = (intptr_t)uleb(reader);
		return cfa->kind == TDT__CFI_PLUS;
	case DW_CFA_def_cfa_expression:
		cfa->kind = TDT__CFI_VALUE;
		cfa->n = expression(reader);
		return true;
	case DW_CFA_expression:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_AT, expression(reader));
		return true;
	case DW_CFA_offset_extended_sf:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_AT_CFA, sleb(reader) * data_unit);
		return true;
	case DW_CFA_def_cfa_sf:
		cfa->kind = TDT__CFI_PLUS;
		cfa->number = (uint32_t)uleb(reader);
		cfa->n = sleb(reader) * data_unit;
		return true;
	case DW_CFA_def_cfa_offset_sf:
		cfa->n = sleb(reader) * data_unit;
		return cfa->kind == TDT__CFI_PLUS;
	case DW_CFA_val_offset:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_CFA_PLUS, (int64_t)uleb(reader) * data_unit);
		return true;
	case DW_CFA_val_offset_sf:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_CFA_PLUS, sleb(reader) * data_unit);
		return true;
	case DW_CFA_val_expression:
		number = uleb(reader);
		set_place(table, number, TDT__CFI_VALUE, expression(reader));
		return true;
	case DW_CFA_GNU_args_size:
		uleb(reader);
		return true;
#ifdef __aarch64__
	case 0x2c: /* DW_CFA_AARCH64_negate_ra_state_with_pc, and _negate_ra_state: */
	case 0x2d: /* the return address is signed from here on, or no more */
		return true;
#endif
	default:
		return false;
	}
}

/*
 * How far an instruction DW_CFA_advance_loc* advances the location in the code.  For all other
 * instructions the result is 0.
 */
static uintptr_t advances(struct cfi_reader *reader, uint8_t instruction)
{
	if (instruction >> 6 == 1)
		return instruction & 0x3f;
	switch (instruction) {
	case DW_CFA_advance_loc1:
		return read_number(reader, 1);
	case DW_CFA_advance_loc2:
		return read_number(reader, 2);
	case DW_CFA_advance_loc4:
		return read_number(reader, 4);
	default:
		return 0;
	}
}

/*
 * Run instructions until they describe code beyond `pc`.  False: an instruction is not understood.
 */
static bool run_instructions(struct row_state *table, struct cfi_reader reader, uintptr_t pc)
{
	while (reader.at < reader.end && !reader.failed) {
		uint8_t instruction = byte(&reader);

		if (instruction >> 6 == 1 ||
		    (instruction >= DW_CFA_advance_loc1 && instruction <= DW_CFA_advance_loc4)) {
			table->at += advances(&reader, instruction) * table->entry->code_unit;
			if (table->at > pc)
				return !reader.failed;
		} else if (instruction == DW_CFA_set_loc) {
			table->at = pointer(&reader, table->entry->encoding);
			if (table->at > pc)
				return !reader.failed;
		} else if (instruction >> 6 == 2) { /* offset */
			set_place(table, instruction & 0x3f, TDT__CFI_AT_CFA,
				  (int64_t)uleb(&reader) * table->entry->data_unit);
		} else if (instruction >> 6 == 3) { /* restore */
			restore(table, instruction & 0x3f);
		} else if (!run_other(table, &reader, instruction)) {
			return false;
		}
	}
	return !reader.failed;
}

int tdt__cfi_find(uintptr_t pc, struct tdt__cfi_row *row)
{
	/* Too large for the stack of a poll.  Protected by tdt__unwind_lock. */
	static struct row_state table;
	struct function_cfi entry;
	int error = find_entry(&entry, pc);

	if (error != 0)
		return error;
	if (entry.return_address != TDT__CFI_PC)
		return -ENOTSUP;
	memset(&table.row, 0, sizeof table.row);
	table.entry = &entry;
	table.depth = 0;
	table.at = 0;
	table.row.cfa.kind = TDT__CFI_LOST;
	table.row.interrupted = entry.interrupted;
	if (!run_instructions(&table, entry.first, UINTPTR_MAX))
		return -ENOTSUP;
	table.initial = table.row;
	table.at = entry.start;
	if (!run_instructions(&table, entry.then, pc))
		return -ENOTSUP;
	*row = table.row;
	return 0;
}

/* --- Expressions ------------------------------------------------------------------------------ */

static struct cfi_reader block(uintptr_t address)
{
	struct cfi_reader reader = { .at = address, .end = UINTPTR_MAX };
	uint64_t length = uleb(&reader);

	reader.end = reader.at + length;
	reader.failed = reader.failed || length > 4096;
	return reader;
}

static bool is_register(struct cfi_reader *reader, uint32_t *number, intptr_t *plus)
{
	uint8_t operation = byte(reader);

	*number = operation - DW_OP_breg0;
	*plus = sleb(reader);
	return !reader->failed && operation >= DW_OP_breg0 && operation <= DW_OP_breg31;
}

bool tdt__cfi_is_sum(uintptr_t address, uint32_t *number, intptr_t *plus)
{
	struct cfi_reader reader = block(address);

	return is_register(&reader, number, plus) && reader.at == reader.end;
}

bool tdt__cfi_is_word(uintptr_t address, uint32_t *number, intptr_t *at, intptr_t *plus)
{
	struct cfi_reader reader = block(address);

	*plus = 0;
	if (!is_register(&reader, number, at) || byte(&reader) != DW_OP_deref)
		return false;
	if (reader.at == reader.end)
		return true;
	if (byte(&reader) != DW_OP_plus_uconst)
		return false;
	*plus = (intptr_t)uleb(&reader);
	return !reader.failed && reader.at == reader.end;
}

#define STACK 16

/* What an expression is evaluated with. */
struct machine {
	const struct tdt__cfi_registers *registers;
	tdt__cfi_word_fn *word_at;
	const void *stack;
	struct cfi_reader code;
	uintptr_t value[STACK];
	unsigned n;
	bool failed;
	bool interrupted; /* as in the row */
};

static uintptr_t pop_value(struct machine *machine)
{
	if (machine->n == 0) {
		machine->failed = true;
		return 0;
	}
	return machine->value[--machine->n];
}

static void push_value(struct machine *machine, uintptr_t value)
{
	if (machine->n == STACK)
		machine->failed = true;
	else
		machine->value[machine->n++] = value;
}

static bool register_value(const struct tdt__cfi_registers *registers, uint32_t number,
			   uintptr_t *value)
{
	if (number >= TDT__CFI_REGISTERS || (registers->known >> number & 1) == 0)
		return false;
	*value = registers->value[number];
	return true;
}

static void push_register(struct machine *machine, uint32_t number)
{
	uintptr_t value = 0;

	if (!register_value(machine->registers, number, &value))
		machine->failed = true;
	push_value(machine, value + (uintptr_t)sleb(&machine->code));
}

static void push_word(struct machine *machine)
{
	uintptr_t value = 0;

	if (!machine->word_at(machine->stack, pop_value(machine), &value))
		machine->failed = true;
	push_value(machine, value);
}

/* Run an operation on the two values on top of the stack.  Any other operation fails. */
static void combine_values(struct machine *machine, uint8_t operation)
{
	uintptr_t b = pop_value(machine), a = pop_value(machine);

	switch (operation) {
	case DW_OP_and:
		a &= b;
		break;
	case DW_OP_minus:
		a -= b;
		break;
	case DW_OP_mul:
		a *= b;
		break;
	case DW_OP_or:
		a |= b;
		break;
	case DW_OP_plus:
		a += b;
		break;
	case DW_OP_shl:
		a = b < 64 ? a << b : 0;
		break;
	case DW_OP_shr:
		a = b < 64 ? a >> b : 0;
		break;
	case DW_OP_xor:
		a ^= b;
		break;
	case DW_OP_eq:
		a = a == b;
		break;
	case DW_OP_ge:
		a = (intptr_t)a >= (intptr_t)b;
		break;
	case DW_OP_gt:
		a = (intptr_t)a > (intptr_t)b;
		break;
	case DW_OP_le:
		a = (intptr_t)a <= (intptr_t)b;
		break;
	case DW_OP_lt:
		a = (intptr_t)a < (intptr_t)b;
		break;
	case DW_OP_ne:
		a = a != b;
		break;
	default:
		machine->failed = true;
	}
	push_value(machine, a);
}

/* Push a constant of 1, 2, 4 or 8 bytes, unsigned or signed. */
static void push_constant(struct machine *machine, uint8_t operation)
{
	size_t size = (size_t)1 << (operation - DW_OP_const1u) / 2;

	if (operation % 2 == 0)
		push_value(machine, read_number(&machine->code, size));
	else
		push_value(machine, (uintptr_t)signed_number(&machine->code, size));
}

static void operate(struct machine *machine)
{
	uint8_t operation = byte(&machine->code);

	if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31)
		push_register(machine, operation - DW_OP_breg0);
	else if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31)
		push_value(machine, operation - DW_OP_lit0);
	else if (operation >= DW_OP_const1u && operation <= DW_OP_const8s)
		push_constant(machine, operation);
	else if (operation == DW_OP_constu)
		push_value(machine, uleb(&machine->code));
	else if (operation == DW_OP_consts)
		push_value(machine, (uintptr_t)sleb(&machine->code));
	else if (operation == DW_OP_deref)
		push_word(machine);
	else if (operation == DW_OP_plus_uconst)
		push_value(machine, pop_value(machine) + uleb(&machine->code));
	else if (operation != DW_OP_nop)
		combine_values(machine, operation);
}

/* `given` is the value that is on the expression's stack at the start; NULL: the stack is empty. */
static bool evaluate(struct machine *machine, uintptr_t address, const uintptr_t *given,
		     uintptr_t *value)
{
	machine->code = block(address);
	machine->n = 0;
	if (given != NULL)
		push_value(machine, *given);
	while (machine->code.at < machine->code.end && !machine->code.failed && !machine->failed)
		operate(machine);
	*value = pop_value(machine);
	return !machine->code.failed && !machine->failed;
}

/* --- One step ------------------------------------------------------------------------------- */

static bool cfa_of(struct machine *machine, const struct tdt__cfi_place *place, uintptr_t *cfa)
{
	if (place->kind == TDT__CFI_VALUE)
		return evaluate(machine, (uintptr_t)place->n, NULL, cfa);
	if (place->kind != TDT__CFI_PLUS || !register_value(machine->registers, place->number, cfa))
		return false;
	*cfa += (uintptr_t)place->n;
	return true;
}

/*
 * Whether `address`, where register `number` is saved according to the information, is not in the
 * frame.  This happens when a function whose frame gcc realigns has restored rbp and is about to
 * return: the information still says that the caller's rbp is saved where rbp points to.
 */
static bool is_stale(const struct machine *machine, uint32_t number, uintptr_t cfa,
		     uintptr_t address)
{
	return number == TDT__CFI_FP && !machine->interrupted && address >= cfa;
}

static bool caller_value(struct machine *machine, uint32_t number,
			 const struct tdt__cfi_place *place, uintptr_t cfa, uintptr_t *value)
{
	machine->failed = false;
	switch (place->kind) {
	case TDT__CFI_SAME:
		return (TDT__CFI_CALLEE_SAVED & TDT__CFI_BIT(number)) != 0 &&
		       register_value(machine->registers, number, value);
	case TDT__CFI_AT_CFA:
		return machine->word_at(machine->stack, cfa + (uintptr_t)place->n, value);
	case TDT__CFI_AT:
		if (!evaluate(machine, (uintptr_t)place->n, &cfa, value))
			return false;
		if (is_stale(machine, number, cfa, *value))
			return register_value(machine->registers, number, value);
		return machine->word_at(machine->stack, *value, value);
	case TDT__CFI_CFA_PLUS:
		*value = cfa + (uintptr_t)place->n;
		return true;
	case TDT__CFI_PLUS:
		return register_value(machine->registers, place->number, value);
	case TDT__CFI_VALUE:
		return evaluate(machine, (uintptr_t)place->n, &cfa, value);
	case TDT__CFI_LOST:
		break;
	}
	return false;
}

int tdt__cfi_step(struct tdt__cfi_registers *registers, uintptr_t pc, tdt__cfi_word_fn *word_at,
		  const void *stack, bool *interrupted)
{
	struct machine machine = { .registers = registers, .word_at = word_at, .stack = stack };
	struct tdt__cfi_registers caller = { .known = 0 };
	struct tdt__cfi_row row;
	uintptr_t cfa;
	int error = tdt__cfi_find(pc, &row);

	if (error != 0)
		return error;
	machine.interrupted = row.interrupted;
	if (!cfa_of(&machine, &row.cfa, &cfa))
		return -EFAULT;
	for (uint32_t number = 0; number < TDT__CFI_REGISTERS; number++)
		if (caller_value(&machine, number, &row.place[number], cfa, &caller.value[number]))
			caller.known |= TDT__CFI_BIT(number);
	if (row.place[TDT__CFI_SP].kind == TDT__CFI_SAME) {
		caller.value[TDT__CFI_SP] = cfa;
		caller.known |= TDT__CFI_BIT(TDT__CFI_SP);
	}
	*interrupted = row.interrupted;
	if ((caller.known & TDT__CFI_BIT(TDT__CFI_SP)) == 0 ||
	    (caller.known & TDT__CFI_BIT(TDT__CFI_PC)) == 0)
		return -EFAULT;
	*registers = caller;
	return 0;
}
