/* buffer.cpp - umem::Buffer, and umem::Connection, on every context. */
#include "places.h"

namespace {

using umem::Buffer;
using umem::Connection;
using Bytes = std::vector<unsigned char>;

static_assert(std::is_nothrow_move_constructible_v<Buffer>);
static_assert(std::is_nothrow_move_assignable_v<Buffer>);
static_assert(std::is_nothrow_swappable_v<Buffer>);
static_assert(!std::is_copy_constructible_v<Buffer> && !std::is_copy_assignable_v<Buffer>);
static_assert(std::is_nothrow_move_assignable_v<Connection>);
static_assert(!std::is_copy_constructible_v<Connection>);

Bytes counting(std::size_t n, int first = 1) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; i++)
    bytes[i] = static_cast<unsigned char>(first + static_cast<int>(i));
  return bytes;
}

Bytes bytes_of(Buffer const &buffer) {
  Bytes bytes(buffer.size());
  buffer.copy_to(bytes.data(), bytes.size());
  return bytes;
}

ON_EACH_PLACE(BufferTest);

TEST_P(BufferTest, has_what_was_asked_for) {
  Buffer buffer(place, 100);
  EXPECT_TRUE(buffer);
  EXPECT_EQ(buffer.size(), 100u);
  EXPECT_EQ(buffer.alignment(), 0u);
  EXPECT_EQ(buffer.context(), place);
  EXPECT_NE(buffer.adr(), place.null());
}

TEST_P(BufferTest, refuses_alignments_that_are_no_power_of_two) {
  std::size_t before = blocks();
  for (std::size_t alignment : {3u, 5u, 6u, 7u, 24u, 4097u}) {
    EXPECT_THROW(Buffer(place, 100, alignment), umem::value_error);
    EXPECT_THROW(Buffer::zeroed(place, 100, alignment), umem::value_error);
  }
  EXPECT_EQ(blocks(), before);
  forget_failure();
}

TEST_P(BufferTest, honours_alignments) {
  for (std::size_t alignment : {1u, 64u, 4096u}) {
    Buffer buffer(place, 100, alignment);
    EXPECT_EQ(buffer.adr() % alignment, 0u);
    EXPECT_EQ(buffer.alignment(), alignment);
    Buffer zeroed = Buffer::zeroed(place, 100, alignment);
    EXPECT_EQ(zeroed.adr() % alignment, 0u);
    EXPECT_EQ(bytes_of(zeroed), Bytes(100));
  }
  EXPECT_THROW(Buffer(place, 100, 3), umem::value_error);
  forget_failure();
}

TEST_P(BufferTest, is_zeroed_where_the_block_was_not) {
  { Buffer(place, 100).copy_from(counting(100).data(), 100); }
  EXPECT_EQ(bytes_of(Buffer::zeroed(place, 100)), Bytes(100));
}

TEST_P(BufferTest, of_no_bytes_is_no_special_case) {
  Buffer buffer(place, 0);
  EXPECT_TRUE(buffer);
  EXPECT_EQ(buffer.size(), 0u);
  buffer.set(1);
  buffer.copy_to(nullptr, 0);
  buffer.resize(8);
  EXPECT_EQ(buffer.size(), 8u);
  buffer.resize(0);
  EXPECT_EQ(buffer.size(), 0u);
}

TEST_P(BufferTest, throws_where_there_is_no_room) {
  EXPECT_THROW(Buffer(place, SIZE_MAX / 4), umem::memory_error);
  EXPECT_THROW(Buffer(place, SIZE_MAX, 64), std::bad_alloc);
  EXPECT_THROW(Buffer::zeroed(place, SIZE_MAX / 4), std::bad_alloc);
  forget_failure();
}

TEST_P(BufferTest, copies_from_and_to_pointers) {
  Buffer buffer(place, 100);
  buffer.copy_from(counting(100).data(), 100);
  EXPECT_EQ(bytes_of(buffer), counting(100));
  unsigned char few[3] = {7, 8, 9};
  buffer.copy_from(few, 3, 97);
  std::array<unsigned char, 4> found{};
  buffer.copy_to(found.data(), 4, 96);
  EXPECT_EQ(found, (std::array<unsigned char, 4>{97, 7, 8, 9}));
  buffer.set(0x1FF);
  EXPECT_EQ(bytes_of(buffer), Bytes(100, 0xFF));
}

