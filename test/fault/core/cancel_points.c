/* cancel_points.c - pthread_cancel ends no thread inside of a call of umem, wherever the C library
 * lets it: hooks in its functions (cancel_hooks.h) find out where it could, or cancel it. */
#include <sys/socket.h>

#include "child.h"
#include "backends.h"
#include "fake/doubles.h"
#include "fault/core/cancel_hooks.h"
#include "settings.h"
#include "temporary.h"

/* ---- calls ---- */

enum { small = 100, some = 3000, middle = 200000, large = 9 << 20 };

static unsigned char bytes[middle];
static char path[256];

typedef struct Bench {
  Backend const *row;
  char const *name; /* for umem_open; or NULL, and row is used */
  umemVirtual *ctx;
  uintptr_t adr, *many; /* [some], in a host */
  umemHost host;
  int sockets[2];
  unsigned cancel_at;
} Bench;

static void open_it(Bench *bench) {
  bench->ctx = bench->name ? umem_open(bench->name) : backend_open(bench->row);
}

static void close_it(Bench *bench) {
  if (bench->name)
    umem_close(bench->ctx);
  else
    backend_close(bench->row, bench->ctx);
  bench->ctx = NULL;
}

static void allocate(Bench *bench) { bench->adr = umem_alloc(bench->ctx, middle); }
static void set(Bench *bench) { umem_set(bench->ctx, bench->adr, 7, middle); }

static void copy_out(Bench *bench) {
  umem_copy_to(&bench->host, (uintptr_t)bytes, bench->ctx, bench->adr, middle);
}

static void copy_in(Bench *bench) {
  umem_copy_to(bench->ctx, bench->adr, &bench->host, (uintptr_t)bytes, middle);
}

static void copy_inside(Bench *bench) {
  umem_copy_to(bench->ctx, bench->adr + middle / 2, bench->ctx, bench->adr, middle / 2);
}

static void copy_items(Bench *bench) {
  size_t const extents[] = {100, 10};
  ptrdiff_t const near[] = {80, 8}, far[] = {1600, 160};
  umemLayout const out = {sizeof out, 8, 2, extents, far, near},
                   in = {sizeof in, 8, 2, extents, near, far};
  umem_copy_strided(bench->ctx, bench->adr, &bench->host, (uintptr_t)bytes, &out);
  umem_copy_strided(&bench->host, (uintptr_t)bytes, bench->ctx, bench->adr, &in);
}

static void resize(Bench *bench) {
  uintptr_t adr = umem_realloc(bench->ctx, bench->adr, middle, 2 * middle);
  if (adr != umem_null(bench->ctx)) bench->adr = adr;
}

static void deallocate(Bench *bench) { umem_free(bench->ctx, bench->adr); }

static void allocate_zeros_aligned(Bench *bench) {
  umem_free(bench->ctx, umem_calloc(bench->ctx, 10, middle / 10));
  umem_aligned_free(bench->ctx, umem_aligned_alloc(bench->ctx, 4096, middle));
}

/* Through the caches of pools, and their chunks. */
static void allocate_many(Bench *bench) {
  for (int i = 0; i < some; i++) bench->many[i] = umem_alloc(bench->ctx, small);
  for (int i = 0; i < some; i++) umem_free(bench->ctx, bench->many[i]);
}

static void allocate_large(Bench *bench) {
  uintptr_t one = umem_alloc(bench->ctx, large), other = umem_alloc(bench->ctx, large / 2);
  FREE(bench->ctx, one, other);
  umem_trim(bench->ctx, 0);
}

static void copy_large(Bench *bench) {
  uintptr_t one = umem_alloc(bench->ctx, large), other = umem_alloc(&bench->host, large);
  umem_set(&bench->host, other, 1, large);
  umem_copy_to(&bench->host, other, bench->ctx, one, large);
  umem_synchronize(bench->ctx);
  umem_free(bench->ctx, one);
  umem_free(&bench->host, other);
}

static void ask(Bench *bench) {
  umemInfo info = UMEM_INFO_INIT;
  umemFound found = UMEM_FOUND_INIT;
  char text[4096];
  umem_get_info(bench->ctx, &info);
  umem_find_in(bench->ctx, bench->adr, &found);
  umem_find(bench->adr, &found);
  umem_set_label(bench->ctx, "label");
  umem_set_block_label(bench->ctx, bench->adr, "block");
  umem_get_block_label(bench->ctx, bench->adr);
  umem_describe_contexts(text, sizeof text);
  umem_is_same_device(bench->ctx, &bench->host);
}

static void finish(Bench *bench) {
  umem_synchronize(bench->ctx);
  umem_wait(bench->ctx, &bench->host);
  umem_wait(&bench->host, bench->ctx);
  umem_flush(bench->ctx);
  umem_trim(bench->ctx, 0);
}

static void connect_it(Bench *bench) {
  uintptr_t there = umem_connect(bench->ctx, bench->adr, middle, &bench->host, 0);
  umem_sync_to(bench->ctx, bench->adr, &bench->host, there, middle);
  umem_sync_from(bench->ctx, bench->adr, &bench->host, there, middle);
  umem_synchronize(bench->ctx);
  umem_disconnect(bench->ctx, bench->adr, &bench->host, there, 0);
}

