/* store_kind.h - refuses what is no regular file of a storage. */
#ifndef UMEM_STORE_KIND_H
#define UMEM_STORE_KIND_H

#include "stores/store.h"

#include <sys/stat.h>

/* Whether mode, as of fstat, is that of a regular file; else an umemIOError. */
bool umemStore_check_mode(umemStore const *store, mode_t mode);

/* Records that another user has put the file, or a link to it, into a folder of all users. Returns false. */
bool umemStore_fail_planted(umemStore const *store);

/* Whether the open file is a regular file of a file system that stores files; else an umemIOError. */
bool umemStore_check_kind(umemStore *store);

/* Whether path, or where it does not exist the folder that it would be created in, is on such a file
 * system; else an umemIOError. Opens nothing. What cannot be examined passes: opening it says why. */
bool umemStore_check_place(umemStore *store, char const *path);

#endif
