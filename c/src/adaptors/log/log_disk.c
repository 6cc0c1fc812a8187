/* log_disk.c - see umem_log_disk.h. */
#include "adaptors/log/log_disk.h"
#include "base/folders.h"
#include "base/disk.h"
#include "base/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The result of call, which is made again while a signal interrupts it. */
#define AGAIN(result, call)                                                                        \
  do result = (call);                                                                              \
  while (result < 0 && errno == EINTR)

int umemLogDisk_open(char const *filename) {
  int fd;
  AGAIN(fd,
        umem_open_path(filename, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0)); /* no waiting at a FIFO */
  return fd;
}

int umemLogDisk_lock(int fd) {
  int result;
  AGAIN(result, flock(fd, LOCK_EX | LOCK_NB));
  return result ? errno : 0;
}

/* ---- bytes ---- */

static int set_length(int fd, uint64_t length) {
  int result;
  AGAIN(result, ftruncate(fd, (off_t)length));
  return result ? errno : 0;
}

static int write_all(int fd, void const *bytes, size_t nbytes, uint64_t at) {
  for (size_t done = 0; done < nbytes;) {
    ssize_t n;
    AGAIN(n, pwrite(fd, (char const *)bytes + done, nbytes - done, (off_t)(at + done)));
    if (n <= 0) return n ? errno : ENOSPC;
    done += (size_t)n;
  }
  return 0;
}

/* *nbytes becomes less where the file ends. */
static int read_all(int fd, void *bytes, size_t *nbytes, uint64_t at) {
  size_t done = 0;
  while (done < *nbytes) {
    ssize_t n;
    AGAIN(n, pread(fd, (char *)bytes + done, *nbytes - done, (off_t)(at + done)));
    if (n < 0) return errno;
    if (!n) break;
    done += (size_t)n;
  }
  *nbytes = done;
  return 0;
}

int umemLogDisk_look(int fd, umemLogBefore *before) {
  struct stat about;
  if (fstat(fd, &about) != 0) return errno;
  *before =
      (umemLogBefore){.length = (uint64_t)about.st_size, .header_bytes = sizeof before->header};
  return read_all(fd, &before->header, &before->header_bytes, 0);
}

/* Empty is what has neither length nor bytes: files of /proc often have one of the two. */
bool umemLogDisk_is_log(umemLogBefore const *before) {
  if (!before->header_bytes) return !before->length;
  return before->header_bytes >= sizeof before->header.magic &&
         !memcmp(before->header.magic, UMEM_LOG_MAGIC, sizeof before->header.magic);
}

/* ---- space ---- */

/* True also where the disk does not say. */
bool umemLogDisk_has_room(int fd, uint64_t length) {
  struct stat about;
  uint64_t available;
  if (umem_free_on_disk(fd, &available) || fstat(fd, &about) != 0) return true;
  uint64_t has = (uint64_t)about.st_blocks * 512;
  return has >= length || length - has <= available;
}

/* For file systems that cannot reserve: writes what is there once more, and zeros behind it. */
static int write_everything(int fd, uint64_t length, uint64_t old_length) {
  char bytes[1 << 14];
  for (uint64_t at = 0; at < length;) {
    size_t nbytes = length - at < sizeof bytes ? (size_t)(length - at) : sizeof bytes;
    size_t there = at >= old_length ? 0 : nbytes;
    int error = there ? read_all(fd, bytes, &there, at) : 0;
    memset(bytes + there, 0, nbytes - there);
    if (!error) error = write_all(fd, bytes, nbytes, at);
    if (error) return error;
    at += nbytes;
  }
  return 0;
}

int umemLogDisk_mark(int fd, umemLogBefore const *before) {
  return before->length ? 0 : write_all(fd, UMEM_LOG_MAGIC, sizeof UMEM_LOG_MAGIC, 0);
}

int umemLogDisk_reserve(int fd, uint64_t length, umemLogBefore const *before) {
  int error = umem_change_space(fd, 0, 0, length);
  if (error != EOPNOTSUPP && error != ENOSYS) return error;
  return write_everything(fd, length, before->length ? before->length : sizeof UMEM_LOG_MAGIC);
}

