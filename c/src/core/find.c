/* find.c - the live contexts, whose block an address is in, and labels of contexts and blocks. */
#include "core/live.h"
#include "base/thread.h"
#include "core/kind.h"
#include "core/status.h"
#include "core/hook.h"
#include "core/context.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

static umemLive *newest; /* under the global lock */

void umemLive_add(umemLive *live, umemVirtual *ctx) {
  if (!UMEM_SLOT(ctx, find) && !UMEM_SLOT(ctx, usage)) return;
  umemLock_acquire_global();
  live->ctx = ctx;
  live->newer = NULL;
  live->older = newest;
  if (newest) newest->newer = live;
  newest = live;
  umemLock_release_global();
}

void umemLive_remove(umemLive *live) {
  umemLock_acquire_global();
  if (live->ctx) {
    if (live->newer)
      live->newer->older = live->older;
    else
      newest = live->older;
    if (live->older) live->older->newer = live->newer;
    live->ctx = NULL;
  }
  umemLock_release_global();
}

/* ---- searching ---- */

umemSearch umemLive_search(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  for (; ctx && ctx->vptr; ctx = umem_below(ctx)) {
    umemSearch (*find)(umemVirtual *, uintptr_t, umemFound *) = UMEM_SLOT(ctx, find);
    if (!find) continue;
    umemSearch search = find(ctx, adr, found);
    found->ctx = ctx;
    found->name = ctx->name ? ctx->name : "User";
    return search;
  }
  return umemSearchNone;
}

umemSearch umemLive_search_all(uintptr_t adr, umemFound *found) {
  umemSearch search = umemSearchNone;
  umemLock_acquire_global();
  for (umemLive *live = newest; live && search == umemSearchNone; live = live->older) {
    umemFound block = UMEM_FOUND_INIT;
    if (!UMEM_SLOT(live->ctx, find) || live->ctx->capabilities & umemOffsets) continue;
    search = umemLive_search(live->ctx, adr, &block);
    if (search != umemSearchFound) continue;
    umemExtra_copy_label(live->ctx, block.label);
    *found = block;
  }
  umemLock_release_global();
  return search;
}

/* ---- describing ---- */

typedef struct Text {
  char *text;
  size_t size, used;
} Text;

__attribute__((format(printf, 2, 3))) static void write_to(Text *to, char const *format, ...) {
  if (to->used + 1 >= to->size) return;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  to->used += (size_t)length < to->size - to->used ? (size_t)length : to->size - 1 - to->used;
}

/* A context with its figures. */
typedef struct Entry {
  umemLive *live;
  umemUsage usage;
  bool busy;
} Entry;

static Entry entry_of(umemLive *live) {
  Entry entry = {.live = live, .usage = {UMEM_UNKNOWN, UMEM_UNKNOWN}};
  entry.busy = !live->ctx->vptr->usage(live->ctx, &entry.usage);
  if (entry.busy || entry.usage.nbytes == UMEM_UNKNOWN) entry.usage.nbytes = 0;
  return entry;
}

static void write_entry(Text *to, Entry const *entry) {
  char label[UMEM_LABEL_SIZE];
  umemVirtual const *ctx = entry->live->ctx;
  umemExtra_copy_label(ctx, label);
  write_to(to, "%s%s", to->used ? ", " : "", ctx->name ? ctx->name : "User");
  if (*label) write_to(to, " \"%s\"", label);
  if (entry->busy)
    write_to(to, " (busy)");
  else
    write_to(to, " %" PRIu64 " bytes", entry->usage.nbytes);
  if (entry->usage.peak != UMEM_UNKNOWN) write_to(to, " (peak %" PRIu64 ")", entry->usage.peak);
}

enum { largest_most = 16 };

/* The largest contexts, the largest first; of equal ones the newest. Returns how many contexts
 * there are. */
static size_t find_largest(Entry largest[largest_most], size_t *found) {
  size_t count = 0;
  *found = 0;
  for (umemLive *live = newest; live; live = live->older) {
    if (!UMEM_SLOT(live->ctx, usage)) continue;
    Entry entry = entry_of(live);
    count++;
    size_t at = *found;
    while (at && largest[at - 1].usage.nbytes < entry.usage.nbytes) at--;
    if (at == largest_most) continue;
    if (*found < largest_most) ++*found;
    for (size_t i = *found - 1; i > at; i--) largest[i] = largest[i - 1];
    largest[at] = entry;
  }
  return count;
}

size_t umemLive_describe(char *text, size_t size, unsigned most) {
  Entry largest[largest_most];
  Text to = {text, size, 0};
  size_t found, count = find_largest(largest, &found);
  if (found > most) found = most;
  if (size) *text = 0;
  for (size_t i = 0; i < found; i++) write_entry(&to, &largest[i]);
  if (count > found) write_to(&to, "%s%zu more", found ? ", and " : "", count - found);
  return count;
}

/* Whether found, if there is one, can be written; false with a status otherwise. */
static bool check_found(void *ctx, umemFound const *found) {
  size_t const least = offsetof(umemFound, name);
  return !found || umem_can_write_sized(ctx, found, least, "found", "umemFound");
}

