/* array_failures.cpp - loops, copies and allocations that fail: what the other side of an array
 * holds stays current, on every context. */
#include "arrays.hpp"

#include <umem/adaptors.hpp>
#include <umem/detail/operand.hpp>
#include <umem/reduce_along.hpp>

/* Of fake/cudart.h, which is no C++. */
extern "C" void fake_cudart_fail(unsigned long nth, int error);

namespace {

using Doubles = Array<double, 1>;

struct Failure : std::runtime_error {
  Failure() : std::runtime_error("a failure") {}
};

/* Fails for the number 5. */
struct FailAtFive {
  double operator()(double x) const { return x == 5 ? throw Failure() : -x; }
  double operator()(double x, double) const { return (*this)(x); }
};

struct FailingCall : EachPlace {
  bool has_mirror() const { return !shares_memory(place); }

  /* An array of numbered elements that are current on one side alone, where there are two. */
  Doubles numbered(Side side, umem::ArrayOptions<1> const &options = {}) const {
    Doubles array(10, place, options);
    number(array);
    if (side == Side::device) array.release_host();
    return array;
  }

  /* Without asking for the elements, which would need a mirror. */
  void expect_current_device(Doubles const &array) const {
    EXPECT_EQ(array.current(), Side::device);
    for (umem::index_t n = 0; n < 10; n++)
      EXPECT_EQ(memory_of(array)[static_cast<std::size_t>(n)], static_cast<double>(n + 1));
  }

  /* That the array is as numbered has made it, on that side and nowhere else. */
  void expect_kept(Doubles const &array, Side side) const {
    EXPECT_EQ(array.current(), has_mirror() ? side : Side::both);
    if (has_mirror() && side == Side::device) expect_current_device(array);
    expect_numbered(array);
  }

