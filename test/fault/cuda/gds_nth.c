/* gds_nth.c - the n-th call fails in a copy by GPUDirect Storage, for every n that the copy
 * reaches: calls of cuFile, of CUDA's runtime, and of the system.
 *
 * After each: success with all bytes checked, or a status with a message; no handle, descriptor or
 * memory left; the same copy again without a fault. The driver is opened by the copy under fault,
 * or by one before. On doubles of the runtime and of cuFile. */
#include "fault/trial.h"
#include "fake/cudart.h"
#include "fake/cudart_wrap.h"
#include "fake/cufile.h"
#include "cuda/cuda_methods.h"

#undef REQUIRE

enum { head = 100, nbytes = umemCudaGdsFrom + 4096 + 50 };

/* Where the fault is. */
typedef enum Fault { inCufile, inCuda, inSystem } Fault;

typedef struct Case {
  Fault fault;
  InjectCall call; /* of the system */
  int error;
  bool lasting;
} Case;

typedef struct Run {
  Case const *it;
  unsigned long nth;
  bool to_gpu, opened, async;
  char const *failed; /* the function, where it is known */
  umemVirtual *gpu;
  union {
    umemVirtual super;
    umemCuda cuda;
    umemCudaAsync async;
  } own;
  umemFile file;
  umemHost host;
  uintptr_t near, far;
} Run;

static unsigned char *pattern, *back;
static char path[64];

static void complain(Run const *run, char const *what, int line) {
  fail_msg("line %d: %s: fault %d, call %d (%s), error %d%s, nth %lu, %s the GPU, %s; \"%s\"", line,
           what, run->it->fault, run->it->call, run->failed ? run->failed : "none", run->it->error,
           run->it->lasting ? " lasting" : "", run->nth, run->to_gpu ? "to" : "from",
           run->opened ? "opened" : "not opened", umem_thread_message());
}
#define REQUIRE(run, condition) ((condition) ? (void)0 : complain((run), #condition, __LINE__))

/* ---- the copy ---- */

static umemStatusType copy(Run *run) {
  return run->to_gpu ? umem_copy_to(&run->file, run->near + head, run->gpu, run->far, nbytes)
                     : umem_copy_to(run->gpu, run->far, &run->file, run->near + head, nbytes);
}

/* Fills the source with bytes of seed, and the destination with others. */
static void fill_both(Run *run, unsigned seed) {
  unsigned char *source = pattern + seed, *other = pattern + seed + 7;
  uintptr_t host = (uintptr_t)(run->to_gpu ? source : other);
  REQUIRE(run, umem_copy_from(&run->file, run->near + head, &run->host, host, nbytes) == umemOK);
  REQUIRE(run, fake_cudart_poke(run->far, run->to_gpu ? other : source, nbytes));
}

static void require_copied(Run *run, unsigned seed) {
  if (run->to_gpu) {
    REQUIRE(run, fake_cudart_peek(run->far, back, nbytes));
  } else {
    uintptr_t to = (uintptr_t)back;
    REQUIRE(run, umem_copy_to(&run->file, run->near + head, &run->host, to, nbytes) == umemOK);
  }
  REQUIRE(run, !memcmp(back, pattern + seed, nbytes));
}

static void prepare(Run *run) {
  umemFileOptions options = {.size = sizeof options, .direct = umemDirectOn};
  umem_thread_clear();
  REQUIRE(run, umemHost_ctor(&run->host) == umemOK);
  REQUIRE(run, umemFile_ctor_with(&run->file, path, "w+", &options) == umemOK);
  umemStatusType made = run->async ? umemCudaAsync_ctor(&run->own.async, 0, UMEM_STREAM_NEW)
                                   : umemCuda_ctor(&run->own.cuda, 0);
  REQUIRE(run, made == umemOK);
  run->gpu = &run->own.super;
  run->near = umem_alloc(&run->file, nbytes + 2 * head);
  run->far = umem_alloc(run->gpu, nbytes);
  REQUIRE(run, run->near != umem_null(&run->file) && run->far);
  REQUIRE(run, umem_synchronize(run->gpu) == umemOK);
  if (run->opened) REQUIRE(run, copy(run) == umemOK);
  fill_both(run, 1);
}

static void end(Run *run) {
  umem_free(run->gpu, run->far);
  DESTRUCT(run->gpu, &run->file, &run->host);
  umemCudaGds_end();
  FakeCufileDone done = fake_cufile_done();
  bool kept_open = run->failed && !strcmp(run->failed, "driver_close");
  REQUIRE(run, done.registered == done.released && (kept_open || done.opened == done.closed));
  if (fake_cudart_misuse()) complain(run, fake_cudart_misuse(), __LINE__);
  REQUIRE(run, fake_cudart_is_clean());
}

/* ---- one run ---- */

static void arm(Run const *run) {
  Case const *it = run->it;
  if (it->fault == inCufile) fake_cufile_fail(run->nth, it->error, it->lasting);
  if (it->fault == inCuda) cudart_wrap_fail(run->nth, it->error);
  if (it->fault == inSystem) inject_fail(it->call, run->nth, it->error, it->lasting);
}

