/* faultable.c - ends accesses to mapped files that raise SIGBUS.
 *
 * The handler finds the access in a table of those that run now. A thread variable would not do:
 * its first use in a thread may allocate, and the handler may run in a thread that has never called
 * umem.
 *
 * A handler that the program installs while ours is there remains. It may keep ours to call it for
 * what it does not know. If ours were installed over it later, both would call each other for ever;
 * so from then on there are no fault-tolerant accesses. */
#include "base/faultable.h"
#include "base/thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

enum { accesses_most = 256 }; /* threads */

typedef struct Access {
  umemFaultableRange const *ranges;
  sigjmp_buf jump;
  unsigned long order;        /* later ones of a thread run inside of earlier ones */
  bool blocks;                /* SIGBUS was blocked before */
  volatile sig_atomic_t sent; /* a SIGBUS came that must wait until it is blocked again */
} Access;

/* An access is read by its own thread alone: it is on the stack of that one. */
typedef struct Entry {
  uintptr_t thread; /* pthread_self() of the thread, 0 for a free entry; atomic */
  Access *access;   /* atomic */
} Entry;

static Entry entries[accesses_most];

/* Under the global lock. */
static unsigned running;
static bool replaced; /* the program has installed a handler over ours */

/* The handler before ours. The handler reads the one that latest points to; only the other one is
 * changed. */
static struct sigaction before[2];
static struct sigaction *latest = before; /* atomic */

/* ---- the table ---- */

static uintptr_t self(void) { return (uintptr_t)pthread_self(); }

