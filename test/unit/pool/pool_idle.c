/* pool_idle.c - what the caches of other threads keep: a trim and an allocation that finds no other
 * memory get it, also while these threads go on, end, or have stayed in a parent process. */
#include "pool_on_help.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { most_threads = 64, page = 1 << 16 };

/* Whether the system can fence all threads at once: without it caches stay as they are. */
static bool has_fence(void) {
  enum { query = 0, expedited = 1 << 3 };
  long known = syscall(SYS_membarrier, query, 0, 0);
  return known > 0 && (known & expedited);
}

static void needs_fence(void) {
  if (!has_fence()) skip();
}

/* ---- threads that fill their caches and wait ---- */

typedef struct Crowd {
  umemVirtual *ctx; /* a pool or a view */
  pthread_t threads[most_threads];
  unsigned count;
  unsigned filled; /* atomic */
  unsigned wrong;  /* atomic */
  bool go_on;      /* atomic: they use their caches until it is false */
  bool over;       /* atomic: they end */
} Crowd;

/* As many blocks of each class as a cache keeps. */
static bool fill_caches(void *ctx) {
  uintptr_t blocks[64];
  bool right = true;
  for (size_t size = 16; size <= 1 << 16; size += size < 128 ? 16 : size / 8) {
    size_t count = page / size < 4 ? 4 : page / size > 64 ? 64 : page / size;
    for (size_t i = 0; i < count; i++) {
      blocks[i] = umem_alloc(ctx, size);
      right = right && blocks[i] != umem_null(ctx);
    }
    for (size_t i = 0; i < count; i++) umem_free(ctx, blocks[i]);
  }
  return right;
}

/* A second free, which leaves no trace in the thread's cache. */
static bool free_twice(void *ctx) {
  uintptr_t adr = umem_alloc(ctx, 100);
  umem_free(ctx, adr);
  uint64_t before = umem_thread_failures();
  umem_free(ctx, adr);
  return umem_thread_failures() == before + 1 && umem_thread_status() == umemValueError;
}

/* A block holds its own number while it is live. */
static bool use_one(Crowd *crowd, uint64_t *random) {
  size_t size = 16 + below(random, 3000);
  uintptr_t adr = umem_alloc(crowd->ctx, size);
  bool right = adr;
  if (adr && crowd->ctx->capabilities & umemCpuWritable) {
    memset((void *)adr, (int)(adr >> 4), size);
    unsigned char last = ((unsigned char *)adr)[size - 1];
    right = last == (unsigned char)(adr >> 4) && *(unsigned char *)adr == last;
  }
  umem_free(crowd->ctx, adr);
  return right;
}

