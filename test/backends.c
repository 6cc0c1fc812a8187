/* backends.c - one row per context, and how it is made for a test. */
#include "backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/fake.h"
#include "fake/plain11.h"
#include "fake/pointers.h"
#include "fake/wrapped.h"
#include "mymem.h"
#include "settings.h"
#include "temporary.h"
#include "url_rows.h"

/* A context on the heap, and what goes with it. */
typedef struct Opened {
  _Alignas(16) unsigned char context[BACKEND_ROOM]; /* and what its construct needs beside it */
  Backend const *row;
  umemVirtual *upstream;        /* of row->over */
  char path[BACKEND_PATH_SIZE]; /* of its file, which goes with it; or "" */
} Opened;

static Opened *opened(void *ctx) { return ctx; }

/* make_NAME: an expression that constructs ctx over upstream, which is NULL where the row names
 * none. */
#define MAKE(name, construct)                                                                      \
  static umemStatusType make_##name(void *ctx, void *upstream) {                                   \
    (void)upstream;                                                                                \
    return construct;                                                                              \
  }

/* ---- RAM, files and shared memory ---- */

bool backend_temp_file(char path[BACKEND_PATH_SIZE]) {
  int fd = temporary_file(path, BACKEND_PATH_SIZE);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* The path of a new file that goes with ctx, with this text; NULL if that fails. */
static char const *new_file(void *ctx, char const *text, size_t length) {
  char *path = opened(ctx)->path;
  if (!backend_temp_file(path)) return NULL;
  FILE *stream = fopen(path, "wb");
  bool written = stream && fwrite(text, 1, length, stream) == length;
  return stream && !fclose(stream) && written ? path : NULL;
}

/* Over a file that is full of something already. */
static umemStatusType make_file_existing(void *ctx, void *upstream) {
  (void)upstream;
  static char junk[70001];
  memset(junk, 0xE5, sizeof junk);
  return umemFile_ctor(ctx, new_file(ctx, junk, sizeof junk), "r+");
}

/* Takes no memory before it is used: many segments live at a time. */
static umemShmOptions const shm_options = {
    .size = sizeof(umemShmOptions), .capacity = 64 << 20, .sparse = 1};
static umemHostOptions const node_options = {.size = sizeof(umemHostOptions),
                                             .policy = umemHostInterleave};

MAKE(host, umemHost_ctor(ctx))
MAKE(host_nodes, umemHost_ctor_with(ctx, &node_options))
MAKE(file, umemFile_ctor(ctx, new_file(ctx, "", 0), "w+"))
MAKE(file_scratch, umemFile_ctor(ctx, NULL, "w+"))
MAKE(mmap, umemMMap_ctor(ctx, new_file(ctx, "", 0), "w+"))
MAKE(mmap_scratch, umemMMap_ctor(ctx, NULL, "w+"))
MAKE(shm, umemShm_ctor_with(ctx, NULL, &shm_options))

static umemStatusType file_at(void *ctx, char const *path, char const *mode) {
  return umemFile_ctor(ctx, path, mode);
}
static umemStatusType mmap_at(void *ctx, char const *path, char const *mode) {
  return umemMMap_ctor(ctx, path, mode);
}

/* ---- devices ---- */

MAKE(cuda, umemCuda_ctor(ctx, 0))
MAKE(cuda_1, umemCuda_ctor(ctx, 1))
MAKE(cuda_host, umemCudaHost_ctor(ctx, 0))
MAKE(cuda_managed, umemCudaManaged_ctor(ctx, 0, 0))
MAKE(cuda_async, umemCudaAsync_ctor(ctx, 0, UMEM_STREAM_NEW))
MAKE(cuda_async_0, umemCudaAsync_ctor(ctx, 0, 0))
MAKE(cuda_async_1, umemCudaAsync_ctor(ctx, 1, UMEM_STREAM_NEW))
MAKE(fake, fake_ctor(ctx))
MAKE(fake_offset, fake_offset_ctor(ctx))
MAKE(fake_async, fake_async_ctor(ctx))
MAKE(fake_managed, fake_managed_ctor(ctx))

static BackendRecords fake_records(umemVirtual *ctx) {
  Fake *fake = (Fake *)ctx;
  return (BackendRecords){fake_store_blocks(fake->store), fake->moves};
}

/* The example of the documentation. Sanitizers write the shadow of a whole arena when it comes and
 * when it goes. */
static size_t arena_size(void) { return (size_t)(setting_small() ? 16 : 64) << 20; }
MAKE(mymem, umemMyMem_ctor(ctx, arena_size()))
MAKE(plain11, plain11_ctor(ctx, arena_size()))
MAKE(pointers, pointers_ctor(ctx))

/* ---- over one other context ---- */

static BackendRecords records_below(umemVirtual *ctx) {
  return backend_by_name(opened(ctx)->row->over)->records(opened(ctx)->upstream);
}

/* Of a context with so many blocks: those that wait are upstream's still. */
static BackendRecords records_of(umemVirtual *ctx, uint64_t blocks) {
  Backend const *below = backend_by_name(opened(ctx)->row->over);
  return (BackendRecords){(size_t)blocks, below->records
                                              ? below->records(opened(ctx)->upstream).moves
                                              : BACKEND_MOVES_UNKNOWN};
}

static BackendRecords debug_records(umemVirtual *ctx) {
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  umemDebug_get((umemDebug *)ctx, &figures);
  return records_of(ctx, figures.live_blocks);
}

static bool give_up(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment, (void)attempt;
  return false;
}

/* Of a file that vanishes with it. */
umemStatusType backend_log(umemStatusType (*construct)(umemLog *, void *, umemLogOptions const *),
                           void *ctx, void *upstream) {
  char path[BACKEND_PATH_SIZE];
  if (!backend_temp_file(path)) return umemIOError;
  umemLogOptions options = {.size = sizeof options, .filename = path, .max_bytes = 1 << 16};
  umemStatusType status = construct(ctx, upstream, &options);
  unlink(path);
  return status;
}

/* More than any test needs; less than what no memory has, which would leave nothing to other
 * threads while it is being asked for. */
MAKE(limit, umemLimit_ctor(ctx, upstream, (size_t)1 << 40))
MAKE(wrapped, wrapped_ctor(ctx, upstream))
MAKE(stats, umemStats_ctor(ctx, upstream))
MAKE(track, umemTrack_ctor(ctx, upstream, NULL))
MAKE(debug, umemDebug_ctor(ctx, upstream, NULL))
MAKE(retry, umemRetry_ctor(ctx, upstream, give_up, NULL))
MAKE(fault, umemFault_ctor(ctx, upstream, NULL))
MAKE(guarded, umemGuarded_ctor(ctx, upstream))
MAKE(log, backend_log(umemLog_ctor, ctx, upstream))
MAKE(prefetch, umemCudaPrefetch_ctor(ctx, upstream))

/* ---- allocators of others: malloc, and the blocks of another context in the same memory ---- */

/* A system that promises more memory than it has would give any block. */
static size_t const largest = (size_t)1 << 40;

static void *get_malloc(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)stream;
  return nbytes > largest ? NULL : aligned_alloc(alignment, (nbytes + alignment - 1) & -alignment);
}

