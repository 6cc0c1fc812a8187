/* store_open.h - the beginning and the end of a store. */
#ifndef UMEM_STORE_OPEN_H
#define UMEM_STORE_OPEN_H

#include "stores/store_file.h"

/* Opens filename, or a scratch file for NULL, in mode as umem/file.h says; options NULL: the
 * defaults. mapped: the descriptor can be read in all modes. The file is not locked before the
 * start, and no byte of it changed before the commit. */
umemStore *umemStore_open(umemVirtual *ctx, char const *filename, char const *mode,
                          umemFileOptions const *options, bool mapped);

/* Opens a new file that takes the place of filename when it is committed. Until the commit the new
 * file has no name where the file system allows that (O_TMPFILE), so that it vanishes when the
 * process is killed; elsewhere it has a hidden one, ".umem-...". */
umemStore *umemStore_replace(umemVirtual *ctx, char const *filename,
                             umemFileOptions const *options);

/* Takes over fd. The caller owns it until the start. */
umemStore *umemStore_take_over(umemVirtual *ctx, int fd, umemFileOptions const *options,
                               bool mapped);

/* Locks the file against other writers and measures it. The context can be used from now on. */
bool umemStore_start(umemStore *store);

/* Closes the file and frees store; NULL is ignored. Removes a file that was created and is not
 * committed. Reports a failing close on the context. */
void umemStore_close(umemStore *store);

/* ==== files that replace others ==== */

/* Gives the new file a hidden name, writes its path to path, of size bytes, and releases the lock:
 * other processes of this user write to it, too. False with a status. */
bool umemReplace_show(umemStore *store, char *path, size_t size);

/* Makes the file durable, gives it the name and makes that durable. False with a status: the old
 * file is unchanged then, unless the status says that the new one is there. A second call is an
 * error. */
bool umemReplace_commit(umemStore *store);

#endif
