/* store_share.c - see store_share.h. */
#include "stores/store_share.h"
#include "core/status.h"
#include "stores/store_blocks.h"
#include "stores/store_commit.h"

#include <inttypes.h>
#include <sys/stat.h>

bool umemStore_describe(umemStore *store, uint64_t offset, size_t nbytes, umemHandle *handle,
                        int *fd) {
  struct stat st;
  if (!umemStore_settle(store)) return false;
  if (!store->readable)
    return UMEM_FAIL(store->ctx, umemNotSupportedError,
                     "%s is open for writing only, so nobody can map it", store->label);
  if (fstat(store->fd, &st) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot examine");
  uint64_t length = (uint64_t)st.st_size;
  if (offset > length || nbytes > length - offset)
    return UMEM_FAIL(store->ctx, umemIndexError,
                     "%zu bytes at %" PRIu64 " are past the end of %s (%" PRIu64 " bytes)", nbytes,
                     offset, store->label, length);
  if (!umemStore_is_whole(store, "share", offset, nbytes)) return false;
  handle->kind = umemHandleFile;
  handle->offset = offset;
  handle->size = offset + nbytes;
  handle->identity[0] = st.st_dev;
  handle->identity[1] = st.st_ino;
  handle->flags = store->writable ? 0 : UMEM_HANDLE_READ_ONLY;
  *fd = store->fd;
  return true;
}

bool umemStore_has(umemStore *store, umemHandle const *handle) {
  struct stat st;
  return handle->kind == umemHandleFile && fstat(store->fd, &st) == 0 &&
         handle->identity[0] == st.st_dev && handle->identity[1] == st.st_ino &&
         handle->size <= (uint64_t)st.st_size &&
         (store->writable || handle->flags & UMEM_HANDLE_READ_ONLY);
}