static void be_wrong(Bench *bench) {
  umem_set(bench->ctx, umem_null(bench->ctx), 0, 1);
  umem_free(bench->ctx, umem_alloc(bench->ctx, SIZE_MAX / 4));
  umem_get_message(bench->ctx);
  FORGET(bench->ctx);
}

static void share(Bench *bench) {
  umemHandle handle;
  if (umem_share(bench->ctx, bench->adr, middle, &handle) != umemOK) return;
  umem_detach(&bench->host, umem_attach(&handle, &bench->host));
  if (umem_send(bench->sockets[0], bench->ctx, bench->adr, middle) == umemOK)
    umem_detach(&bench->host, umem_receive(bench->sockets[1], &bench->host, &handle));
}

static void use_arrays(Bench *bench) {
  umemStatusType status = umemOK;
  int64_t const shape[] = {10, 20};
  SCOPED(release_array)
  umemArray *array = umemArray_zeros(bench->ctx, umemFloat64, 2, shape, NULL, &status);
  SCOPED(release_array)
  umemArray *copy = array ? umemArray_copy(array, &bench->host, umemOrderC, &status) : NULL;
  if (copy) umemArray_assign(array, copy, &status);
  umem_synchronize(bench->ctx); /* queued copies use both */
}

static void keep_ledger(Bench *bench) {
  umem_ledger_start();
  copy_in(bench);
  umem_ledger_print(bench->sockets[0]);
  umem_ledger_clear();
  umem_ledger_stop();
}

static int leave_as_it_is(void *data UNUSED, umemBlock const *block UNUSED) { return 0; }

static void use_blocks(Bench *bench) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){bench->ctx, bench->adr, 1000, 0};
  options.destination = options.source;
  options.count = middle / 1000;
  options.place = &bench->host;
  options.budget = middle;
  umemBlocks_run(&options, leave_as_it_is, NULL, NULL);
}

/* What has no context, or one of its own. */
static void use_others(Bench *bench) {
  umemFile file;
  umemShm shm;
  umemHost nodes;
  umemHostOptions options = UMEM_HOST_OPTIONS_INIT;
  int node;
  if (bench->row) return;
  umem_set_threads(3);
  umem_default();
  umem_open("file:/nowhere/x");
  umem_open("shm:/a/b");
  umemShm_remove("umem-nowhere");
  if (umemFile_replace(&file, path) == umemOK) umemFile_commit(&file);
  umem_dtor(&file);
  umemShm_ctor(&shm, NULL, 1 << 20);
  umem_dtor(&shm);
  options.policy = umemHostInterleave;
  if (umemHost_ctor_with(&nodes, &options) == umemOK) {
    uintptr_t adr = umem_alloc(&nodes, middle);
    umemHost_node(&nodes, adr, &node);
    umem_free(&nodes, adr);
  }
  umem_dtor(&nodes);
  umemHost_node(&bench->host, (uintptr_t)bytes, &node);
}

static const struct {
  char const *name;
  void (*run)(Bench *);
} calls[] = {
#define CALL(function)                                                                             \
  { #function, function }
    CALL(open_it),
    CALL(allocate),
    CALL(set),
    CALL(copy_in),
    CALL(copy_out),
    CALL(copy_inside),
    CALL(copy_items),
    CALL(ask),
    CALL(finish),
    CALL(connect_it),
    CALL(share),
    CALL(keep_ledger),
    CALL(use_arrays),
    CALL(use_blocks),
    CALL(use_others),
    CALL(be_wrong),
    CALL(resize),
    CALL(deallocate),
    CALL(allocate_zeros_aligned),
    CALL(allocate_many),
    CALL(allocate_large),
    CALL(copy_large),
    CALL(close_it),
};
enum { call_count = sizeof calls / sizeof *calls };

static void begin(Bench *bench, Backend const *row, char const *name) {
  static uintptr_t many[some];
  *bench = (Bench){.row = row, .name = name, .many = many};
  umemHost_ctor(&bench->host);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, bench->sockets), 0);
}

static void end(Bench *bench) {
  umem_dtor(&bench->host);
  close(bench->sockets[0]);
  close(bench->sockets[1]);
}

/* ---- nowhere ---- */

static unsigned wrong; /* calls, in a child; rows, in the parent */

/* What opens and closes a row is no function of umem. */
static void run(Bench *bench, size_t call) {
  inside = bench->name || (calls[call].run != open_it && calls[call].run != close_it);
  calls[call].run(bench);
  inside = false;
  if (!found_name) return;
  wrong++;
  print_error("%s: %s: the thread can be cancelled in %s\n",
              bench->name ? bench->name : bench->row->name, calls[call].name, found_name);
  found_name = NULL;
}

