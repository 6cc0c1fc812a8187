/* umem/context.h - what a context is, and what can be asked of any of them.
 *
 * A context stands for one place that holds bytes (RAM, a file, a GPU) and for an ordered queue of
 * work on it. It is a plain struct of the caller: umemHost, umemFile, ...
 *
 *     umemFile file;
 *     umemFile_ctor(&file, "array.bin", "w+");    // the only line that names the place
 *     uintptr_t adr = umem_alloc(&file, 800);
 *     ...
 *     umem_dtor(&file);
 *
 * Every function takes contexts as void *, so that a pointer to any of these structs will do.
 * A context must stay where it was constructed. A copy by value (f = g, a struct that is returned, an
 * array that realloc has moved) is no context: every call on it, umem_dtor too, is umemValueError and
 * changes only the status of the copy. A context that is all zero, whose constructor failed, or that was
 * destructed answers every call with a status.
 *
 * Addresses are uintptr_t. Where a context's memory can be addressed by this process they are
 * pointers; for a File they are byte offsets. Adding to an address is valid inside its block.
 *
 * Threads: constructor and destructor run alone. On a context with umemConcurrent everything else
 * may be called from many threads at once; on others the caller takes turns. Distinct contexts are
 * independent.
 */
#ifndef UMEM_CONTEXT_H
#define UMEM_CONTEXT_H

#include <stddef.h>
#include <umem/status.h>

struct umemVtbl;

/* A label for people. The library never decides by it; see umemCapability. */
typedef enum umemDeviceType {
  umemVirtualDevice = 0,
  umemHostDevice,
  umemFileDevice,
  umemCudaDevice,
  umemMMapDevice,
  umemCudaHostDevice,
  umemCudaManagedDevice,
  umemCudaAsyncDevice,
  umemUserDevice = 1024 /* the first number for devices added outside of the library */
} umemDeviceType;

/* What a context can do. Set by its constructor, constant afterwards, or-ed together. */
typedef enum umemCapability {
  umemCpuReadable = 1 << 0,      /* addresses are pointers that this process may read through */
  umemCpuWritable = 1 << 1,      /* ... and write through */
  umemDeviceAccessible = 1 << 2, /* a GPU can use the addresses */
  umemReadable = 1 << 3,         /* copies out of it are allowed */
  umemWritable = 1 << 4,         /* copies into it, sets and calloc are allowed */
  umemOrdered = 1 << 5,          /* work is queued and may finish later; see umem_synchronize */
  umemConcurrent = 1 << 6,       /* many threads may use it at once */
  umemOffsets = 1 << 7,          /* addresses are offsets: 0 is a good one, UINTPTR_MAX is null */
  umemFaultable = 1 << 8,        /* pointers may fault, as when others cut a mapped file: umem's own
                                    copies go through methods */
  umemSilent = 1 << 9,           /* it has methods alloc and free, which record nothing: null, which
                                    is 0, means that memory is out, and umem says so */
  umemSeesHost = 1 << 10, /* the GPU can use the addresses of all host memory, pinned or not */
  /* A GPU may use the memory while no call of umem runs: kernels of the program do. umem_synchronize waits
   * for it, umem_wait orders other contexts after it, and umem waits before the CPU uses the memory. */
  umemDeviceShared = 1 << 11,
  /* No method reaches a point where pthread_cancel may end the thread (I/O, waiting), so umem does not
   * put cancellation off. */
  umemPrompt = 1 << 12,
  /* The methods alloc and free reach such a point only in calls of umem on another context, as those of
   * a pool do. */
  umemPromptBlocks = 1 << 13
} umemCapability;

/* The base of every context, its first member. Read-only for users; virtual.h is for those who
 * write contexts. The size and every offset are fixed for the life of an SOVERSION. */
typedef struct umemVirtual {
  struct umemVtbl const *vptr; /* borrowed; NULL before construction and after destruction */
  umemDeviceType type;
  umemStatus status;
  void *host;            /* borrowed: the umemHost for intermediate buffers. A context that is its
                            own host is plain RAM. */
  char const *name;      /* borrowed, static: what umem_get_device_name returns; NULL is "User" */
  uint32_t capabilities; /* umemCapability, or-ed */
  uint32_t vtbl_size;    /* bytes of the method table that the context was compiled against */
  size_t alignment;      /* bytes: every address of umem_alloc and umem_calloc is a multiple */
  uint64_t space[2];     /* names the address space: equal (and one vptr) means the same memory */
  void *base;            /* owned by the library */
  void const *self;      /* where it was constructed; at any other address it is a copy */
  uintptr_t reserved[4]; /* zero */
  char text[UMEM_MESSAGE_SIZE]; /* where status.message points */
} umemVirtual;

/* ---- the end of a context ---- */

