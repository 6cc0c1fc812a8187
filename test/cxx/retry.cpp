/* retry.cpp - functions of the program that help when memory is out, and what they throw. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/pool.hpp>

namespace {

using umem::Context;
using umem::RetryRequest;

struct Mine {
  unsigned number;
};

bool throws_mine(RetryRequest const &request) { throw Mine{request.attempt}; }

struct RetryTest : EachPlace {
  Context few() const { return umem::Limit(place, 100); }
};
FOR_EACH_PLACE(RetryTest);

TEST_P(RetryTest, tries_again_when_there_is_room) {
  std::vector<umem::Buffer> cache;
  std::vector<std::size_t> asked;
  umem::Retry retry(few(), [&](RetryRequest const &request) {
    asked.push_back(request.nbytes);
    EXPECT_EQ(request.attempt, asked.size());
    EXPECT_TRUE(request.context);
    if (cache.empty()) return false;
    cache.back().deallocate();
    cache.pop_back();
    return true;
  });
  for (int i = 0; i < 2; i++) cache.emplace_back(retry, 40);
  umem::Buffer buffer(retry, 90);
  EXPECT_EQ(asked, (std::vector<std::size_t>{90, 90}));
  EXPECT_STREQ(umem_get_message(retry.c_context()), "");
}

TEST_P(RetryTest, gives_up) {
  umem::Retry retry(few(), [](RetryRequest const &) { return false; });
  EXPECT_THROW(umem::Buffer(retry, 101), umem::memory_error);
}

TEST_P(RetryTest, comes_out_with_what_the_function_throws) {
  umem::Retry retry(few(), throws_mine);
  EXPECT_THROW(retry.allocate(101), Mine);
  EXPECT_THROW(retry.allocate(101, 64), Mine);
  EXPECT_THROW(retry.allocate_zeroed(101), Mine);
  EXPECT_THROW(umem::Buffer(retry, 101), Mine);
  EXPECT_THROW((umem::Array<double, 1>({101}, retry)), Mine);
  EXPECT_THROW((umem::Vector<double>(retry, 101)), Mine);
  EXPECT_EQ(umem_get_status(retry.c_context()), umemMemoryError); /* the context's own record */

  umem::address adr = retry.allocate(8);
  EXPECT_THROW(retry.reallocate(adr, 8, 101), Mine);
  retry.deallocate(adr);
}

TEST_P(RetryTest, throws_through_what_goes_over_it) {
  umem::Stats over{umem::Track(umem::Retry(few(), throws_mine))};
  EXPECT_THROW(umem::Buffer(over, 101), Mine);
  umem::Pool pool{umem::Retry(few(), throws_mine)};
  EXPECT_THROW(umem::Buffer(pool, 8), Mine);
  umemFixedOptions options = UMEM_FIXED_OPTIONS_INIT;
  options.initial = 1000;
  EXPECT_THROW(umem::Fixed(umem::Retry(few(), throws_mine), 10, options), Mine);
}

/* What was thrown belongs to one failure, and not to any later one. */
TEST(RetryOnHostTest, forgets_what_led_to_no_failure) {
  std::vector<umem::Buffer> cache;
  umem::Limit limit(umem::Host(), 3u << 20);
  umem::Pool pool{umem::Retry(limit, [&](RetryRequest const &request) -> bool {
    cache.clear();
    throw Mine{request.attempt};
  })};
  cache.emplace_back(limit, 3u << 20);
  umem::Buffer buffer(pool, 100); /* the pool tries twice */
  EXPECT_TRUE(cache.empty());
  EXPECT_THROW(umem::Buffer(limit, 4u << 20), umem::memory_error);
}

TEST(RetryOnHostTest, forgets_what_C_code_was_told) {
  umem::Limit limit(umem::Host(), 100);
  umem::Retry retry(limit, throws_mine);
  EXPECT_EQ(umem_alloc(retry.c_context(), 101), retry.null());
  EXPECT_EQ(umem_thread_status(), umemMemoryError);
  umem_thread_clear();
  EXPECT_THROW(umem::Buffer(limit, 101), umem::memory_error);
  EXPECT_THROW(umem::Buffer(retry, 101), Mine);
}

TEST(RetryOnHostTest, may_fail_itself) {
  umem::Limit limit(umem::Host(), 100);
  umem::Retry retry(limit, [&](RetryRequest const &) {
    umem::Buffer buffer(limit, 102); /* throws */
    return true;
  });
  expect_words(thrown_by<umem::memory_error>([&] { umem::Buffer(retry, 101); }), "102");
}

/* Under a pool, which holds what its upstream refuses and then asks for less. */
TEST(RetryOnHostTest, may_handle_its_own_failures) {
  umem::Limit limit(umem::Host(), 100);
  unsigned caught = 0, calls = 0;
  umem::Pool pool{umem::Retry(limit, [&](RetryRequest const &request) -> bool {
    calls++;
    std::string const said = thrown_by<umem::memory_error>([&] { umem::Buffer(limit, 102); });
    caught += said.find("102") != std::string::npos;
    throw Mine{request.attempt};
  })};
  EXPECT_THROW(umem::Buffer(pool, 8), Mine);
  EXPECT_GT(calls, 1u);
  EXPECT_EQ(caught, calls);
}

TEST(RetryOnHostTest, may_fail_where_the_request_does_not) {
  umem::Limit limit(umem::Host(), 100);
  umem::Buffer cached(limit, 50);
  umem::Retry retry(limit, [&](RetryRequest const &) {
    umem_set(limit.c_context(), 0, 0, 8);
    cached = umem::Buffer();
    return true;
  });
  umem::Stats stats(retry);
  EXPECT_NO_THROW(umem::Buffer(stats, 90));
  EXPECT_EQ(umem_get_status(stats.c_context()), umemOK);
  EXPECT_EQ(umem_get_status(limit.c_context()), umemValueError); /* its own */
  umem_thread_clear();
}

TEST(RetryOnHostTest, throws_in_the_thread_that_allocates) {
  umem::Limit limit(umem::Host(), 100);
  umem::Retry retry(limit, throws_mine);
  std::thread other([&] { EXPECT_THROW(umem::Buffer(retry, 101), Mine); });
  other.join();
  EXPECT_THROW(umem::Buffer(limit, 101), umem::memory_error);
}

TEST(RetryOnHostTest, keeps_its_function_and_its_upstream) {
  auto token = std::make_shared<int>();
  {
    umem::Buffer buffer;
    {
      umem::Retry retry(umem::Limit(umem::Host(), 100),
                        [token](RetryRequest const &) { return false; });
      buffer = umem::Buffer(retry, 10);
    }
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_THROW(buffer.context().allocate(101), umem::memory_error);
  }
  EXPECT_EQ(token.use_count(), 1);
}

/* A function that can only be moved. */
TEST(RetryOnHostTest, takes_any_function_object) {
  umem::Retry retry(umem::Host(), [token = std::make_unique<int>(3)](RetryRequest const &) mutable {
    return --*token > 0;
  });
  EXPECT_THROW(umem::Buffer(retry, SIZE_MAX / 4), umem::memory_error);
}

} // namespace
