/* store_commit.h - the last step of construction. */
#ifndef UMEM_STORE_COMMIT_H
#define UMEM_STORE_COMMIT_H

#include "stores/store.h"

/* The last step of construction, of a context alone or of all contexts over it. Until then blocks are
 * placed, and the file stays as it is; now it is emptied where the mode says so, and made to hold the
 * blocks. When this fails the file has its old bytes. Does nothing later. */
bool umemStore_commit(umemStore *store);

/* umemStore_commit for calls that need the file before all layers are there. */
static inline bool umemStore_settle(umemStore *store) {
  return __builtin_expect(!__atomic_load_n(&store->building, __ATOMIC_ACQUIRE), 1) ||
         umemStore_commit(store);
}

#endif