/* In a process of its own, where nothing has been asked and kept yet. */
static void use(void *given) {
  Bench *bench = given;
  wrong = 0;
  umem_set_threads(2); /* the child has none */
  for (size_t call = 0; call < call_count; call++) {
    run(bench, call);
    if (!bench->ctx) break; /* not on this machine; or it is closed */
    umem_clear_status(bench->ctx);
  }
  umem_thread_clear();
  end(bench);
  if (wrong) _exit(1);
}

static void expect_safe(Backend const *row, char const *name) {
  Bench bench;
  begin(&bench, row, name);
  pid_t child = child_start(use, &bench);
  end(&bench);
  if (child_wait(child)) wrong++;
}

TEST_CASE(no_thread_can_be_cancelled_in_a_call) {
  wrong = 0;
  for (size_t i = 0; i < backend_count; i++)
    if (!setting_leaves_out(backends[i].name)) expect_safe(&backends[i], NULL);
  assert_int_equal(wrong, 0);
}

static char const *const names[] = {
    "host:",
    "pool+host:",
    "fixed+host:?block=200000",
    "limit+stats+host:?limit=1G",
    "track+debug+host:",
    "guarded+host:",
    "file:",
    "mmap:",
    "pool+file:",
    "shm:?size=64M",
    "pool+shm:?size=64M",
    "fault+host:",
    "cuda:0",
    "pool+cuda:0",
    "cuda-async:0",
    "cuda-managed:0",
    "cuda-host:",
};

TEST_CASE(nor_in_opening_by_name) {
  wrong = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) expect_safe(NULL, names[i]);
  assert_int_equal(wrong, 0);
}

/* Its methods reach no such point, so umem does not put cancellation off for them: but a socket is
 * one. */
static bool share_nothing(umemVirtual *ctx UNUSED, uintptr_t adr, size_t nbytes, umemHandle *handle,
                          int *fd) {
  handle->kind = umemHandleFile;
  handle->offset = adr;
  handle->size = adr + nbytes;
  *fd = -1;
  return true;
}

TEST_CASE(nor_in_sending_what_is_prompt) {
  static struct umemVtbl const vtbl = {.share = share_nothing};
  SCOPED(end) Bench bench;
  umemVirtual ctx;
  umemHandle handle;
  begin(&bench, NULL, NULL);
  umemVirtual_ctor(&ctx, &bench.host);
  ctx.vptr = &vtbl;
  ctx.type = umemUserDevice;
  ctx.capabilities |= umemPrompt;
  found_name = NULL;
  inside = true;
  umemStatusType status = umem_send(bench.sockets[0], &ctx, 4096, small);
  inside = false;
  assert_int_equal(status, umemOK);
  if (found_name) fail_msg("the thread can be cancelled in %s", found_name);
  assert_int_equal(recv(bench.sockets[1], &handle, sizeof handle, 0), sizeof handle);
  assert_int_equal(handle.size, 4096 + small);
  umemVirtual_dtor(&ctx);
}

/* ---- cancelled all the same ---- */

enum { reached_the_end = 3 };

/* Stops at the end of each call of umem. */
static void *work(void *given) {
  Bench *bench = given;
  inside = true;
  bench->adr = umem_alloc(bench->ctx, middle);
  umem_set(bench->ctx, bench->adr, 1, middle);
  umem_copy_to(bench->ctx, bench->adr, &bench->host, (uintptr_t)bytes, middle);
  umem_free(bench->ctx, bench->adr);
  umem_flush(bench->ctx);
  umem_trim(bench->ctx, 0);
  inside = false;
  return NULL;
}

static void *cancelled_work(void *bench) {
  cancel_at = ((Bench *)bench)->cancel_at;
  work(bench);
  bench = passed < cancel_at ? bench : NULL;
  last_name = NULL;
  pthread_testcancel();
  return bench;
}

/* In a process of its own, where nothing has been asked and kept yet: a thread ends after its
 * calls, however early it is cancelled, and others go on. */
static void survives(void *given) {
  Bench *bench = given;
  pthread_t thread;
  void *result;
  open_it(bench);
  if (!bench->ctx) _exit(reached_the_end); /* not on this machine */
  EXPECT(pthread_create(&thread, NULL, cancelled_work, bench) == 0);
  EXPECT(pthread_join(thread, &result) == 0);
  if (last_name) print_error("%s: cancelled in %s\n", bench->name, last_name);
  EXPECT(!last_name && umem_is_ok(bench->ctx));
  work(bench);
  EXPECT(umem_is_ok(bench->ctx));
  EXPECT(umem_close(bench->ctx) == umemOK);
  if (result != PTHREAD_CANCELED) _exit(reached_the_end);
}

TEST_CASE(cancelled_threads_leave_contexts_that_go_on) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    Bench bench;
    int status = 0;
    begin(&bench, NULL, names[i]);
    for (bench.cancel_at = 1; !status; bench.cancel_at++)
      status = child_wait(child_start(survives, &bench));
    if (status != reached_the_end)
      fail_msg("%s: hook %u: %d", names[i], bench.cancel_at - 1, status);
    end(&bench);
  }
}

int main(void) {
  doubles_use();
  temporary_name(path, sizeof path);
  int failed = run_cases(hook_all, NULL);
  unlink(path);
  return failed;
}
