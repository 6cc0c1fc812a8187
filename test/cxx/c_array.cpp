/* c_array.cpp - umemArray in C++: typed views, and conversion to and from umem::Array. */
#include "typed.hpp"

#include <umem/c_array.hpp>

using umem::CArray;

namespace {

/* A new array in RAM whose elements are not initialised. */
template <class T> CArray make(umemVirtual *context, std::vector<std::int64_t> const &shape) {
  umemStatusType status = umemOK;
  CArray array(umemArray_create(context, umem::element_type<T>, static_cast<int>(shape.size()),
                                shape.data(), nullptr, &status));
  EXPECT_EQ(status, umemOK) << umem_thread_message();
  return array;
}

} // namespace

TEST(CArray, knows_the_types_of_elements) {
  EXPECT_EQ(umem::element_type<bool>, umemBool);
  EXPECT_EQ(umem::element_type<signed char>, umemInt8);
  EXPECT_EQ(umem::element_type<unsigned short>, umemUInt16);
  EXPECT_EQ(umem::element_type<int const>, umemInt32);
  EXPECT_EQ(umem::element_type<std::int64_t>, umemInt64);
  EXPECT_EQ(umem::element_type<std::uint64_t>, umemUInt64);
  EXPECT_EQ(umem::element_type<float>, umemFloat);
  EXPECT_EQ(umem::element_type<double>, umemDouble);
  EXPECT_EQ(umem::element_type<std::complex<float>>, umemComplexFloat);
  EXPECT_EQ(umem::element_type<std::complex<double> const>, umemComplexDouble);
  EXPECT_EQ(umem::element_type<long double>, 0u);
  EXPECT_EQ(umem::element_type<Item>, 0u);
  EXPECT_EQ(umem::element_type<int *>, 0u);
}

TEST(CArray, counts_references) {
  umem::Host host;
  CArray first = make<int>(host.c_context(), {3}), second = first, empty;
  EXPECT_EQ(first.get(), second.get());
  EXPECT_FALSE(empty);
  EXPECT_TRUE(first);
  empty = std::move(first);
  EXPECT_FALSE(first); // NOLINT: that is what is tested
  second = CArray();
  umemArray *given = empty.release();
  EXPECT_FALSE(empty);
  CArray shared = CArray::share(given);
  umemArray_release(given);
  EXPECT_EQ(umemArray_extent(shared.get(), 0), 3);
}

TEST(CArray, has_views_of_every_rank) {
  umem::Host host;
  for_each_rank([&](auto rank) {
    constexpr int N = rank.value;
    Extents<N> const extents = first_of<N>(2, 3, 1, 2, 4);
    std::vector<std::int64_t> shape(extents.begin(), extents.end());
    CArray array = make<float>(host.c_context(), shape);
    View<float, N> view = umem::view<float, N>(array);
    EXPECT_EQ(view.extents, extents);
    EXPECT_TRUE(view.is_contiguous());
    EXPECT_EQ(reinterpret_cast<umem::address>(view.data), umemArray_address(array.get()));
    EXPECT_EQ((umem::view<float const, N>(array).data), view.data);
    EXPECT_EQ(umem::dynamic_view<float>(array).template to<N>().extents, extents);
    EXPECT_THROW((umem::view<float, N + 1>(array)), umem::value_error);
  });
}

TEST(CArray, has_views_with_strides_of_any_sign) {
  umem::Host host;
  umemStatusType status = umemOK;
  CArray array = make<int>(host.c_context(), {3, 4});
  View<int, 2> all = umem::view<int, 2>(array);
  for (umem::index_t i = 0; i < 12; i++) all[i] = static_cast<int>(i);
  CArray part(umemArray_slice(array.get(), 1, 3, 2, -2, &status));
  View<int const, 2> view = umem::view<int const, 2>(part);
  EXPECT_EQ(view(0, 0), 3);
  EXPECT_EQ(view(2, 1), 9);
  EXPECT_EQ(view.strides, (Extents<2>(4, -2)));
  EXPECT_EQ(umem::dynamic_view<int const>(part).at({2, 1}), 9);
}

