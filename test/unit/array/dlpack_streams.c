/* dlpack_streams.c - umem/dlpack.h on GPUs: the codes and numbers of devices, the consumer's
 * streams, captures, copies. On a double of CUDA's runtime that does queued work as late as it
 * may. */
#include "array_gpu.h"

static void end(umemDLManagedTensorVersioned *tensor) { tensor->deleter(tensor); }

/* ---- devices ---- */

GPU_TEST(devices_have_codes_and_numbers) {
  CONTEXT(umemCudaHost, pinned, 0);
  CONTEXT(umemCudaAsync, gpu, 1, UMEM_STREAM_NEW);
  CONTEXT(umemCudaManaged, managed, 1, 0);
  int64_t const unknown = UMEM_DLPACK_NO_STREAM, none = UMEM_DLPACK_DEFAULT_STREAM;
  struct {
    void *ctx;
    umemDLDeviceCode ask;
    int64_t stream;
    int type, id; /* as exported; 0: refused */
    char const *words;
  } const rows[] = {
      {&host, umemDLDefault, none, umemDLCPU, 0, ""},
      {&host, umemDLDefault, unknown, umemDLCPU, 0, ""},
      {&host, umemDLDefault, 1, 0, 0, "stream 1: tensors with device code 1 have no stream"},
      {&host, umemDLDefault, 0, 0, 0, "stream 0: tensors with device code 1 have no stream"},
      {&host, umemDLCUDA, none, 0, 0, "device code 2"},
      {&pinned, umemDLDefault, none, umemDLCUDAHost, 0, ""},
      {&pinned, umemDLDefault, 2, 0, 0, "have no stream"},
      {&pinned, umemDLCPU, none, umemDLCPU, 0, ""},
      {&pinned, umemDLCUDA, none, 0, 0, "device code 2"},
      {&gpu, umemDLDefault, none, umemDLCUDA, 1, ""},
      {&gpu, umemDLDefault, unknown, umemDLCUDA, 1, ""},
      {&gpu, umemDLDefault, 1, umemDLCUDA, 1, ""},
      {&gpu, umemDLDefault, 2, umemDLCUDA, 1, ""},
      {&gpu, umemDLDefault, 0, 0, 0, "stream 0 is ambiguous"},
      {&gpu, umemDLDefault, -2, 0, 0, "-2 is no number of a stream"},
      {&gpu, umemDLCPU, none, 0, 0, "device code 1: allow a copy"},
      {&managed, umemDLDefault, none, umemDLCUDAManaged, 0, ""},
      {&managed, umemDLDefault, 0, 0, 0, "ambiguous"},
      {&managed, umemDLCUDA, 1, umemDLCUDA, 1, ""},
      {&managed, umemDLCPU, none, umemDLCPU, 0, ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
    options.device = rows[i].ask;
    options.stream = rows[i].stream;
    umemArray *a = umemArray_create(rows[i].ctx, umemInt, SHAPE(8), NULL, &status);
    unsigned long asked = fake_cudart_calls_of("memory_info");
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
    assert_int_equal(fake_cudart_calls_of("memory_info"), asked); /* it is slow */
    if ((tensor != NULL) != (rows[i].type != 0) || !strstr(umem_thread_message(), rows[i].words))
      fail_msg("row %zu: %s", i, umem_thread_message());
    if (tensor) {
      assert_int_equal(tensor->dl_tensor.device.device_type, rows[i].type);
      assert_int_equal(tensor->dl_tensor.device.device_id, rows[i].id);
      end(tensor);
    }
    status = umemOK;
    umem_thread_clear();
    umemArray_release(a);
  }
}

/* Which context a tensor of which device becomes an array of. */
GPU_TEST(imports_need_a_context_of_the_device) {
  CONTEXT(umemCudaHost, pinned, 0);
  CONTEXT(umemCuda, first, 0);
  CONTEXT(umemCuda, second, 1);
  CONTEXT(umemCudaManaged, managed, 1, 0);
  void *const contexts[] = {&host, &pinned, &first, &second, &managed};
  struct {
    umemDLDevice device;
    char const *fits; /* '1' for each of contexts that does */
  } const rows[] = {
      {{umemDLCPU, 0}, "10000"},         {{umemDLCUDAHost, 0}, "11000"},
      {{umemDLCUDA, 0}, "00100"},        {{umemDLCUDA, 1}, "00010"},
      {{umemDLCUDA, 2}, "00000"},        {{umemDLCUDAManaged, 0}, "00111"},
      {{umemDLCUDAManaged, 1}, "00111"}, {{10, 0}, "00000"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < sizeof contexts / sizeof *contexts; k++) {
      umemDLManagedTensorVersioned tensor = {.version = {1, 0},
                                             .dl_tensor = {.data = (void *)(uintptr_t)4096,
                                                           .device = rows[i].device,
                                                           .dtype = {2, 64, 1}}};
      umemArray *array = umemArray_from_dlpack(contexts[k], &tensor, &status);
      if ((array != NULL) != (rows[i].fits[k] == '1'))
        fail_msg("row %zu, context %zu: %s", i, k, umem_thread_message());
      if (!array) expect_failure(umemNotSupportedError, "cannot be an array of");
      umem_clear_status(contexts[k]);
      umemArray_release(array);
    }
}

/* ---- streams ---- */

enum { n = 1000, before = 1, after = 2 };

/* What kernels of a producer and a consumer do with the last byte. */
typedef struct Kernel {
  uintptr_t adr;
  unsigned char byte;
} Kernel;
static void write_byte(void *argument) {
  Kernel *kernel = argument;
  fake_cudart_poke(kernel->adr, &kernel->byte, 1);
}
static void read_byte(void *argument) {
  Kernel *kernel = argument;
  fake_cudart_peek(kernel->adr, &kernel->byte, 1);
}

/* A context, and the stream that its kernels are on. */
typedef struct Producer {
  char const *name;
  void *ctx, *stream;
} Producer;

enum { producers = 8 };

typedef struct Producers {
  umemCudaAsync queue, legacy_queue;
  umemCuda plain;
  umemCudaManaged managed;
  umemPool pool, plain_pool;
  umemPoolOn pool_on;
  umemLimit limit;
  Producer rows[producers];
} Producers;

static void open_producers(Producers *all) {
  assert_ok(umemCudaAsync_ctor(&all->queue, 0, UMEM_STREAM_NEW));
  assert_ok(umemCudaAsync_ctor(&all->legacy_queue, 0, 0));
  assert_ok(umemCuda_ctor(&all->plain, 0));
  assert_ok(umemCudaManaged_ctor(&all->managed, 0, 0));
  assert_ok(umemPool_ctor(&all->pool, &all->queue, NULL));
  assert_ok(umemPool_ctor(&all->plain_pool, &all->plain, NULL));
  assert_ok(umemPoolOn_ctor(&all->pool_on, &all->plain_pool, &all->queue));
  assert_ok(umemLimit_ctor(&all->limit, &all->queue, 1 << 20));
  void *stream = (void *)umemCudaAsync_stream(&all->queue), *legacy = FAKE_STREAM_LEGACY;
  Producer const rows[producers] = {{"queue", &all->queue, stream},
                                    {"queue of the legacy stream", &all->legacy_queue, legacy},
                                    {"plain", &all->plain, legacy},
                                    {"managed", &all->managed, legacy},
                                    {"pool of a queue", &all->pool, stream},
                                    {"plain pool", &all->plain_pool, legacy},
                                    {"plain pool on a queue", &all->pool_on, stream},
                                    {"limit of a queue", &all->limit, stream}};
  memcpy(all->rows, rows, sizeof rows);
}

static void close_producers(Producers *all) {
  void *const contexts[] = {&all->limit,   &all->pool_on, &all->plain_pool,   &all->pool,
                            &all->managed, &all->plain,   &all->legacy_queue, &all->queue};
  for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) umem_dtor(contexts[i]);
}

/* Exports an array that a kernel is about to write, for a stream of device. Returns what a kernel
 * of the consumer then reads. */
static unsigned char hand_over(void *ctx, void *producer, int device, void *consumer,
                               int64_t number) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = number;
  umemArray *array = umemArray_create(ctx, umemInt8, SHAPE(n), NULL, &status);
  assert_ok(umem_set(ctx, umemArray_address(array), before, n));
  assert_ok(umem_synchronize(ctx));
  Kernel writer = {umemArray_address(array) + n - 1, after}, reader = {writer.adr, 0};
  enter(0);
  assert_int_equal(fake_cudart_launch(producer, write_byte, &writer), 0);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, &options, &status);
  if (status != umemOK) fail_msg("stream %jd: %s", (intmax_t)number, umem_thread_message());
  unsigned char now = 0;
  assert_true(fake_cudart_peek(reader.adr, &now, 1));
  assert_int_equal(now, before); /* the host has not waited */
  enter(device);
  assert_int_equal(fake_cudart_launch(consumer, read_byte, &reader), 0);
  assert_int_equal(rt->stream_synchronize(consumer), 0);
  leave(device);
  assert_int_equal(rt->stream_synchronize(producer), 0);
  leave(0);
  umemArray_release(array);
  end(tensor);
  assert_ok(umem_synchronize(ctx));
  return reader.byte;
}

