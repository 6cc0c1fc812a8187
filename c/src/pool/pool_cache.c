/* pool_cache.c - caches: the small blocks that each thread keeps, and how they pass between
 * threads.
 *
 * A thread allocates from a stack of blocks of each class, and frees to it. When the stack is empty
 * or full the thread takes or hands over a whole batch, at the cost of one lock. Full batches wait
 * in the depot (J. Bonwick, J. Adams: "Magazines and Vmem", USENIX 2001). When the depot is full,
 * blocks go back to the spans.
 *
 * A cache belongs to its thread, which frees it. Its list may end earlier, and takes the blocks
 * then. When the library is closed, it frees the caches of ended lists, because threads that live
 * on cannot.
 *
 * Other threads take the blocks of a cache when memory is short. The thread that has the cache pays
 * for that with two stores for each call, and with no fence: before each change it says that it is
 * busy, and then looks whether the cache is closed. Who wants the blocks closes the cache, fences
 * all threads at once (base/thread.h), and waits until the thread is not busy. Where the system has
 * no such fence, the blocks stay. */
#include "pool/pool_cache.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { depot_most = 16 };

/* ---- the caches of a thread ---- */

static umemPoolCache no_cache; /* has key 0, which no list has */
_Thread_local umemPoolCache *umem_pool_last_cache = &no_cache;

/* By their serial: a thread may use a thousand pools in turn. */
enum { buckets = 64 };
static _Thread_local umemPoolCache *caches_of_thread[buckets];

static umemPoolCache **bucket_of(uint64_t serial) { return &caches_of_thread[serial % buckets]; }

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key; /* without one there are no caches */

static umemPoolCache *newest; /* of all threads; under the global lock */

static void add_to_all(umemPoolCache *cache) {
  UMEM_LOCKED(&umem_global_lock);
  UMEM_LIST_ADD(newest, cache);
}

/* Frees a cache that is on no list, and among the caches of no thread that still runs. */
static void free_cache(umemPoolCache *cache) {
  umemLock_acquire(&umem_global_lock);
  UMEM_LIST_REMOVE(newest, cache);
  umemLock_release(&umem_global_lock);
  umemPoolCore_release(cache->core);
  free(cache);
}

static void free_slots(umemPoolCache *cache) {
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolSlot *slot = &cache->slots[i];
    free(slot->entries);
    slot->entries = NULL;
    slot->limit = 0;
    __atomic_store_n(&slot->state, 0, __ATOMIC_RELAXED); /* its thread may be reading it */
  }
}

/* Makes the blocks that cache keeps free in their spans. Under the lock. */
static void drain_cache(umemPoolCache *cache) {
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolSlot *slot = &cache->slots[i];
    umemPoolSpan_put(cache->list, slot->entries, umemPoolSlot_count(slot));
    umemPoolSlot_set_count(slot, 0);
  }
}

/* Whether the calling thread owns cache. */
static bool is_own_cache(umemPoolCache const *cache) {
  umemPoolCache const *mine = *bucket_of(cache->serial);
  while (mine && mine != cache) mine = mine->next;
  return mine;
}

/* Drains the cache and takes it off the list. Under the lock. In a child of fork the caches of the
 * parent's other threads may be half changed: these stay as they are. */
static void leave_list(umemPoolCache *cache) {
  if (cache->lineage == umem_fork_count() || is_own_cache(cache)) drain_cache(cache);
  for (unsigned i = 0; i < umemPoolClasses; i++)
    cache->core->served += umemPoolSlot_served(&cache->slots[i]);
  if (cache->before)
    cache->before->after = cache->after;
  else
    cache->list->caches = cache->after;
  if (cache->after) cache->after->before = cache->before;
  free_slots(cache);
  __atomic_store_n(&cache->key, 0, __ATOMIC_RELAXED); /* the page map may end now */
}

