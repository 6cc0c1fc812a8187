/* cudart.c - the double of the CUDA runtime, by which others are tested: devices, contexts, memory,
 * failures. What is ordered by streams is in cudart_order.c. */
#include "workers.h"
#include "cudart_help.h"

/* ---- devices and contexts ---- */

TEST(every_function_is_there) {
  int (*function)(void);
  for (size_t at = 0; at < sizeof *rt; at += sizeof function) {
    memcpy(&function, (char const *)rt + at, sizeof function);
    assert_true(function != NULL);
  }
}

TEST(the_machine_is_as_it_is_set) {
  int value = -1;
  char name[8];
  ok(rt->device_count(&value));
  assert_int_equal(value, 3);
  ok(rt->device_name(name, sizeof name, 1));
  assert_string_equal(name, "Fake GP");
  refused(rt->device_name(name, sizeof name, 3), umemCudaInvalidOrdinal);
  ok(rt->can_access_peer(&value, 1, 0));
  assert_int_equal(value, 1);
  ok(rt->can_access_peer(&value, 1, 2));
  assert_int_equal(value, 0);
  ok(rt->attribute(&value, umemCudaHasPools, 1));
  assert_int_equal(value, 1);
  fake_cudart_machine()->device[1].no_pools = true;
  ok(rt->attribute(&value, umemCudaHasPools, 1));
  assert_int_equal(value, 0);
  fake_cudart_machine()->devices = 0;
  refused(rt->device_count(&value), umemCudaNoGpu);
  fake_cudart_machine()->driver_version = 0;
  refused(rt->device_count(&value), umemCudaInsufficientDriver);
  ok(rt->driver_version(&value));
  assert_int_equal(value, 0);
}

TEST(contexts_are_pushed_and_popped_by_thread) {
  void *first = NULL, *second = NULL, *current = NULL;
  int device = -1;
  ok(rt->context_current(&current));
  assert_null(current);
  ok(rt->primary_retain(&first, 1));
  refused(rt->context_push((void *)&device), umemCudaInvalidContext);
  expect_misuse("context_push: ");
  ok(rt->context_push(first));
  ok(rt->get_device(&device));
  assert_int_equal(device, 1);
  ok(rt->primary_retain(&second, 2));
  ok(rt->context_push(second));
  ok(rt->context_pop(&current));
  assert_ptr_equal(current, second);
  ok(rt->context_current(&current));
  assert_ptr_equal(current, first);
  ok(rt->context_pop(NULL));
  refused(rt->context_pop(&current), umemCudaInvalidContext);
  assert_int_equal(fake_cudart_live().primaries, 2);
  ok(rt->primary_release(1));
  ok(rt->primary_release(2));
  refused(rt->primary_release(2), umemCudaInvalidContext);
  expect_misuse("primary_release: device 2 is not retained");
  assert_true(fake_cudart_is_clean());
  assert_false(fake_cudart_had_context(0));
  assert_true(fake_cudart_had_context(2));
}

TEST(a_context_that_no_call_has_made_is_found) {
  void *adr = new_block(1);
  expect_misuse("malloc: made a context on device 0");
  assert_true(fake_cudart_had_context(0));
  assert_int_equal(fake_cudart_live().contexts, 1);
  fake_cudart_reset();
  fake_cudart_set_device(1); /* but a user may */
  ok(rt->malloc(&adr, 1));
  assert_false(fake_cudart_had_context(0));
}

DEVICE_TEST(peers_need_a_context_of_their_own) {
  ok(rt->enable_peer_access(1));
  expect_misuse("enable_peer_access: made a context on device 1");
  assert_true(fake_cudart_had_context(1));
}

TEST(a_context_that_is_gone_is_refused) {
  void *context = NULL, *adr = NULL;
  ok(rt->primary_retain(&context, 0));
  ok(rt->context_push(context));
  ok(rt->primary_release(0));
  refused(rt->malloc(&adr, 1), umemCudaContextDestroyed);
  refused(rt->context_push(context), umemCudaInvalidContext);
  expect_misuse("a context that is none");
}

