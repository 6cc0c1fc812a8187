/* advise.c - umem/advise.h: hints about blocks of every context, and blocks that move. */
#include "backends.h"
#include "cuda_double.h"
#include "failures.h"

static void set_up(void **state UNUSED) { begin_double(); }

static void tear_down(void **state UNUSED) { end_double(); }

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

enum { n = 100000, last = umemAdviceAccessedBy };

static void fill(void *ctx, uintptr_t adr) { assert_ok(umem_set(ctx, adr, 7, n)); }

static void expect_filled(void *ctx, uintptr_t adr) {
  SCOPED_BYTES(unsigned char, bytes, n);
  CONTEXT(umemHost, ram);
  assert_ok(umem_copy_to(ctx, adr, &ram, (uintptr_t)bytes, n));
  assert_ok(umem_synchronize(ctx));
  for (size_t i = 0; i < n; i++) assert_int_equal(bytes[i], 7);
}

/* The hints, as bits, that each kind of memory takes for the CPU and for a GPU. */
static void expect_hints(void *ctx, unsigned for_cpu, unsigned for_gpu) {
  uintptr_t adr = umem_alloc(ctx, n);
  fill(ctx, adr);
  for (int advice = 0; advice <= last; advice++)
    for (int device = UMEM_CPU; device <= 0; device++) {
      unsigned knows = (device == UMEM_CPU ? for_cpu : for_gpu) >> advice & 1;
      umemStatusType status = umem_advise(ctx, adr + 1, n - 1, (umemAdvice)advice, device);
      if (knows && status != umemOK)
        fail_msg("%s", umem_thread_message());
      else if (!knows)
        expect_status(ctx, status, umemNotSupportedError, "knows no hint");
    }
  expect_filled(ctx, adr);
  umem_free(ctx, adr);
}

enum {
  of_ram = 1 << umemAdviceNormal | 1 << umemAdviceSequential | 1 << umemAdviceRandom |
           1 << umemAdviceUnneeded,
  prefetch = 1 << umemAdvicePrefetch,
  of_managed = 1 << umemAdvicePrefetch | 1 << umemAdvicePrefer | 1 << umemAdviceReadMostly |
               1 << umemAdviceAccessedBy
};