TEST_P(BufferTest, copies_to_other_buffers) {
  Buffer host(umem::Host(), 100), buffer(place, 100), copy(place, 100);
  host.copy_from(counting(100).data(), 100);
  buffer.copy_from(host);
  buffer.copy_to(copy);
  place.synchronize();
  host.set(0);
  copy.copy_to(host, 10, 90, 5);
  place.synchronize();
  Bytes expected(100);
  std::memcpy(&expected[5], &counting(100)[90], 10);
  EXPECT_EQ(bytes_of(host), expected);
}

TEST_P(BufferTest, refuses_copies_beyond_its_end) {
  Buffer buffer(place, 100), other(place, 99);
  unsigned char bytes[200] = {};
  EXPECT_THROW(buffer.copy_to(bytes, 101), umem::index_error);
  EXPECT_THROW(buffer.copy_to(bytes, 1, 100), umem::index_error);
  EXPECT_THROW(buffer.copy_to(bytes, 2, SIZE_MAX), umem::index_error);
  EXPECT_THROW(buffer.copy_from(bytes, 100, 1), umem::index_error);
  EXPECT_THROW(buffer.copy_to(other, 100), umem::index_error);
  EXPECT_THROW(other.copy_to(buffer, 50, 0, 51), umem::index_error);
  EXPECT_THROW(buffer.copy_to(other), umem::value_error);
  EXPECT_THROW(buffer.copy_from(other), umem::value_error);
  buffer.copy_to(bytes, 0, 100);
}

TEST_P(BufferTest, keeps_its_bytes_when_resized) {
  for (std::size_t alignment : {0u, 4096u}) {
    Buffer buffer(place, 100, alignment);
    buffer.copy_from(counting(100).data(), 100);
    buffer.resize(5000);
    EXPECT_EQ(buffer.size(), 5000u);
    Bytes bytes = bytes_of(buffer);
    bytes.resize(100);
    EXPECT_EQ(bytes, counting(100));
    buffer.resize(10);
    EXPECT_EQ(bytes_of(buffer), counting(10));
    EXPECT_EQ(buffer.adr() % (alignment + !alignment), 0u);
    EXPECT_THROW(buffer.resize(SIZE_MAX / 4), umem::memory_error);
    forget_failure();
    EXPECT_EQ(bytes_of(buffer), counting(10));
  }
}

TEST_P(BufferTest, moves_leave_an_empty_one) {
  Buffer one(place, 100, 64);
  one.copy_from(counting(100).data(), 100);
  umem::address adr = one.adr();
  Buffer two(std::move(one));
  EXPECT_EQ(two.adr(), adr);
  EXPECT_EQ(two.alignment(), 64u);
  EXPECT_FALSE(one);
  EXPECT_EQ(one.size(), 0u);
  EXPECT_FALSE(one.context());
  EXPECT_EQ(one.data(), nullptr);
  EXPECT_THROW(one.copy_to(&adr, 1), umem::index_error);
  EXPECT_THROW(one.resize(1), umem::value_error);
  Buffer three(place, 10);
  three = std::move(two);
  EXPECT_EQ(bytes_of(three), counting(100));
  Buffer &self = three;
  three = std::move(self);
  EXPECT_EQ(bytes_of(three), counting(100));
  one = Buffer(place, 10);
  swap(one, three);
  EXPECT_EQ(bytes_of(one), counting(100));
  EXPECT_EQ(one.alignment(), 64u);
  EXPECT_EQ(three.size(), 10u);
  EXPECT_EQ(three.alignment(), 0u);
}

TEST_P(BufferTest, gives_its_block_away_and_takes_it_back) {
  for (std::size_t alignment : {0u, 64u}) {
    Buffer buffer(place, 100, alignment);
    buffer.copy_from(counting(100).data(), 100);
    umem::address adr = buffer.release();
    EXPECT_FALSE(buffer);
    EXPECT_EQ(buffer.alignment(), 0u);
    Buffer again = Buffer::adopt(place, adr, 100, alignment);
    EXPECT_EQ(bytes_of(again), counting(100));
    place.deallocate(again.release(), alignment);
  }
}

TEST_P(BufferTest, data_is_for_the_cpu_alone) {
  Buffer buffer(place, 100);
  buffer.copy_from(counting(100).data(), 100);
  if (place.is_cpu_accessible()) {
    place.synchronize();
    EXPECT_EQ(reinterpret_cast<umem::address>(buffer.data()), buffer.adr());
    EXPECT_EQ(std::memcmp(std::as_const(buffer).data(), counting(100).data(), 100), 0);
  } else {
    EXPECT_THROW(buffer.data(), umem::not_supported_error);
    EXPECT_THROW(std::as_const(buffer).data(), umem::not_supported_error);
  }
}

