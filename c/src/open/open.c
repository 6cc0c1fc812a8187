/* open.c - constructs the contexts of a name, and limits names to what is allowed; keeps what
 * umem_open returns until umem_close, and the contexts that are used where a program names none.
 *
 * Opening a context runs code of others, maybe for long, so it happens under no lock. */
#include "open/open.h"
#include "base/files.h"
#include "core/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/default.h>

/* ==== what umem_open_with allows ==== */

typedef struct Allowed {
  char const *schemes; /* borrowed: separated by spaces; NULL: all */
  bool limits_files;
  umemFolders folders;      /* the list is owned */
  umemFolders const *outer; /* the limit of the thread before */
  char const *hosts;        /* borrowed; "": none */
  char const *outer_hosts;
} Allowed;

/* ---- names ---- */

/* A scheme of the program can open any file. So if folders limit the files, the caller must allow
 * that scheme by name. */
static bool allows_scheme(Allowed const *allowed, umemScheme const *scheme) {
  bool known = umem_is_own_scheme(scheme) || !allowed->limits_files;
  if (allowed->schemes ? umem_word_index(allowed->schemes, scheme->name, strlen(scheme->name)) >= 0
                       : known)
    return true;
  return UMEM_FAIL(NULL, umemValueError, "the scheme \"%s\" is not allowed here", scheme->name);
}

static bool allows_path(Allowed const *allowed, umemOptionValue const *value) {
  if (!allowed->limits_files || !value->given) return true;
  if (!umemFolders_refuse(&allowed->folders, value->text)) return true;
  return UMEM_FAIL(NULL, umemValueError, "\"%.200s\" is not in a folder that is allowed here",
                   value->text);
}

static bool allows_layer(Allowed const *allowed, umemNameLayer const *layer) {
  umemScheme const *scheme = layer->scheme;
  if (!allows_scheme(allowed, scheme)) return false;
  bool is_url = scheme->place && scheme->place->kind == umemUrlOption;
  if (is_url && allowed->hosts && !*allowed->hosts)
    return UMEM_FAIL(NULL, umemValueError,
                     "no host is allowed here, but \"%s:\" connects to one (umemOpenOptions.hosts)",
                     scheme->name);
  if (scheme->place && scheme->place->kind == umemPathOption &&
      !allows_path(allowed, &layer->place))
    return false;
  for (size_t i = 0; i < scheme->option_count; i++)
    if (scheme->options[i].kind == umemPathOption && !allows_path(allowed, &layer->options[i]))
      return false;
  return true;
}

/* ---- the options ---- */

static bool read_folder(Allowed *allowed, char const *path) {
  int error = umemFolders_add(&allowed->folders, path);
  if (!error) return true;
  return UMEM_FAIL(NULL, umemIOError, "cannot open the folder \"%.200s\": %s", path ? path : "NULL",
                   UMEM_WORDS(error));
}

/* Reads the options. False with a status of the thread. Call end_limits in each case. */
static bool read_limits(Allowed *allowed, umemOpenOptions const *options) {
  umemOpenOptions full = UMEM_OPEN_OPTIONS_INIT;
  *allowed = (Allowed){.outer = umemFolders_held(), .outer_hosts = umemHosts_held()};
  if (!umem_read_sized(NULL, &full, sizeof full, options, "umemOpenOptions")) return false;
  allowed->schemes = full.schemes;
  allowed->hosts = options ? full.hosts ? full.hosts : "" : NULL;
  allowed->limits_files = full.folders != NULL;
  if (!full.folders || !full.folder_count) return true;
  allowed->folders.list = calloc(full.folder_count, sizeof *allowed->folders.list);
  if (!allowed->folders.list)
    return UMEM_FAIL(NULL, umemMemoryError, "no memory for %zu folders", full.folder_count);
  for (size_t i = 0; i < full.folder_count; i++)
    if (!read_folder(allowed, full.folders[i])) return false;
  return true;
}

/* Whether name uses only what is allowed, as far as that is known before a file is opened; else
 * records a status of the thread. From now until end_limits, umem_open_path opens files in the
 * folders only. */
static bool begin_limits(Allowed *allowed, umemName const *name) {
  for (size_t i = 0; i < name->count; i++)
    if (!allows_layer(allowed, &name->layers[i])) return false;
  if (allowed->limits_files) umemFolders_hold(&allowed->folders); /* else an outer limit holds on */
  if (allowed->hosts) umemHosts_hold(allowed->hosts);
  return true;
}

static void end_limits(Allowed *allowed) {
  umemFolders_hold(allowed->outer);
  umemHosts_hold(allowed->outer_hosts);
  free(allowed->folders.list);
}

