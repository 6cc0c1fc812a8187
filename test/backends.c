/* backends.c - one row per context, and how it is opened and closed for a test. */
#include "backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/decorated.h"
#include "fake/fake.h"
#include "fake/plain11.h"
#include "mymem.h"

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
  char const *folder = getenv("TMPDIR");
  snprintf(path, BACKEND_PATH_SIZE, "%s/umem-test-XXXXXX", folder && *folder ? folder : "/tmp");
  int fd = mkstemp(path);
  if (fd >= 0)
    close(fd);
  else
    *path = 0;
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

static BackendBooks fake_books(umemVirtual *ctx) {
  Fake *fake = (Fake *)ctx;
  return (BackendBooks){fake_store_blocks(fake->store), fake->moves};
}

/* ---- the example of the documentation ---- */

enum { arena_size = 64 << 20 };

static umemVirtual *open_mymem(void) {
  umemMyMem *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? umemMyMem_ctor(ctx, arena_size) : umemMemoryError);
}

static umemVirtual *open_plain11(void) {
  umemMyMem *ctx = malloc(sizeof *ctx);
  return opened(ctx, ctx ? plain11_ctor(ctx, arena_size) : umemMemoryError);
}

/* ---- decorated contexts ---- */

typedef struct {
  Decorated decorated;
  Backend const *inner;
} OpenDecorated;

static umemVirtual *open_decorated(char const *name) {
  OpenDecorated *ctx = malloc(sizeof *ctx);
  if (!ctx) return NULL;
  ctx->inner = backend_by_name(name);
  umemVirtual *upstream = ctx->inner->open();
  return opened(ctx, upstream ? decorated_ctor(&ctx->decorated, upstream) : umemMemoryError);
}

static umemVirtual *open_decorated_host(void) { return open_decorated("host"); }
static umemVirtual *open_decorated_file(void) { return open_decorated("file"); }
static umemVirtual *open_decorated_fake(void) { return open_decorated("fake"); }
static umemVirtual *open_decorated_async(void) { return open_decorated("fake-async"); }

static void close_decorated(umemVirtual *ctx) {
  OpenDecorated *self = (OpenDecorated *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->decorated.upstream);
  free(self);
}

static BackendBooks decorated_books(umemVirtual *ctx) {
  return fake_books(((Decorated *)ctx)->upstream);
}

/* ---- the table ---- */

enum {
  books = backendKeepsBooks,
  fake = backendKeepsBooks | backendTestOnly,
  decorated_host = backendDecorated | backendIsHost | backendTestOnly,
  decorated = backendDecorated | backendKeepsBooks | backendTestOnly
};

Backend const backends[] = {
    {"host", open_host, close_plain, backendIsHost, NULL, NULL},
    {"file", open_file, close_file, books, NULL, open_file_at},
    {"file-scratch", open_file_scratch, close_file, books, NULL, NULL},
    {"file-existing", open_file_existing, close_file, books, NULL, NULL},
    {"mmap", open_mmap, close_mmap, books, NULL, open_mmap_at},
    {"mmap-scratch", open_mmap_scratch, close_mmap, books, NULL, NULL},
    {"fake", open_fake, close_plain, fake, fake_books, NULL},
    {"fake-offset", open_fake_offset, close_plain, fake, fake_books, NULL},
    {"fake-async", open_fake_async, close_plain, fake, fake_books, NULL},
    {"fake-managed", open_fake_managed, close_plain, backendTestOnly, fake_books, NULL},
    {"mymem", open_mymem, close_plain, fake, NULL, NULL},
    {"plain11", open_plain11, close_plain, fake, NULL, NULL},
    {"decorated(host)", open_decorated_host, close_decorated, decorated_host, NULL, NULL},
    {"decorated(file)", open_decorated_file, close_decorated, decorated, NULL, NULL},
    {"decorated(fake)", open_decorated_fake, close_decorated, decorated, decorated_books, NULL},
    {"decorated(fake-async)", open_decorated_async, close_decorated, decorated, decorated_books,
     NULL},
};

size_t const backend_count = sizeof backends / sizeof *backends;

Backend const *backend_by_name(char const *name) {
  for (size_t i = 0; i < backend_count; i++)
    if (!strcmp(backends[i].name, name)) return &backends[i];
  return NULL;
}

/* ---- constructions that fail ---- */

#define REFUSAL(function, context, ...)                                                            \
  static umemStatusType function(void *ctx) { return context(ctx, ##__VA_ARGS__); }

REFUSAL(file_of_bad_mode, umemFile_ctor, "x", "q")
REFUSAL(file_of_no_mode, umemFile_ctor, "x", NULL)
REFUSAL(file_of_no_name, umemFile_ctor, "", "w+")
REFUSAL(file_that_is_missing, umemFile_ctor, "/nonexistent/file", "r")
REFUSAL(file_of_bad_descriptor, umemFile_adopt, -1)
REFUSAL(mmap_of_bad_mode, umemMMap_ctor, "x", "q")
REFUSAL(mmap_that_is_missing, umemMMap_ctor, "/nonexistent/file", "r")
REFUSAL(mmap_of_bad_descriptor, umemMMap_adopt, -1)
REFUSAL(cuda, umemCuda_ctor, 0)
REFUSAL(cuda_host, umemCudaHost_ctor, 0)
REFUSAL(cuda_managed, umemCudaManaged_ctor, 0, 0)
REFUSAL(cuda_async, umemCudaAsync_ctor, 0, UMEM_STREAM_NEW)

BackendRefusal const backend_refusals[] = {
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
    {"cuda", cuda, umemNotSupportedError, 0, "CUDA toolkit"},
    {"cuda-host", cuda_host, umemNotSupportedError, 0, "CUDA toolkit"},
    {"cuda-managed", cuda_managed, umemNotSupportedError, 0, "CUDA toolkit"},
    {"cuda-async", cuda_async, umemNotSupportedError, 0, "CUDA toolkit"},
};

size_t const backend_refusal_count = sizeof backend_refusals / sizeof *backend_refusals;
