/* folders.c - see folders.h.
 *
 * Paths are not compared as texts: "..", symbolic links, mounts and other names of one folder would have to
 * be understood as the kernel does, and could change in between. Instead the folder that holds the file is
 * opened, the way from there up to the root is looked at for one of the allowed folders, and the file is
 * opened in that very folder, without following a link. A link is followed here, in the same way. */
#include "base/folders.h"
#include "base/again.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { folder_flags = O_PATH | O_DIRECTORY | O_CLOEXEC, most_links = 40 };

static _Thread_local umemFolders const *current; /* of the thread; NULL: any folder is allowed */

/* ---- folders ---- */

static bool identify(int fd, umemFolder *folder) {
  struct stat st;
  if (fstat(fd, &st) != 0) return false;
  *folder = (umemFolder){st.st_dev, st.st_ino};
  return true;
}

static bool is_same(umemFolder one, umemFolder other) {
  return one.device == other.device && one.inode == other.inode;
}

static bool is_listed(umemFolders const *allowed, umemFolder folder) {
  for (size_t i = 0; i < allowed->count; i++)
    if (is_same(allowed->list[i], folder)) return true;
  return false;
}

static int open_at(int at, char const *path) { return UMEM_AGAIN(openat(at, path, folder_flags)); }

/* Whether the folder fd is one of the allowed, or below one. What cannot be looked at is not. */
static bool is_inside(umemFolders const *allowed, int fd) {
  umemFolder here, above;
  int at = open_at(fd, ".");
  bool inside = false;
  while (at >= 0 && identify(at, &here) && !(inside = is_listed(allowed, here))) {
    int up = open_at(at, "..");
    close(at);
    at = up;
    if (at < 0 || !identify(at, &above) || is_same(here, above)) break; /* the root is its own */
  }
  if (at >= 0) close(at);
  return inside;
}

/* ---- opening ---- */

/* Cuts text into the folder, relative to one that is open, and the name in it. False for what names no
 * file. */
static bool split(char *text, char const **folder, char **name) {
  char *slash = strrchr(text, '/');
  *name = slash ? slash + 1 : text;
  *folder = !slash ? "." : slash == text ? "/" : text;
  if (slash) *slash = 0;
  return **name && strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0;
}

/* Opens the folder in which text, relative to the folder at, has its file; at is closed. -1 and errno where
 * that is not allowed. allowed: NULL for any folder. */
static int open_folder(umemFolders const *allowed, int at, char *text, char **name) {
  char const *folder;
  bool is_file = split(text, &folder, name);
  int fd = is_file ? open_at(at, folder) : -1;
  int error = is_file ? errno : EISDIR;
  if (at != AT_FDCWD) close(at);
  if (fd >= 0 && (!allowed || is_inside(allowed, fd))) return fd;
  if (fd >= 0) {
    close(fd);
    error = EACCES;
  }
  errno = error;
  return -1;
}

