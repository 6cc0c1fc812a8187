/* shm_owner.c - finds out by /proc and by locks of files which process is which, and whether it has ended. */
#include "share/shm_owner.h"

#include "base/again.h"
#include "base/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
  int fd = UMEM_AGAIN(open(path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  ssize_t n = UMEM_AGAIN(read(fd, text, sizeof text - 1));
  close(fd);
  if (n <= 0) return false;
  text[n] = 0;
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

/* Without /proc the start is 0, and the space unknown: then nobody takes the blocks of this process for those of a dead
 * one. */
static umemShmOwner find_self(void) {
  uint32_t pid = (uint32_t)getpid();
  Stat stat;
  bool known = read_stat(pid, &stat);
  return (umemShmOwner){process_of(pid, known ? stat.start : 0), known ? own_space() : 0};
}

umemShmOwner umemShmOwner_self(void) {
  static umemShmOwner self;
  static unsigned forks;
  umemLock_acquire_global();
  if (!self.process || forks != umem_fork_count()) {
    self = find_self();
    forks = umem_fork_count();
  }
  umemShmOwner found = self;
  umemLock_release_global();
  return found;
}

/* A leader that has ended stays a zombie while its other threads run. Where /proc hides the processes of other users,
 * kill tells whether there is one. start_mask: the bits of the start that are known. */
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

/* From above: 16 bits of the space, one that says that the mark is shown, the start, and the number. Linux has no numbers
 * of processes from 2^22 on. The start repeats after days, but then another process has the number. */
enum { mark_pid_bits = 22, mark_start_bits = 25, mark_space_at = 48 };

static uint64_t const mark_pid = (UINT64_C(1) << mark_pid_bits) - 1;
static uint64_t const mark_start = (UINT64_C(1) << mark_start_bits) - 1;
static uint64_t const mark_shown = UINT64_C(1) << 47;

uint64_t umemShmOwner_mark(umemShmOwner owner, bool shown) {
  uint64_t start = umemShmOwner_start(owner) & mark_start;
  return (uint64_t)owner.space << mark_space_at | (shown ? mark_shown : 0) |
         start << mark_pid_bits | (umemShmOwner_pid(owner) & mark_pid);
}

/* The byte that a mark stands for. Files are shorter, so nobody else locks it by accident. */
static struct flock lock_of(uint64_t mark, short type) {
  return (struct flock){
      .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(mark & INT64_MAX) - 1, .l_len = 1};
}

/* The lock belongs to what was opened, so the file is opened once more. Several contexts of a process may show it. */
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

/* A program may have closed the descriptor that shows its mark. So where its number says enough, nobody looks at that. */
bool umemShmOwner_is_mark_of_dead(uint64_t mark, int fd) {
  umemShmOwner self = umemShmOwner_self();
  uint32_t pid = (uint32_t)(mark & mark_pid);
  uint16_t space = (uint16_t)(mark >> mark_space_at);
  bool same_space = space && space == (uint16_t)self.space;
  if (!same_space) return mark & mark_shown && !is_shown(mark, fd);
  if (!pid || (mark | mark_shown) == umemShmOwner_mark(self, true)) return false;
  return has_ended(pid, mark >> mark_pid_bits, mark_start);
}