/* Ends a cache of the calling thread, which is not among its caches any more. */
static void end_cache(umemPoolCache *cache) {
  umemPoolCore *core = cache->core;
  umemLock_acquire(&core->lock);
  if (!cache->ended) {
    drain_cache(cache);
    leave_list(cache);
  }
  umemLock_release(&core->lock);
  free_cache(cache);
}

/* pthread calls it at the end of each thread that has had a cache. */
static void end_thread(void *unused) {
  (void)unused;
  umem_pool_last_cache = &no_cache;
  for (unsigned i = 0; i < buckets; i++)
    while (caches_of_thread[i]) {
      umemPoolCache *cache = caches_of_thread[i];
      caches_of_thread[i] = cache->next;
      end_cache(cache);
    }
}

/* In a child of fork: the thread that has forked is the one that there is, and its caches are
 * whole. It comes after the handler of base/thread.c, which counts the forks and was registered
 * first. */
static void keep_own_caches(void) {
  for (unsigned i = 0; i < buckets; i++)
    for (umemPoolCache *cache = caches_of_thread[i]; cache; cache = cache->next)
      cache->lineage = umem_fork_count();
}

/* exit calls it before the destructors of libraries, dlclose after them. */
static bool exits;
static void note_exit(void) { exits = true; }

/* Without memory for the handler of forks, a child cannot reach the cache of the thread that has
 * forked. Without memory for that of exit there is no key: the destructor must know whether threads
 * go on. */
static void make_key(void) {
  has_key = atexit(note_exit) == 0 && pthread_key_create(&key, end_thread) == 0;
  pthread_atfork(NULL, NULL, keep_own_caches);
}

/* A library that is closed must leave no destructor and no cache behind: its threads call it no
 * more. At exit threads may go on until the process ends. */
__attribute__((destructor)) static void delete_key(void) {
  if (has_key) pthread_key_delete(key);
  for (umemPoolCache *cache = exits ? NULL : newest, *older; cache; cache = older) {
    older = cache->older;
    if (cache->ended) free_cache(cache);
  }
  umemPoolCore_free_released();
}

static void sweep_bucket(umemPoolCache **link) {
  while (*link) {
    umemPoolCache *cache = *link;
    if (__atomic_load_n(&cache->ended, __ATOMIC_ACQUIRE)) {
      *link = cache->next;
      if (umem_pool_last_cache == cache) umem_pool_last_cache = &no_cache;
      free_cache(cache);
    } else {
      link = &cache->next;
    }
  }
}

/* Frees the caches whose lists have ended, and have drained them. Takes no lock but the global one:
 * this thread may hold the locks of other pools, whose upstream it is using. */
static void free_ended_caches(void) {
  for (unsigned i = 0; i < buckets; i++) sweep_bucket(&caches_of_thread[i]);
}

/* All zero but what slots know of their classes. NULL without memory. */
static umemPoolCache *make_cache(umemPoolCore const *core) {
  umemPoolCache *cache = aligned_alloc(64, sizeof *cache);
  if (!cache) return NULL;
  memset(cache, 0, sizeof *cache);
  for (int i = 0; i < umemPoolKnownCount; i++) cache->known[i].region = UINT64_MAX;
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolShape const *shape = &core->shapes[i];
    umemPoolSlot *slot = &cache->slots[i];
    slot->magic = shape->magic;
    slot->shift = shape->shift;
    slot->size = shape->size;
    slot->blocks = shape->count;
  }
  return cache;
}

static umemPoolCache *new_cache(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  pthread_once(&key_once, make_key);
  if (!has_key || pthread_setspecific(key, &key) != 0) return NULL;
  free_ended_caches();
  umemPoolCache *cache = make_cache(core);
  if (!cache) return NULL;
  cache->serial = cache->key = list->serial;
  cache->core = core;
  cache->list = list;
  cache->lineage = umem_fork_count();
  __atomic_add_fetch(&core->references, 1, __ATOMIC_RELAXED);
  add_to_all(cache);
  umemPoolCache **bucket = bucket_of(cache->serial);
  cache->next = *bucket;
  *bucket = cache;
  UMEM_LOCKED(&core->lock);
  cache->after = list->caches;
  if (list->caches) list->caches->before = cache;
  list->caches = cache;
  return cache;
}

