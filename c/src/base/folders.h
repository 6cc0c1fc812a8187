/* folders.h - the folders that a thread may open files in.
 *
 * umem_open_with keeps the calling thread to some folders while it constructs contexts. Whoever opens a file for
 * a context opens it by the functions below, and needs to know nothing of that. */
#ifndef UMEM_FOLDERS_H
#define UMEM_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- opening ---- */

/* As open, where the calling thread is kept to folders: -1, and EACCES, for a file that is in none of them,
 * symbolic links followed. Nothing outside is created or changed. */
int umem_open_path(char const *path, int flags, mode_t permissions);

/* Opens the folder in which path has its file, with O_PATH, and copies the name of the file there to name,
 * NAME_MAX + 1 bytes. -1 and errno otherwise, also where the thread is kept to other folders (EACCES). */
int umem_open_folder(char const *path, char *name);

/* ---- what other users put there ---- */

/* Sets *planted: whether about, of a file or link in folder, belongs to another user, in a folder where everybody may
 * put files, as /tmp (sticky, writable for all). The owner of the folder is trusted. Returns an errno. */
int umem_is_planted(int folder, struct stat const *about, bool *planted);

/* Sets *planted to whether a link on the way from path, or the file where that ends, is planted. fd: the file that
 * was opened by it; another one is there by now, if it is not that. -1: none was opened. Folders above are not looked at.
 * Links of /proc lead to a file by themselves. */
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

/* Whether a file at path would be in none of folders. Nothing is created; what cannot be opened for another reason
 * is not refused, for opening it says why. */
bool umemFolders_refuse(umemFolders const *folders, char const *path);

/* Keeps the calling thread to folders, borrowed until the next call; NULL: to none. Returns what it was kept to. */
umemFolders const *umemFolders_hold(umemFolders const *folders);

/* What the calling thread is kept to; NULL: it may open files anywhere. */
umemFolders const *umemFolders_held(void);

#endif
