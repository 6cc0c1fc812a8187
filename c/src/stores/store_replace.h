/* store_replace.h - a new file that takes the name of another one when it is complete.
 *
 * Until the commit the new file has no name where the file system allows that (O_TMPFILE), so that
 * nothing stays when the process is killed; elsewhere it has a hidden one, ".umem-...". */
#ifndef UMEM_STORE_REPLACE_H
#define UMEM_STORE_REPLACE_H

#include "stores/store.h"

/* Opens the new file, for reading and writing, as store->fd, and sets store->replace. What the store's
 * path leads to is looked at once: the complete file has the permissions, and where that is permitted the
 * owner, that the old one has now; until then nobody else can open it. False with a status when the name cannot be replaced. */
bool umemReplace_begin(umemStore *store);

/* Gives the new file a hidden name, writes its path to path, of size bytes, and releases the lock: other processes of
 * this user write to it, too. False with a status. */
bool umemReplace_show(umemStore *store, char *path, size_t size);

/* Makes the file durable, gives it the name and makes that durable. False with a status: the old file is unchanged then,
 * unless the status says that the new one is there. A second call is an error. */
bool umemReplace_commit(umemStore *store);

/* Removes what was not committed and frees store->replace; NULL is ignored. */
void umemReplace_end(umemStore *store);

#endif
