/* numa.c - see numa.h. */
#include "base/numa.h"
#include "base/read_text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
