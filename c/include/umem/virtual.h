/* umem/virtual.h - for those who write a context of their own.
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
 *       ctx->super.capabilities |= umemConcurrent;   // what else is true of it
 *     }
 *
 * The guide "Write your own context" walks through a whole one. The library calls a method only after
 * it has checked what can be checked for every context: constructed, no null address, no overflow of
 * adr + n or nmemb * size, alignment a power of two, n > 0, readable or writable as needed.
 *
 * A method that fails records it with umemVirtual_fail (or umem_set_status) on its own context,
 * in the thread that called it, and returns umem_null(ctx) where it returns an address. No exception may
 * leave a method. pthread_cancel does not end the thread in one: umem puts cancellation off, unless ctx has
 * umemPrompt (see doc/concepts/callbacks.rst).
 */
#ifndef UMEM_VIRTUAL_H
#define UMEM_VIRTUAL_H

#include <umem/context.h>
#include <umem/copy.h>

/* Bytes of a context where the CPU finds them for a while (see the method window). */
typedef struct umemWindow {
  void *bytes; /* the first of them */
  /* Ends the window; NULL if there is nothing to do. ctx is the context that has filled in the struct. */
  void (*release)(umemVirtual *ctx, struct umemWindow *window);
  uintptr_t own[4]; /* for ctx */
} umemWindow;

/* Bytes of a context that are in a file, for a device that transfers them itself (see the method direct_file). */
typedef struct umemDirectFile {
  int fd;            /* of a regular file, opened with O_DIRECT for the access that was asked for */
  uint64_t offset;   /* of the first byte in that file */
  char const *label; /* names the file in messages; valid until release */
  /* Ends the loan, and closes fd. ctx is the context that has filled in the struct. */
  void (*release)(umemVirtual *ctx, struct umemDirectFile *file);
  uintptr_t own[4]; /* for ctx */
} umemDirectFile;

/* The table of methods. NULL means the default that each comment names. The first eleven keep their order for
 * good; new ones are only appended. A context that was compiled against a shorter table gets the defaults
 * (umemVirtual.vtbl_size). */
struct umemVtbl {
  /* Releases what the constructor took, once. What it does not release is lost for good. The library cleans
   * up the base afterwards. If the host of the base ends here, call umemVirtual_dtor from here before.
   * Default: nothing. */
  void (*dtor)(umemVirtual *ctx);

  /* Whether addresses of other, whose kind may be another, mean the same bytes as in ctx. A wrong
   * true lets connect hand out addresses that mean something else.
   * Default: same vptr and same space. */
  bool (*is_same_device)(umemVirtual *ctx, umemVirtual *other);

  /* Returns nbytes > 0 of memory at a multiple of ctx->alignment, or umem_null(ctx).
   * Default: umemNotImplementedError. */
  uintptr_t (*alloc)(umemVirtual *ctx, size_t nbytes);

  /* As alloc, with every byte zero. nmemb * size is greater than 0 and does not overflow.
   * Default: umemVirtual_calloc. */
  uintptr_t (*calloc)(umemVirtual *ctx, size_t nmemb, size_t size);

  /* Frees a block of alloc or calloc. An address that is not live should be umemValueError, with
   * nothing freed, where ctx can tell. Default: umemNotImplementedError. */
  void (*free)(umemVirtual *ctx, uintptr_t adr);

  /* As alloc, at a multiple of alignment, a power of two. Override all three or none.
   * Defaults: umemVirtual_aligned_alloc, _origin, _free. */
  uintptr_t (*aligned_alloc)(umemVirtual *ctx, size_t alignment, size_t size);
  uintptr_t (*aligned_origin)(umemVirtual *ctx, uintptr_t adr);
  void (*aligned_free)(umemVirtual *ctx, uintptr_t adr);

  /* Sets nbytes > 0 to (unsigned char)c. Default: umemVirtual_set. */
  void (*set)(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);

  /* Copies nbytes > 0 between ctx and that, which is always a umemHost: dst_adr and src_adr there are
   * pointers. An ordered context may return before the copy is done.
   * Default: umemNotImplementedError. */
  void (*copy_to)(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                  size_t nbytes);
  void (*copy_from)(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                    size_t nbytes);

  /* ---- appended after the first eleven ---- */

