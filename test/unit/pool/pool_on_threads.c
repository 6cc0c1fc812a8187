/* pool_on_threads.c - views of a pool and many threads: each thread with a view of its own, blocks
 * that are freed by others, views that end while others take from them, and fork. */
#include "pool_on_help.h"

enum { box_count = 32 };

/* A live block, and whose queue has used it last. */
typedef struct Parcel {
  uintptr_t adr;
  size_t size;
  ClockQueue *queue;
} Parcel;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Parcel boxes[box_count];
static unsigned running; /* atomic: threads */

/* What is in the box is exchanged for this. */
static Parcel exchange(size_t box, Parcel parcel) {
  LOCKED(&mutex);
  Parcel old = boxes[box];
  boxes[box] = parcel;
  return old;
}

static bool free_parcel(umemPoolOn *view, ClockQueue *queue, Parcel parcel) {
  if (!parcel.adr) return true;
  if (parcel.queue != queue && umem_wait(queue, parcel.queue) != umemOK) return false;
  clock_use(queue, parcel.adr, parcel.size);
  umem_free(view, parcel.adr);
  return umem_is_ok(view);
}

/* What a thread returns: NULL if something was wrong. */
static void *end_thread(bool right) {
  __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
  return right ? &running : NULL;
}

/* On a queue of its own. Every now and then the view ends, and a new one begins. */
static void *exchange_parcels(void *of_thread) {
  ClockQueue *queue = of_thread;
  uint64_t random = (uint64_t)queue->number;
  umemPoolOn view;
  bool right = umemPoolOn_ctor(&view, &s.pool, queue) == umemOK;
  for (int i = 0; i < (setting_small() ? 2000 : 30000) && right; i++) {
    size_t size = random_size(&random, below(&random, 10) ? 13 : 18);
    uintptr_t adr = umem_alloc(&view, size);
    if (adr)
      clock_use(queue, adr, size);
    else
      umem_clear_status(&view);
    right =
        free_parcel(&view, queue, exchange(below(&random, box_count), (Parcel){adr, size, queue}));
    if (i % 997 == 0) right = right && umem_trim(&view, 0) == umemOK;
    if (i % 1499 == 0) {
      umem_dtor(&view);
      right = right && umemPoolOn_ctor(&view, &s.pool, queue) == umemOK;
    }
  }
  umem_dtor(&view);
  umem_thread_clear();
  return end_thread(right);
}

static void blocks_pass_between(bool ordered, size_t maximum) {
  pthread_t threads[worker_count];
  open_shared(ordered, maximum);
  memset(boxes, 0, sizeof boxes);
  running = worker_count;
  for (int i = 0; i < worker_count; i++) threads[i] = start_thread(exchange_parcels, &s.queue[i]);
  while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
    umem_trim(&s.pool, 0);
    (void)stats_of(&s.pool);
    sched_yield();
  }
  assert_true(join_threads(threads, worker_count));
  for (size_t i = 0; i < box_count; i++) assert_true(free_parcel(&s.a, &s.queue[0], boxes[i]));
  FORGET(&s.pool);
  expect_nothing_left(&s.pool);
  close_shared();
}

TEST_OF_VIEWS(blocks_pass_between_views) {
  blocks_pass_between(false, 0);
  blocks_pass_between(true, 0);
}

TEST_OF_VIEWS(views_run_out_of_memory) {
  blocks_pass_between(false, mebi);
  blocks_pass_between(true, 2 * mebi);
}

/* ---- one thread, many views; and the ends of both ---- */

static void *use_all(void *unused UNUSED) {
  umemPoolOn *views[] = {&s.a, &s.b, &s.c};
  bool right = true;
  for (int i = 0; i < 3000 && right; i++) {
    uintptr_t adr = umem_alloc(views[i % 3], 100 + (size_t)i);
    right = adr;
    umem_free(views[i % 3], adr);
  }
  return end_thread(right);
}

/* While the main thread uses the pool, and then ends the views, whose caches the threads still
 * have. */
TEST_OF_VIEWS(caches_outlive_their_views) {
  for (int round = 0; round < (setting_small() ? 5 : 50); round++) {
    pthread_t threads[worker_count];
    open_shared(true, 0);
    running = worker_count;
    start_threads(threads, worker_count, use_all, NULL);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE))
      umem_free(&s.pool, umem_alloc(&s.pool, 300));
    DESTRUCT(&s.a, &s.b);
    umem_free(&s.pool, umem_alloc(&s.pool, 300));
    assert_true(join_threads(threads, worker_count));
    expect_nothing_left(&s.pool);
    close_shared();
  }
}

/* ---- a queue that takes its time ---- */

/* An adaptor of a queue that waits for others only when the test lets it. */
typedef struct Slow {
  umemVirtual super;
  ClockQueue *queue;
  bool waits, let; /* atomic */
} Slow;

static void slow_wait(umemVirtual *ctx, umemVirtual *other) {
  Slow *self = (Slow *)ctx;
  __atomic_store_n(&self->waits, true, __ATOMIC_RELEASE);
  await(&self->let);
  umem_wait(self->queue, other);
}

