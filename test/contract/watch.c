#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { longest_case = 240, most_crashes = 100 };

typedef struct Progress {
  size_t number; /* of the case that runs, or ran last */
  bool runs;
  char name[160];
} Progress;

static Progress *progress; /* shared with the child; NULL where nobody watches */

/* What CMocka puts handlers of its own in the place of. They go on after a signal in a process
 * whose locks may be taken: those that were there before end it, and those of sanitizers say
 * why. */
static int const signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
enum { signal_count = sizeof signals / sizeof *signals };
static struct sigaction before[signal_count];

static void note_handlers(void) {
  for (int i = 0; i < signal_count; i++) sigaction(signals[i], NULL, &before[i]);
}

void watch_signals(void) {
  for (int i = 0; progress && i < signal_count; i++) sigaction(signals[i], &before[i], NULL);
}

void watch_begin(size_t number, char const *name) {
  if (!progress) return;
  alarm(longest_case);
  progress->number = number;
  snprintf(progress->name, sizeof progress->name, "%s", name);
  progress->runs = true;
}

void watch_end(void) {
  if (!progress) return;
  progress->runs = false;
  alarm(0);
}

/* As CMocka reports a test that has failed. */
static void report(int status) {
  if (WIFSIGNALED(status))
    printf("ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    printf("ended the process with exit status %d\n", WEXITSTATUS(status));
  printf("[  FAILED  ] %s\n", progress->name);
  fflush(stdout);
}

/* Runs the cases from first on in a child. Returns how that ended, as waitpid says it; -1 if it
 * could not be. */
static int run_in_child(WatchedRun *run, void *data, size_t first) {
  int status;
  pid_t waited;
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) exit(run(first, data)); /* sanitizers look for leaks then */
  do waited = waitpid(child, &status, 0);
  while (waited < 0 && errno == EINTR);
  return waited == child ? status : -1;
}

static int watch(WatchedRun *run, void *data) {
  size_t first = 0;
  for (int crashes = 0; crashes < most_crashes; crashes++) {
    progress->runs = false;
    int status = run_in_child(run, data, first);
    if (status < 0) {
      perror("contract");
      return 1;
    }
    if (!progress->runs) { /* not in a case: it is done, or it ended after or before all of them */
      if (WIFSIGNALED(status)) printf("ended by signal %d\n", WTERMSIG(status));
      int result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      return result ? result : crashes ? 1 : 0;
    }
    report(status);
    first = progress->number + 1;
  }
  printf("%d cases have ended their process: the others are left out\n", most_crashes);
  return 1;
}

int watch_cases(WatchedRun *run, void *data) {
  progress =
      mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) {
    perror("contract");
    return 1;
  }
  note_handlers();
  int result = watch(run, data);
  munmap(progress, sizeof *progress);
  return result;
}

int run_unwatched(WatchedRun *run, void *data) { return run(0, data); }