static void *keep_blocks(void *argument) {
  Crowd *crowd = argument;
  uint64_t random = (uintptr_t)&crowd;
  bool right = fill_caches(crowd->ctx); /* the pool may grow */
  right = fill_caches(crowd->ctx) && right;
  right = free_twice(crowd->ctx) && right;
  umem_thread_clear();
  __atomic_add_fetch(&crowd->filled, 1, __ATOMIC_ACQ_REL);
  while (!__atomic_load_n(&crowd->over, __ATOMIC_ACQUIRE))
    if (__atomic_load_n(&crowd->go_on, __ATOMIC_ACQUIRE))
      right = right && use_one(crowd, &random);
    else
      usleep(100);
  right = right && use_one(crowd, &random); /* the cache works still */
  if (!right) __atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void begin(Crowd *crowd, void *ctx, unsigned count) {
  *crowd = (Crowd){.ctx = ctx, .count = setting_small() && count > 8 ? 8 : count};
  start_threads(crowd->threads, crowd->count, keep_blocks, crowd);
  while (__atomic_load_n(&crowd->filled, __ATOMIC_ACQUIRE) < crowd->count) sched_yield();
}

static void end(Crowd *crowd) {
  __atomic_store_n(&crowd->over, true, __ATOMIC_RELEASE);
  join_threads(crowd->threads, crowd->count);
  umem_clear_status(crowd->ctx);
  assert_int_equal(crowd->wrong, 0);
}

/* ---- idle threads ---- */

TEST_OF_PAGES(a_trim_reaches_idle_caches) {
  needs_fence();
  SCOPED(end) Crowd crowd;
  begin(&crowd, &pool, most_threads);
  assert_true(stats_of(&pool).reserved >= (size_t)crowd.count << 18);
  assert_true(stats_of(&pool).blocks == 0);
  assert_ok(umem_trim(&pool, 0));
  assert_true(stats_of(&pool).reserved == 0);
}

/* One that keeps as much as the pool has asks nobody. */
TEST_OF_PAGES(a_trim_that_keeps_all_leaves_caches) {
  needs_fence();
  SCOPED(end) Crowd crowd;
  begin(&crowd, &pool, 2);
  uint64_t before = stats_of(&pool).largest_free;
  assert_ok(umem_trim(&pool, SIZE_MAX));
  assert_true(stats_of(&pool).largest_free == before);
}

static size_t most_bytes(void) { return (size_t)(setting_small() ? 24 : 192) << 20; }

/* All but a page of what the pool may have. */
static void use_all_again_and_again(void) {
  Crowd crowd;
  begin(&crowd, &pool, most_threads);
  for (int round = 0; round < 3; round++) {
    uintptr_t adr = umem_alloc(&pool, most_bytes() - page);
    if (!adr) fail_msg("%s", umem_thread_message());
    umem_free(&pool, adr);
    assert_true(fill_caches(&pool));
  }
  end(&crowd);
  close_pool(&pool);
}

TEST(a_maximum_reaches_idle_caches) {
  needs_fence();
  open_pool(&pool, &host, 0, 0, most_bytes());
  use_all_again_and_again();
}

/* The upstream has no more: with pages, and with chunks. */
TEST(an_exhausted_upstream_reaches_idle_caches) {
  needs_fence();
  umemPoolMemory const memories[] = {umemPoolPages, umemPoolChunks};
  for (size_t i = 0; i < 2; i++) {
    umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
    options.memory = memories[i];
    CONTEXT(umemLimit, limit, &host, most_bytes());
    assert_ok(umemPool_ctor(&pool, &limit, &options));
    use_all_again_and_again();
    assert_true(umemLimit_used(&limit) == 0);
  }
}

/* Small blocks, of a class that no free block is left of. */
TEST(a_small_block_is_found_in_idle_caches) {
  needs_fence();
  SCOPED(end) Crowd crowd;
  open_pool(&pool, &host, 0, 0, 4 << 20);
  begin(&crowd, &pool, 1);
  uintptr_t blocks[64];
  new_blocks(&pool, blocks, 63, page);
  free_blocks(&pool, blocks, 63);
}

TEST_OF_VIEWS(views_are_reached) {
  needs_fence();
  Crowd crowd;
  open_shared(false, 0);
  for (int of_view = 0; of_view < 2; of_view++) {
    begin(&crowd, &s.a, 2);
    uint64_t before = stats_of(&s.pool).largest_free;
    assert_ok(umem_trim(of_view ? (void *)&s.a : &s.pool, 0));
    if (of_view)
      assert_true(stats_of(&s.pool).largest_free > before);
    else
      assert_true(stats_of(&s.pool).reserved == 0);
    end(&crowd);
  }
}

/* ---- threads that go on or end ---- */

TEST(busy_threads_share_their_blocks) {
  needs_fence();
  SCOPED(end) Crowd crowd;
  open_pool(&pool, &host, 0, 0, 8 << 20);
  begin(&crowd, &pool, 3);
  __atomic_store_n(&crowd.go_on, true, __ATOMIC_RELEASE);
  for (int i = 0; i < (setting_small() ? 50 : 2000); i++) {
    assert_ok(umem_trim(&pool, 0));
    uintptr_t adr = new_block(&pool, 100);
    umem_free(&pool, adr);
    uint64_t before = umem_thread_failures();
    umem_free(&pool, adr);
    assert_true(umem_thread_failures() == before + 1);
  }
  FORGET(&pool);
}

static void *fill_and_end(void *argument) {
  fill_caches(argument);
  return NULL;
}

TEST_OF_PAGES(threads_may_end_meanwhile) {
  needs_fence();
  for (int i = 0; i < (setting_small() ? 10 : 200); i++) {
    pthread_t threads[4];
    start_threads(threads, 4, fill_and_end, &pool);
    for (int k = 0; k < 10; k++) assert_ok(umem_trim(&pool, 0));
    join_threads(threads, 4);
  }
}

/* ---- fork ---- */

/* The caches of the parent's threads stay as they are: nobody knows what these were doing. */
TEST_OF_PAGES(a_child_leaves_the_caches_of_its_parent) {
  needs_fence();
  SCOPED(end) Crowd crowd;
  begin(&crowd, &pool, 2);
  uint64_t reserved = stats_of(&pool).reserved;
  IN_CHILD {
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    bool right = umem_trim(&pool, 0) == umemOK && umemPool_stats(&pool, &stats) == umemOK;
    uintptr_t adr = umem_alloc(&pool, 100);
    umem_free(&pool, adr);
    EXPECT(right && adr && stats.reserved > 0 && stats.reserved <= reserved);
  }
}

/* The thread that has forked goes on in the child, where others reach its cache: to trim, and to
 * end a view. */
static void *trim_it(void *unused UNUSED) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  bool right = umem_trim(&pool, 0) == umemOK && umemPool_stats(&pool, &stats) == umemOK;
  return right && !stats.reserved ? NULL : &pool;
}

static void *end_it(void *view) {
  umem_dtor(view);
  return NULL;
}

static bool fails_in_thread(void *(*work)(void *), void *argument) {
  alarm(60);
  return join_thread(start_thread(work, argument));
}

TEST(a_child_reaches_the_cache_of_the_thread_that_forked) {
  needs_fence();
  for (int with_view = 0; with_view < 2; with_view++) {
    umemPoolOn view;
    void *ctx = with_view ? (void *)&view : (void *)&pool;
    assert_ok(umemPool_ctor(&pool, &host, NULL));
    if (with_view) assert_ok(umemPoolOn_ctor(&view, &pool, &host));
    assert_true(fill_caches(ctx) && stats_of(&pool).reserved > 0);
    IN_CHILD {
      bool wrong = with_view && fails_in_thread(end_it, &view);
      EXPECT(!(wrong || fails_in_thread(trim_it, NULL)));
    }
    if (with_view) umem_dtor(&view);
    close_pool(&pool);
  }
}

/* ---- systems without a fence for all threads ---- */

/* From now on membarrier fails with ENOSYS. */
static bool forbid_fence(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 && !has_fence();
}

enum { cannot_forbid = 77 };

static int without_fence(void) {
  Crowd crowd;
  if (!forbid_fence()) return cannot_forbid;
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  begin(&crowd, &pool, 2);
  assert_ok(umem_trim(&pool, 0));
  assert_true(stats_of(&pool).reserved > 0);
  end(&crowd);
  close_pool(&pool);
  return 0;
}

TEST(without_a_fence_caches_stay) {
  pid_t child = fork();
  if (child == 0) _exit(without_fence());
  int status = child_wait(child);
  if (status == cannot_forbid) skip();
  assert_int_equal(status, 0);
}
