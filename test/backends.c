/* backends.c - one row per context, and how it is opened and closed for a test. */
#include "backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adaptors.h"
#include "external.h"
#include "fake/wrapped.h"
#include "fake/fake.h"
#include "fake/plain11.h"
#include "fake/pointers.h"
#include "mymem.h"
#include "pools.h"
#include "sizes.h"
#include "temporary.h"

/* A context on the heap, or NULL when its constructor failed. */
static void *opened(void *ctx, umemStatusType status) {
  if (status == umemOK) return ctx;
  free(ctx);
  return NULL;
}

static void close_plain(umemVirtual *ctx) {
  umem_dtor(ctx);
  free(ctx);
}

/* ---- host ---- */

static umemVirtual *open_host(void) {
  umemHost *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemHost_ctor(ctx) : umemMemoryError);
}

/* ---- files ---- */

bool backend_temp_file(char path[BACKEND_PATH_SIZE]) {
  int fd = temporary_file(path, BACKEND_PATH_SIZE);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* A file context, and the file that goes with it; path "" for none. */
typedef struct {
  umemFile file;
  char path[BACKEND_PATH_SIZE];
} OpenFile;

typedef struct {
  umemMMap mmap;
  char path[BACKEND_PATH_SIZE];
} OpenMMap;

static void remove_file(char const *path) {
  if (*path) unlink(path);
}

static umemVirtual *open_file_as(char const *mode) {
  OpenFile *ctx = calloc(1, sizeof *ctx);
  if (!ctx || (mode && !backend_temp_file(ctx->path))) return opened(ctx, umemIOError);
  umemStatusType status = umemFile_ctor(&ctx->file, mode ? ctx->path : NULL, mode ? mode : "w+");
  if (status != umemOK) remove_file(ctx->path);
  return opened(ctx, status);
}

static umemVirtual *open_mmap_as(char const *mode) {
  OpenMMap *ctx = calloc(1, sizeof *ctx);
  if (!ctx || (mode && !backend_temp_file(ctx->path))) return opened(ctx, umemIOError);
  umemStatusType status = umemMMap_ctor(&ctx->mmap, mode ? ctx->path : NULL, mode ? mode : "w+");
  if (status != umemOK) remove_file(ctx->path);
  return opened(ctx, status);
}

static umemVirtual *open_file(void) { return open_file_as("w+"); }
static umemVirtual *open_file_scratch(void) { return open_file_as(NULL); }
static umemVirtual *open_mmap(void) { return open_mmap_as("w+"); }
static umemVirtual *open_mmap_scratch(void) { return open_mmap_as(NULL); }

static umemVirtual *open_file_at(char const *path, char const *mode) {
  OpenFile *ctx = calloc(1, sizeof *ctx);
  return opened(ctx, ctx ? umemFile_ctor(&ctx->file, path, mode) : umemMemoryError);
}

static umemVirtual *open_mmap_at(char const *path, char const *mode) {
  OpenMMap *ctx = calloc(1, sizeof *ctx);
  return opened(ctx, ctx ? umemMMap_ctor(&ctx->mmap, path, mode) : umemMemoryError);
}

/* Over a file that is full of something already. */
static umemVirtual *open_file_existing(void) {
  OpenFile *ctx = calloc(1, sizeof *ctx);
  if (!ctx || !backend_temp_file(ctx->path)) return opened(ctx, umemIOError);
  static char junk[70001];
  memset(junk, 0xE5, sizeof junk);
  FILE *stream = fopen(ctx->path, "wb");
  bool written = stream && fwrite(junk, sizeof junk, 1, stream) == 1;
  if (stream && fclose(stream)) written = false;
  umemStatusType status = written ? umemFile_ctor(&ctx->file, ctx->path, "r+") : umemIOError;
  if (status != umemOK) remove_file(ctx->path);
  return opened(ctx, status);
}

static void close_file(umemVirtual *ctx) {
  umem_dtor(ctx);
  remove_file(((OpenFile *)ctx)->path);
  free(ctx);
}

static void close_mmap(umemVirtual *ctx) {
  umem_dtor(ctx);
  remove_file(((OpenMMap *)ctx)->path);
  free(ctx);
}

/* ---- shared memory ---- */

enum { shm_capacity = 64 << 20 };

/* Takes no memory before it is used: many segments live at a time. */
static umemVirtual *open_shm(void) {
  umemShm *ctx = malloc(sizeof *ctx);
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = shm_capacity;
  options.sparse = 1;
  return opened(ctx, ctx ? umemShm_ctor_with(ctx, NULL, &options) : umemMemoryError);
}

/* ---- RAM on nodes ---- */

static umemVirtual *open_host_nodes(void) {
  umemHost *ctx = malloc(sizeof *ctx);
  umemHostOptions options = UMEM_HOST_OPTIONS_INIT;
  options.policy = umemHostInterleave;
  return opened(ctx, ctx ? umemHost_ctor_with(ctx, &options) : umemMemoryError);
}

/* ---- fake devices ---- */

static umemVirtual *open_fake(void) {
  Fake *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? fake_ctor(ctx) : umemMemoryError);
}

