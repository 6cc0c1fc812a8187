/* main.cpp - runs the tests of a program on the table of contexts, with doubles for what the
 * machine lacks, and looks after each test whether it has left anything behind. */
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
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

/* Every failure has become an exception, and every context is gone: what the doubles count of them
 * is complete. */
class Tidiness : public testing::EmptyTestEventListener {
  void OnTestEnd(testing::TestInfo const &) override {
    char const *complaint = doubles_complaint();
    EXPECT_EQ(complaint, nullptr) << complaint;
    EXPECT_STREQ(umem_thread_message(), "");
    EXPECT_EQ(umem_thread_status(), umemOK);
    umem_thread_clear();
  }
};

bool ends_with(std::string const &text, std::string const &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/* A filter of GoogleTest for the tests that the source file of this name contains; empty if there
 * are none. */
std::string filter_of_file(std::string const &name) {
  std::string filter;
  testing::UnitTest const &all = *testing::UnitTest::GetInstance();
  for (int n = 0; n < all.total_test_suite_count(); n++) {
    testing::TestSuite const &suite = *all.GetTestSuite(n);
    for (int k = 0; k < suite.total_test_count(); k++) {
      testing::TestInfo const &test = *suite.GetTestInfo(k);
      if (ends_with(test.file(), "/" + name))
        filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

} // namespace

/* Behind the options of GoogleTest there may be --file=NAME.cpp: run the tests of this source file,
 * of several that are in the program. */
int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  char const option[] = "--file=";
  if (argc == 2 && std::strncmp(argv[1], option, std::strlen(option)) == 0) {
    std::string const filter = filter_of_file(argv[1] + std::strlen(option));
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no test is in the file %s\n", argv[0],
                   argv[1] + std::strlen(option));
      return 2;
    }
    if (testing::GTEST_FLAG(filter) == "*") testing::GTEST_FLAG(filter) = filter;
  } else if (argc > 1) {
    std::fprintf(stderr, "%s: unknown argument %s\n", argv[0], argv[1]);
    return 2;
  }
  doubles_use();
  testing::UnitTest::GetInstance()->listeners().Append(new Tidiness); /* which owns it */
  return RUN_ALL_TESTS();
}