TEST(CArray, refuses_views_of_something_else) {
  umem::Host host;
  umemStatusType status = umemOK;
  CArray array = make<float>(host.c_context(), {2, 3});
  EXPECT_THROWS((umem::view<double, 2>(array)), umem::type_error,
                "an array of float32 has no view of float64");
  EXPECT_THROWS((umem::view<float, 1>(array)), umem::value_error,
                "an array of rank 2 has no view of rank 1");
  EXPECT_THROWS((umem::view<float, 2>(CArray())), umem::value_error,
                "a view of an array that is NULL");
  EXPECT_THROWS((umem::device_view<float, 2>(array)), umem::not_supported_error,
                "umemArray_device_pointer: a GPU cannot write to the memory of Host");
  umemArray_set_read_only(array.get(), true, &status);
  EXPECT_THROWS((umem::view<float, 2>(array)), umem::not_supported_error,
                "umemArray_host_pointer: the array is read-only");
  EXPECT_THROWS((umem::dynamic_view<float>(array)), umem::not_supported_error,
                "umemArray_host_pointer: the array is read-only");
  EXPECT_NO_THROW((umem::view<float const, 2>(array)));

  char bytes[64];
  std::int64_t const shape[] = {3}, strides[] = {6};
  CArray uneven(umemArray_borrow(host.c_context(), reinterpret_cast<umem::address>(bytes),
                                 umemFloat, 1, shape, strides, &status));
  EXPECT_THROWS((umem::view<float, 1>(uneven)), umem::value_error,
                "stride 6 of the array is no multiple of the 4 bytes of an element");
  CArray odd(umemArray_borrow(host.c_context(), reinterpret_cast<umem::address>(bytes) + 1,
                              umemFloat, 1, shape, nullptr, &status));
  EXPECT_THROWS((umem::view<float, 1>(odd)), umem::value_error,
                "the first element of the array is not aligned as its type");
  EXPECT_EQ(status, umemOK);
}

TEST(CArray, ignores_strides_of_one_element) {
  umem::Host host;
  umemStatusType status = umemOK;
  double numbers[4] = {1, 2, 3, 4};
  std::int64_t const shape[] = {1, 4}, strides[] = {12, 8};
  CArray array(umemArray_borrow(host.c_context(), reinterpret_cast<umem::address>(numbers),
                                umemDouble, 2, shape, strides, &status));
  EXPECT_EQ((umem::view<double, 2>(array)(0, 3)), 4);
  EXPECT_EQ(umem::element_type<char>, umemChar);
  EXPECT_EQ(status, umemOK);
}

/* ---- conversions ---- */

TEST(CArray, shares_the_memory_of_an_array) {
  umem::Array<double, 2> u({3, 4});
  fill(umem::on_host, *u.host(umem::discard), 1.0);
  CArray c = umem::c_array(u, umem::write);
  EXPECT_EQ(umemArray_address(c.get()), u.adr());
  EXPECT_EQ(umemArray_extent(c.get(), 1), 4);
  EXPECT_FALSE(umemArray_is_read_only(c.get()));
  umem::view<double, 2>(c)(2, 3) = 7;
  EXPECT_THROW(static_cast<void>(u.host(umem::write)), umem::locked_error);
  c = CArray();
  EXPECT_EQ(u.get(2, 3), 7);
}

TEST(CArray, leaves_ghost_cells_out) {
  umem::Array<int, 2> u({2, 3}, umem::Host(), {{1, 1}});
  fill(umem::on_host, u.host(umem::discard)->with_ghosts(), 5);
  u.set(6, 1, 2);
  CArray c = umem::c_array(u, umem::read);
  EXPECT_TRUE(umemArray_is_read_only(c.get()));
  EXPECT_FALSE(umemArray_is_c_contiguous(c.get()));
  EXPECT_EQ(umemArray_elements(c.get()), 6);
  EXPECT_EQ((umem::view<int const, 2>(c)(1, 2)), 6);
  umemStatusType status = umemOK;
  umemArray_set_read_only(c.get(), false, &status);
  EXPECT_EQ(status, umemNotSupportedError);
  umem_thread_clear();
}

