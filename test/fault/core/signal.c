/* signal.c - a signal handler whose calls of umem fail, while umem fails in the same thread. No
 * function of umem that can fail is safe in a handler; the thread must get along with it all the
 * same. */
#include <sys/time.h>

#include "child.h"

static umemHost host;
static umemStatusType volatile seen;
static int volatile handled;

static void handle(int signal UNUSED) {
  seen = umem_set(&host, 0, 0, 1);
  (void)umem_get_message(&host);
  handled++;
}

/* Inside of an attempt nothing of it is seen by the call that was interrupted. */
static void handle_in_attempt(int signal) {
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  handle(signal);
  umemAttempt_end(&attempt);
}

static void fire(void (*handler)(int), bool on) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  EXPECT(sigaction(SIGPROF, &action, NULL) == 0);
  struct itimerval timer = {.it_value.tv_usec = on ? 100 : 0, .it_interval.tv_usec = on ? 100 : 0};
  EXPECT(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void failures_do_not_wait_for_themselves(void *ignored UNUSED) {
  EXPECT(umemHost_ctor(&host) == umemOK);
  fire(handle, true);
  for (double end = seconds() + 1; seconds() < end;) {
    EXPECT(umem_set(&host, 0, 0, 1) == umemValueError);
    EXPECT(strlen(umem_get_message(&host)) < UMEM_MESSAGE_SIZE);
    umem_clear_status(&host);
  }
  fire(SIG_IGN, false);
  EXPECT(handled && seen == umemValueError);
}

static void attempts_hide_what_fails(void *ignored UNUSED) {
  EXPECT(umemHost_ctor(&host) == umemOK);
  char from[64] = "", to[64];
  fire(handle_in_attempt, true);
  for (double end = seconds() + 0.5; seconds() < end;) {
    EXPECT(umem_copy_to(&host, (uintptr_t)from, &host, (uintptr_t)to, sizeof to) == umemOK);
    uintptr_t adr = umem_calloc(&host, 1, 10);
    EXPECT(adr);
    umem_free(&host, adr);
  }
  fire(SIG_IGN, false);
  EXPECT(handled && umem_thread_status() == umemOK && umem_is_ok(&host));
}

TEST_CASE(failing_in_a_handler_does_not_hang) {
  child_run(failures_do_not_wait_for_themselves, NULL);
}

TEST_CASE(an_attempt_in_a_handler_leaves_no_trace) { child_run(attempts_hide_what_fails, NULL); }
