/* host_threads.cpp - loops that the threads of the library share: how many there are, what the
 * threads inherit, and what happens if the system refuses a thread or memory. This file has its own
 * pthread_create and operator new, which fail from a call on that the tests name. */
#include "tests.hpp"

#include <umem/detail/host_loops.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/threads.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cfenv>
#include <mutex>
#include <set>

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

using umem::index_t; /* here, since POSIX has a function of that name */

constexpr int most = 5; /* threads, the caller's included */
constexpr index_t count = 1000;

struct HostThreads : testing::Test {
  HostThreads() { umem_set_threads(most); }
  ~HostThreads() override {
    threads_fail.never();
    memory_fails.never();
    umem_set_threads(0);
  }

  /* Ends the threads that earlier loops have started. */
  static void begin_alone() {
    umem_set_threads(1);
    umem_set_threads(most);
  }

  std::vector<int> numbers = std::vector<int>(count, 7);
  umem::View<int, 1> view{numbers.data(), {count}};
  umem::HostPlace place = umem::on_host_threads(most);
  int before = blocks;
};

/* ---- how many ---- */

/* The threads that take part in one call of loop(f), whose functions wait for so many. */
template <class Loop> std::size_t threads_in(std::size_t meeting, Loop const &loop) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  auto join = [&] {
    auto now = [&] {
      std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
      return threads.size();
    };
    while (now() < meeting && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  loop(join);
  return threads.size();
}

/* Each loop on a place, with enough elements for a part per thread. */
void expect_threads(umem::HostPlace place, std::size_t expected) {
  std::vector<int> memory(2000, 1), out(2000);
  umem::View<int, 2> view(memory.data(), {400, 5}), to(out.data(), {400, 5});
  umem::View<int, 1> column(out.data(), {400});
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              umem::for_each(place, view, [&](int &) { join(); });
            }));
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              umem::for_each_indexed(place, view, [&](int &, index_t, index_t) { join(); });
            }));
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              umem::for_each_index(place, view.extents, [&](index_t, index_t) { join(); });
            }));
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              umem::transform(place, view, to, [&](int x) { return join(), x; });
            }));
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              auto f = [&](int x) { return join(), x; };
              EXPECT_EQ(umem::transform_reduce(place, view, 0, umem::plus(), f), 2000);
            }));
  EXPECT_EQ(expected, threads_in(expected, [&](auto const &join) {
              auto f = [&](int x) { return join(), x; };
              umem::transform_reduce_along(place, view, 1, column, 0, umem::plus(), f);
            }));
}

TEST_F(HostThreads, AreAsManyAsThePlaceNames) {
  for (unsigned threads = 1; threads <= most; threads++)
    expect_threads(umem::on_host_threads(threads), threads);
}

TEST_F(HostThreads, AreAtMostThoseThatAreSet) {
  for (unsigned threads = 1; threads <= most; threads++) {
    ASSERT_EQ(umem_set_threads(threads), umemOK);
    expect_threads(place, threads);
    expect_threads(umem::on_host_threads(), threads);
  }
  ASSERT_EQ(umem_set_threads(2), umemOK);
  expect_threads(umem::on_host_threads(1000), 2);
}

TEST_F(HostThreads, AreStartedOnce) {
  begin_alone();
  threads_fail.never();
  for (int i = 0; i < 20; i++) umem::for_each(place, view, [](int &x) { x++; });
  EXPECT_LE(threads_fail.calls(), most - 1);
  EXPECT_EQ(numbers, std::vector<int>(count, 27));
}

/* Fewer threads do the same parts. */
TEST_F(HostThreads, DoNotChangeTheResultOfAPlace) {
  std::vector<float> memory(100000);
  for (std::size_t i = 0; i < memory.size(); i++) memory[i] = 1.f / static_cast<float>(i + 1);
  umem::View<float, 1> fractions(memory.data(), {100000});
  auto add = [](float x, float y) { return x + y; };
  float expected = umem::reduce(place, fractions, 0.f, add);
  for (unsigned threads = 1; threads < most; threads++) {
    ASSERT_EQ(umem_set_threads(threads), umemOK);
    EXPECT_EQ(umem::reduce(place, fractions, 0.f, add), expected);
  }
}

/* ---- what they inherit ---- */

