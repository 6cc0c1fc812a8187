/* Parts of this program are the examples of constructors and contexts in the reference of C: a part
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

static void pools(umemHost *ram) {
  /* [umemPool_ctor] */
  umemPool pool;
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.maximum = 64 << 20; /* bytes that it ever holds */
  if (umemPool_ctor(&pool, ram, &options) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&pool, umem_alloc(&pool, 100));
  /* [/] */

  /* [umemPool_stats] */
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  if (umemPool_stats(&pool, &stats) != umemOK) puts(umem_get_message(&pool));
  assert(stats.allocations == 1 && stats.blocks == 0);
  /* [/] */

  /* [umemPool_next_region] */
  umemPoolRegion region = UMEM_POOL_REGION_INIT;
  for (uintptr_t adr = 0; umemPool_next_region(&pool, adr, &region); adr = region.adr + 1)
    printf("%d of %d bytes are used\n", (int)region.used, (int)region.nbytes);
  assert(umem_is_ok(&pool)); /* the loop has not ended by a failure */
  /* [/] */

  /* [umemPoolOn_ctor] */
  umemPoolOn view; /* the queue of the view: ram here, a umemCudaAsync of its own on a GPU */
  if (umemPoolOn_ctor(&view, &pool, ram) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&view, umem_alloc(&view, 100)); /* in the order of the queue; the host does not wait */
  umem_dtor(&view);
  /* [/] */
  umem_dtor(&pool);

  /* [umemFixed_ctor] */
  umemFixed fixed; /* every block has 256 bytes */
  if (umemFixed_ctor(&fixed, ram, 256, NULL) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&fixed, umem_alloc(&fixed, 200));
  /* [/] */

  /* [umemFixed_stats] */
  umemFixedStats counts = UMEM_FIXED_STATS_INIT;
  if (umemFixed_stats(&fixed, &counts) != umemOK) puts(umem_get_message(&fixed));
  assert(counts.block_size == 256 && counts.blocks == 0);
  /* [/] */

  /* [umemBinning_ctor] */
  umemBinning binning;
  umemBin const bins[] = {{256, &fixed}}; /* larger blocks come from ram */
  if (umemBinning_ctor(&binning, ram, bins, 1) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&binning, umem_alloc(&binning, 100)); /* of fixed */
  /* [/] */

  umemFixed pages;
  assert(umemFixed_ctor(&pages, ram, 4096, NULL) == umemOK);
  /* [umemBinning_add] */
  umemBin const later = {4096, &pages}; /* for blocks of 257 to 4096 bytes from now on */
  if (umemBinning_add(&binning, &later) != umemOK) puts(umem_get_message(&binning));
  /* [/] */
  umem_free(&binning, umem_alloc(&binning, 4000));
  umem_dtor(&binning), umem_dtor(&pages);
  umem_dtor(&fixed);
}

/* [umemRetry_ctor] */
static bool trim(void *pool, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)ctx, (void)nbytes, (void)alignment;
  return attempt == 1 && umem_trim(pool, 0) == umemOK; /* try once more after this */
}
static umemStatusType open_retry(umemRetry *ctx, void *upstream, umemPool *pool) {
  return umemRetry_ctor(ctx, upstream, trim, pool);
}
/* [/] */

static void retry(umemHost *ram) {
  umemLimit limit;
  umemPool pool;
  umemRetry ctx;
  umemLimit_ctor(&limit, ram, 3 << 20);
  umemPool_ctor(&pool, &limit, NULL);
  umem_free(&pool, umem_alloc(&pool, 2 << 20)); /* which the pool keeps */
  assert(umemLimit_used(&limit) >= 2 << 20);
  assert(open_retry(&ctx, &limit, &pool) == umemOK);
  uintptr_t adr = umem_alloc(&ctx, 2 << 20);
  assert(adr != umem_null(&ctx) && umem_thread_status() == umemOK);
  umem_free(&ctx, adr);
  umem_dtor(&ctx), umem_dtor(&pool), umem_dtor(&limit);
}

static void *get_malloc(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)alignment, (void)stream;
  return malloc(nbytes);
}
static void give_malloc(void *user, void *adr, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)nbytes, (void)alignment, (void)stream;
  free(adr);
}