static umemVirtual *open_fake_offset(void) {
  Fake *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? fake_offset_ctor(ctx) : umemMemoryError);
}

static umemVirtual *open_fake_async(void) {
  FakeAsync *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? fake_async_ctor(ctx) : umemMemoryError);
}

static umemVirtual *open_fake_managed(void) {
  FakeAsync *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? fake_managed_ctor(ctx) : umemMemoryError);
}

static BackendRecords fake_records(umemVirtual *ctx) {
  Fake *fake = (Fake *)ctx;
  return (BackendRecords){fake_store_blocks(fake->store), fake->moves};
}

/* ---- the example of the documentation ---- */

enum { arena_size = 64 << 20 };

static umemVirtual *open_mymem(void) {
  umemMyMem *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemMyMem_ctor(ctx, arena_size) : umemMemoryError);
}

static umemVirtual *open_pointers(void) {
  Pointers *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? pointers_ctor(ctx) : umemMemoryError);
}

static umemVirtual *open_plain11(void) {
  umemMyMem *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? plain11_ctor(ctx, arena_size) : umemMemoryError);
}

/* ---- wrapped contexts ---- */

typedef struct {
  Wrapped wrapped;
  Backend const *inner;
} OpenWrapped;

static umemVirtual *open_wrapped(char const *name) {
  OpenWrapped *ctx = malloc(sizeof *ctx);
  if (!ctx) return NULL;
  ctx->inner = backend_by_name(name);
  umemVirtual *upstream = ctx->inner->open();
  return opened(ctx, upstream ? wrapped_ctor(&ctx->wrapped, upstream) : umemMemoryError);
}

static umemVirtual *open_wrapped_host(void) { return open_wrapped("host"); }
static umemVirtual *open_wrapped_file(void) { return open_wrapped("file"); }
static umemVirtual *open_wrapped_fake(void) { return open_wrapped("fake"); }
static umemVirtual *open_wrapped_async(void) { return open_wrapped("fake-async"); }

static void close_wrapped(umemVirtual *ctx) {
  OpenWrapped *self = (OpenWrapped *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->wrapped.upstream);
  free(self);
}

static BackendRecords wrapped_records(umemVirtual *ctx) {
  return fake_records(((Wrapped *)ctx)->upstream);
}

/* ---- CUDA ---- */

static umemVirtual *open_cuda_on(int device) {
  umemCuda *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemCuda_ctor(ctx, device) : umemMemoryError);
}

static umemVirtual *open_cuda_host(void) {
  umemCudaHost *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemCudaHost_ctor(ctx, 0) : umemMemoryError);
}

static umemVirtual *open_cuda_managed(void) {
  umemCudaManaged *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemCudaManaged_ctor(ctx, 0, 0) : umemMemoryError);
}

static umemVirtual *open_cuda_async_on(int device, uintptr_t stream) {
  umemCudaAsync *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemCudaAsync_ctor(ctx, device, stream) : umemMemoryError);
}

static umemVirtual *open_cuda(void) { return open_cuda_on(0); }
static umemVirtual *open_cuda_1(void) { return open_cuda_on(1); }
static umemVirtual *open_cuda_async(void) { return open_cuda_async_on(0, UMEM_STREAM_NEW); }
static umemVirtual *open_cuda_async_0(void) { return open_cuda_async_on(0, 0); }
static umemVirtual *open_cuda_async_1(void) { return open_cuda_async_on(1, UMEM_STREAM_NEW); }
static umemVirtual *open_wrapped_cuda(void) { return open_wrapped("cuda-async"); }

/* ---- the table ---- */