  /* Copies by a route better than through host memory, and returns true: done, or failed with a
   * status. Returns false, having touched nothing and recorded nothing, for all that is not its own.
   * ctx is src or dst. layout is normal: rank 0 is a plain run of item_size bytes; otherwise no extent
   * is 0 or 1, strides are never NULL, those of dst are not negative and fall from the first to the
   * last, and what is contiguous on both sides has been merged. An adaptor calls umem_copy_strided here with itself
   * replaced by its upstream. Default: false. */
  bool (*copy_direct)(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout);

  /* Returns when all work queued on ctx is complete. Obligatory for umemOrdered contexts, because umem
   * would free buffers that are still in use, and for umemDeviceShared ones, because umem would read bytes
   * that a GPU has not written yet. Default: nothing to do. */
  void (*synchronize)(umemVirtual *ctx);

  /* Orders later work of ctx after the work that other has queued. other is umemOrdered or
   * umemDeviceShared, and may be of any kind. Default: synchronises other. */
  void (*wait)(umemVirtual *ctx, umemVirtual *other);

  /* Makes what was written durable. Default: nothing to do. */
  void (*flush)(umemVirtual *ctx);

  /* Returns unused storage to where it came from, all but about keep bytes. Default: nothing to do. */
  void (*trim)(umemVirtual *ctx, size_t keep);

  /* Fills in the members of *info that it knows; the others are preset to unknown.
   * Default: knows nothing. */
  void (*info)(umemVirtual *ctx, umemInfo *info);

  /* The context that this one is an adaptor over; constant, and alive as long. umem calls its synchronize,
   * flush, trim, info and is_captured where this table has NULL. The constructor of the adaptor takes over its
   * capabilities (not umemSilent: an adaptor records failures), alignment and space.
   * Default: NULL, this is no adaptor. */
  umemVirtual *(*upstream)(umemVirtual *ctx);

  /* Changes the size of a block; both sizes > 0. On failure the block must be left as it was. An address
   * that is not live, and an old_size that is larger than the block, should be umemValueError where ctx can
   * tell: otherwise the copy of old_size bytes reads past the block, or crashes.
   * Default: a new block, a copy, a free. Before the copy it checks the old block: it calls copy_to for the
   * last of the old_size bytes, which fails on contexts that check their copies (umemIndexError), and where
   * ctx is umemCpuReadable it checks that these bytes are mapped. */
  uintptr_t (*realloc)(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

  /* The process exits, and ctx is a layer of a default context (default.h) that the library has opened:
   * nobody will call dtor. Completes what others will read (a file), and records the failures that dtor
   * would record. ctx must stay usable: other threads may still run one of its methods. Must neither wait
   * for other threads, nor use libraries that may have ended, such as CUDA. Called once for each layer, from
   * the outermost on; not in a child of fork for a context that its parent has opened. Default: nothing. */
  void (*finish)(umemVirtual *ctx);

  /* Whether the work of ctx, which is umemOrdered, is at the moment recorded for later instead of queued: a
   * stream of CUDA in a capture into a graph. While it is true, umem neither orders other contexts after ctx
   * nor waits for ctx, and a pool does not reuse for other queues what was freed in its order. A wrong false
   * breaks the recording, or makes others wait for work that never runs; a wrong true keeps freed memory out
   * of use. Must record no failure and take no lock. Adaptors leave it NULL: umem asks the upstream.
   * Default: false. */
  bool (*is_captured)(umemVirtual *ctx);

  /* Gives the CPU pointers to nbytes > 0 at adr, for a short time: umem copies single items through them, where
   * a call for each would take too long. access is umemReadable or umemWritable. Returns true with the first two
   * members of *window set. Returns false, with nothing recorded, if ctx cannot do so, or not for these bytes:
   * umem then calls copy_to or copy_from, which report what is wrong. So ctx returns false for bytes that may
   * not be read or written, or that do not exist.
   * The bytes are those of ctx, not a copy of them: several threads may use windows of the same bytes, and umem
   * writes none but those of the items. An access may raise SIGBUS, of which umem takes care, but no other
   * signal. Until release, the calling thread makes other calls for ctx.
   * A context that is umemFaultable or has no pointers should have it. Adaptors leave it NULL: copies reach the
   * upstream through copy_direct. Default: false. */
  bool (*window)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                 umemWindow *window);

