/* store_cached.c - see store_cached.h.
 *
 * cachestat (Linux 6.5) answers. Where it is missing or not allowed, preadv2 of a byte with RWF_NOWAIT does; newer
 * kernels begin to read ahead then, so that it comes second. On an overlay it comes first: cachestat asks for the pages
 * of the overlay's own file, which never has any. */
#include "stores/store_cached.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { cachestat_number = 451, page = 4096 };

/* struct cachestat_range and struct cachestat of linux/mman.h, which older systems do not have. */
typedef struct Range {
  uint64_t offset, length;
} Range;

typedef struct Pages {
  uint64_t cached, dirty, written, evicted, lately_evicted;
} Pages;

/* How the system answers; atomic. */
enum { asksByCachestat = 0, asksByRead, asksNobody };

/* Of both: 1: cached, 0: not, -1 with errno: no answer. */
static int ask_cachestat(umemStore const *store, uint64_t offset) {
  Range range = {offset, page};
  Pages pages = {0};
  if (syscall(cachestat_number, store->fd, &range, &pages, 0) != 0) return -1;
  return pages.cached != 0;
}

static int ask_read(umemStore const *store, uint64_t offset) {
  char byte;
  struct iovec piece = {&byte, 1};
  ssize_t n = preadv2(store->fd, &piece, 1, (off_t)offset, RWF_NOWAIT);
  return n >= 0 ? 1 : errno == EAGAIN ? 0 : -1;
}

int umemStore_way_to_ask(uint32_t magic) {
  uint32_t const overlay = 0x794c7630; /* OVERLAYFS_SUPER_MAGIC of linux/magic.h */
  return magic == overlay ? asksByRead : asksByCachestat;
}

bool umemStore_is_cached(umemStore *store, uint64_t offset) {
  for (int way; (way = __atomic_load_n(&store->asks, __ATOMIC_RELAXED)) != asksNobody;) {
    int answer = (way == asksByCachestat ? ask_cachestat : ask_read)(store, offset);
    if (answer >= 0) return answer;
    if (errno == EINTR) continue;
    __atomic_store_n(&store->asks, way + 1, __ATOMIC_RELAXED);
  }
  return true;
}
