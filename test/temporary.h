/* temporary.h - names for files of a test. */
#ifndef UMEM_TEST_TEMPORARY_H
#define UMEM_TEST_TEMPORARY_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Writes a path in $TMPDIR (or /tmp) that no file ever had; size: bytes of room. The time is in the name because a test
 * that was killed leaves its files, and ids of processes come again. Only one thread calls it. */
static inline void temporary_name(char *path, size_t size) {
  static unsigned next = 0;
  char const *folder = getenv("TMPDIR");
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) abort();
  int length =
      snprintf(path, size, "%s/umem-test-%ld-%llx%08lx-%u", folder && *folder ? folder : "/tmp",
               (long)getpid(), (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec, next++);
  if (length < 0 || (size_t)length >= size) abort();
}

#endif
