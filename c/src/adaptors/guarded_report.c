/* guarded_report.c - says which block of a umemGuarded an access has hit, when SIGSEGV comes.
 *
 * The handler runs in a thread that may hold any lock. So it waits for none: it tries, and if another thread holds one
 * of them for long, it says nothing. It allocates nothing and calls only functions that a handler may call. */
#include "adaptors/guarded.h"
#include "base/lock.h"
#include "core/status.h"
#include "core/live.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- the list of those that have pages ---- */

static umemGuardedImpl *newest;
static bool busy; /* atomic: the list is being used */

static bool try_list(void) { return !__atomic_test_and_set(&busy, __ATOMIC_ACQUIRE); }
static void leave_list(void) { __atomic_clear(&busy, __ATOMIC_RELEASE); }

static void enter_list(void) {
  while (!try_list()) usleep(1);
}

void umemGuarded_list(umemGuardedImpl *impl) {
  enter_list();
  impl->newer = NULL;
  impl->older = newest;
  if (newest) newest->newer = impl;
  newest = impl;
  leave_list();
}

void umemGuarded_unlist(umemGuardedImpl *impl) {
  enter_list();
  if (impl->newer)
    impl->newer->older = impl->older;
  else
    newest = impl->older;
  if (impl->older) impl->older->newer = impl->newer;
  leave_list();
}

/* ---- the line ---- */

typedef struct Line {
  char text[512];
  size_t used;
} Line;

static void add(Line *line, char const *text) {
  size_t length = strlen(text), room = sizeof line->text - line->used;
  if (length > room) length = room;
  memcpy(line->text + line->used, text, length);
  line->used += length;
}

static void add_number(Line *line, uintptr_t number, unsigned base) {
  char digits[24], *first = digits + sizeof digits - 1;
  *first = 0;
  do *--first = "0123456789abcdef"[number % base];
  while (number /= base);
  if (base == 16) add(line, "0x");
  add(line, first);
}

static void add_label(Line *line, char const *label) {
  if (!label || !*label) return;
  add(line, " \"");
  add(line, label);
  add(line, "\"");
}

static void add_place(Line *line, umemGuardedBlock const *block, uintptr_t adr) {
  add(line, "umem: SIGSEGV at ");
  if (adr - block->adr < block->nbytes) {
    add(line, "byte ");
    add_number(line, adr - block->adr, 10);
    add(line, " of");
  } else if (adr < block->adr) {
    add_number(line, block->adr - adr, 10);
    add(line, " bytes before");
  } else {
    add_number(line, adr - block->adr - block->nbytes, 10);
    add(line, " bytes behind the end of");
  }
}

static void add_reason(Line *line, umemGuardedBlock const *block, uintptr_t adr) {
  if (adr - block->adr >= block->nbytes)
    add(line, ": the access is outside of the block\n");
  else if (block->access == umemGuardedRead)
    add(line, ": it is open only for reading, and the access writes. No guard to write lives on "
              "this side\n");
  else
    add(line, ": it is closed. The other side of the array is in use, or the guard has ended\n");
}

/* With the lock of impl. */
static void report(umemGuardedImpl *impl, umemGuardedBlock const *block, uintptr_t adr) {
  Line line = {.used = 0};
  umemExtra const *extra = impl->ctx->base; /* as good as it is: the global lock is out of reach */
  add_place(&line, block, adr);
  add(&line, " the block");
  add_label(&line, block->label);
  add(&line, " of ");
  add_number(&line, block->nbytes, 10);
  add(&line, " bytes at ");
  add_number(&line, block->adr, 16);
  add(&line, " of a Guarded");
  add_label(&line, extra ? extra->label : NULL);
  add_reason(&line, block, adr);
  ssize_t written = write(STDERR_FILENO, line.text, line.used);
  (void)written;
}

/* False if impl cannot be looked at now. */
static bool look_at(umemGuardedImpl *impl, uintptr_t adr, bool *found) {
  if (!umemLock_try(&impl->lock)) return false;
  umemGuardedBlock const *block = umemGuardedBlocks_around(&impl->blocks, adr);
  if (block) report(impl, block, adr);
  *found = block != NULL;
  umemLock_release(&impl->lock);
  return true;
}

static void look(uintptr_t adr) {
  enum { tries = 1000 };
  bool found = false, entered = false;
  for (int i = 0; i < tries && !(entered = try_list()); i++) usleep(100);
  if (!entered) return;
  for (umemGuardedImpl *impl = newest; impl && !found; impl = impl->older)
    for (int i = 0; i < tries && !look_at(impl, adr, &found); i++) usleep(100);
  leave_list();
}

/* ---- the handler ---- */

static struct sigaction before; /* the handler that was there before ours */

/* The access is repeated when this returns: it then meets the handler that was there before. */
static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  int error = errno;
  bool is_fault = info->si_code > 0;
  if (is_fault) look((uintptr_t)info->si_addr);
  sigaction(number, &before, NULL);
  if (!is_fault) raise(number); /* it was sent, and does not come again by itself */
  errno = error;
}

static bool is_ours(struct sigaction const *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

/* With the global lock. A handler that the program has installed over ours stays. */
static bool change(bool on) {
  struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  ours.sa_sigaction = on_fault;
  sigemptyset(&ours.sa_mask);
  if (sigaction(SIGSEGV, NULL, &now) != 0) return false;
  if (on == is_ours(&now)) return true;
  if (on) before = now;
  return sigaction(SIGSEGV, on ? &ours : &before, NULL) == 0;
}

umemStatusType umemGuarded_report(bool on) {
  UMEM_ENTER();
  umemLock_acquire_global();
  bool done = change(on);
  int error = errno;
  umemLock_release_global();
  if (done) return umemOK;
  return umemVirtual_fail(NULL, umemRuntimeError, "cannot change the handler of SIGSEGV: %s",
                          strerror(error));
}
