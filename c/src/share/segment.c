/* segment.c - the tables of a segment of shared memory, its layout, whom it may belong to, and
 * whether a file is one. */
#include "share/segment.h"
#include "base/files.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ==== the tables ====
 *
 * Free extents are in bins by the logarithm of their size. The index finds the live extent of an
 * offset: its heads are lists. A free block joins its free neighbours at once. */

enum {
  unused = 0,
  is_free = 0x66726565,
  is_live = 0x6c697665,
  is_incomplete = 0x68616c66, /* live, and its bytes are not all written */
  looks = 16
};

/* ---- numbers that others may change meanwhile: each is read once ---- */

static uint32_t get32(uint32_t const *number) { return __atomic_load_n(number, __ATOMIC_RELAXED); }
static uint64_t get64(uint64_t const *number) { return __atomic_load_n(number, __ATOMIC_RELAXED); }
static void set32(uint32_t *number, uint32_t value) {
  __atomic_store_n(number, value, __ATOMIC_RELAXED);
}
static void set64(uint64_t *number, uint64_t value) {
  __atomic_store_n(number, value, __ATOMIC_RELAXED);
}

/* The one store by which something becomes true. A process ends between two instructions, and what
 * it has stored before is there: so only the compiler must keep the order. */
static void commit(uint32_t *state, uint32_t value) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(state, value, __ATOMIC_RELEASE);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static void commit64(uint64_t *number, uint64_t value) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(number, value, __ATOMIC_RELEASE);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- extents ---- */

/* NULL for none, and for what is no number of an extent. */
static umemShmExtent *at(umemShmTable const *table, uint32_t number) {
  return number - 1u < table->count ? &table->extents[number - 1] : NULL;
}

static bool lives(umemShmExtent const *extent) {
  uint32_t state = get32(&extent->state);
  return state == is_live || state == is_incomplete;
}

/* Bytes of the data that a block of so many bytes takes. */
static uint64_t span_of(uint64_t size) {
  return (size + (umemShmGranule - 1)) & ~(uint64_t)(umemShmGranule - 1);
}

static bool is_inside(umemShmTable const *table, uint64_t offset, uint64_t size) {
  return offset % umemShmGranule == 0 && offset < table->capacity && size &&
         size <= table->capacity - offset;
}

static umemShmResult damage(umemShmTable *table) {
  set64(&table->root->damaged, 1);
  return umemShmDamaged;
}

/* ---- bins ---- */

static unsigned bin_of(uint64_t size) { return 63u - (unsigned)__builtin_clzll(size | 1); }

static void enter_bin(umemShmTable *table, uint32_t number, umemShmExtent *extent) {
  unsigned bin = bin_of(get64(&extent->size));
  uint32_t head = get32(&table->root->bins[bin]);
  umemShmExtent *next = at(table, head);
  set32(&extent->left, 0);
  set32(&extent->right, next ? head : 0);
  if (next) set32(&next->left, number);
  set32(&table->root->bins[bin], number);
  set64(&table->root->full, get64(&table->root->full) | UINT64_C(1) << bin);
}

static void leave_bin(umemShmTable *table, umemShmExtent *extent) {
  uint32_t left = get32(&extent->left), right = get32(&extent->right);
  unsigned bin = bin_of(get64(&extent->size));
  umemShmExtent *previous = at(table, left), *next = at(table, right);
  if (next) set32(&next->left, previous ? left : 0);
  if (previous) {
    set32(&previous->right, next ? right : 0);
    return;
  }
  set32(&table->root->bins[bin], next ? right : 0);
  if (!next) set64(&table->root->full, get64(&table->root->full) & ~(UINT64_C(1) << bin));
}

/* ---- the index ---- */

uint32_t umemShmTable_heads(uint32_t blocks) {
  uint32_t heads = 64;
  while (heads < blocks) heads *= 2;
  return heads;
}

