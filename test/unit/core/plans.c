/* plans.c - each context of the library that copies by a route of its own plans that first: its
 * method copy_direct never leaves a copy to others that plan_copy has agreed to. And a copy through
 * buffers that a thread leaves in the middle. */
#include "core/kind.h"

#include "fake/doubles.h"
#include "cases.h"

static char const *const names[] = {"host:",  "file:",        "mmap:",      "shm:?size=64M",
                                    "cuda:0", "cuda-async:0", "cuda-host:", "cuda-managed:0"};
enum { count = sizeof names / sizeof *names, most_bytes = 3 << 20 };

/* A context whose copies are counted: its table is a copy of its own one, but for copy_direct. */
typedef struct Watched {
  umemVirtual *ctx;
  struct umemVtbl const *own;
  struct umemVtbl table;
} Watched;

static Watched opened[count];
static unsigned agreed, done, declined, queried_alike;

static Watched *watched(umemVirtual *ctx) {
  for (int i = 0; i < count; i++)
    if (opened[i].ctx == ctx) return &opened[i];
  return NULL;
}

static bool count_plan(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                       uintptr_t dst_adr, umemLayout const *layout) {
  uint64_t before = umem_thread_failures();
  bool agrees = watched(ctx)->own->plan_copy(ctx, src, src_adr, dst, dst_adr, layout);
  assert_true(umem_thread_failures() == before);
  agreed += agrees;
  if (!layout->rank && ctx->capabilities & umemPlansAlike) {
    assert_ptr_equal((ctx == src ? dst : src)->vptr->plan_copy, count_plan);
    queried_alike++;
  }
  return agrees;
}

static bool count_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                       uintptr_t dst_adr, umemLayout const *layout) {
  bool takes = watched(ctx)->own->copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
  *(takes ? &done : &declined) += 1;
  return takes;
}

static void open_all(void) {
  doubles_use();
  for (int i = 0; i < count; i++) {
    Watched *one = &opened[i];
    one->ctx = umem_open(names[i]);
    if (!one->ctx) fail_msg("%s", umem_thread_message());
    one->own = one->ctx->vptr;
    one->table = *one->own;
    if (!one->own->copy_direct) continue;
    assert_non_null(one->own->plan_copy);
    one->table.copy_direct = count_copy;
    one->table.plan_copy = count_plan;
    one->ctx->vptr = &one->table;
  }
}

static void close_all(void) {
  for (int i = 0; i < count; i++) {
    opened[i].ctx->vptr = opened[i].own;
    umem_close(opened[i].ctx);
  }
  assert_null(doubles_complaint());
}

static char bytes[most_bytes], back[most_bytes];

static void copy_items(umemVirtual *src, umemVirtual *dst, size_t nbytes, umemLayout const *items) {
  uintptr_t from = umem_alloc(src, nbytes), to = umem_calloc(dst, 1, nbytes);
  umem_copy_from(src, from, opened[0].ctx, (uintptr_t)bytes, nbytes);
  umem_synchronize(src);
  assert_int_equal(umem_copy_strided(src, from, dst, to, items), umemOK);
  umem_synchronize(src), umem_synchronize(dst);
  umem_copy_to(dst, to, opened[0].ctx, (uintptr_t)back, nbytes);
  umem_synchronize(dst);
  assert_memory_equal(bytes, back, items->item_size);
  umem_free(src, from), umem_free(dst, to);
}

static void copy_between_all(size_t nbytes, umemLayout items) {
  items.size = sizeof items;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < count; k++) copy_items(opened[i].ctx, opened[k].ctx, nbytes, &items);
}

TEST_CASE(who_agrees_copies) {
  size_t const sizes[] = {1, 4096, 40000, most_bytes};
  open_all();
  for (size_t i = 0; i < most_bytes; i++) bytes[i] = (char)(i * 7 + i / 251);
  for (int i = 0; i < 4; i++) copy_between_all(sizes[i], (umemLayout){.item_size = sizes[i]});
  size_t const rows[] = {20}, squares[] = {30, 30};
  ptrdiff_t const gaps[] = {200}, turned[] = {8, 480}, packed[] = {240, 8};
  copy_between_all(4000, (umemLayout){0, 80, 1, rows, gaps, gaps});
  copy_between_all(16000, (umemLayout){0, 8, 2, squares, turned, packed});
  assert_int_equal(declined, 0);
  assert_int_equal(agreed, done);
  assert_true(done > 100);
  assert_true(queried_alike > 50);
  close_all();
}

/* ---- a method does not return ---- */