/* ==== what umem_open constructs ====
 *
 * One piece of memory holds all layers of a context. Each layer borrows the next, so that all end
 * in the same way, whoever wrote the scheme. Failures are recorded on the thread alone, because the
 * context that failed is freed before anybody could look at it. */

/* The layers of one context. Their memory follows the struct. */
typedef struct Opened {
  struct Opened *next; /* of the owner's list */
  size_t count;
  unsigned forks;                      /* umem_fork_count of the process that constructed it */
  umemVirtual *layers[umemNameLayers]; /* outermost first */
} Opened;

static Opened *all_opened; /* of umem_open; under the global lock */

/* ---- layers ---- */

enum { layer_alignment = _Alignof(max_align_t) };

/* The bytes of the piece for all layers; 0 if that exceeds size_t. */
static size_t size_of_all(umemName const *name) {
  size_t size = sizeof(Opened) + layer_alignment;
  for (size_t i = 0; i < name->count; i++)
    if (__builtin_add_overflow(size, name->layers[i].scheme->context_size, &size) ||
        __builtin_add_overflow(size, layer_alignment, &size))
      return 0;
  return size;
}

static Opened *make_room(umemName const *name) {
  size_t size = size_of_all(name);
  Opened *opened = size ? calloc(1, size) : NULL;
  if (!opened)
    return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for %zu contexts", name->count);
  opened->count = name->count;
  opened->forks = umem_fork_count();
  char *place = (char *)(opened + 1);
  for (size_t i = 0; i < name->count; i++) {
    place += -(uintptr_t)place % layer_alignment;
    opened->layers[i] = (umemVirtual *)(void *)place;
    place += name->layers[i].scheme->context_size;
  }
  return opened;
}

/* Records what was held on the thread, and on no context. */
static void record_on_thread(umemAttempt *attempt) {
  umemAttempt_end(attempt);
  attempt->ctx = attempt->adopter = NULL;
  umemAttempt_record(attempt);
}

/* The message that attempt holds, without the name of the running function in front. */
static char const *reason_of(umemAttempt const *attempt) {
  size_t length = umem_thread.function ? strlen(umem_thread.function) : 0;
  bool said = length && !strncmp(attempt->text, umem_thread.function, length) &&
              !strncmp(attempt->text + length, ": ", 2);
  return attempt->text + (said ? length + 2 : 0);
}

/* Records on the thread why the index-th layer failed; with several layers the message names it.
 * Returns false. */
static bool record_layer(umemAttempt const *attempt, umemName const *name, size_t index) {
  char layer[UMEM_LAYER_NAME];
  char const *reason = reason_of(attempt);
  if (name->count > 1)
    return UMEM_FAIL(NULL, attempt->type, "\"%s\": %s", umemName_layer(name, index, layer), reason);
  return UMEM_FAIL(NULL, attempt->type, "%s", reason);
}

/* Destructs all layers, outermost first, and frees them. Records failures on the thread. */
static void delete_opened(Opened *opened) {
  for (size_t i = 0; i < opened->count; i++) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umem_dtor(opened->layers[i]);
    record_on_thread(&attempt);
  }
  free(opened);
}

/* Undoes a half-constructed context. Runs at the end of a block, so that an exception that leaves a
 * scheme's construct undoes it, too. Failures of the destructors must not hide why they are
 * called. */
static void give_up(Opened **opened) {
  UMEM_FORGETTING();
  if (*opened) delete_opened(*opened);
}

/* Puts bytes in place of those options, in values, that are percent of what is free in upstream.
 * False, and a status of the thread, if that is not known. */
static bool resolve(umemNameLayer const *layer, umemVirtual *upstream, umemOptionValue *values) {
  umemScheme const *scheme = layer->scheme;
  memcpy(values, layer->options, sizeof layer->options);
  for (size_t i = 0; i < scheme->option_count; i++) {
    if (scheme->options[i].kind != umemSizeOption || !(values[i].share > 0)) continue;
    if (!upstream)
      return UMEM_FAIL(NULL, umemValueError,
                       "the option \"%s\" is %s of what is free below \"%s\", which goes over "
                       "nothing: give it in bytes",
                       scheme->options[i].name, values[i].text, scheme->name);
    uint64_t before = umem_thread.failures;
    values[i].number = umem_get_available_share(upstream, values[i].share);
    values[i].share = 0;
    if (umem_thread.failures != before) return false;
  }
  return true;
}