TEST(CArray, keeps_the_memory_of_an_array_alive) {
  CArray c;
  {
    umem::Array<int, 1> const u = umem::Array<int, 1>::full({3}, 4);
    c = umem::c_array(u);
  }
  EXPECT_EQ((umem::view<int const, 1>(c)(2)), 4);
}

/* The host side is as stale as with any guard: it is brought back after the last reference has
 * gone. */
TEST(CArray, is_the_device_side) {
  umem::Cuda gpu;
  umem::Array<int, 1> u({4}, gpu);
  fill(umem::on_host, *u.host(umem::discard), 3);
  CArray c = umem::c_array(u, umem::write);
  EXPECT_EQ(umemArray_context(c.get()), gpu.c_context());
  EXPECT_EQ((umem::device_view<int, 1>(c).data), reinterpret_cast<int *>(u.adr()));
  EXPECT_THROW((umem::view<int, 1>(c)), umem::not_supported_error);
  EXPECT_THROW(static_cast<void>(u.host(umem::read)), umem::locked_error);
  umemStatusType status = umemOK;
  int nine = 9;
  umemArray_fill(c.get(), &nine, &status);
  EXPECT_EQ(status, umemOK);
  umem_clear_status(gpu.c_context());
  c = CArray();
  EXPECT_EQ((*u.host(umem::read))(3), 9);
}

TEST(CArray, is_none_of_a_file) {
  umem::File file = umem::File::scratch();
  umem::Array<int, 1> u({4}, file);
  EXPECT_THROW(static_cast<void>(umem::c_array(u, umem::write)), umem::not_supported_error);
  EXPECT_NO_THROW(u.set(3, 1));
}

TEST(CArray, becomes_an_array) {
  umem::Array<int, 2> u;
  {
    umem::Array<int, 2> made = umem::Array<int, 2>::full({2, 3}, 8);
    u = umem::to_array<int, 2>(umem::c_array(made, umem::write));
  }
  EXPECT_EQ(u.get(1, 2), 8);
  u.set(1, 1, 2);
  umem::Array<int const, 2> reader = umem::to_array<int const, 2>(umem::c_array(u, umem::read));
  EXPECT_EQ(reader.get(1, 2), 1);
}

TEST(CArray, becomes_no_array_of_another_kind) {
  umem::Host host;
  umemStatusType status = umemOK;
  CArray array = make<int>(host.c_context(), {2, 3});
  CArray every_second(umemArray_slice(array.get(), 1, 0, 2, 2, &status));
  EXPECT_THROWS((umem::to_array<int, 2>(every_second)), umem::value_error,
                "an array with gaps between its elements is no umem::Array: copy it first");
  EXPECT_THROW((umem::to_array<int, 1>(array)), umem::value_error);
  EXPECT_THROW((umem::to_array<float, 2>(array)), umem::type_error);
  umemArray_set_read_only(array.get(), true, &status);
  EXPECT_THROW((umem::to_array<int, 2>(array)), umem::not_supported_error);
  EXPECT_NO_THROW((umem::to_array<int const, 2>(array)));
}

TEST(CArray, keeps_the_order_of_an_array_both_ways) {
  umem::Array<int, 2> u({2, 3}, umem::column_major);
  for (int n = 0; n < 6; n++) u.set(n, n / 3, n % 3);
  {
    CArray c = umem::c_array(u, umem::write);
    EXPECT_EQ(umemArray_stride(c.get(), 0), 4);
    EXPECT_EQ(umemArray_stride(c.get(), 1), 8);
    EXPECT_EQ((umem::view<int, 2>(c)(1, 2)), 5);
    umem::Array<int, 2> back = umem::to_array<int, 2>(c);
    EXPECT_EQ(back.order(), umem::column_major);
    EXPECT_EQ(back.get(1, 0), 3);
    back.set(-3, 1, 0);
  }
  EXPECT_EQ(u.get(1, 0), -3);
}

TEST(CArray, has_no_elements_but_a_shape) {
  umem::Array<int, 2> u({0, 3});
  CArray c = umem::c_array(u, umem::write);
  EXPECT_EQ(umemArray_elements(c.get()), 0);
  EXPECT_TRUE((umem::view<int, 2>(c)).is_empty());
  EXPECT_EQ((umem::to_array<int, 2>(c).extents()), (Extents<2>(0, 3)));
}
