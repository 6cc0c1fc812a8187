// dlpack.cpp - umem/dlpack.hpp: owners of tensors.
#include <gtest/gtest.h>
#include <umem/dlpack.hpp>

namespace {

int deleted = 0;
void count(umemDLManagedTensorVersioned *) { deleted++; }

class Tensors : public testing::Test {
protected:
  Tensors() { umemHost_ctor(&host); }
  ~Tensors() override { umem_dtor(&host); }
  umemHost host{};
};

TEST_F(Tensors, go_out_and_in_without_a_copy) {
  std::int64_t const shape[] = {3};
  umemStatusType status = umemOK;
  umem::CArray a(umemArray_zeros(&host, umemDouble, 1, shape, nullptr, &status));
  umem::DLPackTensor tensor = umem::to_dlpack(a);
  umem::CArray b = umem::from_dlpack(&host, std::move(tensor));
  EXPECT_EQ(umemArray_address(a.get()), umemArray_address(b.get()));
  EXPECT_FALSE(tensor); // NOLINT(bugprone-use-after-move): that it is empty is the test
  umem::view<double, 1>(b.get())(1) = 4;
  EXPECT_EQ((umem::view<double const, 1>(a.get())(1)), 4);
}

TEST_F(Tensors, are_ended_unless_they_are_taken) {
  umemDLManagedTensorVersioned foreign{};
  foreign.deleter = count;
  foreign.version.major = 2;
  deleted = 0;
  umem::DLPackTensor tensor(&foreign);
  EXPECT_THROW(umem::from_dlpack(&host, tensor), umem::error);
  EXPECT_EQ(deleted, 0);
  EXPECT_EQ(tensor.get(), &foreign);
  tensor = umem::DLPackTensor();
  EXPECT_EQ(deleted, 1);
  umem::DLPackTensor other(&foreign);
  EXPECT_EQ(other.release(), &foreign);
  EXPECT_THROW(umem::to_dlpack(umem::CArray()), umem::value_error);
  EXPECT_EQ(deleted, 1);
}

} // namespace
