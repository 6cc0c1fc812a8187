/* umem/handle.h - passes memory to other processes of one machine, without a copy.
 *
 *     umemHandle handle;                                   // the process that has the block
 *     umem_share(&shm, adr, 800, &handle);
 *     write(pipe, &handle, sizeof handle);
 *
 *     read(pipe, &handle, sizeof handle);                  // another process
 *     double *u = (double *)umem_attach(&handle, &host);
 *     ...
 *     umem_detach(&host, (uintptr_t)u);
 *
 * A handle is plain data: it can go through a pipe, a queue or a file. What a Shm with a name has
 * can be attached by the handle alone. Memory without a name and files need a descriptor, too:
 * umem_send and umem_receive pass both through a Unix socket. A segment that is attached can be
 * attached again by the handle alone; a file needs its descriptor each time. So a process attaches
 * only what it may open itself, or what another one has opened for it.
 *
 * Contexts that can share: Shm; File and MMap if they can be read; Cuda, and CudaAsync with the
 * option share. Adaptors and pools over them share the same bytes. The block must live until all
 * processes have detached it: umem does not detect a free before.
 *
 * Memory of a GPU is attached to a Cuda or a CudaAsync, of the same GPU or of one that reaches it.
 * Later work of that context comes after the work that the sharing context had queued when it
 * shared the block: an event goes with the handle, and the host does not wait. In the other
 * direction nothing is ordered: call umem_detach, or umem_synchronize, before you tell the other
 * process that you are done.
 *
 * A handle is untrusted input: umem checks every member, and what it leads to. The bytes that are
 * attached are those that the other process writes, at any time. */
#ifndef UMEM_HANDLE_H
#define UMEM_HANDLE_H

#include <stddef.h>
#include <stdint.h>
#include <umem/config.h>
#include <umem/status.h>

/* What the bytes are in. */
typedef enum umemHandleKind {
  umemHandleNamed = 1,   /* a segment of a Shm with a name */
  umemHandleUnnamed = 2, /* one without a name; needs its descriptor */
  umemHandleFile = 3,    /* a file; needs its descriptor */
  umemHandleCuda = 4,    /* a block of a Cuda */
  umemHandleCudaPool = 5 /* a block of a CudaAsync with the option share; needs its descriptor */
} umemHandleKind;

/* Whose memory a process uses: that of which users. All who may write shared memory may change its
 * bytes and its tables at any time, and umem then reports damage; they reach no other memory of the
 * process. */
typedef enum umemTrust {
  umemTrustDefault = 0, /* umemTrustUser, unless the options of a Shm say more */
  umemTrustUser,        /* what belongs to the effective user, and what nobody else may write */
  /* also what belongs to the group of a file, if the user is in it; nobody else may write it */
  umemTrustGroup,
  umemTrustAll /* what anybody may have made */
} umemTrust;

/* The version of the struct umemHandle. */
#define UMEM_HANDLE_VERSION 1

/* umemHandle.flags: the other process may only read. */
#define UMEM_HANDLE_READ_ONLY 1u

/* Bytes that another process can attach. Its size never changes. Programs read the first members,
 * and change none. */
typedef struct umemHandle {
  uint32_t version; /* UMEM_HANDLE_VERSION */
  uint32_t kind;    /* umemHandleKind */
  uint64_t length;  /* bytes; greater than 0 */
  uint64_t offset;  /* of the first, in the segment or file */
  uint64_t size;    /* bytes of the segment or file */
  /* Device and inode; of a segment also the number that it got when it was made. Of memory of a GPU
   * two numbers of the process that has shared it, one of the block, and one of the pool. */
  uint64_t identity[4];
  uint32_t flags;       /* UMEM_HANDLE_READ_ONLY */
  uint32_t zero;        /* 0 */
  char name[256];       /* of a segment with a name; the rest is zero */
  uint64_t memory[8];   /* of a GPU: what CUDA needs to find it; otherwise zero, as the next two */
  uint64_t event[8];    /* CUDA's handle of the event after which the bytes may be used */
  uint64_t gpu[2];      /* the UUID of the GPU */
  uint64_t reserved[5]; /* zero */
} umemHandle;

/* Describes nbytes > 0 at adr for other processes. handle: the caller's; zero after a failure.
 * Takes nothing, so there is nothing to give back. Errors: umemValueError for null and for 0 bytes;
 * umemIndexError for bytes that ctx has not; umemNotSupportedError if memory of ctx cannot be
 * shared, and while its stream is captured. */
UMEM_EXTERN umemStatusType umem_share(void *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle);