GPU_TEST(the_consumers_stream_waits_and_the_host_does_not) {
  Producers all;
  umemCudaAsync own, other; /* for their streams */
  void *blocking = NULL;
  open_producers(&all);
  assert_ok(umemCudaAsync_ctor(&own, 0, UMEM_STREAM_NEW));
  assert_ok(umemCudaAsync_ctor(&other, 1, UMEM_STREAM_NEW));
  enter(0);
  assert_int_equal(fake_cudart_create_blocking(&blocking), 0);
  leave(0);
  void *own_stream = (void *)umemCudaAsync_stream(&own);
  void *other_stream = (void *)umemCudaAsync_stream(&other);
  struct {
    int device;
    void *consumer;
    int64_t number;
  } const rows[] = {{0, FAKE_STREAM_LEGACY, 1},
                    {0, FAKE_STREAM_LEGACY, UMEM_DLPACK_DEFAULT_STREAM},
                    {0, FAKE_STREAM_PER_THREAD, 2},
                    {0, own_stream, (int64_t)(uintptr_t)own_stream},
                    {0, blocking, (int64_t)(uintptr_t)blocking},
                    {1, other_stream, (int64_t)(uintptr_t)other_stream}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < producers; k++)
      if (hand_over(all.rows[k].ctx, all.rows[k].stream, rows[i].device, rows[i].consumer,
                    rows[i].number) != after)
        fail_msg("consumer %zu reads too early from %s", i, all.rows[k].name);
  for (size_t k = 0; k < producers; k++) /* without a wait */
    if (hand_over(all.rows[k].ctx, all.rows[k].stream, 0, own_stream, UMEM_DLPACK_NO_STREAM) !=
        before)
      fail_msg("the test would not find a missing wait after %s", all.rows[k].name);
  enter(0);
  assert_int_equal(rt->stream_destroy(blocking), 0);
  leave(0);
  DESTRUCT(&other, &own);
  close_producers(&all);
}