TEST(each_memory_takes_its_hints) {
  static struct {
    char const *row;
    unsigned for_cpu, for_gpu;
  } const rows[] = {
      {"host", of_ram | prefetch, of_ram},
      {"host-nodes", of_ram | prefetch, of_ram},
      {"mmap", of_ram | prefetch, of_ram},
      {"shm", of_ram | prefetch, of_ram},
      {"file", of_ram | prefetch, of_ram},
      {"limit(host)", of_ram | prefetch, of_ram},
      {"external(malloc)", of_ram | prefetch, of_ram},
      {"pool(mmap-scratch)", of_ram | prefetch, of_ram},
      {"cuda-managed", of_managed, of_managed},
      {"pool(cuda-managed)", of_managed, of_managed},
      {"cuda", 0, 0},
      {"fake", 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Backend const *row = backend_by_name(rows[i].row);
    umemVirtual *ctx = backend_open(row);
    if (!ctx && row->traits & backendMayLack) {
      umem_thread_clear();
      continue;
    }
    assert_non_null(ctx);
    expect_hints(ctx, rows[i].for_cpu, rows[i].for_gpu);
    backend_close(row, ctx);
  }
}

TEST(hints_that_cannot_be_are_refused) {
  umemHost ram;
  umemCudaManaged managed;
  assert_ok(umemHost_ctor(&ram));
  uintptr_t adr = umem_alloc(&ram, 100);
  assert_ok(umem_advise(&ram, adr, 0, (umemAdvice)99, 0)); /* no bytes */
  expect_status(&ram, umem_advise(&ram, adr, 1, (umemAdvice)(last + 1), 0), umemValueError,
                "there is no advice 8");
  expect_status(&ram, umem_advise(&ram, adr, 1, umemAdviceNormal, -2), umemValueError, "device -2");
  expect_status(&ram, umem_advise(&ram, 0, 1, umemAdviceNormal, 0), umemValueError, "null");
  expect_status(&ram, umem_advise(&ram, adr, SIZE_MAX, umemAdviceNormal, 0), umemValueError,
                "exceed the address space");
  void *gone = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_int_equal(munmap(gone, 1 << 16), 0);
  expect_status(&ram, umem_advise(&ram, (uintptr_t)gone, 100, umemAdviceRandom, 0), umemMemoryError,
                "the kernel refuses the hint \"random\"");
  umem_free(&ram, adr);
  umem_dtor(&ram);

  assert_ok(umemCudaManaged_ctor(&managed, 0, 0));
  adr = umem_alloc(&managed, 100);
  expect_status(&managed, umem_advise(&managed, adr, 100, umemAdvicePrefetch, 63), umemValueError,
                "there is no GPU 63");
  fake_cudart_fail_in("prefetch", 1, umemCudaInvalidValue);
  expect_status(&managed, umem_advise(&managed, adr, 100, umemAdvicePrefetch, 0), umemValueError,
                "cannot follow a hint about 100 bytes");
  umem_free(&managed, adr);
  umem_dtor(&managed);

  fake_cudart_machine()->device[0].no_concurrent_managed = true;
  assert_ok(umemCudaManaged_ctor(&managed, 0, 0));
  adr = umem_alloc(&managed, 100);
  expect_status(&managed, umem_advise(&managed, adr, 100, umemAdvicePrefetch, 0),
                umemNotSupportedError, "follows no hints");
  umem_free(&managed, adr);
  umem_dtor(&managed);
  fake_cudart_machine()->device[0].no_concurrent_managed = false;
}

TEST(a_prefetch_reaches_the_gpu) {
  CONTEXT(umemCudaManaged, managed, 0, 0);
  uintptr_t adr = umem_alloc(&managed, 100);
  unsigned long const before = fake_cudart_calls_of("prefetch"),
                      hints = fake_cudart_calls_of("advise");
  assert_ok(umem_advise(&managed, adr, 100, umemAdvicePrefetch, 0));
  assert_ok(umem_advise(&managed, adr, 100, umemAdvicePrefer, UMEM_CPU));
  assert_int_equal(fake_cudart_calls_of("prefetch") - before, 1);
  assert_int_equal(fake_cudart_calls_of("advise") - hints, 1);
  umem_free(&managed, adr);
}

/* ---- moving ---- */

TEST(blocks_move_between_all_kinds_of_memory) {
  static char const *const rows[] = {
      "host",        "mmap", "file", "cuda", "cuda-async", "cuda-managed", "pool(fake-async)",
      "stats(fake)", "shm"};
  enum { count = sizeof rows / sizeof *rows };
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < count; k++) {
      Backend const *from = backend_by_name(rows[i]), *to = backend_by_name(rows[k]);
      umemVirtual *src = backend_open(from), *dst = backend_open(to);
      if (src && dst) {
        uintptr_t adr = umem_alloc(src, n);
        fill(src, adr);
        uintptr_t moved = umem_move(src, adr, n, dst);
        assert_ok(umem_thread_status());
        expect_filled(dst, moved);
        if (from->records) assert_int_equal(from->records(src).blocks, 0);
        umem_free(dst, moved);
      }
      if (src) backend_close(from, src);
      if (dst) backend_close(to, dst);
      umem_thread_clear();
    }
}

TEST(a_block_that_cannot_move_is_as_it_was) {
  CONTEXT(umemHost, ram);
  CONTEXT(umemLimit, small, &ram, 100);
  uintptr_t adr = umem_alloc(&ram, n);
  fill(&ram, adr);
  assert_int_equal(umem_move(&ram, adr, n, &small), 0);
  expect_failure(&small, umemMemoryError, "the limit allows");
  expect_filled(&ram, adr);

  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultCopies, plan.nth = 1, plan.times = 1;
  CONTEXT(umemFault, fault, &ram, &plan); /* whose copies fail */
  assert_int_equal(umem_move(&ram, adr, n, &fault), 0);
  expect_failure(&fault, umemMemoryError, "a fault on purpose");
  expect_filled(&ram, adr);
  umem_free(&ram, adr);
}
