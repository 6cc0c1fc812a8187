/* umem/copy.h - copy between any two contexts.
 *
 * Source and destination may be any two contexts, also the same one. umem takes the best route: a
 * direct copy if one of the two has one; else through the memory of the side that the CPU can
 * address; else through host memory in chunks, reading ahead while writing.
 *
 * Order: between contexts that are not ordered a copy is complete on return. On an ordered context
 * it is queued behind that context's earlier work; both blocks must live, and the host must not
 * look, until umem_synchronize.
 *
 * Errors of all copies: umemValueError for null, or when an address plus nbytes overflows;
 * umemNotSupportedError where the source is not readable or the destination not writable;
 * umemIndexError for reads past the end of a file and writes outside of a live block of a file;
 * umemIOError, umemRuntimeError, umemMemoryError from below. umem records the status on the context
 * that failed. After a failure the nbytes of the destination are unspecified and nothing else has
 * changed.
 *
 * Source and destination may overlap: the result is as if all bytes of the source were read before
 * the first byte is written. If the destination is a shift of the source, umem copies pieces in the
 * right order, with a buffer of at most 4 MiB in host memory; otherwise the buffer takes all items
 * that are copied. Without room for it nothing changes: umemMemoryError. In RAM a run needs no
 * buffer. umem knows that contexts of one file, mapped or not, or of one shared memory have the
 * same bytes, and that different memories have none in common: there nothing of this costs
 * anything.
 *
 * 0 bytes are a no-op at any address. */
#ifndef UMEM_COPY_H
#define UMEM_COPY_H

#include <umem/context.h>

/* Copies nbytes from src_adr in src to dst_adr in dst. */
UMEM_EXTERN umemStatusType umem_copy_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                        size_t nbytes);

/* Does what umem_copy_to does, with the destination first. */
UMEM_EXTERN umemStatusType umem_copy_from(void *dst, uintptr_t dst_adr, void *src,
                                          uintptr_t src_adr, size_t nbytes);

/* As umem_copy_to, where src_size and dst_size are the bytes that may be touched from each address
 * on. When nbytes exceeds one of them, the call records umemIndexError on that context (on both, if
 * both) and copies nothing. */
UMEM_EXTERN umemStatusType umem_copy_to_safe(void *src, uintptr_t src_adr, size_t src_size,
                                             void *dst, uintptr_t dst_adr, size_t dst_size,
                                             size_t nbytes);
UMEM_EXTERN umemStatusType umem_copy_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size,
                                               void *src, uintptr_t src_adr, size_t src_size,
                                               size_t nbytes);

/* The largest rank of a strided copy. */
#define UMEM_MAX_RANK 32

/* Which bytes of two arrays belong together: for each index (i[0], ..., i[rank-1]) with
 * 0 <= i[k] < extents[k], item_size bytes from  src_adr + sum of i[k] * src_strides[k]
 * correspond to item_size bytes at                dst_adr + sum of i[k] * dst_strides[k].
 * Rank 0 is one item: a plain run of bytes. The struct and its arrays are borrowed for the call. */
typedef struct umemLayout {
  size_t size;           /* sizeof(umemLayout) as the caller was compiled */
  size_t item_size;      /* bytes that are contiguous on both sides, for example one element */
  int rank;              /* 0 ... UMEM_MAX_RANK */
  size_t const *extents; /* [rank] items; one that is 0 makes the copy a no-op */
  ptrdiff_t const *src_strides; /* [rank] bytes, any sign; NULL is C order without gaps */
  ptrdiff_t const *dst_strides; /* the same for the destination, where no two items may overlap */
} umemLayout;

/* Copies the items of layout. src_adr and dst_adr are the addresses of index (0, ..., 0), which
 * need not be the lowest touched. In the source, bytes between the first and the last item may be
 * read. Besides the errors above: umemValueError for a layout that is NULL or too small, a rank out
 * of range, missing extents, or items whose addresses would leave the address space;
 * umemMemoryError without room for buffers. */
UMEM_EXTERN umemStatusType umem_copy_strided(void *src, uintptr_t src_adr, void *dst,
                                             uintptr_t dst_adr, umemLayout const *layout);

