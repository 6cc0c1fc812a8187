/* process.c - maps files once for each process, counts who uses a mapping, and finds out which
 * process owns a block, and whether it has ended. */
#include "share/process.h"
#include "base/files.h"
#include "base/system.h"
#include "core/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ==== mappings ==== */

/* Mappings begin at a multiple of this, where there is space enough, so that blocks can be aligned
 * as far. */
static size_t const wanted_alignment = 1 << 30;

static umemMapped *all; /* under the global lock */

/* ---- mapping ---- */

static bool map(umemMapped *mapped, size_t alignment) {
  size_t wanted = alignment > wanted_alignment ? alignment : wanted_alignment;
  for (;; wanted = alignment) {
    mapped->alignment = wanted;
    mapped->base = umem_map_aligned(mapped->fd, mapped->size, wanted, mapped->writable, 0);
    if (mapped->base || wanted == alignment) return mapped->base;
  }
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
  UMEM_LOCKED(&umem_global_lock);
  umemMapped *mapped = find(device, inode, size, writable);
  if (mapped) ++*uses(mapped, use);
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
  umemLock_acquire(&umem_global_lock);
  umemMapped *mapped = find(mine->device, mine->inode, size, writable);
  if (!mapped && map(mine, alignment)) {
    mapped = mine;
    mapped->next = all;
    all = mapped;
  }
  int error = errno;
  if (mapped) ++*uses(mapped, use);
  umemLock_release(&umem_global_lock);
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
  umemLock_acquire(&umem_global_lock);
  umemMapped *last = leave(mapped, use);
  umemLock_release(&umem_global_lock);
  if (last) end(last);
}

bool umemMapped_detach(uintptr_t adr) {
  umemMapped *mapped, *last = NULL;
  umemLock_acquire(&umem_global_lock);
  for (mapped = all; mapped; mapped = mapped->next)
    if (mapped->attached && adr - (uintptr_t)mapped->base < mapped->size) break;
  if (mapped) last = leave(mapped, umemMappedByHandle);
  umemLock_release(&umem_global_lock);
  if (last) end(last);
  return mapped;
}

void umemMapped_zero(umemMapped const *mapped, uintptr_t adr, size_t nbytes) {
  off_t at = (off_t)(adr - (uintptr_t)mapped->base), end = at + (off_t)nbytes;
  for (off_t hole; at < end; at = hole) {
    off_t data = lseek(mapped->fd, at, SEEK_DATA);
    if ((data < 0 && errno == ENXIO) || data >= end) break;
    if (data < 0) data = at;
    hole = lseek(mapped->fd, data, SEEK_HOLE);
    if (hole <= data || hole > end) hole = end;
    umem_ram_set(NULL, (uintptr_t)mapped->base + (uintptr_t)data, 0, (size_t)(hole - data));
  }
}

/* ==== owners ==== */

/* What /proc/PID/stat says. */
typedef struct Stat {
  char state;
  long threads;
  unsigned long long start;
} Stat;

/* The name of the program, in parentheses, may hold anything: what counts stands behind its end. */
static bool read_stat(uint32_t pid, Stat *stat) {
  char path[48], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  if (!umem_read_text(path, text, sizeof text)) return false;
  char const *end = strrchr(text, ')');
  return end &&
         sscanf(end + 1,
                " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu",
                &stat->state, &stat->threads, &stat->start) == 3;
}

static uint64_t const start_bits = UINT64_MAX >> 24; /* of a start that an owner has */

static uint64_t process_of(uint32_t pid, uint64_t start) { return start << 24 | (pid & 0xffffff); }

static uint32_t own_space(void) {
  struct stat space;
  return stat("/proc/self/ns/pid", &space) == 0 ? (uint32_t)space.st_ino : 0;
}

/* Without /proc the start is 0, and the space unknown: then no process takes the blocks of this one
 * for those of a dead one. */
