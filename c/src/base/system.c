/* system.c - reserves addresses, and reads what the kernel reports about memory, nodes and
 * processors. */
#include "base/system.h"
#include "base/number.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ==== libraries that are opened at run time ==== */

/* A static program has no table in which the functions of the C library could be found. */
void *umem_open_library(char const *name, int flags, char const **error) {
  bool const is_static = !dlsym(RTLD_DEFAULT, "getpid");
  void *handle = is_static ? NULL : dlopen(name, flags | RTLD_LOCAL);
  if (!handle) *error = is_static ? "a program linked with -static can open no library" : dlerror();
  return handle;
}

/* ==== addresses ==== */

/* The rest on either side is only addresses: if it cannot be unmapped, nothing is lost. */
void *umem_reserve(size_t nbytes, size_t alignment) {
  size_t most, page = (size_t)sysconf(_SC_PAGESIZE), whole = (nbytes + page - 1) & ~(page - 1);
  errno = ENOMEM;
  if (__builtin_add_overflow(nbytes, alignment, &most)) return NULL;
  char *start = mmap(NULL, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t below = -(uintptr_t)start & (alignment - 1);
  if (below) munmap(start, below);
  if (most > below + whole) munmap(start + below + whole, most - below - whole);
  return start + below;
}

enum { most_map_tries = 100 }; /* while other threads take the addresses that were found */

/* Not by MAP_FIXED over the reservation: Linux before 6.12 gives the addresses up before it refuses
 * to map the file, and another thread may have them when they are unmapped. */
void *umem_map_aligned(int fd, size_t nbytes, size_t alignment, bool writable, int how) {
  int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  for (int tries = 0; tries < most_map_tries; tries++) {
    void *base = umem_reserve(nbytes, alignment);
    if (!base) return NULL;
    munmap(base, nbytes);
    void *mapped = mmap(base, nbytes, protection, how | MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (mapped == base) return base;
    if (mapped != MAP_FAILED) munmap(mapped, nbytes); /* Linux before 4.17 takes it for a hint */
    if (mapped == MAP_FAILED && errno != EEXIST) return NULL;
  }
  errno = ENOMEM;
  return NULL;
}

/* ==== memory that is left ====
 *
 * A process is in a group, which is in another one, and so on. Any of them may have a limit. Linux
 * has two versions of groups, with other names of the same files. A container may see only its own
 * group, as the outermost one. The second version limits swap by itself, the first one limits RAM
 * and swap together. */

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

/* The first line of a file. UINT64_MAX where it is no number, as "max", or as large as no
 * memory. */
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

/* A group and those that contain it. group: as the kernel names it, from "/" on. */
static void add_group_and_outer(Left *left, char const *group, size_t length,
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
      add_group_and_outer(left, group + 1, length, is_unified ? &unified : &old);
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

/* ==== nodes ==== */

enum {
  word_bits = CHAR_BIT * sizeof(unsigned long),
  words = umemNumaMost / word_bits,
  kernel_words =
      4096 / word_bits, /* more than a kernel has nodes: it refuses a set that is too small */
  allowed_flag = 1 << 2 /* MPOL_F_MEMS_ALLOWED */
};

/* syscall takes arguments as wide as a register. */
int umemNuma_allowed(uint64_t *nodes) {
  unsigned long set[kernel_words] = {0}, bits = sizeof set * CHAR_BIT, flags = allowed_flag;
  *nodes = 0;
  if (syscall(SYS_get_mempolicy, NULL, set, bits, NULL, flags)) return errno;
  for (unsigned n = 0; n < umemNumaMost; n++)
    *nodes |= (uint64_t)(set[n / word_bits] >> n % word_bits & 1) << n;
  return *nodes ? 0 : ENOSYS;
}

/* The kernel reads one bit less than its argument says. */
int umemNuma_place(void *adr, size_t nbytes, umemNumaPolicy policy, uint64_t nodes) {
  unsigned long set[words + 1] = {0}, bits = nodes ? umemNumaMost + 1 : 0;
  for (unsigned n = 0; n < umemNumaMost; n++)
    set[n / word_bits] |= (unsigned long)(nodes >> n & 1) << n % word_bits;
  return syscall(SYS_mbind, adr, nbytes, (long)policy, nodes ? set : NULL, bits, 0L) ? errno : 0;
}

int umemNuma_find(uintptr_t adr, int *node) {
  void *page = (void *)(adr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
  int found = -1;
  *node = -1;
  if (syscall(SYS_move_pages, 0L, 1L, &page, NULL, &found, 0L)) return errno;
  if (found >= 0) *node = found;
  return found >= 0 || found == -ENOENT ? 0 : -found;
}

/* ---- sizes ---- */

/* The number behind word. */
static bool find_number(char const *text, char const *word, uint64_t *number) {
  char const *found = strstr(text, word);
  char *end = NULL;
  if (!found) return false;
  found += strlen(word);
  *number = strtoull(found, &end, 10);
  return end > found;
}

static bool read_pages(unsigned node, uint64_t huge_page, char const *which, uint64_t *bytes) {
  char path[128], text[64];
  uint64_t pages = 0;
  snprintf(path, sizeof path,
           "/sys/devices/system/node/node%u/hugepages/hugepages-%" PRIu64 "kB/%s_hugepages", node,
           huge_page >> 10, which);
  if (!umem_read_text(path, text, sizeof text) || !find_number(text, "", &pages)) return false;
  *bytes += pages * huge_page;
  return true;
}

/* The cache of files and of the kernel gives way. */
static bool read_memory(unsigned node, uint64_t *capacity, uint64_t *available) {
  static char const *const gives_way[] = {"Active(file):", "Inactive(file):", "SReclaimable:"};
  char path[64], text[4096];
  uint64_t total = 0, left = 0, cached = 0;
  snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
  if (!umem_read_text(path, text, sizeof text) || !find_number(text, "MemTotal:", &total) ||
      !find_number(text, "MemFree:", &left))
    return false;
  for (unsigned i = 0; i < 3; i++)
    if (find_number(text, gives_way[i], &cached)) left += cached;
  *capacity += total << 10; /* in KiB */
  *available += left << 10;
  return true;
}

bool umemNuma_sizes(uint64_t nodes, uint64_t huge_page, uint64_t *capacity, uint64_t *available) {
  *capacity = *available = 0;
  for (unsigned n = 0; n < umemNumaMost; n++) {
    if (!(nodes >> n & 1)) continue;
    bool known = huge_page ? read_pages(n, huge_page, "nr", capacity) &&
                                 read_pages(n, huge_page, "free", available)
                           : read_memory(n, capacity, available);
    if (!known) return false;
  }
  return nodes != 0;
}

/* ---- lists ---- */

/* A number below umemNumaMost, at *text, which moves behind it. */
static bool take_number(char const **text, unsigned *number) {
  char const *first = *text;
  for (*number = 0; **text >= '0' && **text <= '9' && *text < first + 2; ++*text)
    *number = 10 * *number + (unsigned)(**text - '0');
  return *text > first && *number < umemNumaMost;
}

uint64_t umemNuma_read(char const *text) {
  uint64_t nodes = 0;
  for (;; text++) {
    unsigned first, last;
    if (!take_number(&text, &first)) return 0;
    last = first;
    if (*text == '-' && (text++, !take_number(&text, &last))) return 0;
    if (last < first) return 0;
    for (unsigned n = first; n <= last; n++) nodes |= UINT64_C(1) << n;
    if (!*text) return nodes;
    if (*text != ',') return 0;
  }
}

char *umemNuma_write(uint64_t nodes, char *text, size_t size) {
  size_t used = 0;
  if (size) *text = 0;
  for (unsigned n = 0; n < umemNumaMost && used < size; n++) {
    if (!(nodes >> n & 1)) continue;
    unsigned last = n;
    while (last + 1 < umemNumaMost && nodes >> (last + 1) & 1) last++;
    used += (size_t)snprintf(text + used, size - used, last > n ? "%s%u-%u" : "%s%u",
                             used ? "," : "", n, last);
    n = last;
  }
  return text;
}

/* ==== processors near the memory of a node ==== */

bool umem_all_are_slow;

static char const *sysfs = "/sys";

void umemNear_read_below(char const *root) { sysfs = root ? root : "/sys"; }

/* ---- what the system says ---- */

/* The node of the device; -1 where it has none. */
static long read_node(char const *address) {
  char path[512], text[32];
  int used = snprintf(path, sizeof path, "%s/bus/pci/devices/", sysfs);
  for (; *address && used < (int)sizeof path - 16; address++) /* the system writes small letters */
    path[used++] = (char)tolower((unsigned char)*address);
  snprintf(path + used, sizeof path - (size_t)used, "/numa_node");
  return umem_read_text(path, text, sizeof text) ? strtol(text, NULL, 10) : -1;
}

/* Adds "0-15,32-47" to the set. False for what is no such list. */
static bool read_list(char const *text, cpu_set_t *set) {
  CPU_ZERO(set);
  while (isdigit((unsigned char)*text)) {
    char *end;
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (*end == '-' && isdigit((unsigned char)end[1])) last = strtoul(end + 1, &end, 10);
    for (unsigned long cpu = first; cpu <= last && cpu < 8 * sizeof *set; cpu++) CPU_SET(cpu, set);
    if (*end != ',') return (!*end || *end == '\n') && CPU_COUNT(set) > 0;
    text = end + 1;
  }
  return false;
}

static bool read_processors(long node, cpu_set_t *near) {
  char path[512], text[1024];
  cpu_set_t mine, both;
  if (node < 0) return false;
  snprintf(path, sizeof path, "%s/devices/system/node/node%ld/cpulist", sysfs, node);
  if (!umem_read_text(path, text, sizeof text) || !read_list(text, near)) return false;
  if (sched_getaffinity(0, sizeof mine, &mine)) return false;
  CPU_AND(&both, near, &mine);
  return !CPU_EQUAL(&both, &mine) && CPU_COUNT(&both) > 0;
}

bool umemNear_find(char const *address, cpu_set_t *near) {
  return read_processors(read_node(address), near);
}

bool umemNear_here(cpu_set_t *near) {
  unsigned processor, node;
  return !syscall(SYS_getcpu, &processor, &node, NULL) && read_processors((long)node, near);
}

/* ---- threads ---- */

bool umemNear_enter(cpu_set_t const *near, cpu_set_t *before) {
  cpu_set_t both;
  if (sched_getaffinity(0, sizeof *before, before)) return false;
  CPU_AND(&both, near, before);
  return CPU_COUNT(&both) > 0 && !CPU_EQUAL(&both, before) &&
         !sched_setaffinity(0, sizeof both, &both);
}

void umemNear_leave(cpu_set_t const *before) { sched_setaffinity(0, sizeof *before, before); }