/* O_PATH opens a link as it is. */
static bool is_link(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Puts where the link name in the folder fd leads to into text. */
static bool read_link(int fd, char const *name, char text[PATH_MAX]) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(fd, name, target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = 0;
  memcpy(text, target, (size_t)length + 1);
  return true;
}

static int open_inside(umemFolders const *allowed, char const *path, int flags,
                       mode_t permissions) {
  char text[PATH_MAX], *name;
  if (strlen(path) >= sizeof text) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(text, path);
  int at = AT_FDCWD;
  for (int links = 0; links < most_links; links++) {
    at = open_folder(allowed, at, text, &name);
    if (at < 0) return -1;
    int fd = openat(at, name, flags | O_NOFOLLOW, permissions);
    int error = errno;
    if (fd >= 0 && (flags & O_PATH) && is_link(fd)) {
      close(fd);
      fd = -1;
      error = ELOOP;
    }
    if (fd < 0 && error == ELOOP && read_link(at, name, text)) continue;
    close(at);
    errno = error;
    return fd;
  }
  close(at);
  errno = ELOOP;
  return -1;
}

int umem_open_path(char const *path, int flags, mode_t permissions) {
  return current ? open_inside(current, path, flags, permissions) : open(path, flags, permissions);
}

int umem_open_folder(char const *path, char *name) {
  char text[PATH_MAX], *last;
  if (strlen(path) >= sizeof text) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(text, path);
  int fd = open_folder(current, AT_FDCWD, text, &last);
  if (fd < 0) return -1;
  if (strlen(last) <= NAME_MAX) {
    strcpy(name, last);
    return fd;
  }
  close(fd);
  errno = ENAMETOOLONG;
  return -1;
}

/* ---- what other users put there ---- */

/* Whether everybody may put files into the folder, and remove only their own. */
static bool is_shared(struct stat const *folder) {
  return (folder->st_mode & S_ISVTX) && (folder->st_mode & S_IWOTH);
}

int umem_is_planted(int folder, struct stat const *about, bool *planted) {
  struct stat above;
  if (fstat(folder, &above) != 0) return errno;
  *planted = is_shared(&above) && about->st_uid != geteuid() && about->st_uid != above.st_uid;
  return 0;
}

/* Whether the file fd is not the one that name leads to by now, in a folder where somebody else may have removed a link
 * that has led to it. about: NULL where there is none. Returns an errno. */
static int is_swapped(int folder, struct stat const *about, int fd, bool *swapped) {
  struct stat above, opened;
  if (fd < 0) return 0;
  if (fstat(folder, &above) != 0 || fstat(fd, &opened) != 0) return errno;
  *swapped = is_shared(&above) &&
             (!about || opened.st_dev != about->st_dev || opened.st_ino != about->st_ino);
  return 0;
}

static int is_in_proc(int folder, bool *in_proc) {
  struct statfs disk;
  if (UMEM_AGAIN(fstatfs(folder, &disk)) != 0) return errno;
  *in_proc = disk.f_type == PROC_SUPER_MAGIC;
  return 0;
}

/* Looks at name in folder. *goes_on: it is a link, and text is where it leads. Returns an errno. */
static int look(int folder, char const *name, int fd, char text[PATH_MAX], bool *planted,
                bool *goes_on) {
  struct stat about;
  bool in_proc = false;
  bool const is_there = fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0;
  *goes_on = *planted = false;
  if (!is_there && errno != ENOENT) return errno;
  int error = is_there ? umem_is_planted(folder, &about, planted) : 0;
  if (error || *planted) return error;
  bool const is_link = is_there && S_ISLNK(about.st_mode);
  if (!is_link) return is_swapped(folder, is_there ? &about : NULL, fd, planted);
  error = is_in_proc(folder, &in_proc);
  if (error || in_proc) return error;
  *goes_on = true;
  return read_link(folder, name, text) ? 0 : errno;
}

int umem_leads_to_planted(char const *path, int fd, bool *planted) {
  char text[PATH_MAX], *name;
  bool goes_on = true;
  int at = AT_FDCWD, error = 0;
  if (strlen(path) >= sizeof text) return ENAMETOOLONG;
  strcpy(text, path);
  for (int links = 0; !error && goes_on; links++) {
    if (links == most_links) return close(at), ELOOP;
    at = open_folder(NULL, at, text, &name);
    if (at < 0) return errno;
    error = look(at, name, fd, text, planted, &goes_on);
  }
  close(at);
  return error;
}

/* ---- what is allowed ---- */

int umemFolders_add(umemFolders *folders, char const *path) {
  int fd = path ? open_at(AT_FDCWD, path) : -1;
  int error = path ? errno : EINVAL;
  if (fd < 0) return error;
  error = identify(fd, &folders->list[folders->count]) ? 0 : errno;
  if (!error) folders->count++;
  close(fd);
  return error;
}

bool umemFolders_refuse(umemFolders const *folders, char const *path) {
  int fd = open_inside(folders, path, O_PATH | O_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd < 0 && errno == EACCES;
}

umemFolders const *umemFolders_hold(umemFolders const *folders) {
  umemFolders const *before = current;
  current = folders;
  return before;
}

umemFolders const *umemFolders_held(void) { return current; }
