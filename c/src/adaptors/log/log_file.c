/* log_file.c - the file of a log: umem writes an existing log anew in the same file, a new file
 * gets its name when it is complete, and a failure changes nothing.
 *
 * An existing log keeps its file, and so its owner, its permissions and all its names. That also
 * works where the process may not write to the folder, or the disk has no room for two logs. All
 * that may fail comes before the first byte that changes. Calls that a signal interrupts are
 * made again, however often signals come. */
#include "adaptors/log/log.h"
#include "core/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the disk: functions return 0 or an errno ---- */

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

static int disk_look(int fd, umemLogBefore *before) {
  struct stat about;
  if (fstat(fd, &about) != 0) return errno;
  *before =
      (umemLogBefore){.length = (uint64_t)about.st_size, .header_bytes = sizeof before->header};
  return read_all(fd, &before->header, &before->header_bytes, 0);
}

/* Whether the file may become a new log: it is empty, or a log. Empty is what has neither length
 * nor bytes: files of /proc often have one of the two. */
static bool disk_is_log(umemLogBefore const *before) {
  if (!before->header_bytes) return !before->length;
  return before->header_bytes >= sizeof before->header.magic &&
         !memcmp(before->header.magic, UMEM_LOG_MAGIC, sizeof before->header.magic);
}

/* ---- space ---- */

/* Whether the disk has enough free bytes for a file of this length; true also where it does not
 * report them. Call it before disk_reserve: an attempt to reserve more than there is takes all free
 * space from other programs until it fails. */