static void adaptors(umemHost *ram) {
  /* [umemLimit_ctor umemLimit_used] */
  umemLimit limit;
  umemLimit_ctor(&limit, ram, 1000);
  uintptr_t adr = umem_alloc(&limit, 600);
  assert(umemLimit_used(&limit) == 600);
  assert(umem_alloc(&limit, 600) == umem_null(&limit)); /* beyond 1000 bytes: umemMemoryError */
  /* [/] */
  umem_free(&limit, adr);
  umem_dtor(&limit), umem_thread_clear();

  /* [umemStats_ctor] */
  umemStats stats;
  if (umemStats_ctor(&stats, ram) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&stats, umem_alloc(&stats, 100)); /* is counted */
  /* [/] */
  umemStats_reset(&stats);

  /* [umemStats_push umemStats_pop] */
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  umemStats_push(&stats); /* a scope, which counts from 0 */
  umem_free(&stats, umem_alloc(&stats, 100));
  if (umemStats_pop(&stats, &figures) != umemOK) puts(umem_get_message(&stats));
  printf("at most %d bytes\n", (int)figures.peak_bytes);
  /* [/] */

  /* [umemStats_get umemStats_reset] */
  umemStats_get(&stats, &figures); /* since the constructor */
  assert(figures.total_count == 1);
  umemStats_reset(&stats); /* from here on */
  /* [/] */
  umem_dtor(&stats);

  /* [umemDebug_ctor umemDebug_check] */
  umemDebug debug;
  if (umemDebug_ctor(&debug, ram, NULL) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&debug, umem_alloc(&debug, 100));
  assert(umemDebug_check(&debug) == umemOK); /* no byte around a block was written */
  /* [/] */

  /* [umemTrack_ctor] */
  umemTrack track; /* track over debug: see "In which order" */
  if (umemTrack_ctor(&track, &debug, NULL) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&track, umem_alloc(&track, 100));
  umem_dtor(&track);
  if (umem_thread_status() != umemOK) puts(umem_thread_message()); /* which blocks are not freed */
  /* [/] */
  char *bytes = (char *)umem_alloc(&debug, 100);
  bytes[100] = 1;
  assert(umemDebug_check(&debug) == umemIndexError);

  /* [umemDebug_first] */
  umemDebugFault first = UMEM_DEBUG_FAULT_INIT;
  if (umemDebug_first(&debug, &first)) /* false: it has found nothing */
    printf("byte %d of a block of %zu is wrong\n", (int)first.offset, first.nbytes);
  /* [/] */
  assert(first.kind == umemDebugOverflow && first.offset == 100);

  /* [umemDebug_get] */
  umemDebugFigures found = UMEM_DEBUG_FIGURES_INIT;
  if (umemDebug_get(&debug, &found) != umemOK) puts(umem_get_message(&debug));
  assert(found.faults == 1 && found.live_blocks == 1);
  /* [/] */
  umem_dtor(&debug), umem_thread_clear();

  /* [umemFault_ctor] */
  umemFault fault;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.nth = 1; /* the first allocation fails */
  if (umemFault_ctor(&fault, ram, &plan) != umemOK) return (void)puts(umem_thread_message());
  assert(umem_alloc(&fault, 100) == umem_null(&fault)); /* as if memory were full */
  /* [/] */

  /* [umemFault_count umemFault_failures] */
  assert(umemFault_count(&fault, umemFaultAllocations) == 1); /* calls since the plan began */
  assert(umemFault_failures(&fault) == 1);
  /* [/] */

  /* [umemFault_set_plan] */
  plan.calls = umemFaultCopies, plan.nth = 3; /* from now on: the third copy fails */
  umem_clear_status(&fault);
  if (umemFault_set_plan(&fault, &plan) != umemOK) puts(umem_get_message(&fault));
  /* [/] */
  assert(umem_is_ok(&fault) && umemFault_failures(&fault) == 0);
  umem_dtor(&fault), umem_thread_clear();

  /* [umemGuarded_ctor umemGuarded_protect umemGuarded_access] */
  umemGuarded guarded;
  if (umemGuarded_ctor(&guarded, ram) != umemOK) return (void)puts(umem_thread_message());
  adr = umem_alloc(&guarded, 100);
  umemGuarded_protect(&guarded, adr, 100, umemGuardedRead); /* a write through a pointer: SIGSEGV */
  assert(umemGuarded_access(&guarded, adr) == umemGuardedRead);
  /* [/] */
  umem_free(&guarded, adr), umem_dtor(&guarded);

  /* [umemExternal_ctor] */
  umemExternal external; /* blocks of malloc; ram copies them */
  umemExternalOptions table = {sizeof table, get_malloc, give_malloc, NULL, NULL, 16, 1, 0};
  if (umemExternal_ctor(&external, ram, &table) != umemOK) return (void)puts(umem_thread_message());
  /* [/] */
  umem_free(&external, umem_alloc(&external, 100)), umem_dtor(&external);

  /* [umemGuarded_report] */
  /* A line on stderr about the next access to a closed block, before SIGSEGV ends the process. */
  if (umemGuarded_report(true) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(umemGuarded_report(false) == umemOK);

  /* [umemLog_ctor] */
  umemLog log;
  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  options.filename = "run.umem";
  if (umemLog_ctor(&log, ram, &options) != umemOK) return (void)puts(umem_thread_message());
  umem_free(&log, umem_alloc(&log, 100)); /* umem trace reads the records */
  /* [/] */

  /* [umemLog_number] */
  assert(umemLog_number(&log) == 1); /* in the records of the file, from 1 */
  /* [/] */
  umem_dtor(&log);
}

static void adopt(void) {
  static umemHost ram;
  static umemPool pool;
  static umemLimit limit;
  /* [umemPool_adopt umemLimit_adopt] */
  umemHost_ctor(&ram);
  umemStatusType status = umemPool_adopt(&pool, &ram, NULL);               /* owns ram */
  if (status == umemOK) status = umemLimit_adopt(&limit, &pool, 64 << 20); /* owns the pool */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&limit); /* ends all three */
  /* [/] */
  assert(status == umemOK);

  static umemDebug debug;
  static umemTrack track;
  static umemStats stats;
  /* [umemDebug_adopt umemTrack_adopt umemStats_adopt] */
  umemHost_ctor(&ram);
  status = umemDebug_adopt(&debug, &ram, NULL);                         /* owns ram */
  if (status == umemOK) status = umemTrack_adopt(&track, &debug, NULL); /* owns debug */
  if (status == umemOK) status = umemStats_adopt(&stats, &track);       /* owns track */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&stats); /* ends all four */
  /* [/] */
  assert(status == umemOK);
}