TEST(what_outlives_its_context_is_found) {
  enter(0);
  new_block(1);
  leave(0);
  expect_misuse("ends with 1 things in it");
  assert_true(fake_cudart_is_clean());
}

/* ---- memory ---- */

TEST(device_memory_is_guarded) {
  enter(2);
  char bytes[100] = {0};
  unsigned char *adr = new_block(100);
  assert_int_equal((uintptr_t)adr % 256, 0);
  assert_true(fake_cudart_peek((uintptr_t)adr, bytes, 100));
  assert_int_not_equal(bytes[99], 0); /* junk */
  ok(rt->memcpy(adr, bytes, 100, umemCudaToDevice));
  refused(rt->memcpy(adr + 1, bytes, 100, umemCudaToDevice), umemCudaInvalidValue);
  expect_misuse("memcpy: 100 bytes at 0x30000000000001 are past the end of a block");
  refused(rt->memcpy(adr - 1, bytes, 1, umemCudaToDevice), umemCudaInvalidValue);
  expect_misuse("in no live block");
  refused(rt->memset_async(adr + 100, 0, 1, NULL), umemCudaInvalidValue);
  expect_misuse("in no live block");
  refused(rt->free(adr + 1), umemCudaInvalidValue);
  expect_misuse("not the start");
  refused(rt->memcpy(adr, bytes, 1, umemCudaToHost), umemCudaInvalidValue);
  expect_misuse("the addresses are not of kind 2");
  ok(rt->free(adr));
  refused(rt->free(adr), umemCudaInvalidValue);
  expect_misuse("free: ");
  refused(rt->memcpy(bytes, adr, 1, umemCudaToHost), umemCudaInvalidValue);
  expect_misuse("in no live block");
  ok(rt->free(NULL));
}

DEVICE_TEST(the_cpu_cannot_use_device_memory) {
  char *adr = new_block(1);
  pid_t child = fork();
  if (!child) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL); /* if the compiler addresses it by the register of the stack */
    *(char volatile *)adr = 1;
    _exit(0);
  }
  assert_true(child_wait(child) < 0);
}

DEVICE_TEST(memory_runs_out) {
  fake_cudart_machine()->device[0].capacity = 1000;
  void *more = NULL;
  size_t available = 0, capacity = 0;
  void *adr = new_block(600);
  refused(rt->malloc(&more, 401), umemCudaOutOfMemory);
  ok(rt->memory_info(&available, &capacity));
  assert_int_equal(available, 400);
  assert_int_equal(capacity, 1000);
  ok(rt->free(adr));
  ok(rt->malloc(&adr, 1000));
}

static void expect_kind(void const *adr, umemCudaMemory expected, int expected_device) {
  umemCudaMemory kind;
  int device;
  ok(rt->pointer(adr, &kind, &device));
  assert_int_equal(kind, expected);
  assert_int_equal(device, expected_device);
}

TEST(addresses_tell_what_they_are) {
  enter(1);
  void *managed, *pinned;
  static char plain[100];
  void *device = new_block(10);
  ok(rt->malloc_managed(&managed, 10));
  ok(rt->host_alloc(&pinned, 10, umemCudaPortable));
  ok(rt->host_register(plain, 50, 0));
  expect_kind((char *)device + 9, umemCudaDeviceMemory, 1);
  expect_kind(managed, umemCudaManagedMemory, 1);
  expect_kind(pinned, umemCudaPinned, 1);
  expect_kind(plain + 49, umemCudaPinned, 1);
  expect_kind(plain + 50, umemCudaUnregistered, -1);
  FakeCudartLive live = fake_cudart_live();
  assert_int_equal(live.blocks * 1000 + live.managed * 100 + live.pinned * 10 + live.registered,
                   1111);
  memset(managed, 1, 10); /* the CPU may */
  memset(pinned, 1, 10);
  ok(rt->prefetch(managed, 10, 1, NULL));
  ok(rt->advise(managed, 10, umemCudaReadMostly, -1));
  refused(rt->prefetch(pinned, 10, 1, NULL), umemCudaInvalidValue);
  expect_misuse("is not managed");
  ok(rt->free(device));
  ok(rt->free(managed));
  ok(rt->host_free(pinned));
  ok(rt->host_unregister(plain));
  expect_kind(plain, umemCudaUnregistered, -1);
  fake_cudart_machine()->device[1].no_managed = true;
  refused(rt->malloc_managed(&managed, 10), umemCudaNotSupported);
}