static void give_malloc(void *user, void *block, size_t nbytes, size_t alignment,
                        uintptr_t stream) {
  (void)user, (void)nbytes, (void)alignment, (void)stream;
  free(block);
}

static umemStatusType make_malloc(void *ctx, void *upstream) {
  umemExternalOptions options = {
      .size = sizeof options, .allocate = get_malloc, .deallocate = give_malloc};
  return umemExternal_ctor(ctx, upstream, &options);
}

static void *get_from(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)stream;
  return (void *)umem_aligned_alloc(user, alignment, nbytes);
}

static void give_to(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)nbytes, (void)alignment, (void)stream;
  umem_aligned_free(user, (uintptr_t)block);
}

static void end_from(void *user) { backend_close(opened(user)->row, user); }

static umemStatusType make_external(void *ctx, void *upstream) {
  umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
  options.allocate = get_from;
  options.deallocate = give_to;
  options.release = end_from;
  options.user = backend_open(backend_by_name(opened(ctx)->row->over));
  if (!options.user) return umemMemoryError;
  umemStatusType status = umemExternal_ctor(ctx, upstream, &options);
  if (status != umemOK) end_from(options.user);
  return status;
}

/* ---- pools, and their views ---- */

MAKE(pool, umemPool_ctor(ctx, upstream, NULL))

