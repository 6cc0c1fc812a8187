/* default.c - the context that is used where a program names none.
 *
 * Opening a context runs code of others, maybe for long, so it happens under no lock: a thread
 * claims the right to open, and others who need it wait. The claim names the process, because a
 * child of fork would wait for ever for a thread of its parent. */
#include "core/status.h"
#include "base/thread.h"
#include "core/context.h"
#include "open/open.h"

#include <umem/default.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A default: of the process, slots[0], or of the GPU N, slots[1 + N]. */
typedef struct Slot {
  umemOpened *own; /* atomic; opened when first needed, and never ended */
  void *set;       /* atomic; borrowed: the program's, which is used instead of own */
} Slot;

static Slot slots[1 + UMEM_DEFAULT_DEVICES];

/* What they are without UMEM_DEFAULT: the default of the process, and of a GPU, whose number
 * follows. */
static char const first_default[] = "host:", first_default_of_device[] = "cuda:";

/* What umem_set_thread_default has set; borrowed. It precedes slots[0]. */
static _Thread_local void *thread_default;

static umemOpened *own_of(Slot *slot) { return __atomic_load_n(&slot->own, __ATOMIC_ACQUIRE); }

/* ---- the right to open ---- */

/* Under the global lock: */
static struct {
  unsigned by;    /* 0: none; else 1 more than the forks up to that process */
  unsigned forks; /* umem_fork_count() when the condition was made */
  pthread_cond_t released;
} claim = {.released = PTHREAD_COND_INITIALIZER};

static _Thread_local bool claiming;

/* Returns what the claim names. A condition on which threads of the parent wait is of no use in a
 * child. */
static unsigned take_claim(void) {
  unsigned const forks = umem_fork_count();
  umemLock_acquire_global();
  if (claim.forks != forks) claim.released = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  claim.forks = forks;
  while (claim.by == forks + 1) umemLock_wait_global(&claim.released);
  claim.by = forks + 1;
  umemLock_release_global();
  claiming = true;
  return forks + 1;
}

/* At the end of a block; an exception that leaves a scheme's construct must not keep the claim. */
static void release_claim(unsigned const *mine) {
  claiming = false;
  umemLock_acquire_global();
  if (claim.by == *mine) claim.by = 0;
  /* In a child of fork no thread waits on the parent's condition: see take_claim. */
  if (claim.forks == umem_fork_count()) pthread_cond_signal(&claim.released);
  umemLock_release_global();
}

/* ---- opening ---- */

/* The variable's text; NULL where it is not set, or empty. */
static char const *text_of_environment(void) {
  char const *text = secure_getenv(UMEM_DEFAULT);
  return text && *text ? text : NULL;
}

/* The number of the GPU that name is on; -1 for a name that is on none. */
static int device_of(umemName const *name) {
  umemNameLayer const *innermost = &name->layers[name->count - 1];
  umemOption const *place = innermost->scheme->place;
  return place && place->kind == umemDeviceOption ? (int)innermost->place.number : -1;
}

/* Opens name on device and keeps it in slot. */
static umemOpened *open_on(umemName *name, int device, Slot *slot) {
  char digits[16];
  snprintf(digits, sizeof digits, "%d", device);
  name->layers[name->count - 1].place =
      (umemOptionValue){.given = true, .text = digits, .number = (uint64_t)device};
  umemOpened *opened = umemOpened_new(name);
  if (opened) __atomic_store_n(&slot->own, opened, __ATOMIC_RELEASE);
  return opened;
}

static umemOpened *open_for_process(umemName *name, char const *text) {
  if (!umemName_parse(name, text)) return NULL;
  int device = device_of(name);
  umemOpened *opened;
  if (device < 0) {
    opened = umemOpened_new(name);
  } else if (device >= UMEM_DEFAULT_DEVICES) {
    opened = open_on(name, device, &slots[0]);
  } else { /* one context for both */
    Slot *shared = &slots[1 + device];
    opened = own_of(shared) ? own_of(shared) : open_on(name, device, shared);
  }
  __atomic_store_n(&slots[0].own, opened, __ATOMIC_RELEASE);
  return opened;
}

/* *text, the text of the variable, becomes NULL if it does not matter. */
static umemOpened *open_for_device(umemName *name, char const **text, int device) {
  if (*text && !umemName_parse(name, *text)) return NULL;
  if (!*text || device_of(name) < 0) {
    *text = NULL;
    umemName_parse(name, first_default_of_device);
  }
  return open_on(name, device, &slots[1 + device]);
}

/* Records what was held, with the name that failed: the text of the variable, or without it the
 * first default of the process (device -1) or of a GPU. */
