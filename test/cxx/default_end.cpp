/* default_end.cpp - objects that end after main, and use a default context until then: with the
 * static library, and with the shared one. */
#include "tests.hpp"

#include <umem/open.hpp>

#include "../temporary.h"

namespace {

/* Frees in its destructor, by the plain function of C. */
struct Owner {
  void *ctx = nullptr;
  uintptr_t adr = 0;
  ~Owner() {
    if (ctx) umem_free(ctx, adr);
  }
};
Owner from_before_main;

/* Objects of all kinds that end in exit: what was made last, first. */
void leave_to_the_end() {
  static umem::Array<double, 1> array({100}, umem::default_context());
  static umem::Buffer buffer(umem::default_context(), 1000);
  static Owner owner;
  for (Owner *each : {&owner, &from_before_main}) {
    each->ctx = umem_default();
    each->adr = umem_alloc(each->ctx, 10);
  }
  array.host(umem::write)->operator()(99) = 1;
}

void leak() { umem_alloc(umem_default(), 12); }

[[noreturn]] void run(std::string const &name, void (*work)()) {
  setenv(UMEM_DEFAULT, name.c_str(), 1);
  work();
  std::exit(0);
}

TEST(DefaultEndDeathTest, comes_after_that_of_static_objects) {
  EXPECT_EXIT(run("track+debug+host:", leave_to_the_end), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(run("track+host:", leak), testing::ExitedWithCode(0),
              "umem: at the end of a default context: 1 block, 12 bytes in all, was not freed");
}

TEST(DefaultEndDeathTest, completes_the_log_with_their_records) {
  char path[256];
  int fd = temporary_file(path, sizeof path);
  ASSERT_GE(fd, 0);
  EXPECT_EXIT(run("log+host:?file=" + std::string(path), leave_to_the_end),
              testing::ExitedWithCode(0), "^$");
  std::uint64_t ended = 0, next = 0; /* see doc/contexts/log-format.rst */
  EXPECT_EQ(pread(fd, &ended, sizeof ended, 48), 8);
  EXPECT_EQ(pread(fd, &next, sizeof next, 128), 8);
  EXPECT_NE(ended, 0u);
  EXPECT_EQ(next, 8u); /* four blocks, all freed */
  close(fd);
  std::remove(path);
}

} // namespace