static uint64_t blocks_in_pool(umemPool *pool) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(pool, &stats);
  return stats.blocks;
}

static BackendRecords pool_records(umemVirtual *ctx) {
  return records_of(ctx, blocks_in_pool((umemPool *)ctx));
}

/* The pool stands on one context of the device, the view on another. */
typedef struct PoolOn {
  umemPoolOn view;
  umemPool pool;
  union {
    umemVirtual super;
    FakeAsync fake;
    umemCudaAsync cuda;
  } queue;
} PoolOn;
_Static_assert(sizeof(PoolOn) <= sizeof((Opened *)0)->context, "it is in an Opened");

static umemStatusType make_pool_on(void *ctx, void *upstream) {
  PoolOn *self = ctx;
  bool fake = ((umemVirtual *)upstream)->type == umemUserDevice;
  umemStatusType status = fake ? fake_async_ctor_on(&self->queue.fake, upstream)
                               : umemCudaAsync_ctor(&self->queue.cuda, 0, UMEM_STREAM_NEW);
  if (status == umemOK) status = umemPool_ctor(&self->pool, upstream, NULL);
  return status == umemOK ? umemPoolOn_ctor(&self->view, &self->pool, &self->queue) : status;
}

static void end_pool_on(umemVirtual *ctx) {
  PoolOn *self = (PoolOn *)ctx;
  umem_dtor(&self->view);
  umem_dtor(&self->pool);
  umem_dtor(&self->queue);
}

static BackendRecords pool_on_records(umemVirtual *ctx) {
  PoolOn *self = (PoolOn *)ctx;
  bool fake = self->queue.super.type == umemUserDevice;
  return (BackendRecords){(size_t)blocks_in_pool(&self->pool),
                          fake ? self->queue.fake.super.moves : BACKEND_MOVES_UNKNOWN};
}

/* ---- blocks of one size, and bins of sizes ---- */

/* Blocks as large as the contract ever asks for, so that it holds for them too. As it asks for
 * hundreds at once, they are more than the double of a GPU has: there they are among the bins. */
static size_t block_size(void) { return (size_t)(setting_small() ? 4 : 12) << 20; }

MAKE(fixed, umemFixed_ctor(ctx, upstream, block_size(), NULL))

static uint64_t blocks_in_fixed(umemFixed *fixed) {
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  umemFixed_stats(fixed, &stats);
  return stats.blocks;
}

static BackendRecords fixed_records(umemVirtual *ctx) {
  return records_of(ctx, blocks_in_fixed((umemFixed *)ctx));
}

/* Blocks of two sizes, and a pool for the rest. */
typedef struct Bins {
  umemBinning binning;
  umemFixed small, middle;
  umemPool large;
} Bins;
_Static_assert(sizeof(Bins) <= sizeof((Opened *)0)->context, "they are in an Opened");

enum { small_size = 100, middle_size = 4096 };

static umemStatusType make_binning(void *ctx, void *upstream) {
  Bins *self = ctx;
  umemBin const bins[] = {{small_size, &self->small}, {middle_size, &self->middle}};
  umemStatusType status = umemFixed_ctor(&self->small, upstream, small_size, NULL);
  if (status == umemOK) status = umemFixed_ctor(&self->middle, upstream, middle_size, NULL);
  if (status == umemOK) status = umemPool_ctor(&self->large, upstream, NULL);
  return status == umemOK ? umemBinning_ctor(&self->binning, &self->large, bins, 2) : status;
}

static void end_binning(umemVirtual *ctx) {
  Bins *self = (Bins *)ctx;
  umem_dtor(&self->binning);
  umem_dtor(&self->large);
  umem_dtor(&self->middle);
  umem_dtor(&self->small);
}

static BackendRecords binning_records(umemVirtual *ctx) {
  Bins *self = (Bins *)ctx;
  return records_of(ctx, blocks_in_fixed(&self->small) + blocks_in_fixed(&self->middle) +
                             blocks_in_pool(&self->large));
}

