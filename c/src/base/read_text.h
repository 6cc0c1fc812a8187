/* read_text.h - short files of the kernel, such as those below /sys. */
#ifndef UMEM_BASE_READ_TEXT_H
#define UMEM_BASE_READ_TEXT_H

#include "base/thread.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Reads the beginning of a file, at most size - 1 bytes, and ends it with a zero. False if there is nothing to read.
 * Puts cancellation off: contexts in RAM come here, too. */
static inline bool umem_read_text(char const *path, char *text, size_t size) {
  umem_defer_cancel();
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, size - 1);
  close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

#endif
