/* allowed.h - what a name of umem_open_with may reach: schemes, and the folders of files. */
#ifndef UMEM_ALLOWED_H
#define UMEM_ALLOWED_H

#include "base/folders.h"
#include "open/name.h"

typedef struct umemAllowed {
  char const *schemes; /* borrowed: separated by spaces; NULL: all */
  bool limits_files;
  umemFolders folders;      /* the list is owned */
  umemFolders const *outer; /* what the thread was kept to before */
} umemAllowed;

/* Reads the options. False with a status of the thread. umemAllowed_end follows in each case. */
bool umemAllowed_read(umemAllowed *allowed, umemOpenOptions const *options);
void umemAllowed_end(umemAllowed *allowed);

/* Whether name keeps to what is allowed, as far as can be said before anything is opened; a status of the
 * thread otherwise. From here to the end umem_open_path keeps this thread to the folders. */
bool umemAllowed_begin(umemAllowed *allowed, umemName const *name);

/* Until the end of the block the thread may open files anywhere: for what the program opens itself. */
#define UMEM_ALLOW_ALL_FOLDERS()                                                                   \
  __attribute__((cleanup(umemAllowed_put_back), unused)) umemFolders const *const held_ =          \
      umemFolders_hold(NULL)
static inline void umemAllowed_put_back(umemFolders const *const *held) { umemFolders_hold(*held); }

#endif
