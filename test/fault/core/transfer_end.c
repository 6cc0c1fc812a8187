/* transfer_end.c - what becomes of transfers whose process forks, exits, or is killed: on every
 * place nothing hangs, and no byte changes that is none of theirs. */

#include "backends.h"
#include "child.h"
#include "fake/doubles.h"
#include "random.h"
#include "temporary.h"

enum { block = 3 << 20, count = 8, most_microseconds = 4000 };

static unsigned char *bytes; /* of RAM, `block` of them */

enum { all = 2 * count + 1, pieces = block / 3000 };

/* Transfers from RAM to blocks of a place, and back into RAM; the last one is a list. */
typedef struct Set {
  umemVirtual *ctx;
  umemHost ram;
  uintptr_t to[count + 1], back;
  umemTransfer *transfers[all];
} Set;

/* Pieces of RAM with gaps between them, of which every second has bytes that are at `to`. */
static void cut(umemCopyItem items[pieces], umemHost *ram, umemVirtual *ctx, uintptr_t to) {
  for (size_t i = 0; i < pieces; i++) {
    size_t at = (i * 7 % pieces) * 3000;
    items[i] = (umemCopyItem){ram, (uintptr_t)bytes + at, ctx, to + at, i % 2 ? 2900 : 3000};
  }
}

static bool start_list(umemHost *ram, umemVirtual *ctx, uintptr_t to, umemTransfer **transfer) {
  umemCopyItem items[pieces];
  cut(items, ram, ctx, to);
  return umem_start_many(items, pieces, NULL, transfer) == umemOK;
}

static bool begin(Set *set, umemVirtual *ctx) {
  bool good = umemHost_ctor(&set->ram) == umemOK;
  set->ctx = ctx;
  set->back = umem_alloc(&set->ram, block);
  for (int i = 0; good && i <= count; i++) {
    set->to[i] = umem_alloc(ctx, block);
    good = umem_copy_to(&set->ram, (uintptr_t)bytes, ctx, set->to[i], block) == umemOK;
  }
  for (int i = 0; good && i < 2 * count; i++)
    good = i % 2 ? umem_start(ctx, set->to[0], &set->ram, set->back, block / 2, NULL,
                              &set->transfers[i]) == umemOK
                 : umem_start(&set->ram, (uintptr_t)bytes, ctx, set->to[i / 2], block, NULL,
                              &set->transfers[i]) == umemOK;
  return good && start_list(&set->ram, ctx, set->to[count], &set->transfers[2 * count]);
}

static void end(Set *set) {
  for (int i = 0; i <= count; i++) umem_free(set->ctx, set->to[i]);
  umem_free(&set->ram, set->back);
  umem_dtor(&set->ram);
}

/* ---- fork ---- */

/* Those that had ended are as they were, the others have failed. */
static void use_in_child(void *argument) {
  Set *set = argument;
  for (int i = 0; i < all; i++) {
    umemTransfer *transfer = set->transfers[i];
    uint64_t done, total;
    EXPECT(umemTransfer_poll(transfer) && umemTransfer_wait_for(transfer, UINT64_MAX));
    umemTransfer_cancel(transfer);
    umemStatusType status = umemTransfer_wait(transfer);
    EXPECT(umemTransfer_progress(transfer, &done, &total) == umemOK);
    EXPECT(status == umemOK ? done == total : status == umemRuntimeError);
    EXPECT(umemTransfer_release(transfer) == umemOK);
  }
}

static void transfers_do_not_go_on_in_a_child(void **state) {
  Backend const *place = *state;
  static Set set;
  umemVirtual *ctx = backend_open(place);
  assert_non_null(ctx);
  assert_true(begin(&set, ctx));
  pid_t children[3];
  for (int i = 0; i < 3; i++) children[i] = child_start(use_in_child, &set);
  for (int i = 0; i < 3; i++) assert_int_equal(child_wait(children[i]), 0);
  for (int i = 0; i < all; i++) {
    assert_int_equal(umemTransfer_wait(set.transfers[i]), umemOK);
    assert_int_equal(umemTransfer_release(set.transfers[i]), umemOK);
  }
  end(&set);
  backend_close(place, ctx);
}

/* ---- exit ---- */

typedef struct Exiting {
  Backend const *place;
  char folder[256]; /* for its files, which it does not live to remove */
} Exiting;

/* This program again, where a device may be used, unlike in a child of fork. */
static void become_one_that_exits(void *argument) {
  Exiting const *exiting = argument;
  EXPECT(setenv("TMPDIR", exiting->folder, 1) == 0);
  EXPECT(!execl("/proc/self/exe", "transfer_end", exiting->place->name, (char *)NULL));
}

static void exit_at_once(char const *name) {
  static Set set;
  umemVirtual *ctx = backend_open(backend_by_name(name));
  EXPECT(ctx && begin(&set, ctx));
  exit(0);
}

static void exit_ends_transfers(void **state) {
  Exiting exiting = {.place = *state};
  assert_true(temporary_folder(exiting.folder, sizeof exiting.folder));
  child_run(become_one_that_exits, &exiting);
  temporary_remove(exiting.folder);
}

/* ---- kill ---- */

/* A file with old bytes before and behind the block that transfers write to. */
typedef struct Killed {
  Backend const *place;
  int round; /* of three, one with transfers, one with a list, and one with lists that wait */
  char path[256];
  int started[2]; /* a pipe: child to parent */
} Killed;

enum { margin = 100003, whole = block + 2 * margin };

/* Until the process is killed. */
static void copy_lists(umemHost *ram, umemVirtual *ctx, uintptr_t to) {
  umemCopyItem items[pieces];
  cut(items, ram, ctx, to);
  while (umem_copy_many(items, pieces, NULL) == umemOK) continue;
}