static void record_name(umemAttempt const *attempt, char const *text, int device) {
  char const *reason = umemOpened_reason(attempt);
  if (text)
    umemVirtual_fail(NULL, attempt->type, UMEM_DEFAULT " is \"%.60s\": %s", text, reason);
  else if (device < 0)
    umemVirtual_fail(NULL, attempt->type, "\"%s\": %s", first_default, reason);
  else
    umemVirtual_fail(NULL, attempt->type, "\"%s%d\": %s", first_default_of_device, device, reason);
}

/* Opens the default of slot under the claim. *text becomes the text of the variable if that
 * matters. A scheme that wants a default while umem_open_with keeps it to folders gets what the
 * user of the program has chosen. */
static umemOpened *open_claimed(Slot *slot, umemName *name, char const **text, int device) {
  unsigned const mine __attribute__((cleanup(release_claim), unused)) = take_claim();
  UMEM_ALLOW_ALL_FOLDERS();
  umemOpened *opened = own_of(slot);
  *text = text_of_environment();
  if (opened) return opened;
  if (device < 0) return open_for_process(name, *text ? *text : first_default);
  return open_for_device(name, text, device);
}

/* The library's own default of slot, which it opens if it is not open; device -1: of the
 * process. */
static umemOpened *open_own(Slot *slot, int device) {
  if (claiming)
    return UMEM_FAIL_NULL(NULL, umemValueError,
                          "the default context is being opened by this thread");
  UMEM_NAME(name);
  if (!name) return NULL;
  umemAttempt attempt;
  char const *text;
  umemAttempt_begin(&attempt);
  umemOpened *opened = open_claimed(slot, name, &text, device);
  umemAttempt_end(&attempt);
  if (!opened) record_name(&attempt, text, device);
  return opened;
}

static void *default_in(Slot *slot, int device) {
  void *set = __atomic_load_n(&slot->set, __ATOMIC_ACQUIRE);
  if (set) return set;
  umemOpened *own = own_of(slot);
  if (!own) own = open_own(slot, device);
  return own ? own->layers[0] : NULL;
}

/* ---- the end ---- */

static void report_end(umemAttempt *attempt) {
  char text[UMEM_MESSAGE_SIZE + 64];
  snprintf(text, sizeof text, "umem: at the end of a default context: %s", attempt->text);
  umem_print_line(text);
}

/* Runs last in the process: after functions of atexit and destructors of C++ objects, and, by its
 * priority, after the destructors of a program that the library is linked into. Other threads may
 * be using the defaults, and other libraries may have blocks of them, so the defaults finish and
 * stay. dlclose looks like exit from here, and has the same effect. This does not wait for a thread
 * that opens a default. */
__attribute__((destructor(101))) static void finish_defaults(void) {
  umemThread running = umem_step_aside(); /* exit may have been called inside of a call */
  umemOpened *first = own_of(&slots[0]);
  if (first) umemOpened_finish(first, report_end);
  for (int i = 1; i <= UMEM_DEFAULT_DEVICES; i++) {
    umemOpened *opened = own_of(&slots[i]);
    if (opened && opened != first) umemOpened_finish(opened, report_end);
  }
  umem_step_back(&running);
}

/* ---- the calls ---- */

static umemStatusType set_in(Slot *slot, void *ctx) {
  uint64_t before = umem_thread.failures;
  if (ctx && !umem_check(ctx)) return umem_result(before);
  __atomic_store_n(&slot->set, ctx, __ATOMIC_RELEASE);
  return umemOK;
}

/* The slot of the device; NULL with a status for a number that has none. */
static Slot *slot_of(int device) {
  if (device >= 0 && device < UMEM_DEFAULT_DEVICES) return &slots[1 + device];
  return UMEM_FAIL_NULL(NULL, umemValueError, "device %d: right would be 0 to %d", device,
                        UMEM_DEFAULT_DEVICES - 1);
}

void *umem_default(void) {
  UMEM_ENTER();
  return thread_default ? thread_default : default_in(&slots[0], -1);
}

umemStatusType umem_set_default(void *ctx) {
  UMEM_ENTER();
  return set_in(&slots[0], ctx);
}

void *umem_thread_default(void) { return thread_default; }

umemStatusType umem_set_thread_default(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (ctx && !umem_check(ctx)) return umem_result(before);
  thread_default = ctx;
  return umemOK;
}

void *umem_default_of(int device) {
  UMEM_ENTER();
  Slot *slot = slot_of(device);
  return slot ? default_in(slot, device) : NULL;
}

umemStatusType umem_set_default_of(int device, void *ctx) {
  UMEM_ENTER();
  Slot *slot = slot_of(device);
  return slot ? set_in(slot, ctx) : umemValueError;
}
