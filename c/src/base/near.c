/* near.c - see near.h. */
#include "base/near.h"
#include "base/ahead.h"
#include "base/read_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) CPU_SET(cpu, set);
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
