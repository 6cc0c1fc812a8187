/* pool_cache.c - the blocks that threads keep for themselves, and how they pass between threads.
 * See umem_pool.h.
 *
 * A thread allocates from, and frees to, a stack for each class. When that is empty or full it takes or
 * hands over a whole batch, at the cost of one lock; batches wait in the depot (J. Bonwick, J. Adams:
 * "Magazines and Vmem", USENIX 2001). What the depot has no room for goes back to the spans.
 *
 * A cache belongs to its thread, which frees it; the lane may end earlier, and then takes the blocks. */
#include "pool/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { depot_most = 16 };

/* ---- the caches of a thread ---- */

static umemPoolCache no_cache; /* has serial 0, which no lane has */
_Thread_local umemPoolCache *umem_pool_last_cache = &no_cache;
static _Thread_local umemPoolCache *caches_of_thread;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key; /* without one there are no caches */

/* ---- shares ---- */

static umemPoolCore *graves; /* cores of which nobody has a share; under the global lock */

/* The last share may be given up while locks are held, under which no lock may be destroyed. */
void umemPoolCore_drop(umemPoolCore *core) {
  if (__atomic_sub_fetch(&core->shares, 1, __ATOMIC_ACQ_REL)) return;
  umemLock_acquire_global();
  core->next_grave = graves;
  graves = core;
  umemLock_release_global();
}

void umemPoolCore_bury(void) {
  umemLock_acquire_global();
  umemPoolCore *core = graves;
  graves = NULL;
  umemLock_release_global();
  while (core) {
    umemPoolCore *next = core->next_grave;
    for (umemPoolLane *lane = core->lanes, *after; lane; lane = after) {
      after = lane->next;
      free(lane);
    }
    umemPageMap_fini(&core->map);
    umemPool_renew_waits(core);
    pthread_cond_destroy(&core->landed);
    pthread_cond_destroy(&core->no_guests);
    umemLock_destroy(&core->lock);
    free(core);
    core = next;
  }
}

static void free_slots(umemPoolCache *cache) {
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolSlot *slot = &cache->slots[i];
    free(slot->entries);
    slot->entries = NULL;
    slot->limit = 0;
    slot->served = 0;
    __atomic_store_n(&slot->count, 0, __ATOMIC_RELAXED); /* its thread may be looking at it */
  }
}

/* Makes the blocks that cache keeps free in their spans. Under the lock. */
static void drain_cache(umemPoolCache *cache) {
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolSlot *slot = &cache->slots[i];
    umemPool_put(cache->lane, slot->entries, slot->count);
    __atomic_store_n(&slot->count, 0, __ATOMIC_RELAXED);
  }
}

static bool is_mine(umemPoolCache const *cache) {
  umemPoolCache const *mine = caches_of_thread;
  while (mine && mine != cache) mine = mine->next;
  return mine;
}

/* Takes what is in the cache, and the cache out of the lane's list. Under the lock. In a child of fork
 * what another thread was doing to its cache is not finished, and never will be. */
static void leave_lane(umemPoolCache *cache) {
  if (cache->lineage == umem_fork_count() || is_mine(cache)) drain_cache(cache);
  for (unsigned i = 0; i < umemPoolClasses; i++) cache->core->served += cache->slots[i].served;
  if (cache->before)
    cache->before->after = cache->after;
  else
    cache->lane->caches = cache->after;
  if (cache->after) cache->after->before = cache->before;
  free_slots(cache);
}

/* Ends a cache of the calling thread, which is in its list no more. */
static void end_cache(umemPoolCache *cache) {
  umemPoolCore *core = cache->core;
  umemLock_acquire(&core->lock);
  if (!cache->ended) {
    drain_cache(cache);
    leave_lane(cache);
  }
  umemLock_release(&core->lock);
  free(cache);
  umemPoolCore_drop(core);
}

/* pthread calls it at the end of each thread that has had a cache. */
static void end_thread(void *unused) {
  (void)unused;
  umem_pool_last_cache = &no_cache;
  while (caches_of_thread) {
    umemPoolCache *cache = caches_of_thread;
    caches_of_thread = cache->next;
    end_cache(cache);
  }
}

static void make_key(void) { has_key = pthread_key_create(&key, end_thread) == 0; }

/* A library that is closed must leave no destructor behind. */
__attribute__((destructor)) static void delete_key(void) {
  if (has_key) pthread_key_delete(key);
  umemPoolCore_bury();
}

/* Frees the caches whose lanes have ended before, and have taken all that was in them. Takes no lock but
 * the global one: other pools' may be held, whose upstream this thread is using. */
static void sweep(void) {
  for (umemPoolCache **link = &caches_of_thread; *link;) {
    umemPoolCache *cache = *link;
    if (__atomic_load_n(&cache->ended, __ATOMIC_ACQUIRE)) {
      *link = cache->next;
      if (umem_pool_last_cache == cache) umem_pool_last_cache = &no_cache;
      umemPoolCore_drop(cache->core);
      free(cache);
    } else {
      link = &cache->next;
    }
  }
}

