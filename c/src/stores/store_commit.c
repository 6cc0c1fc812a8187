/* store_commit.c - the last step of construction.
 *
 * umem_open constructs a file first and then the adaptors over it, which may fail. So the file stays as it is
 * until all of them are constructed. Then one call empties it in mode w. That is the last call that can fail,
 * unless blocks were allocated before; their disk space has been tried by then. */
#include "stores/store_commit.h"
#include "base/disk.h"
#include "stores/store_blocks.h"
#include "stores/store_room.h"

#include <fcntl.h>

/* Reserves disk space for blocks up to `to` while the old bytes are there. Emptying the file frees it, and
 * hold_blocks reserves it again. */
static bool try_space(umemStore *store, uint64_t to) {
  if (!to || store->sparse) return true;
  if (!umemStore_may_fit(store, 0, to)) return false;
  int error = umem_change_space(store->fd, FALLOC_FL_KEEP_SIZE, 0, to);
  if (!error || umemStore_lacks(error)) return true;
  store->leftover = true;
  umemStore_drop_leftover(store);
  return umemStore_fail_space(store, error);
}

/* Reserves the space in the emptied file. If that fails after all, the file gets the length of the blocks
 * without it. */
static bool hold_blocks(umemStore *store, uint64_t from, uint64_t to) {
  umemAttempt held;
  umemAttempt_begin(&held);
  bool done = umemStore_reserve(store, from, to);
  umemAttempt_end(&held);
  if (done) return true;
  if (umemStore_resize(store, to) == 0)
    store->length = to;
  else
    umemAttempt_record(&held);
  return store->length == to;
}

static bool empty(umemStore *store, uint64_t from, uint64_t to) {
  if (!try_space(store, to)) return false;
  int error = umemStore_resize(store, 0);
  if (error) return umemStore_fail(store, umemIOError, error, "cannot empty");
  store->empties = false;
  return !to || hold_blocks(store, from, to);
}

static bool carry_out(umemStore *store) {
  uint64_t from, to;
  umemStore_span(store, &from, &to);
  bool done = true;
  if (store->empties)
    done = empty(store, from, to);
  else if (store->writable && to)
    done = umemStore_reserve(store, from, to);
  if (done) store->created = false;
  return done;
}

bool umemStore_commit(umemStore *store) {
  umemAttempt held;
  umemStore_begin(store, &held);
  bool done = !store->building || carry_out(store);
  if (done) __atomic_store_n(&store->building, false, __ATOMIC_RELEASE);
  umemStore_end(store, &held);
  return done;
}
