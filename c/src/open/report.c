/* report.c - see report.h. */
#include "open/report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <umem/base.h>

/* Whether fd is for messages. If the program has closed it, a file of data may have its number by now, one of
 * umem's for example. Those are closed by exec; a standard output is not. */
static bool is_for_messages(int fd) {
  int flags = fcntl(fd, F_GETFD);
  return flags >= 0 && !(flags & FD_CLOEXEC);
}

static void write_all(int fd, char const *text, size_t length) {
  while (length) {
    ssize_t n = write(fd, text, length);
    if (n <= 0 && errno != EINTR) return;
    if (n <= 0) continue;
    text += n;
    length -= (size_t)n;
  }
}

void umem_report(char const *text) {
  char line[UMEM_MESSAGE_SIZE + 100];
  int length = snprintf(line, sizeof line - 1, "%s", text);
  if (length < 0 || !is_for_messages(STDERR_FILENO)) return;
  size_t used = strlen(line);
  line[used++] = '\n';
  sigset_t pipe, before, waiting;
  struct timespec const now = {0, 0};
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  if (pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0) return;
  bool was_waiting = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
  write_all(STDERR_FILENO, line, used);
  if (!was_waiting) sigtimedwait(&pipe, NULL, &now); /* the signal of the write, if there was one */
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}