/* Constructs one layer. False, and a status of the thread, if it fails. */
static bool construct(umemName const *name, size_t index, umemVirtual *ctx, umemVirtual *upstream) {
  umemNameLayer const *layer = &name->layers[index];
  umemScheme const *scheme = layer->scheme;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umemOptionValue values[UMEM_SCHEME_OPTIONS];
  umemStatusType status =
      resolve(layer, upstream, values)
          ? scheme->construct(ctx, upstream, &layer->place, values, scheme->user)
          : umemValueError;
  if (status == umemOK && ctx->vptr) {
    umemAttempt_end(&attempt);
    return true;
  }
  umem_dtor(ctx);
  umemAttempt_end(&attempt);
  if (umemAttempt_failed(&attempt)) return record_layer(&attempt, name, index);
  return UMEM_FAIL(NULL, status == umemOK ? umemValueError : status,
                   "the scheme \"%s\" has constructed nothing", scheme->name);
}

/* Each layer carries out what it has held back, the innermost last: umem empties a file when
 * nothing else can fail. What must not happen if emptying fails, a layer above leaves to
 * complete. */
static bool commit(umemName const *name, Opened *opened) {
  for (size_t i = 0; i < name->count; i++) {
    umemScheme const *scheme = name->layers[i].scheme;
    if (!scheme->commit) continue;
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umemStatusType status = scheme->commit(opened->layers[i], scheme->user);
    umemAttempt_end(&attempt);
    if (status == umemOK) continue;
    if (umemAttempt_failed(&attempt)) return record_layer(&attempt, name, i);
    return UMEM_FAIL(NULL, status, "the scheme \"%s\" has not committed", scheme->name);
  }
  return true;
}

static void complete(umemName const *name, Opened *opened) {
  for (size_t i = 0; i < name->count; i++) {
    umemScheme const *scheme = name->layers[i].scheme;
    if (scheme->complete) scheme->complete(opened->layers[i], scheme->user);
  }
}

/* Constructs all layers. If one fails: NULL, and a status of the thread alone. */
static Opened *construct_all(umemName const *name) {
  Opened *opened __attribute__((cleanup(give_up))) = make_room(name);
  for (size_t i = opened ? name->count : 0; i-- > 0;) {
    umemVirtual *upstream = i + 1 < name->count ? opened->layers[i + 1] : NULL;
    if (!construct(name, i, opened->layers[i], upstream)) return NULL;
  }
  if (!opened || !commit(name, opened)) return NULL;
  complete(name, opened);
  Opened *whole = opened;
  opened = NULL;
  return whole;
}

/* Calls the method finish of all layers, outermost first, and report with the first failure of
 * each. Does nothing in a child of the process that constructed them. */
static void finish_all(Opened *opened, void (*report)(umemAttempt *attempt)) {
  if (opened->forks != umem_fork_count()) return;
  for (size_t i = 0; i < opened->count; i++) {
    umemVirtual *layer = opened->layers[i];
    void (*finish)(umemVirtual *) = layer->vptr ? UMEM_SLOT(layer, finish) : NULL;
    umemAttempt attempt;
    if (!finish) continue;
    umemAttempt_begin(&attempt);
    finish(layer);
    umemAttempt_end(&attempt);
    if (umemAttempt_failed(&attempt)) report(&attempt);
  }
}

/* ---- open and close ---- */

static void free_name(umemName *const *name) { free(*name); }

static umemName *new_name(void) {
  umem_defer_cancel();
  umemName *name = malloc(sizeof *name);
  if (!name) umemVirtual_fail(NULL, umemMemoryError, "no memory for a name");
  return name;
}

/* Allocates a umemName until the end of the block; NULL with a status of the thread. From here on
 * umem puts cancellation off. */
#define UMEM_NAME(name) umemName *const name __attribute__((cleanup(free_name))) = new_name()

void *umem_open(char const *text) {
  UMEM_ENTER();
  return umem_open_with(text, NULL);
}

void *umem_open_with(char const *text, umemOpenOptions const *options) {
  UMEM_ENTER();
  UMEM_NAME(name);
  Allowed allowed __attribute__((cleanup(end_limits)));
  bool good = read_limits(&allowed, options);
  if (!good || !name || !umemName_parse(name, text) || !begin_limits(&allowed, name)) return NULL;
  Opened *opened = construct_all(name);
  if (!opened) return NULL;
  UMEM_LOCKED(&umem_global_lock);
  opened->next = all_opened;
  all_opened = opened;
  return opened->layers[0];
}

/* Takes the Opened of ctx out of the list; NULL if there is none. */
static Opened *take_out(void *ctx) {
  UMEM_LOCKED(&umem_global_lock);
  Opened **link = &all_opened;
  while (*link && (*link)->layers[0] != ctx) link = &(*link)->next;
  Opened *opened = *link;
  if (opened) *link = opened->next;
  return opened;
}

