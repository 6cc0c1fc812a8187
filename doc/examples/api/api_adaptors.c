/* Parts of this program are the examples of pools and adaptors in the reference of C: a part stands at
 * each function that the comment before it names. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <umem.h>

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

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  pools(&ram);
  adaptors(&ram);
  retry(&ram);
  adopt();
  adopt_more();
  umem_dtor(&ram);
}