/* RAM that the CPU is said not to address, behind a queue. */
typedef struct Queue {
  umemVirtual super;
  umemHost host;
} Queue;

static struct {
  pthread_t leaver;
  bool came, entered; /* the leaver; then another thread; atomic */
  bool forks, forked; /* it forks instead, while the other thread reads; forked: atomic */
  pid_t child;
} leaving;

static void read_queue(umemVirtual *ctx UNUSED, uintptr_t src, umemVirtual *that UNUSED,
                       uintptr_t dst, size_t nbytes) {
  bool other = !pthread_equal(pthread_self(), leaving.leaver);
  for (int i = 0;
       other && leaving.forks && i < 20 && !__atomic_load_n(&leaving.came, __ATOMIC_ACQUIRE); i++)
    usleep(1000);
  if (other && __atomic_load_n(&leaving.came, __ATOMIC_ACQUIRE))
    __atomic_store_n(&leaving.entered, true, __ATOMIC_RELEASE);
  while (other && leaving.forks && __atomic_load_n(&leaving.entered, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&leaving.forked, __ATOMIC_ACQUIRE))
    usleep(1000);
  memcpy((void *)dst, (void *)src, nbytes);
}

/* The other thread reads meanwhile, or waits for its turn to write. */
static void write_and_leave(umemVirtual *ctx UNUSED, uintptr_t dst, umemVirtual *that UNUSED,
                            uintptr_t src, size_t nbytes) {
  memcpy((void *)dst, (void *)src, nbytes);
  if (!pthread_equal(pthread_self(), leaving.leaver)) return;
  __atomic_store_n(&leaving.came, true, __ATOMIC_RELEASE);
  for (int i = 0; i < 100 && !__atomic_load_n(&leaving.entered, __ATOMIC_ACQUIRE); i++)
    usleep(1000);
  if (!leaving.forks) pthread_exit(NULL);
  if (leaving.forked) return;
  if (!__atomic_load_n(&leaving.entered, __ATOMIC_ACQUIRE)) { /* later, then */
    __atomic_store_n(&leaving.came, false, __ATOMIC_RELEASE);
    return;
  }
  leaving.child = fork();
  if (!leaving.child) alarm(20);
  __atomic_store_n(&leaving.forked, true, __ATOMIC_RELEASE);
}

static void end_queue(umemVirtual *ctx) {
  umemVirtual_dtor(ctx);
  umem_dtor(&((Queue *)ctx)->host);
}

static struct umemVtbl const queue_vtbl = {
    .dtor = end_queue, .copy_to = read_queue, .copy_from = write_and_leave};

static void begin_queue(Queue *queue) {
  assert_int_equal(umemHost_ctor(&queue->host), umemOK);
  umemVirtual_ctor(&queue->super, &queue->host);
  queue->super.vptr = &queue_vtbl;
  queue->super.name = "Queue";
  queue->super.capabilities |= umemConcurrent | umemOrdered;
}

static void *copy_between_queues(void *argument) {
  enum { nbytes = 16 << 20 };
  Queue *queues = argument;
  static char from[nbytes], to[nbytes];
  leaving.leaver = pthread_self();
  umem_copy_to(&queues[0], (uintptr_t)from, &queues[1], (uintptr_t)to, nbytes);
  if (leaving.forks && !leaving.child) _exit(0);
  return argument;
}

static void *copy_in_a_thread(void) {
  Queue queues[2] = {0};
  pthread_t thread;
  void *returned;
  begin_queue(&queues[0]), begin_queue(&queues[1]);
  assert_int_equal(umem_set_threads(2), umemOK);
  alarm(20);
  assert_int_equal(pthread_create(&thread, NULL, copy_between_queues, queues), 0);
  assert_int_equal(pthread_join(thread, &returned), 0);
  alarm(0);
  assert_true(leaving.came);
  assert_int_equal(umem_set_threads(0), umemOK);
  umem_dtor(&queues[0]), umem_dtor(&queues[1]);
  return returned;
}

/* It leaves as an exception of C++ does. */
TEST_CASE(a_thread_that_leaves_a_copy_keeps_no_turn) { assert_null(copy_in_a_thread()); }

/* The thread that has the other turn is not in the child. */
TEST_CASE(a_child_of_fork_waits_for_no_turn) {
  int status = -1;
  memset(&leaving, 0, sizeof leaving);
  leaving.forks = true;
  assert_non_null(copy_in_a_thread());
  assert_int_equal(waitpid(leaving.child, &status, 0), leaving.child);
  assert_int_equal(status, 0);
}
