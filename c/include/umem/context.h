/* umem/context.h - what a context is, and functions that work on every context.
 *
 * A context stands for one place where bytes are kept (RAM, a file, a GPU). Some contexts also have
 * a queue of work on these bytes. A context is a plain struct that the caller declares: umemHost,
 * umemFile, ...
 *
 *     umemFile file;
 *     umemFile_ctor(&file, "array.bin", "w+");    // the only line that names the place
 *     uintptr_t adr = umem_alloc(&file, 800);
 *     ...
 *     umem_dtor(&file);
 *
 * Every function takes contexts as void *, so that you can pass a pointer to any of these structs.
 * A context must stay at the address at which it was constructed. A copy by value (f = g, a struct
 * that is returned, an array that realloc has moved) is not a context: every call on it, also
 * umem_dtor, fails with umemValueError and changes only the status of the copy. Every call on a
 * struct that is all zero, on a context whose constructor has failed, and on a context that was
 * destructed returns a status.
 *
 * Addresses are uintptr_t. They are pointers if this process can address the memory of the context;
 * for a File they are byte offsets. You may add to an address as long as the result is inside its
 * block.
 *
 * Threads: while the constructor or the destructor of a context runs, no other thread may use the
 * context. If a context has umemConcurrent, many threads may call all other functions on it at
 * once; otherwise only one thread may be in a call at a time. Calls on different contexts do not
 * affect each other. */
#ifndef UMEM_CONTEXT_H
#define UMEM_CONTEXT_H

#include <stddef.h>
#include <umem/status.h>

struct umemVtbl;

/* The kind of a context, for people to read. The library decides by umemCapability, never by
 * this. */
typedef enum umemDeviceType {
  umemVirtualDevice = 0,
  umemHostDevice,
  umemFileDevice,
  umemCudaDevice,
  umemMMapDevice,
  umemCudaHostDevice,
  umemCudaManagedDevice,
  umemCudaAsyncDevice,
  umemShmDevice,
  umemUrlDevice,
  umemUserDevice = 1024 /* the first number for devices added outside of the library */
} umemDeviceType;

/* What a context can do: bits, or-ed together. The constructor sets them, and they never change. */
typedef enum umemCapability {
  umemCpuReadable = 1 << 0,      /* addresses are pointers that this process may read through */
  umemCpuWritable = 1 << 1,      /* ... and write through */
  umemDeviceAccessible = 1 << 2, /* a GPU can use the addresses */
  umemReadable = 1 << 3,         /* copies out of it are allowed */
  umemWritable = 1 << 4,         /* copies into it, sets and calloc are allowed */
  umemOrdered = 1 << 5,          /* work is queued and may finish later; see umem_synchronize */
  umemConcurrent = 1 << 6,       /* many threads may use it at once */
  umemOffsets = 1 << 7,          /* addresses are offsets: 0 is valid, UINTPTR_MAX is null */
  /* an access through a pointer may raise a signal: SIGBUS if another process makes a mapped file
   * shorter, SIGSEGV for closed pages of a umemGuarded. umem's own copies use methods */
  umemFaultable = 1 << 8,
  /* it has methods alloc and free, which record nothing: null, which is 0, means out of memory,
   * and umem records that */
  umemSilent = 1 << 9,
  umemSeesHost = 1 << 10, /* reserved: no context has it */
  /* Kernels of the program may use the memory while no call of umem runs. umem_synchronize waits
   * for these kernels, umem_wait orders other contexts after them, and umem waits before the CPU
   * uses the memory. */
  umemDeviceShared = 1 << 11,
  /* No method but dtor and info reaches a point where pthread_cancel may end the thread (I/O,
   * waiting), so umem does not disable cancellation: see doc/concepts/threads.rst. */
  umemPrompt = 1 << 12,
  /* The methods alloc and free reach such a point only when they call umem on another context,
   * as those of a pool do. */
  umemPromptBlocks = 1 << 13,
  /* A umemGuarded is in the stack: connections and arrays do not share the memory with a Host,
   * also where they could. So a program meets the copies that a GPU would need. */
  umemSeparate = 1 << 14,
  /* The memory may outlive the process: a child of fork and its parent use the same bytes
   * (shared memory, files, ranks of MPI). An object frees a block there only in the process that
   * has allocated or received it: see umem_end_block. Copies without a named place, in C++ and
   * Python, are in RAM. */
  umemShared = 1 << 15,
  /* A named file: what was written stays. An object of C++ or Python that ends leaves its block
   * allocated, so that no later block takes its bytes. See umemReuse in umem/file.h. */
  umemKeeps = 1 << 16,
  umemKeepsAll = 1 << 17, /* so does a umemArray that ends (umemReuseNo) */
  /* Its method plan_copy agrees to a run (rank 0) only where the other side has the same method, so
   * umem calls it for no other run. */
  umemPlansAlike = 1 << 18
} umemCapability;

/* The base of every context, and the first member of its struct. Programs must not change it;
 * virtual.h is for authors of contexts. The size and all offsets stay the same as long as the
 * SOVERSION does. */
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
  void *base;            /* owned by the library: the label of the context and records of its
                            aligned blocks; NULL while it has neither */
  void const *self;      /* where it was constructed; at any other address it is a copy */
  uintptr_t reserved[4]; /* of the library; zero in contexts of programs */
  char text[UMEM_MESSAGE_SIZE]; /* where status.message points */
} umemVirtual;

/* ---- the end of a context ---- */

/* Destructs ctx. A context that owns its memory (files, GPUs, pools) frees the blocks that are
 * still live; a named file keeps its bytes. The blocks of a Host, and of an adaptor that passes
 * on the blocks of the context below, stay live. If the end fails (for example close), ctx and
 * the thread record the failure, and you can read it afterwards. Does nothing for NULL, and for
 * a context that is all zero or was destructed. */
