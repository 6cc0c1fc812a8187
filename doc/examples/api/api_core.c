/* Parts of this program are the examples in the reference of C: a part stands at each function that
 * the comment before it names. */
#define _GNU_SOURCE /* socketpair */
#undef NDEBUG
#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <umem.h>
#include <unistd.h>

static void memory(umemHost *ram) {
  /* [umem_alloc umem_free umem_set] */
  uintptr_t adr = umem_alloc(ram, 100);
  if (adr == umem_null(ram)) fprintf(stderr, "%s\n", umem_get_message(ram));
  umem_set(ram, adr, 7, 100); /* each byte is 7 */
  umem_free(ram, adr);
  /* [/] */

  /* [umem_calloc umem_realloc] */
  long *x = (long *)umem_calloc(ram, 10, sizeof *x); /* zeros */
  x[9] = 1;
  x = (long *)umem_realloc(ram, (uintptr_t)x, 10 * sizeof *x, 20 * sizeof *x);
  assert(x && x[9] == 1);
  umem_free(ram, (uintptr_t)x);
  /* [/] */

  /* [umem_aligned_alloc umem_aligned_origin umem_aligned_free] */
  uintptr_t page = umem_aligned_alloc(ram, 4096, 100);
  assert(page % 4096 == 0);
  assert(umem_aligned_origin(ram, page) != umem_null(ram)); /* where its block begins */
  umem_aligned_free(ram, page);
  /* [/] */

  /* [umem_free_aligned] */
  uintptr_t line = umem_aligned_alloc(ram, 64, 100); /* of a cache line */
  assert(line % 64 == 0);
  umem_free_aligned(ram, line);
  /* [/] */

  /* [umem_generation umem_end_block] */
  unsigned generation = umem_generation(); /* another one in a child of fork */
  uintptr_t block = umem_alloc(ram, 100);
  umemStatusType status = umem_end_block(ram, block, false, false, generation);
  assert(status == umemOK);
  /* [/] */
}

static void context(umemHost *ram) {
  /* [umem_get_upstream umem_find_layer umem_is_same_device umem_get_device_name] */
  void *stack = umem_open("stats+pool+host:");
  assert(stack && umem_get_upstream(stack) == umem_find_layer(stack, "pool"));
  assert(umem_is_same_device(stack, ram));
  printf("%s\n", umem_get_device_name(stack));
  /* [/] */

  /* [umem_advise] */
  uintptr_t table = umem_alloc(stack, 100000);
  if (umem_advise(stack, table, 100000, umemAdviceRandom, UMEM_CPU) != umemOK)
    puts(umem_get_message(stack)); /* the program can go on without */
  /* [/] */

  /* [umem_move] */
  table = umem_move(stack, table, 100000, ram); /* is a block of ram now */
  if (table == umem_null(ram)) puts(umem_thread_message());
  /* [/] */
  umem_free(ram, table);

  /* [umem_get_available_share] */
  umemPoolOptions half = UMEM_POOL_OPTIONS_INIT;
  half.maximum = umem_get_available_share(stack, 0.5); /* of what is free now */
  if (!half.maximum) puts(umem_get_message(stack));
  /* [/] */

  /* [umem_get_info umem_trim] */
  umemInfo info = UMEM_INFO_INIT;
  if (umem_get_info(stack, &info) == umemOK && info.capacity != UMEM_UNKNOWN)
    printf("%.1f GB\n", (double)info.capacity / 1e9);
  umem_trim(stack, 0); /* unused memory of the pool goes back */
  /* [/] */

  /* [umem_synchronize umem_wait umem_flush] */
  umem_wait(stack, ram);   /* later work of stack begins when that of ram is done */
  umem_synchronize(stack); /* now all of it is done */
  if (umem_flush(stack) != umemOK) fprintf(stderr, "%s\n", umem_get_message(stack));
  umem_close(stack);
  /* [/] */

  /* [umem_dtor umem_null umemFile_ctor] */
  umemFile file;
  umemFile_ctor(&file, NULL, "w+");
  assert(umem_null(&file) != 0); /* 0 is the first byte of the file */
  umem_dtor(&file);
  /* [/] */

  /* [umem_version] */
  assert(strcmp(umem_version(), UMEM_VERSION) == 0); /* library and header fit */
  /* [/] */
}