enum {
  records = backendKeepsRecords | backendChecksFrees, /* knows its blocks and their sizes */
  trusting = backendTestOnly | backendTrustsSizes,    /* knows none */
  test_records = records | backendTestOnly,           /* of a kind of the tests */
  wrapped = backendWrapped | backendTestOnly,         /* goes over another context */
  gpu = backendChecksFrees | backendMayLack,          /* this machine may have none */
  over_many = wrapped | backendChecksFrees            /* a stack that umem_open makes */
};

/* Rows of contexts that umem_open makes: ROW(identifier, name, what is opened, traits, memory). */
#define NAMED_ROWS(ROW)                                                                            \
  ROW(mpi, "mpi", "mpi:1", backendChecksFrees | backendMayLack, "mpi 1")                           \
  ROW(pool, "pool+host:", "pool+host:?initial=64K&growth=1M", over_many, "host")                   \
  ROW(limit, "limit+file:", "limit+file:?limit=1T", over_many | backendKeepsRecords, NULL)         \
  ROW(many, "stats+limit+pool+mmap:", "stats+limit+pool+mmap:?limit.limit=1T", over_many, NULL)    \
  ROW(cuda, "pool+cuda-async:", "pool+cuda-async:0?stream=new", over_many | backendMayLack, "gpu 0")

static void close_named(umemVirtual *ctx) { umem_close(ctx); }

#define NAMED_OPENER(identifier, name, text, traits, memory)                                       \
  static umemVirtual *open_named_##identifier(void) { return umem_open(text); }
