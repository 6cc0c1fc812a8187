/* memory_left.c - see memory_left.h.
 *
 * A process is in a group, which is in another one, and so on. Any of them may have a limit. Linux has two versions of
 * groups, with other names of the same files. A container may see only its own group, as the outermost one. */
#include "share/memory_left.h"

#include "base/again.h"
#include "base/number.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { longest_path = 1024 };

/* Where the files of a version are, and their names. */
typedef struct Version {
  char const *folder, *limit, *used, *inactive, *active;
} Version;

static Version const old = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                            "memory.usage_in_bytes", "\ntotal_inactive_file ",
                            "\ntotal_active_file "};
static Version const unified = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                "\ninactive_file ", "\nactive_file "};

/* Reads the beginning of a file, with a newline before it. False if there is none. */
static bool read_text(char const *path, char *text, size_t size) {
  int fd = UMEM_AGAIN(open(path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  ssize_t n = UMEM_AGAIN(read(fd, text + 1, size - 2));
  close(fd);
  text[0] = '\n';
  text[n > 0 ? n + 1 : 1] = 0;
  return n > 0;
}

/* The number behind a word; otherwise if there is none. */
static uint64_t number_after(char const *text, char const *word, uint64_t otherwise) {
  unsigned long long number;
  char const *found = strstr(text, word);
  return found && sscanf(found + strlen(word), "%llu", &number) == 1 ? number : otherwise;
}

/* The first line of a file. UINT64_MAX where it is no number: "max". */
static uint64_t read_number(char const *folder, char const *name) {
  char path[longest_path + 64], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return read_text(path, text, sizeof text) ? number_after(text, "\n", UINT64_MAX) : UINT64_MAX;
}

/* What one group has left. Its cache of files gives way. */
static uint64_t left_in(char const *folder, Version const *version) {
  char path[longest_path + 64], text[4096];
  uint64_t limit = read_number(folder, version->limit), used = read_number(folder, version->used);
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  snprintf(path, sizeof path, "%s/memory.stat", folder);
  uint64_t files = 0;
  if (read_text(path, text, sizeof text))
    files = number_after(text, version->inactive, 0) + number_after(text, version->active, 0);
  used -= umem_lesser(used, files);
  return limit - umem_lesser(limit, used);
}

/* The least of a group and of those around it. group: as the kernel names it, from "/" on. */
static uint64_t left_around(char const *group, size_t length, Version const *version) {
  char folder[longest_path];
  size_t first = strlen(version->folder);
  uint64_t left = UINT64_MAX;
  if (first + length >= sizeof folder) return left;
  snprintf(folder, sizeof folder, "%s%.*s", version->folder, (int)length, group);
  for (;;) {
    left = umem_lesser(left, left_in(folder, version));
    char *end = strrchr(folder + first, '/');
    if (!end) return left;
    *end = 0;
  }
}

/* Lines are "4:memory:/group", or "0::/group" for version 2. */
static uint64_t left_in_groups(void) {
  char text[4096];
  uint64_t left = UINT64_MAX;
  if (!read_text("/proc/self/cgroup", text, sizeof text)) return left;
  for (char *line = text + 1; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    char const *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group) break;
    size_t length = strcspn(group + 1, "\n");
    bool is_unified = group == names + 1;
    if (is_unified || !strncmp(names, ":memory:", 8))
      left = umem_lesser(left, left_around(group + 1, length, is_unified ? &unified : &old));
  }
  return left;
}

uint64_t umemMemory_left(void) {
  char text[2048];
  if (!read_text("/proc/meminfo", text, sizeof text)) return UINT64_MAX;
  uint64_t available = number_after(text, "\nMemAvailable:", UINT64_MAX);
  uint64_t swap = number_after(text, "\nSwapFree:", UINT64_MAX);
  if (available == UINT64_MAX || swap == UINT64_MAX) return UINT64_MAX;
  uint64_t left = umem_lesser(available * 1024, left_in_groups());
  return left + umem_lesser(swap * 1024, UINT64_MAX - left);
}