/* Destructs ctx: its own clean-up, then the library's. Blocks still allocated are given back where
 * the memory belongs to the context; a file keeps its bytes. Errors that only the end reveals (a
 * failing close) can be read from ctx and the thread afterwards. Destructing a zeroed or destructed
 * context, or NULL, does nothing. */
UMEM_EXTERN void umem_dtor(void *ctx);

/* ---- questions ---- */

/* The address that no block has, and that failed allocations return: 0, or UINTPTR_MAX where
 * addresses are offsets (umemOffsets). 0 for NULL. */
UMEM_EXTERN uintptr_t umem_null(void const *ctx);

/* The name of the kind of context: "Host", "File", ...; "User" for one that has set none, "None"
 * for NULL or a zeroed one. Never NULL; static storage. */
UMEM_EXTERN char const *umem_get_device_name(void const *ctx);

/* Whether an address of one means the same byte in the other. Decorators are looked through.
 * False, and a status, when either is not constructed. */
UMEM_EXTERN bool umem_is_same_device(void *one, void *other);

/* The context that ctx goes over: what a pool, a limit or another decorator was constructed with; of a
 * context of umem_open the next layer. A pointer to the struct of its kind, for what only that kind can
 * do:
 *
 *     void *ctx = umem_open("pool+stats+host:");
 *     umemStats_get(umem_get_upstream(ctx), &figures);
 *
 * Borrowed: it ends as it would without this call. What is allocated there goes past ctx, which then
 * neither counts nor frees it. NULL where ctx goes over none; NULL, and a status, when ctx or what it
 * goes over is not constructed. */
UMEM_EXTERN void *umem_get_upstream(void *ctx);

/* The outermost layer of a kind in the stack of ctx: ctx itself, what it goes over, and so on. kind: the name
 * that umem_open has for it, and "retry", "binning" and "pool-on" for those that umem_open cannot construct; of a
 * scheme of the program where that names its method table. A pointer to the struct of the kind:
 *
 *     void *ctx = umem_open("pool+stats+host:");
 *     umemStats *stats = umem_find_layer(ctx, "stats");
 *     if (stats) umemStats_get(stats, &figures);
 *
 * Borrowed, as of umem_get_upstream. NULL and umemValueError where the stack has no such layer, and for the name
 * of no kind; the message says which, with the layers or kinds that there are. NULL and a status, too, when ctx
 * or what it goes over is not constructed. */
UMEM_EXTERN void *umem_find_layer(void *ctx, char const *kind);

/* A number in umemInfo that the context does not know. */
#define UMEM_UNKNOWN UINT64_MAX

/* What umem_get_info tells. Sizes in bytes. */
typedef struct umemInfo {
  size_t size;        /* sizeof(umemInfo) as the caller was compiled; set it before the call */
  uint64_t capacity;  /* how much the place holds in all */
  uint64_t available; /* how much of it could still be allocated */
  uint64_t page_size; /* the unit in which the place is provided */
  uint64_t alignment; /* the natural alignment of blocks */
  int64_t ordinal;    /* the number of the device, -1 where there is none */
  char name[128];     /* a file's path, a GPU's model; cut if longer */
  uint64_t
      stream; /* the cudaStream_t on which work is queued, 0 being CUDA's legacy default stream;
                         UMEM_UNKNOWN for a context that queues work on none */
} umemInfo;

/* What an umemInfo starts as: its size set, everything else unknown. */
#define UMEM_INFO_INIT                                                                             \
  { sizeof(umemInfo), UMEM_UNKNOWN, UMEM_UNKNOWN, UMEM_UNKNOWN, 0, -1, "", UMEM_UNKNOWN }

/* Fills *info with what ctx knows; what it does not know becomes UMEM_UNKNOWN, -1 or "".
 * At most info->size bytes are written. umemValueError when info is NULL or its size too small to
 * be true. */
UMEM_EXTERN umemStatusType umem_get_info(void *ctx, umemInfo *info);

/* ---- order and durability ---- */

/* Returns when all work queued on ctx is complete, and records its failures. Returns at once where nothing
 * is ever queued (neither umemOrdered nor umemDeviceShared). */
UMEM_EXTERN umemStatusType umem_synchronize(void *ctx);

/* Later work of ctx starts only after what other has queued so far. Returns at once when other is neither
 * umemOrdered nor umemDeviceShared. */
UMEM_EXTERN umemStatusType umem_wait(void *ctx, void *other);

/* Returns when everything written so far survives a power cut (files), or at once (memory). */
UMEM_EXTERN umemStatusType umem_flush(void *ctx);

/* Gives storage that no block uses back to where it came from, all but about keep bytes. What that
 * means is on each context's page; where nothing is kept in reserve it does nothing. */
UMEM_EXTERN umemStatusType umem_trim(void *ctx, size_t keep);

#endif