static uint32_t *head_of(umemShmTable *table, uint64_t offset) {
  uint64_t mixed = offset / umemShmGranule * UINT64_C(0x9e3779b97f4a7c15);
  return &table->heads[(uint32_t)(mixed >> 32) & table->head_mask];
}

static void enter_index(umemShmTable *table, uint32_t number, umemShmExtent *extent) {
  uint32_t *head = head_of(table, get64(&extent->offset));
  set32(&extent->right, get32(head));
  set32(head, number);
}

/* The link that holds the number of the live block at offset. NULL if there is none. */
static uint32_t *link_to(umemShmTable *table, uint64_t offset) {
  uint32_t *link = head_of(table, offset);
  for (uint32_t steps = 0; steps < table->count; steps++) {
    umemShmExtent *extent = at(table, get32(link));
    if (!extent) return NULL;
    if (get64(&extent->offset) == offset && lives(extent)) return link;
    link = &extent->right;
  }
  return NULL;
}

static umemShmExtent *live_at(umemShmTable *table, uint64_t offset) {
  uint32_t *link = link_to(table, offset);
  return link ? at(table, get32(link)) : NULL;
}

/* ---- unused records ---- */

static uint32_t take_unused(umemShmTable *table) {
  uint32_t number = get32(&table->root->unused);
  umemShmExtent *extent = at(table, number);
  if (!extent || get32(&extent->state) != unused) return 0;
  set32(&table->root->unused, get32(&extent->after));
  return number;
}

static void give_unused(umemShmTable *table, uint32_t number, umemShmExtent *extent) {
  commit(&extent->state, unused);
  set32(&extent->after, get32(&table->root->unused));
  set32(&table->root->unused, number);
}

/* ---- the order ---- */

/* Puts the extent of this number between two others, 0 for none. */
static void link_between(umemShmTable *table, uint32_t before, uint32_t number,
                         umemShmExtent *extent, uint32_t after) {
  umemShmExtent *previous = at(table, before), *next = at(table, after);
  set32(&extent->before, previous ? before : 0);
  set32(&extent->after, next ? after : 0);
  set32(previous ? &previous->after : &table->root->first, number);
  if (next) set32(&next->before, number);
}

static void unlink_extent(umemShmTable *table, umemShmExtent *extent) {
  uint32_t before = get32(&extent->before), after = get32(&extent->after);
  umemShmExtent *previous = at(table, before), *next = at(table, after);
  set32(previous ? &previous->after : &table->root->first, next ? after : 0);
  if (next) set32(&next->before, previous ? before : 0);
}

/* A free extent between two others. False if no record is left. */
static bool add_free(umemShmTable *table, uint32_t before, uint32_t after, uint64_t offset,
                     uint64_t size) {
  uint32_t number = take_unused(table);
  umemShmExtent *extent = at(table, number);
  if (!extent) return false;
  set64(&extent->offset, offset);
  set64(&extent->size, size);
  link_between(table, before, number, extent, after);
  commit(&extent->state, is_free);
  enter_bin(table, number, extent);
  return true;
}

/* ---- making what is derived ---- */

/* Merges two lists by after in the order of offsets. Others may change the lists meanwhile, if they
 * do not keep to the lock: so the walk is bounded. */
static uint32_t merge(umemShmTable *table, uint32_t one, uint32_t other) {
  uint32_t first = 0, *link = &first;
  for (uint32_t steps = 0; steps < table->count; steps++) {
    umemShmExtent *a = at(table, one), *b = at(table, other);
    if (!a || !b) break;
    bool takes_a = get64(&a->offset) <= get64(&b->offset);
    set32(link, takes_a ? one : other);
    link = takes_a ? &a->after : &b->after;
    *(takes_a ? &one : &other) = get32(link);
  }
  set32(link, at(table, one) ? one : other);
  return first;
}

/* All live extents in a list by after, sorted; 0 for none. False if one is not inside of the
 * data. */
