/* tests.hpp - what most tests of the C++ headers include: GoogleTest, umem.hpp and headers of the
 * standard library. It is precompiled. The stage gcc of test/run compiles each header of umem
 * alone. */
#pragma once

#include <gtest/gtest.h>
#include <umem.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using umem::Array;
using umem::Extents;
using umem::Side;
using umem::View;

/* The message of what f throws, which must be an Error; "" if it throws nothing. */
template <class Error = umem::error, class F> std::string thrown_by(F const &f) {
  try {
    f();
  } catch (Error const &error) {
    return error.what();
  }
  return "";
}

/* That a text contains these words. */
inline void expect_words(std::string const &text, std::string const &words) {
  EXPECT_NE(text.find(words), std::string::npos) << "no \"" << words << "\" in \"" << text << '"';
}