DEVICE_TEST(registrations_do_not_overlap) {
  static char bytes[100];
  ok(rt->host_register(bytes + 10, 50, umemCudaPortable));
  refused(rt->host_register(bytes + 10, 50, 0), umemCudaAlreadyRegistered);
  refused(rt->host_register(bytes, 11, 0), umemCudaAlreadyRegistered);
  refused(rt->host_register(bytes + 59, 1, 0), umemCudaAlreadyRegistered);
  refused(rt->host_register(bytes + 60, 0, 0), umemCudaInvalidValue);
  ok(rt->host_register(bytes + 60, 1, 0));
  ok(rt->host_unregister(bytes + 60));
  refused(rt->host_unregister(bytes + 60), umemCudaNotRegistered);
  expect_misuse("host_unregister: ");
  refused(rt->host_free(bytes + 10), umemCudaInvalidValue);
  expect_misuse("host_free: ");
  void *adr = new_block(100);
  refused(rt->memcpy(adr, bytes, 11, umemCudaToDevice), umemCudaInvalidValue);
  expect_misuse("partly in a block");
  ok(rt->memcpy(adr, bytes, 10, umemCudaToDevice));
}

/* ---- settings of memory ---- */

DEVICE_TEST(devices_lack_what_they_are_set_to_lack) {
  void *managed = NULL;
  static char plain[8];
  int value = -1;
  ok(rt->malloc_managed(&managed, 8));
  fake_cudart_machine()->device[0].no_concurrent_managed = true;
  ok(rt->attribute(&value, umemCudaConcurrentManaged, 0));
  assert_int_equal(value, 0);
  refused(rt->prefetch(managed, 8, 0, NULL), umemCudaInvalidOrdinal);
  refused(rt->advise(managed, 8, umemCudaPreferDevice, 0), umemCudaInvalidOrdinal);
  fake_cudart_machine()->device[0].no_concurrent_managed = false;
  refused(rt->advise(plain, 8, umemCudaReadMostly, 0), umemCudaInvalidValue);
  expect_misuse("is not managed memory");
  fake_cudart_machine()->device[0].pageable_access = true;
  ok(rt->advise(plain, 8, umemCudaReadMostly, 0));
}

/* ---- failures ---- */

DEVICE_TEST(any_call_can_fail) {
  void *more = NULL;
  unsigned long calls = fake_cudart_calls();
  fake_cudart_fail(2, umemCudaOutOfMemory);
  void *adr = new_block(1);
  refused(rt->free(adr), umemCudaOutOfMemory);
  assert_int_equal(rt->last_error(), umemCudaOutOfMemory);
  assert_int_equal(rt->last_error(), umemCudaSuccess);
  ok(rt->free(adr));
  assert_int_equal(fake_cudart_calls() - calls, 3);
  fake_cudart_fail_in("malloc", 2, umemCudaNotPermitted);
  ok(rt->malloc(&adr, 1));
  ok(rt->stream_synchronize(NULL));
  refused(rt->malloc(&more, 1), umemCudaNotPermitted);
  assert_null(more);
  ok(rt->free(adr));
  assert_int_equal(fake_cudart_calls_of("malloc"), 3);
  assert_string_equal(rt->error_name(umemCudaOutOfMemory), "cudaErrorMemoryAllocation");
  assert_string_equal(rt->error_string(umemCudaOutOfMemory), "out of memory");
}