static bool sort_live(umemShmTable *table, uint32_t *sorted) {
  uint32_t runs[33] = {0}, used = 0;
  for (uint32_t i = 1; i <= table->count; i++) {
    umemShmExtent *extent = &table->extents[i - 1];
    if (!lives(extent)) continue;
    if (!is_inside(table, get64(&extent->offset), get64(&extent->size))) return false;
    extent->after = 0;
    uint32_t run = i, level = 0;
    for (; level < used && runs[level]; runs[level++] = 0) run = merge(table, runs[level], run);
    runs[level] = run;
    if (level == used) used++;
  }
  *sorted = 0;
  for (uint32_t level = 0; level < used; level++) *sorted = merge(table, runs[level], *sorted);
  return true;
}

static void forget_derived(umemShmTable *table) {
  umemShmRoot *root = table->root;
  root->live = root->bytes = root->full = 0;
  root->first = root->unused = 0;
  for (unsigned i = 0; i < umemShmBins; i++) root->bins[i] = 0;
  for (uint32_t i = 0; i <= table->head_mask; i++) table->heads[i] = 0;
  for (uint32_t i = table->count; i; i--)
    if (!lives(&table->extents[i - 1])) give_unused(table, i, &table->extents[i - 1]);
}

/* Puts a live extent behind what is there up to end. */
static bool put_behind(umemShmTable *table, uint32_t number, umemShmExtent *extent, uint32_t *last,
                       uint64_t *end) {
  uint64_t offset = get64(&extent->offset), span = span_of(get64(&extent->size));
  if (offset < *end) return false;
  if (offset > *end) {
    uint32_t gap = get32(&table->root->unused);
    if (!add_free(table, *last, 0, *end, offset - *end)) return false;
    *last = gap;
  }
  link_between(table, *last, number, extent, 0);
  enter_index(table, number, extent);
  table->root->live++;
  table->root->bytes += span;
  *last = number;
  *end = offset + span;
  return true;
}

/* The lists that are walked here are those that sort_live has made. Others may change them
 * meanwhile, but only processes that do not keep to the lock: so the walk is bounded, too. */
bool umemShmTable_rebuild(umemShmTable *table) {
  uint32_t number, last = 0, steps = 0;
  uint64_t end = 0;
  bool good = sort_live(table, &number);
  if (good) forget_derived(table);
  for (; good && number; steps++) {
    umemShmExtent *extent = at(table, number);
    if (!extent || steps == table->count) break;
    uint32_t after = get32(&extent->after);
    good = put_behind(table, number, extent, &last, &end);
    number = after;
  }
  good = good && !number && end <= table->capacity;
  if (good && end < table->capacity) good = add_free(table, last, 0, end, table->capacity - end);
  set64(&table->root->damaged, !good);
  return good;
}

/* ---- blocks ---- */

/* Where in a free extent a block can begin. False if it has no room. */
static bool fits(umemShmTable const *table, umemShmExtent const *extent, uint64_t span,
                 uint64_t alignment, uint64_t *offset) {
  uint64_t start = get64(&extent->offset), size = get64(&extent->size);
  uint64_t skip = -(table->origin + start) & (alignment - 1);
  *offset = start + skip;
  return skip <= size && size - skip >= span;
}

/* A free extent with room. At first only a few of each bin are looked at: any of a larger bin has
 * room, unless the alignment is large. */
static uint32_t find_free(umemShmTable *table, uint64_t span, uint64_t alignment, uint32_t most,
                          uint64_t *offset) {
  uint64_t full = get64(&table->root->full) & (UINT64_MAX << bin_of(span));
  for (; full; full &= full - 1) {
    uint32_t number = get32(&table->root->bins[__builtin_ctzll(full)]);
    for (uint32_t steps = 0; steps < most; steps++) {
      umemShmExtent *extent = at(table, number);
      if (!extent) break;
      if (get32(&extent->state) == is_free && fits(table, extent, span, alignment, offset))
        return number;
      number = get32(&extent->right);
    }
  }
  return 0;
}

