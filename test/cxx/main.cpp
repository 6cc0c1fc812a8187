/* main.cpp - runs the tests of a program on the table of contexts, with doubles for what the machine
 * lacks, and looks after each test whether it has left anything behind. */
#include <cstdio>
#include <gtest/gtest.h>
#include <umem.h>

extern "C" {
#include "fake/doubles.h"

/* A request that cannot be met returns NULL under sanitizers too. */
char const *__asan_default_options();
char const *__tsan_default_options();
char const *__asan_default_options() { return "allocator_may_return_null=1"; }
char const *__tsan_default_options() { return "allocator_may_return_null=1"; }
}

namespace {

/* Every failure has become an exception, and every context is gone: what the doubles count of them is
 * complete. */
class Tidiness : public testing::EmptyTestEventListener {
  void OnTestEnd(testing::TestInfo const &) override {
    char const *complaint = doubles_complaint();
    EXPECT_EQ(complaint, nullptr) << complaint;
    EXPECT_STREQ(umem_thread_message(), "");
    EXPECT_EQ(umem_thread_status(), umemOK);
    umem_thread_clear();
  }
};

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  doubles_use();
  testing::UnitTest::GetInstance()->listeners().Append(new Tidiness); /* which owns it */
  return RUN_ALL_TESTS();
}
