/* plain.cpp - a program without GoogleTest, so that it links with any standard library: contexts,
 * buffers, vectors, views, arrays and loops on the host, each used once. Returns 0 when all is as
 * it must be, and else prints what is not. */
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/sweep.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include "backends.h"
}

namespace {

using umem::Array;

int failures = 0;

void expect(bool holds, char const *claim, int line) {
  if (holds) return;
  failures++;
  std::printf("plain.cpp:%d: it does not hold that %s\n", line, claim);
}

#define EXPECT(claim) expect((claim), #claim, __LINE__)

/* Whether f throws a Caught that says why. */
template <class Caught, class F> bool throws(F const &f) {
  try {
    f();
  } catch (Caught const &thrown) {
    return *thrown.what() != '\0';
  }
  return false;
}

template <class V> std::string printed(V const &view) {
  std::ostringstream stream;
  stream << view;
  return stream.str();
}

struct AddIndices {
  template <class T> UMEM_FUNCTION void operator()(T &x, umem::index_t i, umem::index_t j) const {
    x += static_cast<T>(10 * i + j);
  }
};

struct Half {
  template <class T> UMEM_FUNCTION T operator()(T const &x) const { return x / 2; }
};

/* ---- bytes and elements ---- */

void contexts() {
  umem::Context host = umem::Host(), same = host;
  EXPECT(host == same);
  EXPECT(host.is_cpu_accessible());
  umem::Context moved = std::move(same);
  EXPECT(moved == host);
  EXPECT(!umem::Context());
}

void buffers() {
  umem::Buffer one = umem::Buffer::zeroed(umem::Host(), 64), other(umem::Host(), 64);
  one.copy_from("bytes", 5, 3);
  one.copy_to(other);
  char text[6] = {};
  other.copy_to(text, 5, 3);
  EXPECT(std::string(text) == "bytes");
  umem::Buffer taken = std::move(one);
  EXPECT(!one && taken.size() == 64);
}

void vectors() {
  std::vector<double> numbers = {0.5, 1.5, 2.5};
  auto vector = umem::Vector<double>::from(umem::Host(), numbers);
  vector.set(1, 7);
  EXPECT(vector.to_vector() == (std::vector<double>{0.5, 7, 2.5}));
  std::vector<int, umem::Allocator<int>> ints(umem::Allocator<int>{umem::Host()});
  for (int i = 0; i < 100; i++) ints.push_back(i);
  EXPECT(ints.back() == 99);
}

void views() {
  int numbers[] = {0, 1, 2, 3, 4, 5};
  umem::View<int, 2> view(numbers, {2, 3});
  EXPECT(view(1, 0) == 3);
  EXPECT(view.transpose()(2, 1) == 5);
  EXPECT(view.select(0, 1).slice(0, 1, 3)[1] == 5);
}

/* ---- arrays ---- */

void guards() {
  Array<int, 1> array({4}, umem::Host());
  {
    auto guard = array.host(umem::discard);
    for (umem::index_t i = 0; i < guard.size(); i++) guard(i) = static_cast<int>(i * i);
    EXPECT(throws<umem::locked_error>([&] { array.set(1, 0); }));
  }
  array.set(-1, 0);
  EXPECT(array.get(0) == -1 && array.get(3) == 9);
  auto guard = array.host(umem::read);
  EXPECT((*guard)(2) == 4);
}

void copies_and_moves() {
  auto array = Array<double, 2>::full({2, 3}, 0.5, umem::Host());
  Array<double, 2> copy = array, moved = std::move(array);
  copy.set(2, 1, 1);
  EXPECT(moved.get(1, 1) < 1 && copy.get(1, 1) > 1);
  EXPECT(!array);
}

void parts() {
  Array<int, 2> array({2, 3}, umem::Host());
  umem::iota(array, 0);
  Array<int, 2> turned({3, 2}, umem::Host());
  umem::copy(array.part().transpose(), turned.part());
  EXPECT(turned.get(2, 0) == 2 && turned.get(0, 1) == 3);
  Array<int, 1> row({3}, umem::Host());
  umem::copy(array.part().select(0, 1), row.part());
  EXPECT(printed(row) == "[3 4 5]");
}

void files() {
  char path[BACKEND_PATH_SIZE];
  if (!backend_temp_file(path)) throw std::runtime_error("there is no temporary file");
  auto array = Array<float, 2>::full({2, 2}, 0.25f, umem::Host());
  umem::save_npy(path, array);
  auto read = umem::load_npy<float, 2>(path, umem::Host());
  EXPECT(printed(read) == "[[0.25 0.25]\n [0.25 0.25]]");
  std::remove(path);
}

/* ---- loops ---- */

void loops() {
  Array<double, 2> array({2, 3}, umem::Host()), halves({2, 3}, umem::Host());
  umem::fill(array, 1);
  umem::for_each(array, [](double &x) { x += 1; });
  umem::for_each_indexed(array, AddIndices());
  EXPECT(printed(array) == "[[ 2.  3.  4.]\n [12. 13. 14.]]");
  umem::transform(array, halves, Half());
  EXPECT(printed(halves) == "[[1.  1.5 2. ]\n [6.  6.5 7. ]]");
  EXPECT(umem::sum(array) == 48.);
  EXPECT(umem::min(array) == 2. &&
         umem::max(umem::on_host_threads(2), *halves.host(umem::read)) == 7.);
  EXPECT(umem::reduce(halves, 1., umem::multiplies()) == 1 * 1.5 * 2 * 6 * 6.5 * 7);
}

/* Indices of types that the program chooses are what they are for index_t, and no header warns of a
 * conversion. */
void indices() {
  for (umem::Order order : {umem::row_major, umem::column_major}) {
    auto array = Array<std::size_t, 2>::zeros({2, 3}, order, umem::Host());
    umem::for_each_indexed(array,
                           [](std::size_t &x, std::size_t i, std::size_t j) { x = 10 * i + j; });
    EXPECT(printed(*array.host(umem::read)) == "[[ 0  1  2]\n [10 11 12]]");
    umem::for_each(array, [](std::size_t &x, unsigned i, unsigned short const &j) { x += i + j; });
    EXPECT(printed(*array.host(umem::read)) == "[[ 0  2  4]\n [11 13 15]]");
    std::size_t const most =
        umem::sweep(array, std::size_t(0), umem::maximum(),
                    [](std::size_t &x, std::size_t i, std::size_t j) { return x = i + 2 * j; });
    EXPECT(most == 5 && array.get(1, 1) == 3);
  }
  umem::Extents<2> const extents(1, 300);
  std::size_t sum = 0;
  umem::for_each_index(umem::on_host, extents, [&](std::size_t i, unsigned j) { sum += i + j; });
  EXPECT(sum == 150 * 299);
  EXPECT(sum == umem::for_each_index_reduce(umem::on_host, extents, std::size_t(0), umem::plus(),
                                            [](std::size_t i, std::size_t j) { return i + j; }));
  EXPECT(throws<umem::value_error>([&] {
    umem::for_each_index(umem::on_host, extents, [&](std::size_t, unsigned char) { sum++; });
  }));
  umem::Range<1> const with_ghosts({-1}, {2});
  EXPECT(throws<umem::value_error>(
      [&] { umem::for_each_index(umem::on_host, with_ghosts, [&](unsigned) { sum++; }); }));
  EXPECT(sum == 150 * 299);
}

/* ---- failures ---- */

void exceptions() {
  Array<int, 1> array({4}, umem::Host());
  EXPECT(throws<std::out_of_range>([&] { array.get(4); }));
  EXPECT(throws<std::invalid_argument>([] { Array<int, 1>({-1}, umem::Host()); }));
  EXPECT(throws<std::bad_alloc>([] { umem::Vector<double>(umem::Host(), std::size_t(-1)); }));
  try {
    umem::File file("/there/is/no/such/file", "r");
    EXPECT(!file);
  } catch (umem::error const &thrown) {
    EXPECT(thrown.status() == umemIOError);
    EXPECT(dynamic_cast<std::runtime_error const *>(&thrown) != nullptr);
  }
  umem_thread_clear();
}

/* Whatever is called at the end: a lambda, which is never null, or a pointer that is. */
void foreign_memory() {
  double values[] = {1, 2};
  auto adr = reinterpret_cast<umem::address>(values);
  void (*nothing)() = nullptr;
  EXPECT((Array<double, 1>::wrap(adr, {2}, umem::Host(), [] {}).get(1) == 2));
  EXPECT((Array<double, 1>::wrap(adr, {2}, umem::Host(), nothing).get(1) == 2));
}

} // namespace

int main() {
  try {
    contexts();
    buffers();
    vectors();
    views();
    guards();
    copies_and_moves();
    foreign_memory();
    parts();
    files();
    loops();
    indices();
    exceptions();
  } catch (std::exception const &thrown) {
    std::printf("plain.cpp: nothing here may throw this: %s\n", thrown.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
