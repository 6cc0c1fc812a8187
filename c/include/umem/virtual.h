/* umem/virtual.h - for programs that define a context of their own.
 *
 * A context is a struct whose first member is a umemVirtual, a table of methods, and a constructor:
 *
 *     typedef struct { umemVirtual super; umemHost host; ... } umemMyMem;
 *
 *     void umemMyMem_ctor(umemMyMem *ctx, ...) {
 *       static struct umemVtbl const vtbl = {mymem_dtor, mymem_is_same_device, mymem_alloc, ...};
 *       umemHost_ctor(&ctx->host);
 *       umemVirtual_ctor(&ctx->super, &ctx->host);
 *       ctx->super.vptr = &vtbl;
 *       ctx->super.type = umemUserDevice;
 *       ctx->super.name = "MyMem";
 *       ctx->super.capabilities |= umemConcurrent;   // and others that it has
 *     }
 *
 * The guide "Write your own context" (doc/contexts/your-own.rst) explains a complete context.
 * Before the library calls a method, it checks what it can check for every context: ctx is
 * constructed, the address is not null, adr + n and nmemb * size do not overflow, the alignment is
 * a power of two, n > 0, ctx is readable or writable as needed.
 *
 * A method that fails records the failure with umemVirtual_fail (or umem_set_status) on its own
 * context, in the thread that called it. If it returns an address, it then returns umem_null(ctx).
 * No exception may leave a method. pthread_cancel does not end the thread in a method, because umem
 * disables cancellation, unless ctx has umemPrompt (see doc/concepts/threads.rst). */
#ifndef UMEM_VIRTUAL_H
#define UMEM_VIRTUAL_H

#include <umem/advise.h>
#include <umem/context.h>
#include <umem/copy.h>
#include <umem/find.h>
#include <umem/handle.h>

/* Bytes of a context that the CPU can access through a pointer for a short time (see the method
 * window). */
typedef struct umemWindow {
  void *bytes; /* the first of them */
  /* Ends the window; NULL if there is nothing to do. ctx is the context that has filled in the
   * struct. */
  void (*release)(umemVirtual *ctx, struct umemWindow *window);
  uintptr_t own[4]; /* for ctx */
} umemWindow;

/* A place in the queue of a context (see the method mark). Any thread may use it, one at a time;
 * but any number of threads may call wait, also while the mark moves. No function makes a call on
 * the queue of ctx, the context that has set the mark. */
typedef struct umemMark {
  /* Returns whether the work before the mark is done. If waits is true, it returns when it is. If
   * that work has failed, it records the failure and returns true. */
  bool (*reached)(umemVirtual *ctx, struct umemMark *mark, bool waits);
  /* Ends the mark. What waits for it goes on waiting. */
  void (*release)(umemVirtual *ctx, struct umemMark *mark);
  uintptr_t own[2]; /* for ctx */
  /* Later work of the context `later` starts after the work before the mark. If later cannot wait
   * for it otherwise, the calling thread waits. Returns false after a failure. NULL: the caller
   * uses reached. */
  bool (*wait)(umemVirtual *ctx, struct umemMark *mark, umemVirtual *later);
} umemMark;

/* Bytes of a context that are in a file, for a device that transfers them itself (see the method
 * direct_file). */
typedef struct umemDirectFile {
  int fd;            /* of a regular file, opened with O_DIRECT for the access that was asked for */
  uint64_t offset;   /* of the first byte in that file */
  char const *label; /* names the file in messages; valid until release */
  /* Ends the loan, and closes fd. ctx is the context that has filled in the struct. */
  void (*release)(umemVirtual *ctx, struct umemDirectFile *file);
  uintptr_t own[4]; /* for ctx */
  /* Zero at first; who has borrowed the file sets them before release: */
  size_t moved; /* bytes that the device has transferred */
  bool refused; /* the device cannot transfer from or to this file: it need not be lent again */
} umemDirectFile;

