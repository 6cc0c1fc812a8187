/* cudart.c - the CUDA double: the way in and out of each call, failures, and what it records. */
#include "cudart_state.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

CudartState cudart_state;

/* A failure to come. */
typedef struct {
  char const *function; /* a string literal; NULL: any */
  unsigned long calls, fail_at;
  int error;
} Plan;

/* Something to do before a call. */
typedef struct {
  char const *function; /* a string literal; NULL: nothing */
  unsigned long left;   /* calls until then */
  void (*run)(void *argument);
  void *argument;
} Interlude;

enum { mostPlans = 80 };

static struct {
  pthread_mutex_t mutex; /* recursive: kernels look at memory while it is held */
  Plan plans[mostPlans]; /* the first is that of all functions */
  size_t plan_count;
  Interlude interlude;
  atomic_bool unloading;
  atomic_bool called;    /* somebody has called the runtime */
  atomic_bool inherited; /* somebody had, before the fork that made this process */
} gate;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the mutex ---- */

static void settle(void);

static void begin_child(void) { atomic_store(&gate.inherited, atomic_load(&gate.called)); }

static void begin(void) {
  pthread_atfork(NULL, NULL, begin_child);
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&gate.mutex, &recursive);
  pthread_mutexattr_destroy(&recursive);
  settle();
}

pthread_mutex_t *cudart_mutex(void) {
  pthread_once(&once, begin);
  return &gate.mutex;
}

Thread *cudart_thread(void) {
  static _Thread_local Thread thread;
  if (thread.generation != cudart_state.generation) {
    unsigned inside = thread.inside;
    thread = (Thread){.generation = cudart_state.generation, .inside = inside};
  }
  return &thread;
}

/* ---- in and out ---- */

static Plan *plan_of(char const *function) {
  for (size_t i = 1; i < gate.plan_count; i++)
    if (strcmp(gate.plans[i].function, function) == 0) return &gate.plans[i];
  if (gate.plan_count == mostPlans) abort();
  gate.plans[gate.plan_count] = (Plan){.function = function};
  return &gate.plans[gate.plan_count++];
}

static int plan_count(Plan *plan) {
  return ++plan->calls == plan->fail_at ? plan->error : umemCudaSuccess;
}

static int error_of_machine(void) {
  FakeCudartMachine const *machine = &cudart_state.machine;
  if (machine->driver_version / 1000 < machine->runtime_version / 1000)
    return umemCudaInsufficientDriver;
  return machine->devices ? umemCudaSuccess : umemCudaNoGpu;
}

static int error_of_needs(int needs) {
  int error = needs & needDriver ? error_of_machine() : umemCudaSuccess;
  if (!error && (needs & needContext) == needContext) cudart_current(&error);
  if (!error && (needs & needUncaptured) == needUncaptured) error = cudart_forbid_unsafe();
  return error;
}

/* Whether this is a child of the process that has called the runtime. There the mutex may be held
 * for ever. */
bool cudart_is_inherited(void) { return atomic_load(&gate.inherited); }

static _Thread_local bool refused; /* this call has not come in */

static void run_interlude(char const *function) {
  pthread_mutex_lock(cudart_mutex());
  Interlude *next = &gate.interlude, now = {0};
  if (next->function && !strcmp(next->function, function) && --next->left == 0) {
    now = *next;
    *next = (Interlude){0};
  }
  pthread_mutex_unlock(&gate.mutex);
  if (now.function) now.run(now.argument);
}

int cudart_enter(char const *function, int needs) {
  refused = cudart_is_inherited();
  if (refused) return umemCudaInitializationError;
  run_interlude(function);
  pthread_mutex_lock(cudart_mutex());
  if (needs & needDriver) atomic_store(&gate.called, true);
  Thread *thread = cudart_thread();
  thread->inside++;
  thread->call = function;
  int for_any = plan_count(&gate.plans[0]), for_one = plan_count(plan_of(function));
  if (atomic_load(&gate.unloading)) return umemCudaUnloading;
  if (for_any || for_one) return for_any ? for_any : for_one;
  return error_of_needs(needs);
}

int cudart_leave(int error) {
  if (refused) {
    refused = false;
    return error;
  }
  Thread *thread = cudart_thread();
  if (error) thread->last_error = error;
  thread->inside--;
  pthread_mutex_unlock(&gate.mutex);
  return error;
}

/* ---- failures ---- */

void fake_cudart_fail(unsigned long nth, int error) { fake_cudart_fail_in(NULL, nth, error); }

void fake_cudart_fail_in(char const *function, unsigned long nth, int error) {
  LOCKED(cudart_mutex());
  Plan *plan = function ? plan_of(function) : &gate.plans[0];
  plan->fail_at = nth ? plan->calls + nth : 0;
  plan->error = error;
}

void fake_cudart_before(char const *function, unsigned long nth, void (*run)(void *argument),
                        void *argument) {
  pthread_mutex_lock(cudart_mutex());
  gate.interlude = (Interlude){function, nth, run, argument};
  pthread_mutex_unlock(&gate.mutex);
}

unsigned long fake_cudart_calls(void) {
  LOCKED(cudart_mutex());
  return gate.plans[0].calls;
}

