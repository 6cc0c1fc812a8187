/* cuda_nth.c - the n-th call of the CUDA runtime fails, for every n that a scenario
 * reaches.
 *
 * Contexts x scenarios x errors; the n-th call fails for n = 1, 2, ... until a run ends without
 * having met its fault. After each: success with all data checked, or a status with a message;
 * the caller's current GPU as it was; the same again on the same context without a fault;
 * nothing left at the end.
 *
 * On a double of the runtime; with the environment variable UMEM_TEST_GPU on the real one, with
 * fewer errors. */
#include "backends.h"
#include "child.h"
#include "fault/cuda/cuda_scenarios.h"
#include "settings.h"

/* ---- what may fail without a status ---- */

#define IS_ONE_OF(list, name) is_one_of((list), sizeof(list) / sizeof *(list), (name))

static bool is_one_of(char const *const *list, size_t count, char const *name) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(list[i], name)) return true;
  return false;
}

/* Functions whose failure a call may survive without a status. All others must record one. */
static char const *const optional[] = {
    /* What they would tell is then unknown: the node, the name, the kind of memory (pageable). */
    "attribute", "bus_id", "device_name", "pointer",
    /* By way of the host instead. */
    "can_access_peer", "enable_peer_access", "pool_allow",
    /* No memory by pages; a second try; a detach tries again; a capture makes the next call
     * fail. */
    "page_size", "page_release", "ipc_close", "stream_capture",
    /* Staging falls back to a plain copy, or to buffers that are not pinned. */
    "host_alloc", "host_register", "stream_create", "event_create", "event_record", "stream_wait",
    "context_current", "context_push", "context_pop", "exchange_capture_mode",
    /* What has become useless and goes with its context at the latest. */
    "host_free", "host_unregister", "stream_destroy", "event_destroy", "pool_destroy",
    "primary_release"};

/* A driver that does not support these is one of those that have none. */
static char const *const of_later_drivers[] = {"pool_create", "memcpy_batch_async"};

static bool may_be_silent(char const *failed, int error) {
  return IS_ONE_OF(optional, failed) ||
         (IS_ONE_OF(of_later_drivers, failed) && error == umemCudaNotSupported);
}

/* Those after which a destructor may leave something: it could not be destroyed, */
static char const *const destroyers[] = {"host_free",     "host_unregister", "stream_destroy",
                                         "event_destroy", "pool_destroy",    "primary_release",
                                         "free",          "pool_free"};

/* or none of what destroys it could be called. */
static char const *const ways_in[] = {"context_current", "context_push", "exchange_capture_mode"};

/* ---- what must have failed ---- */

/* All functions that can be made to fail must have failed somewhere, or all of this would prove
 * nothing; but for these. */
static char const *const unreachable[] = {"primary_release", "host_unregister", "stream_device"};

/* The context of GPU 0 stays with a thread that had none, so only that of another is taken away. */
static char const *const of_two_gpus[] = {
    "can_access_peer",   "enable_peer_access",    "pool_allow",
    "memcpy_peer_async", "memcpy_box_peer_async", "context_pop"};

/* Another process opens what this one shares; on a GPU unit_cuda_processes has one. */
static char const *const of_others[] = {"range",          "ipc_open",    "ipc_close",
                                        "ipc_event_open", "pool_import", "pool_import_pointer"};

static char const *const functions[] = {
#define FUNCTION(name, parameters, arguments, needs, made, change) #name,
#include "fake/cudart_functions.h"
};
enum { function_count = sizeof functions / sizeof *functions };

static bool reached[function_count];

static void note_reached(char const *function) {
  for (size_t i = 0; i < function_count; i++)
    if (!strcmp(functions[i], function)) reached[i] = true;
}

/* Without memory for a block narrow rows are copied in the way of wide ones. */
static bool takes_no_block(Scenario const *scenario, char const *failed) {
  return scenario->kind == scenarioHasOtherWay &&
         (!strcmp(failed, "malloc") || !strcmp(failed, "pool_malloc"));
}

/* ---- one run ---- */

static umemCudaRt const *runtime; /* behind the table with the faults */
static bool on_gpu;

static void clear(Trial *trial) {
  if (trial->ctx) umem_clear_status(trial->ctx);
  if (trial->peer) umem_clear_status(trial->peer);
  FORGET(&trial->host);
  trial->result = umemOK;
  trial->failures = umem_thread_failures();
}

static bool is_same(CudartWrapLive one, CudartWrapLive two) {
  bool same = one.blocks == two.blocks && one.pools == two.pools && one.ranges == two.ranges;
  if (on_gpu) return same; /* a context lives on, and keeps chunks and channels */
  return same && one.pinned == two.pinned && one.registered == two.registered &&
         one.streams == two.streams && one.events == two.events && one.primaries == two.primaries;
}

/* Nothing is left, but for what could not be destroyed. */
static void check_end(Trial *trial, Scenario const *scenario) {
  bool excused = scenario->kind == scenarioDestructs && trial->failed &&
                 (IS_ONE_OF(destroyers, trial->failed) || IS_ONE_OF(ways_in, trial->failed));
  if (excused) { /* to leave something, not to use what is gone, of which a real runtime dies */
    char const *misuse = on_gpu ? NULL : fake_cudart_misuse();
    REQUIRE(trial, !misuse || !strstr(misuse, "destroyed"));
    if (!on_gpu) fake_cudart_reset();
    return;
  }
  REQUIRE(trial, is_same(trial->before, cudart_wrap_live()));
  if (on_gpu) return;
  if (fake_cudart_misuse()) complain(trial, fake_cudart_misuse(), __LINE__);
  REQUIRE(trial, fake_cudart_is_clean());
  fake_cudart_reset(); /* its tables keep what is destroyed, and each call looks through them */
}

