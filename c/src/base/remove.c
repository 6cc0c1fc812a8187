/* remove.c - see remove.h. */
#include "base/remove.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool umem_is_file(int fd, int folder, char const *name, uint64_t length) {
  struct stat mine, there;
  return fstat(fd, &mine) == 0 && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino &&
         (uint64_t)mine.st_size == length;
}

/* Between a look and an unlink another file could get the name. So the file moves to a name that nobody else
 * uses before the look that counts. */
void umem_remove_file(int fd, int folder, char const *name, uint64_t length) {
  unsigned long long number;
  char aside[40];
  if (!umem_is_file(fd, folder, name, length)) return;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return;
  snprintf(aside, sizeof aside, ".umem-%016llx", number);
  if (renameat2(folder, name, folder, aside, RENAME_NOREPLACE) != 0) return;
  if (umem_is_file(fd, folder, aside, length))
    unlinkat(folder, aside, 0);
  else
    renameat2(folder, aside, folder, name, RENAME_NOREPLACE);
}
