/* files.c - takes disk space, opens files in allowed folders alone, and names new files when they
 * are complete. */
#include "base/files.h"

#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ==== writing ==== */

int umem_write_all(int fd, char const *bytes, size_t nbytes) {
  while (nbytes) {
    ssize_t n = UMEM_AGAIN(write(fd, bytes, nbytes));
    if (n <= 0) return n ? errno : EIO;
    bytes += n;
    nbytes -= (size_t)n;
  }
  return 0;
}

/* ==== space ==== */

/* The end of a piece that begins at `at`: a multiple of the least one, so that pieces share no
 * page. */
static uint64_t end_of_piece(uint64_t at, uint64_t piece, uint64_t least, uint64_t to) {
  if (to - at <= piece) return to;
  return (at + piece) / least * least;
}

/* In one call, if signals let it end: some file systems undo all that a call has done when one
 * comes (tmpfs). Then in ever smaller pieces. */
int umem_change_space(int fd, int how, uint64_t from, uint64_t to) {
  uint64_t const least = 1 << 16;
  uint64_t piece = to - from;
  do {
    uint64_t end = end_of_piece(from, piece, least, to);
    if (fallocate(fd, how, (off_t)from, (off_t)(end - from)) == 0)
      from = end;
    else if (errno != EINTR)
      return errno;
    else if (piece > least)
      piece = piece / 2 > least ? piece / 2 : least;
  } while (from < to);
  return 0;
}

/* What a disk keeps back for root is not for others. */
int umem_free_on_disk(int fd, uint64_t *bytes) {
  struct statvfs disk;
  *bytes = UINT64_MAX;
  if (UMEM_AGAIN(fstatvfs(fd, &disk)) != 0) return errno;
  uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  bool known = disk.f_blocks && disk.f_frsize && (disk.f_bfree || disk.f_bavail);
  if (known && __builtin_mul_overflow(blocks, (uint64_t)disk.f_frsize, bytes)) *bytes = UINT64_MAX;
  return 0;
}

/* ==== folders ====
 *
 * Paths are not compared as texts: "..", symbolic links, mounts and other names of one folder would
 * have to be understood as the kernel does, and could change in between. Instead the folder that
 * holds the file is opened, the way from there up to the root is looked at for one of the allowed
 * folders, and the file is opened in that very folder, without following a link. A link is followed
 * here, in the same way. */

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

int umem_close_failed(int fd) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

/* False with errno for a path that is too long. */
static bool copy_path(char text[PATH_MAX], char const *path) {
  if (strlen(path) < PATH_MAX) return strcpy(text, path);
  errno = ENAMETOOLONG;
  return false;
}

/* Cuts text into the folder, relative to one that is open, and the name in it. False for what names
 * no file. */
static bool split(char *text, char const **folder, char **name) {
  char *slash = strrchr(text, '/');
  *name = slash ? slash + 1 : text;
  *folder = !slash ? "." : slash == text ? "/" : text;
  if (slash) *slash = 0;
  return **name && strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0;
}

/* Opens the folder in which text, relative to the folder at, has its file; at is closed. -1 and
 * errno where that is not allowed. allowed: NULL for any folder. */
static int open_folder(umemFolders const *allowed, int at, char *text, char **name) {
  char const *folder;
  bool is_file = split(text, &folder, name);
  int fd = is_file ? open_at(at, folder) : -1;
  if (!is_file) errno = EISDIR;
  umem_close_failed(at);
  if (fd < 0 || !allowed || is_inside(allowed, fd)) return fd;
  errno = EACCES;
  return umem_close_failed(fd);
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
  int at = AT_FDCWD;
  if (!copy_path(text, path)) return -1;
  for (int links = 0; links < most_links; links++) {
    at = open_folder(allowed, at, text, &name);
    if (at < 0) return -1;
    int fd = openat(at, name, flags | O_NOFOLLOW, permissions);
    if (fd >= 0 && (flags & O_PATH) && is_link(fd)) {
      errno = ELOOP;
      fd = umem_close_failed(fd);
    }
    int const error = errno;
    if (fd < 0 && error == ELOOP && read_link(at, name, text)) continue;
    errno = error;
    umem_close_failed(at);
    return fd;
  }
  errno = ELOOP;
  return umem_close_failed(at);
}

int umem_open_path(char const *path, int flags, mode_t permissions) {
  return current ? open_inside(current, path, flags, permissions) : open(path, flags, permissions);
}