static void adopt_more(void) {
  static umemHost ram;
  static umemFixed fixed;
  static umemFault fault;
  /* [umemFixed_adopt umemFault_adopt] */
  umemHost_ctor(&ram);
  umemStatusType status = umemFixed_adopt(&fixed, &ram, 256, NULL);     /* owns ram */
  if (status == umemOK) status = umemFault_adopt(&fault, &fixed, NULL); /* owns fixed */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&fault); /* ends all three */
  /* [/] */
  assert(status == umemOK);

  static umemGuarded guarded;
  static umemLog log;
  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  options.filename = "adopt.umem";
  /* [umemGuarded_adopt umemLog_adopt] */
  umemHost_ctor(&ram);
  status = umemGuarded_adopt(&guarded, &ram);                             /* owns ram */
  if (status == umemOK) status = umemLog_adopt(&log, &guarded, &options); /* owns guarded */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&log); /* ends all three */
  /* [/] */
  assert(status == umemOK);

  static umemExternal external;
  umemExternalOptions table = {sizeof table, get_malloc, give_malloc, NULL, NULL, 16, 1, 0};
  /* [umemExternal_adopt] */
  umemHost_ctor(&ram);
  status = umemExternal_adopt(&external, &ram, &table); /* owns ram */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&external); /* ends both */
  /* [/] */
  assert(status == umemOK);

  static umemPool pool;
  static umemRetry retry;
  /* [umemRetry_adopt] */
  umemHost_ctor(&ram);
  status = umemPool_adopt(&pool, &ram, NULL);
  if (status == umemOK) status = umemRetry_adopt(&retry, &pool, trim, &pool); /* owns pool */
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&retry); /* ends all three */
  /* [/] */
  assert(status == umemOK);

  static umemBinning binning;
  umemHost_ctor(&ram);
  assert(umemFixed_ctor(&fixed, &ram, 256, NULL) == umemOK);
  /* [umemBinning_adopt] */
  umemBin const bins[] = {{256, &fixed}}; /* fixed is over ram */
  status = umemBinning_adopt(&binning, &ram, bins, 1);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umem_dtor(&binning); /* ends fixed, and then ram */
  /* [/] */
  assert(status == umemOK);
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
  pools(&ram);
  adaptors(&ram);
  retry(&ram);
  adopt();
  adopt_more();
  names(&ram);
  gpu();
  umem_dtor(&ram);
}
