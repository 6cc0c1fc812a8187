/* pool_on_threads.c - views of a pool and many threads: each thread with a view of its own, blocks
 * that are freed by others, views that end while others take from them, and fork. */
#include "pool_on_help.h"

enum { thread_count = 4, box_count = 32 };

/* A live block, and whose queue has used it last. */
typedef struct Parcel {
  uintptr_t adr;
  size_t size;
  ClockQueue *queue;
} Parcel;

typedef struct Crowd {
  Shared *shared;
  pthread_mutex_t mutex;
  Parcel boxes[box_count];
  unsigned running; /* atomic */
} Crowd;

typedef struct Worker {
  Crowd *crowd;
  unsigned number;
  bool right;
} Worker;

/* What is in the box is exchanged for this. */
static Parcel exchange(Crowd *crowd, size_t box, Parcel parcel) {
  pthread_mutex_lock(&crowd->mutex);
  Parcel old = crowd->boxes[box];
  crowd->boxes[box] = parcel;
  pthread_mutex_unlock(&crowd->mutex);
  return old;
}

static bool free_parcel(umemPoolOn *view, ClockQueue *queue, Parcel parcel) {
  if (!parcel.adr) return true;
  if (parcel.queue != queue && umem_wait(queue, parcel.queue) != umemOK) return false;
  clock_use(queue, parcel.adr, parcel.size);
  umem_free(view, parcel.adr);
  return umem_is_ok(view);
}

