/* fork.c - a child may use the contexts of its parent, and ends without harm to it.
 *
 * Also while other threads of the parent are in the middle of anything: no lock stays taken. */

#include "fault/trial.h"

enum { block = 20000, forks = UNDER_SANITIZER ? 10 : 50, thread_count = 4 };

/* One context of the parent, with a block of its own and one that it leaves to its children. */
typedef struct Shared {
  Trial trial;
  uintptr_t parents, childs;
  unsigned char bytes[block];
} Shared;

enum { shared_count = 4 };
static char const *const shared_places[shared_count] = {"host", "file r+", "file scratch",
                                                        "mmap a+"};

static void open_shared(Shared *shared, char const *name) {
  memset(shared, 0, sizeof *shared);
  trial_open(&shared->trial, place_by_name(name), NULL);
  shared->parents = trial_block(&shared->trial, shared->bytes, block);
  shared->childs = trial_block(&shared->trial, shared->bytes, block);
}

static void close_shared(Shared *shared) {
  FREE(shared->trial.ctx, shared->parents, shared->childs);
  trial_close(&shared->trial);
}

/* ---- the child ---- */

static void use(Shared *shared) {
  static unsigned char found[block];
  umemVirtual *ctx = shared->trial.ctx;
  void *host = &shared->trial.host;
  EXPECT(umem_copy_to(ctx, shared->parents, host, (uintptr_t)found, block) == umemOK);
  EXPECT(!memcmp(found, shared->bytes, block));
  EXPECT(umem_set(ctx, shared->childs, 3, block / 2) == umemOK);
  EXPECT(umem_copy_from(ctx, shared->childs + block / 2, host, (uintptr_t)found, 10) == umemOK);

  uintptr_t adr = umem_alloc(ctx, 100);
  EXPECT(adr != umem_null(ctx));
  umem_free(ctx, adr);
  adr = umem_aligned_alloc(ctx, 256, 100);
  EXPECT(adr != umem_null(ctx));
  umem_aligned_free(ctx, adr);
}

static void fail_and_recover(umemVirtual *ctx) {
  EXPECT(umem_set(ctx, umem_null(ctx), 0, 1) == umemValueError);
  EXPECT(umem_get_status(ctx) == umemValueError);
  EXPECT(*umem_get_message(ctx) && *umem_thread_message());
  EXPECT(umem_clear_status(ctx) == umemOK);
  umem_thread_clear();
}

static void use_all_and_end(void *argument) {
  Shared *shared = argument;
  umemFile own;
  for (size_t i = 0; i < shared_count; i++) {
    use(&shared[i]);
    fail_and_recover(shared[i].trial.ctx);
  }
  EXPECT(umemFile_ctor(&own, NULL, "w+") == umemOK);
  EXPECT(umem_calloc(&own, 10, 10) == 0);
  umem_dtor(&own);
  for (size_t i = 0; i < shared_count; i++) umem_dtor(shared[i].trial.ctx);
  EXPECT(umem_thread_status() == umemOK);
}

/* ---- what the parent has afterwards ---- */

static void check_unharmed(Shared *shared) {
  Trial *t = &shared->trial;
  REQUIRE(t, umem_is_ok(t->ctx));
  REQUIRE(t, trial_holds(t, shared->parents, shared->bytes, block));
  uintptr_t adr = umem_alloc(t->ctx, block);
  REQUIRE(t, adr != umem_null(t->ctx));
  trial_note(t, adr, block);
  REQUIRE(t, umem_set(t->ctx, adr, 1, block) == umemOK);
  umem_free(t->ctx, adr);
}

static void check_locked(Shared *shared) {
  Trial *t = &shared->trial;
  if (!*t->path) return;
  umemFile second;
  REQUIRE(t, umemFile_ctor(&second, t->path, "r+") == umemIOError);
  umem_dtor(&second);
  umem_thread_clear();
}

