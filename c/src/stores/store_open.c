/* store_open.c - opens, locks and closes the file of a store, also one that replaces another
 * file. */
#include "stores/store.h"
#include "base/files.h"
#include "base/text.h"
#include "core/context.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ==== files that replace others ====
 *
 * The new file replaces the old one at one instant (base/files.h). Data come first, then the
 * names, then the folder: after a power cut the name leads to a complete file too. The folder is
 * held open, so that it may be renamed, or the working directory be changed, in between. */

enum { links_most = 40 /* as Linux follows in one name */ };

typedef struct umemReplace {
  umemStore *store;    /* borrowed */
  char path[PATH_MAX]; /* of the file that is replaced, behind all links */
  umemNewFile file;    /* in the folder that the name leads to; its fd is store->fd */
  bool syncable;       /* the folder is open for reading, so that fsync takes it */
} umemReplace;

/* ---- failures ---- */

static bool fail(umemReplace const *replace, int error, char const *what) {
  return umemStore_fail_open(replace->store, error, what);
}

/* ---- finding the file ---- */

/* Opens the folder of path, which is relative to the folder before, and takes the rest of path as
 * name. Returns an errno. */
static int enter(umemReplace *replace, char const *path) {
  char folder[PATH_MAX];
  char const *slash = strrchr(path, '/');
  char const *name = slash ? slash + 1 : path;
  size_t length = (size_t)(name - path);
  if (length >= sizeof folder || strlen(name) > NAME_MAX) return ENAMETOOLONG;
  if (!*name) return EISDIR;
  memcpy(replace->file.name, name, strlen(name) + 1);
  if (!length && replace->file.folder != AT_FDCWD) return 0; /* a link to its neighbour */
  memcpy(folder, path, length);
  folder[length] = 0;
  if (!length) memcpy(folder, ".", 2);
  int const before = replace->file.folder;
  int const flags = O_DIRECTORY | O_CLOEXEC;
  replace->file.folder = UMEM_AGAIN(openat(before, folder, O_RDONLY | flags));
  replace->syncable = replace->file.folder >= 0;
  if (replace->file.folder < 0 && errno == EACCES)
    replace->file.folder = UMEM_AGAIN(openat(before, folder, O_PATH | flags));
  int error = replace->file.folder < 0 ? errno : 0;
  if (before >= 0) close(before);
  return error;
}

