/* store_window.h - pointers to bytes of the file. */
#ifndef UMEM_STORE_WINDOW_H
#define UMEM_STORE_WINDOW_H

#include "stores/store.h"

/* See the method window in umem/virtual.h. */
bool umemStore_window(umemStore *store, uint64_t offset, size_t size, umemCapability access,
                      umemWindow *window);

/* Unmaps what is kept for the next window, if no window is open. */
void umemStore_drop_window(umemStore *store);

#endif
