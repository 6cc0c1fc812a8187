/* store_open.h - the beginning and the end of a store. */
#ifndef UMEM_STORE_OPEN_H
#define UMEM_STORE_OPEN_H

#include "stores/store.h"

/* Opens filename, or a scratch file for NULL, in mode as umem/file.h says; options NULL: the defaults.
 * mapped: the descriptor can be read in all modes. The file is not locked before the start, and no byte
 * of it changed before the commit. */
umemStore *umemStore_open(umemVirtual *ctx, char const *filename, char const *mode,
                          umemFileOptions const *options, bool mapped);

/* Opens a new file that takes the place of filename when it is committed: store_replace.h. */
umemStore *umemStore_replace(umemVirtual *ctx, char const *filename,
                             umemFileOptions const *options);

/* Takes over fd. It stays the caller's until the start. */
umemStore *umemStore_take_over(umemVirtual *ctx, int fd, umemFileOptions const *options,
                               bool mapped);

/* Locks the file against other writers and measures it. The context can be used from now on. */
bool umemStore_start(umemStore *store);

/* Closes the file and frees store; NULL is ignored. Removes a file that was created and is not
 * committed. Reports a failing close on the context. */
void umemStore_close(umemStore *store);

#endif
