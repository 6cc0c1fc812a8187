/* log_disk.c - see log_disk.h. */
#include "adaptors/log/log_disk.h"
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int umemLogDisk_open(char const *filename) {
  int const flags = O_RDWR | O_CLOEXEC | O_NONBLOCK; /* no waiting at a FIFO */
  return UMEM_AGAIN(umem_open_path(filename, flags, 0));
}

int umemLogDisk_lock(int fd) { return UMEM_AGAIN(flock(fd, LOCK_EX | LOCK_NB)) == 0 ? 0 : errno; }

/* ---- bytes ---- */

static int set_length(int fd, uint64_t length) {
  return UMEM_AGAIN(ftruncate(fd, (off_t)length)) == 0 ? 0 : errno;
}

static int write_all(int fd, void const *bytes, size_t nbytes, uint64_t at) {
  for (size_t done = 0; done < nbytes;) {
    ssize_t n =
        UMEM_AGAIN(pwrite(fd, (char const *)bytes + done, nbytes - done, (off_t)(at + done)));
    if (n <= 0) return n ? errno : ENOSPC;
    done += (size_t)n;
  }
  return 0;
}

/* *nbytes becomes less where the file ends. */
static int read_all(int fd, void *bytes, size_t *nbytes, uint64_t at) {
  size_t done = 0;
  while (done < *nbytes) {
    ssize_t n = UMEM_AGAIN(pread(fd, (char *)bytes + done, *nbytes - done, (off_t)(at + done)));
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

/* True also where the disk does not report it. */
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

/* The header is in one page: a reader meanwhile, or after a kill, finds the old one or the new one. */
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

int umemLogDisk_create(umemNewFile *file, char const *filename) {
  *file = (umemNewFile){.fd = -1};
  file->folder = UMEM_AGAIN(umem_open_folder(filename, file->name));
  return file->folder < 0 ? errno : umemNewFile_create(file);
}
