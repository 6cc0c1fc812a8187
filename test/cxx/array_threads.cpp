/* array_threads.cpp - const functions of one array in many threads, on every context.
 * ThreadSanitizer sees the races. */
#include "arrays.hpp"
#include "settings.h"

namespace {

/* Calls f(number) in some threads that begin together; what it throws is a failure. */
template <class Function> void in_threads(Function const &function) {
  constexpr int count = 4;
  std::atomic<int> waiting{count};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < count; number++)
    threads.emplace_back([&, number] {
      for (waiting--; waiting > 0;) std::this_thread::yield();
      try {
        function(number);
      } catch (std::exception const &) {
        failures++;
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

Doubles numbered(umem::Context const &place) {
  Doubles array({3, 4}, place);
  auto guard = array.host(umem::discard);
  for (umem::index_t i = 0; i < 12; i++) guard[i] = static_cast<double>(i);
  return array;
}

struct ArrayThreads : EachPlace {
  void SetUp() override {
    EachPlace::SetUp();
    if (!IsSkipped() && !place.can(umemConcurrent)) GTEST_SKIP();
  }
};

/* The first use of the mirror, in each thread at once. */
TEST_P(ArrayThreads, elements_are_read) {
  for (int round = 0; round < 5; round++) {
    Doubles array = numbered(place);
    if (round % 2 == 0) array.release_host();
    Doubles const &shared = array;
    in_threads([&](int number) {
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) EXPECT_EQ(shared.get(i, j), 4 * i + j) << number;
    });
  }
}

TEST_P(ArrayThreads, guards_read) {
  for (int round = 0; round < 5; round++) {
    Doubles array = numbered(place);
    if (round % 2 == 0) array.release_host();
    Doubles const &shared = array;
    in_threads([&](int number) {
      for (int k = 0; k < 20; k++) {
        auto guard = shared.host(umem::read);
        EXPECT_EQ(guard(2, 3), 11) << number;
        auto again = shared.host(umem::read);
        EXPECT_EQ(again(1, k % 4), 4 + k % 4);
        guard.release();
      }
    });
    array.host(umem::write)(0, 0) = 5; /* no guard is left */
    EXPECT_EQ(shared.get(0, 0), 5);
  }
}

TEST_P(ArrayThreads, all_that_reads_goes_together) {
  bool const has_pointers = !place.can(umemOffsets);
  for (int round = 0; round < 3; round++) {
    Doubles array = numbered(place);
    Doubles const &shared = array;
    in_threads([&](int number) {
      for (int k = 0; k < 5; k++) {
        if (number == 0) shared.sync_to_device();
        if (number == 1) shared.sync_to_host();
        if (number == 2 && has_pointers) static_cast<void>(shared.device(umem::read));
        Doubles target({3, 4});
        copy(shared.part(), target.part());
        EXPECT_EQ(target.get(2, 1), 9);
        EXPECT_EQ(shared.host(umem::read)(1, 1), 5);
        EXPECT_EQ(shared.get(0, 3), 3);
        EXPECT_EQ(shared.extent(0), 3);
        EXPECT_NE(shared.current(), static_cast<umem::Side>(-1));
      }
    });
  }
}

FOR_EACH_PLACE(ArrayThreads);

/* What one thread begins another one ends: no guard is left, and none is missing. */
TEST_P(ArrayThreads, guards_end_in_other_threads) {
  Doubles array = numbered(place);
  Doubles const &shared = array;
  for (int round = 0; round < 5; round++) {
    auto writer = array.host(umem::write);
    auto reader = shared.host(umem::read), other = shared.host(umem::read);
    in_threads([&](int number) {
      auto own = shared.host(umem::read);
      if (number == 0) writer.release();
      if (number == 1) other = std::move(reader);
      EXPECT_EQ(own(2, 3), 11);
    });
    EXPECT_EQ(other(2, 3), 11);
    EXPECT_THROW(array.set(11, 2, 3), umem::locked_error);
    std::thread([moved = std::move(other)] { EXPECT_EQ(moved(0, 1), 1); }).join();
    array.set(11, 2, 3);
    array.host(umem::write)(0, 1) = 1;
  }
}

/* The array, guards of the thread that made it and guards of others end at once: one of them frees
 * the memory. */
TEST(GuardsOfThreads, the_last_frees_the_memory) {
  for (int round = 0; round < 200; round++) {
    double memory[] = {1, 2, 3};
    std::atomic<int> frees{0};
    auto array = Array<double, 1>::wrap(memory, {3}, [&] { frees++; });
    auto const &shared = array;
    auto guard = shared.host(umem::read), other = shared.host(umem::read);
    auto writer = array.host(umem::write);
    if (round % 2) other.release();
    in_threads([&](int number) {
      if (number == 0) Array<double, 1>().swap(array);
      if (number == 1) guard.release();
      if (number == 2) writer.release();
    });
    EXPECT_EQ(frees, round % 2);
    std::thread([&, last = std::move(other)] { EXPECT_EQ(frees, round % 2); }).join();
    EXPECT_EQ(frees, 1);
  }
}

/* One thread reads a part, and another one writes to a part that has none of its elements: no guard
 * is left that both have counted at once. */
TEST(GuardsOfThreads, a_part_is_read_beside_one_that_is_written) {
  int const rounds = setting_small() ? 20000 : 500000;
  Array<double, 1> array({2});
  array.set(0, 0);
  auto const read = std::as_const(array).part(umem::range(0, 1));
  auto const written = array.part(umem::range(1, 2));
  double sum = 0;
  std::thread other([&] {
    for (int k = 0; k < rounds; k++)
      umem::for_each(umem::on_host, written, [k](double &x) { x = k; });
  });
  for (int k = 0; k < rounds; k++) umem::for_each(umem::on_host, read, [&](double x) { sum += x; });
  other.join();
  EXPECT_EQ(sum, 0);
  array.set(1, 0);
  EXPECT_EQ(array.get(1), rounds - 1);
}

/* A loop over arrays in RAM is a guard of each, in the thread that has made them and in others, and
 * ends with it, whatever f throws. */
void expect_guards_of_a_loop(Doubles &from, Doubles &to) {
  Doubles const other({3, 4});
  int calls = 0;
  umem::for_each(
      [&](double const &, double &) {
        if (calls++) return;
        EXPECT_THROW(umem::copy(other, from), umem::locked_error);
        EXPECT_THROW(umem::copy(other, to), umem::locked_error);
      },
      from, to);
  EXPECT_EQ(calls, 12);
  EXPECT_NO_THROW(umem::copy(other, from));
  EXPECT_NO_THROW(umem::copy(other, to));
  auto const fails = [](double const &, double &) { throw std::runtime_error("f"); };
  EXPECT_THROW(umem::for_each(fails, from, to), std::runtime_error);
  EXPECT_NO_THROW(umem::copy(other, from));
  EXPECT_NO_THROW(umem::copy(other, to));
}
TEST(LoopsInRam, are_guards_of_their_arrays) {
  Doubles from({3, 4}), to({3, 4});
  expect_guards_of_a_loop(from, to);
  std::thread([&] { expect_guards_of_a_loop(from, to); }).join();
}
TEST(LoopsInRam, of_many_threads_read_one_array) {
  Doubles shared = Doubles::full({3, 4}, 2);
  auto const read = [&shared = std::as_const(shared)](int) {
    Doubles own({3, 4});
    for (int i = 0; i < 1000; i++)
      umem::for_each([](double const &x, double &y) { y = x; }, shared, own);
    EXPECT_EQ(own.get(2, 3), 2);
  };
  std::thread other([&] { in_threads(read); });
  for (int i = 0; i < 10; i++) read(0);
  other.join();
  EXPECT_NO_THROW(umem::copy(Doubles({3, 4}), shared)); /* no loop is left */
}

} // namespace
