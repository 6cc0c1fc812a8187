/* format.cpp - std::format of arrays, parts, views, guards and locks: the text of operator <<.
 * C++20. Where the standard library has no <format>, that of format_stand_in, which has what
 * format.hpp uses. */
#include <umem.hpp>
#include <umem/array_of.hpp>
#include <umem/format.hpp>

#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace {

template <class A> void expect_text(A const &elements) {
  std::ostringstream stream;
  stream << elements;
  std::string const text = stream.str();
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(std::format("u = {}.", elements), "u = " + text + ".");
  EXPECT_EQ(std::format("{:>80}", elements), std::string(80 - text.size(), ' ') + text);
}

TEST(Format, is_the_text_of_streams) {
  auto array = umem::array_of({1.5, -2.0, 3.25}, umem::File::scratch());
  expect_text(array);
  expect_text(array.part().slice(0, 0, 2));
  expect_text(array.host(umem::read));
  expect_text(*array.host(umem::write));
  expect_text(umem::guard_at(umem::on_host, array, umem::read));
  expect_text(umem::array_of({{1, 2}, {3, 4}}));
  expect_text(umem::array_of<bool, 0>(true));
  auto lock = array.lock();
  expect_text(lock);
}

} // namespace
