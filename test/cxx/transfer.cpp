/* transfer.cpp - umem/transfer.hpp: copies that go on. */
#include <umem/transfer.hpp>

#include "arrays.hpp"

#include <poll.h>
#include <unistd.h>

namespace {

using umem::Transfer;

static_assert(!std::is_copy_constructible_v<Transfer>);
static_assert(std::is_nothrow_move_constructible_v<Transfer>);

ON_EACH_PLACE(TransferTest);

TEST_P(TransferTest, copies_the_elements_of_arrays) {
  umem::Array<int, 2> from({300, 40}, umem::Host()), to({300, 40}, place);
  {
    auto guard = from.host(umem::discard);
    auto u = *guard;
    for (umem::index_t i = 0; i < 300; i++)
      for (umem::index_t j = 0; j < 40; j++) u(i, j) = static_cast<int>(100 * i + j);
  }
  int calls = 0;
  Transfer transfer = umem::start(from, to);
  transfer.then([&] { calls += 1; }).then([&] { calls *= 10; });
  transfer.wait();
  transfer.wait();
  EXPECT_EQ(calls, 10);
  EXPECT_TRUE(transfer.is_done());
  EXPECT_EQ(transfer.done_bytes(), 48000u);
  EXPECT_EQ(transfer.nbytes(), 48000u);
  EXPECT_EQ(to.get({299, 39}), 29939);
  umem::Array<int, 1> column({300}, place);
  umem::start(from.part().select(1, 7), column).wait();
  EXPECT_EQ(column.get({4}), 407);
}

TEST_P(TransferTest, an_array_may_end_before_its_transfer) {
  Transfer transfer;
  EXPECT_TRUE(transfer.is_done());
  transfer.wait();
  for (int i = 0; i < 20; i++) {
    umem::Array<int, 1> from({50000}, umem::Host()), to({50000}, place);
    umem::fill(from, i);
    transfer = umem::start(from, to);
  }
  while (!transfer.wait_for(std::chrono::microseconds(100))) continue;
  transfer.wait();
}

TEST_P(TransferTest, copies_a_list) {
  std::vector<umem::Array<int, 2>> to;
  Transfer transfer;
  {
    umem::Array<int, 2> from({40, 300}, umem::Host());
    std::vector<std::pair<umem::Part<int, 1>, umem::Part<int, 1>>> pairs;
    for (int k = 0; k < 3; k++) to.emplace_back(umem::Extents<2>{40, 300}, place);
    {
      auto guard = from.host(umem::discard);
      auto u = *guard;
      for (umem::index_t i = 0; i < 40; i++)
        for (umem::index_t j = 0; j < 300; j++) u(i, j) = static_cast<int>(1000 * i + j);
    }
    for (umem::index_t i = 0; i < 40; i++)
      for (auto &array : to)
        pairs.emplace_back(from.part().select(0, i), array.part().select(0, 39 - i));
    transfer = umem::start_many(pairs);
  } /* the transfer keeps the memory of `from` */
  transfer.wait();
  EXPECT_EQ(transfer.done_bytes(), 3u * 40 * 300 * sizeof(int));
  for (auto &array : to) EXPECT_EQ(array.get({39 - 7, 299}), 7299);
  std::vector<std::pair<umem::Part<int, 1>, umem::Part<int, 1>>> none;
  umem::start_many(none).wait();
}

/* Memory that the exception ends is not written to later. */
TEST_P(TransferTest, an_exception_waits_for_the_end) {
  for (int i = 0; i < 4; i++) {
    std::vector<int> values(200000, i), to(200000, -1);
    umem::Array<int, 1> from({200000}, place);
    umem::copy(umem::View<int, 1>(values.data(), {200000}), from);
    try {
      Transfer transfer = umem::start(from, umem::View<int, 1>(to.data(), {200000}));
      if (i % 2) transfer.cancel();
      throw i;
    } catch (int thrown) {
      std::vector<int> found = to;
      if (i % 2 == 0) {
        EXPECT_EQ(found.back(), thrown);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(found, to);
    }
  }
}

TEST(Transfer, is_checked_at_once) {
  umem::Array<int, 1> one({3}, umem::Host()), other({4}, umem::Host());
  EXPECT_THROW(static_cast<void>(umem::start(one, other)), umem::value_error);
  std::pair<umem::Part<int, 1>, umem::Part<int, 1>> pair(one.part(), one.part());
  EXPECT_THROW(static_cast<void>(umem::start_many(std::vector{pair, pair})), umem::value_error);
  umem::Host host;
  EXPECT_THROW(static_cast<void>(umem::start(host, 0, host, 64, 10)), umem::value_error);
  EXPECT_THROW(Transfer().then([] {}), umem::value_error);
  EXPECT_THROW(Transfer().descriptor(), umem::value_error);
}

/* As many nanoseconds as a program can name are no negative ones. */
TEST(Transfer, waits_as_long_as_it_takes) {
  umem::Array<char, 1> from({1 << 26}, umem::File::scratch()), to({1 << 26}, umem::Host());
  umem::fill(from, char(3));
  Transfer transfer = umem::start(from, to);
  while (transfer.wait_for(std::chrono::seconds(-1)) || transfer.wait_for(std::chrono::hours(0)))
    transfer = umem::start(from, to); /* it was done by then */
  EXPECT_TRUE(transfer.wait_for(std::chrono::hours::max()));
  EXPECT_TRUE(umem::start(from, to).wait_for(std::chrono::duration<double>(HUGE_VAL)));
}

/* What then calls may change what it has captured. */
TEST(Transfer, calls_functions_that_change) {
  umem::Array<char, 1> from({100}, umem::Host()), to({100}, umem::Host());
  int found = 0;
  Transfer transfer = umem::start(from, to);
  for (int i = 0; i < 2; i++) transfer.then([&found, count = 1]() mutable { found += count++; });
  transfer.wait();
  EXPECT_EQ(found, 2);
}

TEST(Transfer, has_a_descriptor) {
  umem::Array<char, 1> from({1 << 20}, umem::File::scratch()), to({1 << 20}, umem::Host());
  Transfer transfer = umem::start(from, to);
  pollfd end = {transfer.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 60000), 1);
  EXPECT_TRUE(transfer.is_done());
}

TEST_P(TransferTest, of_no_elements_is_done) {
  umem::Array<int, 2> from({0, 7}, umem::Host()), to({0, 7}, place);
  bool is_called = false;
  Transfer transfer = umem::start(from, to);
  transfer.then([&] { is_called = true; }).wait();
  EXPECT_TRUE(is_called);
  pollfd end = {transfer.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 0), 1);
}

