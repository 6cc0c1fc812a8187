/* cuda_process.c - what becomes of CUDA contexts when a process forks, ends, or the runtime
 * unloads itself before them. On a double of the runtime. */
#include "cuda_help.h"

#include "cuda/cuda_pinned.h"

enum { large = umemStagingToDevice + (1 << 20), threads = 3 }; /* staged, by several threads */

static umemHost host;
static Any all[kinds]; /* one of each kind, with a live block */
static uintptr_t adrs[kinds];
static unsigned char bytes[large];

/* Whether all of it went well. The helper threads have worked, and sleep. */
static bool open_all(void) {
  umem_set_threads(threads);
  bool good = umemHost_ctor(&host) == umemOK;
  for (int i = 0; i < kinds && good; i++) {
    good = construct(&all[i], i, 0) == umemOK && (adrs[i] = umem_alloc(&all[i], large)) &&
           umem_copy_from(&all[i], adrs[i], &host, (uintptr_t)bytes, large) == umemOK;
  }
  return good && umem_set(&all[anAsync], adrs[anAsync], 1, large) == umemOK; /* late */
}

static void close_all(void) {
  for (int i = 0; i < kinds; i++) umem_dtor(&all[i]);
  umem_dtor(&host);
}

/* ---- fork ---- */

static bool is_refused(umemStatusType status) {
  bool refused = status == umemNotSupportedError && umem_thread_status() == status &&
                 strstr(umem_thread_message(), "fork");
  umem_thread_clear();
  return refused;
}

#define REFUSES(call) ((void)(call), is_refused(umem_thread_status()))

/* The number of the first thing that is not as it should be; 0: all is. */
static int use_inherited(void) {
  umemInfo info = UMEM_INFO_INIT;
  umemCuda fresh;
  umemCudaHost fresh_host;
  unsigned char byte = 0;
  umem_thread_clear();
  for (int i = 0; i < kinds; i++) {
    void *ctx = &all[i];
    uintptr_t adr = adrs[i];
    if (!REFUSES(umem_alloc(ctx, 8))) return 1;
    if (!REFUSES(umem_free(ctx, adr))) return 2;
    if (!REFUSES(umem_realloc(ctx, adr, large, 8))) return 3;
    if (i == aHost) continue; /* the CPU can go on with it */
    if (!REFUSES(umem_set(ctx, adr, 0, large))) return 4;
    if (!REFUSES(umem_get_info(ctx, &info))) return 5;
    if (!REFUSES(umem_copy_to(ctx, adr, ctx, adr + 8, 8))) return 6;
    if (i == aManaged) continue;
    if (!REFUSES(umem_copy_to(ctx, adr, &host, (uintptr_t)&byte, 1))) return 7;
    if (!REFUSES(umem_copy_from(ctx, adr, &host, (uintptr_t)bytes, large))) return 8;
  }
  if (!REFUSES(umem_synchronize(&all[anAsync])) || !REFUSES(umem_synchronize(&all[aCuda])))
    return 9;
  if (!REFUSES(umem_trim(&all[anAsync], 0))) return 10;
  if (!REFUSES(umem_wait(&all[anAsync], &all[anAsync]) + umem_wait(&all[aCuda], &all[anAsync])))
    return 11;
  if (umemCuda_ctor(&fresh, 0) != umemNotSupportedError) return 12;
  if (umemCuda_ctor(&fresh, 1) != umemNotSupportedError) return 13;
  if (umemCudaHost_ctor(&fresh_host, 0) != umemNotSupportedError) return 14;
  DESTRUCT(&fresh, &fresh_host);
  close_all();
  umem_thread_clear();
  if (umemCuda_ctor(&fresh, 0) != umemNotSupportedError) return 15; /* none lives now */
  umem_dtor(&fresh);
  return 0;
}

CUDA_TEST(a_child_of_fork_has_no_cuda) {
  assert_true(open_all());
  unsigned long calls = fake_cudart_calls();
  fflush(NULL);
  IN_CHILD EXPECT(use_inherited() == 0);
  assert_int_equal(fake_cudart_calls(), calls);
  for (int i = 0; i < kinds; i++) { /* and the parent goes on */
    expect_ok(umem_set(&all[i], adrs[i], 2, large));
    uintptr_t adr = block_of(&all[i], 8);
    umem_free(&all[i], adr);
  }
  expect_ok(umem_synchronize(&all[anAsync]));
  close_all();
  assert_int_equal(umem_thread_status(), umemOK);
}

/* ---- the end of the runtime ---- */

CUDA_TEST(calls_while_the_runtime_unloads_fail_with_the_reason) {
  umemInfo info = UMEM_INFO_INIT;
  assert_true(open_all());
  fake_cudart_unload();
  char const *words = "driver shutting down";
  for (int i = 0; i < kinds; i++) {
    expect_report(umem_alloc(&all[i], 8), umemRuntimeError, words);
    expect_report(umem_free(&all[i], adrs[i]), umemRuntimeError, words);
    if (i == aHost) continue;
    expect_failure(umem_set(&all[i], adrs[i], 0, large), umemRuntimeError, words);
    expect_failure(umem_get_info(&all[i], &info), umemRuntimeError, words);
  }
  expect_failure(umem_copy_from(&all[aCuda], adrs[aCuda], &host, (uintptr_t)bytes, large),
                 umemRuntimeError, words);
  expect_failure(umem_synchronize(&all[anAsync]), umemRuntimeError, words);
  umemCuda fresh;
  expect_failure(umemCuda_ctor(&fresh, 2), umemNotSupportedError, "");
  close_all();
  umem_thread_clear();
  forget_all();
}

/* ---- the end of the process ---- */

static int exit_status; /* of a process that ended with live contexts and idle threads */

CUDA_TEST(a_process_may_end_with_live_contexts) { assert_int_equal(exit_status, 0); }

/* Before anything else has started threads or used the runtime. */
static void end_a_process(void) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    umemCudaRt_replace(fake_cudart());
    exit(open_all() ? 0 : 1);
  }
  int status = -1;
  bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  exit_status = ended ? WEXITSTATUS(status) : -1;
}

int main(void) {
  end_a_process();
  return run_cases(NULL, NULL);
}
