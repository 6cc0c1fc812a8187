/* store_replace.c - see store_replace.h.
 *
 * rename(2) alone replaces a file at one instant, and it wants the new one to have a name already. A
 * file without a name gets a hidden one just before it is renamed (linkat cannot replace), or the final
 * one at once where no file has that yet. Data come first, then the names, then the folder: after a
 * power cut the name leads to a complete file too. The folder is held open, so that it may be renamed,
 * or the working directory be changed, in between. */
#include "stores/store_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
  links_most = 40, /* as Linux follows in one name */
  tries_most = 100 /* of hidden names, which nobody else should have */
};

typedef struct umemReplace {
  umemStore *store; /* borrowed */
  int folder;       /* owned: where the name is, links followed */
  bool syncable;    /* folder is open for reading, so that fsync takes it */
  bool committed;
  char name[NAME_MAX + 1]; /* in folder: what the new file is to be called */
  char hidden[64];         /* in folder: what it is called now; empty while it has no name */
} umemReplace;

/* ---- failures ---- */

static bool fail(umemReplace const *replace, int error, char const *what) {
  return umemStore_fail(replace->store, error == ENOMEM ? umemMemoryError : umemIOError, error,
                        what);
}

/* The descriptor, or -1 and errno, as of openat; it survives signals. */
static int open_in(int folder, char const *name, int flags, mode_t permissions) {
  int fd;
  do fd = openat(folder, name, flags | O_CLOEXEC, permissions);
  while (fd < 0 && errno == EINTR);
  return fd;
}

/* ---- finding the file ---- */

/* Opens the folder that has path, relative to the folder before, and takes what comes after it as
 * name. Returns an errno. */
static int enter(umemReplace *replace, char const *path) {
  char folder[PATH_MAX];
  char const *slash = strrchr(path, '/');
  char const *name = slash ? slash + 1 : path;
  size_t length = (size_t)(name - path);
  if (length >= sizeof folder || strlen(name) > NAME_MAX) return ENAMETOOLONG;
  if (!*name) return EISDIR;
  memcpy(replace->name, name, strlen(name) + 1);
  if (!length && replace->folder != AT_FDCWD) return 0; /* a link to its neighbour */
  memcpy(folder, path, length);
  folder[length] = 0;
  if (!length) memcpy(folder, ".", 2);
  int const before = replace->folder;
  replace->folder = open_in(before, folder, O_RDONLY | O_DIRECTORY, 0);
  replace->syncable = replace->folder >= 0;
  if (replace->folder < 0 && errno == EACCES)
    replace->folder = open_in(before, folder, O_PATH | O_DIRECTORY, 0);
  int error = replace->folder < 0 ? errno : 0;
  if (before >= 0) close(before);
  return error;
}

/* Goes where path leads, through symbolic links, also to a file that is not there. Returns an errno. */
static int follow(umemReplace *replace, char const *path) {
  char link[PATH_MAX];
  int error = enter(replace, path);
  for (int links = 0; !error; links++) {
    ssize_t length = readlinkat(replace->folder, replace->name, link, sizeof link);
    if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    if (links == links_most) return ELOOP;
    if ((size_t)length == sizeof link) return ENAMETOOLONG;
    link[length] = 0;
    error = enter(replace, link);
  }
  return error;
}

static bool check_regular(umemReplace const *replace, struct stat const *old) {
  if (S_ISREG(old->st_mode)) return true;
  umemVirtual_fail(replace->store->ctx, umemIOError, "%s is %s, not a regular file",
                   replace->store->label,
                   S_ISDIR(old->st_mode) ? "a directory" : "a device, a pipe or a socket");
  return false;
}

/* No file is where path leads. The system may see one all the same, as links of /proc lead to pipes, and
 * to files without a name, which cannot be replaced; or another process has just made it. */
static bool check_missing(umemReplace const *replace, char const *path, struct stat *old) {
  if (stat(path, old) == 0)
    return check_regular(replace, old) &&
           (old->st_nlink || fail(replace, ENOENT, "cannot replace"));
  old->st_mode = 0;
  return errno == ENOENT || fail(replace, errno, "cannot open");
}

/* Sets folder and name, and *old, whose mode is 0 where there is no file yet. Only a regular file that
 * this process may write is replaced. */
