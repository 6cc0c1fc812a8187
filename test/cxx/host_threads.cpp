/* host_threads.cpp - loops shared by threads, where the system refuses a thread or there is no
 * memory for one. This file has its own pthread_create and operator new, which fail from a call on
 * that the tests name. */
#include <umem/detail/host_threads.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/* Counts calls, which fail from one on that is named. */
class Failing {
public:
  void from(int call) {
    calls_ = 0;
    from_ = call;
  }
  void never() { from(0); }
  int calls() const { return calls_; }

  bool operator()() {
    int call = ++calls_;
    return from_ > 0 && call >= from_;
  }

private:
  std::atomic<int> calls_{0};
  std::atomic<int> from_{0};
};
Failing threads_fail, memory_fails;
std::atomic<int> blocks{0};

} // namespace

/* By another name in this file, as headers differ in what they say pthread_create throws. */
extern "C" int create_thread(pthread_t *thread, pthread_attr_t const *attributes,
                             void *(*start)(void *), void *argument) __asm__("pthread_create");
int create_thread(pthread_t *thread, pthread_attr_t const *attributes, void *(*start)(void *),
                  void *argument) {
  if (threads_fail()) return EAGAIN;
  static auto const real =
      reinterpret_cast<decltype(&create_thread)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}

/* Not inlined, so that compilers see a new for each delete. */
__attribute__((noinline)) void *operator new(std::size_t nbytes) {
  void *block = memory_fails() ? nullptr : std::malloc(nbytes ? nbytes : 1);
  if (!block) throw std::bad_alloc();
  blocks++;
  return block;
}
__attribute__((noinline)) void operator delete(void *block) noexcept {
  if (block) blocks--;
  std::free(block);
}
void operator delete(void *block, std::size_t) noexcept { operator delete(block); }

namespace {

using umem::index; /* here, since POSIX has a function of that name */

constexpr int most = 5; /* threads, the caller's included */
constexpr index count = 1000;

class HostThreads : public testing::Test {
protected:
  void TearDown() override {
    threads_fail.never();
    memory_fails.never();
  }

  std::vector<int> numbers = std::vector<int>(count, 7);
  umem::View<int, 1> view{numbers.data(), {count}};
  umem::HostPlace place = umem::on_host_threads(most);
  int before = blocks;
};

TEST_F(HostThreads, ThatAreRefusedAreDoneWithout) {
  for (int call = 0; call < most; call++) { /* 0: none fails */
    threads_fail.from(call);
    umem::for_each(place, view, [](int &x) { x++; });
    EXPECT_EQ(threads_fail.calls(), call ? call : most - 1); /* it tries no more */
    threads_fail.from(call);
    EXPECT_EQ(umem::sum(place, view), count * (8 + call));
    EXPECT_EQ(threads_fail.calls(), call ? call : most - 1);
    EXPECT_EQ(numbers, std::vector<int>(count, 8 + call));
    EXPECT_EQ(blocks, before);
  }
}

TEST_F(HostThreads, WithoutMemoryDoAllOrNothing) {
  int call = 1, refused = 0;
  for (bool failed = true; failed; call++) {
    int expected = numbers[0];
    memory_fails.from(call);
    try {
      umem::for_each(place, view, [](int &x) { x++; });
      expected++;
    } catch (std::bad_alloc const &) {
      EXPECT_EQ(call, ++refused); /* only what comes before all threads */
    }
    failed = memory_fails.calls() >= call;
    memory_fails.never();
    EXPECT_EQ(numbers, std::vector<int>(count, expected));
    EXPECT_EQ(blocks, before);
  }
  EXPECT_GE(refused, 1);
  EXPECT_GT(call, refused + most - 1); /* each thread has been refused */
}

TEST_F(HostThreads, WithoutMemoryReduceAllOrNothing) {
  bool failed = true;
  for (int call = 1; failed; call++) {
    memory_fails.from(call);
    std::int64_t sum = 0;
    bool refused = false;
    try {
      sum = umem::sum(place, view);
    } catch (std::bad_alloc const &) {
      refused = true;
    }
    failed = memory_fails.calls() >= call;
    memory_fails.never();
    EXPECT_EQ(sum, refused ? 0 : 7 * count);
    EXPECT_EQ(blocks, before);
  }
}

TEST_F(HostThreads, HandOnWhatIsThrownWhereSomeAreRefused) {
  for (int call = 1; call < most; call++) {
    threads_fail.from(call);
    std::vector<int> done(most);
    try {
      umem::detail::on_threads(most, [&](index n) {
        done[static_cast<std::size_t>(n)]++;
        if (n >= 1) throw std::runtime_error("from " + std::to_string(n));
      });
      ADD_FAILURE();
    } catch (std::runtime_error const &thrown) {
      EXPECT_STREQ(thrown.what(), "from 1");
    }
    EXPECT_EQ(done, std::vector<int>(most, 1));
  }
}

} // namespace