static umemVirtual *slow_upstream(umemVirtual *ctx) { return &((Slow *)ctx)->queue->super; }

typedef struct Taker {
  umemPoolOn view;
  Slow slow;
  uintptr_t adr;
} Taker;

static void *take(void *argument) {
  Taker *self = argument;
  self->adr = umem_alloc(&self->view, 4096);
  return NULL;
}

static void *leave(void *left) {
  DESTRUCT(&s.a, &s.queue[0]);
  __atomic_store_n((bool *)left, true, __ATOMIC_RELEASE);
  return NULL;
}

/* A view ends while another one is made to wait for its queue: of what it has freed alone, and to a
 * span that is mixed. */
TEST_OF_VIEWS(a_view_stays_while_it_is_waited_for) {
  static struct umemVtbl const vtbl = {.wait = slow_wait, .upstream = slow_upstream};
  enum { small = 4096, in_span = 16 };
  for (int mixed = 0; mixed < 2; mixed++) {
    uintptr_t adr[in_span];
    open_shared(true, 64 * kibi);
    Taker taker = {.slow = {.queue = &s.queue[3]}};
    umemVirtual_ctor(&taker.slow.super, NULL);
    taker.slow.super.vptr = &vtbl;
    taker.slow.super.capabilities = s.queue[3].super.capabilities;
    assert_ok(umemPoolOn_ctor(&taker.view, &s.pool, &taker.slow));
    for (int i = 0; i < in_span; i++) adr[i] = new_used(&s.a, small);
    for (int i = 1; i < 4; i++) umem_free(&s.a, adr[i]);
    empty_caches(&s.a);
    if (mixed) free_elsewhere(&s.a, &s.b, adr[5], small);
    if (mixed) empty_caches(&s.b);
    bool left = false; /* atomic */
    pthread_t taking = start_thread(take, &taker);
    await(&taker.slow.waits);
    pthread_t leaving = start_thread(leave, &left);
    for (int i = 0; i < 2000; i++) {
      assert_false(__atomic_load_n(&left, __ATOMIC_ACQUIRE));
      sched_yield();
    }
    __atomic_store_n(&taker.slow.let, true, __ATOMIC_RELEASE);
    join_thread(taking);
    join_thread(leaving);
    assert_true(taker.adr);
    clock_use(&s.queue[3], taker.adr, small);
    umem_free(&taker.view, taker.adr);
    umem_dtor(&taker.view);
    close_shared();
  }
}

/* ---- fork ---- */

static bool stop; /* atomic */

static bool work_on(umemPoolOn *view) {
  for (size_t i = 0; i < 300; i++) {
    size_t size = 10 + i * 377 % 100000;
    uintptr_t adr = umem_alloc(view, size), other = umem_alloc(&pool, size);
    if (!adr || !other) return false;
    memset((void *)adr, (int)i, size);
    umem_free(&pool, adr);
    umem_free(view, other);
  }
  return umem_is_ok(view);
}

static void *churn(void *unused UNUSED) {
  umemPoolOn view;
  bool right = umemPoolOn_ctor(&view, &pool, &host) == umemOK;
  while (right && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) right = work_on(&view);
  umem_dtor(&view);
  return right ? &pool : NULL;
}

TEST_OF_PAGES(a_child_goes_on) {
  CONTEXT(umemPoolOn, view, &pool, &host);
  assert_true(work_on(&view));
  stop = false;
  pthread_t thread = start_thread(churn, NULL);
  bool right = true;
  for (int i = 0; i < (setting_small() ? 5 : 50) && right; i++) {
    pid_t child = fork();
    if (child == 0) {
      bool works = work_on(&view);
      umem_dtor(&view);
      _exit(works && umem_thread_status() == umemOK ? 0 : 1);
    }
    right = child_wait(child) == 0;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  assert_true(join_thread(thread) && right);
}

/* ---- a pool that ends before its view ---- */

static pthread_barrier_t barrier;

/* Frees a block after the end of the pool, whose records the thread has used before. */
static void *free_late(void *of) {
  umemPoolOn *view = of;
  uintptr_t adr = umem_alloc(view, 100), other = umem_alloc(view, 100);
  umem_free(view, other);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  uint64_t before = umem_thread_failures();
  umem_free(view, adr);
  bool right = adr && other && umem_thread_failures() == before + 1 &&
               umem_thread_status() == umemValueError;
  umem_thread_clear();
  return right ? view : NULL;
}

TEST_OF_VIEWS(another_thread_s_view_may_outlive_the_pool) {
  open_shared(false, 0);
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  pthread_t thread = start_thread(free_late, &s.a);
  pthread_barrier_wait(&barrier);
  umem_dtor(&s.pool);
  pthread_barrier_wait(&barrier);
  assert_non_null(join_thread(thread));
  pthread_barrier_destroy(&barrier);
  umem_clear_status(&s.a);
}