/* ---- the table ---- */

enum {
  records = backendKeepsRecords | backendChecksFrees, /* knows its blocks and their sizes */
  trusting = backendTestOnly | backendTrustsSizes,    /* knows none */
  test_records = records | backendTestOnly,           /* of a kind of the tests */
  wrapped = backendWrapped | backendTestOnly,         /* goes over another context */
  gpu = backendChecksFrees | backendMayLack,          /* this machine may have none */
  over_many = wrapped | backendChecksFrees, /* a stack that umem_open makes, a pool, a debug */
  over_gpu = over_many | backendMayLack,
  over_store = wrapped | records,
  on_real_gpu = over_gpu | backendNeedsGpu /* one of the double is enough */
};

/* Rows of contexts that umem_open makes: ROW(identifier, name, what is opened, traits, memory). */
#define NAMED_ROWS(ROW)                                                                            \
  ROW(mpi, "mpi", "mpi:1", backendChecksFrees | backendMayLack, "mpi 1")                           \
  ROW(pool, "pool+host:", "pool+host:?initial=64K&growth=1M", over_many, "host")                   \
  ROW(limit, "limit+file:", "limit+file:?limit=1T", over_many | backendKeepsRecords, NULL)         \
  ROW(many, "stats+limit+pool+mmap:", "stats+limit+pool+mmap:?limit.limit=1T", over_many, NULL)    \
  ROW(cuda, "pool+cuda-async:", "pool+cuda-async:0?stream=new", over_many | backendMayLack, "gpu 0")
#define NAMED_ROW(identifier, row, opened, its_traits, its_memory)                                 \
  {.name = row, .text = opened, .traits = its_traits, .memory = its_memory},

