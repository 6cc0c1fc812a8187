/* paged.h - a context with memory by pages that exists in tests only: RAM, with records of its own.
 *
 * Each wrong call is kept as a misuse: two pages at one place, none where there must be one, a
 * range that is ended with pages in it. Pages without memory cannot be read or written, and new
 * ones are full of junk. Chosen calls fail. A block of alloc is memory of malloc. It has large
 * pages, and middle ones, which count as large: only their own methods may unmap and move them. If
 * a test wants so, its new pages are full of zeros, as it then promises. Thread-safe, except for
 * the settings. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <umem.h>

enum {
  pagedSize = 64 << 10,
  pagedGroup = 4, /* pages of a large one */
  pagedLarge = pagedGroup * pagedSize,
  pagedMiddle = 2 * pagedSize,
  pagedRanges = 64
};

typedef enum PagedCall {
  pagedReserve,
  pagedRelease,
  pagedMap,
  pagedUnmap,
  pagedMove,
  pagedMapLarge,
  pagedUnmapLarge,
  pagedMoveLarge,
  pagedAlloc,
  paged_call_count
} PagedCall;

typedef struct PagedRange {
  unsigned char *bytes; /* NULL: there is none */
  size_t size;
  unsigned char *has; /* [page]; owned: 0, or a number for each part of a page of each size */
} PagedRange;

typedef struct Paged {
  umemVirtual super;
  umemHost host;
  pthread_mutex_t mutex; /* of all that follows */
  PagedRange ranges[pagedRanges];
  size_t pages, pages_peak, blocks; /* with memory; of alloc */
  char misuse[128];
  unsigned long calls[paged_call_count];
  size_t set_bytes, zeroed_bytes; /* by set; by zero_pages */
  /* settings */
  size_t capacity;   /* pages; 0: as many as are asked for */
  size_t longest;    /* bytes of a range; 0: any */
  bool no_alloc;     /* alloc fails */
  bool no_large;     /* there are no large pages */
  bool keeps;        /* zero_pages fails */
  bool no_middle;    /* there are no middle pages */
  PagedCall failing; /* which call fails, */
  unsigned long fails_at,
      fails_after; /* the nth and, after that, so many pages have been done; 0: none */
  umemStatusType fails_as;
  void (*before_map)(void *argument); /* without the mutex; NULL: nothing */
  void *argument;
} Paged;

umemStatusType paged_ctor(Paged *ctx);

/* With zeros in new pages, and the method zero_pages, which `keeps` lets fail. No large pages. */
void paged_promise_zeros(Paged *ctx, bool keeps);

/* Nothing is left. */
bool paged_is_clean(Paged *ctx);

/* Calls of one kind from now on are counted from 1; the nth fails after `after` pages. */
void paged_fail(Paged *ctx, PagedCall call, unsigned long nth, unsigned long after,
                umemStatusType as);
