/* thrown.cpp - exceptions that leave a function of the program which umem calls: what may pass
 * comes out of umem's function, and nothing of the interrupted call is left. */
#include "tests.hpp"

#include <umem/open.hpp>

#include <csignal>

#include "../temporary.h"

namespace {

struct Mine {
  int number;
};

/* ---- schemes ---- */

umemStatusType throws_first(void *, void *, umemOptionValue const *, umemOptionValue const *,
                            void *) {
  throw Mine{1};
}

/* Throws when it is a context already. */
umemStatusType throws_last(void *ctx, void *upstream, umemOptionValue const *,
                           umemOptionValue const *, void *) {
  umemStats_ctor(static_cast<umemStats *>(ctx), upstream);
  throw Mine{2};
}

umemScheme scheme_of(char const *name, umemSchemeConstruct *construct, bool decorates) {
  umemScheme scheme = {};
  scheme.size = sizeof scheme;
  scheme.name = name;
  scheme.context_size = sizeof(umemStats);
  scheme.decorates = decorates;
  scheme.construct = construct;
  return scheme;
}

void register_schemes() {
  static umemScheme const schemes[] = {scheme_of("throws", throws_first, false),
                                       scheme_of("throws-over", throws_first, true),
                                       scheme_of("throws-late", throws_last, true)};
  static bool const done = [] {
    for (umemScheme const &scheme : schemes)
      EXPECT_EQ(umem_register_scheme(&scheme), umemOK) << umem_thread_message();
    return true;
  }();
  (void)done;
}

/* ---- what must hold afterwards ---- */

/* A failure is recorded, under the name of its own function, and nothing else is held. */
void expect_whole_thread() {
  EXPECT_EQ(umem_thread_status(), umemOK) << umem_thread_message();
  umem::Host host;
  EXPECT_EQ(umem_set(host.c_context(), 0, 1, 1), umemValueError);
  EXPECT_STREQ(umem_thread_message(), "umem_set: the address in Host is null");
  umem_thread_clear();
}

struct Thrown : testing::Test {
  Thrown() { register_schemes(); }
  ~Thrown() override { expect_whole_thread(); }
};

template <class F> int number_thrown_by(F &&f) {
  try {
    f();
  } catch (Mine const &mine) {
    return mine.number;
  }
  return 0;
}

TEST_F(Thrown, by_a_scheme_comes_out_of_open) {
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(number_thrown_by([] { umem::open("throws:"); }), 1);
    EXPECT_EQ(number_thrown_by([] { umem::open("pool+stats+throws:"); }), 1);
    EXPECT_EQ(number_thrown_by([] { umem_open("throws-over+host:"); }), 1);
    EXPECT_EQ(number_thrown_by([] { umem_open("pool+throws-late+pool+host:"); }), 2);
    expect_whole_thread();
    umem::Context good = umem::open("pool+stats+host:");
    EXPECT_NE(umem_alloc(good.c_context(), 100), 0u);
  }
}

/* The writer's lock of a file goes with its context. */
TEST_F(Thrown, by_a_scheme_ends_the_layers_below) {
  char path[256];
  int fd = temporary_file(path, sizeof path);
  ASSERT_GE(fd, 0);
  close(fd);
  std::string below = std::string("pool+file:") + path + "?mode=r%2B";
  for (char const *over : {"throws-over+", "throws-late+stats+"}) {
    EXPECT_NE(number_thrown_by([&] { umem::open(over + below); }), 0);
    EXPECT_TRUE(umem::open(below));
  }
  unlink(path);
}

TEST_F(Thrown, by_a_scheme_comes_out_of_the_default) {
  setenv("UMEM_DEFAULT", "throws-late+throws:", 1);
  EXPECT_EQ(number_thrown_by([] { umem_default(); }), 1);
  EXPECT_EQ(number_thrown_by([] { umem::default_context(); }), 1);
  EXPECT_EQ(number_thrown_by([] { umem_default_of(0); }), 0);
  umem_thread_clear();
  setenv("UMEM_DEFAULT", "stats+host:", 1);
  std::thread([] { EXPECT_NE(umem_default(), nullptr) << umem_thread_message(); }).join();
  EXPECT_NE(umem_default(), nullptr) << umem_thread_message();
  unsetenv("UMEM_DEFAULT");
}

/* ---- callbacks ---- */

bool throws_in_the_middle(void *, std::uint64_t done, std::uint64_t) {
  if (done) throw Mine{3};
  return true;
}

TEST_F(Thrown, by_progress_comes_out_of_the_copy) {
  umem::Host host;
  char from[100] = "bytes", to[100] = "";
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.step = 50;
  options.progress = throws_in_the_middle;
  EXPECT_EQ(number_thrown_by([&] {
              umem_copy_to_with(host.c_context(), reinterpret_cast<std::uintptr_t>(from),
                                host.c_context(), reinterpret_cast<std::uintptr_t>(to), sizeof to,
                                &options);
            }),
            3);
  EXPECT_STREQ(to, "bytes");
}