/* A part of a copy: one run of bytes on both sides (see the method copy_pieces). */
typedef struct umemCopyPiece {
  uintptr_t src_adr, dst_adr;
  size_t nbytes; /* greater than 0 */
  /* The context of dst_adr: that of the method, or another one with the same method in the same
   * memory. The bytes are written after the work that is queued on dst when next returns the
   * piece. */
  umemVirtual *dst;
  /* the number of its copy. A thread needs to wait for dst only once for all pieces of a copy */
  uintptr_t copy;
} umemCopyPiece;

/* Hands out the pieces of copies, one copy after the other (see the method copy_pieces). Each
 * thread has a feed of its own, for the time of the call. */
typedef struct umemFeed {
  unsigned threads; /* that share the pieces, this one included */
  /* Fills in *piece, of at most `most` bytes (greater than 0), and returns true. Returns false if
   * there is no piece now. If the thread has ended all its pieces, next waits until there is one,
   * and false means that there will be none: all are handed out, or something has failed. next may
   * copy bytes by methods of both contexts: hold no lock that these need. */
  bool (*next)(struct umemFeed *feed, size_t most, umemCopyPiece *piece);
  /* From now on, what the thread does and the failures that it records belong to piece. Call it
   * whenever the thread turns to another piece. If it is missing, messages and the ledger name
   * another block. */
  void (*about)(struct umemFeed *feed, umemCopyPiece const *piece);
  /* Ends a piece, once. done: its bytes are there, for the CPU and for all work that is queued from
   * now on. Otherwise record a failure first. If a piece is ended too early, the program gets a
   * block with old bytes; if it is never ended, umemBlocks_next waits for ever. */
  void (*end)(struct umemFeed *feed, umemCopyPiece const *piece, bool done);
  /* The context of src_adr of the piece that next has handed out last. It has the methods and the
   * capabilities of the context src that copy_pieces was called with. */
  umemVirtual *src;
  /* One address for all threads that share the pieces, and for no others meanwhile. */
  void const *all;
} umemFeed;

/* How far a run of a list is. */
typedef enum umemCopyRunState {
  umemRunWaits, /* not begun, or it is unknown how far it is */
  umemRunDone,  /* copied or, on an ordered context, queued */
  umemRunFailed /* with a failure that was recorded */
} umemCopyRunState;

/* A run of bytes of a list of copies (see the method copy_runs). */
typedef struct umemCopyRun {
  uintptr_t src_adr, dst_adr;
  size_t nbytes; /* greater than 0 */
  umemCopyRunState state;
} umemCopyRun;

/* Memory that is mapped into ranges of addresses page by page (see the method pages). A page of a
 * range has either memory or none. All addresses and sizes are multiples of page_size, and sizes
 * are greater than 0. Each call is about addresses of one range, but move may be from one range to
 * another. The caller keeps the records of what is reserved and mapped: ctx need not check them.
 * Calls about different pages may run at the same time if ctx is umemConcurrent.
 *
 * map, unmap and move return how many bytes they have done, in ascending order of addresses. This
 * is nbytes, or less if they have recorded a failure. The pages that they have not done are as
 * before. */
typedef struct umemPages {
  size_t page_size; /* bytes, a power of two; at least 64 KiB */
  /* Reserves nbytes of addresses at a multiple of page_size, without memory. Returns the first, or
   * umem_null(ctx) after a failure. */
  uintptr_t (*reserve)(umemVirtual *ctx, size_t nbytes);
  /* Ends a range, all of it, in which no page has memory. The caller must do this before ctx ends.
   * Returns false, and the range stays, after a failure. */
  bool (*release)(umemVirtual *ctx, uintptr_t adr, size_t nbytes);
  /* Gives memory to pages that have none. From then on the methods of ctx take these bytes as those
   * of a block. Their contents are undefined. Neighbouring pages are one piece of memory, whichever
   * calls have mapped them. */
  size_t (*map)(umemVirtual *ctx, uintptr_t adr, size_t nbytes);
  /* Takes the memory of pages back. It does not wait for queued work: before the call, all work
   * that uses these pages must be done (umem_synchronize). */
  size_t (*unmap)(umemVirtual *ctx, uintptr_t adr, size_t nbytes);
  /* Moves the memory of pages at from to pages at to, which have none. It takes no further memory,
   * and is faster than unmap and map. The contents are undefined afterwards. It waits as little as
   * unmap. */
  size_t (*move)(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes);
} umemPages;