  /* A place of loops on this context's device, whose stream is nobody's. */
  bool has_kernels() const { return umem::Place(place).is_device(); }
  umem::DevicePlace elsewhere() const {
    return umem::on_device(std::uintptr_t(0x1000), umem::Place(place).device().device);
  }
};
FOR_EACH_PLACE(FailingCall);

/* ---- loops on the host ---- */

TEST_P(FailingCall, on_the_host_leaves_the_device_current) {
  if (!has_mirror()) GTEST_SKIP() << "one side is all";
  Doubles in(10, umem::Host());
  Array<double, 2> table({10, 3}, umem::Host());
  number(in);
  number(table);
  for (umem::HostPlace here : {umem::on_host, umem::on_host_threads(3)}) {
    Doubles out = numbered(Side::device);
    EXPECT_THROW(umem::transform(here, in, out, FailAtFive()), Failure);
    expect_kept(out, Side::device);
    out = numbered(Side::device);
    EXPECT_THROW(umem::transform(here, in, in, out, FailAtFive()), Failure);
    expect_kept(out, Side::device);
    out = numbered(Side::device);
    EXPECT_THROW(umem::transform_reduce_along(here, table, 1, out, 0.0, umem::plus(), FailAtFive()),
                 Failure);
    expect_kept(out, Side::device);
    umem::transform(here, in, out, [](double x) { return x + 1; });
    EXPECT_EQ(out.current(), Side::host);
    expect_numbered(out, 2);
  }
}

/* What a loop changes in place stays as far as it came: f has seen it. */
TEST_P(FailingCall, that_changes_elements_on_the_host_leaves_them_so) {
  Doubles array = numbered(Side::device);
  EXPECT_THROW(umem::for_each(umem::on_host, array, [](double &x) { x = FailAtFive()(x); }),
               Failure);
  for (umem::index_t n = 0; n < 10; n++) {
    auto value = static_cast<double>(n + 1);
    EXPECT_EQ(array.get(n), n < 4 ? -value : value);
  }
}

/* ---- loops on GPUs, as far as the host decides ---- */

/* As a launch that fails, or the memory that a reduction takes for its parts. */
template <class A, class Access>
void open_and_fail(umem::DevicePlace gpu, A &array, Access access) {
  EXPECT_THROW(umem::detail::with_views(
                   gpu, [](auto const &) { throw Failure(); }, umem::detail::use(array, access)),
               Failure);
}

TEST_P(FailingCall, on_a_gpu_leaves_the_host_current) {
  if (!has_kernels() || !has_mirror()) GTEST_SKIP() << "no kernels work there";
  for (umem::DevicePlace gpu : {umem::Place(place).device(), elsewhere()}) {
    Doubles array = numbered(Side::host);
    open_and_fail(gpu, array, umem::discard);
    expect_kept(array, Side::host);
    array.sync_to_device();
    EXPECT_EQ(array.current(), Side::both);
    open_and_fail(gpu, array, umem::discard);
    expect_kept(array, Side::host); /* the device may have been written */
    open_and_fail(gpu, array, umem::write);
    expect_kept(array, Side::host);
    array.release_host(); /* now the device alone has the elements */
    open_and_fail(gpu, array, umem::write);
    EXPECT_EQ(array.current(), Side::device);
    expect_numbered(array);
    Doubles const &same = array;
    open_and_fail(gpu, same, umem::read);
    EXPECT_EQ(array.current(), Side::both);
  }
}

TEST_P(FailingCall, after_another_failure_is_undone_as_well) {
  if (!has_kernels() || !has_mirror()) GTEST_SKIP() << "no kernels work there";
  Doubles array = numbered(Side::host);
  struct AtTheEnd { /* of a scope that an exception leaves */
    umem::DevicePlace gpu;
    Doubles &array;
    ~AtTheEnd() {
      umem::detail::with_views(
          gpu, [](auto const &) {}, umem::detail::use(array, umem::discard));
      EXPECT_EQ(array.current(), Side::device) << "this loop has not failed";
      number(array);
      open_and_fail(gpu, array, umem::discard);
    }
  };
  auto fail = [&] {
    AtTheEnd end{elsewhere(), array};
    throw Failure();
  };
  EXPECT_THROW(fail(), Failure);
  expect_kept(array, Side::host);
}

/* Each call of CUDA that opening an array takes, one after the other. */
TEST_P(FailingCall, of_cuda_leaves_the_host_current) {
  if (!has_kernels() || !has_mirror()) GTEST_SKIP() << "no kernels work there";
  if (std::getenv("UMEM_TEST_GPU")) GTEST_SKIP() << "needs the double of the runtime";
  int const unknown = 999; /* cudaErrorUnknown */
  bool failed = true;
  for (unsigned long nth = 1; failed; nth++) {
    ASSERT_LT(nth, 100u);
    Doubles array = numbered(Side::host);
    array.sync_to_device();
    number(array);
    umem::DevicePlace gpu = elsewhere();
    failed = false;
    fake_cudart_fail(nth, unknown);
    try {
      auto guard = umem::guard_at(gpu, array, umem::discard);
    } catch (umem::error const &) {
      failed = true;
    }
    fake_cudart_fail(0, 0);
    if (failed) expect_kept(array, Side::host);
    forget_failure();
  }
}

/* ---- the mirror ---- */

TEST_P(FailingCall, to_allocate_the_mirror_leaves_the_device_current) {
  if (!has_mirror()) GTEST_SKIP() << "there is no mirror";
  umem::Fault host((umem::Host()));
  umem::ArrayOptions<1> options{{}, host};
  Doubles in(10, umem::Host());
  number(in);
  auto out = numbered(Side::device, options);
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.nth = 1;
  plan.times = UINT64_MAX;
  host.set_plan(plan);
  EXPECT_THROW(static_cast<void>(out.host(umem::discard)), umem::memory_error);
  expect_current_device(out);
  EXPECT_THROW(static_cast<void>(out.host(umem::write)), umem::memory_error);
  EXPECT_THROW(static_cast<void>(out.host(umem::read)), umem::memory_error);
  EXPECT_THROW(umem::transform(umem::on_host, in, out, FailAtFive()), umem::memory_error);
  EXPECT_THROW(umem::fill(umem::on_host, out, 7), umem::memory_error);
  EXPECT_THROW(umem::convert(umem::on_host, in, out), umem::memory_error);
  expect_current_device(out);
  host.set_plan(UMEM_FAULT_PLAN_INIT);
  umem_clear_status(host.c_context());
  expect_kept(out, Side::device);
}

/* ---- copies ---- */

/* Copies whose source fails to be read, by each way into an array. */
TEST_P(FailingCall, to_copy_leaves_the_host_current) {
  umem::Fault from((umem::File::scratch()));
  Doubles source = Doubles::full(10, 7, from);
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultCopyTo;
  plan.status = umemIOError;
  plan.nth = 1;
  plan.times = UINT64_MAX;
  from.set_plan(plan);
  for (bool synchronised : {false, true}) {
    Doubles target = numbered(Side::host);
    auto expect_same = [&] { expect_kept(target, Side::host); };
    auto prepare = [&] {
      if (synchronised) target.sync_to_device();
    };
    prepare();
    EXPECT_THROW(target = source, umem::io_error);
    expect_same();
    prepare();
    EXPECT_THROW(copy(source.part(), target.part()), umem::io_error);
    expect_same();
    prepare();
    EXPECT_THROW(source.copy_to(target), umem::io_error);
    expect_same();
    if (!synchronised) continue; /* else what is copied goes into the side that is current alone */
    prepare();
    EXPECT_THROW(copy(source.part().slice(0, 0, 4), target.part().slice(0, 2, 6)), umem::io_error);
    expect_same();
  }
  umem_clear_status(from.c_context());
}

} // namespace