/* Every now and then the view ends, and a new one begins. */
static void *exchange_parcels(void *argument) {
  Worker *self = argument;
  Shared *s = self->crowd->shared;
  ClockQueue *queue = &s->queue[self->number];
  uint64_t random = self->number;
  umemPoolOn view;
  self->right = umemPoolOn_ctor(&view, &s->pool, queue) == umemOK;
  for (int i = 0; i < (setting_small() ? 2000 : 30000) && self->right; i++) {
    size_t size = random_size(&random, below(&random, 10) ? 13 : 18);
    uintptr_t adr = umem_alloc(&view, size);
    if (adr)
      clock_use(queue, adr, size);
    else
      umem_clear_status(&view);
    Parcel old = exchange(self->crowd, below(&random, box_count), (Parcel){adr, size, queue});
    self->right = free_parcel(&view, queue, old);
    if (i % 997 == 0) self->right = self->right && umem_trim(&view, 0) == umemOK;
    if (i % 1499 == 0) {
      umem_dtor(&view);
      self->right = self->right && umemPoolOn_ctor(&view, &s->pool, queue) == umemOK;
    }
  }
  umem_dtor(&view);
  umem_thread_clear();
  __atomic_sub_fetch(&self->crowd->running, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void run_threads(Crowd *crowd, Worker *workers, pthread_t *threads, void *(*work)(void *)) {
  crowd->running = thread_count;
  for (unsigned i = 0; i < thread_count; i++) {
    workers[i] = (Worker){crowd, i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
}

static void blocks_pass_between(bool ordered, size_t maximum) {
  static Crowd crowd;
  Shared s;
  Worker workers[thread_count];
  pthread_t threads[thread_count];
  open_shared(&s, ordered, maximum);
  crowd = (Crowd){.shared = &s};
  pthread_mutex_init(&crowd.mutex, NULL);
  run_threads(&crowd, workers, threads, exchange_parcels);
  while (__atomic_load_n(&crowd.running, __ATOMIC_ACQUIRE)) {
    umem_trim(&s.pool, 0);
    (void)stats_of(&s.pool);
    sched_yield();
  }
  for (unsigned i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < thread_count; i++) assert_true(workers[i].right);
  for (size_t i = 0; i < box_count; i++)
    assert_true(free_parcel(&s.a, &s.queue[0], crowd.boxes[i]));
  umem_clear_status(&s.pool);
  umem_thread_clear();
  expect_nothing_left(&s.pool);
  pthread_mutex_destroy(&crowd.mutex);
  close_shared(&s);
}

TEST_CASE(blocks_pass_between_views) {
  blocks_pass_between(false, 0);
  blocks_pass_between(true, 0);
}

TEST_CASE(views_run_out_of_memory) {
  blocks_pass_between(false, mebi);
  blocks_pass_between(true, 2 * mebi);
}

/* ---- one thread, many views; and the ends of both ---- */

static void *use_all(void *argument) {
  Worker *self = argument;
  Shared *s = self->crowd->shared;
  umemPoolOn *views[] = {&s->a, &s->b, &s->c};
  self->right = true;
  for (int i = 0; i < 3000 && self->right; i++) {
    uintptr_t adr = umem_alloc(views[i % 3], 100 + (size_t)i);
    self->right = adr;
    umem_free(views[i % 3], adr);
  }
  __atomic_sub_fetch(&self->crowd->running, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* While the main thread uses the pool, and then ends the views, whose caches the threads still
 * have. */
TEST_CASE(caches_outlive_their_views) {
  for (int round = 0; round < (setting_small() ? 5 : 50); round++) {
    Shared s;
    Crowd crowd = {.shared = &s};
    Worker workers[thread_count];
    pthread_t threads[thread_count];
    open_shared(&s, true, 0);
    run_threads(&crowd, workers, threads, use_all);
    while (__atomic_load_n(&crowd.running, __ATOMIC_ACQUIRE))
      umem_free(&s.pool, umem_alloc(&s.pool, 300));
    umem_dtor(&s.a);
    umem_dtor(&s.b);
    umem_free(&s.pool, umem_alloc(&s.pool, 300));
    for (unsigned i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < thread_count; i++) assert_true(workers[i].right);
    expect_nothing_left(&s.pool);
    close_shared(&s);
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
  while (!__atomic_load_n(&self->let, __ATOMIC_ACQUIRE)) sched_yield();
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

typedef struct Leaver {
  umemPoolOn *view;
  ClockQueue *queue;
  bool left; /* atomic */
} Leaver;

static void *leave(void *argument) {
  Leaver *self = argument;
  umem_dtor(self->view);
  umem_dtor(self->queue);
  __atomic_store_n(&self->left, true, __ATOMIC_RELEASE);
  return NULL;
}

/* A view ends while another one is made to wait for its queue: of what it has freed alone, and to a
 * span that is mixed. */
TEST_CASE(a_view_stays_while_it_is_waited_for) {
  static struct umemVtbl const vtbl = {.wait = slow_wait, .upstream = slow_upstream};
  enum { small = 4096, in_span = 16 };
  for (int mixed = 0; mixed < 2; mixed++) {
    Shared s;
    uintptr_t adr[in_span];
    open_shared(&s, true, 64 * kibi);
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
    pthread_t taking, leaving;
    Leaver leaver = {&s.a, &s.queue[0], false};
    assert_int_equal(pthread_create(&taking, NULL, take, &taker), 0);
    while (!__atomic_load_n(&taker.slow.waits, __ATOMIC_ACQUIRE)) sched_yield();
    assert_int_equal(pthread_create(&leaving, NULL, leave, &leaver), 0);
    for (int i = 0; i < 2000; i++) {
      assert_false(__atomic_load_n(&leaver.left, __ATOMIC_ACQUIRE));
      sched_yield();
    }
    __atomic_store_n(&taker.slow.let, true, __ATOMIC_RELEASE);
    pthread_join(taking, NULL);
    pthread_join(leaving, NULL);
    assert_true(taker.adr);
    clock_use(&s.queue[3], taker.adr, small);
    umem_free(&taker.view, taker.adr);
    umem_dtor(&taker.view);
    close_shared(&s);
  }
}

/* ---- fork ---- */

static bool stop; /* atomic */

typedef struct Plain {
  umemPool *pool;
  umemHost *host;
  bool right;
} Plain;

static bool work_on(umemPoolOn *view, umemPool *pool, int rounds) {
  for (int i = 0; i < rounds; i++) {
    size_t size = 10 + (size_t)i * 377 % 100000;
    uintptr_t adr = umem_alloc(view, size), other = umem_alloc(pool, size);
    if (!adr || !other) return false;
    memset((void *)adr, i, size);
    umem_free(pool, adr);
    umem_free(view, other);
  }
  return umem_is_ok(view);
}

static void *churn(void *argument) {
  Plain *self = argument;
  umemPoolOn view;
  self->right = umemPoolOn_ctor(&view, self->pool, self->host) == umemOK;
  while (self->right && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
    self->right = work_on(&view, self->pool, 300);
  umem_dtor(&view);
  return NULL;
}

TEST_CASE(a_child_goes_on) {
  umemHost host;
  umemPool pool;
  umemPoolOn view;
  pthread_t thread;
  assert_ok(umemHost_ctor(&host));
  open_pool(&pool, &host, 0, 0, 0);
  assert_ok(umemPoolOn_ctor(&view, &pool, &host));
  assert_true(work_on(&view, &pool, 300));
  Plain plain = {&pool, &host, false};
  stop = false;
  assert_int_equal(pthread_create(&thread, NULL, churn, &plain), 0);
  bool right = true;
  for (int i = 0; i < (setting_small() ? 5 : 50) && right; i++) {
    pid_t child = fork();
    if (child == 0) {
      bool works = work_on(&view, &pool, 300);
      umem_dtor(&view);
      _exit(works && umem_thread_status() == umemOK ? 0 : 1);
    }
    int status = -1;
    right = child > 0 && waitpid(child, &status, 0) == child && status == 0;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_true(right && plain.right);
  umem_dtor(&view);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- a pool that ends before its view ---- */

typedef struct Late {
  umemPoolOn *view;
  pthread_barrier_t barrier;
  bool right;
} Late;

/* Frees a block after the end of the pool, whose records the thread has used before. */
static void *free_late(void *argument) {
  Late *late = argument;
  uintptr_t adr = umem_alloc(late->view, 100), other = umem_alloc(late->view, 100);
  umem_free(late->view, other);
  pthread_barrier_wait(&late->barrier);
  pthread_barrier_wait(&late->barrier);
  uint64_t before = umem_thread_failures();
  umem_free(late->view, adr);
  late->right = adr && other && umem_thread_failures() == before + 1;
  late->right = late->right && umem_thread_status() == umemValueError;
  umem_thread_clear();
  return NULL;
}

TEST_CASE(another_thread_s_view_may_outlive_the_pool) {
  Shared s;
  pthread_t thread;
  open_shared(&s, false, 0);
  Late late = {.view = &s.a};
  assert_int_equal(pthread_barrier_init(&late.barrier, NULL, 2), 0);
  assert_int_equal(pthread_create(&thread, NULL, free_late, &late), 0);
  pthread_barrier_wait(&late.barrier);
  umem_dtor(&s.pool);
  pthread_barrier_wait(&late.barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&late.barrier);
  assert_true(late.right);
  umem_clear_status(&s.a);
  close_shared(&s);
}

int main(void) { return run_cases(NULL, NULL); }
