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

class ArrayThreads : public EachPlace {
protected:
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

} // namespace