TEST_P(BufferTest, keeps_its_context_alive) {
  Buffer buffer(open_place(*GetParam()), 100);
  buffer.copy_from(counting(100).data(), 100);
  EXPECT_EQ(bytes_of(buffer), counting(100));
}

TEST_P(BufferTest, connections_pair_it_with_the_host) {
  Buffer buffer(place, 100);
  buffer.copy_from(counting(100).data(), 100);
  Connection first(place, buffer.adr(), 100, umem::Host(), 64);
  Connection host(std::move(first));
  first.sync();
  EXPECT_FALSE(first.mirror());
  EXPECT_THROW(first.data(), umem::not_supported_error);
  EXPECT_EQ(host.adr() % 64, 0u);
  EXPECT_EQ(host.size(), 100u);
  place.synchronize();
  EXPECT_EQ(std::memcmp(host.data(), counting(100).data(), 100), 0);
  std::memset(host.data(), 5, 100);
  host.sync_back();
  EXPECT_EQ(bytes_of(buffer), Bytes(100, 5));
  buffer.set(6);
  host.sync();
  place.synchronize();
  EXPECT_EQ(*static_cast<unsigned char *>(host.data()), 6);
  first = std::move(host);
  first = Connection(place, buffer.adr(), 50, umem::Host());
  EXPECT_EQ(first.size(), 50u);
}

TEST_P(BufferTest, connections_pair_the_host_with_it) {
  Bytes bytes = counting(100);
  auto adr = reinterpret_cast<umem::address>(bytes.data());
  Connection mirror(umem::Host(), adr, 100, place);
  EXPECT_EQ(mirror.mirror(), place);
  bytes[0] = 99;
  mirror.sync();
  place.synchronize();
  Bytes found(100);
  umem::copy(place, mirror.adr(), found.data(), 100);
  EXPECT_EQ(found, bytes);
}

TEST_P(BufferTest, connections_that_fail_throw) {
  EXPECT_THROW(static_cast<void>(Connection(place, place.null(), 8, umem::Host(), 64)),
               umem::value_error);
  EXPECT_THROW(static_cast<void>(Connection(umem::Context(), 16, 8, place)), umem::value_error);
  EXPECT_THROW(static_cast<void>(Connection(place, 16, 8, umem::Context())), umem::value_error);
  forget_failure();
}

/* ---- apart from the table ---- */

TEST(Buffer, of_an_empty_handle_is_an_error) {
  EXPECT_THROW(Buffer(umem::Context(), 8), umem::value_error);
  EXPECT_THROW(Buffer(umem::Context(), 8, 64), umem::value_error);
  EXPECT_THROW(Buffer::zeroed(umem::Context(), 8), umem::value_error);
  Buffer none;
  EXPECT_FALSE(none);
  none.set(0);
  none.copy_to(none);
}

TEST(Buffer, that_cannot_be_freed_tells_the_hook) {
  int failures = 0;
  umem_set_failure_hook(
      [](void *, umemStatusType, char const *, void *data) { ++*static_cast<int *>(data); },
      &failures);
  umem::File file = umem::File::scratch();
  { Buffer twice = Buffer::adopt(file, Buffer(file, 8).adr(), 8); }
  umem_set_failure_hook(nullptr, nullptr);
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(umem_thread_status(), umemValueError);
  umem_thread_clear();
}

TEST(Buffer, of_a_file_that_is_only_read_has_data_to_read) {
  TempFile file;
  { Buffer::zeroed(umem::File(file.path, "w"), 64).copy_from("umem...", 8); }
  Buffer buffer(umem::MMap(file.path, "r"), 8);
  EXPECT_STREQ(static_cast<char const *>(std::as_const(buffer).data()), "umem...");
  EXPECT_THROW(buffer.data(), umem::not_supported_error);
  EXPECT_THROW(buffer.set(0), umem::not_supported_error);
  EXPECT_THROW(Buffer::zeroed(buffer.context(), 8), umem::not_supported_error);
  umem::address next = Buffer(buffer.context(), 8).adr();
  EXPECT_THROW(Buffer::zeroed(buffer.context(), 8, 8), umem::not_supported_error);
  EXPECT_EQ(Buffer(buffer.context(), 8).adr(), next) << "nothing stays allocated";
}

} // namespace