int umemLogDisk_rehearse(int fd, umemLogBefore const *before) {
  if (!before->length) return umemLogDisk_mark(fd, before);
  return write_all(fd, &before->header, before->header_bytes, 0);
}

/* The header lies in one page: who reads it meanwhile, or after a kill, finds the old one or the new one. */
int umemLogDisk_begin(int fd, umemLogHeader const *header, uint64_t length,
                      umemLogBefore const *before) {
  int error = write_all(fd, header, sizeof *header, 0);
  if (!error && before->length > length) error = set_length(fd, length);
  if (error && before->header_bytes) (void)write_all(fd, &before->header, before->header_bytes, 0);
  return error;
}

/* Only what was added goes, and stays when somebody has made the file still longer. A failure here says
 * nothing that the one before it has not said. */
void umemLogDisk_give_back(int fd, uint64_t length, umemLogBefore const *before) {
  struct stat about;
  if (fstat(fd, &about) == 0 && (uint64_t)about.st_size > before->length &&
      (uint64_t)about.st_size <= length)
    (void)set_length(fd, before->length);
}

/* ---- a new file ---- */

enum { proc_bytes = 32, most_tries = 1000 };

/* The name by which a file without one can be linked. */
static char const *name_of(int fd, char text[proc_bytes]) {
  snprintf(text, proc_bytes, "/proc/self/fd/%d", fd);
  return text;
}

/* A file without a name. EOPNOTSUPP where there is no such thing, or it could not be given a name later. */
static int open_nameless(int folder) {
  char proc[proc_bytes];
  int fd;
  AGAIN(fd, openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (fd >= 0 && access(name_of(fd, proc), F_OK) == 0) return fd;
  if (fd >= 0 || errno == EISDIR || errno == EINVAL) { /* older systems say so */
    if (fd >= 0) close(fd);
    errno = EOPNOTSUPP;
  }
  return -1;
}

/* A file with a name that nothing has. */
static int open_beside(umemLogDraft *draft) {
  int fd = -1;
  errno = EEXIST;
  for (int i = 0; fd < 0 && errno == EEXIST && i < most_tries; i++) {
    snprintf(draft->beside, sizeof draft->beside, "%s.new-%ld-%d", draft->name, (long)getpid(), i);
    AGAIN(fd, openat(draft->folder, draft->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  }
  if (fd < 0) draft->beside[0] = 0;
  return fd;
}

int umemLogDraft_open(umemLogDraft *draft, char const *filename) {
  draft->fd = -1;
  draft->beside[0] = 0;
  draft->published = false;
  AGAIN(draft->folder, umem_open_folder(filename, draft->name));
  if (draft->folder < 0) return errno;
  draft->fd = open_nameless(draft->folder);
  if (draft->fd < 0 && errno == EOPNOTSUPP) draft->fd = open_beside(draft);
  return draft->fd < 0 ? errno : 0;
}

/* Moves the file from its name for the time being, over nothing. */
static int move(int folder, char const *beside, char const *name) {
  if (syscall(SYS_renameat2, folder, beside, folder, name, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (linkat(folder, beside, folder, name, 0) != 0) return errno;
  unlinkat(folder, beside,
           0); /* if that fails, the log has a second name, and is there all the same */
  return 0;
}

int umemLogDraft_publish(umemLogDraft *draft) {
  char proc[proc_bytes];
  int error = 0;
  if (draft->beside[0])
    error = move(draft->folder, draft->beside, draft->name);
  else if (linkat(AT_FDCWD, name_of(draft->fd, proc), draft->folder, draft->name,
                  AT_SYMLINK_FOLLOW))
    error = errno;
  if (error) return error;
  draft->beside[0] = 0;
  draft->fd = -1;
  draft->published = true;
  return 0;
}

void umemLogDraft_withdraw(umemLogDraft *draft, int fd, uint64_t length) {
  if (draft->published) umem_remove_file(fd, draft->folder, draft->name, length);
  draft->published = false;
}

void umemLogDraft_end(umemLogDraft *draft) {
  if (draft->beside[0]) unlinkat(draft->folder, draft->beside, 0); /* nothing else has that name */
  if (draft->fd >= 0) close(draft->fd);
  if (draft->folder >= 0) close(draft->folder);
  draft->beside[0] = 0;
  draft->fd = draft->folder = -1;
}
