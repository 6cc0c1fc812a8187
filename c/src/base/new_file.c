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
#include <sys/syscall.h>
#include <unistd.h>

enum { most_tries = 100, /* of hidden names, which nobody else should have */ proc_size = 32 };

/* ---- hidden names ---- */

/* Finds a name that no other file has; action makes the file. Returns what action does, at last -1 and
 * errno. */
static int with_hidden_name(umemNewFile *file, int (*action)(umemNewFile *file, mode_t permissions),
                            mode_t permissions) {
  static unsigned last; /* atomic */
  int result = -1;
  for (int tries = 0; tries < most_tries; tries++) {
    snprintf(file->hidden, sizeof file->hidden, ".umem-%ld-%u", (long)getpid(),
             __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
    result = action(file, permissions);
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

/* ---- creation ---- */

static int open_in(int folder, char const *name, int flags, mode_t permissions) {
  return UMEM_AGAIN(openat(folder, name, flags | O_RDWR | O_CLOEXEC, permissions));
}

static int create_hidden(umemNewFile *file, mode_t permissions) {
  return open_in(file->folder, file->hidden, O_CREAT | O_EXCL, permissions);
}

/* The name by which a file without one can be linked. */
static char const *proc_name(int fd, char text[proc_size]) {
  snprintf(text, proc_size, "/proc/self/fd/%d", fd);
  return text;
}

/* EOPNOTSUPP where no file can be without a name, or be given one later. */
static int create_nameless(umemNewFile const *file, mode_t permissions) {
  char proc[proc_size];
  int fd = open_in(file->folder, ".", O_TMPFILE, permissions);
  if (fd >= 0 && access(proc_name(fd, proc), F_OK) == 0) return fd;
  if (fd >= 0 || errno == EISDIR || errno == EINVAL) { /* what older systems return */
    if (fd >= 0) close(fd);
    errno = EOPNOTSUPP;
  }
  return -1;
}

int umemNewFile_create(umemNewFile *file, mode_t permissions) {
  file->process = getpid();
  file->hidden[0] = 0;
  file->named = false;
  file->fd = create_nameless(file, permissions);
  if (file->fd < 0 && errno == EOPNOTSUPP)
    file->fd = with_hidden_name(file, create_hidden, permissions);
  return file->fd < 0 ? errno : 0;
}

/* ---- the name ---- */

static int link_as(umemNewFile const *file, char const *name) {
  char proc[proc_size];
  return linkat(AT_FDCWD, proc_name(file->fd, proc), file->folder, name, AT_SYMLINK_FOLLOW);
}

static int link_hidden(umemNewFile *file, mode_t unused) {
  (void)unused;
  return link_as(file, file->hidden);
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
  int error = 0;
  if (file->hidden[0])
    error = move_over_nothing(file);
  else if (link_as(file, file->name) != 0)
    error = errno;
  return error ? error : got_name(file);
}

int umemNewFile_replace(umemNewFile *file) {
  if (!file->hidden[0]) {
    if (link_as(file, file->name) == 0) return got_name(file);
    if (errno != EEXIST || with_hidden_name(file, link_hidden, 0) < 0) return errno;
  }
  if (renameat(file->folder, file->hidden, file->folder, file->name) == 0) return got_name(file);
  int error = errno;
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