/* The calling thread's cache of the list; NULL if it has none. */
static umemPoolCache *known_cache(umemPoolFreeList const *list) {
  umemPoolCache *cache = *bucket_of(list->serial);
  while (cache && cache->serial != list->serial) cache = cache->next;
  return cache;
}

umemPoolCache *umemPoolCache_mine(umemPoolFreeList *list) {
  if (umem_pool_last_cache->serial == list->serial) return umem_pool_last_cache;
  umemPoolCache *cache = known_cache(list);
  if (!cache) cache = new_cache(list);
  if (cache) umem_pool_last_cache = cache;
  return cache;
}

void umemPoolCache_end_all(umemPoolFreeList *list) {
  while (list->caches) {
    umemPoolCache *cache = list->caches;
    leave_list(cache);
    __atomic_store_n(&cache->ended, true,
                     __ATOMIC_RELEASE); /* from here on the thread owns it alone */
  }
  free_ended_caches();
}

/* ---- slots ---- */

bool umemPoolCache_prepare(umemPoolCore *core, umemPoolSlot *slot, unsigned class) {
  if (slot->entries) return true;
  uint32_t limit = 2 * core->shapes[class].batch;
  slot->entries = malloc(limit * sizeof *slot->entries);
  if (slot->entries) slot->limit = limit;
  return slot->entries != NULL;
}

/* The thread takes and hands over batches in turns: twice as many entries spare it most of that.
 * Without memory the slot remains as it is. */
static void widen_slot(umemPoolSlot *slot, uint32_t batch) {
  uint32_t limit = 4 * batch;
  if (slot->limit >= limit) return;
  umemPoolEntry *entries = realloc(slot->entries, limit * sizeof *entries);
  if (!entries) return;
  slot->entries = entries;
  slot->limit = limit;
}

/* ---- the depot ---- */

static umemPoolBatch *unlink_batch(umemPoolFreeClass *self, umemPoolBatch **link) {
  umemPoolBatch *batch = *link;
  if (!batch) return NULL;
  *link = batch->next;
  self->depot_count--;
  return batch;
}

static umemPoolBatch *take_batch(umemPoolFreeClass *self) {
  return unlink_batch(self, &self->depot);
}

/* One that slot has handed over; NULL when others have them all. */
static umemPoolBatch *take_back(umemPoolFreeClass *self, umemPoolSlot *slot) {
  umemPoolBatch **link = &self->depot;
  while (*link && (*link)->from != slot) link = &(*link)->next;
  slot->given = *link ? slot->given - 1 : 0;
  return unlink_batch(self, link);
}

static void put_empty_batch(umemPoolCore *core, umemPoolBatch *batch) {
  batch->next = core->empty_batches;
  core->empty_batches = batch;
}

/* Best one of its own: the bytes of its blocks are in lines that no other thread changes. One of
 * others where the depot has many, because they free what this thread allocates, or where no span
 * has free blocks. */
bool umemPoolCache_fetch(umemPoolFreeList *list, unsigned class, umemPoolSlot *slot) {
  uint32_t count = list->core->shapes[class].batch;
  umemPoolFreeClass *self = &list->classes[class];
  umemPoolBatch *batch = NULL;
  if (slot->given) {
    widen_slot(slot, count);
    batch = take_back(self, slot);
  }
  if (!batch && (self->depot_count >= depot_most / 2 || !self->spans)) batch = take_batch(self);
  if (!batch) return false;
  memcpy(slot->entries, batch->entries, count * sizeof *slot->entries);
  umemPoolSlot_set_count(slot, count);
  put_empty_batch(list->core, batch);
  return true;
}

/* An empty batch, where the depot has room for one more; or NULL. */
static umemPoolBatch *room_in_depot(umemPoolFreeList *list, unsigned class) {
  umemPoolCore *core = list->core;
  if (list->classes[class].depot_count == depot_most) return NULL;
  umemPoolBatch *batch = core->empty_batches;
  if (!batch) return malloc(sizeof *batch);
  core->empty_batches = batch->next;
  return batch;
}

