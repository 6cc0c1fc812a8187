/* store_replace.c - see store_replace.h.
 *
 * The new file replaces the old one at one instant (base/new_file.h). Data come first, then the names, then
 * the folder: after a power cut the name leads to a complete file too. The folder is held open, so that it
 * may be renamed, or the working directory be changed, in between. */
#include "stores/store_replace.h"
#include "core/status.h"
#include "base/again.h"
#include "base/folders.h"
#include "base/new_file.h"
#include "stores/store_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

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

/* Opens the folder of path, which is relative to the folder before, and takes the rest of path as name.
 * Returns an errno. */
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

/* Refuses what has the name now and is of another user, in a folder of all users. Returns an errno. */
static int check_owner(umemReplace *replace) {
  struct stat about;
  int const folder = replace->file.folder;
  if (fstatat(folder, replace->file.name, &about, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? 0 : errno;
  int error = umem_is_planted(folder, &about, &replace->store->planted);
  return !error && replace->store->planted ? EACCES : error;
}

/* Goes where path leads, through symbolic links, also to a file that is not there. Returns an errno. */
static int follow(umemReplace *replace, char const *path) {
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

/* No file is where path leads. The system may see one all the same, as links of /proc lead to pipes, and
 * to files without a name, which cannot be replaced; or another process has just made it. */
static bool check_missing(umemReplace const *replace, char const *path, struct stat *old) {
  if (stat(path, old) == 0)
    return umemStore_check_mode(replace->store, old->st_mode) &&
           (old->st_nlink || fail(replace, ENOENT, "cannot replace"));
  old->st_mode = 0;
  return errno == ENOENT || fail(replace, errno, "cannot open");
}

/* Sets folder and name, and *old, whose mode is 0 where there is no file yet. Only a regular file that
 * this process may write is replaced. */
static bool find(umemReplace *replace, struct stat *old) {
  char const *path = replace->store->path;
  int error = follow(replace, path);
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

/* Whoever may not give files away keeps at least the group, where it is one of theirs. Returns an errno; *kept: the
 * group is that of old. */
static int keep_owner(int fd, struct stat const *old, bool *kept) {
  struct stat now;
  if (fstat(fd, &now) != 0) return errno;
  *kept = true;
  if (now.st_uid == old->st_uid && now.st_gid == old->st_gid) return 0;
  if (fchown(fd, old->st_uid, old->st_gid) == 0) return 0;
  if (now.st_gid == old->st_gid) return errno == EPERM || errno == EINVAL ? 0 : errno;
  if (errno == EPERM && fchown(fd, (uid_t)-1, old->st_gid) == 0) return 0;
  *kept = false;
  return errno == EPERM || errno == EINVAL ? 0 : errno;
}

static char const access_list[] = "system.posix_acl_access";

/* Without its access list the bits of the group would mean more than they did. */
static bool keep_access_list(umemReplace const *replace, int fd) {
  char const *path = replace->store->path;
  ssize_t size = getxattr(path, access_list, NULL, 0);
  if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return true;
  char *list = size < 0 ? NULL : malloc((size_t)size + 1);
  if (list) size = getxattr(path, access_list, list, (size_t)size);
  bool kept = list && size >= 0 && fsetxattr(fd, access_list, list, (size_t)size, 0) == 0;
  int error = errno;
  free(list);
  return kept || fail(replace, error, "cannot keep the access list of");
}

/* What the file of another group grants to its group is not granted to the group that the new one has instead. */
static mode_t mode_without_group(mode_t mode) {
  mode_t const others = mode & S_IRWXO;
  return mode & (S_IRWXU | S_IRWXO | others << 3);
}

/* Of the complete file; until then it is only the owner's. */
static bool keep_attributes(umemReplace *replace, struct stat const *old) {
  int const fd = replace->file.fd;
  bool keeps_group = false;
  int error = keep_owner(fd, old, &keeps_group);
  if (error) return fail(replace, error, "cannot keep the owner of");
  if (keeps_group && !keep_access_list(replace, fd)) return false;
  replace->file.permissions = (keeps_group ? old->st_mode : mode_without_group(old->st_mode)) &
                              (S_IRWXU | S_IRWXG | S_IRWXO);
  error = umemNewFile_protect(&replace->file);
  return !error || fail(replace, error, "cannot protect the file beside");
}

/* ---- begin, commit, end ---- */

bool umemReplace_begin(umemStore *store) {
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

/* Others write to it by this name: a lock would refuse them where the system locks over the network. */
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
  if (UMEM_AGAIN(fsync(store->fd)) != 0)
    return fail(replace, errno, "cannot flush the file beside");
  error = umemNewFile_replace(&replace->file);
  if (error) return fail(replace, error, "cannot replace");
  int result =
      replace->syncable ? UMEM_AGAIN(fsync(replace->file.folder)) : UMEM_AGAIN(syncfs(store->fd));
  return result == 0 || fail(replace, errno, "the new file is there, but cannot flush the name of");
}

void umemReplace_end(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!replace) return;
  umemNewFile_end(&replace->file);
  free(replace);
  store->replace = NULL;
}