unsigned long fake_cudart_calls_of(char const *function) {
  LOCKED(cudart_mutex());
  return plan_of(function)->calls;
}

void fake_cudart_unload(void) { atomic_store(&gate.unloading, true); }

/* ---- misuse ---- */

void cudart_misuse(char const *what, ...) {
  if (cudart_state.misuse[0]) return;
  char const *call = cudart_thread()->call;
  int used = snprintf(cudart_state.misuse, sizeof cudart_state.misuse, "%s: ", call ? call : "?");
  va_list arguments;
  va_start(arguments, what);
  vsnprintf(cudart_state.misuse + used, sizeof cudart_state.misuse - (size_t)used, what, arguments);
  va_end(arguments);
}

char const *fake_cudart_misuse(void) {
  LOCKED(cudart_mutex());
  return cudart_state.misuse[0] ? cudart_state.misuse : NULL;
}

void fake_cudart_forget_misuse(void) {
  LOCKED(cudart_mutex());
  cudart_state.misuse[0] = '\0';
}

/* ---- records ---- */

static FakeCudartLive live(void) {
  FakeCudartLive sum = {0};
  for (size_t i = 0; i < cudart_state.block_count; i++) {
    Block const *block = &cudart_state.blocks[i];
    if (block->range) sum.ranges++;
    if (block->kind == umemCudaDeviceMemory && !block->range) sum.blocks++;
    if (block->kind == umemCudaManagedMemory) sum.managed++;
    if (block->kind == umemCudaPinned && block->registered) sum.registered++;
    if (block->kind == umemCudaPinned && !block->registered) sum.pinned++;
  }
  for (Stream *s = cudart_state.streams; s; s = s->next)
    sum.streams += !s->destroyed && !s->legacy && !s->per_thread;
  for (Event *e = cudart_state.events; e; e = e->next) sum.events += !e->destroyed;
  for (Pool *p = cudart_state.pools; p; p = p->next) sum.pools += !p->destroyed;
  for (int d = 0; d < fakeCudartMost; d++) {
    Device const *device = &cudart_state.device[d];
    sum.primaries += device->retained;
    sum.contexts += device->retained || device->implicit;
  }
  sum.pages = cudart_pages_live(-1);
  return sum;
}

FakeCudartLive fake_cudart_live(void) {
  LOCKED(cudart_mutex());
  return live();
}

bool fake_cudart_is_clean(void) {
  FakeCudartLive sum = fake_cudart_live();
  return !(sum.blocks || sum.managed || sum.pinned || sum.registered || sum.streams || sum.events ||
           sum.pools || sum.pages || sum.ranges || sum.primaries || sum.contexts);
}

FakeCudartDone fake_cudart_done(void) {
  LOCKED(cudart_mutex());
  return cudart_state.done;
}

/* ---- reset ---- */

static void settle(void) {
  CudartState *state = &cudart_state;
  unsigned generation = state->generation + 1;
  *state =
      (CudartState){.generation = generation,
                    .machine = {.devices = 3, .driver_version = 13000, .runtime_version = 12020}};
  for (int d = 0; d < fakeCudartMost; d++) {
    state->device[d].ordinal = d;
    state->machine.device[d].capacity = 1 << 30;
  }
  gate.plan_count = 1;
  gate.interlude = (Interlude){0};
  gate.plans[0] = (Plan){0};
  atomic_store(&gate.unloading, false);
  atomic_store(&gate.called, false);
  atomic_store(&gate.inherited, false);
}

static void works_destroy(Work *first) {
  for (Work *work = first, *next; work; work = next) {
    next = work->next;
    cudart_work_destroy(work);
  }
}

static void clear(void) {
  CudartState *state = &cudart_state;
  for (Stream *s = state->streams, *next; s; s = next) {
    next = s->next;
    works_destroy(s->first);
    free(s);
  }
  for (Event *e = state->events, *next; e; e = next) {
    next = e->next;
    cudart_shared_end(e->shared);
    free(e);
  }
  for (Graph *g = state->graphs, *next; g; g = next) {
    next = g->next;
    works_destroy(g->first);
    free(g);
  }
  cudart_pools_destroy();
  for (int d = 0; d < fakeCudartMost; d++) fake_store_destroy(state->device[d].store);
  fake_store_destroy(state->real);
  for (size_t i = 0; i < state->block_count; i++) {
    free(state->blocks[i].resident);
    cudart_shared_end(state->blocks[i].shared);
    if (state->blocks[i].range) cudart_range_end(&state->blocks[i]);
  }
  free(state->blocks);
  free(state->pages);
}

void fake_cudart_reset(void) {
  LOCKED(cudart_mutex());
  clear();
  settle();
}

/* Like the runtime, which unloads itself at the end of the process and takes all along. */
static __attribute__((destructor)) void end(void) {
  if (cudart_is_inherited()) return;
  LOCKED(cudart_mutex());
  clear();
  settle();
  fake_cudart_unload();
}

FakeCudartMachine *fake_cudart_machine(void) {
  pthread_once(&once, begin);
  return &cudart_state.machine;
}
