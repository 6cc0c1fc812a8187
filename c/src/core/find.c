/* find.c - whose address is it; labels. */
#include "core/live.h"
#include "core/hook.h"
#include "core/context.h"

#include <sched.h>

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
  umemLock_acquire(&umem_global_lock);
  umemExtra *extra = *label || self->base ? umemExtra_make(self) : NULL;
  if (extra) strcpy(extra->label, label);
  umemLock_release(&umem_global_lock);
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
