/* kernels_order.cpp - what is queued for an array is done before a kernel on another stream sees
 * it. */
#include "arrays.hpp"

#include <umem/detail/operand.hpp>

namespace {

using umem::DevicePlace;
using Doubles = Array<double, 1>;

/* Contexts of GPUs, and a place on the same one whose stream is nobody's: a test that only opens
 * arrays for it queues nothing there. */
struct KernelsOrder : EachPlace {
  void SetUp() override {
    EachPlace::SetUp();
    if (!place) return;
    home = umem::Place(place);
    if (!home.is_device()) GTEST_SKIP() << "no kernels work there";
    elsewhere = umem::on_device(std::uintptr_t(0x1000), home.device().device);
  }

  /* The elements as a kernel elsewhere would find them now: nothing queued is waited for. */
  std::vector<double> found(umem::View<double const, 1> const &view) const {
    std::vector<double> elements(static_cast<std::size_t>(view.size()));
    umem::copy(umem::Cuda(elsewhere.device), reinterpret_cast<umem::address>(view.data),
               elements.data(), elements.size() * sizeof(double));
    return elements;
  }

  /* Expects that a kernel elsewhere finds 1, 2, ... */
  template <class A, class Access> void expect_numbers(A &operand, Access access) const {
    std::vector<double> all(1000);
    for (std::size_t n = 0; n < all.size(); n++)
      all[n] = element<double>(static_cast<umem::index_t>(n) + 1);
    umem::detail::with_views(
        elsewhere, [&](auto const &view) { EXPECT_EQ(found(view), all); },
        umem::detail::use(operand, access));
  }

  umem::Place home;
  DevicePlace elsewhere;
};
FOR_EACH_PLACE(KernelsOrder);

TEST_P(KernelsOrder, a_transfer_comes_first) {
  Doubles array({1000}, place);
  number(array);
  expect_numbers(static_cast<Doubles const &>(array), umem::read);
}

TEST_P(KernelsOrder, a_copy_comes_first) {
  Doubles source({1000}, place), array({1000}, place);
  number(source);
  source.sync_to_device();
  copy(source.part(), array.part());
  expect_numbers(array, umem::write);
}

TEST_P(KernelsOrder, a_transfer_for_a_guard_comes_first) {
  Doubles array({1000}, place);
  number(array);
  auto guard = array.device(umem::read);
  EXPECT_TRUE(umem::detail::settled(elsewhere, guard).wait);
  expect_numbers(guard, umem::read);
  auto at = umem::guard_at(elsewhere, static_cast<Doubles const &>(array), umem::read);
  expect_numbers(at, umem::read);
}

TEST_P(KernelsOrder, a_stream_of_another_GPU_is_another_stream) {
  Doubles array({10}, place);
  DevicePlace other = home.device();
  other.device++;
  EXPECT_TRUE(umem::detail::settled(other, array).wait);
}

TEST_P(KernelsOrder, loops_on_the_host_refuse_guards_of_the_device) {
  auto array = Doubles::zeros({10}, place);
  auto guard = array.device(umem::read);
  if (place.can(umemCpuReadable))
    EXPECT_NO_THROW(umem::detail::settled(umem::on_host, guard));
  else
    EXPECT_THROW(umem::detail::settled(umem::on_host, guard), umem::value_error);
  guard.release();
  EXPECT_THROW(umem::detail::settled(elsewhere, guard), umem::moved_from_error);
}

TEST_P(KernelsOrder, a_kernel_elsewhere_is_waited_for) {
  Doubles array({10}, place);
  EXPECT_TRUE(umem::detail::settled(elsewhere, array).wait);
  DevicePlace own = home.device();
  EXPECT_EQ(umem::detail::settled(umem::on_device(own.stream), array).wait, own.wait);
  EXPECT_EQ(umem::detail::settled(umem::on_device(own.stream), array).device, own.device);
}

} // namespace