/* Whether the fault was met. */
static bool disarm(Run *run) {
  if (run->it->fault == inSystem) return inject_off() > 0;
  run->failed = run->it->fault == inCuda ? cudart_wrap_off() : fake_cufile_failed();
  fake_cufile_fail_in(NULL, 0, 0, false);
  return run->failed;
}

static void set_doubles(void) {
  fake_cudart_reset();
  fake_cufile_reset();
  fake_cufile_machine()->installed = true;
}

static bool meets(Run *run) {
  set_doubles();
  long descriptors = open_descriptors();
  prepare(run);
  uint64_t failures = umem_thread_failures();
  arm(run);
  umemStatusType result = copy(run);
  bool met = disarm(run);
  REQUIRE(run, (result == umemOK) == (umem_thread_failures() == failures));
  if (result == umemOK)
    require_copied(run, 1);
  else
    REQUIRE(run, met && !strncmp(umem_thread_message(), "umem_copy_to: ", 14));
  FORGET(run->gpu, &run->file);
  fill_both(run, 2);
  REQUIRE(run, copy(run) == umemOK); /* works again */
  require_copied(run, 2);
  end(run);
  REQUIRE(run, open_descriptors() == descriptors);
  return met;
}

/* The ways to copy: bit 0: to the GPU, 1: the driver is open before, 2: on a stream. Each two bits
 * have all values. */
static int const ways[] = {0, 3, 5, 6};
enum { way_count = UNDER_SANITIZER ? 2 : 4 };

static Run run_of(Case const *it, int way, unsigned long nth) {
  return (Run){.it = it, .nth = nth, .to_gpu = way & 1, .opened = way & 2, .async = way & 4};
}

/* All n in all ways. Returns how many runs met their fault. */
static unsigned long sweep(Case const *it) {
  unsigned long met = 0;
  for (int w = 0; w < way_count; w++)
    for (unsigned long nth = 1;; nth++) {
      Run run = run_of(it, ways[w], nth);
      if (!meets(&run)) break;
      met++;
    }
  return met;
}

/* ---- tests ---- */

TEST_CASE(calls_of_cufile_fail) {
  static Case const cases[] = {
      {.fault = inCufile, .error = EIO},
      {.fault = inCufile, .error = umemCufileIOError},
      {.fault = inCufile, .error = umemCufileCudaError},
      {.fault = inCufile, .error = umemCufileNoFile},
      {.fault = inCufile, .error = umemCufileNoFile, .lasting = true},
  };
  /* at least: the registration and a transfer in each way, the driver twice in half of them */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(sweep(&cases[i]) >= way_count * 2 + way_count / 2 * 2);
}

TEST_CASE(calls_of_cuda_fail) {
  if (UNDER_THREAD_SANITIZER) skip(); /* all take minutes */
  Case it = {.fault = inCuda, .error = umemCudaInvalidValue};
  assert_true(sweep(&it) >= way_count * 10);
}

TEST_CASE(calls_of_the_system_fail) {
  if (UNDER_THREAD_SANITIZER) skip();
  static Case const cases[] = {
      {.fault = inSystem, .call = callOpen, .error = EMFILE},
      {.fault = inSystem, .call = callOpen, .error = EINVAL, .lasting = true},
      {.fault = inSystem, .call = callSeek, .error = EIO},
      {.fault = inSystem, .call = callRead, .error = EIO},
      {.fault = inSystem, .call = callWrite, .error = ENOSPC},
      {.fault = inSystem, .call = callClose, .error = EIO},
      {.fault = inSystem, .call = callHeap, .error = ENOMEM},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned long met = 0;
    if (!cases[i].lasting) met = sweep(&cases[i]);
    for (int w = 0; w < way_count && cases[i].lasting; w++) {
      Run run = run_of(&cases[i], ways[w], 1);
      met += meets(&run);
    }
    assert_true(met > 0);
  }
}

static void begin(void **state UNUSED) {
  pattern = malloc(nbytes + 16);
  back = malloc(nbytes);
  assert_true(pattern && back);
  for (size_t i = 0; i < nbytes + 16; i++) pattern[i] = (unsigned char)(i * 2654435761u >> 13);
  temporary_name(path, sizeof path);
  umemCudaRt_replace(cudart_wrap(fake_cudart()));
  umem_set_threads(2);
}

static void all_is_gone(void **state UNUSED) {
  umemCudaRt_replace(NULL);
  free(pattern);
  free(back);
  assert_int_equal(unlink(path), 0);
}

int main(void) {
  if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0) { /* faster than a disk */
    setenv("TMPDIR", "/dev/shm", 1);
    if (!has_direct()) unsetenv("TMPDIR");
  }
  if (!has_direct()) {
    print_message("the file system has no direct I/O: nothing is tested\n");
    return 0;
  }
  return run_cases(begin, all_is_gone);
}