/* Returns whether items of the two sides have bytes in common, so that umem_copy_strided has to
 * mind their order. False where each item would be copied to itself, and for no items. True as well
 * if it would take too long to find out. Records a failure, and returns false, for a layout that
 * makes no sense. Copies nothing. */
UMEM_EXTERN bool umem_copy_overlaps(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                    umemLayout const *layout);

/* ---- routes ---- */

/* The most legs of a route that a umemRoute lists. */
#define UMEM_ROUTE_LEGS 8

/* One end of a leg: a context, or the memory that a copy passes through. */
typedef struct umemRoutePlace {
  char kind[24];    /* "file", "cuda", ...; "host" and "pinned" for buffers of umem */
  int32_t ordinal;  /* of the GPU; -1 where there is none */
  int32_t reserved; /* 0 */
} umemRoutePlace;

/* What was moved from one place to another in one way. Legs of one copy overlap in time, and
 * several threads work on one leg. */
typedef struct umemRouteLeg {
  umemRoutePlace src, dst;
  /* "page cache", "direct I/O", "window", "memcpy", "dma", ...: see doc/concepts/router.rst */
  char way[24];
  uint64_t bytes;       /* that arrived; a failed transfer counts none */
  double seconds;       /* that threads spent in this leg, summed over the threads */
  uint32_t workers;     /* threads, at least 1: the most that shared the leg at a time */
  uint32_t calls;       /* transfers that the leg was made of, failed ones too */
  uint64_t reserved[2]; /* 0 */
} umemRouteLeg;

/* The route that a copy has taken. Start from UMEM_ROUTE_INIT. */
typedef struct umemRoute {
  size_t size;        /* sizeof(umemRoute) as the caller was compiled */
  uint64_t bytes;     /* that the call was to copy */
  double seconds;     /* from the beginning of the call to its end */
  uint32_t leg_count; /* 0 where nothing was moved */
  uint32_t left_out;  /* transfers that found all UMEM_ROUTE_LEGS legs taken by others */
  umemRouteLeg legs[UMEM_ROUTE_LEGS]; /* in the order in which bytes pass them */
} umemRoute;

/* What a umemRoute starts as. */
#define UMEM_ROUTE_INIT                                                                            \
  {                                                                                                \
    sizeof(umemRoute), 0, 0, 0, 0, {                                                               \
      {                                                                                            \
        {"", 0, 0}, {"", 0, 0}, "", 0, 0, 0, 0, { 0, 0 }                                           \
      }                                                                                            \
    }                                                                                              \
  }

/* Writes the route as one line, such as "file -> 16 workers, page cache -> pinned -> cuda:0", to
 * text, at most size bytes with the terminating zero. The ways "memcpy" and "dma" are left out.
 * Returns the length of the whole line as snprintf does; text may be NULL where size is 0. "" for a
 * route without legs and for NULL. */
UMEM_EXTERN size_t umemRoute_text(umemRoute const *route, char *text, size_t size);

/* ---- long copies ---- */

/* Options of umem_copy_to_with. Start from UMEM_COPY_OPTIONS_INIT. */
typedef struct umemCopyOptions {
  size_t size; /* sizeof(umemCopyOptions) as the caller was compiled */
  /* Called in the calling thread: with done 0 before the first byte, then after every step bytes,
   * at last with done equal to total. The done first bytes are in the destination, also where a
   * context is ordered. From 16 MiB on, other threads copy on during a call, and quick steps are
   * reported several at a time, about every 10 ms; while a server sends nothing (umemUrl, umemS3),
   * the last call is repeated about every 100 ms. It returns whether to go on: false cancels the
   * copy or, when all is done, changes nothing. It may call umem; its failures are not those of the
   * copy. A C++ exception may leave it and ends the copy (see doc/concepts/callbacks.rst). NULL for
   * none. */
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user;  /* borrowed, handed to progress */
  size_t step; /* bytes from call to call; 0 lets umem choose (64 MiB) */
  /* Where the call writes the route that the copy has taken, at most route->size bytes, also after
   * a failure: then what was done until it. Borrowed for the call. NULL for none. On an ordered
   * context the seconds are those until the copy is queued, unless progress is set. */
  umemRoute *route;
} umemCopyOptions;