/* Without a fault. False where there is no such row on this machine. */
static bool prepare(Trial *trial, Scenario const *scenario) {
  forget_context();
  trial->before = cudart_wrap_live();
  umem_thread_clear();
  REQUIRE(trial, umemHost_ctor(&trial->host) == umemOK);
  if (scenario->kind != scenarioConstructs) trial->ctx = backend_open(backend_by_name(trial->row));
  if (scenario->peer) trial->peer = backend_open(backend_by_name(scenario->peer));
  bool lacks =
      (scenario->kind != scenarioConstructs && !trial->ctx) || (scenario->peer && !trial->peer);
  clear(trial);
  return !lacks;
}

static void end(Trial *trial, Scenario const *scenario) {
  if (trial->ctx) backend_close(backend_by_name(trial->row), trial->ctx);
  if (trial->peer) backend_close(backend_by_name(scenario->peer), trial->peer);
  umem_dtor(&trial->host);
}

/* Whether the fault was met; it was not, either, where the scenario cannot be. */
static bool meets(char const *row, Scenario const *scenario, int error, unsigned long nth) {
  Trial trial = {.row = row, .scenario = scenario->name, .error = error, .nth = nth};
  bool met = false;
  if (prepare(&trial, scenario)) {
    cudart_wrap_fail(nth, error);
    scenario->run(&trial);
    trial.failed = cudart_wrap_off();
    met = trial.failed;
    if (met) note_reached(trial.failed);
    if (!met) REQUIRE(&trial, trial.result == umemOK);
    if (met && trial.result == umemOK)
      REQUIRE(&trial, may_be_silent(trial.failed, error) || takes_no_block(scenario, trial.failed));
    clear(&trial);
    if (scenario->kind != scenarioDestructs &&
        (scenario->kind != scenarioConstructs || !trial.ctx)) {
      scenario->run(&trial); /* works again */
      REQUIRE(&trial, trial.result == umemOK);
    }
  }
  end(&trial, scenario);
  REQUIRE(&trial, is_where_it_was());
  check_end(&trial, scenario);
  return met;
}

static void sweep(void **state) {
  char const *row = *state;
  static int const errors[] = {umemCudaOutOfMemory, umemCudaLaunchFailure, umemCudaInvalidValue,
                               umemCudaNotSupported};
  bool few = UNDER_THREAD_SANITIZER || setting_small();
  size_t count = few ? 1 : on_gpu ? 2 : sizeof errors / sizeof *errors;
  for (size_t i = 0; i < cuda_scenario_count; i++) {
    Scenario const *scenario = &cuda_scenarios[i];
    if (UNDER_THREAD_SANITIZER && !strcmp(scenario->name, "copy largest"))
      continue; /* as the large one */
    bool is_long = scenario->kind == scenarioIsLong;
    unsigned long each = is_long && setting_small() ? 3 : 1;
    for (size_t e = 0; e < (is_long ? 1 : count); e++)
      for (unsigned long nth = 1; meets(row, scenario, errors[e], nth); nth += each) continue;
  }
}

static void every_function_was_reached(void **state UNUSED) {
  int gpus = 0;
  runtime->device_count(&gpus);
  for (size_t i = 0; i < function_count; i++) {
    char const *name = functions[i];
    bool excused = IS_ONE_OF(unreachable, name) || (gpus < 2 && IS_ONE_OF(of_two_gpus, name)) ||
                   (on_gpu && IS_ONE_OF(of_others, name));
    if (!reached[i] && !excused) fail_msg("no scenario reached %s", name);
  }
}

/* ---- all ---- */

/* On GPUs their contexts stay, since making one takes long. */
static int devices;

static void keep_contexts(void) {
  void *context;
  if (runtime->device_count(&devices)) devices = 0;
  for (int d = 0; d < devices; d++) runtime->primary_retain(&context, d);
}

static void let_contexts_go(void) {
  for (int d = 0; d < devices; d++) runtime->primary_release(d);
}

static void begin(void **state UNUSED) {
  on_gpu = setting_gpu();
  runtime = on_gpu ? umemCudaRt_get() : fake_cudart();
  if (!runtime) fail_msg("this build has no CUDA");
  umemCudaRt_replace(cudart_wrap(runtime));
  trial_use(runtime, on_gpu);
  umem_set_threads(2);
  if (on_gpu) keep_contexts();
  assert_true(devices || !on_gpu);
}

static void all_is_gone(void **state UNUSED) {
  if (on_gpu) let_contexts_go();
  umemCudaRt_replace(NULL);
}

/* Under ThreadSanitizer, where all would take minutes, the two that share work among threads. */
int main(void) {
  static char const *const rows[] = {"cuda", "cuda-async", "cuda-host", "cuda-managed"};
  size_t const row_count = UNDER_THREAD_SANITIZER ? 2 : sizeof rows / sizeof *rows;
  for (size_t i = 0; i < row_count; i++) add_case(sweep, rows[i], "%s", rows[i]);
  if (!UNDER_THREAD_SANITIZER)
    add_case(every_function_was_reached, NULL, "every function was reached");
  return run_cases(begin, all_is_gone);
}
