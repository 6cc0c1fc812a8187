/* live.c - keeps the list of live contexts, and searches it for blocks. */
#include "core/live.h"
#include "core/kind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static umemLive *newest; /* under the global lock */

umemLive *umemLive_newest(void) { return newest; }

void umemLive_add(umemLive *live, umemVirtual *ctx) {
  if (!UMEM_SLOT(ctx, find) && !UMEM_SLOT(ctx, usage)) return;
  UMEM_LOCKED(&umem_global_lock);
  live->ctx = ctx;
  live->newer = NULL;
  live->older = newest;
  if (newest) newest->newer = live;
  newest = live;
}

void umemLive_remove(umemLive *live) {
  UMEM_LOCKED(&umem_global_lock);
  if (!live->ctx) return;
  if (live->newer)
    live->newer->older = live->older;
  else
    newest = live->older;
  if (live->older) live->older->newer = live->newer;
  live->ctx = NULL;
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
  UMEM_LOCKED(&umem_global_lock);
  for (umemLive *live = newest; live && search == umemSearchNone; live = live->older) {
    umemFound block = UMEM_FOUND_INIT;
    if (!UMEM_SLOT(live->ctx, find) || live->ctx->capabilities & umemOffsets) continue;
    search = umemLive_search(live->ctx, adr, &block);
    if (search != umemSearchFound) continue;
    umemExtra_copy_label(live->ctx, block.label);
    *found = block;
  }
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
