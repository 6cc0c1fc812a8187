/* allowed.h - what a name of umem_open_with may reach: schemes, and the folders of files.
 *
 * The folders hold for the calling thread while its contexts are constructed, so that the constructors of
 * the library, which open files, need not be told. */
#ifndef UMEM_ALLOWED_H
#define UMEM_ALLOWED_H

#include "open/name.h"

#include <sys/types.h>

/* A folder as the kernel knows it, under whatever name. */
typedef struct umemFolder {
  dev_t device;
  ino_t inode;
} umemFolder;

typedef struct umemAllowed {
  char const *schemes; /* borrowed: separated by spaces; NULL: all */
  bool limits_files;
  umemFolder *folders; /* owned */
  size_t folder_count;
  struct umemAllowed const *outer; /* what held in the thread before */
} umemAllowed;

/* Reads the options. False with a status of the thread. To be ended in each case. */
bool umemAllowed_read(umemAllowed *allowed, umemOpenOptions const *options);
void umemAllowed_end(umemAllowed *allowed);

/* Whether name keeps to what is allowed, as far as can be said before anything is opened; a status of the
 * thread otherwise. From here to the end umem_open_path keeps this thread to the folders. */
bool umemAllowed_begin(umemAllowed *allowed, umemName const *name);

/* Lifts what holds for the thread, for what the program opens itself, and puts it back. */
umemAllowed const *umemAllowed_lift(void);
void umemAllowed_put_back(umemAllowed const *const *lifted);

/* As open, where the calling thread is kept to folders: -1, and EACCES, for a file that is in none of them,
 * symbolic links followed. Nothing outside is created or changed. */
int umem_open_path(char const *path, int flags, mode_t permissions);

/* Opens the folder in which path has its file, with O_PATH, and copies the name of the file there to name,
 * NAME_MAX + 1 bytes. -1 and errno otherwise, also where the thread is kept to other folders (EACCES). */
int umem_open_folder(char const *path, char *name);

#endif