UMEM_EXTERN void umem_dtor(void *ctx);

/* ---- questions ---- */

/* The address that no block has, and that failed allocations return: 0, or UINTPTR_MAX if
 * addresses are offsets (umemOffsets). Returns 0 for NULL. */
UMEM_EXTERN uintptr_t umem_null(void const *ctx);

/* The name of the kind of context: "Host", "File", ...; "User" if the context has set no name,
 * "None" for NULL and for a struct that is all zero. Never NULL; static storage. */
UMEM_EXTERN char const *umem_get_device_name(void const *ctx);

/* Whether an address means the same byte in both contexts. For an adaptor, umem compares its
 * innermost context; a umemGuarded over RAM has a memory of its own. Returns false, and records
 * a status, if either is not constructed. */
UMEM_EXTERN bool umem_is_same_device(void *one, void *other);

/* Returns the context below ctx: the upstream that a pool, a limit or another adaptor was
 * constructed with, or the next layer of a context of umem_open. The result points to the struct of
 * its kind, so that you can pass it to functions for this kind:
 *
 *     void *ctx = umem_open("pool+stats+host:");
 *     umemStats_get(umem_get_upstream(ctx), &figures);
 *
 * The caller borrows the result. ctx neither counts nor frees blocks that the program allocates
 * directly from it. Returns NULL if no context is below ctx. Returns NULL, and records a status, if
 * ctx or the context below it is not constructed. */
UMEM_EXTERN void *umem_get_upstream(void *ctx);

/* Searches the stack of ctx for a layer of a kind: first ctx itself, then the context below it, and
 * so on. Returns the first one, as a pointer to the struct of the kind. kind: the name of the kind
 * in umem_open; also "retry", "binning" and "pool-on", which umem_open cannot construct, and
 * schemes of the program that name their method table (umemScheme.vtbl).
 *
 *     void *ctx = umem_open("pool+stats+host:");
 *     umemStats *stats = umem_find_layer(ctx, "stats");
 *     if (stats) umemStats_get(stats, &figures);
 *
 * The caller borrows the result. Returns NULL, and records umemValueError, if the stack has no such
 * layer, or if there is no kind of this name; the message lists the layers or kinds that exist.
 * Returns NULL, and records a status, if ctx or a context below it is not constructed. */
UMEM_EXTERN void *umem_find_layer(void *ctx, char const *kind);

/* The value of a number in umemInfo that the context does not know. */
#define UMEM_UNKNOWN UINT64_MAX

/* What umem_get_info fills in. Sizes in bytes. */
typedef struct umemInfo {
  size_t size;        /* sizeof(umemInfo) as the caller was compiled; set it before the call */
  uint64_t capacity;  /* how much the place holds in all */
  uint64_t available; /* how much of it could still be allocated; of RAM, without swapping */
  uint64_t page_size; /* the unit in which the place is provided */
  uint64_t alignment; /* the natural alignment of blocks */
  int64_t ordinal;    /* the number of the device, -1 where there is none */
  char name[128];     /* a file's path, a GPU's model; cut if longer */
  /* the cudaStream_t on which work is queued, 0 being CUDA's legacy default stream; UMEM_UNKNOWN
   * for a context that queues work on none */
  uint64_t stream;
  /* the nodes of the machine (NUMA) where RAM of a Host may be: bit n stands for node n.
   * UMEM_UNKNOWN where the kernel does not tell, and for other places */
  uint64_t nodes;
} umemInfo;

/* What an umemInfo starts as: its size set, everything else unknown. */
#define UMEM_INFO_INIT                                                                             \
  {                                                                                                \
    sizeof(umemInfo), UMEM_UNKNOWN, UMEM_UNKNOWN, UMEM_UNKNOWN, 0, -1, "", UMEM_UNKNOWN,           \
        UMEM_UNKNOWN                                                                               \
  }

/* Fills in *info. Members that ctx does not know become UMEM_UNKNOWN, -1 or "". Writes at most
 * info->size bytes. Errors: umemValueError if info is NULL, or if info->size is smaller than
 * that of any version of the struct. */
UMEM_EXTERN umemStatusType umem_get_info(void *ctx, umemInfo *info);

/* Returns so many bytes as are this share of what ctx could still allocate (umemInfo.available),
 * rounded down to a multiple of 256: for pools that take half of what is free. share: from 0 to 1.
 * What is free changes: the bytes may not be there any more. Returns 0, and records a status, for
 * another share (umemValueError) and if ctx does not know what is free (umemNotSupportedError). */
UMEM_EXTERN size_t umem_get_available_share(void *ctx, double share);

/* ---- order and durability ---- */

/* Waits until all work that is queued on ctx is done, and returns and records its failures.
 * Returns at once if ctx never queues work (it is neither umemOrdered nor umemDeviceShared). */
UMEM_EXTERN umemStatusType umem_synchronize(void *ctx);

/* Makes ctx wait for other: later work of ctx starts after the work that other has queued so
 * far. Between two streams the GPU waits, and the call returns at once; otherwise the calling
 * thread may wait. Does nothing if other is neither umemOrdered nor umemDeviceShared. */
UMEM_EXTERN umemStatusType umem_wait(void *ctx, void *other);

/* Makes all bytes durable that were written to a file so far: they then survive a power cut.
 * Does nothing for memory. */
UMEM_EXTERN umemStatusType umem_flush(void *ctx);

/* Gives storage that no block uses back to where it came from, except about keep bytes: a pool
 * gives chunks to the context below, a file gives space to the disk. The page of each context
 * has the details. Does nothing for contexts that keep no unused storage. */
UMEM_EXTERN umemStatusType umem_trim(void *ctx, size_t keep);

#endif
