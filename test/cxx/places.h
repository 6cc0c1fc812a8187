/* places.h - the rows of the table of contexts (test/backends.h) as parameters of tests:
 *
 *     ON_EACH_PLACE(BufferTest);
 *     TEST_P(BufferTest, starts_empty) { umem::Buffer buffer(place, 8); ... }
 *
 * A row that this machine lacks is skipped. */
#pragma once

#include "tests.hpp"

#include <cctype>

extern "C" {
#include "backends.h"
#include "settings.h"

/* Of fake/fake.h, which is no C++. */
struct FakeAsync;
void fake_async_fail_next(struct FakeAsync *ctx, umemStatusType type);
}

/* A new context of this row, which closes with its last handle. The empty handle where the machine
 * lacks it. */
inline umem::Context open_place(Backend const &row) {
  umemVirtual *ctx = backend_open(&row);
  umemStatusType status = umem_thread_status();
  if (ctx)
    return umem::Context(
        std::shared_ptr<umemVirtual>(ctx, [&row](umemVirtual *it) { backend_close(&row, it); }));
  if ((row.traits & backendMayLack) &&
      (status == umemNotSupportedError || status == umemValueError)) {
    umem_thread_clear();
    return umem::Context();
  }
  umem::detail::raise_recorded(status);
}

/* A name that GoogleTest allows, for example "wrapped_host_", or "pool_over_host_" for
 * "pool+host:". */
inline std::string place_name(testing::TestParamInfo<Backend const *> const &info) {
  std::string name;
  for (char const *c = info.param->name; *c; c++)
    if (*c == '+')
      name += "_over_";
    else
      name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  return name;
}

/* A test of one context. */
class EachPlace : public testing::TestWithParam<Backend const *> {
protected:
  void SetUp() override {
    place = open_place(*GetParam());
    if (!place) GTEST_SKIP() << "this machine has no " << GetParam()->name;
  }

  /* Blocks that live in a context that counts them, else 0. */
  std::size_t blocks() const {
    return GetParam()->records ? GetParam()->records(place.c_context()).blocks : 0;
  }

  /* Whether the context counts the sets and copies that reach it, and how many these are. */
  bool counts_moves() const { return GetParam()->records && moves() != BACKEND_MOVES_UNKNOWN; }
  std::size_t moves() const {
    return GetParam()->records ? GetParam()->records(place.c_context()).moves
                               : BACKEND_MOVES_UNKNOWN;
  }

  /* For where a call failed, which the context remembers. */
  void forget_failure() const { umem_clear_status(place.c_context()); }

  void TearDown() override {
    if (!place) return;
    EXPECT_STREQ(umem_get_message(place.c_context()), "");
    EXPECT_EQ(blocks(), 0u);
  }

  umem::Context place;
};

/* Every row; in a slow environment without adaptors, on which the C library alone is
 * tested there. */
inline std::vector<Backend const *> each_place() {
  std::vector<Backend const *> places;
  for (Backend const *row = backends; row != backends + backend_count; row++)
    if (!setting_leaves_out(row->name) && (!setting_small() || !(row->traits & backendWrapped)))
      places.push_back(row);
  return places;
}

/* The bytes of a block. */
inline std::string bytes_at(umem::Context const &context, umem::address adr, std::size_t n) {
  std::string bytes(n, '?');
  umem::copy(context, adr, bytes.data(), n);
  return bytes;
}

/* The name of a file that does not exist yet; removed at the end. */
struct TempFile {
  TempFile() { EXPECT_TRUE(backend_temp_file(path)); }
  TempFile(TempFile const &) = delete;
  TempFile &operator=(TempFile const &) = delete;
  ~TempFile() { std::remove(path); }
  char path[BACKEND_PATH_SIZE];
};

/* Runs the TEST_Ps of a class made from EachPlace on every row; also declares the class. */
#define FOR_EACH_PLACE(suite)                                                                      \
  INSTANTIATE_TEST_SUITE_P(on, suite, testing::ValuesIn(each_place()), place_name)
#define ON_EACH_PLACE(suite)                                                                       \
  struct suite : EachPlace {};                                                                     \
  FOR_EACH_PLACE(suite)
