/* allocator.cpp - umem::Allocator and umem::MemoryResource in the containers of the standard
 * library, on every context that the CPU can use. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/memory_resource.hpp>

#include <list>
#include <map>
#include <memory_resource>

namespace {

using umem::Allocator;
using umem::MemoryResource;

using Traits = std::allocator_traits<Allocator<int>>;
static_assert(Traits::propagate_on_container_move_assignment::value);
static_assert(Traits::propagate_on_container_swap::value);
static_assert(!Traits::propagate_on_container_copy_assignment::value);
static_assert(!Traits::is_always_equal::value);
static_assert(std::is_same_v<Traits::rebind_alloc<double>, Allocator<double>>);
static_assert(std::is_nothrow_copy_constructible_v<Allocator<int>>);
static_assert(std::is_nothrow_copy_assignable_v<Allocator<int>>);
static_assert(std::is_nothrow_move_constructible_v<std::vector<int, Allocator<int>>>);
static_assert(!std::is_copy_constructible_v<MemoryResource>);

/* Aligned beyond what any context gives by itself. */
struct alignas(1024) Wide {
  int tag = 3;
};

template <class Pointer> std::uintptr_t misalignment(Pointer const *pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pointer);
}

template <class T> using Vec = std::vector<T, Allocator<T>>;

/* Tests of contexts that the CPU can use. */
struct AllocatorTest : EachPlace {
  void SetUp() override {
    EachPlace::SetUp();
    if (place && !place.is_cpu_accessible()) {
      EXPECT_THROW(Allocator<int>{place}, umem::not_supported_error);
      EXPECT_THROW(MemoryResource{place}, umem::not_supported_error);
      GTEST_SKIP() << "not for the CPU";
    }
  }
};
FOR_EACH_PLACE(AllocatorTest);

TEST_P(AllocatorTest, serves_vectors) {
  Vec<int> values(3, 7, place);
  for (int i = 0; i < 10000; i++) values.push_back(i);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values.back(), 9999);
  EXPECT_EQ(values.get_allocator().context(), place);
  values.clear();
  values.shrink_to_fit();
}

TEST_P(AllocatorTest, takes_from_its_context) {
  Vec<char> values(100, 'a', place);
  std::string found(100, '?');
  umem::copy(place, reinterpret_cast<umem::address>(values.data()), found.data(), 100);
  EXPECT_EQ(found, std::string(100, 'a'));
}

TEST_P(AllocatorTest, serves_nodes) {
  using Pair = std::pair<int const, double>;
  std::map<int, double, std::less<int>, Allocator<Pair>> map(std::less<int>(), place);
  for (int i = 0; i < 100; i++) map[i * 37 % 100] = i;
  EXPECT_EQ(map.size(), 100u);
  EXPECT_EQ(map.at(37), 1);
  map.erase(37);
  std::list<std::string, Allocator<std::string>> list({"a", "b"}, place);
  EXPECT_EQ(list.back(), "b");
}

TEST_P(AllocatorTest, moves_and_swaps_take_it_along) {
  umem::Context other = umem::Host();
  Vec<int> one({1, 2, 3}, place), two({4}, other);
  int const *data = one.data();
  Vec<int> three = std::move(one);
  EXPECT_EQ(three.data(), data);
  EXPECT_EQ(one.get_allocator(), three.get_allocator()) << "moved from, it keeps its value";
  one.assign({5, 6});
  two = std::move(three);
  EXPECT_EQ(two.data(), data);
  EXPECT_EQ(two.get_allocator().context(), place);
  Vec<int> four({8, 9}, other);
  std::swap(two, four);
  EXPECT_EQ(four.data(), data);
  EXPECT_EQ(two.get_allocator().context(), other);
  EXPECT_EQ(one, (Vec<int>({5, 6}, other)));
}

TEST_P(AllocatorTest, copy_assignment_keeps_the_targets) {
  umem::Context other = umem::Host();
  Vec<int> one({1, 2, 3}, place), two({4}, other);
  two = one;
  EXPECT_EQ(two, one);
  EXPECT_EQ(two.get_allocator().context(), other);
  Vec<int> three(one);
  EXPECT_EQ(three.get_allocator().context(), place);
}

TEST_P(AllocatorTest, is_equal_on_one_context) {
  Allocator<int> one(place), two(umem::Host{});
  Allocator<double> same(one);
  EXPECT_TRUE(one == same);
  EXPECT_TRUE(same == one);
  EXPECT_FALSE(one != same);
  EXPECT_TRUE(one != two);
  double *block = same.allocate(3);
  Allocator<double>(one).deallocate(block, 3);
}

TEST_P(AllocatorTest, aligns_types_that_need_it) {
  Vec<char> odd(1, 'a', place);
  Vec<Wide> values(place);
  for (int i = 0; i < 20; i++) {
    values.emplace_back();
    EXPECT_EQ(misalignment(values.data()), 0u);
  }
  std::list<Wide, Allocator<Wide>> list(3, place);
  for (Wide const &wide : list) EXPECT_EQ(misalignment(&wide), 0u);
}

