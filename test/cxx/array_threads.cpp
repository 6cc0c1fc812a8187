/* array_threads.cpp - const functions of one array in many threads, on every context.
 * ThreadSanitizer sees the races. */
#include "arrays.hpp"

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
