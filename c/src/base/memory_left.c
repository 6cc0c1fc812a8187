/* memory_left.c - reads what memory is left from files of the kernel.
 *
 * A process is in a group, which is in another one, and so on. Any of them may have a limit. Linux has two versions of
 * groups, with other names of the same files. A container may see only its own group, as the outermost one. The second
 * version limits swap apart, the first one limits RAM and swap together. */
#include "base/memory_left.h"

#include "base/number.h"
#include "base/read_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { longest_path = 1024 };

/* Bytes, each UINT64_MAX if nothing limits it. */
typedef struct Left {
  uint64_t ram, swap, both;
} Left;

/* Where the files of a version are, and their names. */
typedef struct Version {
  char const *folder, *limit, *soft_limit, *used, *more_limit, *more_used;
  char const *cached[3]; /* words of memory.stat: what gives way */
} Version;

static Version const old = {
    "/sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    NULL,
    "memory.usage_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.memsw.usage_in_bytes",
    {"\ntotal_inactive_file ", "\ntotal_active_file ", NULL},
};
static Version const unified = {
    "/sys/fs/cgroup",
    "memory.max",
    "memory.high",
    "memory.current",
    "memory.swap.max",
    "memory.swap.current",
    {"\ninactive_file ", "\nactive_file ", "\nslab_reclaimable "},
};

/* ---- files ---- */

/* Reads the beginning of a file, with a newline before it. False if there is none. */
static bool read_lines(char const *path, char *text, size_t size) {
  text[0] = '\n';
  return umem_read_text(path, text + 1, size - 1);
}

/* The number behind a word; otherwise if there is none. */
static uint64_t number_after(char const *text, char const *word, uint64_t otherwise) {
  unsigned long long number;
  char const *found = strstr(text, word);
  return found && sscanf(found + strlen(word), "%llu", &number) == 1 ? number : otherwise;
}

/* The first line of a file. UINT64_MAX where it is no number, as "max", or as large as no memory. */
static uint64_t read_number(char const *folder, char const *name) {
  char path[longest_path + 64], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (!read_lines(path, text, sizeof text)) return UINT64_MAX;
  uint64_t number = number_after(text, "\n", UINT64_MAX);
  return number >> 62 ? UINT64_MAX : number;
}

/* ---- groups ---- */

/* The processes of a group above its soft limit wait for memory, and hardly run. */
static uint64_t limit_of(char const *folder, Version const *version) {
  uint64_t limit = read_number(folder, version->limit);
  return version->soft_limit ? umem_lesser(limit, read_number(folder, version->soft_limit)) : limit;
}

/* The cache of files and of the kernel gives way. */
static uint64_t cached_in(char const *folder, Version const *version) {
  char path[longest_path + 64], text[4096];
  uint64_t cached = 0;
  snprintf(path, sizeof path, "%s/memory.stat", folder);
  if (!read_lines(path, text, sizeof text)) return 0;
  for (unsigned i = 0; i < 3 && version->cached[i]; i++)
    cached += number_after(text, version->cached[i], 0);
  return cached;
}

static uint64_t difference(uint64_t limit, uint64_t used, uint64_t cached) {
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  used -= umem_lesser(used, cached);
  return limit - umem_lesser(limit, used);
}

/* Takes the least of left and what one group has left. */
static void add_group(Left *left, char const *folder, Version const *version) {
  uint64_t limit = limit_of(folder, version), more_limit = read_number(folder, version->more_limit);
  if (limit == UINT64_MAX && more_limit == UINT64_MAX) return;
  uint64_t cached = cached_in(folder, version);
  uint64_t more_used = read_number(folder, version->more_used);
  left->ram = umem_lesser(left->ram, difference(limit, read_number(folder, version->used), cached));
  if (version == &unified)
    left->swap = umem_lesser(left->swap, difference(more_limit, more_used, 0));
  else
    left->both = umem_lesser(left->both, difference(more_limit, more_used, cached));
}

/* A group and those around it. group: as the kernel names it, from "/" on. */
static void add_groups_around(Left *left, char const *group, size_t length,
                              Version const *version) {
  char folder[longest_path];
  size_t first = strlen(version->folder);
  if (first + length >= sizeof folder) return;
  snprintf(folder, sizeof folder, "%s%.*s", version->folder, (int)length, group);
  for (;;) {
    add_group(left, folder, version);
    char *end = strrchr(folder + first, '/');
    if (!end) return;
    *end = 0;
  }
}

/* Lines are "4:memory:/group", or "0::/group" for version 2. */
static void add_groups(Left *left) {
  char text[4096];
  if (!read_lines("/proc/self/cgroup", text, sizeof text)) return;
  for (char *line = text + 1; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    char const *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group) break;
    size_t length = strcspn(group + 1, "\n");
    bool is_unified = group == names + 1;
    if (is_unified || !strncmp(names, ":memory:", 8))
      add_groups_around(left, group + 1, length, is_unified ? &unified : &old);
  }
}

/* ---- the machine ---- */

static Left read_left(void) {
  char text[2048];
  Left left = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
  if (!read_lines("/proc/meminfo", text, sizeof text)) return left;
  uint64_t available = number_after(text, "\nMemAvailable:", UINT64_MAX);
  uint64_t swap = number_after(text, "\nSwapFree:", UINT64_MAX);
  if (available == UINT64_MAX || swap == UINT64_MAX) return left;
  left.ram = available * 1024;
  left.swap = swap * 1024;
  add_groups(&left);
  return left;
}

uint64_t umemMemory_available(void) {
  Left left = read_left();
  return umem_lesser(left.ram, left.both);
}

uint64_t umemMemory_left(void) {
  Left left = read_left();
  return umem_lesser(left.ram + umem_lesser(left.swap, UINT64_MAX - left.ram), left.both);
}

/* ---- one request ---- */

static uint64_t const fresh_for = 100; /* ms */

static uint64_t granted_until, still_left; /* ms, and bytes of the last answer; atomic */

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Two threads that read at a time may both store: either answer will do. */
bool umemMemory_has(uint64_t nbytes, uint64_t *left) {
  if (nbytes < umemMemoryLeast) return true;
  uint64_t now = now_ms(), known = __atomic_load_n(&still_left, __ATOMIC_RELAXED);
  if (nbytes <= known && now < __atomic_load_n(&granted_until, __ATOMIC_RELAXED) &&
      __atomic_compare_exchange_n(&still_left, &known, known - nbytes, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED))
    return true;
  *left = umemMemory_left();
  if (nbytes > *left) return false;
  __atomic_store_n(&still_left, *left - nbytes, __ATOMIC_RELAXED);
  __atomic_store_n(&granted_until, now + fresh_for, __ATOMIC_RELAXED);
  return true;
}