/* Threads share a long copy: none of them writes any more when the exception has arrived. */
TEST_F(Thrown, by_progress_ends_all_threads_of_a_long_copy) {
  umem::Host host;
  std::vector<char> from(40 << 20, 'x'), to(from.size());
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.step = 1 << 20;
  options.progress = throws_in_the_middle;
  auto copy = [&] {
    return umem_copy_to_with(host.c_context(), reinterpret_cast<std::uintptr_t>(from.data()),
                             host.c_context(), reinterpret_cast<std::uintptr_t>(to.data()),
                             to.size(), &options);
  };
  umem_set_threads(4);
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(number_thrown_by(copy), 3);
    std::fill(to.begin(), to.end(), 'y');
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(std::count(to.begin(), to.end(), 'y'), static_cast<std::ptrdiff_t>(to.size()));
  }
  options.progress = nullptr;
  EXPECT_EQ(copy(), umemOK);
  EXPECT_EQ(to, from);
  umem_set_threads(0);
}

/* What the library had open for the read is closed. */
TEST_F(Thrown, by_progress_ends_a_long_read) {
  char path[256];
  int fd = temporary_file(path, sizeof path);
  ASSERT_GE(fd, 0);
  close(fd);
  umem::File file(path, "r+");
  umem::Host host;
  std::vector<char> from(40 << 20, 'x'), to(from.size());
  std::uintptr_t in_file = umem_alloc(file.c_context(), from.size());
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  auto copy = [&](char const *bytes) {
    return umem_copy_to_with(file.c_context(), in_file, host.c_context(),
                             reinterpret_cast<std::uintptr_t>(bytes), to.size(), &options);
  };
  ASSERT_EQ(umem_copy_from(file.c_context(), in_file, host.c_context(),
                           reinterpret_cast<std::uintptr_t>(from.data()), from.size()),
            umemOK);
  options.step = 1 << 20;
  options.progress = throws_in_the_middle;
  umem_set_threads(4);
  int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(before);
  for (int i = 0; i < 5; i++) {
    EXPECT_EQ(number_thrown_by([&] { copy(to.data()); }), 3);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    EXPECT_EQ(after, before);
  }
  options.progress = nullptr;
  EXPECT_EQ(copy(to.data()), umemOK);
  EXPECT_EQ(to, from);
  umem_set_threads(0);
  unlink(path);
}

int reported;

void throws_when_armed(void *, umemStatusType, char const *, void *) {
  reported++;
  throw Mine{4};
}

/* A hook must not throw; one that does is called again all the same, and holds nothing. */
TEST_F(Thrown, by_a_hook_does_not_silence_it) {
  umem::Host host;
  umem_set_failure_hook(throws_when_armed, nullptr);
  for (int i = 1; i <= 3; i++) {
    EXPECT_EQ(number_thrown_by([&] { umem_set(host.c_context(), 0, 1, 1); }), 4);
    EXPECT_EQ(reported, i);
    std::thread([&] {
      EXPECT_EQ(number_thrown_by([&] { umem_set(host.c_context(), 0, 1, 1); }), 4);
    }).join();
    EXPECT_EQ(reported--, i + 1);
  }
  umem_set_failure_hook(nullptr, nullptr);
  umem_thread_clear();
}

/* ---- umem_parallel_for ---- */

struct Pieces {
  unsigned thrower; /* the piece that throws */
  unsigned meeting; /* pieces that wait for each other */
  std::atomic<unsigned> begun{0}, done{0};

  static void run(void *data, unsigned piece) {
    auto *pieces = static_cast<Pieces *>(data);
    pieces->begun++;
    while (pieces->begun < pieces->meeting) std::this_thread::yield();
    if (piece == pieces->thrower) throw Mine{5};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pieces->done++;
  }
};

/* It leaves the call when the other threads have returned: nothing uses the call's stack any
 * more. */
TEST_F(Thrown, by_a_piece_of_the_calling_thread_comes_out_of_parallel_for) {
  for (unsigned threads : {1U, 4U}) {
    EXPECT_EQ(umem_set_threads(threads), umemOK);
    for (unsigned round = 0; round < 5; round++) {
      Pieces pieces{0, threads};
      EXPECT_EQ(number_thrown_by([&] { umem_parallel_for(threads + 1, Pieces::run, &pieces); }), 5);
      unsigned done = pieces.done;
      EXPECT_EQ(pieces.begun, done + 1); /* the others that began have returned */
      EXPECT_GE(done, threads - 1);
      expect_whole_thread();
      Pieces good{100, threads};
      EXPECT_EQ(umem_parallel_for(threads, Pieces::run, &good), umemOK);
      EXPECT_EQ(good.done, threads);
    }
  }
  EXPECT_EQ(umem_set_threads(0), umemOK);
}

TEST_F(Thrown, by_a_piece_of_another_thread_ends_the_program) {
  auto throw_in_second = [] {
    umem_set_threads(2);
    Pieces pieces{1, 2};
    umem_parallel_for(2, Pieces::run, &pieces);
  };
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; /* this process has threads */
  EXPECT_EXIT(throw_in_second(), testing::KilledBySignal(SIGABRT), "");
}

} // namespace