static bool disk_has_room(int fd, uint64_t length) {
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

/* Makes an empty file one that is_log, whatever ends the program before the rest is there. */
static int disk_mark(int fd, umemLogBefore const *before) {
  return before->length ? 0 : write_all(fd, UMEM_LOG_MAGIC, sizeof UMEM_LOG_MAGIC, 0);
}

/* Makes the file at least this long, with space on the disk for every byte of that. What is in it
 * is unchanged. */
static int disk_reserve(int fd, uint64_t length, umemLogBefore const *before) {
  int error = umem_change_space(fd, 0, 0, length);
  if (error != EOPNOTSUPP && error != ENOSYS) return error;
  return write_everything(fd, length, before->length ? before->length : sizeof UMEM_LOG_MAGIC);
}

/* Writes the bytes at the beginning of the file once more: what would keep disk_begin from
 * writing its header is found while nothing has changed. */
static int disk_rehearse(int fd, umemLogBefore const *before) {
  if (!before->length) return disk_mark(fd, before);
  return write_all(fd, &before->header, before->header_bytes, 0);
}

/* Makes a reserved file the log that begins with this header, of this length. A failure leaves what
 * was there. The header is in one page: a reader meanwhile, or after a kill, finds the old log or
 * the new one. The caller clears what else the old one had. */
static int disk_begin(int fd, umemLogHeader const *header, uint64_t length,
                      umemLogBefore const *before) {
  int error = write_all(fd, header, sizeof *header, 0);
  if (!error && before->length > length) error = set_length(fd, length);
  if (error && before->header_bytes) (void)write_all(fd, &before->header, before->header_bytes, 0);
  return error;
}

/* Makes the file as long as it was, after a later step has failed. Only what was added goes; it is
 * kept when another process has made the file still longer. A failure here is not reported: the one
 * before it is. */
static void disk_give_back(int fd, uint64_t length, umemLogBefore const *before) {
  struct stat about;
  if (fstat(fd, &about) == 0 && (uint64_t)about.st_size > before->length &&
      (uint64_t)about.st_size <= length)
    (void)set_length(fd, before->length);
}

/* ---- a new file ---- */

/* Creates an empty file in the folder of filename, which is to be its name. To be ended in each
 * case. */
static int disk_create(umemNewFile *file, char const *filename) {
  *file = (umemNewFile){.fd = -1};
  file->folder = UMEM_AGAIN(umem_open_folder(filename, file->name));
  return file->folder < 0 ? errno : umemNewFile_create(file);
}

/* ---- all files ---- */

/* All files that this process writes, under a lock of their own. A thread holds it while it
 * opens or closes one, so that two threads that open one file get one umemLogFile. It waits for
 * the disk under this lock; under the global lock that would stop threads that ask for a
 * message. The lock is created when the library is loaded: it is older than the locks of all
 * contexts. */
static umemLogFile *newest;
umemLock umem_log_lock;

__attribute__((constructor(102))) static void begin_lock(void) { umemLock_init(&umem_log_lock); }

/* ---- beginning ---- */

static bool fail_with_words(umemVirtual *ctx, char const *what, char const *filename, int error) {
  return UMEM_FAIL(ctx, umem_is_full(error) ? umemMemoryError : umemIOError,
                   "cannot %s the log \"%s\": %s", what, filename, UMEM_WORDS(error));
}

static bool is_allowed(umemVirtual *ctx, char const *filename, uint64_t length) {
  uint64_t limit;
  return umem_may_write_to(length, &limit) ||
         UMEM_FAIL(ctx, umemMemoryError,
                   "the %" PRIu64 " bytes of the log \"%s\" pass the %" PRIu64
                   " that this process may write to (RLIMIT_FSIZE)",
                   length, filename, limit);
}

static bool lock_file(int fd, umemVirtual *ctx, char const *filename) {
  int error = UMEM_AGAIN(flock(fd, LOCK_EX | LOCK_NB)) == 0 ? 0 : errno;
  if (!error) return true;
  if (error != EWOULDBLOCK) return fail_with_words(ctx, "lock", filename, error);
  return UMEM_FAIL(ctx, umemIOError, "another process is writing the log \"%s\"", filename);
}

/* Reads what is in the file, and whether it may become a new log. */
static bool look_at_file(int fd, umemVirtual *ctx, char const *filename, umemLogBefore *before) {
  int error = disk_look(fd, before);
  if (error) return fail_with_words(ctx, "read", filename, error);
  if (disk_is_log(before)) return true;
  return UMEM_FAIL(ctx, umemValueError, "\"%s\" is there and is no log: it is not overwritten",
                   filename);
}

/* Where header, contexts and ring are: in the bytes from base on. */
static void set_parts(umemLogFile *file, void *base) {
  file->header = base;
  file->contexts = (umemLogContext *)((char *)base + umemLog_contexts_at);
  file->ring = (umemLogSlot *)((char *)base + umemLog_ring_at);
}

static bool map_file(umemLogFile *file, umemVirtual *ctx) {
  void *base = mmap(NULL, file->length, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
  if (base == MAP_FAILED) return fail_with_words(ctx, "map", file->filename, errno);
  set_parts(file, base);
  return true;
}

/* Header, contexts and ring are in memory until the log begins: the existing file remains as it
 * is. */
static bool put_aside(umemLogFile *file, umemVirtual *ctx) {
  int const how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *base = mmap(NULL, file->length, PROT_READ | PROT_WRITE, how, -1, 0);
  if (base == MAP_FAILED) return fail_with_words(ctx, "map", file->filename, errno);
  file->there = file->header;
  set_parts(file, base);
  return true;
}

static void unmap_file(umemLogFile *file) {
  munmap(file->header, file->length);
  if (file->there) munmap(file->there, file->length);
}

static umemLogHeader new_header(umemLogFile const *file) {
  return (umemLogHeader){.magic = UMEM_LOG_MAGIC,
                         .version = umemLog_version,
                         .byte_order = umemLog_byte_order,
                         .record_size = sizeof(umemLogRecord),
                         .context_size = sizeof(umemLogContext),
                         .capacity = file->mask + 1,
                         .begun = umemLog_now(),
                         .begun_calendar = umemClock_read(CLOCK_REALTIME),
                         .process = (uint32_t)getpid()};
}

/* The space is there before the first record: a full disk that is found while writing to the
 * mapping would kill. */
static bool reserve_space(umemLogFile *file, umemVirtual *ctx) {
  char const *what = "write";
  int error = disk_mark(file->fd, &file->before);
  if (!error) {
    what = "reserve the space of";
    error = disk_reserve(file->fd, file->length, &file->before);
  }
  if (!error) return true;
  disk_give_back(file->fd, file->length, &file->before);
  return fail_with_words(ctx, what, file->filename, error);
}

/* All behind the header. The first write to a page costs a microsecond or more: here, and not in
 * the first records. */
static void clear_records(umemLogFile const *file, umemLogHeader *header) {
  memset((char *)header + sizeof *header, 0, file->length - sizeof *header);
}

/* Prepares the file of the descriptor, which is locked, for a log without records. One that is
 * new is written now; one that is there, at the commit. */
static bool prepare_file(umemLogFile *file, umemVirtual *ctx) {
  bool is_new = file->draft.folder >= 0;
  if (!map_file(file, ctx)) return false;
  if ((is_new || put_aside(file, ctx)) && reserve_space(file, ctx)) {
    if (is_new) clear_records(file, file->header);
    *file->header = new_header(file);
    return true;
  }
  unmap_file(file);
  return false;
}

static bool begin_log(umemLogFile *file, umemVirtual *ctx) {
  if (!look_at_file(file->fd, ctx, file->filename, &file->before) ||
      !is_allowed(ctx, file->filename, file->length))
    return false;
  if (!disk_has_room(file->fd, file->length))
    return fail_with_words(ctx, "reserve the space of", file->filename, ENOSPC);
  return prepare_file(file, ctx);
}

/* ---- the commit ---- */

/* Whether file waits for its beginning in this process. */
static bool waits_for_beginning(umemLogFile const *file) {
  return file->building && umemLogFile_is_ours(file);
}

/* Under the lock. Returns an errno; the file is as it was then. */
static int get_ready(umemLogFile *file) {
  if (!waits_for_beginning(file) || file->draft.named) return 0;
  return file->there ? disk_rehearse(file->fd, &file->before) : umemNewFile_publish(&file->draft);
}

/* Replaces the existing log by the new one, with the contexts and records that it has by now. A
 * reader meanwhile finds the old log, or the new one with fewer of them. Returns an errno; the
 * file is as it was then. insists: it does not fail. Then the header goes through the mapping
 * where the system refuses to write it, and what is too long remains so. */
static int begin_anew(umemLogFile *file, bool insists) {
  umemLogHeader header = *file->header, *there = file->there;
  uint64_t next = header.next, slots = next <= file->mask ? next : file->mask + 1;
  uint32_t contexts = header.contexts;
  header.next = header.contexts = 0;
  int error = disk_begin(file->fd, &header, file->length, &file->before);
  if (error && !insists) return error;
  if (error) memcpy(there, &header, sizeof header);
  clear_records(file, there);
  memcpy((char *)there + umemLog_contexts_at, file->contexts,
         (contexts + 1) * sizeof *file->contexts);
  memcpy((char *)there + umemLog_ring_at, file->ring, slots * sizeof *file->ring);
  __atomic_store_n(&there->contexts, contexts, __ATOMIC_RELEASE);
  __atomic_store_n(&there->next, next, __ATOMIC_RELEASE);
  munmap(file->header, file->length);
  file->there = NULL;
  set_parts(file, there);
  return 0;
}

/* Under the lock. As begin_anew. */
static int begin_now(umemLogFile *file, bool insists) {
  if (!waits_for_beginning(file)) return 0;
  int error = file->there ? begin_anew(file, insists) : 0;
  if (error) return error;
  umemNewFile_end(&file->draft);
  __atomic_store_n(&file->building, false, __ATOMIC_RELEASE);
  return 0;
}

static bool fail_commit(umemLogFile const *file, umemVirtual *ctx, int error) {
  return fail_with_words(ctx, file->there ? "write" : "make", file->filename, error);
}

bool umemLogFile_commit(umemLogFile *file, umemVirtual *ctx) {
  umemLock_acquire(&umem_log_lock);
  int error = get_ready(file);
  umemLock_release(&umem_log_lock);
  return !error || fail_commit(file, ctx, error);
}

void umemLogFile_begin(umemLogFile *file) {
  UMEM_LOCKED(&umem_log_lock);
  (void)begin_now(file, true); /* which then does not fail */
}

/* ---- opening and closing ---- */

/* The umemLogFile of that file in this process, with a user more; or NULL. */
static umemLogFile *find_file(struct stat const *about) {
  for (umemLogFile *file = newest; file; file = file->older)
    if (file->device == about->st_dev && file->inode == about->st_ino &&
        umemLogFile_is_ours(file)) {
      file->users++;
      return file;
    }
  return NULL;
}

static bool is_same_folder(int one, int other) {
  struct stat here, there;
  return fstat(one, &here) == 0 && fstat(other, &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

/* That which is to have the name of draft in this process, with a user more; or NULL. */
static umemLogFile *find_draft(umemNewFile const *draft) {
  for (umemLogFile *file = newest; file; file = file->older)
    if (file->draft.folder >= 0 && !file->draft.named && umemLogFile_is_ours(file) &&
        !strcmp(file->draft.name, draft->name) &&
        is_same_folder(file->draft.folder, draft->folder)) {
      file->users++;
      return file;
    }
  return NULL;
}

/* The largest power of two of records that fits. */
static uint64_t capacity_of(uint64_t max_bytes) {
  uint64_t records = (max_bytes - umemLog_ring_at) / sizeof(umemLogRecord), capacity = 1;
  while (capacity <= records / 2) capacity *= 2;
  return capacity;
}

/* A new umemLogFile for fd, which it owns from then on, as it owns draft, NULL for a file that
 * is there; or NULL. */
static umemLogFile *begin_file(umemVirtual *ctx, char const *filename, int fd,
                               umemNewFile const *draft, struct stat const *about,
                               uint64_t max_bytes) {
  if (!lock_file(fd, ctx, filename)) return NULL;
  size_t name_size = strlen(filename) + 1;
  umemLogFile *file = calloc(1, sizeof *file + name_size);
  if (!file) return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for a log");
  uint64_t capacity = capacity_of(max_bytes);
  *file = (umemLogFile){.mask = capacity - 1,
                        .length = (size_t)(umemLog_ring_at + capacity * sizeof(umemLogRecord)),
                        .forks = umem_fork_count(),
                        .fd = fd,
                        .device = about->st_dev,
                        .inode = about->st_ino,
                        .users = 1,
                        .building = true,
                        .draft = {.fd = -1, .folder = -1}};
  if (draft) file->draft = *draft;
  memcpy(file->filename, filename, name_size);
  if (begin_log(file, ctx)) return file;
  free(file);
  return NULL;
}

/* Of a file that is open: what kind of file, and which. */
static bool examine_file(int fd, umemVirtual *ctx, char const *filename, struct stat *about) {
  if (fstat(fd, about) != 0) return fail_with_words(ctx, "open", filename, errno);
  if (S_ISREG(about->st_mode)) return true;
  return UMEM_FAIL(ctx, umemIOError, "cannot write the log \"%s\": it is no regular file",
                   filename);
}

static bool check_owner(int fd, umemVirtual *ctx, char const *filename) {
  bool planted = false;
  int error = umem_leads_to_planted(filename, fd, &planted);
  if (error) return fail_with_words(ctx, "open", filename, error);
  return !planted ||
         UMEM_FAIL(ctx, umemIOError,
                   "cannot write the log \"%s\": another user has put it into a folder that "
                   "everybody may write to",
                   filename);
}

static umemLogFile *add_file(umemLogFile *file) {
  if (!file) return NULL;
  file->older = newest;
  return newest = file;
}

/* Takes a user away; the last one ends the file. */
static void leave_file(umemLogFile *file, bool left);

/* file, committed if that is wanted now; else NULL with a status. taken: as of make_file, or
 * NULL. */
static umemLogFile *commit_file(umemLogFile *file, umemVirtual *ctx, bool commits, bool *taken) {
  int error = file && commits ? get_ready(file) : 0;
  if (!error && file && commits) error = begin_now(file, false);
  if (!error) return file;
  bool retries = taken && !file->there && error == EEXIST;
  if (retries)
    *taken = true;
  else
    fail_commit(file, ctx, error);
  leave_file(file, false);
  return NULL;
}

/* What fd, a file that was there, is of this process, or becomes; NULL with a status otherwise.
 * fd is owned by it, or closed. */
static umemLogFile *share_or_begin(umemVirtual *ctx, char const *filename, int fd,
                                   uint64_t max_bytes, bool commits) {
  struct stat about;
  bool known = examine_file(fd, ctx, filename, &about) && check_owner(fd, ctx, filename);
  umemLogFile *file = known ? find_file(&about) : NULL;
  if (known && !file) {
    file = begin_file(ctx, filename, fd, NULL, &about, max_bytes);
    if (file) return commit_file(add_file(file), ctx, commits, NULL);
  }
  close(fd);
  return commit_file(file, ctx, commits, NULL);
}

static void abandon_draft(umemNewFile *draft) {
  if (draft->fd >= 0) close(draft->fd);
  umemNewFile_end(draft);
}

/* A log with a name that nothing has; NULL with a status otherwise, or with *taken if something
 * has it by now. */
static umemLogFile *make_file(umemVirtual *ctx, char const *filename, uint64_t max_bytes,
                              bool commits, bool *taken) {
  umemNewFile draft;
  struct stat about;
  umemLogFile *file = NULL;
  *taken = false;
  int error = disk_create(&draft, filename);
  if (error) {
    fail_with_words(ctx, "open", filename, error);
  } else if ((file = find_draft(&draft))) {
    abandon_draft(&draft);
    return commit_file(file, ctx, commits, taken);
  } else if (examine_file(draft.fd, ctx, filename, &about)) {
    file = begin_file(ctx, filename, draft.fd, &draft, &about, max_bytes);
  }
  if (!file) abandon_draft(&draft);
  return commit_file(add_file(file), ctx, commits, taken);
}

/* A link to nothing is not followed to make a file: another user may have set it. */
static bool is_link(umemVirtual *ctx, char const *filename) {
  struct stat about;
  if (lstat(filename, &about) != 0 || !S_ISLNK(about.st_mode)) return false;
  umemVirtual_fail(ctx, umemIOError,
                   "cannot make the log \"%s\": it is a symbolic link to a file that is not there",
                   filename);
  return true;
}

static umemLogFile *open_under_lock(umemVirtual *ctx, char const *filename, uint64_t max_bytes,
                                    bool commits) {
  /* Each time another process has made the file meanwhile, or removed it. */
  enum { most_tries = 100 };
  int const flags = O_RDWR | O_CLOEXEC | O_NONBLOCK; /* no waiting at a FIFO */
  int error = EEXIST;
  for (int i = 0; i < most_tries; i++) {
    bool taken;
    int fd = UMEM_AGAIN(umem_open_path(filename, flags, 0));
    if (fd >= 0) return share_or_begin(ctx, filename, fd, max_bytes, commits);
    if (errno != ENOENT) {
      error = errno;
      break;
    }
    if (is_link(ctx, filename)) return NULL;
    umemLogFile *file = make_file(ctx, filename, max_bytes, commits, &taken);
    if (file || !taken) return file;
  }
  fail_with_words(ctx, "open", filename, error);
  return NULL;
}

umemLogFile *umemLogFile_open(umemVirtual *ctx, char const *filename, uint64_t max_bytes,
                              bool commits) {
  umemClock_start();
  UMEM_HOLDING(); /* a hook may take other locks */
  UMEM_LOCKED(&umem_log_lock);
  return open_under_lock(ctx, filename, max_bytes, commits);
}

/* No context writes any more: completes the file, so that it may become a new log. Undoes what
 * was not committed. In a child of fork the lock and the header are the parent's. */
static void complete_file(umemLogFile *file) {
  umemLogFile **link = &newest;
  while (*link != file) link = &(*link)->older;
  *link = file->older;
  file->complete = true;
  if (!umemLogFile_is_ours(file)) return;
  __atomic_store_n(&file->header->ended, umemLog_end(), __ATOMIC_RELAXED);
  if (file->building && file->there) disk_give_back(file->fd, file->length, &file->before);
  if (file->building) umemNewFile_withdraw(&file->draft, file->length);
  flock(file->fd, LOCK_UN); /* children may have the descriptor for longer */
}

static void leave_file(umemLogFile *file, bool left) {
  file->users--;
  file->left -= left;
  if (file->users == file->left && !file->complete) complete_file(file);
  if (file->users) return;
  unmap_file(file);
  umemNewFile_end(&file->draft);
  close(file->fd);
  free(file);
}

void umemLogFile_close(umemLogFile *file, bool left) {
  UMEM_LOCKED(&umem_log_lock);
  leave_file(file, left);
}

bool umemLogFile_leave(umemLogFile *file) {
  enum { most_tries = 1000 };
  struct timespec const nap = {0, 1000000};
  int tries = 0;
  while (!umemLock_try(&umem_log_lock))
    if (++tries == most_tries || nanosleep(&nap, NULL) < 0) return false;
  if (++file->left == file->users) complete_file(file);
  umemLock_release(&umem_log_lock);
  return true;
}