/* Where in path the name begins, behind the folder. */
static size_t name_in(char const *path) {
  char const *slash = strrchr(path, '/');
  return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Notes that the path goes on at link, which is relative to the folder before. Returns an errno. */
static int note(umemReplace *replace, char const *link) {
  size_t const begin = *link == '/' ? 0 : name_in(replace->path), length = strlen(link);
  if (begin + length >= sizeof replace->path) return ENAMETOOLONG;
  memcpy(replace->path + begin, link, length + 1);
  return 0;
}

/* Refuses what has the name now and is of another user, in a folder of all users. Returns an
 * errno. */
static int check_owner(umemReplace *replace) {
  struct stat about;
  int const folder = replace->file.folder;
  if (fstatat(folder, replace->file.name, &about, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? 0 : errno;
  int error = umem_is_planted(folder, &about, &replace->store->planted);
  return !error && replace->store->planted ? EACCES : error;
}

/* Goes where path leads, through symbolic links, also to a file that is not there. Returns an
 * errno. */
static int follow_links(umemReplace *replace, char const *path) {
  char link[PATH_MAX];
  int error = note(replace, path);
  if (!error) error = enter(replace, path);
  for (int links = 0; !error; links++) {
    ssize_t length = readlinkat(replace->file.folder, replace->file.name, link, sizeof link);
    if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    if (links == links_most) return ELOOP;
    if ((size_t)length == sizeof link) return ENAMETOOLONG;
    link[length] = 0;
    error = check_owner(replace);
    if (!error) error = note(replace, link);
    if (!error) error = enter(replace, link);
  }
  return error;
}

/* No file is where path leads. The system may see one all the same, as links of /proc lead to
 * pipes, and to files without a name, which cannot be replaced; or another process has just made
 * it. */
static bool check_missing(umemReplace const *replace, char const *path, struct stat *old) {
  if (stat(path, old) == 0)
    return umemStore_check_mode(replace->store, old->st_mode) &&
           (old->st_nlink || fail(replace, ENOENT, "cannot replace"));
  old->st_mode = 0;
  return errno == ENOENT || fail(replace, errno, "cannot open");
}

/* Sets folder and name, and *old, whose mode is 0 where there is no file yet. Only a regular file
 * that this process may write is replaced. */
static bool find(umemReplace *replace, struct stat *old) {
  char const *path = replace->store->path;
  int error = follow_links(replace, path);
  if (error == EISDIR && stat(path, old) == 0)
    return umemStore_check_mode(replace->store, old->st_mode);
  if (!error) error = check_owner(replace);
  if (replace->store->planted) return umemStore_fail_planted(replace->store);
  if (error) return fail(replace, error, "cannot open");
  if (fstatat(replace->file.folder, replace->file.name, old, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? check_missing(replace, path, old)
                           : fail(replace, errno, "cannot examine");
  return umemStore_check_mode(replace->store, old->st_mode) &&
         (faccessat(replace->file.folder, replace->file.name, W_OK, AT_EACCESS) == 0 ||
          fail(replace, errno, "cannot replace"));
}

/* ---- owner and permissions ---- */

/* Of the complete file; until then it is only the owner's. */
static bool keep_attributes(umemReplace *replace, struct stat const *old) {
  bool keeps_group = false;
  int error = umemNewFile_keep_owner(&replace->file, old, &keeps_group);
  if (error) return fail(replace, error, "cannot keep the owner of");
  error = keeps_group ? umemNewFile_keep_list(&replace->file, replace->store->path) : 0;
  if (error) return fail(replace, error, "cannot keep the access list of");
  error = umemNewFile_protect(&replace->file);
  return !error || fail(replace, error, "cannot protect the file beside");
}

/* ---- begin, commit, end ---- */

/* Opens the new file, for reading and writing, as store->fd, and sets store->replace. What the
 * store's path leads to is looked at once: the complete file has the permissions, and where that is
 * permitted the owner, that the old one has now; until then no other process can open it. False
 * with a status when the name cannot be replaced. */
static bool begin_replacing(umemStore *store) {
  struct stat old;
  umemReplace *replace = calloc(1, sizeof *replace);
  if (!replace) return UMEM_FAIL(store->ctx, umemMemoryError, "no memory for a new context");
  replace->store = store;
  replace->file.folder = AT_FDCWD;
  store->replace = replace;
  if (!find(replace, &old) || !umemStore_check_place(store, store->path)) return false;
  int error = umemNewFile_create(&replace->file);
  store->fd = replace->file.fd;
  if (error) return fail(replace, error, "cannot create a file beside");
  return !old.st_mode || keep_attributes(replace, &old);
}

/* Whether the file waits for its name; records a status otherwise. */
static bool waits(umemStore *store) {
  if (store->replace && !store->replace->file.named) return true;
  return UMEM_FAIL(store->ctx, umemValueError,
                   store->replace ? "%s has been replaced already"
                                  : "%s was not opened to replace a file",
                   store->label);
}

/* Others write to it by this name: a lock would refuse them where the system locks over the
 * network. */
bool umemReplace_show(umemStore *store, char *path, size_t size) {
  umemReplace *replace = store->replace;
  if (!waits(store)) return false;
  int error = umemNewFile_show(&replace->file);
  if (error) return fail(replace, error, "cannot name the file beside");
  int const folder = (int)name_in(replace->path);
  int length = snprintf(path, size, "%.*s%s", folder, replace->path, replace->file.hidden);
  if (length < 0 || (size_t)length >= size)
    return fail(replace, ENAMETOOLONG, "cannot name the file beside");
  flock(store->fd, LOCK_UN);
  return true;
}

bool umemReplace_commit(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!waits(store)) return false;
  int error = umemNewFile_complete(&replace->file);
  if (error) return fail(replace, error, "cannot set the permissions of the file beside");
  if (store->durable && UMEM_AGAIN(fsync(store->fd)) != 0)
    return fail(replace, errno, "cannot flush the file beside");
  error = umemNewFile_replace(&replace->file);
  if (error) return fail(replace, error, "cannot replace");
  if (!store->durable) return true;
  int result =
      replace->syncable ? UMEM_AGAIN(fsync(replace->file.folder)) : UMEM_AGAIN(syncfs(store->fd));
  return result == 0 || fail(replace, errno, "the new file is there, but cannot flush the name of");
}

/* Removes what was not committed and frees store->replace; NULL is ignored. */
static void end_replacing(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!replace) return;
  umemNewFile_end(&replace->file);
  free(replace);
  store->replace = NULL;
}

/* ==== the beginning and the end ====
 *
 * Nothing that exists is changed before umemStore_commit: the descriptor is opened without O_TRUNC,
 * and without O_APPEND, which would ignore offsets. O_NONBLOCK keeps a FIFO from blocking us; what
 * is not a regular file is refused afterwards. The lock is never released by LOCK_UN, only by
 * closing: a forked child shares it and must not take it from its parent. */

_Static_assert(sizeof(off_t) == 8 && sizeof(uintptr_t) == 8, "umem needs 64-bit offsets");

/* Where the last block may end: the largest off_t, rounded down. */
static uint64_t const store_end = (uint64_t)INT64_MAX & ~(uint64_t)(umemStoreGranule - 1);

/* prefix, then path in quotes. Keeps the end of a long path, which says more. */
static void set_label(umemStore *store, char const *prefix, char const *path) {
  enum { most = 160 };
  size_t length = strlen(path);
  char const *tail = length > most ? path + (length - most) : path;
  char shown[4 * most + 1];
  while (tail > path && ((unsigned char)*tail & 0xC0) == 0x80)
    tail++; /* not inside of a UTF-8 letter */
  for (;; tail += umem_first_character(tail).length) {
    umem_escape(shown, sizeof shown, tail);
    if (strlen(shown) <= most) break;
  }
  snprintf(store->label, sizeof store->label, "%s\"%s%.*s\"", prefix, tail > path ? "..." : "",
           most, shown);
}

/* ---- the mode ---- */

typedef struct {
  bool read, write, create, empty, append;
} Mode;

/* [rwa], then at most one '+' and one 'b' in any order. */
static bool parse_mode(char const *text, Mode *mode) {
  if (!text || !*text || !strchr("rwa", *text)) return false;
  bool plus = false, binary = false;
  for (char const *c = text + 1; *c; c++) {
    bool *flag = *c == '+' ? &plus : *c == 'b' ? &binary : NULL;
    if (!flag || *flag) return false;
    *flag = true;
  }
  mode->read = *text == 'r' || plus;
  mode->write = *text != 'r' || plus;
  mode->create = *text != 'r';
  mode->empty = *text == 'w';
  mode->append = *text == 'a';
  return true;
}

/* ---- opening ---- */

enum { open_flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* A file with a lease (umemStore_isolate does, for a few calls) refuses O_NONBLOCK
 * until the lease is released. */
static int open_retrying(char const *path, int flags, mode_t permissions) {
  struct timespec const nap = {0, 1000000};
  bool unnamed = (flags & O_TMPFILE) == O_TMPFILE; /* in whatever folder */
  for (int naps = 0;;) {
    int fd = unnamed ? open(path, flags, permissions) : umem_open_path(path, flags, permissions);
    if (fd >= 0 || (errno != EINTR && (errno != EWOULDBLOCK || naps++ == 1000))) return fd;
    if (errno == EWOULDBLOCK) nanosleep(&nap, NULL);
  }
}

/* The directory that holds the new file at path, symbolic links followed; NULL if it is unknown.
 * Looked up now, because the program may change its working directory before it flushes. */
static char *directory_of(char const *path) {
  char *whole = realpath(path, NULL);
  char *slash = whole ? strrchr(whole, '/') : NULL;
  if (slash) slash[slash == whole] = 0;
  return whole;
}

/* Creates the file. created: by this call, and not by another one at the same time. */
static int create_file(umemStore *store, int flags) {
  int fd = open_retrying(store->path, flags | O_CREAT | O_EXCL, 0666);
  store->created = fd >= 0;
  if (fd >= 0 || errno != EEXIST) return fd;
  int error = umem_leads_to_planted(store->path, -1, &store->planted);
  if (error) errno = error;
  if (error || store->planted) return -1;
  return open_retrying(store->path, flags | O_CREAT, 0666); /* also behind a symbolic link */
}

static int open_or_create(umemStore *store, int flags, bool creates) {
  int fd = open_retrying(store->path, flags, 0);
  if (fd >= 0 || errno != ENOENT || !creates) return fd;
  fd = create_file(store, flags);
  if (fd < 0) return fd;
  store->unsynced_name = true;
  store->directory = directory_of(store->path);
  return fd;
}

static bool open_named(umemStore *store, Mode const *mode) {
  /* For reading, too, where that is allowed: to see what others append. */
  int flags = open_flags | (mode->write ? O_RDWR : O_RDONLY);
  if (!umemStore_check_place(store, store->path)) return false;
  store->fd = open_or_create(store, flags, mode->create);
  if (store->fd < 0 && errno == EACCES && mode->write && !mode->read)
    store->fd = open_or_create(store, (flags & ~O_ACCMODE) | O_WRONLY, mode->create);
  int error = store->fd < 0 ? errno : 0;
  if (!error && mode->write && !store->created)
    error = umem_leads_to_planted(store->path, store->fd, &store->planted);
  if (store->planted) return umemStore_fail_planted(store);
  return !error || umemStore_fail_open(store, error, "cannot open");
}

/* For file systems without O_TMPFILE: a file whose name goes at once. */
static int open_unlinked(char const *directory) {
  static char const name[] = "/umem-XXXXXX";
  size_t length = strlen(directory);
  char *path = malloc(length + sizeof name);
  if (!path) return -1;
  memcpy(path, directory, length);
  int fd;
  do {
    memcpy(path + length, name, sizeof name);
    fd = mkostemp(path, O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0 && unlink(path) != 0) fd = umem_close_failed(fd);
  int error = errno;
  free(path);
  errno = error;
  return fd;
}

static bool open_scratch(umemStore *store) {
  char const *directory = secure_getenv("TMPDIR");
  if (!directory || !*directory) directory = "/tmp";
  set_label(store, "a scratch file in ", directory);
  store->fd = open_retrying(directory, O_TMPFILE | O_EXCL | O_RDWR | open_flags, 0600);
  if (store->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    store->fd = open_unlinked(directory);
  return store->fd >= 0 || umemStore_fail_open(store, errno, "cannot open");
}

/* ---- construction and its undoing ---- */

static bool is_one_of(umemVirtual *ctx, char const *option, unsigned value, unsigned last,
                      char const *all) {
  return value <= last ||
         UMEM_FAIL(ctx, umemValueError, "%s is %d: neither %s", option, (int)value, all);
}

static bool read_options(umemVirtual *ctx, umemFileOptions const *given, umemFileOptions *options) {
  *options = (umemFileOptions)UMEM_FILE_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemFileOptions")) return false;
  return is_one_of(ctx, "reserve", options->reserve, umemReserveNone,
                   "umemReserveAuto nor umemReserveNone") &&
         is_one_of(ctx, "direct", options->direct, umemDirectOff,
                   "umemDirectAuto, umemDirectOn nor umemDirectOff") &&
         is_one_of(ctx, "reuse", options->reuse, umemReuseNo,
                   "umemReuseAuto, umemReuseYes nor umemReuseNo") &&
         is_one_of(ctx, "durable", options->durable, umemDurableNo,
                   "umemDurableAuto nor umemDurableNo");
}

static umemStore *create(umemVirtual *ctx, char const *path, umemFileOptions const *given) {
  umemFileOptions options;
  if (!read_options(ctx, given, &options)) return NULL;
  umemStore *store = calloc(1, sizeof *store);
  if (!store) return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for a new context");
  store->ctx = ctx;
  store->fd = -1;
  store->limit = store_end;
  store->lost_from = UINT64_MAX;
  store->sparse = options.reserve == umemReserveNone;
  store->direct = options.direct;
  store->reuse = options.reuse;
  store->durable = options.durable == umemDurableAuto;
  store->owner = getpid();
  umemHost_ctor(&store->host);
  umemLock_init(&store->lock);
  for (int i = 0; i < umemStoreTurns; i++) umemLock_init(&store->turns[i]);
  store->range = umemRange_create(umemStoreGranule);
  if (path) store->path = strdup(path);
  if (store->range && umemRange_add(store->range, 0, store_end, true) && !store->path == !path)
    return store;
  umemVirtual_fail(ctx, umemMemoryError, "no memory for a new context");
  umemStore_close(store);
  return NULL;
}

/* Whether the file is one that this store can use as its options say. */
static bool suits(umemStore *store) {
  return umemStore_check_kind(store) &&
         (store->direct != umemDirectOn || umemStore_check_direct(store));
}

static umemStore *kept_if(bool good, umemStore *store) {
  if (good) return store;
  umemStore_close(store);
  return NULL;
}

static umemStore *open_file(umemVirtual *ctx, umemStoreWish const *wish, bool mapped) {
  Mode mode;
  char const *filename = wish->filename;
  if (!parse_mode(wish->mode, &mode))
    return UMEM_FAIL_NULL(ctx, umemValueError, "bad mode \"%.20s\": r, r+, w, w+, a or a+, and b",
                          wish->mode ? wish->mode : "NULL");
  bool scratch = !filename;
  if (scratch ? !mode.empty || !mode.read : !*filename)
    return UMEM_FAIL_NULL(ctx, umemValueError,
                          scratch ? "a scratch file (no name) has mode w+"
                                  : "the file name is empty");
  if (mapped) mode.read = true;
  umemStore *store = create(ctx, filename, wish->options);
  if (!store) return NULL;
  store->readable = mode.read;
  store->writable = mode.write;
  store->appends = mode.append;
  store->empties = mode.empty;
  store->scratch = scratch;
  if (!scratch) set_label(store, "", filename);
  return kept_if((scratch ? open_scratch(store) : open_named(store, &mode)) && suits(store), store);
}

static umemStore *replace_file(umemVirtual *ctx, umemStoreWish const *wish) {
  char const *filename = wish->filename;
  if (!filename || !*filename)
    return UMEM_FAIL_NULL(ctx, umemValueError, "the file name is %s", filename ? "empty" : "NULL");
  umemStore *store = create(ctx, filename, wish->options);
  if (!store) return NULL;
  store->readable = store->writable = true;
  set_label(store, "", filename);
  return kept_if(begin_replacing(store) &&
                     (store->direct != umemDirectOn || umemStore_check_direct(store)),
                 store);
}

/* What fd was opened for. */
static bool check_access(umemStore *store, bool mapped) {
  int flags = fcntl(store->fd, F_GETFL);
  if (flags < 0) return umemStore_fail_open(store, errno, "cannot use");
  int access = flags & O_ACCMODE;
  store->readable = access != O_WRONLY;
  store->writable = access != O_RDONLY;
  char const *refusal = NULL;
  if (flags & O_PATH)
    refusal = "O_PATH, which allows neither reading nor writing";
  else if (flags & O_APPEND)
    refusal = "O_APPEND, which ignores offsets";
  else if (flags & O_DIRECT)
    refusal = "O_DIRECT, which refuses most addresses and sizes";
  else if (mapped && !store->readable)
    refusal = "writing only, which cannot be mapped";
  if (refusal)
    umemVirtual_fail(store->ctx, umemValueError, "%s was opened with %s", store->label, refusal);
  return !refusal;
}

static umemStore *take_over(umemVirtual *ctx, umemStoreWish const *wish, bool mapped) {
  umemStore *store = create(ctx, NULL, wish->options);
  if (!store) return NULL;
  store->fd = wish->fd;
  store->taken_over = true;
  snprintf(store->label, sizeof store->label, "descriptor %d", wish->fd);
  return kept_if(check_access(store, mapped) && suits(store), store);
}

umemStore *umemStore_open(umemVirtual *ctx, umemStoreWish const *wish, bool mapped) {
  if (wish->source == umemStoreReplaces) return replace_file(ctx, wish);
  return (wish->source == umemStoreTakesOver ? take_over : open_file)(ctx, wish, mapped);
}

/* Where the file system cannot lock, no other lock can be hurt. */
static bool lock_file(umemStore *store) {
  if (UMEM_AGAIN(flock(store->fd, LOCK_EX | LOCK_NB)) == 0) return true;
  if (errno == EOPNOTSUPP || errno == ENOLCK || errno == ENOSYS) return true;
  if (errno != EWOULDBLOCK) return umemStore_fail_open(store, errno, "cannot lock");
  return UMEM_FAIL(store->ctx, umemIOError, "%s has another writer, who has locked it",
                   store->label);
}

/* Keeps blocks off the first length bytes. */
static bool skip(umemStore *store, uint64_t length) {
  uint64_t first = (length + umemStoreGranule - 1) & ~(uint64_t)(umemStoreGranule - 1);
  store->first = first;
  if (!first || umemRange_remove(store->range, 0, first)) return true;
  return UMEM_FAIL(store->ctx, umemMemoryError, "no room after the end of %s", store->label);
}

/* Whether all bytes of the file have their disk space. Asked of descriptors of our own only,
 * because it moves the file offset. Two sources must agree, since a file system may know
 * neither. */
static bool is_dense(umemStore *store, struct stat const *st) {
  return !store->taken_over && st->st_blocks >= st->st_size / 512 &&
         lseek(store->fd, 0, SEEK_HOLE) == st->st_size;
}

bool umemStore_start(umemStore *store) {
  struct stat st;
  if (store->writable && !lock_file(store)) return false;
  if (fstat(store->fd, &st) != 0) return umemStore_fail_open(store, errno, "cannot measure");
  if (store->appends && !skip(store, (uint64_t)st.st_size)) return false;
  uint64_t length = store->empties ? 0 : (uint64_t)st.st_size; /* as it will be */
  store->original = store->length = store->used = length;
  store->reserved = store->first;
  if (length && store->writable && !store->appends && is_dense(store, &st))
    store->reserved = length;
  store->building = store->started = true;
  return true;
}

/* ---- the end ---- */

/* Whether another process has opened the file meanwhile: as a writer who has locked it, or
 * otherwise as far as the system says. */
static bool is_visited(umemStore *store) {
  if (flock(store->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return true;
  return !umemStore_isolate(store) && errno == EAGAIN;
}

/* Removes the file that store has created, unless another one has its name by now, or another
 * process has opened it or written to it. */
static void remove_created(umemStore *store) {
  char const *slash = strrchr(store->path, '/');
  char const *name = slash ? slash + 1 : store->path;
  if (store->owner != getpid()) return;
  int folder = umemStore_open_directory(store, O_PATH);
  if (folder < 0) return;
  if (umem_is_file(store->fd, folder, name, 0) && !is_visited(store))
    umem_remove_file(store->fd, folder, name, 0);
  umemStore_end_isolation(store);
  close(folder);
}

void umemStore_close(umemStore *store) {
  if (!store) return;
  if (store->base) munmap(store->base, store->limit);
  if (store->view.base) munmap(store->view.base, store->view.size);
  end_replacing(store);
  bool ours = store->fd >= 0 && (store->started || !store->taken_over);
  if (store->created) remove_created(store);
  /* EINTR comes after the descriptor is gone: closing again could hit another one. */
  if (ours && close(store->fd) != 0 && errno != EINTR)
    umemStore_fail(store, umemIOError, errno, "closing");
  umemRange_destroy(store->range);
  umemTable_clear(&store->lost);
  umemLock_destroy(&store->lock);
  for (int i = 0; i < umemStoreTurns; i++) umemLock_destroy(&store->turns[i]);
  umem_dtor(&store->host);
  free(store->directory);
  free(store->path);
  free(store);
}
