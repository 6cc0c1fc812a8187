/* Parts of this program are the examples of constructors and contexts in the reference of C: a part
 * stands at each function that the comment before it names. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <umem.h>
#include <unistd.h>

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

  /* [umemMMap_ctor umemMMap_offset umemMMap_address] */
  umemMMap mapped;
  if (umemMMap_ctor(&mapped, "data.bin", "r+") != umemOK) return;
  char *first = (char *)umem_alloc(&mapped, 100); /* the first bytes of the file */
  assert(umemMMap_offset(&mapped, (uintptr_t)first) == 0);
  assert(umemMMap_address(&mapped, 5) == (uintptr_t)(first + 5));
  umem_dtor(&mapped);
  /* [/] */
}

static void shm(void) {
  /* [umemShm_ctor umemShm_complete umemShm_is_complete umemShm_remove] */
  char name[40];
  snprintf(name, sizeof name, "umem-doc-%d", (int)getpid());
  umemShm shm;
  if (umemShm_ctor(&shm, name, 1 << 20) != umemOK) return;
  uintptr_t adr = umem_alloc(&shm, 1000);
  umemShm_complete(&shm, adr); /* it is written: readers may use it */
  assert(umemShm_is_complete(&shm, adr));
  umemShm_remove(name); /* processes that have it keep it */
  /* [/] */

  /* [umemShm_blocks umemShm_own umemShm_reclaim] */
  umemShmBlock blocks[8];
  size_t count = umemShm_blocks(&shm, blocks, 8);
  printf("%zu block of process %s\n", count,
         blocks[0].pid == (uint32_t)getpid() ? "self" : "other");
  umemShm_own(&shm, adr);   /* this process answers for it now */
  umemShm_reclaim(&shm, 0); /* frees the blocks of processes that have ended */
  assert(umemShm_descriptor(&shm) >= 0);
  /* [/] */
  umem_free(&shm, adr);
  umem_dtor(&shm);
}

static void pools(umemHost *ram) {
  /* [umemPool_ctor umemPool_stats] */
  umemPool pool;
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.maximum = 64 << 20; /* bytes that it ever holds */
  umemPool_ctor(&pool, ram, &options);
  umem_free(&pool, umem_alloc(&pool, 100));
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&pool, &stats);
  umem_dtor(&pool);
  /* [/] */

  /* [umemFixed_ctor] */
  umemFixed fixed;
  umemFixed_ctor(&fixed, ram, 256, NULL); /* every block has 256 bytes */
  umem_free(&fixed, umem_alloc(&fixed, 200));
  umem_dtor(&fixed);
  /* [/] */
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
  umem_clear_status(&limit), umem_dtor(&limit);

  /* [umemStats_ctor umemStats_push umemStats_pop] */
  umemStats stats;
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  umemStats_ctor(&stats, ram);
  umemStats_push(&stats); /* a scope, which counts from 0 */
  umem_free(&stats, umem_alloc(&stats, 100));
  umemStats_pop(&stats, &figures);
  printf("at most %d bytes\n", (int)figures.peak_bytes);
  /* [/] */

  /* [umemStats_get umemStats_reset] */
  umemStats_get(&stats, &figures); /* since the constructor */
  assert(figures.total_count == 1);
  umemStats_reset(&stats); /* from here on */
  /* [/] */
  umem_dtor(&stats);

  /* [umemTrack_ctor umemDebug_ctor umemDebug_check] */
  umemDebug debug;
  umemDebug_ctor(&debug, ram, NULL);
  umemTrack track;
  umemTrack_ctor(&track, &debug, NULL); /* track over debug: see "In which order" */
  umem_free(&track, umem_alloc(&track, 100));
  assert(umemDebug_check(&debug) == umemOK); /* no byte around a block was written */
  umem_dtor(&track), umem_dtor(&debug);
  /* [/] */

  /* [umemFault_ctor umemFault_count umemFault_failures] */
  umemFault fault;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.nth = 1; /* the first allocation fails */
  umemFault_ctor(&fault, ram, &plan);
  assert(umem_alloc(&fault, 100) == umem_null(&fault));
  assert(umemFault_failures(&fault) == 1 && umemFault_count(&fault, umemFaultAllocations) == 1);
  umem_clear_status(&fault), umem_dtor(&fault);
  /* [/] */

  /* [umemGuarded_ctor umemGuarded_protect umemGuarded_access] */
  umemGuarded guarded;
  umemGuarded_ctor(&guarded, ram);
  adr = umem_alloc(&guarded, 100);
  umemGuarded_protect(&guarded, adr, 100, umemGuardedRead); /* a write through a pointer: SIGSEGV */
  assert(umemGuarded_access(&guarded, adr) == umemGuardedRead);
  umem_free(&guarded, adr), umem_dtor(&guarded);
  /* [/] */

  /* [umemLog_ctor umemLog_number] */
  umemLog log;
  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  options.filename = "run.umem";
  umemLog_ctor(&log, ram, &options);
  umem_free(&log, umem_alloc(&log, 100)); /* umem trace reads the records */
  assert(umemLog_number(&log) == 1);
  umem_dtor(&log);
  /* [/] */
}

static void adopt(void) {
  static umemHost ram;
  static umemPool pool;
  static umemLimit limit;
  /* [umemPool_adopt umemLimit_adopt] */
  umemHost_ctor(&ram);
  umemPool_adopt(&pool, &ram, NULL);        /* owns ram */
  umemLimit_adopt(&limit, &pool, 64 << 20); /* owns the pool */
  umem_free(&limit, umem_alloc(&limit, 100));
  umem_dtor(&limit); /* ends all three */
  /* [/] */

  static umemDebug debug;
  static umemTrack track;
  static umemStats stats;
  /* [umemDebug_adopt umemTrack_adopt umemStats_adopt] */
  umemHost_ctor(&ram);
  umemDebug_adopt(&debug, &ram, NULL);   /* owns ram */
  umemTrack_adopt(&track, &debug, NULL); /* owns debug */
  umemStats_adopt(&stats, &track);       /* owns track */
  umem_dtor(&stats);                     /* ends all four */
  /* [/] */
}

static void names(umemHost *ram) {
  /* [umem_open umem_close] */
  void *ctx = umem_open("limit+pool+host:?limit=1G");
  if (!ctx) fprintf(stderr, "%s\n", umem_thread_message()); /* with the place of a mistake */
  umem_close(ctx);
  /* [/] */

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
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  files();
  shm();
  pools(&ram);
  adaptors(&ram);
  adopt();
  names(&ram);
  umem_dtor(&ram);
}