static umemPoolCache *new_cache(umemPoolLane *lane) {
  umemPoolCore *core = lane->core;
  pthread_once(&key_once, make_key);
  if (!has_key || pthread_setspecific(key, &key) != 0) return NULL;
  sweep();
  umemPoolCache *cache = calloc(1, sizeof *cache);
  if (!cache) return NULL;
  cache->serial = lane->serial;
  cache->core = core;
  cache->lane = lane;
  cache->lineage = umem_fork_count();
  __atomic_add_fetch(&core->shares, 1, __ATOMIC_RELAXED);
  cache->next = caches_of_thread;
  caches_of_thread = cache;
  umemLock_acquire(&core->lock);
  cache->after = lane->caches;
  if (lane->caches) lane->caches->before = cache;
  lane->caches = cache;
  umemLock_release(&core->lock);
  return cache;
}

/* The calling thread's cache of the lane; NULL if it has none. */
static umemPoolCache *known_cache(umemPoolLane const *lane) {
  umemPoolCache *cache = caches_of_thread;
  while (cache && cache->serial != lane->serial) cache = cache->next;
  return cache;
}

umemPoolCache *umemPoolCache_mine(umemPoolLane *lane) {
  if (umem_pool_last_cache->serial == lane->serial) return umem_pool_last_cache;
  umemPoolCache *cache = known_cache(lane);
  if (!cache) cache = new_cache(lane);
  if (cache) umem_pool_last_cache = cache;
  return cache;
}

void umemPool_end_caches(umemPoolLane *lane) {
  while (lane->caches) {
    umemPoolCache *cache = lane->caches;
    leave_lane(cache);
    __atomic_store_n(&cache->ended, true, __ATOMIC_RELEASE); /* its thread's from here on */
  }
  sweep();
}

/* ---- slots ---- */

bool umemPoolCache_prepare(umemPoolCore *core, umemPoolSlot *slot, unsigned class) {
  if (slot->entries) return true;
  uint32_t limit = 2 * core->shapes[class].batch;
  slot->entries = malloc(limit * sizeof *slot->entries);
  if (slot->entries) slot->limit = limit;
  return slot->entries != NULL;
}

/* ---- the depot ---- */

bool umemPool_fetch(umemPoolLane *lane, unsigned class, umemPoolSlot *slot) {
  umemPoolCore *core = lane->core;
  umemPoolShelf *self = &lane->shelves[class];
  umemPoolBatch *batch = self->depot;
  if (!batch) return false;
  self->depot = batch->next;
  self->depot_count--;
  memcpy(slot->entries, batch->entries, core->shapes[class].batch * sizeof *slot->entries);
  __atomic_store_n(&slot->count, core->shapes[class].batch, __ATOMIC_RELAXED);
  batch->next = core->empty_batches;
  core->empty_batches = batch;
  return true;
}

/* An empty batch, where the depot has room for one more; or NULL. */
static umemPoolBatch *room_in_depot(umemPoolLane *lane, unsigned class) {
  umemPoolCore *core = lane->core;
  if (lane->shelves[class].depot_count == depot_most) return NULL;
  umemPoolBatch *batch = core->empty_batches;
  if (!batch) return malloc(sizeof *batch);
  core->empty_batches = batch->next;
  return batch;
}

/* The batch that has been in the slot for longest goes. */
void umemPool_hand_over(umemPoolLane *lane, unsigned class, umemPoolSlot *slot) {
  uint32_t count = lane->core->shapes[class].batch;
  umemPoolBatch *batch = room_in_depot(lane, class);
  if (batch) {
    memcpy(batch->entries, slot->entries, count * sizeof *slot->entries);
    batch->next = lane->shelves[class].depot;
    lane->shelves[class].depot = batch;
    lane->shelves[class].depot_count++;
  } else {
    umemPool_put(lane, slot->entries, count);
  }
  memmove(slot->entries, slot->entries + count, (slot->count - count) * sizeof *slot->entries);
  __atomic_store_n(&slot->count, slot->count - count, __ATOMIC_RELAXED);
}

static void drain_depot(umemPoolLane *lane) {
  umemPoolCore *core = lane->core;
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    umemPoolShelf *self = &lane->shelves[i];
    for (umemPoolBatch *batch; (batch = self->depot);) {
      self->depot = batch->next;
      umemPool_put(lane, batch->entries, core->shapes[i].batch);
      batch->next = core->empty_batches;
      core->empty_batches = batch;
    }
    self->depot_count = 0;
  }
}

void umemPool_drain(umemPoolLane *lane) {
  umemPoolCache *cache = known_cache(lane);
  if (cache) drain_cache(cache);
  drain_depot(lane);
  umemPool_remove_whole(lane);
}
