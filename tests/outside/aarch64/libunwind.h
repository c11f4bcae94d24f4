/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What src/unwind/walk_step.c and src/unwind/unwinder.c use of libunwind on aarch64, declared for
 * tests/outside/aarch64.sh where libunwind's own header for that machine is not installed: to
 * compile against, not to run.
 */
#ifndef TDT_TESTS_AARCH64_LIBUNWIND_H
#define TDT_TESTS_AARCH64_LIBUNWIND_H

#include <stdint.h>

typedef uint64_t unw_word_t;
typedef int unw_regnum_t;
typedef struct unw_addr_space *unw_addr_space_t;
typedef struct {
	uint64_t word[512];
} unw_cursor_t;
typedef struct {
	unw_word_t start_ip, end_ip;
} unw_proc_info_t;
typedef struct {
	unw_word_t start_ip, end_ip;
	int32_t format;
	union {
		struct {
			unw_word_t segbase, table_len, table_data;
		} rti;
	} u;
} unw_dyn_info_t;
enum { UNW_INFO_FORMAT_REMOTE_TABLE = 2 };
typedef struct {
	int (*find_proc_info)(unw_addr_space_t, unw_word_t, unw_proc_info_t *, int, void *);
	int (*access_mem)(unw_addr_space_t, unw_word_t, unw_word_t *, int, void *);
	int (*access_reg)(unw_addr_space_t, unw_regnum_t, unw_word_t *, int, void *);
} unw_accessors_t;
typedef enum { UNW_CACHE_NONE, UNW_CACHE_GLOBAL } unw_caching_policy_t;

enum {
	UNW_AARCH64_X29 = 29,
	UNW_AARCH64_SP = 31,
	UNW_AARCH64_PC = 32,
	UNW_REG_SP = 31,
	UNW_REG_IP = 32
};
enum { UNW_EINVAL = 8, UNW_EBADREG = 3, UNW_EREADONLYREG = 4, UNW_ENOINFO = 10 };

#define UNW_OBJ(name) _Uaarch64_##name

extern unw_addr_space_t unw_local_addr_space;
unw_accessors_t *unw_get_accessors(unw_addr_space_t);
unw_addr_space_t unw_create_addr_space(unw_accessors_t *, int);
int unw_set_caching_policy(unw_addr_space_t, unw_caching_policy_t);
void unw_flush_cache(unw_addr_space_t, unw_word_t, unw_word_t);
int unw_init_remote(unw_cursor_t *, unw_addr_space_t, void *);
int unw_get_reg(unw_cursor_t *, int, unw_word_t *);
int unw_get_proc_info(unw_cursor_t *, unw_proc_info_t *);
int unw_step(unw_cursor_t *);

#endif