  /* Lends the file that holds nbytes > 0 at adr, one after the other, to a device that reads or writes them
   * around the page cache (GPUDirect Storage). access is umemReadable or umemWritable. Returns true with all
   * members of *file but own set. Returns false, with nothing recorded, if the bytes are in no file, may not be
   * read or written, or do not exist, and if copy_to or copy_from would be faster: umem then calls these, which
   * report what is wrong. Until release, umem writes no other bytes than these.
   * A wrong true lets a device overwrite bytes that are not the caller's. Adaptors leave it NULL: copies reach
   * the upstream through copy_direct. Default: false. */
  bool (*direct_file)(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemCapability access,
                      umemDirectFile *file);
};

/* ---- construction ---- */

/* Makes *ctx a base with status umemOK, no vptr, the capabilities readable and writable, alignment 1,
 * and a space of its own. host (a umemHost, borrowed; usually a member of the same struct) serves for
 * intermediate buffers and may be NULL for a context that never needs any.
 * vtbl_size is sizeof(struct umemVtbl) as the caller was compiled. */
UMEM_EXTERN void umemVirtual_ctor_sized(umemVirtual *ctx, void *host, size_t vtbl_size);

/* The same for binaries that name no size: only the first eleven methods are ever called. */
UMEM_EXTERN void umemVirtual_ctor(umemVirtual *ctx, void *host);
#define umemVirtual_ctor(ctx, host) umemVirtual_ctor_sized((ctx), (host), sizeof(struct umemVtbl))

/* Releases what the base holds. Idempotent; umem_dtor calls it after the method dtor. */
UMEM_EXTERN void umemVirtual_dtor(umemVirtual *ctx);

/* ---- defaults, also for use in a table ---- */

/* alloc, then set to 0. */
UMEM_EXTERN uintptr_t umemVirtual_calloc(umemVirtual *ctx, size_t nmemb, size_t size);

/* alloc of size + alignment - 1 bytes (of size, where the natural alignment suffices); the origin is
 * kept in a table beside the memory. */
UMEM_EXTERN uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
UMEM_EXTERN uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr);
UMEM_EXTERN void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr);

/* copy_from of a filled host buffer, in chunks. */
UMEM_EXTERN void umemVirtual_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);

/* ---- failing ---- */

/* Records a failure of ctx (NULL: of the thread alone) with a message as of printf, after the name of the
 * public function that is running. Returns type. */
UMEM_EXTERN umemStatusType umemVirtual_fail(void *ctx, umemStatusType type, char const *format, ...)
    UMEM_PRINTF(3, 4);

/* For adaptors: records the calling thread's last failure on ctx too. Does so if the failure came since before
 * (an earlier umem_thread_failures()), is not yet recorded on ctx, and is one of a context below ctx or of its
 * host: not that of the other side of a copy. Returns the type of the failure, or umemOK. */
UMEM_EXTERN umemStatusType umemVirtual_adopt(umemVirtual *ctx, uint64_t before);

/* ---- trying something that may fail ---- */

/* Holds the calling thread's failures, so that code which can recover may forget them:
 *
 *     umemAttempt attempt;
 *     umemAttempt_begin(&attempt);
 *     adr = umem_alloc(upstream, n);
 *     umemAttempt_end(&attempt);
 *     if (umemAttempt_failed(&attempt)) { recover, or umemAttempt_record(&attempt); }
 *
 * Between begin and end no failure reaches contexts, thread status or hook; attempts nest. An attempt does not
 * hold failures of functions of the program that umem calls meanwhile (a umemRetryCallback, a progress). After
 * end the struct is plain data: a helper thread can hand it to its caller, who records it. */
typedef struct umemAttempt {
  struct umemAttempt *outer;
  uint64_t failures;   /* of the thread, when the attempt began */
  umemStatusType type; /* of the first failure held, or umemOK */
  umemStatusType last; /* of the thread, when the attempt began */
  void *ctx;           /* the context that failed, borrowed; may be NULL */
  void *adopter; /* the outermost adaptor that has taken the failure over, borrowed; or NULL */
  char text[UMEM_MESSAGE_SIZE];
} umemAttempt;

/* Begins to hold the failures of the calling thread. */
UMEM_EXTERN void umemAttempt_begin(umemAttempt *attempt);

/* Ends attempt, the innermost of this thread. */
UMEM_EXTERN void umemAttempt_end(umemAttempt *attempt);

/* Whether a failure was held. */
UMEM_EXTERN bool umemAttempt_failed(umemAttempt const *attempt);

/* Records the held failure, if any, on its context and the calling thread. Returns its type. */
UMEM_EXTERN umemStatusType umemAttempt_record(umemAttempt const *attempt);

#endif