/* Shares as umem_share does, and writes the descriptor that belongs to the handle to *fd, or -1 if
 * it needs none. ctx keeps the descriptor. For programs that pass descriptors by means of their
 * own. */
UMEM_EXTERN umemStatusType umem_share_with(void *ctx, uintptr_t adr, size_t nbytes,
                                           umemHandle *handle, int *fd);

/* Returns the address in ctx of the bytes of handle. ctx is one of these:
 *
 * - a context that has these bytes itself: the same segment or file. Returns its own address of
 *   them; in the process that has shared them this is the original address.
 * - a Cuda or a CudaAsync, for memory of a GPU. A block is opened once for each GPU that uses it:
 *   umem_attach returns the same address for all its handles.
 * - a Host without options, for all other memory. The bytes are mapped, and the pointer is valid
 *   until umem_detach. A segment or file is mapped once: if it is already mapped in this process,
 *   by a Shm or an earlier umem_attach, the address is in that mapping. There is a second mapping
 *   only for bytes that a file has got since, and for writing to what was attached for reading.
 *
 * Pair each call with one umem_detach. Returns umem_null(ctx), and records a status, after a
 * failure. Errors: umemValueError for a handle that is malformed, needs a descriptor, or that CUDA
 * cannot open; umemIOError if the segment is not there any more, or is another one, and if a block
 * of this process is freed; umemTypeError if ctx is of another kind; umemNotSupportedError if the
 * GPU of ctx cannot reach the memory, and while the stream of ctx is captured; umemMemoryError.
 * After a failure nothing is attached. */
UMEM_EXTERN uintptr_t umem_attach(umemHandle const *handle, void *ctx);

/* Attaches with the descriptor that belongs to the handle; -1 for none. umem takes it over, also
 * after a failure. A descriptor of memory without a name must have a sealed size, so that its owner
 * cannot make accesses fail. A file can be cut by others, and accesses then raise SIGBUS. */
UMEM_EXTERN uintptr_t umem_attach_with(umemHandle const *handle, int fd, void *ctx);

/* Attaches as umem_attach_with, but shared memory of the users that trust names. The other
 * functions attach that of umemTrustUser. Files and memory of GPUs have no tables of umem: there
 * trust has no effect. Errors: umemIOError for shared memory of users that are not trusted;
 * umemValueError for another trust. */
UMEM_EXTERN uintptr_t umem_attach_trusting(umemHandle const *handle, int fd, void *ctx,
                                           umemTrust trust);

/* Ends one attachment of umem_attach or umem_receive. ctx: the context to which the bytes were
 * attached. adr: any address of them. With the last attachment the mapping ends, unless a Shm of
 * this process has it. A context that has the bytes itself (a Shm, File or MMap) counts no
 * attachments: there umem_detach does nothing, and returns umemOK for all addresses but null. For
 * memory of a GPU ctx may be any Cuda or CudaAsync of the GPU for which it was attached; with the
 * last one umem waits for the work of ctx. Work of other contexts must be done. Errors:
 * umemValueError if nothing is attached there; umemNotSupportedError while the stream of ctx is
 * captured. */
UMEM_EXTERN umemStatusType umem_detach(void *ctx, uintptr_t adr);

/* Shares nbytes at adr in ctx, and sends the handle with its descriptor through socket, a connected
 * Unix socket (socketpair, for example). Waits until it is sent, if socket is blocking. Otherwise
 * the call fails if the socket is full. A stream may then have got a part of the handle, and is of
 * no further use; other kinds of sockets take all or nothing. A failure changes nothing else.
 * Errors: those of umem_share; umemIOError of the socket. */
UMEM_EXTERN umemStatusType umem_send(int socket, void *ctx, uintptr_t adr, size_t nbytes);

/* Receives what umem_send has sent, and attaches it to ctx: see umem_attach. Writes the handle to
 * *handle, if handle is not NULL; it is zero after a failure. Descriptors are closed on exec; umem
 * closes those that do not belong to the handle, and all of them after a failure. Errors: those of
 * umem_attach; umemIOError of the socket, also if the other side has closed it, or has sent
 * something else. A stream that has failed is of no further use. */
UMEM_EXTERN uintptr_t umem_receive(int socket, void *ctx, umemHandle *handle);

/* Receives as umem_receive, but shared memory of the users that trust names: see
 * umem_attach_trusting. */
UMEM_EXTERN uintptr_t umem_receive_trusting(int socket, void *ctx, umemHandle *handle,
                                            umemTrust trust);

#endif
