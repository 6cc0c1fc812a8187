/* allowed.h - what umem_open_with allows: schemes, and the folders of files. */
#ifndef UMEM_ALLOWED_H
#define UMEM_ALLOWED_H

#include "base/folders.h"
#include "open/name.h"

typedef struct umemAllowed {
  char const *schemes; /* borrowed: separated by spaces; NULL: all */
  bool limits_files;
  umemFolders folders;      /* the list is owned */
  umemFolders const *outer; /* the limit of the thread before */
} umemAllowed;

/* Reads the options. False with a status of the thread. Call umemAllowed_end in each case. */
bool umemAllowed_read(umemAllowed *allowed, umemOpenOptions const *options);
void umemAllowed_end(umemAllowed *allowed);

/* Whether name uses only what is allowed, as far as that is known before a file is opened; else records a
 * status of the thread. From now until umemAllowed_end, umem_open_path opens files in the folders only. */
bool umemAllowed_begin(umemAllowed *allowed, umemName const *name);

/* Until the end of the block the thread may open files in any folder: for what the user of the program has
 * chosen. */
#define UMEM_ALLOW_ALL_FOLDERS()                                                                   \
  __attribute__((cleanup(umemAllowed_put_back), unused)) umemFolders const *const held_ =          \
      umemFolders_hold(NULL)
static inline void umemAllowed_put_back(umemFolders const *const *held) { umemFolders_hold(*held); }

#endif
