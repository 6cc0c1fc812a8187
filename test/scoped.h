/* scoped.h - what ends with its block of code, as the library's locks do (UMEM_LOCKED). */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Declares variables that end with their block, the last one first: also where that returns.
 *
 *     SCOPED(umem_dtor) umemFile file;
 *     SCOPED(free_bytes) unsigned char *bytes = malloc(n); */
#define SCOPED(end) __attribute__((cleanup(end), unused))

#define UNUSED __attribute__((unused))

static inline void free_bytes(void *pointer) { free(*(void **)pointer); }
static inline void close_fd(int const *fd) { close(*fd); }
static inline void unlink_path(void *path) { unlink(path); }

/* Holds the mutex from here to the end of the block. */
#define LOCKED(mutex)                                                                              \
  __attribute__((cleanup(unlock_scoped), unused)) pthread_mutex_t *const locked_ =                 \
      lock_scoped(mutex)
static inline pthread_mutex_t *lock_scoped(pthread_mutex_t *mutex) {
  pthread_mutex_lock(mutex);
  return mutex;
}
static inline void unlock_scoped(pthread_mutex_t *const *mutex) { pthread_mutex_unlock(*mutex); }
