/* Parts of this program are the examples of stores, devices and names in the reference of C: a part
 * stands at each function that the comment before it names. */
#define _GNU_SOURCE /* O_CLOEXEC */
#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>
#include <unistd.h>

static void nodes(void) {
  /* [umemHost_ctor_with] */
  umemHost local;
  umemHostOptions options = UMEM_HOST_OPTIONS_INIT;
  options.policy = umemHostFirstTouch; /* each page on the node of the thread that uses it first */
  if (umemHost_ctor_with(&local, &options) != umemOK) return (void)puts(umem_thread_message());
  /* [/] */
  uintptr_t adr = umem_calloc(&local, 100, 1);
  /* [umemHost_node] */
  int node;
  umemStatusType status = umemHost_node(&local, adr, &node); /* -1: no memory yet */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  umem_free(&local, adr);
  umem_dtor(&local);
}

static void files(void) {
  /* [umemHost_ctor] */
  umemHost ram;
  umemHost_ctor(&ram);
  char *text = (char *)umem_alloc(&ram, 100); /* an address in RAM is a pointer */
  strcpy(text, "hello");
  umem_free(&ram, (uintptr_t)text);
  umem_dtor(&ram);
  /* [/] */

  /* [umemFile_ctor_with] */
  umemFile file;
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.direct = umemDirectOff; /* always through the page cache */
  if (umemFile_ctor_with(&file, "data.bin", "w+", &options) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&file);
  /* [/] */

  /* [umemFile_replace umemFile_commit] */
  umemFile_replace(&file, "data.bin"); /* the old file stays until commit */
  uintptr_t adr = umem_calloc(&file, 100, 1);
  if (adr != umem_null(&file)) umemFile_commit(&file); /* now the name leads to these bytes */
  umem_dtor(&file);
  /* [/] */

  /* [umemFile_replace_with umemFile_draft] */
  char draft[200];
  umemFile fresh;
  umemStatusType status = umemFile_replace_with(&fresh, "data.bin", &options);
  if (status == umemOK) status = umemFile_draft(&fresh, draft, sizeof draft);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&fresh); /* without a commit: the old file stays, the draft goes */
  /* [/] */
  assert(status == umemOK && strstr(draft, ".umem-"));

  /* [umemMMap_ctor umemMMap_offset umemMMap_address] */
  umemMMap mapped;
  if (umemMMap_ctor(&mapped, "data.bin", "r+") != umemOK) return;
  char *first = (char *)umem_alloc(&mapped, 100); /* the first bytes of the file */
  assert(umemMMap_offset(&mapped, (uintptr_t)first) == 0);
  assert(umemMMap_address(&mapped, 5) == (uintptr_t)(first + 5));
  umem_dtor(&mapped);
  /* [/] */

  /* [umemMMap_ctor_with] */
  umemFileOptions sparse = UMEM_FILE_OPTIONS_INIT;
  sparse.reserve = umemReserveNone; /* disk space is taken by the first write */
  if (umemMMap_ctor_with(&mapped, "sparse.bin", "w+", &sparse) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&mapped);
  /* [/] */
}

static void descriptors(void) {
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  umemFile file;
  umemMMap mapped;
  /* [umemFile_adopt] */
  int fd = open("data.bin", O_RDWR | O_CLOEXEC);      /* or one that another process has sent */
  if (umemFile_adopt(&file, fd) != umemOK) close(fd); /* umem_thread_message() has the reason */
  umem_dtor(&file);                                   /* closes fd */
  /* [/] */

  /* [umemFile_adopt_with] */
  options.reuse = umemReuseNo; /* what an array has written stays */
  fd = open("data.bin", O_RDWR | O_CLOEXEC);
  if (umemFile_adopt_with(&file, fd, &options) != umemOK) close(fd);
  umem_dtor(&file);
  /* [/] */

  /* [umemMMap_adopt] */
  fd = open("data.bin", O_RDONLY | O_CLOEXEC); /* as mode "r" */
  if (umemMMap_adopt(&mapped, fd) != umemOK) close(fd);
  umem_dtor(&mapped); /* closes fd */
  /* [/] */

  /* [umemMMap_adopt_with] */
  options.direct = umemDirectOff; /* copies go through the page cache */
  fd = open("data.bin", O_RDWR | O_CLOEXEC);
  if (umemMMap_adopt_with(&mapped, fd, &options) != umemOK) close(fd);
  umem_dtor(&mapped);
  /* [/] */
  assert(umem_thread_status() == umemOK);
}

/* Nothing listens there. */
static char const *const url = "http://127.0.0.1:9/table.bin";

static void object(void) {
  /* [umemUrl_ctor] */
  umemUrl object;
  umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
  options.connections = 32, options.retries = 0;
  if (umemUrl_ctor(&object, url, &options) != umemOK) return (void)puts(umem_thread_message());
  /* [/] */

  /* [umemUrl_stats] */
  umemUrlStats stats = UMEM_URL_STATS_INIT;
  if (umemUrl_stats(&object, &stats) == umemOK)
    printf("%ju requests, %ju bytes\n", (uintmax_t)stats.requests, (uintmax_t)stats.nbytes);
  /* [/] */
  umem_dtor(&object);
}