/* What umemCopyOptions start as: a plain umem_copy_to. */
#define UMEM_COPY_OPTIONS_INIT                                                                     \
  { sizeof(umemCopyOptions), NULL, NULL, 0, NULL }

/* As umem_copy_to, with a function that learns how far the copy is and can cancel it. NULL as
 * options is a plain umem_copy_to. With progress set, all is complete on return, also where a
 * context is ordered. Besides the errors above: umemValueError, recorded on src, for options whose
 * size is too small to be true, or a route whose size is; umemCancelledError, recorded on dst, when
 * progress returned false: the first done bytes are there. Below 16 MiB the others are as before;
 * of a longer copy some may be there, too. After any failure umem does not call progress again. */
UMEM_EXTERN umemStatusType umem_copy_to_with(void *src, uintptr_t src_adr, void *dst,
                                             uintptr_t dst_adr, size_t nbytes,
                                             umemCopyOptions const *options);

/* Does for umem_copy_strided what umem_copy_to_with does for umem_copy_to. done and total are bytes
 * of items, which are copied in parts, in no order that a program can rely on. Where both sides
 * overlap, all is one step. */
UMEM_EXTERN umemStatusType umem_copy_strided_with(void *src, uintptr_t src_adr, void *dst,
                                                  uintptr_t dst_adr, umemLayout const *layout,
                                                  umemCopyOptions const *options);

/* ---- lists of copies ---- */

/* One copy of a list. */
typedef struct umemCopyItem {
  void *src; /* context of the source, borrowed for the call */
  uintptr_t src_adr;
  void *dst; /* and of the destination */
  uintptr_t dst_adr;
  size_t nbytes; /* 0: a no-op at any address */
} umemCopyItem;

/* Options of umem_copy_many. Start from UMEM_COPY_MANY_OPTIONS_INIT. */
typedef struct umemCopyManyOptions {
  size_t size; /* sizeof(umemCopyManyOptions) as the caller was compiled */
  /* Where the call says what it has copied, also after a failure: bit i % 8 of byte i / 8 is 1 if
   * item i is in its destination or, on an ordered context, queued. Where it is 0, the bytes of the
   * destination are unspecified. (count + 7) / 8 bytes, borrowed for the call. NULL for none. */
  uint8_t *done;
  /* Where the call writes the index of the item that has failed; count if none has, or if the
   * failure is none of an item. NULL for none. */
  size_t *failed;
  umemRoute *route; /* as in umemCopyOptions, of the whole list */
  /* As in umemCopyOptions: done and total are bytes of items, which umem copies in an order of its
   * own. From 16 MiB on, quick steps are reported several at a time, about every 20 ms. false
   * cancels the rest of the list. */
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user;
  size_t step;
} umemCopyManyOptions;

/* What umemCopyManyOptions start as. */
#define UMEM_COPY_MANY_OPTIONS_INIT                                                                \
  { sizeof(umemCopyManyOptions), NULL, NULL, NULL, NULL, NULL, 0 }

/* Copies count items in one call, in any order: from item to item the contexts may differ. umem
 * joins items that are neighbours on both sides, and in one block as far as the contexts know. It
 * reads a file in its order and with several threads, and lets a GPU copy all its items at once.
 * Each item is ordered in the queues of its contexts as a umem_copy_to at the time of the call is.
 *
 * No item may write bytes that another item reads or writes: umem checks that, as far as it knows
 * which contexts have the same bytes, and all other arguments before it copies the first byte. An
 * item may overlap itself, as in umem_copy_to.
 *
 * Errors are those of umem_copy_to, recorded on the context that failed, with a message that names
 * the item; umemValueError for items that overlap, recorded on the context whose bytes they are;
 * umemMemoryError without some 100 bytes for each item, recorded on the source of the first. The
 * thread alone records umemValueError for a list that is NULL or too long, and for options whose
 * size is too small to be true. After a failure the call copies no further item: the options say
 * which are done.
 *
 * With progress set, all is complete on return, also where a context is ordered. If progress
 * returns false, the call records umemCancelledError on the target of an item that is not done. */
UMEM_EXTERN umemStatusType umem_copy_many(umemCopyItem const *items, size_t count,
                                          umemCopyManyOptions const *options);

#endif