/* The extent is free, and becomes live at offset. What remains of it on both sides becomes free
 * extents. */
static umemShmResult settle(umemShmTable *table, uint32_t number, uint64_t offset, uint64_t size,
                            umemShmOwner owner, uint32_t state) {
  umemShmExtent *extent = at(table, number);
  uint64_t start = get64(&extent->offset), whole = get64(&extent->size), span = span_of(size);
  if (!is_inside(table, start, whole) || offset - start > whole || whole - (offset - start) < span)
    return damage(table);
  uint64_t rest = whole - (offset - start) - span;
  leave_bin(table, extent);
  set64(&extent->offset, offset);
  set64(&extent->size, size);
  if (offset > start && !add_free(table, get32(&extent->before), number, start, offset - start))
    return damage(table);
  if (rest && !add_free(table, number, get32(&extent->after), offset + span, rest))
    return damage(table);
  set64(&extent->process, owner.process);
  set32(&extent->space, owner.space);
  commit(&extent->state, state);
  enter_index(table, number, extent);
  set64(&table->root->live, get64(&table->root->live) + 1);
  set64(&table->root->bytes, get64(&table->root->bytes) + span);
  return umemShmOK;
}

umemShmResult umemShmTable_alloc(umemShmTable *table, uint64_t size, uint64_t alignment,
                                 umemShmOwner owner, bool complete, uint64_t *offset) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  if (!size || size > table->capacity || alignment > table->capacity) return umemShmNoRoom;
  if (get64(&table->root->live) >= table->blocks) return umemShmNoEntry;
  alignment = umem_greater(alignment, umemShmGranule);
  uint64_t span = span_of(size);
  uint32_t number = find_free(table, span, alignment, looks, offset);
  if (!number) number = find_free(table, span, alignment, table->count, offset);
  if (!number) return umemShmNoRoom;
  return settle(table, number, *offset, size, owner, complete ? is_live : is_incomplete);
}

/* The neighbour that begins where this one ends, if it is free; checked, since the order may be
 * damaged. */
static umemShmExtent *free_after(umemShmTable *table, umemShmExtent const *extent, uint64_t end) {
  umemShmExtent *next = at(table, get32(&extent->after));
  return next && get32(&next->state) == is_free && get64(&next->offset) == end &&
                 is_inside(table, end, get64(&next->size))
             ? next
             : NULL;
}

static umemShmExtent *free_before(umemShmTable *table, umemShmExtent const *extent,
                                  uint64_t start) {
  umemShmExtent *previous = at(table, get32(&extent->before));
  return previous && get32(&previous->state) == is_free &&
                 is_inside(table, get64(&previous->offset), get64(&previous->size)) &&
                 get64(&previous->offset) + get64(&previous->size) == start
             ? previous
             : NULL;
}

static uint32_t number_of(umemShmTable const *table, umemShmExtent const *extent) {
  return (uint32_t)(extent - table->extents) + 1;
}

/* Takes a free extent out of the table; returns its bytes. */
static uint64_t absorb(umemShmTable *table, umemShmExtent *extent) {
  uint64_t size = get64(&extent->size);
  leave_bin(table, extent);
  unlink_extent(table, extent);
  give_unused(table, number_of(table, extent), extent);
  return size;
}