/* The result of the method find. */
typedef enum umemSearch { umemSearchNone, umemSearchFound, umemSearchBusy } umemSearch;

/* How much of a context is in use (see the method usage). Bytes; UMEM_UNKNOWN at first. */
typedef struct umemUsage {
  uint64_t nbytes; /* of all live blocks */
  uint64_t peak;   /* the largest that nbytes has been */
} umemUsage;

/* Where memory is, in the words of DLPack (dlpack.h). DLPack has more codes, which a context may
 * have, too. */
typedef enum umemDLDeviceCode {
  umemDLDefault = 0, /* none; in umemDLPackOptions: that of the context */
  umemDLCPU = 1,
  umemDLCUDA = 2,     /* memory of a GPU */
  umemDLCUDAHost = 3, /* pinned */
  umemDLCUDAManaged = 13
} umemDLDeviceCode;

/* The table of methods. NULL means the default that each comment names. The first eleven never
 * change their order; new ones are only appended. A context that was compiled against a shorter
 * table gets the defaults for the missing methods (umemVirtual.vtbl_size). */
struct umemVtbl {
  /* Releases, once, what the constructor has allocated or opened. What it does not release leaks.
   * The library cleans up the base afterwards. If this method ends the host of the base, it must
   * call umemVirtual_dtor before. Default: nothing. */
  void (*dtor)(umemVirtual *ctx);

  /* Whether addresses mean the same bytes in ctx and in other, which may be of another kind. If it
   * is wrongly true, umem_connect returns addresses of other bytes. Default: same vptr and same
   * space. */
  bool (*is_same_device)(umemVirtual *ctx, umemVirtual *other);

  /* Returns nbytes > 0 of memory at a multiple of ctx->alignment, or umem_null(ctx).
   * Default: umemNotImplementedError. */
  uintptr_t (*alloc)(umemVirtual *ctx, size_t nbytes);

  /* As alloc, with every byte zero. nmemb * size is greater than 0 and does not overflow. A context
   * of RAM that has this method knows which of its memory is zero, and writes no zeros there: a
   * pool over it takes the chunk for a umem_calloc by this method. Default: umemVirtual_calloc. */
  uintptr_t (*calloc)(umemVirtual *ctx, size_t nmemb, size_t size);

  /* Frees a block of alloc or calloc. If ctx knows its blocks, it should free nothing and fail with
   * umemValueError for an address that is not a live block. Default: umemNotImplementedError. */
  void (*free)(umemVirtual *ctx, uintptr_t adr);

  /* As alloc, at a multiple of alignment, a power of two. Define all three or none.
   * Defaults: umemVirtual_aligned_alloc, _origin, _free. */
  uintptr_t (*aligned_alloc)(umemVirtual *ctx, size_t alignment, size_t size);
  uintptr_t (*aligned_origin)(umemVirtual *ctx, uintptr_t adr);
  void (*aligned_free)(umemVirtual *ctx, uintptr_t adr);

  /* Sets nbytes > 0 to (unsigned char)c. Default: umemVirtual_set. */
  void (*set)(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);

  /* Copies nbytes > 0 between ctx and that, which is always a umemHost: dst_adr and src_adr there
   * are pointers. An ordered context may return before the copy is done. Default:
   * umemNotImplementedError. */
  void (*copy_to)(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                  size_t nbytes);
  void (*copy_from)(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                    size_t nbytes);

  /* ---- appended after the first eleven ---- */