/* A context that stands for itself. */
#define PLAIN_ROW(row, kind, its_traits, its_memory)                                               \
  { .name = row, .construct = make_##kind, .traits = its_traits, .memory = its_memory }
#define FAKE_ROW(row, kind, its_traits)                                                            \
  { .name = row, .construct = make_##kind, .traits = its_traits, .records = fake_records }
#define FILE_ROW(row, kind, opener)                                                                \
  { .name = row, .construct = make_##kind, .traits = records, .at = opener }

/* One of this kind over the row below. */
#define OVER(kind, below, its_traits, its_memory, its_records)                                     \
  {                                                                                                \
    .name = #kind "(" below ")", .construct = make_##kind, .over = below, .traits = its_traits,    \
    .memory = its_memory, .records = its_records                                                   \
  }
#define ENDED_OVER(row, kind, below, its_traits, its_memory)                                       \
  {                                                                                                \
    .name = row "(" below ")", .construct = make_##kind, .over = below, .traits = its_traits,      \
    .memory = its_memory, .records = kind##_records, .end = end_##kind                             \
  }

/* One adaptor over RAM, a file, a device that the CPU cannot address, an ordered one, and CUDA's;
 * over all four of these on a GPU. more: traits of its own; paging: over what has pages. */
#define ADAPTOR_ROWS(kind, more, paging)                                                           \
  OVER(kind, "host", wrapped | (more) | (paging), "host", NULL),                                   \
      ADAPTOR_ROWS_OVER(kind, more, paging)
#define ADAPTOR_ROWS_OVER(kind, more, paging)                                                      \
  OVER(kind, "file-scratch", over_store | (more), NULL, NULL),                                     \
      OVER(kind, "fake", over_store | (more), NULL, records_below),                                \
      OVER(kind, "fake-async", over_store | (more), NULL, records_below),                          \
      OVER(kind, "cuda-async", over_gpu | (more) | (paging), "gpu 0", NULL),                       \
      OVER(kind, "cuda", on_real_gpu | (more) | (paging), "gpu 0", NULL),                          \
      OVER(kind, "cuda-host", on_real_gpu | (more), "pinned", NULL),                               \
      OVER(kind, "cuda-managed", on_real_gpu | (more), "managed", NULL)

#define SIZES_ROWS(KIND)                                                                           \
  KIND("host", over_many, "host"), KIND("file-scratch", over_many, NULL),                          \
      KIND("fake", over_many, NULL), KIND("fake-offset", over_many, NULL),                         \
      KIND("fake-async", over_many, NULL)
#define FIXED(below, its_traits, its_memory)                                                       \
  OVER(fixed, below, its_traits, its_memory, fixed_records)
#define BINNING(below, its_traits, its_memory)                                                     \
  ENDED_OVER("binning", binning, below, its_traits, its_memory)
#define POOL(below, its_traits, its_memory) OVER(pool, below, its_traits, its_memory, pool_records)
#define DEBUG(below, its_traits, its_memory)                                                       \
  OVER(debug, below, its_traits, its_memory, debug_records)

Backend const backends[] = {
    PLAIN_ROW("host", host, backendHasPages, "host"),
    PLAIN_ROW("host-nodes", host_nodes, backendChecksFrees | backendMayLack, NULL),
    FILE_ROW("file", file, file_at),
    FILE_ROW("file-scratch", file_scratch, NULL),
    FILE_ROW("file-existing", file_existing, NULL),
    FILE_ROW("mmap", mmap, mmap_at),
    FILE_ROW("mmap-scratch", mmap_scratch, NULL),
    PLAIN_ROW("shm", shm, backendChecksFrees | backendMayLack, NULL),
    {.name = "http",
     .construct = make_http,
     .traits =
         backendChecksFrees | backendTestOnly | backendMayLack | backendTrustsSizes | backendWaits,
     .end = end_http},
    {.name = "s3-writes",
     .construct = make_s3,
     .traits = backendChecksFrees | backendKeepsRecords | backendTestOnly | backendMayLack |
               backendTrustsSizes | backendMade,
     .end = end_s3},
    PLAIN_ROW("cuda", cuda, gpu | backendHasPages, "gpu 0"),
    PLAIN_ROW("cuda-host", cuda_host, gpu, "pinned"),
    PLAIN_ROW("cuda-managed", cuda_managed, gpu, "managed"),
    PLAIN_ROW("cuda-async", cuda_async, gpu | backendHasPages, "gpu 0"),
    PLAIN_ROW("cuda-async-0", cuda_async_0, gpu | backendHasPages, "gpu 0"),
    PLAIN_ROW("cuda-1", cuda_1, gpu | backendHasPages, "gpu 1"),
    PLAIN_ROW("cuda-async-1", cuda_async_1, gpu | backendHasPages, "gpu 1"),
    FAKE_ROW("fake", fake, test_records),
    FAKE_ROW("fake-offset", fake_offset, test_records),
    FAKE_ROW("fake-async", fake_async, test_records),
    FAKE_ROW("fake-managed", fake_managed, trusting),
    PLAIN_ROW("mymem", mymem, test_records, NULL),
    PLAIN_ROW("plain11", plain11, test_records, NULL),
    PLAIN_ROW("pointers", pointers, trusting | backendChecksFrees, NULL),
    OVER(wrapped, "host", wrapped, "host", NULL),
    OVER(wrapped, "file", over_store, NULL, NULL),
    OVER(wrapped, "fake", over_store, NULL, records_below),
    OVER(wrapped, "fake-async", over_store, NULL, records_below),
    OVER(wrapped, "cuda-async", over_gpu, "gpu 0", NULL),
    ADAPTOR_ROWS(limit, 0, backendHasPages),
    ADAPTOR_ROWS(stats, 0, backendHasPages),
    ADAPTOR_ROWS(track, backendReportsLeaks, 0),
    /* It knows its blocks wherever they are; freed ones are not upstream's at once. */
    DEBUG("host", over_many, "host"),
    DEBUG("file-scratch", over_store, NULL),
    DEBUG("mmap-scratch", over_store, NULL),
    DEBUG("fake", over_store, NULL),
    DEBUG("fake-async", over_store, NULL),
    DEBUG("cuda-async", over_gpu, "gpu 0"),
    DEBUG("cuda", on_real_gpu, "gpu 0"),
    DEBUG("cuda-host", on_real_gpu, "pinned"),
    DEBUG("cuda-managed", on_real_gpu, "managed"),
    DEBUG("pool(host)", over_many, "host"),
    DEBUG("pool(cuda)", over_gpu, "gpu 0"),
    ADAPTOR_ROWS(retry, 0, 0),
    ADAPTOR_ROWS(fault, 0, 0),
    ADAPTOR_ROWS(log, 0, 0),
    /* Over RAM it knows its blocks, and where they end. */
    OVER(guarded, "host", over_store, NULL, NULL),
    ADAPTOR_ROWS_OVER(guarded, 0, 0),
    OVER(prefetch, "cuda-managed", over_gpu, "managed", NULL),
    {.name = "external(malloc)",
     .construct = make_malloc,
     .over = "host",
     .traits = over_many,
     .memory = "host"},
    OVER(external, "cuda", over_gpu, "gpu 0", NULL),
    /* On one stream: the blocks of the second context are in the order of the first. */
    OVER(external, "cuda-async-0", over_gpu, "gpu 0", NULL),
    OVER(external, "cuda-managed", over_gpu, "managed", NULL),
    POOL("host", over_many, "host"),
    POOL("file-scratch", over_many, NULL),
    POOL("mmap-scratch", over_many, NULL),
    POOL("fake", over_many, NULL),
    POOL("fake-offset", over_many, NULL),
    POOL("fake-async", over_many, NULL),
    POOL("fake-managed", over_many, NULL),
    POOL("cuda", over_gpu, "gpu 0"),
    POOL("cuda-async", over_gpu, "gpu 0"),
    POOL("cuda-host", over_gpu, "pinned"),
    POOL("cuda-managed", over_gpu, "managed"),
    ENDED_OVER("pool-on", pool_on, "fake-async", over_many, NULL),
    ENDED_OVER("pool-on", pool_on, "cuda", over_gpu, "gpu 0"),
    ENDED_OVER("pool-on", pool_on, "cuda-async", over_gpu, "gpu 0"),
    SIZES_ROWS(FIXED),
    SIZES_ROWS(BINNING),
    BINNING("cuda-async", over_gpu, "gpu 0"),
    NAMED_ROWS(NAMED_ROW)};

size_t const backend_count = sizeof backends / sizeof *backends;

Backend const *backend_by_name(char const *name) {
  for (size_t i = 0; i < backend_count; i++)
    if (!strcmp(backends[i].name, name)) return &backends[i];
  return NULL;
}

/* ---- opening and closing ---- */

static Opened *new_opened(Backend const *row) {
  Opened *self = malloc(sizeof *self); /* a context is constructed in any bytes */
  if (!self) return NULL;
  self->row = row;
  self->upstream = NULL;
  *self->path = 0;
  if (row->end) memset(self->context, 0, sizeof self->context); /* a part may have to end */
  return self;
}

static void release(Opened *self) {
  if (self->upstream) backend_close(backend_by_name(self->row->over), self->upstream);
  if (*self->path) unlink(self->path);
  free(self);
}

umemVirtual *backend_open(Backend const *row) {
  if (row->text) return umem_open(row->text);
  if (row->traits & backendNeedsGpu && !setting_gpu()) {
    umemVirtual_fail(NULL, umemNotSupportedError, "this row is tested on a GPU only");
    return NULL;
  }
  Opened *self = new_opened(row);
  if (!self) return NULL;
  if (row->over) self->upstream = backend_open(backend_by_name(row->over));
  umemVirtual *ctx = (umemVirtual *)(void *)self->context;
  if ((!row->over || self->upstream) && row->construct(ctx, self->upstream) == umemOK) return ctx;
  if (row->end) row->end(ctx);
  release(self);
  return NULL;
}

umemVirtual *backend_open_at(Backend const *row, char const *path, char const *mode) {
  Opened *self = new_opened(row);
  if (self && row->at(self->context, path, mode) == umemOK)
    return (umemVirtual *)(void *)self->context;
  free(self);
  return NULL;
}

void backend_close(Backend const *row, umemVirtual *ctx) {
  if (row->text) {
    umem_close(ctx);
    return;
  }
  if (row->end)
    row->end(ctx);
  else
    umem_dtor(ctx);
  release(opened(ctx));
}