umemShmResult umemShmTable_free(umemShmTable *table, uint64_t offset) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  uint32_t *link = link_to(table, offset);
  umemShmExtent *extent = link ? at(table, get32(link)) : NULL;
  if (!extent) return umemShmNoBlock;
  uint64_t size = get64(&extent->size);
  if (!is_inside(table, offset, size)) return damage(table);
  uint64_t span = span_of(size);
  commit(&extent->state, is_free);
  set32(link, get32(&extent->right));
  set64(&table->root->live, get64(&table->root->live) - 1);
  set64(&table->root->bytes, get64(&table->root->bytes) - span);
  umemShmExtent *next = free_after(table, extent, offset + span);
  uint64_t whole = span + (next ? absorb(table, next) : 0);
  umemShmExtent *previous = free_before(table, extent, offset);
  if (previous) {
    leave_bin(table, previous);
    whole += get64(&previous->size);
    unlink_extent(table, extent);
    give_unused(table, number_of(table, extent), extent);
    extent = previous;
  }
  set64(&extent->size, whole);
  enter_bin(table, number_of(table, extent), extent);
  return umemShmOK;
}

umemShmResult umemShmTable_resize(umemShmTable *table, uint64_t offset, uint64_t size) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  umemShmExtent *extent = live_at(table, offset);
  if (!extent) return umemShmNoBlock;
  uint64_t old = get64(&extent->size);
  if (!is_inside(table, offset, old)) return damage(table);
  if (!size || size > table->capacity - offset) return umemShmNoRoom;
  uint64_t before = span_of(old), span = span_of(size);
  umemShmExtent *next = free_after(table, extent, offset + before);
  uint64_t room = before + (next ? get64(&next->size) : 0);
  if (span > room) return umemShmNoRoom;
  commit64(&extent->size, size);
  if (span == before) return umemShmOK;
  set64(&table->root->bytes, get64(&table->root->bytes) - before + span);
  if (next) absorb(table, next);
  if (room > span &&
      !add_free(table, number_of(table, extent), get32(&extent->after), offset + span, room - span))
    return damage(table);
  return umemShmOK;
}

umemShmResult umemShmTable_find(umemShmTable *table, uint64_t offset, uint64_t *size,
                                umemShmOwner *owner) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  umemShmExtent *extent = live_at(table, offset);
  if (!extent) return umemShmNoBlock;
  *size = get64(&extent->size);
  *owner = (umemShmOwner){get64(&extent->process), get32(&extent->space)};
  return umemShmOK;
}

/* An owner that is half written belongs to no known space, so no process takes it for dead. */
umemShmResult umemShmTable_own(umemShmTable *table, uint64_t offset, umemShmOwner owner) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  umemShmExtent *extent = live_at(table, offset);
  if (!extent) return umemShmNoBlock;
  commit(&extent->space, 0);
  commit64(&extent->process, owner.process);
  commit(&extent->space, owner.space);
  return umemShmOK;
}

umemShmResult umemShmTable_complete(umemShmTable *table, uint64_t offset) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  umemShmExtent *extent = live_at(table, offset);
  if (!extent) return umemShmNoBlock;
  commit(&extent->state, is_live);
  return umemShmOK;
}

bool umemShmTable_next(umemShmTable *table, uint32_t *number, umemShmEntry *entry) {
  while (*number < table->count) {
    umemShmExtent const *extent = &table->extents[(*number)++];
    uint32_t state = get32(&extent->state);
    if (state != is_live && state != is_incomplete) continue;
    *entry = (umemShmEntry){get64(&extent->offset),
                            get64(&extent->size),
                            {get64(&extent->process), get32(&extent->space)},
                            state == is_live};
    if (is_inside(table, entry->offset, entry->size)) return true;
  }
  return false;
}

umemShmResult umemShmTable_holder(umemShmTable *table, uint64_t offset, umemShmEntry *entry) {
  if (get64(&table->root->damaged)) return umemShmDamaged;
  for (uint32_t at = 0; umemShmTable_next(table, &at, entry);)
    if (offset - entry->offset < entry->size) return umemShmOK;
  return umemShmNoBlock;
}

/* ==== the layout, and who may use it ==== */

enum { granule = 64 << 10 /* bytes: a multiple of the pages of any machine */ };

_Static_assert(sizeof(umemShmHeader) <= umemSegmentHeader, "the header has a page");
_Static_assert(sizeof(umemShmExtent) == 64, "an extent is a line of the cache");