  /* Copies by a better route than through host memory. Returns true if it has done the copy, or has
   * recorded a failure of it. Returns false, and touches and records nothing, for all copies that
   * it has no such route for. If ctx has the method plan_copy, umem calls this one only for copies
   * that plan_copy has agreed to. ctx is src or dst. umem has normalised layout: rank 0 is a
   * contiguous run of item_size bytes. Otherwise no extent is 0 or 1, strides are never NULL, the
   * strides of dst are not negative and decrease from the first to the last, and dimensions that
   * are contiguous on both sides are merged. An adaptor calls umem_copy_strided here, with its
   * upstream in place of itself. Only an adaptor gets copies whose sides overlap.
   * Default: false. */
  bool (*copy_direct)(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout);

  /* Waits until all work that is queued on ctx is done. A umemOrdered context must have it:
   * otherwise umem frees buffers that are still in use. A umemDeviceShared context must have it:
   * otherwise umem reads bytes that a GPU has not written yet. Default: does nothing. */
  void (*synchronize)(umemVirtual *ctx);

  /* Orders later work of ctx after the work that other has queued. other is umemOrdered or
   * umemDeviceShared, and may be of any kind. Default: synchronises other. */
  void (*wait)(umemVirtual *ctx, umemVirtual *other);

  /* Makes all written bytes durable. Default: does nothing. */
  void (*flush)(umemVirtual *ctx);

  /* Gives unused storage back to where it came from, except about keep bytes. Default: does
   * nothing. */
  void (*trim)(umemVirtual *ctx, size_t keep);

  /* Fills in the members of *info that ctx knows. The others already have the values for "unknown".
   * Default: fills in nothing. */
  void (*info)(umemVirtual *ctx, umemInfo *info);

  /* Returns the context over which this one is an adaptor. It never changes, and lives as long as
   * ctx. If this table has NULL for synchronize, flush, trim, info, is_captured, dlpack_device,
   * stream_wait, event_wait, locate or mark, umem calls the method of the upstream. The constructor
   * of the adaptor copies the upstream's capabilities (except umemSilent, because an adaptor
   * records failures), alignment and space. With umemSeparate and another space it is a memory of
   * its own. Default: NULL, ctx is not an adaptor. */
  umemVirtual *(*upstream)(umemVirtual *ctx);

  /* Changes the size of a block; both sizes > 0. If it fails, the block must stay as it was. If ctx
   * knows its blocks, it should fail with umemValueError for an address that is not a live block,
   * and for an old_size that is larger than the block: otherwise the copy of old_size bytes reads
   * past the block, or crashes. Default: a new block, a copy, a free. Before the copy it checks the
   * old block. It calls copy_to for the last of the old_size bytes, which fails on contexts that
   * check their copies (umemIndexError). If ctx is umemCpuReadable, it also checks that these bytes
   * are mapped. */
  uintptr_t (*realloc)(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

  /* Called when the process exits, if ctx is a layer of a default context (default.h) that the
   * library has opened: nobody will call dtor. Completes what other programs will read (a file),
   * and records the failures that dtor would record. ctx must stay usable, because other threads
   * may still run one of its methods. It must neither wait for other threads, nor use libraries
   * that may have ended, such as CUDA. umem calls it once for each layer, the outermost first, but
   * not in a child of fork for a context that its parent has opened. Default: nothing. */
  void (*finish)(umemVirtual *ctx);

  /* For umemOrdered contexts: whether work on ctx is at the moment recorded for later and not
   * queued, as on a stream of CUDA during a capture into a graph. While it is true, umem neither
   * orders other contexts after ctx nor waits for ctx, and a pool does not use memory that was
   * freed in its order for other queues. If it is wrongly false, umem breaks the recording, or
   * waits for work that never runs. If it is wrongly true, freed memory stays unused. It must
   * record no failure and take no lock. Adaptors leave it NULL: umem calls that of the upstream.
   * Default: false. */
  bool (*is_captured)(umemVirtual *ctx);

  /* Gives the CPU a pointer to nbytes > 0 at adr, for a short time. umem uses it to copy single
   * items of strided copies, because a call for each item would take too long. access is
   * umemReadable or umemWritable. Returns true, and sets the first two members of *window. Returns
   * false, and records nothing, if ctx has no such pointer, or if these bytes do not exist or may
   * not be accessed: umem then calls copy_to or copy_from, which report the failure. The pointer
   * must lead to the bytes of ctx and not to a copy: several threads may use windows of the same
   * bytes, and umem writes only the bytes of the items. An access may raise SIGBUS, which umem
   * handles, but no other signal. Before release, the calling thread may call other methods of ctx.
   * A context that is umemFaultable, or whose addresses are not pointers, should have this method.
   * Adaptors leave it NULL: copies reach the upstream through copy_direct. Default: false. */
  bool (*window)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                 umemWindow *window);