static void copies(umemHost *ram, umemFile *file) {
  double x[4] = {1, 2, 3, 4}, y[4] = {0};
  uintptr_t adr = umem_alloc(file, sizeof x);
  /* [umem_copy_to umem_copy_from] */
  umem_copy_to(ram, (uintptr_t)x, file, adr, sizeof x);
  umem_copy_from(ram, (uintptr_t)y, file, adr, sizeof y);
  assert(umem_is_ok(file) && y[3] == 4);
  /* [/] */

  /* [umem_copy_to_safe umem_copy_from_safe] */
  umemStatusType status = umem_copy_to_safe(ram, (uintptr_t)x, sizeof x, file, adr, 16, sizeof x);
  assert(status == umemIndexError); /* the destination has 16 bytes; nothing was copied */
  umem_copy_from_safe(ram, (uintptr_t)y, sizeof y, file, adr, sizeof x, 16);
  /* [/] */
  umem_clear_status(ram), umem_clear_status(file);

  /* [umem_copy_to_with umemRoute_text] */
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  umem_copy_to_with(ram, (uintptr_t)x, file, adr, sizeof x, &options);
  char text[200];
  if (umemRoute_text(&route, text, sizeof text) > 0) fprintf(stderr, "%s\n", text);
  /* [/] */

  /* [umem_copy_strided umem_copy_overlaps] */
  size_t const extents[1] = {2};
  ptrdiff_t const strides[1] = {2 * sizeof(double)}; /* each second number of x */
  umemLayout const layout = {sizeof layout, sizeof(double), 1, extents, strides, NULL};
  assert(!umem_copy_overlaps(ram, (uintptr_t)x, ram, (uintptr_t)y, &layout));
  umem_copy_strided(ram, (uintptr_t)x, ram, (uintptr_t)y, &layout);
  assert(y[0] == 1 && y[1] == 3);
  /* [/] */

  /* [umem_copy_strided_with] */
  umemRoute taken = UMEM_ROUTE_INIT;
  umemCopyOptions with = UMEM_COPY_OPTIONS_INIT;
  with.route = &taken; /* is filled in */
  if (umem_copy_strided_with(ram, (uintptr_t)x, ram, (uintptr_t)y, &layout, &with) != umemOK)
    fprintf(stderr, "%s\n", umem_thread_message());
  /* [/] */
  assert(taken.bytes == 2 * sizeof(double));

  /* [umem_copy_many] */
  umemCopyItem const items[] = {{file, adr, ram, (uintptr_t)&y[2], 8},       /* the first number */
                                {file, adr + 24, ram, (uintptr_t)&y[0], 8}}; /* and the last */
  if (umem_copy_many(items, 2, NULL) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  assert(y[2] == 1 && y[0] == 4);
  /* [/] */
  umem_free(file, adr);
}

static void transfers(umemHost *ram, umemFile *file) {
  enum { nbytes = 8 << 20 };
  uintptr_t x = umem_calloc(ram, 1, nbytes), adr = umem_alloc(file, nbytes);
  /* [umem_start umemTransfer_wait umemTransfer_release] */
  umemTransfer *write;
  umem_start(ram, x, file, adr, nbytes, NULL, &write);
  /* ... work on other arrays ... */
  if (umemTransfer_wait(write) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemTransfer_release(write);
  /* [/] */

  /* [umem_start_strided umemTransfer_poll umemTransfer_wait_for] */
  size_t const rows[1] = {1024};
  umemLayout const layout = {sizeof layout, 4096, 1, rows, (ptrdiff_t[]){8192}, NULL};
  umemTransfer *pack; /* the first half of each row of 8 KiB */
  umem_start_strided(ram, x, file, adr, &layout, NULL, &pack);
  while (!umemTransfer_wait_for(pack, 10000000)) printf("10 ms have passed\n");
  assert(umemTransfer_poll(pack));
  /* [/] */
  assert(umemTransfer_release(pack) == umemOK);

  umemTransfer *halves;
  /* [umem_start_many] */
  enum { half = nbytes / 2 }; /* in the other order */
  umemCopyItem const items[] = {{ram, x, file, adr + half, half}, {ram, x + half, file, adr, half}};
  umem_start_many(items, 2, NULL, &halves);
  if (umemTransfer_wait(halves) != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemTransfer_release(halves);
  /* [/] */

  umem_start(file, adr, ram, x, nbytes, NULL, &write);
  /* [umemTransfer_descriptor umemTransfer_progress] */
  struct pollfd one = {umemTransfer_descriptor(write), POLLIN, 0};
  uint64_t done, total;
  while (poll(&one, 1, 100) == 0 && umemTransfer_progress(write, &done, &total) == umemOK)
    printf("%.0f %%\n", 100.0 * (double)done / (double)total);
  /* [/] */
  umemTransfer_release(write);

  umem_start(ram, x, file, adr, nbytes, NULL, &write);
  /* [umemTransfer_cancel] */
  umemTransfer_cancel(write);
  if (umemTransfer_wait(write) == umemCancelledError) printf("%s\n", umem_thread_message());
  /* [/] */
  umemTransfer_release(write);
  umem_clear_status(file);
  umem_free(ram, x), umem_free(file, adr);
}

static void connect_blocks(umemHost *ram, umemFile *file) {
  /* [umem_connect umem_sync_to umem_sync_from umem_disconnect] */
  uintptr_t adr = umem_calloc(file, 10, sizeof(double));
  double *x = (double *)umem_connect(file, adr, 10 * sizeof *x, ram, 0); /* memory for a copy */
  umem_sync_to(file, adr, ram, (uintptr_t)x, 10 * sizeof *x);
  x[0] = 5;
  umem_sync_from(file, adr, ram, (uintptr_t)x, 10 * sizeof *x);
  umem_disconnect(file, adr, ram, (uintptr_t)x, 0);
  /* [/] */
  assert(umem_is_ok(file) && umem_is_ok(ram));

  /* [umem_sync_to_safe umem_sync_from_safe] */
  double y[10];
  umem_sync_to_safe(file, adr, 80, ram, (uintptr_t)y, sizeof y, sizeof y);
  umem_sync_from_safe(file, adr, 80, ram, (uintptr_t)y, sizeof y, sizeof y);
  assert(umem_is_ok(file) && y[0] == 5);
  /* [/] */
  umem_free(file, adr);
}

static void find(umemHost *ram) {
  /* [umem_set_label umem_get_label umem_set_block_label umem_get_block_label] */
  umemTrack track;
  umemTrack_ctor(&track, ram, NULL);
  uintptr_t adr = umem_alloc(&track, 100);
  umem_set_label(&track, "ocean"), umem_set_block_label(&track, adr, "salt");
  assert(strcmp(umem_get_label(&track), "ocean") == 0);
  assert(strcmp(umem_get_block_label(&track, adr), "salt") == 0);
  /* [/] */

  /* [umem_find umem_find_in] */
  umemFound found = UMEM_FOUND_INIT;
  if (umem_find(adr + 50, &found)) printf("in a block of \"%s\"\n", found.label);
  if (!umem_find_in(&track, adr + 100, &found)) printf("in no block\n");
  /* [/] */

  /* [umemTrack_find umemTrack_owner umemTrack_next umemTrack_count] */
  umemTrackBlock block = UMEM_TRACK_BLOCK_INIT;
  for (uintptr_t from = 0; umemTrack_next(&track, from, &block); from = block.adr + 1)
    printf("%zu bytes\n", block.nbytes);
  assert(umemTrack_find(&track, adr + 50, &block) && umemTrack_owner(adr + 50, &block));
  size_t nbytes;
  assert(umemTrack_count(&track, &nbytes) == 1 && nbytes == 100);
  /* [/] */

  /* [umem_describe_contexts umem_list_when_out_of_memory] */
  char list[1000];
  umem_describe_contexts(list, sizeof list); /* those that hold most come first */
  printf("%s\n", list);
  umem_list_when_out_of_memory(8); /* messages of allocations that fail end with it */
  /* [/] */
  umem_list_when_out_of_memory(0);
  umem_free(&track, adr);
  umem_dtor(&track);
}

/* [umem_set_decision_hook] */
static void print_decision(void *ctx, umemDecision level, char const *message, void *data) {
  (void)ctx, (void)level;
  fprintf(data, "%s\n", message);
}
/* ... */
static void watch_decisions(umemDecision most) {
  umem_set_decision_hook(most, print_decision, stderr);
}
/* [/] */

/* [umem_set_failure_hook] */
static void print_failure(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx;
  fprintf(data, "%s: %s\n", umem_get_status_name(type), message);
}
/* ... */
static void watch_failures(void) { umem_set_failure_hook(print_failure, stderr); }
/* [/] */

/* [umem_set_wait_hook] */
static volatile sig_atomic_t interrupted; /* a handler of SIGINT sets it */
static bool is_not_interrupted(void *data) { return (void)data, !interrupted; }
/* ... */
static void end_by_signal(void) { umem_set_wait_hook(is_not_interrupted, NULL); }
/* [/] */

static void status(umemHost *ram) {
  /* [umem_is_ok umem_get_status umem_get_message umem_get_status_name umem_clear_status] */
  umem_free(ram, umem_alloc(ram, SIZE_MAX / 2)); /* fails, and the context keeps it */
  if (!umem_is_ok(ram))
    fprintf(stderr, "%s: %s\n", umem_get_status_name(umem_get_status(ram)), umem_get_message(ram));
  umem_clear_status(ram);
  /* [/] */

  /* [umem_thread_status umem_thread_message umem_thread_failures umem_thread_clear] */
  uint64_t before = umem_thread_failures();
  void *ctx = umem_open("nothing:");
  assert(!ctx && umem_thread_failures() > before && umem_thread_status() != umemOK);
  fprintf(stderr, "%s\n", umem_thread_message());
  umem_thread_clear();
  /* [/] */

  watch_decisions(umemDecisionFallbacks);
  watch_failures();
  /* [umem_set_status umem_report_end] */
  umem_set_status(ram, umemValueError, "no such column"); /* a failure of the program's own */
  umem_report_end("the table"); /* where nobody can receive a status; silent if a hook has it */
  /* [/] */
  umem_clear_status(ram), umem_thread_clear();
  umem_set_failure_hook(NULL, NULL);
  end_by_signal();
  umem_set_wait_hook(NULL, NULL);
}

/* [umem_parallel_for] */
static void square(void *data, unsigned piece) {
  double *x = data;
  for (unsigned i = 0; i < 1000; i++) x[1000 * piece + i] *= x[1000 * piece + i];
}
static umemStatusType square_all(double x[8000]) { return umem_parallel_for(8, square, x); }
/* [/] */

static void threads(void) {
  static double x[8000];
  x[7999] = 3;
  /* [umem_set_threads umem_get_threads umem_get_parallel_threads] */
  umem_set_threads(2); /* at most so many for a long copy; 0: umem chooses */
  assert(umem_get_threads() == 2 && umem_get_parallel_threads() >= 1);
  /* [/] */
  assert(square_all(x) == umemOK && x[7999] == 9);
  umem_set_threads(0);
}

static void ledger(umemHost *ram) {
  char one[1000] = "", other[1000];
  /* [umem_ledger_start umem_ledger_stop] */
  umem_ledger_start();
  umem_copy_to(ram, (uintptr_t)one, ram, (uintptr_t)other, sizeof one);
  umem_ledger_stop();
  /* [/] */

  /* [umem_ledger_read umem_ledger_clear] */
  umemLedgerRecord records[8] = {UMEM_LEDGER_RECORD_INIT};
  size_t count = 8;
  umem_ledger_read(records, &count);
  printf("%zu route, %d bytes\n", count, (int)records[0].bytes);
  umem_ledger_clear();
  /* [/] */

  /* [umem_ledger_is_on umem_ledger_print] */
  if (!umem_ledger_is_on()) umem_ledger_print(STDERR_FILENO); /* a table of the records */
  /* [/] */
}

static void attach(umemHost *ram) {
  char name[40];
  snprintf(name, sizeof name, "umem-doc-core-%d", (int)getpid());
  umemShm shm;
  assert(umemShm_ctor(&shm, name, 1 << 20) == umemOK);
  uintptr_t adr = umem_calloc(&shm, 100, 1);
  /* [umem_attach] */
  umemHandle handle; /* shm has a name, so that no descriptor is needed */
  if (umem_share(&shm, adr, 100, &handle) != umemOK) return (void)puts(umem_get_message(&shm));
  uintptr_t there = umem_attach(&handle, ram); /* usually in another process */
  if (there == umem_null(ram)) return (void)puts(umem_get_message(ram));
  if (umem_detach(ram, there) != umemOK) puts(umem_get_message(ram));
  /* [/] */

  /* [umem_attach_trusting] */
  uintptr_t group = umem_attach_trusting(&handle, -1, ram, umemTrustGroup); /* also of its group */
  if (group == umem_null(ram)) return (void)puts(umem_get_message(ram));
  if (umem_detach(ram, group) != umemOK) puts(umem_get_message(ram));
  /* [/] */
  assert(umem_is_ok(ram) && umemShm_remove(name) == umemOK);
  umem_free(&shm, adr);
  umem_dtor(&shm);
}

static void share(umemHost *ram) {
  umemShm shm;
  assert(umemShm_ctor(&shm, NULL, 1 << 20) == umemOK);
  uintptr_t adr = umem_calloc(&shm, 100, 1);
  /* [umem_share_with umem_attach_with umem_detach] */
  umemHandle handle;
  int fd;
  umem_share_with(&shm, adr, 100, &handle, &fd); /* plain data, and a descriptor of shm */
  uintptr_t there = umem_attach_with(&handle, dup(fd), ram); /* takes the descriptor over */
  assert(there != umem_null(ram));
  umem_detach(ram, there);
  /* [/] */

  /* [umem_share] */
  umemStatusType status = umem_share(&shm, adr, 100, &handle); /* plain data for another process */
  assert(status == umemOK && handle.length == 100);
  /* [/] */
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return;
  /* [umem_send umem_receive] */
  if (umem_send(ends[0], &shm, adr, 100) != umemOK) return (void)puts(umem_get_message(&shm));
  uintptr_t received = umem_receive(ends[1], ram, &handle); /* in the other process */
  assert(received != umem_null(ram) && handle.length == 100);
  umem_detach(ram, received);
  /* [/] */
  close(ends[0]), close(ends[1]);

  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return;
  assert(umem_send(ends[0], &shm, adr, 100) == umemOK);
  /* [umem_receive_trusting] */
  uintptr_t theirs = umem_receive_trusting(ends[1], ram, &handle, umemTrustGroup);
  if (theirs == umem_null(ram)) fprintf(stderr, "%s\n", umem_get_message(ram)); /* not trusted */
  umem_detach(ram, theirs);
  /* [/] */
  assert(umem_is_ok(ram));
  close(ends[0]), close(ends[1]);

  /* [umemShm_offset umemShm_address] */
  uintptr_t offset = umemShm_offset(&shm, adr); /* the same in all processes */
  assert(umemShm_address(&shm, offset) == adr);
  /* [/] */
  umem_free(&shm, adr);
  umem_dtor(&shm);
}

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  umemFile_ctor(&file, NULL, "w+");
  memory(&ram);
  context(&ram);
  copies(&ram, &file);
  transfers(&ram, &file);
  connect_blocks(&ram, &file);
  find(&ram);
  status(&ram);
  threads();
  ledger(&ram);
  attach(&ram);
  share(&ram);
  umem_dtor(&file);
  umem_dtor(&ram);
}