static bool find(umemReplace *replace, struct stat *old) {
  char const *path = replace->store->path;
  int error = follow(replace, path);
  if (error == EISDIR && stat(path, old) == 0) return check_regular(replace, old);
  if (error) return fail(replace, error, "cannot open");
  if (fstatat(replace->folder, replace->name, old, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? check_missing(replace, path, old)
                           : fail(replace, errno, "cannot examine");
  return check_regular(replace, old) &&
         (faccessat(replace->folder, replace->name, W_OK, AT_EACCESS) == 0 ||
          fail(replace, errno, "cannot replace"));
}

/* ---- the new file ---- */

/* A name that no other file has, in replace->hidden; action makes the file. Returns what action does,
 * at last -1 and errno. */
static int with_hidden_name(umemReplace *replace, int (*action)(umemReplace *, int), int argument) {
  static unsigned last;
  int result = -1;
  for (int tries = 0; tries < tries_most; tries++) {
    snprintf(replace->hidden, sizeof replace->hidden, ".umem-%ld-%u", (long)getpid(),
             __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
    result = action(replace, argument);
    if (result >= 0 || errno != EEXIST) break;
  }
  if (result < 0) replace->hidden[0] = 0;
  return result;
}

static int create_hidden(umemReplace *replace, int permissions) {
  return open_in(replace->folder, replace->hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
                 (mode_t)permissions);
}

/* What linkat can make a name for. */
static void name_of_descriptor(char path[64], int fd) {
  snprintf(path, 64, "/proc/self/fd/%d", fd);
}

/* A file without a name; -1 where there is no way to give it one later. */
static int open_nameless(umemReplace const *replace, mode_t permissions) {
  char path[64];
  int fd = open_in(replace->folder, ".", O_TMPFILE | O_RDWR, permissions);
  if (fd < 0) return -1;
  name_of_descriptor(path, fd);
  if (access(path, F_OK) == 0) return fd;
  close(fd);
  errno = EOPNOTSUPP; /* no /proc */
  return -1;
}

/* Permissions of a file that replaces another are set before anybody can open it. */
static int open_new(umemReplace *replace, bool replaces) {
  mode_t permissions = replaces ? 0600 : 0666;
  int fd = open_nameless(replace, permissions);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
    fd = with_hidden_name(replace, create_hidden, (int)permissions);
  if (fd < 0) fail(replace, errno, "cannot create a file beside");
  return fd;
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
  if (!replace) {
    umemVirtual_fail(store->ctx, umemMemoryError, "no memory for a new context");
    return false;
  }
  replace->store = store;
  replace->folder = AT_FDCWD;
  store->replace = replace;
  if (find(replace, &old) && umemStore_check_place(store, store->path))
    store->fd = open_new(replace, old.st_mode != 0);
  return store->fd >= 0 && (!old.st_mode || keep_attributes(replace, store->fd, &old));
}

static int link_hidden(umemReplace *replace, int fd) {
  char path[64];
  name_of_descriptor(path, fd);
  return linkat(AT_FDCWD, path, replace->folder, replace->hidden, AT_SYMLINK_FOLLOW);
}

/* Whether the file without a name now has the final one, which nobody else has yet. */
static bool link_final(umemReplace const *replace, int fd) {
  char path[64];
  name_of_descriptor(path, fd);
  return linkat(AT_FDCWD, path, replace->folder, replace->name, AT_SYMLINK_FOLLOW) == 0;
}

/* Nothing more can be done about a failure. A forked child leaves its parent's file alone. */
static void remove_hidden(umemReplace *replace) {
  if (replace->hidden[0] && replace->store->owner == getpid())
    unlinkat(replace->folder, replace->hidden, 0);
  replace->hidden[0] = 0;
}

static bool give_name(umemReplace *replace, int fd) {
  if (!replace->hidden[0]) {
    if (link_final(replace, fd)) return true;
    if (errno != EEXIST || with_hidden_name(replace, link_hidden, fd) < 0)
      return fail(replace, errno, "cannot replace");
  }
  if (renameat(replace->folder, replace->hidden, replace->folder, replace->name) != 0) {
    fail(replace, errno, "cannot replace");
    remove_hidden(replace);
    return false;
  }
  replace->hidden[0] = 0;
  return true;
}

static int sync_retrying(int sync(int fd), int fd) {
  int result;
  do result = sync(fd);
  while (result != 0 && errno == EINTR);
  return result;
}

bool umemReplace_commit(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!replace || replace->committed) {
    umemVirtual_fail(store->ctx, umemValueError,
                     replace ? "%s has been replaced already"
                             : "%s was not opened to replace a file",
                     store->label);
    return false;
  }
  if (sync_retrying(fsync, store->fd) != 0)
    return fail(replace, errno, "cannot flush the file beside");
  if (!give_name(replace, store->fd)) return false;
  replace->committed = true;
  int result =
      replace->syncable ? sync_retrying(fsync, replace->folder) : sync_retrying(syncfs, store->fd);
  return result == 0 || fail(replace, errno, "the new file is there, but cannot flush the name of");
}

void umemReplace_end(umemStore *store) {
  umemReplace *replace = store->replace;
  if (!replace) return;
  remove_hidden(replace);
  if (replace->folder >= 0) close(replace->folder); /* read-only: nothing to lose */
  free(replace);
  store->replace = NULL;
}