  /* Lends the file that holds nbytes > 0 at adr, one after the other, to a device that reads or
   * writes them around the page cache (GPUDirect Storage). access is umemReadable or umemWritable.
   * Returns true, and sets all members of *file but own: moved and refused to zero. Returns false,
   * and records nothing, if the bytes are in no file, do not exist or may not be accessed, or if
   * copy_to or copy_from would be faster: umem then calls these, which report the failure. Before
   * release, the device writes only these bytes. A wrong true lets it overwrite bytes of others.
   * Adaptors leave it NULL: copies reach the upstream through copy_direct. Default: false. */
  bool (*direct_file)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                      umemDirectFile *file);

  /* Copies the pieces that feed hands out from src to memory of ctx, until next says that there
   * will be none, and ends them all. For a device that transfers one piece while the CPU prepares
   * the next one (umem/blocks.h; long copies of umem/transfer.h). Several threads call this at the
   * same time; all contexts are umemConcurrent. Copies by methods of src are done when these
   * return. Returns true, also if a piece has failed. Returns false, and has called no function of
   * feed and recorded nothing, if it has no such route from src: umem then copies by its other
   * routes. If it returns true and leaves pieces, umem copies them. Adaptors leave it NULL: blocks
   * then reach the upstream through copy_direct. Default: false. */
  bool (*copy_pieces)(umemVirtual *ctx, umemVirtual *src, umemFeed *feed);

  /* Returns where other libraries find this memory: a umemDLDeviceCode, or another device code of
   * DLPack. If the memory belongs to a device, also writes the number of this device to *id, which
   * is 0 before. A wrong code lets other libraries use addresses that mean nothing to them. Records
   * nothing. Default: umemDLCPU if ctx is umemCpuReadable; else no other library can use the
   * memory. */
  int (*dlpack_device)(umemVirtual *ctx, int *id);

  /* Makes a stream of the program wait for the work that is queued on ctx. stream: 1, CUDA's legacy
   * default stream; 2, the default stream of the calling thread; or a cudaStream_t. umem calls it
   * when an array is exported (umemArray_to_dlpack). Default: umem_synchronize. */
  void (*stream_wait)(umemVirtual *ctx, uintptr_t stream);

  /* Returns the methods for memory by pages; the struct stays valid as long as ctx. Returns NULL,
   * and records nothing, if ctx has no such memory. A pool over ctx then allocates chunks. umem
   * does not ask the upstream of an adaptor: an adaptor that has this method must do with pages
   * what it does with blocks (count, limit, record). Otherwise its pool's memory passes it by.
   * Default: NULL. */
  umemPages const *(*pages)(umemVirtual *ctx);

  /* Describes nbytes > 0 at adr for other processes. *handle is zero, but for version and length:
   * sets kind, offset, size, identity, flags and name, and *fd to the descriptor that must go with
   * it, which stays that of ctx, or leaves -1. Returns false after a failure. A description of
   * other bytes lets another process overwrite them. Adaptors leave it NULL: umem calls the method
   * of the upstream. Default: umemNotSupportedError. */
  bool (*share)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd);

  /* Sets *adr to the address that the bytes of handle have in ctx: because ctx has them itself, or
   * because it can map them. fd belongs to the handle, or is -1; it stays the caller's. The handle
   * is well formed, but may come from anybody. Returns false, and records nothing, if such bytes
   * can never be in ctx; false after a failure. Adaptors leave it NULL. Default: false. */
  bool (*attach)(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr);

  /* Finds the live block that contains adr, which may be any number. If there is one, sets adr,
   * nbytes and, if the block has a label, block_label of *found, and returns umemSearchFound.
   * Returns umemSearchBusy if it would have to wait for a lock: umem then tries again. It must not
   * wait, record a failure, or call umem, because umem may call it while it holds a lock of the
   * library: otherwise the process hangs. Default: that of the upstream; without one, ctx keeps no
   * records and nothing is found. */
  umemSearch (*find)(umemVirtual *ctx, uintptr_t adr, umemFound *found);

  /* Sets the members of *usage that ctx knows, and returns true. Returns false if it would have to
   * wait for a lock. What find must not do, this must not do either. Default: ctx is not in the
   * list of umem_describe_contexts. */
  bool (*usage)(umemVirtual *ctx, umemUsage *usage);

  /* Copies label for the live block that begins at adr, until the block is freed; "" removes the
   * label. Fails with umemValueError if no live block begins there. Default: that of the upstream;
   * without one, umemNotSupportedError. */
  void (*set_block_label)(umemVirtual *ctx, uintptr_t adr, char const *label);

  /* Ends one attachment that attach has made, at any address of its bytes. Returns false, and
   * records nothing, if nothing is attached there; false after a failure. Adaptors leave it NULL.
   * Default: true, for contexts that attach only bytes of their own. */
  bool (*detach)(umemVirtual *ctx, uintptr_t adr);

  /* The label of ctx has changed (umem_set_label). For contexts that write it down. Must not fail.
   * Default: nothing to do. */
  void (*labelled)(umemVirtual *ctx);

  /* Returns the methods map, unmap and move for larger pages, if these take less time than as many
   * bytes of the pages of the method pages. They are in the same ranges, so reserve and release are
   * NULL, and pages of both sizes may stand side by side. page_size is a power of two, at most 64
   * times the page size of the method pages. Addresses are multiples of that smaller size alone.
   * Only these methods unmap and move what this map has mapped. Everything else is as for pages.
   * Large pages of another size are not used. Default: NULL, all pages are those of the method
   * pages. */
  umemPages const *(*large_pages)(umemVirtual *ctx);

  /* Finds the byte at adr in a storage that several contexts may have at different addresses, such
   * as a file. Sets where[0] and where[1], which name the storage, and where[2], the number of the
   * byte, and returns true. Copies ask it whether the two sides have bytes in common. If it is
   * wrongly false, a copy between two such contexts may overwrite what it has not read yet. It must
   * record no failure. Adaptors leave it NULL: umem calls that of the upstream. Default: false;
   * then two contexts have the same bytes at the same addresses alone. */
  bool (*locate)(umemVirtual *ctx, uintptr_t adr, uint64_t where[3]);

  /* The object that owned the block at adr has ended, and the block stays allocated
   * (umem_end_block). A context that lists blocks that nobody has freed, or gives these back at its
   * end, forgets the block, and calls umemVirtual_leave for the block of its upstream. It records
   * no failure for an address that it does not know. Default: that of the upstream, for the same
   * address; without one, nothing. */
  void (*leave)(umemVirtual *ctx, uintptr_t adr, bool aligned);

  /* Returns whether ctx does this copy by copy_direct, which umem then calls with the same
   * arguments. It only answers: it moves no byte, queues nothing, waits for nothing and records
   * nothing, also not for a copy that copy_direct will refuse with a status. umem calls it once for
   * a copy, for the source and then for the destination, and one side that agrees does the copy; a
   * context with umemPlansAlike is not asked about runs to or from others. If
   * neither does, umem may ask a side with the method window about a copy between it and host
   * memory, before it opens a window. If the answer is wrongly false, the bytes go through host
   * memory. If it is wrongly true and copy_direct returns false, umem goes on as after false.
   * Adaptors leave it NULL. Default: umem calls copy_direct, whose result is the answer. */
  bool (*plan_copy)(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                    uintptr_t dst_adr, umemLayout const *layout);

  /* Makes all bytes zero, and writes only those that may not be: takes the memory back, for
   * example, and gives other memory when they are written. Of pages of the method pages that have
   * memory, not of large ones; and of blocks, at multiples of 64 KiB. A context with this method
   * and pages also promises that the bytes of pages are zero after map, but not after move: a pool
   * then does not write zeros to them in umem_calloc. If it does not keep this promise, umem_calloc
   * returns blocks with other bytes. Returns false, and records nothing, if it cannot: the caller
   * then sets the bytes. Adaptors leave it NULL: umem calls that of the upstream. Default: the
   * bytes of pages are undefined after map. */
  bool (*zero_pages)(umemVirtual *ctx, uintptr_t adr, size_t nbytes);

  /* For umemOrdered contexts: marks the end of the work that is queued on ctx so far. *mark is
   * zero, and gets all members but those of own that it does not need; or it is a mark of ctx,
   * which moves. Returns false, and *mark is as before, after a failure, and with
   * umemNotSupportedError while ctx is captured (is_captured). Transfers (transfer.h) find out by
   * it when their copy is done. A view of a pool on ctx (pool_on.h) sets a mark in its own calls,
   * and another view that takes memory of it waits for this mark: so it makes no call on the queue.
   * Adaptors leave it NULL: umem calls that of the upstream. Default: umem calls synchronize; and
   * another view calls umem_wait for ctx. */
  bool (*mark)(umemVirtual *ctx, umemMark *mark);

  /* Returns the methods for pages of exactly page_size bytes, a size between that of the method
   * pages and that of large_pages, as large_pages does for the largest; NULL if ctx has none of
   * this size. Default: NULL. */
  umemPages const *(*sized_pages)(umemVirtual *ctx, size_t page_size);

  /* Copies those of count > 0 runs from src to dst that wait, in any order (umem_copy_many). ctx is
   * one of the two. Runs that are read from a file may come in another order than that of their
   * addresses: if ctx then returns false, they come again in that order. No run has a byte of a
   * target, not even of its own. Sets the state of each run that it has copied, and of one that
   * fails, after which it copies no others. Returns true if all are copied or a failure is
   * recorded. Returns false, and has recorded nothing, to leave the rest to umem, which copies run
   * by run. An adaptor passes the runs on to its upstream, or leaves this NULL to see each run in
   * copy_direct. Default: false. */
  bool (*copy_runs)(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                    size_t count);

  /* Follows a hint about nbytes > 0 at adr (umem_advise). device is UMEM_CPU or a number from 0. It
   * must not change a byte. It fails with umemNotSupportedError for a hint that it does not know.
   * Adaptors leave it NULL: umem calls that of the upstream. Default: umemNotSupportedError for all
   * hints. */
  void (*advise)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device);

  /* Lets later work of ctx start after an event of the program, a cudaEvent_t that was recorded.
   * umem calls it when a column of Arrow is imported (umemArray_from_arrow). Default:
   * umemNotSupportedError. */
  void (*event_wait)(umemVirtual *ctx, uintptr_t event);
};