static void start_and_pause(void *argument) {
  Killed *killed = argument;
  static Set set;
  umemVirtual *ctx = backend_open_at(killed->place, killed->path, "r+");
  EXPECT(ctx && umemHost_ctor(&set.ram) == umemOK);
  uintptr_t first = umem_alloc(ctx, whole);
  EXPECT(first != umem_null(ctx));
  for (size_t i = 0; killed->round == 0 && i < count; i++) {
    size_t const part = block / count;
    EXPECT(umem_start(&set.ram, (uintptr_t)bytes + i * part, ctx, first + margin + i * part, part,
                      NULL, &set.transfers[i]) == umemOK);
  }
  if (killed->round == 1) EXPECT(start_list(&set.ram, ctx, first + margin, &set.transfers[0]));
  EXPECT(write(killed->started[1], "s", 1) == 1);
  if (killed->round == 2) copy_lists(&set.ram, ctx, first + margin);
  pause();
}

static void write_old(char const *path) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (size_t i = 0; i < whole; i++) fputc((int)(i % 101), file);
  assert_int_equal(fclose(file), 0);
}

/* Each byte of the block is an old or a new one, all others are old. */
static void check_file(Killed const *killed) {
  SCOPED_BYTES(unsigned char, found, whole);
  CONTEXT(umemHost, ram);
  umemVirtual *ctx = backend_open_at(killed->place, killed->path, "r+"); /* no lock is left */
  assert_non_null(ctx);
  uintptr_t first = umem_alloc(ctx, whole);
  assert_int_equal(umem_copy_to(ctx, first, &ram, (uintptr_t)found, whole), umemOK);
  for (size_t i = 0; i < whole; i++) {
    bool inside = i >= margin && i < margin + block;
    if (found[i] != i % 101 && !(inside && found[i] == bytes[i - margin]))
      fail_msg("byte %zu is %d", i, found[i]);
  }
  backend_close(killed->place, ctx);
}

static void a_killed_process_leaves_a_good_file(void **state) {
  uint64_t random = 3;
  for (int round = 0; round < 6; round++) {
    Killed killed = {.place = *state, .round = round % 3};
    char started;
    temporary_name(killed.path, sizeof killed.path);
    write_old(killed.path);
    assert_int_equal(pipe(killed.started), 0);
    pid_t child = child_start(start_and_pause, &killed);
    close(killed.started[1]);
    assert_int_equal(read(killed.started[0], &started, 1), 1);
    long nanoseconds = (long)below(&random, most_microseconds) * 1000;
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
    child_kill(child);
    close(killed.started[0]);
    check_file(&killed);
    unlink(killed.path);
  }
}

/* Shared memory: others can allocate there at once, and their bytes are theirs. */
typedef struct Shared {
  bool copies; /* lists, beside the transfers */
  char name[64];
  int started[2];
} Shared;

static void start_in_shared_memory(void *argument) {
  Shared const *shared = argument;
  static Set set;
  umemShm shm;
  EXPECT(umemShm_ctor(&shm, shared->name, 0) == umemOK && begin(&set, &shm.super));
  EXPECT(write(shared->started[1], "s", 1) == 1);
  if (shared->copies) copy_lists(&set.ram, &shm.super, set.to[0]);
  pause();
}

static void a_killed_process_leaves_shared_memory(void **state UNUSED) {
  Shared shared;
  umemShm shm;
  char started;
  uint64_t random = 5;
  temporary_word(shared.name, sizeof shared.name, "transfers");
  assert_int_equal(umemShm_ctor(&shm, shared.name, (size_t)96 << 20), umemOK);
  uintptr_t mine = umem_calloc(&shm, 1, block);
  for (int round = 0; round < 3; round++) {
    shared.copies = round % 2;
    assert_int_equal(pipe(shared.started), 0);
    pid_t child = child_start(start_in_shared_memory, &shared);
    close(shared.started[1]);
    assert_int_equal(read(shared.started[0], &started, 1), 1);
    long nanoseconds = (long)below(&random, most_microseconds) * 1000;
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
    child_kill(child);
    close(shared.started[0]);
    uintptr_t other = umem_alloc(&shm, block);
    assert_true(other != 0);
    memset((void *)other, 1, block);
    for (size_t i = 0; i < block; i++) assert_int_equal(((unsigned char *)mine)[i], 0);
    umem_free(&shm, other);
  }
  umem_free(&shm, mine);
  umem_dtor(&shm);
  assert_int_equal(umemShm_remove(shared.name), umemOK);
}

int main(int argc, char **argv) {
  bytes = malloc(block);
  if (!bytes) return 1;
  for (size_t i = 0; i < block; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 10));
  doubles_use();
  umem_set_threads(4);
  if (argc > 1) exit_at_once(argv[1]);
  for (size_t i = 0; i < backend_count; i++) {
    Backend const *place = &backends[i];
    umemVirtual *ctx = backend_open(place);
    if (!ctx) continue; /* the machine lacks it */
    bool writes = ctx->capabilities & umemWritable;
    backend_close(place, ctx);
    if (!writes || place->traits & backendTestOnly) continue;
    if (!UNDER_THREAD_SANITIZER)
      add_case(transfers_do_not_go_on_in_a_child, place, "%s, a fork", place->name);
    if (!UNDER_SANITIZER) add_case(exit_ends_transfers, place, "%s, an exit", place->name);
    if (place->at) add_case(a_killed_process_leaves_a_good_file, place, "%s, a kill", place->name);
  }
  add_case(a_killed_process_leaves_shared_memory, NULL, "shared memory, a kill");
  int failed = run_cases(NULL, NULL);
  free(bytes);
  return failed;
}