static umemShmOwner find_self(void) {
  uint32_t pid = (uint32_t)getpid();
  Stat stat;
  bool known = read_stat(pid, &stat);
  return (umemShmOwner){process_of(pid, known ? stat.start : 0), known ? own_space() : 0};
}

umemShmOwner umemShmOwner_self(void) {
  static umemShmOwner self;
  static unsigned forks;
  UMEM_LOCKED(&umem_global_lock);
  if (!self.process || forks != umem_fork_count()) {
    self = find_self();
    forks = umem_fork_count();
  }
  return self;
}

/* A leader that has ended stays a zombie while its other threads run. Where /proc hides the
 * processes of other users, kill reports whether there is one. start_mask: the bits of the start
 * that are known. */
static bool has_ended(uint32_t pid, uint64_t start, uint64_t start_mask) {
  Stat stat;
  if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return true;
  if (!read_stat(pid, &stat)) return false;
  if ((stat.start ^ start) & start_mask) return true;
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

bool umemShmOwner_is_dead(umemShmOwner owner) {
  umemShmOwner self = umemShmOwner_self();
  uint32_t pid = umemShmOwner_pid(owner);
  if (!owner.space || owner.space != self.space || !pid) return false;
  if (owner.process == self.process) return false;
  return has_ended(pid, umemShmOwner_start(owner), start_bits);
}

/* ---- marks ---- */

/* From above: 16 bits of the space, one that says that the mark is shown, the start, and the
 * number. Linux has no numbers of processes from 2^22 on. The start repeats after days, but then
 * another process has the number. */
enum { mark_pid_bits = 22, mark_start_bits = 25, mark_space_at = 48 };

static uint64_t const mark_pid = (UINT64_C(1) << mark_pid_bits) - 1;
static uint64_t const mark_start = (UINT64_C(1) << mark_start_bits) - 1;
static uint64_t const mark_shown = UINT64_C(1) << 47;

uint64_t umemShmOwner_mark(umemShmOwner owner, bool shown) {
  uint64_t start = umemShmOwner_start(owner) & mark_start;
  return (uint64_t)owner.space << mark_space_at | (shown ? mark_shown : 0) |
         start << mark_pid_bits | (umemShmOwner_pid(owner) & mark_pid);
}

/* The byte that a mark stands for. Files are shorter, so no other lock is there by accident. */
static struct flock lock_of(uint64_t mark, short type) {
  return (struct flock){
      .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(mark & INT64_MAX) - 1, .l_len = 1};
}

/* The lock belongs to what was opened, so the file is opened once more. Several contexts of a
 * process may show it. */
int umemShmOwner_show(umemShmOwner owner, int fd) {
  char path[40];
  struct flock lock = lock_of(umemShmOwner_mark(owner, true), F_RDLCK);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int shown = UMEM_AGAIN(open(path, O_RDWR | O_CLOEXEC));
  if (shown < 0 || UMEM_AGAIN(fcntl(shown, F_OFD_SETLK, &lock)) == 0) return shown;
  close(shown);
  return -1;
}

static bool is_shown(uint64_t mark, int fd) {
  struct flock lock = lock_of(mark, F_WRLCK);
  return UMEM_AGAIN(fcntl(fd, F_OFD_GETLK, &lock)) != 0 || lock.l_type != F_UNLCK;
}

/* A program may have closed the descriptor that shows its mark. So that is not looked at where its
 * number says enough. */
bool umemShmOwner_is_mark_of_dead(uint64_t mark, int fd) {
  umemShmOwner self = umemShmOwner_self();
  uint32_t pid = (uint32_t)(mark & mark_pid);
  uint16_t space = (uint16_t)(mark >> mark_space_at);
  bool same_space = space && space == (uint16_t)self.space;
  if (!same_space) return mark & mark_shown && !is_shown(mark, fd);
  if (!pid || (mark | mark_shown) == umemShmOwner_mark(self, true)) return false;
  return has_ended(pid, mark >> mark_pid_bits, mark_start);
}