/* ---- construction ---- */

/* Makes *ctx a base with status umemOK, no vptr, the capabilities readable and writable, alignment
 * 1, and a space of its own. host: the umemHost for intermediate buffers, borrowed; usually a
 * member of the same struct. It may be NULL for a context that never needs a buffer. vtbl_size is
 * sizeof(struct umemVtbl) as the caller was compiled. */
UMEM_EXTERN void umemVirtual_ctor_sized(umemVirtual *ctx, void *host, size_t vtbl_size);

/* Constructs ctx for programs that were compiled before there was a size: umem calls only the first
 * eleven methods. */
UMEM_EXTERN void umemVirtual_ctor(umemVirtual *ctx, void *host);
#define umemVirtual_ctor(ctx, host) umemVirtual_ctor_sized((ctx), (host), sizeof(struct umemVtbl))

/* Releases what the base holds. Idempotent; umem_dtor calls it after the method dtor. */
UMEM_EXTERN void umemVirtual_dtor(umemVirtual *ctx);

/* ---- defaults, also for use in a table ---- */

/* alloc, then set to 0. */
UMEM_EXTERN uintptr_t umemVirtual_calloc(umemVirtual *ctx, size_t nmemb, size_t size);

/* alloc of size + alignment - 1 bytes, or of size bytes if the natural alignment suffices. A table
 * in RAM records where the allocation begins. */