TEST_P(AllocatorTest, throws_bad_alloc) {
  Allocator<double> allocator(place);
  EXPECT_THROW(static_cast<void>(allocator.allocate(SIZE_MAX / 8)), std::bad_alloc);
  forget_failure();
  EXPECT_THROW(static_cast<void>(allocator.allocate(SIZE_MAX / 4)), umem::memory_error);
  std::size_t const terabytes = std::size_t(1) << 46;
  if (place.info().available > terabytes) return;
  EXPECT_THROW(static_cast<void>(allocator.allocate(terabytes / 8)), std::bad_alloc);
  forget_failure();
  EXPECT_THROW(Vec<char>(1, 'a', place).reserve(terabytes), std::bad_alloc);
  forget_failure();
}

/* For what is queued may still use the bytes that a new block is made of. */
TEST_P(AllocatorTest, waits_for_what_is_queued) {
  Vec<char> values(1, 'a', place);
  place.set(reinterpret_cast<umem::address>(values.data()), 'b', 1);
  Vec<char> other(1, 'c', place);
  EXPECT_EQ(values[0], 'b');
}

TEST_P(AllocatorTest, keeps_its_context_alive) {
  Vec<int> values(100, 5, Allocator<int>(open_place(*GetParam())));
  values.push_back(6);
  EXPECT_EQ(values.back(), 6);
}

TEST_P(AllocatorTest, resources_serve_polymorphic_containers) {
  MemoryResource resource(place);
  std::pmr::vector<std::pmr::string> values(&resource);
  for (int i = 0; i < 100; i++) values.emplace_back(200, 'a');
  EXPECT_EQ(values.back(), std::string(200, 'a').c_str());
  EXPECT_EQ(values.back().get_allocator().resource(), &resource);
  std::pmr::vector<Wide> wide(5, &resource);
  EXPECT_EQ(misalignment(wide.data()), 0u);
}

TEST_P(AllocatorTest, resources_refuse_alignments_that_are_no_power_of_two) {
  std::size_t before = blocks();
  umem::MemoryResource resource(place);
  for (std::size_t alignment : {3u, 6u, 7u, 24u, 4097u})
    EXPECT_THROW(static_cast<void>(resource.allocate(10, alignment)), umem::value_error);
  EXPECT_EQ(blocks(), before);
  forget_failure();
}

TEST_P(AllocatorTest, resources_honour_alignments) {
  MemoryResource resource(place);
  for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
    void *block = resource.allocate(10, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    resource.deallocate(block, 10, alignment);
  }
  EXPECT_THROW(static_cast<void>(resource.allocate(SIZE_MAX / 4)), std::bad_alloc);
  forget_failure();
}

TEST_P(AllocatorTest, resources_are_equal_on_one_context) {
  MemoryResource one(place), same(one.context()), other(umem::Host{});
  EXPECT_TRUE(one.is_equal(same));
  EXPECT_FALSE(one.is_equal(other));
  EXPECT_FALSE(one.is_equal(*std::pmr::new_delete_resource()));
  EXPECT_FALSE(std::pmr::new_delete_resource()->is_equal(one));
  void *block = one.allocate(8);
  same.deallocate(block, 8);
}

TEST(Allocator, of_an_empty_handle_is_an_error) {
  EXPECT_THROW(Allocator<int>{umem::Context()}, umem::value_error);
  EXPECT_THROW(MemoryResource{umem::Context()}, umem::value_error);
}

TEST(Allocator, of_a_file_that_is_only_read_is_an_error) {
  TempFile file;
  EXPECT_THROW(Allocator<int>(umem::MMap(file.path, "r")), umem::not_supported_error);
}

/* ---- memory that need not be the CPU's ---- */

ON_EACH_PLACE(PolymorphicTest);

TEST_P(PolymorphicTest, allocates_on_every_place_with_pointers) {
  using umem::PolymorphicAllocator;
  if (place.can(umemOffsets)) {
    EXPECT_THROW(PolymorphicAllocator<int>{place}, umem::not_supported_error);
    forget_failure();
    return;
  }
  umem::Stats stats(place);
  PolymorphicAllocator<Wide> wide{umem::Context(stats)};
  PolymorphicAllocator<> bytes = wide;
  EXPECT_TRUE(bytes == wide);
  EXPECT_TRUE(bytes != PolymorphicAllocator<>(place));
  Wide *block = wide.allocate(3);
  EXPECT_EQ(misalignment(block), 0u);
  EXPECT_GE(stats.figures().current_bytes, static_cast<std::int64_t>(3 * sizeof(Wide)));
  stats.set(reinterpret_cast<umem::address>(block), 7, 3 * sizeof(Wide)); /* by the place */
  unsigned char last = 0;
  umem::copy(stats, reinterpret_cast<umem::address>(block + 3) - 1, &last, 1);
  EXPECT_EQ(last, 7);
  void *more = bytes.allocate_bytes(100, 256);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(more) % 256, 0u);
  bytes.deallocate_bytes(more, 100, 256);
  wide.deallocate(block, 3);
  EXPECT_EQ(stats.figures().current_count, 0);
  EXPECT_THROW(static_cast<void>(wide.allocate(SIZE_MAX / 2)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(bytes.allocate_bytes(1, 3)), umem::value_error);
  forget_failure();
}

} // namespace