/* The batch that has been in the slot longest goes. */
void umemPoolCache_hand_over(umemPoolFreeList *list, unsigned class, umemPoolSlot *slot) {
  uint32_t count = list->core->shapes[class].batch;
  umemPoolBatch *batch = room_in_depot(list, class);
  if (batch) {
    memcpy(batch->entries, slot->entries, count * sizeof *slot->entries);
    batch->from = slot;
    slot->given++;
    batch->next = list->classes[class].depot;
    list->classes[class].depot = batch;
    list->classes[class].depot_count++;
  } else {
    umemPoolSpan_put(list, slot->entries, count);
  }
  uint32_t kept = umemPoolSlot_count(slot) - count;
  memmove(slot->entries, slot->entries + count, kept * sizeof *slot->entries);
  umemPoolSlot_set_count(slot, kept);
}

static void drain_depot(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolBatch *batch; (batch = take_batch(&list->classes[i]));) {
      umemPoolSpan_put(list, batch->entries, core->shapes[i].batch);
      put_empty_batch(core, batch);
    }
}

void umemPoolCache_drain(umemPoolFreeList *list) {
  umemPoolCache *cache = known_cache(list);
  if (cache) drain_cache(cache);
  drain_depot(list);
  umemPoolSpan_remove_whole(list);
}

/* ---- caches of other threads ---- */

/* Whether another thread of this process has cache, and blocks in it. */
static bool is_of_interest(umemPoolCache const *cache) {
  if (cache->lineage != umem_fork_count() || is_own_cache(cache)) return false;
  uint32_t count = 0;
  for (unsigned i = 0; i < umemPoolClasses; i++) count += umemPoolSlot_count(&cache->slots[i]);
  return count;
}

/* Waits until the thread does not change cache any more, which takes it some nanoseconds, unless
 * the system has taken the processor from it. */
static bool is_not_busy(umemPoolCache const *cache) {
  enum { spins = 1000, most_tries = spins + 1000 };
  for (int tries = 0; tries < most_tries; tries++) {
    if (!__atomic_load_n(&cache->busy, __ATOMIC_ACQUIRE)) return true;
    if (tries >= spins) sched_yield();
  }
  return false;
}

/* Closes the caches that other threads have of the list. From then on a thread changes its cache
 * only under the lock, unless it is changing it just now. Whether there is one. */
static bool close_all_of(umemPoolFreeList *list) {
  bool closed = false;
  for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
    if (is_of_interest(cache)) {
      __atomic_store_n(&cache->key, 0, __ATOMIC_RELAXED);
      closed = true;
    }
  return closed;
}

static void reopen_all_of(umemPoolFreeList *list, bool fenced) {
  for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
    if (!__atomic_load_n(&cache->key, __ATOMIC_RELAXED)) {
      if (fenced && is_not_busy(cache)) drain_cache(cache);
      __atomic_store_n(&cache->key, cache->serial, __ATOMIC_RELEASE);
    }
}

void umemPoolCache_drain_threads(umemPoolCore *core, umemPoolFreeList *list) {
  umemPoolFreeList *first = list ? list : core->lists, *end = list ? list->next : NULL;
  bool closed = false;
  for (list = first; list != end; list = list->next)
    if (close_all_of(list)) closed = true;
  bool fenced = closed && umem_fence_threads();
  for (list = first; closed && list != end; list = list->next) reopen_all_of(list, fenced);
}

/* ---- the end ---- */

static void free_batches(umemPoolBatch **first) {
  while (*first) {
    umemPoolBatch *batch = *first;
    *first = batch->next;
    free(batch);
  }
}

void umemPoolCache_free_batches(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    for (unsigned i = 0; i < umemPoolClasses; i++) free_batches(&list->classes[i].depot);
  free_batches(&core->empty_batches);
}