TEST(Transfer, throws_its_failure) {
  umem::Host host;
  char to[100000];
  std::string path = testing::TempDir() + "umem_transfer_" + std::to_string(getpid());
  umem::File file(path.c_str(), "w+");
  umem::address adr = file.allocate(sizeof to);
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  Transfer transfer = umem::start(file, adr, host, reinterpret_cast<umem::address>(to), sizeof to);
  EXPECT_THROW(transfer.wait(), umem::io_error);
  EXPECT_THROW(transfer.wait(), umem::io_error);
  testing::internal::CaptureStderr();
  { Transfer lost = umem::start(file, adr, host, reinterpret_cast<umem::address>(to), sizeof to); }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("umem::Transfer"), std::string::npos);
  umem_clear_status(file.c_context());
  umem_thread_clear();
  remove(path.c_str());
}

TEST(Transfer, is_cancelled) {
  umem::Array<char, 1> from({1 << 26}, umem::Host()), to({1 << 26}, umem::Host());
  umem::fill(from, char(3));
  Transfer transfer = umem::start(from, to);
  transfer.cancel();
  try {
    transfer.wait();
    EXPECT_EQ(transfer.done_bytes(), transfer.nbytes());
  } catch (umem::cancelled_error const &) {
    EXPECT_LT(transfer.done_bytes(), transfer.nbytes());
  }
  umem_thread_clear();
}

} // namespace
