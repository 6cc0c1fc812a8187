/* inject.h - makes chosen calls of the library into the system fail.
 *
 * The programs of this folder link the library's objects statically, and the linker sends every
 * call of the functions in inject.wrap to a wrapper here (-Wl,@inject.wrap). No preloading, so it
 * works under every sanitizer. The tests' own calls go through the wrappers too; inject_pause holds
 * the faults back where a test looks at the system itself.
 *
 * Threads: all but the _here functions are called by one thread while no other is in the
 * library. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls that are counted together. */
typedef enum InjectCall {
  callHeap,      /* malloc, calloc, realloc, posix_memalign, aligned_alloc */
  callMap,       /* mmap */
  callAdvise,    /* madvise */
  callOpen,      /* open, openat */
  callNameless,  /* those with O_TMPFILE, for inject_lacking alone */
  callLink,      /* link, linkat */
  callTemporary, /* mkostemp */
  callUnlink,   /* unlink: the file goes and the failure is reported, so that tests leave nothing */
  callRead,     /* pread */
  callWrite,    /* pwrite, pwritev2 */
  callPeek,     /* preadv, preadv2: looks whether others have appended, and what is cached */
  callReserve,  /* fallocate */
  callLength,   /* ftruncate */
  callDataSync, /* fdatasync */
  callSync,     /* fsync, syncfs */
  callMapSync,  /* msync */
  callClose,    /* close: the descriptor is closed and the failure reported, as Linux does it */
  callLock,     /* flock */
  callStat,     /* fstat, fstatvfs, statfs, fstatfs */
  callSeek,     /* lseek */
  callThread,   /* pthread_create */
  callProtect,  /* mprotect */
  callRemap,    /* mremap */
  callEvent,    /* eventfd */
  inject_call_count,
  callNone = inject_call_count
} InjectCall;

/* "pread", ... */
char const *inject_call_name(InjectCall call);

/* ---- arming: each replaces what was armed before; calls are counted from 1 again ---- */

/* Only counts. */
void inject_count(void);

/* As an error: the process is killed at the call. */
enum { inject_kill = -1 };

/* The nth call (from 1) fails with error, and with lasting every later one too. */
void inject_fail(InjectCall call, unsigned long nth, int error, bool lasting);

/* Reads and writes transfer only a part: the first 64 one byte each, later ones a random part that
 * depends on seed. */
void inject_short(unsigned seed);

/* Three of four calls that a signal can interrupt fail with EINTR. */
void inject_storm(void);

/* ---- besides ---- */

/* Every call fails with error whatever is armed, as on a system that lacks the function; error 0
 * ends it. One such call at a time. Only while something is armed. */
void inject_lacking(InjectCall call, int error);

/* fstatvfs says that so many bytes are free, whatever is armed; UINT64_MAX: what is true. */
void inject_free_space(uint64_t bytes);

/* A signal interrupts each fallocate of more bytes, and what it had done is undone, as on tmpfs of
 * many kernels; whatever is armed. UINT64_MAX: none. */
void inject_longest_reserve(uint64_t bytes);

/* Disarms. Returns how many calls were made to fail, or to transfer less, since it was armed. */
unsigned long inject_off(void);

/* How many calls were made since it was last armed. */
unsigned long inject_calls(InjectCall call);

/* inject_fail and inject_off for the calling thread alone, at any time. */
void inject_fail_here(InjectCall call, unsigned long nth, int error, bool lasting);
unsigned long inject_off_here(void);

/* Holds everything back, for all threads; pairs nest. */
void inject_pause(void);
void inject_resume(void);

/* Ends all of it, for a test that failed somewhere in between. */
void inject_reset(void);

/* The bytes mapped by mmap and not yet unmapped, over all of the process's life, armed or not. */
size_t inject_mapped(void);