static void bucket(void) {
  setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9", true);
  /* [umemS3_ctor] */
  umemS3 found; /* with the credentials of the environment, or of ~/.aws */
  if (umemS3_ctor(&found, "s3://bucket/table.bin", "r") != umemOK) puts(umem_thread_message());
  umem_dtor(&found);
  /* [/] */

  /* [umemS3_ctor_with umemS3_abandon] */
  umemS3 made;
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  options.anonymous = 1, options.length = (uint64_t)200 << 30;
  umemS3_ctor_with(&made, "s3://bucket/new.bin", "w", &options);
  umemS3_abandon(&made); /* no object after all */
  umem_dtor(&made);
  /* [/] */
  umem_thread_clear();
}

static void shm(void) {
  char name[40];
  snprintf(name, sizeof name, "umem-doc-%d", (int)getpid());
  /* [umemShm_ctor_with] */
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = 1 << 20, options.how = umemShmCreate; /* fails if there is one */
  umemShm made;
  if (umemShm_ctor_with(&made, name, &options) != umemOK) return (void)puts(umem_thread_message());
  /* [/] */

  /* [umemShm_ctor umemShm_remove] */
  umemShm shm; /* the segment with this name; a new one of 1 MiB if there is none */
  if (umemShm_ctor(&shm, name, 1 << 20) != umemOK) return (void)puts(umem_thread_message());
  umemShm_remove(name); /* processes that have it keep it */
  /* [/] */

  /* [umemShm_complete umemShm_is_complete] */
  uintptr_t adr = umem_alloc(&shm, 1000);
  if (umemShm_complete(&shm, adr) != umemOK) puts(umem_get_message(&shm)); /* adr: no live block */
  assert(umemShm_is_complete(&shm, adr)); /* it is written: readers may use it */
  /* [/] */

  /* [umemShm_descriptor umemShm_adopt] */
  umemShm again; /* takes over its descriptor, also if it fails */
  if (umemShm_adopt(&again, dup(umemShm_descriptor(&shm))) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&again);
  /* [/] */

  /* [umemShm_adopt_with] */
  options.trust = umemTrustGroup; /* also a segment of a user of the group */
  if (umemShm_adopt_with(&again, dup(umemShm_descriptor(&shm)), &options) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&again);
  /* [/] */
  assert(umem_thread_status() == umemOK);

  /* [umemShm_blocks umemShm_own umemShm_reclaim] */
  umemShmBlock blocks[8];
  size_t count = umemShm_blocks(&shm, blocks, 8);
  printf("%zu block of process %s\n", count,
         blocks[0].pid == (uint32_t)getpid() ? "self" : "other");
  umemShm_own(&shm, adr);   /* this process answers for it now */
  umemShm_reclaim(&shm, 0); /* frees the blocks of processes that have ended */
  /* [/] */
  umem_free(&shm, adr);
  umem_dtor(&shm), umem_dtor(&made);
}

static void names(umemHost *ram) {
  /* [umem_open umem_close] */
  void *ctx = umem_open("limit+pool+host:?limit=1G");
  if (!ctx) fprintf(stderr, "%s\n", umem_thread_message()); /* with the place of a mistake */
  umem_close(ctx);
  /* [/] */

  char const *name = "file:../secret.bin";
  /* [umem_open_with] */
  umemOpenOptions options = UMEM_OPEN_OPTIONS_INIT; /* for a name of somebody else */
  options.schemes = "file mmap pool";
  options.folders = (char const *[]){"."}, options.folder_count = 1;
  void *given = umem_open_with(name, &options);
  if (!given) fprintf(stderr, "%s\n", umem_thread_message()); /* no file has changed */
  umem_close(given);
  /* [/] */
  assert(!given && umem_thread_status() == umemValueError);
  umem_thread_clear();

  /* [umem_scheme] */
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) printf("%s%s", i ? " " : "", scheme->name);
  printf("\n");
  /* [/] */

  /* [umem_default umem_set_default] */
  umem_set_default(ram); /* in place of what the variable UMEM_DEFAULT names */
  assert(umem_default() == ram);
  umem_set_default(NULL);
  /* [/] */

  /* [umem_thread_default umem_set_thread_default] */
  void *before = umem_thread_default(); /* NULL: this thread has the default of the process */
  umem_set_thread_default(ram);
  assert(umem_default() == ram); /* other threads see what they saw before */
  umem_set_thread_default(before);
  /* [/] */

  /* [umem_default_of] */
  void *gpu = umem_default_of(0);                           /* of GPU 0; the library owns it */
  if (!gpu) fprintf(stderr, "%s\n", umem_thread_message()); /* no such GPU */
  /* [/] */
  umem_thread_clear();

  /* [umem_set_default_of] */
  if (umem_set_default_of(0, ram) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  assert(umem_default_of(0) == ram); /* in place of "cuda:0" */
  umem_set_default_of(0, NULL);
  /* [/] */
}