/* ---- a queue of the producer, and one of the consumer ---- */

static umemCudaAsync queue, own;
static void *stream, *consumer; /* theirs */

static void open_queues(void **state) {
  set_up_gpu(state);
  assert_ok(umemCudaAsync_ctor(&queue, 0, UMEM_STREAM_NEW));
  assert_ok(umemCudaAsync_ctor(&own, 0, UMEM_STREAM_NEW));
  stream = (void *)umemCudaAsync_stream(&queue);
  consumer = (void *)umemCudaAsync_stream(&own);
}

static void close_queues(void **state) {
  DESTRUCT(&own, &queue);
  tear_down_gpu(state);
}

#define STREAM_TEST(name) TEST_CASE_WITH(name, open_queues, close_queues)

/* Returns the graph of a capture that is whole. */
static void *end_capture(void *of) {
  void *graph = NULL;
  assert_int_equal(fake_cudart_end_capture(of, &graph), 0);
  assert_non_null(graph);
  return graph;
}

/* While either stream is captured, the other cannot wait for it or it for the other; without a
 * stream there is nothing to wait for. The capture stays whole. */
STREAM_TEST(captures_are_left_whole) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  CONTEXT(umemCuda, plain, 0);
  umemArray *arrays[] = {umemArray_zeros(&queue, umemInt, SHAPE(9), NULL, &status),
                         umemArray_zeros(&plain, umemInt, SHAPE(9), NULL, &status)};
  enter(0);
  for (int i = 0; i < 2; i++) {
    options.stream = (int64_t)(uintptr_t)consumer;
    assert_int_equal(fake_cudart_begin_capture_in(consumer, 2), 0);
    REFUSES(umemArray_to_dlpack(arrays[i], &options, &status), umemNotSupportedError,
            "captured into a graph: it cannot wait");
    umem_clear_status(umemArray_context(arrays[i]));
    options.stream = UMEM_DLPACK_NO_STREAM;
    end(umemArray_to_dlpack(arrays[i], &options, &status));
    end_capture(consumer);
  }
  leave(0);
  RELEASE(arrays[0], arrays[1]);
}

/* The legacy stream cannot become a part of the producer's capture. */
STREAM_TEST(the_legacy_stream_joins_no_capture) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  SCOPED(release_array)
  umemArray *array = umemArray_zeros(&queue, umemInt, SHAPE(9), NULL, &status);
  enter(0);
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
  REFUSES(umemArray_to_dlpack(array, &options, &status), umemNotSupportedError,
          "the legacy default stream cannot wait for it");
  umem_clear_status(&queue);
  end_capture(stream);
  leave(0);
}

/* A stream of the consumer that becomes part of the producer's capture may read what the graph will
 * write. */