DEVICE_TEST(a_crash_lasts) {
  int device = -1;
  void *adr = new_block(1);
  fake_cudart_break(0, umemCudaIllegalAddress);
  refused(rt->free(adr), umemCudaIllegalAddress);
  refused(rt->stream_synchronize(NULL), umemCudaIllegalAddress);
  assert_int_equal(rt->last_error(), umemCudaIllegalAddress);
  assert_int_equal(rt->last_error(), umemCudaIllegalAddress);
  ok(rt->get_device(&device));
  enter(1); /* another device does not notice, but for what it has of the first */
  void *other = new_block(1);
  refused(rt->memcpy(other, adr, 1, umemCudaAnyDirection), umemCudaIllegalAddress);
  ok(rt->free(other));
  leave(1);
  leave(0); /* the context takes its block along */
  assert_true(fake_cudart_is_clean());
}

TEST(nothing_is_done_while_unloading) {
  int count;
  fake_cudart_unload();
  refused(rt->device_count(&count), umemCudaUnloading);
  refused(rt->context_pop(NULL), umemCudaUnloading);
}

TEST(a_child_of_fork_is_refused) {
  pid_t early = fork(); /* of a process that has not used the runtime */
  if (!early) {
    int count;
    _exit(rt->device_count(&count) == umemCudaSuccess ? 0 : 1);
  }
  assert_int_equal(child_wait(early), 0);
  enter(0);
  pid_t late = fork();
  if (!late) {
    int count;
    bool refused_all = rt->device_count(&count) == umemCudaInitializationError &&
                       rt->context_pop(NULL) == umemCudaInitializationError;
    _exit(refused_all ? 0 : 1);
  }
  assert_int_equal(child_wait(late), 0);
}

/* ---- threads ---- */

static void *use(void *argument) {
  void *context = NULL, *stream = NULL, *adr = NULL, *pinned = NULL;
  unsigned char const mark = *(unsigned char *)argument;
  int bad = rt->primary_retain(&context, 0) || rt->context_push(context) ||
            rt->stream_create(&stream) || rt->host_alloc(&pinned, 64, 0);
  for (int i = 0; !bad && i < 100; i++) {
    bad = rt->malloc(&adr, 64) || rt->memset_async(adr, mark, 64, stream) ||
          rt->memcpy_async(pinned, adr, 64, umemCudaToHost, stream) ||
          rt->stream_synchronize(stream) || *(unsigned char *)pinned != mark || rt->free(adr);
  }
  bad = bad || rt->host_free(pinned) || rt->stream_destroy(stream) || rt->context_pop(&context) ||
        rt->primary_release(0);
  return bad ? argument : NULL;
}

static void *fail_elsewhere(void *argument UNUSED) {
  int value;
  return rt->attribute(&value, umemCudaHasPools, 9) == umemCudaInvalidOrdinal &&
                 rt->last_error() == umemCudaInvalidOrdinal
             ? NULL
             : argument;
}

TEST(errors_are_their_thread_s) {
  int value = 0;
  refused(rt->attribute(&value, (umemCudaAttribute)99, 0), umemCudaInvalidValue);
  assert_null(join_thread(start_thread(fail_elsewhere, &value)));
  assert_int_equal(rt->last_error(), umemCudaInvalidValue);
}

TEST(threads_may_call_at_once) {
  void *context;
  ok(rt->primary_retain(&context, 0));
  unsigned char marks[4] = {1, 2, 3, 4};
  run_at_once(4, use, marks, 1);
  ok(rt->primary_release(0));
  assert_true(fake_cudart_is_clean());
}
