// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <config.h>

#include "pth.h"

#include <pth.h>

#include "report.h"

#define AT_A_TIME 100 /* each has a stack */

const bool have_pth = true;

static pth_attr_t attr_new(void)
{
	pth_attr_t attr = pth_attr_new();

	pth_attr_set(attr, PTH_ATTR_STACK_SIZE, 16384);
	return attr;
}

static void *nothing(void *unused)
{
	return unused;
}

int64_t pth_spawns(int n)
{
	pth_t threads[AT_A_TIME];
	pth_attr_t attr;
	int64_t start;

	if (!pth_init())
		die("pth_init");
	attr = attr_new();
	start = now();
	for (int i = 0; i < n; i += AT_A_TIME) {
		for (int j = 0; j < AT_A_TIME; j++)
			if ((threads[j] = pth_spawn(attr, nothing, NULL)) == NULL)
				die("pth_spawn");
		for (int j = 0; j < AT_A_TIME; j++)
			pth_join(threads[j], NULL);
	}
	start = now() - start;
	pth_attr_destroy(attr);
	pth_kill();
	return start;
}

static void *yield(void *n)
{
	for (int i = 0; i < *(int *)n; i++)
		pth_yield(NULL);
	return NULL;
}

int64_t pth_turns(int n)
{
	pth_attr_t attr;
	int64_t start;
	pth_t threads[2];

	if (!pth_init())
		die("pth_init");
	attr = attr_new();
	start = now();
	for (int i = 0; i < 2; i++)
		if ((threads[i] = pth_spawn(attr, yield, &n)) == NULL)
			die("pth_spawn");
	for (int i = 0; i < 2; i++)
		pth_join(threads[i], NULL);
	start = now() - start;
	pth_attr_destroy(attr);
	pth_kill();
	return start;
}
