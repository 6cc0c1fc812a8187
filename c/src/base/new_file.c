/* new_file.c - see new_file.h.
 *
 * A file without a name gets one by linkat, which cannot replace another file; rename can, but wants a name
 * to begin with. So a file that is to replace another gets a hidden name just before it is renamed. */
#include "base/new_file.h"
#include "base/again.h"
#include "base/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most_tries = 100, /* of hidden names, which nobody else should have */ proc_size = 32 };

/* ---- hidden names ---- */

/* Finds a name that no other file has, and that nobody can know before; action makes the file. Returns what action
 * does, at last -1 and errno. */
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
  if (fd >= 0 || errno == EISDIR || errno == EINVAL) { /* what older systems return */
    if (fd >= 0) close(fd);
    errno = EOPNOTSUPP;
  }
  return -1;
}

/* Notes what the umask, or the access list of the folder, has given to the new file, and takes it away. */
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
