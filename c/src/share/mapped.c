/* mapped.c - maps files once for each process, and counts who uses a mapping. */
#include "share/mapped.h"

#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mappings begin at a multiple of this, where there is space enough, so that blocks can be aligned
 * as far. */
static size_t const wanted_alignment = 1 << 30;

static umemMapped *all; /* under the global lock */

/* ---- mapping ---- */

static char *map_at(int fd, size_t size, size_t alignment, bool writable) {
  if (size > SIZE_MAX - alignment) {
    errno = ENOMEM;
    return NULL;
  }
  char *start =
      mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return NULL;
  size_t below = -(uintptr_t)start & (alignment - 1);
  char *base = start + below;
  int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  if (mmap(base, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    int error = errno;
    munmap(start, size + alignment);
    errno = error;
    return NULL;
  }
  /* The rest on either side is only addresses: if it cannot be unmapped, nothing is lost. The
   * mapping itself ends between pages. */
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t end = (size + page - 1) & ~(page - 1);
  if (below) munmap(start, below);
  if (alignment - below > end - size) munmap(base + end, alignment - below - (end - size));
  return base;
}

/* map_at first reserves addresses. Linux before 6.12 gives them up before it refuses to map a file
 * there, and another thread may have them when map_at unmaps them. So a file that cannot be mapped
 * is refused before: part of it is mapped anywhere. As long as it is, no process can seal the file
 * against writing. The part is whole pages, also huge ones. */
static bool map(umemMapped *mapped, size_t alignment) {
  size_t wanted = alignment > wanted_alignment ? alignment : wanted_alignment;
  size_t part = mapped->size < wanted_alignment ? mapped->size : wanted_alignment;
  int protection = PROT_READ | (mapped->writable ? PROT_WRITE : 0);
  void *anywhere = mmap(NULL, part, protection, MAP_SHARED, mapped->fd, 0);
  if (anywhere == MAP_FAILED) return false;
  for (;; wanted = alignment) {
    mapped->alignment = wanted;
    mapped->base = map_at(mapped->fd, mapped->size, wanted, mapped->writable);
    if (mapped->base || wanted == alignment) break;
  }
  int error = errno;
  munmap(anywhere, part);
  errno = error;
  return mapped->base;
}

/* ---- the list ---- */

static size_t *uses(umemMapped *mapped, umemMappedUse use) {
  return use == umemMappedByHandle ? &mapped->attached : &mapped->users;
}

static umemMapped *find(uint64_t device, uint64_t inode, size_t size, bool writable) {
  for (umemMapped *mapped = all; mapped; mapped = mapped->next)
    if (mapped->device == device && mapped->inode == inode && mapped->size >= size &&
        (mapped->writable || !writable))
      return mapped;
  return NULL;
}

umemMapped *umemMapped_find(uint64_t device, uint64_t inode, size_t size, bool writable,
                            umemMappedUse use) {
  umemLock_acquire_global();
  umemMapped *mapped = find(device, inode, size, writable);
  if (mapped) ++*uses(mapped, use);
  umemLock_release_global();
  return mapped;
}

static void end(umemMapped *mapped) {
  if (mapped->base) munmap(mapped->base, mapped->size);
  close(mapped->fd);
  free(mapped);
}

umemMapped *umemMapped_open(int fd, size_t size, size_t alignment, bool writable,
                            umemMappedUse use) {
  struct stat st;
  umemMapped *mine = calloc(1, sizeof *mine);
  if (!mine || fstat(fd, &st) != 0) {
    int error = mine ? errno : ENOMEM;
    close(fd);
    free(mine);
    errno = error;
    return NULL;
  }
  *mine = (umemMapped){
      .device = st.st_dev, .inode = st.st_ino, .fd = fd, .writable = writable, .size = size};
  umemLock_acquire_global();
  umemMapped *mapped = find(mine->device, mine->inode, size, writable);
  if (!mapped && map(mine, alignment)) {
    mapped = mine;
    mapped->next = all;
    all = mapped;
  }
  int error = errno;
  if (mapped) ++*uses(mapped, use);
  umemLock_release_global();
  if (mapped != mine) end(mine);
  errno = error;
  return mapped;
}

/* Takes one use away; the mapping, out of the list, if it was the last. */
static umemMapped *leave(umemMapped *mapped, umemMappedUse use) {
  --*uses(mapped, use);
  if (mapped->users || mapped->attached) return NULL;
  umemMapped **link = &all;
  while (*link != mapped) link = &(*link)->next;
  *link = mapped->next;
  return mapped;
}

void umemMapped_close(umemMapped *mapped, umemMappedUse use) {
  umemLock_acquire_global();
  umemMapped *last = leave(mapped, use);
  umemLock_release_global();
  if (last) end(last);
}

bool umemMapped_detach(uintptr_t adr) {
  umemMapped *mapped, *last = NULL;
  umemLock_acquire_global();
  for (mapped = all; mapped; mapped = mapped->next)
    if (mapped->attached && adr - (uintptr_t)mapped->base < mapped->size) break;
  if (mapped) last = leave(mapped, umemMappedByHandle);
  umemLock_release_global();
  if (last) end(last);
  return mapped;
}