static umemFindForeign *ask_foreign; /* atomic; NULL: memory of others is unknown */

void umemFind_set_foreign(umemFindForeign *ask) {
  __atomic_store_n(&ask_foreign, ask, __ATOMIC_RELEASE);
}

/* Describes memory of other libraries, if ask_foreign knows it. */
static void search_foreign(uintptr_t adr, umemFound *found) {
  umemFound foreign = UMEM_FOUND_INIT;
  umemFindForeign *ask = __atomic_load_n(&ask_foreign, __ATOMIC_ACQUIRE);
  if (found && ask && ask(adr, &foreign)) umem_write_sized(found, &foreign, sizeof foreign);
}

bool umem_find(uintptr_t adr, umemFound *found) {
  UMEM_ENTER();
  umemFound block = UMEM_FOUND_INIT;
  umemSearch search;
  if (!check_found(NULL, found)) return false;
  while ((search = umemLive_search_all(adr, &block)) == umemSearchBusy) sched_yield();
  if (search == umemSearchNone) {
    search_foreign(adr, found);
    return false;
  }
  if (found) umem_write_sized(found, &block, sizeof block);
  return true;
}

/* The live block of ctx that contains adr. */
static bool search_in(umemVirtual *ctx, uintptr_t adr, umemFound *block) {
  umemSearch search;
  umemFound const none = UMEM_FOUND_INIT;
  do *block = none;
  while ((search = umemLive_search(ctx, adr, block)) == umemSearchBusy && !sched_yield());
  return search == umemSearchFound;
}

bool umem_find_in(void *ctx, uintptr_t adr, umemFound *found) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  umemFound block;
  if (!self || !check_found(self, found) || !search_in(self, adr, &block)) return false;
  umemExtra_label(block.ctx, block.label);
  if (found) umem_write_sized(found, &block, sizeof block);
  return true;
}

/* ---- labels of contexts ---- */

/* Whether label has room; NULL becomes "". */
static bool check_label(umemVirtual *ctx, char const **label) {
  if (!*label) *label = "";
  size_t length = strnlen(*label, UMEM_LABEL_SIZE);
  if (length < UMEM_LABEL_SIZE) return true;
  return UMEM_FAIL(ctx, umemValueError, "the label \"%.20s...\" has more than %d bytes", *label,
                   UMEM_LABEL_SIZE - 1);
}

umemStatusType umem_set_label(void *ctx, char const *label) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self || !check_label(self, &label)) return UMEM_RESULT();
  umemLock_acquire_global();
  umemExtra *extra = *label || self->base ? umemExtra_make(self) : NULL;
  if (extra) strcpy(extra->label, label);
  umemLock_release_global();
  if (!extra && *label) return umemVirtual_fail(self, umemMemoryError, "no memory for a label");
  if (UMEM_SLOT(self, labelled)) self->vptr->labelled(self);
  return umemOK;
}

char const *umem_get_label(void const *ctx) {
  umemVirtual const *self = ctx;
  char label[UMEM_LABEL_SIZE];
  if (!self || !self->vptr || !umem_is_in_place(self)) return "";
  umemExtra_label(self, label);
  return umem_keep_text(label);
}

/* ---- labels of blocks ---- */

/* The outermost layer that keeps labels and has the very block. Records a failure if there is
 * none. */
static umemVirtual *layer_for_label(umemVirtual *ctx, uintptr_t adr) {
  umemFound first, block;
  bool keeps = UMEM_LAYER_WITH(ctx, set_block_label) != NULL;
  if (keeps && (!search_in(ctx, adr, &first) || first.adr != adr))
    return UMEM_FAIL_NULL(ctx, umemValueError, "no live block of this %s begins at 0x%jx",
                          umem_get_device_name(ctx), (uintmax_t)adr);
  for (umemVirtual *layer = keeps ? first.ctx : NULL; layer; layer = umem_upstream_of(layer))
    if (UMEM_SLOT(layer, set_block_label) && search_in(layer, adr, &block) && block.ctx == layer &&
        block.adr == adr && block.nbytes == first.nbytes)
      return layer;
  return UMEM_FAIL_NULL(ctx, umemNotSupportedError,
                        "no layer of this %s keeps labels of its blocks: a umemTrack does",
                        umem_get_device_name(ctx));
}

umemStatusType umem_set_block_label(void *ctx, uintptr_t adr, char const *label) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self || !check_label(self, &label)) return umem_result(before);
  umemVirtual *layer = layer_for_label(self, adr);
  if (layer) layer->vptr->set_block_label(layer, adr, label);
  return layer ? umem_record_on_layers(layer, self, before) : umem_result(before);
}

/* The outermost layer with a label for the block, which may be below the one that has it. */
char const *umem_get_block_label(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  umemFound first, block;
  if (!self || !search_in(self, adr, &first)) return "";
  for (umemVirtual *layer = first.ctx; layer; layer = umem_upstream_of(layer))
    if (search_in(layer, adr, &block) && block.adr == first.adr && block.nbytes == first.nbytes &&
        *block.block_label)
      return umem_keep_text(block.block_label);
  return "";
}