static void managed(void) {
  static umemCudaManaged managed;
  static umemCudaPrefetch prefetch;
  /* [umemCudaManaged_ctor umemCudaPrefetch_ctor] */
  umemStatusType status = umemCudaManaged_ctor(&managed, 0, UMEM_READ_MOSTLY); /* GPU 0 */
  if (status == umemOK) status = umemCudaPrefetch_ctor(&prefetch, &managed);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_free(&prefetch, umem_alloc(&prefetch, 1 << 20)); /* each block begins on the GPU */
  umem_dtor(&prefetch), umem_dtor(&managed);
  /* [/] */
  assert(status == umemOK);

  /* [umemCudaPrefetch_adopt] */
  status = umemCudaManaged_ctor(&managed, 0, 0);
  if (status == umemOK) status = umemCudaPrefetch_adopt(&prefetch, &managed); /* owns managed */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&prefetch); /* ends both */
  /* [/] */
  assert(status == umemOK);
}

static void stream(umemCuda *gpu) {
  umemStatusType status = umemOK;
  /* [umemCudaAsync_ctor umemCudaAsync_stream] */
  umemCudaAsync queue;
  if (umemCudaAsync_ctor(&queue, 0, UMEM_STREAM_NEW) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  uintptr_t cuda_stream = umemCudaAsync_stream(&queue); /* a cudaStream_t, for kernels */
  if (umem_synchronize(&queue) != umemOK) puts(umem_get_message(&queue)); /* all is done now */
  /* [/] */
  assert(cuda_stream != 0);

  umemArray *a = umemArray_zeros(&queue, umemFloat, 1, (int64_t[]){1000}, NULL, &status);
  umemArray *b = umemArray_zeros(gpu, umemFloat, 1, (int64_t[]){1000}, NULL, &status);
  /* [umemArray_copy_contents_on] */
  umemArray_copy_contents_on(&queue, a, b, 0, 0, 1000, &status); /* only queued */
  if (status == umemOK) status = umem_synchronize(&queue);       /* now it is done */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */

  /* [umemArray_device_pointer] */
  float *x = umemArray_device_pointer(a, true, &status); /* for a kernel on the stream of queue */
  if (!x) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(x && status == umemOK);
  umemArray_release(a), umemArray_release(b);
  umem_dtor(&queue);

  /* [umemCudaStreams_open umemCudaStreams_next umemCudaStreams_close] */
  umemCudaStreams streams;
  if (umemCudaStreams_open(&streams, 0, 4) != umemOK) puts(umem_thread_message());
  umemCudaAsync_ctor(&queue, 0, umemCudaStreams_next(&streams)); /* the next task takes the next */
  umem_dtor(&queue);
  umemCudaStreams_close(&streams); /* after all contexts of its streams */
  /* [/] */

  umemCudaStreams_open(&streams, 0, 4);
  /* [umemCudaStreams_count umemCudaStreams_at] */
  for (unsigned i = 0; i < umemCudaStreams_count(&streams); i++)
    printf("%s\n", umemCudaStreams_at(&streams, i) ? "a stream" : umem_thread_message());
  /* [/] */
  umemCudaStreams_close(&streams);

  /* [umemCudaAsync_ctor_with] */
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 64 << 20; /* bytes that it ever holds */
  if (umemCudaAsync_ctor_with(&queue, 0, UMEM_STREAM_NEW, &options) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&queue);
  /* [/] */
}

static void gpu(void) {
  /* [umemCuda_ctor] */
  umemCuda gpu;
  if (umemCuda_ctor(&gpu, 0) != umemOK) return (void)puts(umem_thread_message()); /* no GPU */
  uintptr_t adr = umem_calloc(&gpu, 100, sizeof(float)); /* an address for kernels */
  if (adr == umem_null(&gpu)) fprintf(stderr, "%s\n", umem_get_message(&gpu));
  umem_free(&gpu, adr);
  /* [/] */

  /* [umemCuda_enter umemCuda_leave] */
  umemCudaEntry entry;
  if (umemCuda_enter(&entry, 0) != umemOK) return (void)puts(umem_thread_message());
  /* here the thread launches kernels on GPU 0 */
  if (umemCuda_leave(&entry) != umemOK) puts(umem_thread_message());
  /* [/] */

  /* [umemCuda_set_staging] */
  /* Copies of memory that is not pinned go through at most 16 pieces of 8 MiB. */
  if (umemCuda_set_staging(8 << 20, 16) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(umemCuda_set_staging(0, 0) == umemOK && umem_thread_status() == umemOK);
  managed();
  stream(&gpu);
  umem_dtor(&gpu);

  /* [umemCudaHost_ctor] */
  umemCudaHost pinned;
  if (umemCudaHost_ctor(&pinned, 0) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&pinned, umem_alloc(&pinned, 1 << 20)); /* RAM for fast copies to and from GPUs */
  umem_dtor(&pinned);
  /* [/] */
  assert(umem_thread_status() == umemOK);
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  nodes();
  files();
  descriptors();
  object();
  bucket();
  shm();
  names(&ram);
  gpu();
  umem_dtor(&ram);
}
