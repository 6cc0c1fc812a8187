/* open.h - what umem_open constructs, for those who keep it otherwise than umem_open does. */
#ifndef UMEM_OPEN_PRIVATE_H
#define UMEM_OPEN_PRIVATE_H

#include "open/name.h"

/* The layers of one context, and the memory that they are in. */
typedef struct umemOpened {
  struct umemOpened *next; /* for whoever keeps it */
  size_t count;
  unsigned forks;                      /* umem_fork_count of the process that has constructed it */
  umemVirtual *layers[umemNameLayers]; /* outermost first */
} umemOpened;

/* Room for a name, until the end of the block; NULL with a status of the thread. Cancellation is put off
 * from here on. */
#define UMEM_NAME(name)                                                                            \
  umemName *const name __attribute__((cleanup(umemOpened_free_name))) = umemOpened_new_name()
umemName *umemOpened_new_name(void);
void umemOpened_free_name(umemName *const *name);

/* Constructs all layers. NULL with a status of the thread, on nothing else, when one fails. */
umemOpened *umemOpened_new(umemName const *name);

/* What attempt has held, without the function that is running, which stands before every message. */
char const *umemOpened_reason(umemAttempt const *attempt);

/* Destructs all layers, outermost first, and frees them. Failures are the thread's. */
void umemOpened_delete(umemOpened *opened);

/* Calls the method finish of all layers, outermost first, and report with the first failure of each; does
 * nothing in a child of the process that has constructed them. */
void umemOpened_finish(umemOpened *opened, void (*report)(umemAttempt *attempt));

#endif