/* Returns NULL if the table is full. */
static Entry *enter(Access *access) {
  static unsigned long orders;
  access->order = __atomic_add_fetch(&orders, 1, __ATOMIC_RELAXED);
  for (Entry *entry = entries; entry < entries + accesses_most; entry++) {
    uintptr_t none = 0;
    if (__atomic_load_n(&entry->thread, __ATOMIC_RELAXED)) continue;
    if (!__atomic_compare_exchange_n(&entry->thread, &none, self(), false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    __atomic_store_n(&entry->access, access, __ATOMIC_RELEASE);
    return entry;
  }
  return NULL;
}

static void leave(Entry *entry) {
  __atomic_store_n(&entry->access, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&entry->thread, 0, __ATOMIC_RELEASE);
}

static bool covers(Access const *access, uintptr_t adr) {
  umemFaultableRange const *ranges = access->ranges;
  return adr - ranges[0].first < ranges[0].size || adr - ranges[1].first < ranges[1].size;
}

/* The innermost access of the calling thread; NULL if there is none. */
static Access *innermost(void) {
  Access *found = NULL;
  for (Entry *entry = entries; entry < entries + accesses_most; entry++) {
    if (__atomic_load_n(&entry->thread, __ATOMIC_ACQUIRE) != self()) continue;
    Access *access = __atomic_load_n(&entry->access, __ATOMIC_ACQUIRE);
    if (access && (!found || access->order > found->order)) found = access;
  }
  return found;
}

/* ---- the handler ---- */

/* A signal of the kernel for an access, and not one that a process has sent. */
static bool is_fault(siginfo_t const *info) {
  return info->si_code > 0 && info->si_code != SI_KERNEL;
}

/* The default action ends the process: when the access is repeated, or when the signal that was
 * sent comes again after the handler. */
static void end_process(int number, bool fault) {
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(number, &action, NULL);
  if (!fault) pthread_kill(pthread_self(), number);
}

static void pass_on(int number, siginfo_t *info, void *context) {
  struct sigaction earlier = *__atomic_load_n(&latest, __ATOMIC_ACQUIRE);
  bool fault = is_fault(info);
  if (earlier.sa_flags & (int)SA_RESETHAND) sigaction(number, &(struct sigaction){0}, NULL);
  if (earlier.sa_flags & SA_SIGINFO) {
    earlier.sa_sigaction(number, info, context);
  } else if (earlier.sa_handler == SIG_DFL || (earlier.sa_handler == SIG_IGN && fault)) {
    end_process(number, fault); /* the kernel does not ignore faults either */
  } else if (earlier.sa_handler != SIG_IGN) {
    earlier.sa_handler(number);
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  Access *access = innermost();
  if (access && is_fault(info) && covers(access, (uintptr_t)info->si_addr))
    siglongjmp(access->jump, 1);
  else if (access && access->blocks && !is_fault(info))
    access->sent = 1;
  else
    pass_on(number, info, context);
}

/* Of the masks only the bytes that the kernel knows: C libraries leave the others undefined. */
static bool is_same(struct sigaction const *one, struct sigaction const *other) {
  return one->sa_flags == other->sa_flags && one->sa_handler == other->sa_handler &&
         memcmp(&one->sa_mask, &other->sa_mask, (NSIG - 1) / 8) == 0;
}

static bool is_ours(struct sigaction const *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

/* The handler of the program runs in ours, so ours has its mask and flags. */
static int exchange(struct sigaction *earlier, struct sigaction const *assumed) {
  int kept = SA_RESTART | SA_NODEFER;
  struct sigaction ours = {.sa_mask = assumed->sa_mask,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | (assumed->sa_flags & kept)};
  ours.sa_sigaction = on_signal;
  return sigaction(SIGBUS, &ours, earlier);
}

/* With the lock. Assumes that the handler before ours is the same as the last time: one call
 * then. */
static bool install(void) {
  static bool known;
  struct sigaction *other = latest == before ? before + 1 : before, again;
  if (!known) known = sigaction(SIGBUS, NULL, latest) == 0;
  if (replaced || !known || exchange(other, latest) != 0) return false;
  if (is_same(other, latest)) return true;
  if (is_ours(other)) return true; /* latest is still the handler before it */
  __atomic_store_n(&latest, other, __ATOMIC_RELEASE);
  exchange(&again, other); /* cannot fail where the first has not */
  return true;
}

static void uninstall(void) {
  struct sigaction now;
  if (sigaction(SIGBUS, latest, &now) != 0 || is_ours(&now)) return;
  replaced = true;
  sigaction(SIGBUS, &now, NULL);
}

/* ---- accesses ---- */

static bool begin(void) {
  UMEM_LOCKED(&umem_global_lock);
  bool good = running || install();
  if (good) running++;
  return good;
}

static void end(void) {
  UMEM_LOCKED(&umem_global_lock);
  if (--running == 0) uninstall();
}

/* The child has the calling thread alone. */
static void begin_child(void) {
  unsigned before_fork = running;
  running = 0;
  for (Entry *entry = entries; entry < entries + accesses_most; entry++) {
    if (entry->thread == self())
      running++;
    else
      entry->thread = 0;
  }
  if (before_fork && !running) uninstall();
}

__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, begin_child);
}

/* Apart, because siglongjmp keeps no variables of this function that changed after sigsetjmp. */
static __attribute__((noinline)) bool run(Access *access, umemFaultableWork *work, void *data) {
  if (sigsetjmp(access->jump, 0) != 0) return false;
  work(data);
  return true;
}

/* The thread may block SIGBUS; a fault would then end the process. */
static bool run_unblocked(Access *access, umemFaultableWork *work, void *data) {
  sigset_t bus, old;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  if (pthread_sigmask(SIG_UNBLOCK, &bus, &old) != 0) return false;
  access->blocks = sigismember(&old, SIGBUS) == 1;
  bool whole = run(access, work, data);
  if (!whole || access->blocks) pthread_sigmask(SIG_SETMASK, &old, NULL);
  return whole;
}

bool umem_access_faultable(umemFaultableRange const ranges[2], umemFaultableWork *work,
                           void *data) {
  Access access = {.ranges = ranges, .blocks = true};
  Entry *entry = enter(&access);
  if (!entry) return false;
  bool whole = false;
  if (begin()) {
    whole = run_unblocked(&access, work, data);
    end();
  }
  leave(entry);
  if (access.sent) pthread_kill(pthread_self(), SIGBUS);
  return whole;
}