TEST_F(HostThreads, RoundAsTheCaller) {
  volatile double third = 3;
  umem::for_each(place, view, [](int &x) { x++; }); /* started while the caller rounds to nearest */
  for (int direction : {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST}) {
    std::vector<int> directions(count);
    umem::View<int, 1> all(directions.data(), {count});
    std::fesetround(direction);
    double expected = 1 / third;
    std::size_t others = 0;
    for (int i = 0; i < 20; i++)
      others += threads_in(most, [&](auto const &join) {
        umem::for_each(place, all, [&](int &x) {
          x = std::fegetround() + (1 / third == expected ? 0 : 1);
          join();
        });
      });
    EXPECT_EQ(std::fegetround(), direction);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(directions, std::vector<int>(count, direction));
    EXPECT_EQ(others, 20u * most);
  }
}

/* ---- loops in loops, and fork ---- */

TEST_F(HostThreads, MayRunLoopsThemselves) {
  std::vector<std::atomic<int>> times(2000);
  umem::for_each_index(place, umem::Extents<2>(20, 1), [&](index_t i, index_t) {
    umem::for_each_index(place, umem::Extents<1>(100),
                         [&](index_t j) { times[static_cast<std::size_t>(100 * i + j)]++; });
  });
  for (auto const &time : times) EXPECT_EQ(time, 1);
}

TEST_F(HostThreads, AreNotInAChild) {
  umem::for_each(place, view, [](int &x) { x++; });
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::size_t threads = threads_in(
        1, [&](auto const &join) { umem::for_each(place, view, [&](int &x) { join(), x++; }); });
    _exit(threads == 1 && numbers == std::vector<int>(count, 9) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/* ---- without threads, without memory ---- */

TEST_F(HostThreads, ThatAreRefusedAreDoneWithout) {
  for (int call = 1; call < most; call++) {
    begin_alone();
    threads_fail.from(call);
    umem::for_each(place, view, [](int &x) { x++; });
    EXPECT_LE(threads_fail.calls(), call); /* it tries no more */
    EXPECT_EQ(umem::sum(place, view), count * (7 + call));
    EXPECT_EQ(numbers, std::vector<int>(count, 7 + call));
    EXPECT_EQ(blocks, before);
  }
}

TEST_F(HostThreads, NeedNoMemory) {
  begin_alone();
  memory_fails.from(1);
  umem::for_each(place, view, [](int &x) { x++; });
  umem::for_each_indexed(place, view, [](int &x, index_t) { x++; });
  EXPECT_EQ(memory_fails.calls(), 0);
  memory_fails.never();
  EXPECT_EQ(numbers, std::vector<int>(count, 9));
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
    EXPECT_EQ(refused, failed);
    EXPECT_EQ(blocks, before);
  }
}

/* ---- exceptions ---- */

TEST_F(HostThreads, HandOnWhatTheLowestChunkThrows) {
  for (unsigned threads = 1; threads <= most; threads++)
    for (int refused = 0; refused < most; refused++) {
      begin_alone();
      umem_set_threads(threads);
      threads_fail.from(refused);
      std::vector<std::atomic<int>> done(most);
      auto const work = [&](index_t n) {
        done[static_cast<std::size_t>(n)]++;
        if (n >= 1) throw std::runtime_error("from " + std::to_string(n));
      };
      EXPECT_EQ(thrown_by<std::runtime_error>([&] { umem::detail::on_threads(most, work); }),
                "from 1");
      for (auto const &times : done) EXPECT_EQ(times, 1);
      threads_fail.never();
    }
}

/* A thread of the library throws, and the caller catches it. */
TEST_F(HostThreads, HandOnWhatAWorkerThrows) {
  auto const caller = std::this_thread::get_id();
  EXPECT_EQ(threads_in(most,
                       [&](auto const &join) {
                         auto f = [&](int &) {
                           join();
                           if (std::this_thread::get_id() != caller)
                             throw umem::io_error("by a worker");
                         };
                         EXPECT_THROW(umem::for_each(place, view, f), umem::io_error);
                       }),
            std::size_t(most));
}

/* An error of umem that f catches itself is no failure of the loop. */
TEST_F(HostThreads, MayFailAndRecover) {
  umem::Host host;
  std::atomic<int> caught{0};
  umem::for_each_index(place, umem::Extents<1>(1000), [&](index_t) {
    try {
      umem::Buffer(host, SIZE_MAX);
    } catch (umem::memory_error const &) {
      caught++;
    }
  });
  EXPECT_EQ(caught, 1000);
}

} // namespace