char const umemSegment_magic[16] = "umem segment\r\n";

/* ---- the layout ---- */

uint64_t umemSegment_page(uint32_t pages) {
  if (pages == umemSegment1G) return UINT64_C(1) << 30;
  return pages == umemSegment2M || pages == umemSegmentAdvised ? 2 << 20 : granule;
}

uint64_t umemSegment_tables(uint32_t blocks) {
  uint64_t extents = (uint64_t)umemShmTable_count(blocks) * sizeof(umemShmExtent);
  uint64_t heads = (uint64_t)umemShmTable_heads(blocks) * sizeof(uint32_t);
  return umemSegmentHeader + extents + heads;
}

uint64_t umemSegment_data(uint32_t blocks, uint32_t pages) {
  return umemSegment_round_up(umemSegment_tables(blocks), umemSegment_page(pages));
}

/* ---- trust ---- */

/* Without memory for the list no other group is one of the process. */
static bool is_own_group(gid_t group) {
  if (group == getegid()) return true;
  int count = getgroups(0, NULL);
  gid_t *groups = count > 0 ? malloc((size_t)count * sizeof *groups) : NULL;
  bool found = false;
  if (groups) count = getgroups(count, groups);
  for (int i = 0; groups && i < count && !found; i++) found = groups[i] == group;
  free(groups);
  return found;
}

/* Access lists need no look: if one lets somebody write, the bit of the group says so. A further
 * name of the file may be the work of another user. */
char const *umemSegment_distrust(struct stat const *st, umemTrust trust) {
  bool own = st->st_uid == geteuid();
  if (!S_ISREG(st->st_mode)) return "it is no file in memory";
  if (trust == umemTrustAll) return NULL;
  if (st->st_nlink > 1)
    return "it has a second name, which another user may have made (option trust)";
  if (trust == umemTrustGroup && !own && !is_own_group(st->st_gid))
    return "it belongs to a user who is not in a group of this one (option trust)";
  if (trust != umemTrustGroup && !own) return "it belongs to another user (option trust)";
  mode_t others = trust == umemTrustGroup ? S_IWOTH : S_IWGRP | S_IWOTH;
  return st->st_mode & others ? "other users may write it (option trust)" : NULL;
}

/* ---- checking ---- */

char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length) {
  memset(header, 0, sizeof *header);
  if (length < umemSegmentHeader) return "it is too short";
  ssize_t got = UMEM_AGAIN(pread(fd, header, sizeof *header, 0));
  if (got != (ssize_t)sizeof *header) return "its beginning cannot be read";
  if (memcmp(header->magic, umemSegment_magic, sizeof umemSegment_magic) != 0)
    return "it is no segment of umem";
  if (header->version != umemSegmentVersion)
    return "another version of umem has made it, with other tables";
  if (header->ready != 1) return "it is not complete";
  if (header->lock_size != sizeof(umemShmLock) || header->extent_size != sizeof(umemShmExtent))
    return "a program for another machine has made it";
  if (!header->blocks || header->blocks > umemSegmentMostBlocks || header->pages > umemSegment1G ||
      !header->capacity || header->capacity > UMEM_SEGMENT_MOST ||
      header->capacity % umemSegment_page(header->pages) != 0 ||
      header->total != umemSegment_data(header->blocks, header->pages) + header->capacity)
    return "the sizes in it are wrong";
  return header->total == length ? NULL : "it has not the length that it says";
}

/* The number in the segment is that of the handle, which only those know who had it. */
char const *umemSegment_check_handle(umemHandle const *handle, uint64_t const id[2], uint64_t data,
                                     uint64_t total) {
  if (handle->identity[2] != id[0] || handle->identity[3] != id[1])
    return "it is not there any more, and another segment has its name";
  if (handle->size != total) return "its size is not that of the segment";
  return handle->offset >= data ? NULL : "its bytes are those of the tables";
}
