/* open.h - the contexts that umem_open constructs, and what umem_open_with allows. default.c keeps
 * its own. */
#ifndef UMEM_OPEN_PRIVATE_H
#define UMEM_OPEN_PRIVATE_H

#include "base/files.h"
#include "open/name.h"

/* The layers of one context. Their memory follows the struct. */
typedef struct umemOpened {
  struct umemOpened *next; /* of the owner's list */
  size_t count;
  unsigned forks;                      /* umem_fork_count of the process that constructed it */
  umemVirtual *layers[umemNameLayers]; /* outermost first */
} umemOpened;

/* Allocates a umemName until the end of the block; NULL with a status of the thread. From here on
 * umem puts cancellation off. */
#define UMEM_NAME(name)                                                                            \
  umemName *const name __attribute__((cleanup(umemOpened_free_name))) = umemOpened_new_name()
umemName *umemOpened_new_name(void);
void umemOpened_free_name(umemName *const *name);

/* Constructs all layers. If one fails: NULL, and a status of the thread alone. */
umemOpened *umemOpened_new(umemName const *name);

/* The message that attempt holds, without the name of the running function in front. */
char const *umemOpened_reason(umemAttempt const *attempt);

/* Calls the method finish of all layers, outermost first, and report with the first failure of
 * each. Does nothing in a child of the process that constructed them. */
void umemOpened_finish(umemOpened *opened, void (*report)(umemAttempt *attempt));

/* Until the end of the block the thread may open files in any folder: for what the user of the
 * program has chosen. */
#define UMEM_ALLOW_ALL_FOLDERS()                                                                   \
  __attribute__((cleanup(umemFolders_put_back), unused)) umemFolders const *const held_ =          \
      umemFolders_hold(NULL)
static inline void umemFolders_put_back(umemFolders const *const *held) { umemFolders_hold(*held); }

#endif
