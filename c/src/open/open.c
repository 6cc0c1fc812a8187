/* open.c - constructs the contexts of a name, keeps them until umem_close, and limits names to what
 * is allowed. */
#include "open/open.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

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
  char words[128];
  int error = umemFolders_add(&allowed->folders, path);
  if (!error) return true;
  return UMEM_FAIL(NULL, umemIOError, "cannot open the folder \"%.200s\": %s", path ? path : "NULL",
                   umem_system_words(error, words, sizeof words));
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

static umemOpened *all_opened; /* of umem_open; under the global lock */

/* ---- layers ---- */

enum { layer_alignment = _Alignof(max_align_t) };

/* The bytes of the piece for all layers; 0 if that exceeds size_t. */
static size_t size_of_all(umemName const *name) {
  size_t size = sizeof(umemOpened) + layer_alignment;
  for (size_t i = 0; i < name->count; i++)
    if (__builtin_add_overflow(size, name->layers[i].scheme->context_size, &size) ||
        __builtin_add_overflow(size, layer_alignment, &size))
      return 0;
  return size;
}

static umemOpened *make_room(umemName const *name) {
  size_t size = size_of_all(name);
  umemOpened *opened = size ? calloc(1, size) : NULL;
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

char const *umemOpened_reason(umemAttempt const *attempt) {
  size_t length = umem_thread.function ? strlen(umem_thread.function) : 0;
  bool said = length && !strncmp(attempt->text, umem_thread.function, length) &&
              !strncmp(attempt->text + length, ": ", 2);
  return attempt->text + (said ? length + 2 : 0);
}

/* Records on the thread why the index-th layer failed; with several layers the message names it.
 * Returns false. */
static bool record_layer(umemAttempt const *attempt, umemName const *name, size_t index) {
  char layer[UMEM_LAYER_NAME];
  char const *reason = umemOpened_reason(attempt);
  if (name->count > 1)
    return UMEM_FAIL(NULL, attempt->type, "\"%s\": %s", umemName_layer(name, index, layer), reason);
  return UMEM_FAIL(NULL, attempt->type, "%s", reason);
}

/* Destructs all layers, outermost first, and frees them. Records failures on the thread. */
static void delete_opened(umemOpened *opened) {
  for (size_t i = 0; i < opened->count; i++) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umem_dtor(opened->layers[i]);
    record_on_thread(&attempt);
  }
  free(opened);
}

/* Forgets failures of the destructors: they must not hide why they are called. */
static void end_silently(umemOpened *opened) {
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  delete_opened(opened);
  umemAttempt_end(&forgotten);
}

/* Undoes a half-constructed context. Runs at the end of a block, so that an exception that leaves a
 * scheme's construct undoes it, too. */
static void give_up(umemOpened **opened) {
  if (*opened) end_silently(*opened);
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
static bool commit(umemName const *name, umemOpened *opened) {
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

static void complete(umemName const *name, umemOpened *opened) {
  for (size_t i = 0; i < name->count; i++) {
    umemScheme const *scheme = name->layers[i].scheme;
    if (scheme->complete) scheme->complete(opened->layers[i], scheme->user);
  }
}

umemOpened *umemOpened_new(umemName const *name) {
  umemOpened *opened __attribute__((cleanup(give_up))) = make_room(name);
  for (size_t i = opened ? name->count : 0; i-- > 0;) {
    umemVirtual *upstream = i + 1 < name->count ? opened->layers[i + 1] : NULL;
    if (!construct(name, i, opened->layers[i], upstream)) return NULL;
  }
  if (!opened || !commit(name, opened)) return NULL;
  complete(name, opened);
  umemOpened *whole = opened;
  opened = NULL;
  return whole;
}

void umemOpened_finish(umemOpened *opened, void (*report)(umemAttempt *attempt)) {
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

void umemOpened_free_name(umemName *const *name) { free(*name); }

umemName *umemOpened_new_name(void) {
  umem_defer_cancel();
  umemName *name = malloc(sizeof *name);
  if (!name) umemVirtual_fail(NULL, umemMemoryError, "no memory for a name");
  return name;
}

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
  umemOpened *opened = umemOpened_new(name);
  if (!opened) return NULL;
  umemLock_acquire_global();
  opened->next = all_opened;
  all_opened = opened;
  umemLock_release_global();
  return opened->layers[0];
}

/* Takes the umemOpened of ctx out of the list; NULL if there is none. */
static umemOpened *take_out(void *ctx) {
  umemLock_acquire_global();
  umemOpened **link = &all_opened;
  while (*link && (*link)->layers[0] != ctx) link = &(*link)->next;
  umemOpened *opened = *link;
  if (opened) *link = opened->next;
  umemLock_release_global();
  return opened;
}

umemStatusType umem_close(void *ctx) {
  UMEM_ENTER();
  if (!ctx) return umemOK;
  umem_defer_cancel();
  umemOpened *opened = take_out(ctx);
  if (!opened)
    return umemVirtual_fail(NULL, umemValueError,
                            "the context is none of umem_open, or was closed before");
  delete_opened(opened);
  return UMEM_RESULT();
}
