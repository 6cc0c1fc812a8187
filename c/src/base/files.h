/* files.h - calls on files that other processes may change, link or replace at the same time: disk
 * space, the folders that a thread may open files in, files that get their names late. */
#ifndef UMEM_FILES_H
#define UMEM_FILES_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ==== system calls that signals interrupt ==== */

/* The result of call, which is made again while a signal interrupts it. */
#define UMEM_AGAIN(call)                                                                           \
  __extension__({                                                                                  \
    __typeof__(call) result_;                                                                      \
    do result_ = (call);                                                                           \
    while (result_ < 0 && errno == EINTR);                                                         \
    result_;                                                                                       \
  })

/* Writes all bytes. Returns an errno. */
int umem_write_all(int fd, char const *bytes, size_t nbytes);

/* ==== space ==== */

/* fallocate of [from, to), with its flags. Signals do not keep it from ending, however often they
 * come. Returns an errno; part of it may be done then. */
int umem_change_space(int fd, int how, uint64_t from, uint64_t to);

/* Whether the process may make a file this long. Passing the limit (RLIMIT_FSIZE), which is stored
 * in *limit, sends SIGXFSZ, which kills. */
static inline bool umem_may_write_to(uint64_t length, uint64_t *limit) {
  struct rlimit allowed;
  *limit = getrlimit(RLIMIT_FSIZE, &allowed) == 0 ? allowed.rlim_cur : RLIM_INFINITY;
  return length <= *limit;
}
_Static_assert(RLIM_INFINITY == UINT64_MAX, "no length passes it");

/* Whether error says that there is no room: on the disk, in a quota, in memory. */
static inline bool umem_is_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
}

/* The bytes of the disk of fd that this process may still take; UINT64_MAX where the disk does not
 * say. Returns an errno. */
int umem_free_on_disk(int fd, uint64_t *bytes);

/* ==== folders ====
 *
 * umem_open_with keeps the calling thread to some folders while it constructs contexts. Whoever
 * opens a file for a context opens it by the functions below, and needs to know nothing of that. */

/* ---- opening ---- */

/* As open, where the calling thread is kept to folders: -1, and EACCES, for a file that is in none
 * of them, symbolic links followed. Nothing outside is created or changed. */
int umem_open_path(char const *path, int flags, mode_t permissions);

/* Opens the folder in which path has its file, with O_PATH, and copies the name of the file there
 * to name, NAME_MAX + 1 bytes. -1 and errno otherwise, also where the thread is kept to other
 * folders (EACCES). */
int umem_open_folder(char const *path, char *name);

/* Closes fd if it is not negative, and leaves errno as it is. Returns -1. */
int umem_close_failed(int fd);

/* ---- what other users put there ---- */

/* Sets *planted: whether about, of a file or link in folder, belongs to another user, in a folder
 * where everybody may put files, as /tmp (sticky, writable for all). The owner of the folder is
 * trusted. Returns an errno. */
int umem_is_planted(int folder, struct stat const *about, bool *planted);

/* Sets *planted to whether a link on the way from path, or the file where that ends, is planted.
 * fd: the file that was opened by it; another one is there by now, if it is not that. -1: none was
 * opened. Folders above are not looked at. Links of /proc lead to a file by themselves. */
int umem_leads_to_planted(char const *path, int fd, bool *planted);

/* ---- what is allowed ---- */

/* A folder as the kernel knows it, under whatever name. */
typedef struct umemFolder {
  dev_t device;
  ino_t inode;
} umemFolder;

/* Folders, with all that is below them. */
typedef struct umemFolders {
  umemFolder *list; /* with room for those that are added */
  size_t count;
} umemFolders;

/* Adds the folder at path. Returns an errno. */
int umemFolders_add(umemFolders *folders, char const *path);

/* Whether a file at path would be in none of folders. Nothing is created; what cannot be opened for
 * another reason is not refused, for opening it says why. */
bool umemFolders_refuse(umemFolders const *folders, char const *path);