umemStatusType umem_close(void *ctx) {
  UMEM_ENTER();
  if (!ctx) return umemOK;
  umem_defer_cancel();
  Opened *opened = take_out(ctx);
  if (!opened)
    return umemVirtual_fail(NULL, umemValueError,
                            "the context is none of umem_open, or was closed before");
  delete_opened(opened);
  return UMEM_RESULT();
}

/* ==== defaults ====
 *
 * A thread claims the right to open one, and others who need it wait. The claim names the process,
 * because a child of fork would wait for ever for a thread of its parent. */

/* A default: of the process, slots[0], or of the GPU N, slots[1 + N]. */
typedef struct Slot {
  Opened *own; /* atomic; opened when first needed, and never ended */
  void *set;   /* atomic; borrowed: the program's, which is used instead of own */
} Slot;

static Slot slots[1 + UMEM_DEFAULT_DEVICES];

/* What they are without UMEM_DEFAULT: the default of the process, and of a GPU, whose number
 * follows. */
static char const first_default[] = "host:", first_default_of_device[] = "cuda:";

/* What umem_set_thread_default has set; borrowed. It precedes slots[0]. */
static _Thread_local void *thread_default;

static Opened *own_of(Slot *slot) { return __atomic_load_n(&slot->own, __ATOMIC_ACQUIRE); }

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
  UMEM_LOCKED(&umem_global_lock);
  if (claim.forks != forks) claim.released = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  claim.forks = forks;
  while (claim.by == forks + 1) umemLock_wait(&umem_global_lock, &claim.released);
  claim.by = forks + 1;
  claiming = true;
  return forks + 1;
}

/* At the end of a block; an exception that leaves a scheme's construct must not keep the claim. */
static void release_claim(unsigned const *mine) {
  claiming = false;
  UMEM_LOCKED(&umem_global_lock);
  if (claim.by == *mine) claim.by = 0;
  /* In a child of fork no thread waits on the parent's condition: see take_claim. */
  if (claim.forks == umem_fork_count()) pthread_cond_signal(&claim.released);
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
static Opened *open_on(umemName *name, int device, Slot *slot) {
  char digits[16];
  snprintf(digits, sizeof digits, "%d", device);
  name->layers[name->count - 1].place =
      (umemOptionValue){.given = true, .text = digits, .number = (uint64_t)device};
  Opened *opened = construct_all(name);
  if (opened) __atomic_store_n(&slot->own, opened, __ATOMIC_RELEASE);
  return opened;
}

static Opened *open_for_process(umemName *name, char const *text) {
  if (!umemName_parse(name, text)) return NULL;
  int device = device_of(name);
  Opened *opened;
  if (device < 0) {
    opened = construct_all(name);
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
static Opened *open_for_device(umemName *name, char const **text, int device) {
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
  char const *reason = reason_of(attempt);
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
static Opened *open_claimed(Slot *slot, umemName *name, char const **text, int device) {
  unsigned const mine __attribute__((cleanup(release_claim), unused)) = take_claim();
  Allowed all __attribute__((cleanup(end_limits), unused)) = {.outer = umemFolders_hold(NULL),
                                                              .outer_hosts = umemHosts_hold(NULL)};
  Opened *opened = own_of(slot);
  *text = text_of_environment();
  if (opened) return opened;
  if (device < 0) return open_for_process(name, *text ? *text : first_default);
  return open_for_device(name, text, device);
}

/* The library's own default of slot, which it opens if it is not open; device -1: of the
 * process. */
static Opened *open_own(Slot *slot, int device) {
  if (claiming)
    return UMEM_FAIL_NULL(NULL, umemValueError,
                          "the default context is being opened by this thread");
  UMEM_NAME(name);
  if (!name) return NULL;
  umemAttempt attempt;
  char const *text;
  umemAttempt_begin(&attempt);
  Opened *opened = open_claimed(slot, name, &text, device);
  umemAttempt_end(&attempt);
  if (!opened) record_name(&attempt, text, device);
  return opened;
}

static void *default_in(Slot *slot, int device) {
  void *set = __atomic_load_n(&slot->set, __ATOMIC_ACQUIRE);
  if (set) return set;
  Opened *own = own_of(slot);
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
  Opened *first = own_of(&slots[0]);
  if (first) finish_all(first, report_end);
  for (int i = 1; i <= UMEM_DEFAULT_DEVICES; i++) {
    Opened *opened = own_of(&slots[i]);
    if (opened && opened != first) finish_all(opened, report_end);
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