TEST_CASE(a_child_uses_and_ends_all) {
  static Shared shared[shared_count];
  size_t lengths[shared_count] = {0};
  for (size_t i = 0; i < shared_count; i++) {
    open_shared(&shared[i], shared_places[i]);
    if (*shared[i].trial.path) lengths[i] = file_length(shared[i].trial.path);
  }
  assert_true(child_run(use_all_and_end, shared));
  for (size_t i = 0; i < shared_count; i++) {
    Trial *t = &shared[i].trial;
    unsigned char threes[block / 2];
    memset(threes, 3, sizeof threes);
    if (*t->path) REQUIRE(t, file_length(t->path) >= lengths[i]);
    if (t->place->mode) REQUIRE(t, trial_holds(t, shared[i].childs, threes, sizeof threes));
    check_locked(&shared[i]);
    check_unharmed(&shared[i]);
  }
  for (size_t i = shared_count; i-- > 0;) close_shared(&shared[i]);
}

/* The lock goes with the last of the two. */
static void end_only(void *argument) { umem_dtor(((Shared *)argument)->trial.ctx); }

TEST_CASE(the_lock_stays_with_the_parent) {
  static Shared shared;
  umemFile next;
  open_shared(&shared, "mmap a+");
  char path[sizeof shared.trial.path];
  memcpy(path, shared.trial.path, sizeof path);
  assert_true(child_run(end_only, &shared));
  check_locked(&shared);
  check_unharmed(&shared);
  umem_dtor(shared.trial.ctx);
  assert_int_equal(umemFile_ctor(&next, path, "r+"), umemOK);
  umem_dtor(&next);
  trial_finish(&shared.trial);
}

/* ---- with threads ---- */

static atomic_bool over;
static atomic_uint complaints;

/* Everything that takes a lock. Sanitizers' own heaps do not survive a fork in the middle of
 * malloc: there the threads keep to what needs no heap. */
static void hammer_once(Shared *shared, unsigned char *buffer, size_t size) {
  umemVirtual *ctx = shared->trial.ctx;
  void *host = &shared->trial.host;
  bool good = umem_copy_to(ctx, shared->parents, host, (uintptr_t)buffer, size) == umemOK;
  umem_set(ctx, umem_null(ctx), 0, 1);
  good = good && *umem_thread_message();
  umem_get_message(ctx);
  umem_clear_status(ctx);
  if (!UNDER_SANITIZER) {
    umemFile own;
    uintptr_t adr = umem_alloc(ctx, size);
    good = good && adr != umem_null(ctx) && umem_set(ctx, adr, 9, size) == umemOK;
    umem_free(ctx, adr);
    adr = umem_aligned_alloc(ctx, 512, size);
    umem_aligned_free(ctx, adr);
    good = good && umemFile_ctor(&own, NULL, "w+") == umemOK;
    umem_dtor(&own);
  }
  if (!good) atomic_fetch_add(&complaints, 1);
}

/* The lock that all failures share is held for a moment only: some threads do nothing else. */
static void *hammer_status(void *argument) {
  umemVirtual *ctx = ((Shared *)argument)->trial.ctx;
  while (!atomic_load(&over)) {
    umem_set_status(ctx, umemRuntimeError, "a failure of the test");
    umem_get_message(ctx);
    umem_clear_status(ctx);
  }
  return NULL;
}

static void *hammer(void *argument) {
  unsigned char buffer[1000];
  for (unsigned k = 0; !atomic_load(&over); k++)
    hammer_once((Shared *)argument + k % shared_count, buffer, sizeof buffer);
  return NULL;
}

TEST_CASE(forks_beside_busy_threads) {
  static Shared shared[shared_count];
  pthread_t threads[thread_count];
  if (UNDER_SANITIZER)
    print_message("under this sanitizer: %d forks, beside threads without a heap\n", forks);
  for (size_t i = 0; i < shared_count; i++) open_shared(&shared[i], shared_places[i]);
  atomic_store(&over, false);
  for (size_t i = 0; i < thread_count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? hammer_status : hammer, shared), 0);
  int failed = 0;
  for (int k = 0; k < forks && !failed; k++)
    failed += child_wait(child_start(use_all_and_end, shared)) != 0;
  atomic_store(&over, true);
  for (size_t i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  assert_int_equal(failed, 0);
  assert_int_equal(atomic_load(&complaints), 0);
  for (size_t i = 0; i < shared_count; i++) {
    umem_clear_status(shared[i].trial.ctx);
    check_unharmed(&shared[i]);
    check_locked(&shared[i]);
  }
  for (size_t i = shared_count; i-- > 0;) close_shared(&shared[i]);
}
