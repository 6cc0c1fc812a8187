/* helper.c - files that the program needs while it works, and always removes. */
#include "helper.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HELPERS = 4 }; /* at a time */

typedef struct Helper {
  volatile sig_atomic_t exists;
  char name[PATH_SIZE];
} Helper;

static Helper helpers[HELPERS];

static int const ending_signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

/* The signal has its default action again and is blocked in this function: it ends the program
 * afterwards. */
static void remove_all(int signal) {
  for (size_t i = 0; i < HELPERS; ++i)
    if (helpers[i].exists) unlink(helpers[i].name);
  raise(signal);
}

static void catch_signals(void) {
  struct sigaction caught = {.sa_handler = remove_all, .sa_flags = (int)SA_RESETHAND}, before;
  sigemptyset(&caught.sa_mask);
  for (size_t i = 0; i < ENDING_SIGNALS; ++i) {
    sigaction(ending_signals[i], NULL, &before);
    if (before.sa_handler != SIG_IGN) /* nohup ignores it */
      sigaction(ending_signals[i], &caught, NULL);
  }
}

/* Creates the file and records that it exists. No signal arrives between the two. */
static bool create(Helper *helper) {
  sigset_t ending, before;
  sigemptyset(&ending);
  for (size_t i = 0; i < ENDING_SIGNALS; ++i) sigaddset(&ending, ending_signals[i]);
  sigprocmask(SIG_BLOCK, &ending, &before);
  int fd = mkstemp(helper->name);
  int error = errno;
  helper->exists = fd >= 0;
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (fd >= 0) close(fd);
  errno = error;
  return fd >= 0;
}

char const *helper_create(char const *prefix) {
  Helper *helper = helpers;
  while (helper < helpers + HELPERS && helper->exists) ++helper;
  if (helper == helpers + HELPERS) {
    errno = EMFILE;
    return NULL;
  }
  int length = snprintf(helper->name, PATH_SIZE, "%sumem-stage-XXXXXX", prefix);
  if (length < 0 || length >= PATH_SIZE) {
    errno = ENAMETOOLONG;
    return NULL;
  }
  catch_signals();
  return create(helper) ? helper->name : NULL;
}

/* Call it after the file was removed. If a signal arrives in between, its handler finds no file. */
static void forget(char const *name) {
  for (size_t i = 0; i < HELPERS; ++i)
    if (helpers[i].name == name) helpers[i].exists = false;
}

void helper_remove(char const *name) {
  unlink(name);
  forget(name);
}

bool helper_rename(char const *name, char const *final_name) {
  if (rename(name, final_name)) return false;
  forget(name);
  return true;
}
