/* arrow.cpp - umem/arrow.hpp: owners of columns, and arrays as columns. */
#include "places.h"

#include <umem/arrow.hpp>

TEST(Arrow, columns_go_out_and_in) {
  umem::Host host;
  auto u = umem::Array<double, 1>::full({3}, 2.5);
  umem::ArrowColumn column = umem::to_arrow(umem::c_array(u, umem::read));
  EXPECT_STREQ(column.schema()->format, "g");
  umem::ArrowColumn moved = std::move(column);
  EXPECT_FALSE(column);
  EXPECT_TRUE(moved);
  umem::CArray array = umem::from_arrow(host.c_context(), std::move(moved));
  EXPECT_FALSE(moved);
  EXPECT_TRUE(umemArray_is_read_only(array.get()));
  auto v = umem::to_array<double const, 1>(array, host);
  EXPECT_EQ(v.get(2), 2.5);
}

TEST(Arrow, missing_elements_are_a_second_array) {
  umem::Host host;
  auto u = umem::Array<int, 1>::full({3}, 7);
  auto there = umem::Array<bool, 1>::full({3}, true);
  there.set(false, 1);
  umemArrowOptions options = UMEM_ARROW_OPTIONS_INIT;
  umem::CArray flags = umem::c_array(there, umem::read);
  options.validity = flags.get();
  auto column = [&] { return umem::to_arrow(umem::c_array(u, umem::read), options); };
  EXPECT_THROW(static_cast<void>(umem::from_arrow(host.c_context(), column())),
               umem::not_supported_error);
  umem::CArray validity;
  umem::CArray array = umem::from_arrow(host.c_context(), column(), &validity);
  auto found = umem::to_array<bool const, 1>(validity, host);
  EXPECT_TRUE(found.get(0) && !found.get(1) && found.get(2));
  umem::CArray whole =
      umem::from_arrow(host.c_context(), umem::to_arrow(umem::c_array(u, umem::read)), &validity);
  EXPECT_EQ(validity.get(), nullptr);
}

TEST(Arrow, a_column_that_nobody_moves_is_released) {
  auto u = umem::Array<float, 2>::full({2, 3}, 1);
  EXPECT_THROW(umem::to_arrow(umem::c_array(u, umem::read)), umem::value_error);
  auto w = umem::Array<float, 1>::full({3}, 1);
  {
    umem::ArrowColumn column = umem::to_arrow(umem::c_array(w, umem::read));
    column = umem::ArrowColumn();
    EXPECT_FALSE(column);
  }
  w.set(2, 0); /* nothing uses it any more */
  EXPECT_EQ(w.get(0), 2);
}