/* Keeps the calling thread to folders, borrowed until the next call; NULL: to none. Returns what it
 * was kept to. */
umemFolders const *umemFolders_hold(umemFolders const *folders);

/* What the calling thread is kept to; NULL: it may open files anywhere. */
umemFolders const *umemFolders_held(void);

/* ==== hosts ====
 *
 * In the same way umem_open_with keeps the thread to hosts that it may connect to. */

/* Whether hosts, a list separated by spaces, allows the host: by its name, "*.example.org" for all
 * below example.org, or one of both with ":" and a port. Without a port it allows the usual one
 * alone. hosts NULL: all are allowed. */
bool umemHosts_allow(char const *hosts, char const *host, char const *port, bool usual_port);

/* Keeps the calling thread to hosts, borrowed until the next call; NULL: to none. Returns what it
 * was kept to. */
char const *umemHosts_hold(char const *hosts);
char const *umemHosts_held(void);

/* ==== removal ==== */

/* Whether `name` in folder is the file of fd, and that has this length in bytes. */
bool umem_is_file(int fd, int folder, char const *name, uint64_t length);

/* Removes `name` in folder if umem_is_file. Does nothing otherwise, or where the system refuses. */
void umem_remove_file(int fd, int folder, char const *name, uint64_t length);

/* ==== files that get their names late ====
 *
 * A new file is not seen under its name before it is complete. Where the file system allows that
 * (O_TMPFILE, and /proc to name it later) it has no name until then, so that it vanishes when the
 * process is killed; elsewhere it has a hidden one, ".umem-..." and a random number. Other users
 * cannot open it. Functions return 0 or an errno. Calls that a signal interrupts are made again. */

typedef struct umemNewFile {
  int fd;                  /* the owner of this struct closes it */
  int folder;              /* owned; negative for none */
  pid_t process;           /* that created the file */
  mode_t permissions;      /* of the complete file; until then 0600 */
  bool named;              /* it has its name */
  char name[NAME_MAX + 1]; /* in folder: what the file is to be called */
  char hidden[64];         /* in folder: what it is called now; empty while it has no name */
} umemNewFile;

/* Creates the file in file->folder, open for reading and writing, as file->fd, which is -1 after a
 * failure. folder and name are the caller's to set, and file->permissions to change; they are those
 * that open would give. */
int umemNewFile_create(umemNewFile *file);

/* Gives a file without a name a hidden one, so that other processes of this user can open it. */
int umemNewFile_show(umemNewFile *file);

/* Sets the permissions of the complete file. The two functions below do so, too: call it before, to
 * make them durable. */
int umemNewFile_complete(umemNewFile const *file);

/* Gives the file the owner and the group of old, and sets its permissions to those of old. Whoever
 * may not give files away keeps at least the group, where it is one of theirs. Sets *kept: the
 * group is that of old. What old grants to another group is granted to no other. */
int umemNewFile_keep_owner(umemNewFile *file, struct stat const *old, bool *kept);

/* Gives the file the access list of the one at path. Without it the bits of the group would mean
 * more than they did. */
int umemNewFile_keep_list(umemNewFile const *file, char const *path);

/* Takes all permissions from others until then: for whoever has changed the access list of the
 * file. */
int umemNewFile_protect(umemNewFile const *file);

/* Gives the file its name. EEXIST, with nothing changed, where something has that name. */
int umemNewFile_publish(umemNewFile *file);

/* Gives the file its name, which it takes from another file at one instant if there is one. After a
 * failure the file has no name. */
int umemNewFile_replace(umemNewFile *file);

/* Removes the name of umemNewFile_publish, if the file still has it, and this length. The name is
 * kept where the file system cannot rename without replacing (RENAME_NOREPLACE). */
void umemNewFile_withdraw(umemNewFile *file, uint64_t length);

/* Removes a file that has got no name, and closes the folder. A forked child leaves the file of its
 * parent alone. The caller closes fd. */
void umemNewFile_end(umemNewFile *file);

#endif
