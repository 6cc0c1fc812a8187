/* live.c - keeps the list of live contexts, and searches it for blocks. */
#include "core/live.h"
#include "base/text.h"
#include "core/kind.h"

#include <inttypes.h>
#include <stdio.h>

static umemLive *newest; /* under the global lock */

umemLive *umemLive_newest(void) { return newest; }

void umemLive_add(umemLive *live, umemVirtual *ctx) {
  if (!UMEM_SLOT(ctx, find) && !UMEM_SLOT(ctx, usage)) return;
  UMEM_LOCKED(&umem_global_lock);
  live->ctx = ctx;
  UMEM_LIST_ADD(newest, live);
}

void umemLive_remove(umemLive *live) {
  UMEM_LOCKED(&umem_global_lock);
  if (!live->ctx) return;
  UMEM_LIST_REMOVE(newest, live);
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

static void write_entry(umemLine *to, Entry const *entry) {
  char label[UMEM_LABEL_SIZE];
  umemVirtual const *ctx = entry->live->ctx;
  umemExtra_copy_label(ctx, label);
  umemLine_add(to, "%s%s", to->used ? ", " : "", ctx->name ? ctx->name : "User");
  if (*label) umemLine_add(to, " \"%s\"", label);
  if (entry->busy)
    umemLine_add(to, " (busy)");
  else
    umemLine_add(to, " %" PRIu64 " bytes", entry->usage.nbytes);
  if (entry->usage.peak != UMEM_UNKNOWN) umemLine_add(to, " (peak %" PRIu64 ")", entry->usage.peak);
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
  umemLine to = {text, size, 0};
  size_t found, count = find_largest(largest, &found);
  if (found > most) found = most;
  if (size) *text = 0;
  for (size_t i = 0; i < found; i++) write_entry(&to, &largest[i]);
  if (count > found) umemLine_add(&to, "%s%zu more", found ? ", and " : "", count - found);
  return count;
}