int umem_open_folder(char const *path, char *name) {
  char text[PATH_MAX], *last;
  int fd = copy_path(text, path) ? open_folder(current, AT_FDCWD, text, &last) : -1;
  if (fd < 0) return -1;
  if (strlen(last) <= NAME_MAX) return strcpy(name, last), fd;
  errno = ENAMETOOLONG;
  return umem_close_failed(fd);
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

/* Whether the file fd is not the one that name leads to by now, in a folder where somebody else may
 * have removed a link that has led to it. about: NULL where there is none. Returns an errno. */
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
  if (!copy_path(text, path)) return errno;
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

/* ==== hosts ==== */

static _Thread_local char const *current_hosts; /* of the thread; NULL: any host is allowed */

char const *umemHosts_hold(char const *hosts) {
  char const *before = current_hosts;
  current_hosts = hosts;
  return before;
}

char const *umemHosts_held(void) { return current_hosts; }

/* Whether pattern, of so many characters, is the host, or a domain above it. */
static bool names_host(char const *pattern, size_t length, char const *host) {
  size_t have = strlen(host);
  bool below = length > 2 && !strncmp(pattern, "*.", 2);
  if (below) pattern++, length--; /* with the dot */
  if (below ? have <= length : have != length) return false;
  return !strncasecmp(pattern, host + have - length, length);
}

bool umemHosts_allow(char const *hosts, char const *host, char const *port, bool usual_port) {
  for (; hosts && *hosts; hosts += strspn(hosts, " ")) {
    size_t length = strcspn(hosts, " "), name = length;
    while (name && hosts[name - 1] != ':' && hosts[name - 1] != ']') name--;
    bool has_port = name && hosts[name - 1] == ':'; /* "[::1]" has none */
    size_t named = has_port ? name - 1 : length;
    bool fits = has_port
                    ? strlen(port) == length - name && !strncmp(hosts + name, port, length - name)
                    : usual_port;
    if (fits && names_host(hosts, named, host)) return true;
    hosts += length;
  }
  return !hosts;
}

/* ==== removal ==== */

bool umem_is_file(int fd, int folder, char const *name, uint64_t length) {
  struct stat mine, there;
  return fstat(fd, &mine) == 0 && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == there.st_dev && mine.st_ino == there.st_ino &&
         (uint64_t)mine.st_size == length;
}

/* Between a look and an unlink another file could get the name. So the file moves to a name that no
 * other process uses before the look that counts. */
void umem_remove_file(int fd, int folder, char const *name, uint64_t length) {
  unsigned long long number;
  char aside[40];
  if (!umem_is_file(fd, folder, name, length)) return;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return;
  snprintf(aside, sizeof aside, ".umem-%016llx", number);
  if (renameat2(folder, name, folder, aside, RENAME_NOREPLACE) != 0) return;
  if (umem_is_file(fd, folder, aside, length))
    unlinkat(folder, aside, 0);
  else
    renameat2(folder, aside, folder, name, RENAME_NOREPLACE);
}

/* ==== new files ====
 *
 * A file without a name gets one by linkat, which cannot replace another file; rename can, but
 * wants a name to begin with. So a file that is to replace another gets a hidden name just before
 * it is renamed. */

enum { most_tries = 100, /* of hidden names, which no other file should have */ proc_size = 32 };

/* ---- hidden names ---- */

/* Finds a name that no other file has, and that is unknown before; action makes the file. Returns
 * what action does, at last -1 and errno. */
static int with_hidden_name(umemNewFile *file, int (*action)(umemNewFile *file)) {
  unsigned long long number;
  int result = -1;
  for (int tries = 0; tries < most_tries; tries++) {
    if (getrandom(&number, sizeof number, 0) != sizeof number) break;
    snprintf(file->hidden, sizeof file->hidden, ".umem-%016llx", number);
    result = action(file);
    if (result >= 0 || errno != EEXIST) break;
  }
  if (result < 0) file->hidden[0] = 0;
  return result;
}

/* Nothing more can be done about a failure. */
static void remove_hidden(umemNewFile *file) {
  if (file->hidden[0] && file->process == getpid()) unlinkat(file->folder, file->hidden, 0);
  file->hidden[0] = 0;
}

/* ---- permissions ---- */

enum { whole_mode = S_IRWXU | S_IRWXG | S_IRWXO, own_mode = S_IRUSR | S_IWUSR };

/* A file system without permissions refuses to change them. */
static int set_permissions(int fd, mode_t permissions) {
  struct stat about;
  if (fstat(fd, &about) != 0) return errno;
  return (about.st_mode & whole_mode) == permissions || fchmod(fd, permissions) == 0 ? 0 : errno;
}

/* Returns an errno. */
static int give_to(int fd, struct stat const *old, bool *kept) {
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

static mode_t mode_without_group(mode_t mode) {
  mode_t const others = mode & S_IRWXO;
  return mode & (S_IRWXU | S_IRWXO | others << 3);
}

int umemNewFile_keep_owner(umemNewFile *file, struct stat const *old, bool *kept) {
  int error = give_to(file->fd, old, kept);
  if (error) return error;
  mode_t const mode = *kept ? old->st_mode : mode_without_group(old->st_mode);
  file->permissions = mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  return 0;
}

int umemNewFile_keep_list(umemNewFile const *file, char const *path) {
  static char const name[] = "system.posix_acl_access";
  ssize_t size = getxattr(path, name, NULL, 0);
  if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return 0;
  char *list = size < 0 ? NULL : malloc((size_t)size + 1);
  if (list) size = getxattr(path, name, list, (size_t)size);
  bool kept = list && size >= 0 && fsetxattr(file->fd, name, list, (size_t)size, 0) == 0;
  int error = errno;
  free(list);
  return kept ? 0 : error;
}

int umemNewFile_protect(umemNewFile const *file) {
  int error = set_permissions(file->fd, own_mode);
  return error == EPERM ? 0 : error;
}

int umemNewFile_complete(umemNewFile const *file) {
  return set_permissions(file->fd, file->permissions);
}

/* ---- creation ---- */

static int open_in(int folder, char const *name, int flags) {
  return UMEM_AGAIN(openat(folder, name, flags | O_RDWR | O_CLOEXEC, 0666));
}

static int create_hidden(umemNewFile *file) {
  return open_in(file->folder, file->hidden, O_CREAT | O_EXCL);
}

/* The name by which a file without one can be linked. */
static char const *proc_name(int fd, char text[proc_size]) {
  snprintf(text, proc_size, "/proc/self/fd/%d", fd);
  return text;
}

/* EOPNOTSUPP where no file can be without a name, or be given one later. */
static int create_nameless(umemNewFile const *file) {
  char proc[proc_size];
  int fd = open_in(file->folder, ".", O_TMPFILE);
  if (fd >= 0 && access(proc_name(fd, proc), F_OK) == 0) return fd;
  if (fd >= 0 || errno == EISDIR || errno == EINVAL) errno = EOPNOTSUPP; /* of older systems */
  return umem_close_failed(fd);
}

/* Notes what the umask, or the access list of the folder, has given to the new file, and takes it
 * away. */
static int note_permissions(umemNewFile *file) {
  struct stat about;
  if (fstat(file->fd, &about) != 0) return errno;
  file->permissions = about.st_mode & whole_mode;
  return umemNewFile_protect(file);
}

int umemNewFile_create(umemNewFile *file) {
  file->process = getpid();
  file->hidden[0] = 0;
  file->named = false;
  file->fd = create_nameless(file);
  if (file->fd < 0 && errno == EOPNOTSUPP) file->fd = with_hidden_name(file, create_hidden);
  int error = file->fd < 0 ? errno : note_permissions(file);
  if (!error || file->fd < 0) return error;
  remove_hidden(file);
  close(file->fd);
  file->fd = -1;
  return error;
}

/* ---- the name ---- */

static int link_as(umemNewFile const *file, char const *name) {
  char proc[proc_size];
  return linkat(AT_FDCWD, proc_name(file->fd, proc), file->folder, name, AT_SYMLINK_FOLLOW);
}

static int link_hidden(umemNewFile *file) { return link_as(file, file->hidden); }

int umemNewFile_show(umemNewFile *file) {
  return file->hidden[0] || with_hidden_name(file, link_hidden) >= 0 ? 0 : errno;
}

/* If the old name cannot be removed, the file has two, and is complete all the same. */
static int move_over_nothing(umemNewFile const *file) {
  int const folder = file->folder;
  if (syscall(SYS_renameat2, folder, file->hidden, folder, file->name, RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (linkat(folder, file->hidden, folder, file->name, 0) != 0) return errno;
  unlinkat(folder, file->hidden, 0);
  return 0;
}

/* Returns 0. */
static int got_name(umemNewFile *file) {
  file->hidden[0] = 0;
  file->named = true;
  return 0;
}

int umemNewFile_publish(umemNewFile *file) {
  int error = umemNewFile_complete(file);
  if (error) return error;
  if (file->hidden[0])
    error = move_over_nothing(file);
  else if (link_as(file, file->name) != 0)
    error = errno;
  return error ? error : got_name(file);
}

int umemNewFile_replace(umemNewFile *file) {
  int error = umemNewFile_complete(file);
  if (!error && !file->hidden[0]) {
    if (link_as(file, file->name) == 0) return got_name(file);
    error = errno == EEXIST ? umemNewFile_show(file) : errno;
  }
  if (!error && renameat(file->folder, file->hidden, file->folder, file->name) == 0)
    return got_name(file);
  if (!error) error = errno;
  remove_hidden(file);
  return error;
}

void umemNewFile_withdraw(umemNewFile *file, uint64_t length) {
  if (file->named) umem_remove_file(file->fd, file->folder, file->name, length);
  file->named = false;
}

void umemNewFile_end(umemNewFile *file) {
  remove_hidden(file);
  if (file->folder >= 0) close(file->folder); /* nothing was written through it */
  file->folder = -1;
}