#define NAMED_ROW(identifier, name, text, traits, memory)                                          \
  {name, open_named_##identifier, close_named, traits, memory, NULL, NULL},

NAMED_ROWS(NAMED_OPENER)

Backend const backends[] = {
    {"host", open_host, close_plain, backendHasPages, "host", NULL, NULL},
    {"host-nodes", open_host_nodes, close_plain, backendChecksFrees | backendMayLack, NULL, NULL,
     NULL},
    {"file", open_file, close_file, records, NULL, NULL, open_file_at},
    {"file-scratch", open_file_scratch, close_file, records, NULL, NULL, NULL},
    {"file-existing", open_file_existing, close_file, records, NULL, NULL, NULL},
    {"mmap", open_mmap, close_mmap, records, NULL, NULL, open_mmap_at},
    {"mmap-scratch", open_mmap_scratch, close_mmap, records, NULL, NULL, NULL},
    {"shm", open_shm, close_plain, backendChecksFrees | backendMayLack, NULL, NULL, NULL},
    {"cuda", open_cuda, close_plain, gpu | backendHasPages, "gpu 0", NULL, NULL},
    {"cuda-host", open_cuda_host, close_plain, gpu, "pinned", NULL, NULL},
    {"cuda-managed", open_cuda_managed, close_plain, gpu, "managed", NULL, NULL},
    {"cuda-async", open_cuda_async, close_plain, gpu | backendHasPages, "gpu 0", NULL, NULL},
    {"cuda-async-0", open_cuda_async_0, close_plain, gpu | backendHasPages, "gpu 0", NULL, NULL},
    {"cuda-1", open_cuda_1, close_plain, gpu | backendHasPages, "gpu 1", NULL, NULL},
    {"cuda-async-1", open_cuda_async_1, close_plain, gpu | backendHasPages, "gpu 1", NULL, NULL},
    {"fake", open_fake, close_plain, test_records, NULL, fake_records, NULL},
    {"fake-offset", open_fake_offset, close_plain, test_records, NULL, fake_records, NULL},
    {"fake-async", open_fake_async, close_plain, test_records, NULL, fake_records, NULL},
    {"fake-managed", open_fake_managed, close_plain, trusting, NULL, fake_records, NULL},
    {"mymem", open_mymem, close_plain, test_records, NULL, NULL, NULL},
    {"plain11", open_plain11, close_plain, test_records, NULL, NULL, NULL},
    {"pointers", open_pointers, close_plain, trusting | backendChecksFrees, NULL, NULL, NULL},
    {"wrapped(host)", open_wrapped_host, close_wrapped, wrapped, "host", NULL, NULL},
    {"wrapped(file)", open_wrapped_file, close_wrapped, wrapped | records, NULL, NULL, NULL},
    {"wrapped(fake)", open_wrapped_fake, close_wrapped, wrapped | records, NULL, wrapped_records,
     NULL},
    {"wrapped(fake-async)", open_wrapped_async, close_wrapped, wrapped | records, NULL,
     wrapped_records, NULL},
    {"wrapped(cuda-async)", open_wrapped_cuda, close_wrapped, wrapped | gpu, "gpu 0", NULL, NULL},
    ADAPTOR_ROWS(limit, 0, backendHasPages),
    ADAPTOR_ROWS(stats, 0, backendHasPages),
    ADAPTOR_ROWS(track, backendReportsLeaks, 0),
    DEBUG_ROWS,
    ADAPTOR_ROWS(retry, 0, 0),
    ADAPTOR_ROWS(fault, 0, 0),
    ADAPTOR_ROWS(log, 0, 0),
    GUARDED_ROWS,
    ADAPTOR_ROW_PREFETCH,
    EXTERNAL_ROWS,
    POOL_ROWS,
    FIXED_ROWS,
    BINNING_ROWS,
    NAMED_ROWS(NAMED_ROW)};

size_t const backend_count = sizeof backends / sizeof *backends;

Backend const *backend_by_name(char const *name) {
  for (size_t i = 0; i < backend_count; i++)
    if (!strcmp(backends[i].name, name)) return &backends[i];
  return NULL;
}

size_t backend_moves(Backend const *row, umemVirtual *ctx) {
  return row->records ? row->records(ctx).moves : BACKEND_MOVES_UNKNOWN;
}

/* ---- constructions that fail ---- */

#define REFUSAL(function, context, ...)                                                            \
  static umemStatusType function(void *ctx) { return context(ctx, ##__VA_ARGS__); }

REFUSAL(host_of_small_options, umemHost_ctor_with, &(umemHostOptions){.size = 1})
REFUSAL(host_of_odd_policy, umemHost_ctor_with,
        &(umemHostOptions){sizeof(umemHostOptions), 9, 0, 0})
REFUSAL(host_of_two_preferred, umemHost_ctor_with,
        &(umemHostOptions){sizeof(umemHostOptions), umemHostPrefer, 0, 3})
REFUSAL(host_of_touched_nodes, umemHost_ctor_with,
        &(umemHostOptions){sizeof(umemHostOptions), umemHostFirstTouch, 0, 1})
REFUSAL(file_of_bad_mode, umemFile_ctor, "x", "q")
REFUSAL(file_of_no_mode, umemFile_ctor, "x", NULL)
REFUSAL(file_of_no_name, umemFile_ctor, "", "w+")
REFUSAL(file_that_is_missing, umemFile_ctor, "/nonexistent/file", "r")
REFUSAL(file_of_bad_descriptor, umemFile_adopt, -1)
REFUSAL(mmap_of_bad_mode, umemMMap_ctor, "x", "q")
REFUSAL(mmap_that_is_missing, umemMMap_ctor, "/nonexistent/file", "r")
REFUSAL(mmap_of_bad_descriptor, umemMMap_adopt, -1)
REFUSAL(shm_of_nothing, umemShm_ctor, NULL, 0)
REFUSAL(shm_of_bad_name, umemShm_ctor, "a/b", 1)
REFUSAL(shm_that_is_missing, umemShm_ctor, "umem-test-no-such-segment", 0)
REFUSAL(shm_of_bad_descriptor, umemShm_adopt, -1)
REFUSAL(shm_of_small_options, umemShm_ctor_with, NULL, &(umemShmOptions){.size = 1})
REFUSAL(cuda_that_is_missing, umemCuda_ctor, 99)
REFUSAL(cuda_of_no_number, umemCuda_ctor, -1)
REFUSAL(cuda_host_of_odd_flags, umemCudaHost_ctor, 1u << 31)
REFUSAL(cuda_managed_that_is_missing, umemCudaManaged_ctor, 99, 0)
REFUSAL(cuda_managed_of_odd_flags, umemCudaManaged_ctor, 0, 1u << 31)
REFUSAL(cuda_async_that_is_missing, umemCudaAsync_ctor, 99, UMEM_STREAM_NEW)
REFUSAL(cuda_async_of_each_thread, umemCudaAsync_ctor, 0, 2)
REFUSAL(cuda_async_of_small_options, umemCudaAsync_ctor_with, 0, 0,
        &(umemCudaAsyncOptions){1, 0, 0, 0, 0})
REFUSAL(limit_of_nothing, umemLimit_ctor, NULL, 1)
REFUSAL(limit_of_zeros, umemLimit_ctor, &(umemHost){.super = {.vptr = NULL}}, 1)
REFUSAL(external_of_nothing, umemExternal_ctor, NULL, NULL)
REFUSAL(external_of_no_functions, umemExternal_ctor, &(umemHost){.super = {.vptr = NULL}},
        &(umemExternalOptions)UMEM_EXTERNAL_OPTIONS_INIT)
REFUSAL(pool_of_nothing, umemPool_ctor, NULL, NULL)
REFUSAL(pool_on_of_nothing, umemPoolOn_ctor, NULL, &(umemHost){.super = {.vptr = NULL}})
REFUSAL(fixed_of_nothing, umemFixed_ctor, NULL, 100, NULL)
REFUSAL(binning_of_nothing, umemBinning_ctor, NULL, NULL, 0)

BackendRefusal const backend_refusals[] = {
    {"host, small options", host_of_small_options, umemValueError, 0, "too small"},
    {"host, odd policy", host_of_odd_policy, umemValueError, 0, "policy 9"},
    {"host, two preferred nodes", host_of_two_preferred, umemValueError, 0, "only one node"},
    {"host, nodes of the first touch", host_of_touched_nodes, umemValueError, 0, "leave nodes out"},
    {"file, bad mode", file_of_bad_mode, umemValueError, UINTPTR_MAX, "bad mode \"q\""},
    {"file, no mode", file_of_no_mode, umemValueError, UINTPTR_MAX, "bad mode"},
    {"file, no name", file_of_no_name, umemValueError, UINTPTR_MAX, "name is empty"},
    {"file, missing", file_that_is_missing, umemIOError, UINTPTR_MAX,
     "umemFile_ctor: cannot open \"/nonexistent/file\": No such file or directory"},
    {"file, bad descriptor", file_of_bad_descriptor, umemIOError, UINTPTR_MAX,
     "Bad file descriptor"},
    {"mmap, bad mode", mmap_of_bad_mode, umemValueError, 0, "bad mode \"q\""},
    {"mmap, missing", mmap_that_is_missing, umemIOError, 0, "No such file or directory"},
    {"mmap, bad descriptor", mmap_of_bad_descriptor, umemIOError, 0, "Bad file descriptor"},
    {"shm, no size", shm_of_nothing, umemValueError, 0, "cannot have 0 bytes"},
    {"shm, bad name", shm_of_bad_name, umemValueError, 0, "\"a/b\" is no name"},
    {"shm, missing", shm_that_is_missing, umemIOError, 0, "No such file or directory"},
    {"shm, bad descriptor", shm_of_bad_descriptor, umemIOError, 0, "Bad file descriptor"},
    {"shm, small options", shm_of_small_options, umemValueError, 0, "too small"},
    {"cuda, missing", cuda_that_is_missing, umemValueError, 0, "there is no GPU 99"},
    {"cuda, no number", cuda_of_no_number, umemValueError, 0, "there is no GPU -1"},
    {"cuda-host, odd flags", cuda_host_of_odd_flags, umemValueError, 0, "flags 0x80000000"},
    {"cuda-managed, missing", cuda_managed_that_is_missing, umemValueError, 0, "no GPU 99"},
    {"cuda-managed, odd flags", cuda_managed_of_odd_flags, umemValueError, 0, "flags 0x80000000"},
    {"cuda-async, missing", cuda_async_that_is_missing, umemValueError, 0, "no GPU 99"},
    {"cuda-async, the thread's stream", cuda_async_of_each_thread, umemNotSupportedError, 0,
     "cudaStreamPerThread"},
    {"limit, no upstream", limit_of_nothing, umemValueError, 0, "the upstream is NULL"},
    {"limit, zeros", limit_of_zeros, umemValueError, 0, "the context is not constructed"},
    {"cuda-async, small options", cuda_async_of_small_options, umemValueError, 0, "too small"},
    {"external, no upstream", external_of_nothing, umemValueError, 0, "the upstream is NULL"},
    {"external, zeros", external_of_no_functions, umemValueError, 0,
     "the context is not constructed"},
    {"pool, no upstream", pool_of_nothing, umemValueError, 0, "the upstream is NULL"},
    {"pool-on, zeros", pool_on_of_nothing, umemValueError, 0, "the context is not constructed"},
    {"fixed, no upstream", fixed_of_nothing, umemValueError, 0, "the upstream is NULL"},
    {"binning, no upstream", binning_of_nothing, umemValueError, 0, "the upstream is NULL"},
};

size_t const backend_refusal_count = sizeof backend_refusals / sizeof *backend_refusals;