UMEM_EXTERN uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
UMEM_EXTERN uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr);
UMEM_EXTERN void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr);

/* Calls the method leave of ctx, for adaptors that pass it on to their upstream. Records
 * nothing. */
UMEM_EXTERN void umemVirtual_leave(umemVirtual *ctx, uintptr_t adr, bool aligned);

/* copy_from of a filled host buffer, in chunks. */
UMEM_EXTERN void umemVirtual_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);

/* ---- failing ---- */

/* Records a failure of ctx (NULL: only of the thread). The message is the name of the public
 * function that is running, and then format as with printf. Returns type. */
UMEM_EXTERN umemStatusType umemVirtual_fail(void *ctx, umemStatusType type, char const *format, ...)
    UMEM_PRINTF(3, 4);

/* For adaptors: records the calling thread's last failure on ctx, too. before:
 * umem_thread_failures() at the beginning of the call. Does nothing if there was no failure since
 * then, if it is already recorded on ctx, or if it is not a failure of a context below ctx or of
 * its host, but of the other side of a copy. Returns the type of the failure, or umemOK. */
UMEM_EXTERN umemStatusType umemVirtual_adopt(umemVirtual *ctx, uint64_t before);

/* ---- trying something that may fail ---- */

/* Holds back the calling thread's failures, so that code that can recover from them need not record
 * them:
 *
 *     umemAttempt attempt;
 *     umemAttempt_begin(&attempt);
 *     adr = umem_alloc(upstream, n);
 *     umemAttempt_end(&attempt);
 *     if (umemAttempt_failed(&attempt)) { recover, or umemAttempt_record(&attempt); }
 *
 * Between begin and end umem records no failure on contexts or the thread, and does not call the
 * hook. Attempts nest. An attempt does not hold back failures of functions of the program that umem
 * calls (a umemRetryCallback, a progress). After end the struct is plain data: a helper thread can
 * pass it to its caller, who records it. */
typedef struct umemAttempt {
  struct umemAttempt *outer;
  uint64_t failures;   /* of the thread, when the attempt began */
  umemStatusType type; /* of the first failure held, or umemOK */
  umemStatusType last; /* of the thread, when the attempt began */
  void *ctx;           /* the context that failed, borrowed; may be NULL */
  void *adopter; /* the outermost adaptor that has taken the failure over, borrowed; or NULL */
  char text[UMEM_MESSAGE_SIZE];
} umemAttempt;

/* Begins to hold back the failures of the calling thread. */
UMEM_EXTERN void umemAttempt_begin(umemAttempt *attempt);

/* Ends attempt, the innermost of this thread. */
UMEM_EXTERN void umemAttempt_end(umemAttempt *attempt);

/* Whether a failure was held back. */
UMEM_EXTERN bool umemAttempt_failed(umemAttempt const *attempt);

/* Records the failure that was held back, if any, on its context and the calling thread. Returns
 * its type. */
UMEM_EXTERN umemStatusType umemAttempt_record(umemAttempt const *attempt);

#endif
