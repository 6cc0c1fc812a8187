/* store_window.h - pointers to bytes of the file. */
#ifndef UMEM_STORE_WINDOW_H
#define UMEM_STORE_WINDOW_H

#include "stores/store.h"

/* See the method window in umem/virtual.h. */
bool umemStore_window(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                      umemWindow *window);

/* Whether the bytes are in the file, and inside one live block if they are to be written. False too before the
 * commit. Records nothing. */
bool umemStore_may_touch(umemStore *store, uint64_t offset, size_t size, umemCapability access);

/* Unmaps what is kept for the next window, if no window is open. */
void umemStore_drop_window(umemStore *store);

#endif
