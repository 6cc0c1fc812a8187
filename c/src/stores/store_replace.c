/* store_replace.c - see store_replace.h.
 *
 * The new file replaces the old one at one instant (base/new_file.h). Data come first, then the names, then
 * the folder: after a power cut the name leads to a complete file too. The folder is held open, so that it
 * may be renamed, or the working directory be changed, in between. */
#include "stores/store_replace.h"
#include "core/status.h"
#include "base/again.h"
#include "base/new_file.h"
#include "stores/store_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { links_most = 40 /* as Linux follows in one name */ };

typedef struct umemReplace {
  umemStore *store; /* borrowed */
  umemNewFile file; /* in the folder that the name leads to; its fd is store->fd */
  bool syncable;    /* the folder is open for reading, so that fsync takes it */
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

/* Goes where path leads, through symbolic links, also to a file that is not there. Returns an errno. */
static int follow(umemReplace *replace, char const *path) {
  char link[PATH_MAX];
  int error = enter(replace, path);
  for (int links = 0; !error; links++) {
    ssize_t length = readlinkat(replace->file.folder, replace->file.name, link, sizeof link);
    if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    if (links == links_most) return ELOOP;
    if ((size_t)length == sizeof link) return ENAMETOOLONG;
    link[length] = 0;
    error = enter(replace, link);
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
  if (error) return fail(replace, error, "cannot open");
  if (fstatat(replace->file.folder, replace->file.name, old, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? check_missing(replace, path, old)
                           : fail(replace, errno, "cannot examine");
  return umemStore_check_mode(replace->store, old->st_mode) &&
         (faccessat(replace->file.folder, replace->file.name, W_OK, AT_EACCESS) == 0 ||
          fail(replace, errno, "cannot replace"));
}

/* ---- the new file ---- */

/* Permissions of a file that replaces another are set before anybody can open it. */
static int open_new(umemReplace *replace, bool replaces) {
  int error = umemNewFile_create(&replace->file, replaces ? 0600 : 0666);
  if (error) fail(replace, error, "cannot create a file beside");
  return replace->file.fd;
}

/* ---- owner and permissions ---- */

/* Whoever may not give files away keeps at least the group, where it is one of theirs. */
static bool keep_owner(umemReplace const *replace, int fd, struct stat const *old) {
  struct stat now;
  if (fstat(fd, &now) != 0) return fail(replace, errno, "cannot examine the file beside");
  if (now.st_uid == old->st_uid && now.st_gid == old->st_gid) return true;
  if (fchown(fd, old->st_uid, old->st_gid) == 0) return true;
  if (errno == EPERM && fchown(fd, (uid_t)-1, old->st_gid) == 0) return true;
  return errno == EPERM || errno == EINVAL || fail(replace, errno, "cannot keep the owner of");
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

static bool keep_mode(umemReplace const *replace, int fd, struct stat const *old) {
  mode_t const bits = S_IRWXU | S_IRWXG | S_IRWXO;
  struct stat now;
  if (fstat(fd, &now) != 0) return fail(replace, errno, "cannot examine the file beside");
  return (now.st_mode & bits) == (old->st_mode & bits) || fchmod(fd, old->st_mode & bits) == 0 ||
         fail(replace, errno, "cannot keep the permissions of");
}

static bool keep_attributes(umemReplace const *replace, int fd, struct stat const *old) {
  return keep_owner(replace, fd, old) && keep_access_list(replace, fd) &&
         keep_mode(replace, fd, old);
}

/* ---- begin, commit, end ---- */

bool umemReplace_begin(umemStore *store) {
  struct stat old;
  umemReplace *replace = calloc(1, sizeof *replace);
  if (!replace) return UMEM_FAIL(store->ctx, umemMemoryError, "no memory for a new context");
  replace->store = store;
  replace->file.folder = AT_FDCWD;
  store->replace = replace;
  if (find(replace, &old) && umemStore_check_place(store, store->path))
    store->fd = open_new(replace, old.st_mode != 0);
  return store->fd >= 0 && (!old.st_mode || keep_attributes(replace, store->fd, &old));
}

bool umemReplace_commit(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!replace || replace->file.named)
    return UMEM_FAIL(store->ctx, umemValueError,
                     replace ? "%s has been replaced already"
                             : "%s was not opened to replace a file",
                     store->label);
  if (UMEM_AGAIN(fsync(store->fd)) != 0)
    return fail(replace, errno, "cannot flush the file beside");
  int error = umemNewFile_replace(&replace->file);
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