STREAM_TEST(a_consumer_joins_the_producers_capture) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  SCOPED(release_array)
  umemArray *array = umemArray_zeros(&queue, umemInt8, SHAPE(n), NULL, &status);
  assert_ok(umem_synchronize(&queue));
  Kernel writer = {umemArray_address(array), after}, reader = {writer.adr, 0};
  options.stream = (int64_t)(uintptr_t)consumer;
  enter(0);
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
  assert_int_equal(fake_cudart_launch(stream, write_byte, &writer), 0);
  end(umemArray_to_dlpack(array, &options, &status));
  assert_int_equal(fake_cudart_launch(consumer, read_byte, &reader), 0);
  assert_ok(umem_wait(&queue, &own));
  assert_int_equal(fake_cudart_launch_graph(end_capture(stream), stream), 0);
  leave(0);
  assert_ok(umem_synchronize(&queue));
  assert_int_equal(reader.byte, after);
}

/* ---- copies ---- */

/* The consumer may read at once, and what the producer writes later does not matter. */
STREAM_TEST(a_copy_to_the_host_is_complete) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.device = umemDLCPU;
  options.copy = umemDLCopyIfNeeded;
  int32_t nine = 9, ten = 10;
  fake_cudart_machine()->late_pageable = true;
  SCOPED(release_array)
  umemArray *a = umemArray_full(&queue, umemInt, SHAPE(100), NULL, &nine, &status);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
  assert_int_equal(((int32_t *)tensor->dl_tensor.data)[99], 9);
  assert_int_equal(tensor->flags, UMEM_DLPACK_IS_COPIED);
  assert_int_equal(tensor->dl_tensor.device.device_type, umemDLCPU);
  umemArray_fill(a, &ten, &status);
  assert_ok(umem_synchronize(&queue));
  assert_int_equal(((int32_t *)tensor->dl_tensor.data)[99], 9);
  end(tensor);
}

/* A copy on the GPU is queued, and the consumer's stream waits for it. */
STREAM_TEST(a_copy_on_the_gpu_is_in_order) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyAlways;
  options.stream = (int64_t)(uintptr_t)consumer;
  umemArray *a = umemArray_create(&queue, umemInt8, SHAPE(n), NULL, &status);
  assert_ok(umem_set(&queue, umemArray_address(a), after, n));
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
  assert_true((uintptr_t)tensor->dl_tensor.data != umemArray_address(a));
  assert_int_equal((uintptr_t)tensor->dl_tensor.data % 256, 0);
  Kernel reader = {(uintptr_t)tensor->dl_tensor.data + n - 1, 0};
  assert_true(fake_cudart_is_late(stream));
  umemArray_release(a);
  enter(0);
  assert_int_equal(fake_cudart_launch(consumer, read_byte, &reader), 0);
  leave(0);
  assert_ok(umem_synchronize(&own));
  assert_int_equal(reader.byte, after);
  end(tensor);
}

/* ---- failures ---- */

/* Each call of the runtime during an export fails once: then there is no tensor, and nothing is
 * left. */
STREAM_TEST(failing_calls_leave_nothing) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = (int64_t)(uintptr_t)consumer;
  for (int copy = umemDLCopyNever; copy <= umemDLCopyAlways; copy += umemDLCopyAlways) {
    unsigned long nth = 1;
    options.copy = (umemDLPackCopy)copy;
    for (unsigned long calls = nth; calls >= nth; nth++) {
      umemArray *a = umemArray_zeros(&queue, umemInt, SHAPE(100), NULL, &status);
      unsigned long first = fake_cudart_calls();
      fake_cudart_fail(nth, umemCudaOutOfMemory);
      umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
      calls = fake_cudart_calls() - first;
      fake_cudart_fail(0, 0);
      if (calls < nth) assert_non_null(tensor);
      assert_true((tensor != NULL) == (status == umemOK));
      assert_true((status == umemOK) == (umem_thread_status() == umemOK));
      if (tensor) end(tensor);
      status = umemOK;
      FORGET(&queue);
      umemArray_release(a);
    }
    assert_true(nth > 5);
  }
}

static int late_at_end;
static void note_late(umemDLManagedTensorVersioned *self) {
  late_at_end = fake_cudart_is_late(self->manager_ctx);
}
STREAM_TEST(the_deleter_comes_after_queued_work) {
  CONTEXT(umemCuda, owner, 0);
  uintptr_t block = umem_alloc(&owner, 100);
  int64_t many = 100;
  umemDLManagedTensorVersioned tensor = {.version = {1, 0},
                                         .manager_ctx = stream,
                                         .deleter = note_late,
                                         .dl_tensor = {.data = (void *)block,
                                                       .device = {umemDLCUDA, 0},
                                                       .ndim = 1,
                                                       .dtype = {0, 8, 1},
                                                       .shape = &many}};
  umemArray *a = umemArray_from_dlpack(&queue, &tensor, &status);
  umemArray_clear(a, &status);
  assert_true(fake_cudart_is_late(stream));
  late_at_end = -1;
  umemArray_release(a);
  printf("late in the deleter: %d\n", late_at_end);
  assert_int_equal(late_at_end, 0);
  umem_free(&owner, block);
}
