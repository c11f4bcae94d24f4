/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What src/walk_step.c uses of libunwind on aarch64, declared for tests/aarch64.sh where libunwind's own header for that
 * machine is not installed: to compile against, not to run.
 */
#include <stdint.h>

typedef uint64_t unw_word_t;
typedef struct {
	uint64_t word[512];
} unw_cursor_t;
typedef struct {
	struct {
		uint64_t regs[31], sp, pc;
	} uc_mcontext;
} unw_context_t;
typedef struct {
	unw_word_t start_ip, end_ip;
} unw_proc_info_t;
typedef struct unw_addr_space *unw_addr_space_t;

enum { UNW_AARCH64_X29 = 29, UNW_REG_SP = 31, UNW_REG_IP = 32, UNW_INIT_SIGNAL_FRAME = 1 };

extern unw_addr_space_t unw_local_addr_space;
int unw_init_local2(unw_cursor_t *, unw_context_t *, int);
int unw_get_reg(unw_cursor_t *, int, unw_word_t *);
int unw_get_proc_info(unw_cursor_t *, unw_proc_info_t *);
int unw_step(unw_cursor_t *);
void unw_flush_cache(unw_addr_space_t, unw_word_t, unw_word_t);
