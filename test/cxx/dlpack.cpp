/* dlpack.cpp - umem/dlpack.hpp: owners of tensors, and arrays of every context as tensors. */
#include "places.h"

#include <umem/dlpack.hpp>

namespace {

int deleted = 0;
void count(umemDLManagedTensorVersioned *) { deleted++; }
void count_unversioned(umemDLManagedTensor *) { deleted++; }

std::int64_t three[] = {3};
double numbers[] = {1, 2, 3};

umemDLTensor of_numbers() {
  deleted = 0;
  umemDLTensor dl{};
  dl.data = numbers;
  dl.device.device_type = umemDLCPU;
  dl.ndim = 1;
  dl.dtype = {umemCodeFloat, 64, 1};
  dl.shape = three;
  return dl;
}

umemDLManagedTensorVersioned versioned_of_numbers() {
  umemDLManagedTensorVersioned tensor{};
  tensor.version.major = 1;
  tensor.deleter = count;
  tensor.dl_tensor = of_numbers();
  return tensor;
}

} // namespace

/* ---- owners ---- */

TEST(DLPack, ends_a_tensor_unless_it_is_given_away) {
  umem::Host host;
  umemDLManagedTensorVersioned foreign = versioned_of_numbers();
  foreign.version.major = 2;
  umem::DLPackTensor tensor(&foreign), empty;
  EXPECT_FALSE(empty);
  EXPECT_THROW(static_cast<void>(umem::from_dlpack(host.c_context(), tensor)),
               umem::not_supported_error);
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(tensor.get(), &foreign);
  umem::DLPackTensor other = std::move(tensor);
  EXPECT_FALSE(tensor); // NOLINT(bugprone-use-after-move): that is what is tested
  tensor = std::move(other);
  EXPECT_EQ(tensor.release(), &foreign);
  EXPECT_FALSE(tensor);
  EXPECT_EQ(deleted, 0);
  tensor = umem::DLPackTensor(&foreign);
  tensor = umem::DLPackTensor();
  EXPECT_EQ(deleted, 1);
  EXPECT_THROW(static_cast<void>(umem::from_dlpack(host.c_context(), umem::DLPackTensor(&foreign))),
               umem::not_supported_error);
  EXPECT_EQ(deleted, 2);
  EXPECT_THROW(umem::to_dlpack(umem::CArray()), umem::value_error);
  EXPECT_THROW(umem::to_dlpack_unversioned(umem::CArray()), umem::value_error);
}

TEST(DLPack, takes_tensors_of_both_forms) {
  umem::Host host;
  umemDLManagedTensorVersioned versioned = versioned_of_numbers();
  umemDLManagedTensor unversioned{of_numbers(), nullptr, count_unversioned};
  {
    umem::CArray one = umem::from_dlpack(host.c_context(), umem::DLPackTensor(&versioned));
    umem::UnversionedDLPackTensor tensor(&unversioned);
    umem::CArray two = umem::from_dlpack(host.c_context(), tensor);
    EXPECT_FALSE(tensor);
    EXPECT_EQ((umem::view<double, 1>(one)(2)), 3);
    EXPECT_EQ(umemArray_address(one.get()), umemArray_address(two.get()));
    umem::UnversionedDLPackTensor out = umem::to_dlpack_unversioned(two);
    EXPECT_EQ(out.get()->dl_tensor.data, numbers);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 2);
}

/* ---- umem::Array ---- */

TEST(DLPack, describes_an_array_without_an_owner) {
  auto array = umem::Array<double, 2>::full({2, 3}, 2.5);
  umem::CArray handle = umem::c_array(array, umem::write);
  umemDLTensor dl = umem::describe_dlpack(handle);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(dl.data), umemArray_address(handle.get()));
  EXPECT_EQ(dl.strides[0], 3);
  EXPECT_EQ(dl.strides[1], 1);
  EXPECT_THROW(umem::describe_dlpack(handle, 1), umem::value_error);
}

TEST(DLPack, makes_an_array_that_keeps_tensor_and_context) {
  umemDLManagedTensorVersioned foreign = versioned_of_numbers();
  umem::Array<double, 1> array =
      umem::from_dlpack<double, 1>(umem::Host(), umem::DLPackTensor(&foreign));
  array.set(7, 0);
  static_cast<void>(array.device(umem::read)); /* what the host side has goes to the memory */
  EXPECT_EQ(numbers[0], 7);
  numbers[0] = 1;
  EXPECT_EQ(deleted, 0);
  array = umem::Array<double, 1>();
  EXPECT_EQ(deleted, 1);
}

TEST(DLPack, ends_a_tensor_that_is_no_such_array) {
  umem::Host host;
  umemDLManagedTensorVersioned foreign = versioned_of_numbers();
  EXPECT_THROW((umem::from_dlpack<float, 1>(host, umem::DLPackTensor(&foreign))), umem::type_error);
  EXPECT_EQ(deleted, 1);
  EXPECT_THROW((umem::from_dlpack<double, 2>(host, umem::DLPackTensor(&foreign))),
               umem::value_error);
  EXPECT_EQ(deleted, 2);
  foreign.flags = UMEM_DLPACK_READ_ONLY;
  EXPECT_THROW((umem::from_dlpack<double, 1>(host, umem::DLPackTensor(&foreign))),
               umem::not_supported_error);
  EXPECT_EQ(deleted, 3);
  EXPECT_EQ((umem::from_dlpack<double const, 1>(host, umem::DLPackTensor(&foreign)).get(2)), 3);
  EXPECT_EQ(deleted, 4);
}

class DLPackOfPlace : public EachPlace {};

/* The tensor of an array shares the memory of its device side, locks the host side, and outlives
 * the array. */
TEST_P(DLPackOfPlace, shares_memory_and_owner) {
  auto u =
      std::make_unique<umem::Array<double, 2>>(umem::Array<double, 2>::full({2, 3}, 2.5, place));
  if (place.can(umemOffsets)) {
    EXPECT_THROW(umem::to_dlpack(*u, umem::write), umem::not_supported_error);
    return;
  }
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  umem::DLPackTensor tensor;
  try {
    tensor = umem::to_dlpack(*u, umem::write);
  } catch (umem::not_supported_error const &) { /* memory that nobody else can use */
    options.copy = umemDLCopyIfNeeded;
    umem_clear_status(place.c_context());
    tensor = umem::to_dlpack(*u, umem::write, options);
    EXPECT_EQ(tensor.get()->flags, UMEM_DLPACK_IS_COPIED);
    EXPECT_EQ(static_cast<double *>(tensor.get()->dl_tensor.data)[5], 2.5);
    return;
  }
  EXPECT_EQ(tensor.get()->flags, 0u);
  EXPECT_THROW(u->set(1, 0, 0), umem::locked_error);
  u.reset();
  umem::Array<double, 2> v = umem::from_dlpack<double, 2>(place, std::move(tensor));
  EXPECT_EQ(v.get(1, 2), 2.5);
  EXPECT_EQ(umem::to_dlpack(std::as_const(v)).get()->flags, UMEM_DLPACK_READ_ONLY);
  EXPECT_EQ(umem::to_dlpack(v, umem::read).get()->flags, UMEM_DLPACK_READ_ONLY);
  v.set(4, 1, 2); /* no tensor locks it any more */
  EXPECT_EQ(v.get(1, 2), 4);
}

FOR_EACH_PLACE(DLPackOfPlace);
