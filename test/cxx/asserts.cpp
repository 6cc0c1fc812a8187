/* asserts.cpp - with UMEM_CHECKS, unchecked access is checked: also where NDEBUG is defined and
 * with optimisation. */
#include "tests.hpp"

#include <umem/adaptors.hpp>
#include <umem/compare.hpp>

#if !UMEM_CHECKS
#error "this test needs UMEM_CHECKS"
#endif

TEST(AssertsDeathTest, indices_are_in_range) {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  EXPECT_DEATH(view(3, 0) = 1, "contains");
  EXPECT_DEATH(view(0, -1) = 1, "contains");
  EXPECT_DEATH(view(Extents{0, 4}) = 1, "contains");
  EXPECT_DEATH(view[12] = 1, "size");
  EXPECT_DEATH(view.transpose()[0] = 1, "is_contiguous");
  EXPECT_DEATH((View<int, 1>()(0) = 1), "contains");
  EXPECT_DEATH(view(3, 0) = 1,
               "view.hpp:[0-9]+: operator\\(\\): the check 'view.contains.*' of umem failed");
}

TEST(AssertsDeathTest, indices_of_guards_are_in_range) {
  umem::Array<int, 2> array({3, 4});
  auto guard = array.host(umem::write);
  EXPECT_DEATH(guard(3, 0) = 1, "operator\\(\\).*contains");
  EXPECT_DEATH(guard(Extents{0, 4}) = 1, "contains");
  EXPECT_DEATH(guard[12] = 1, "size");
}

TEST(AssertsDeathTest, ghost_cells_are_in_range) {
  int memory[20] = {};
  auto view = View<int, 1>::with_ghosts_from(memory, {6}, {2});
  view(-2) = view(7) = 1;
  EXPECT_DEATH(view(-3) = 1, "contains");
  EXPECT_DEATH(view(8) = 1, "contains");
}

TEST(AssertsDeathTest, dimensions_are_in_range) {
  Extents<2> extents{3, 4};
  umem::Shape shape{3, 4};
  EXPECT_DEATH(extents[2] = 1, "is_dimension");
  EXPECT_DEATH(extents[-1] = 1, "is_dimension");
  EXPECT_DEATH(shape[2] = 1, "size_");
  int memory[12] = {};
  umem::DynamicView<int> const view(memory, shape);
  EXPECT_DEATH(view.extent(2), "is_dimension");
  EXPECT_DEATH(view.stride(2), "is_dimension");
  EXPECT_DEATH(view.low(-1), "is_dimension");
}

TEST(AssertsDeathTest, numbers_of_elements_are_in_range) {
  umem::Indexer<2, std::int32_t> indexer(Extents{3, 4});
  EXPECT_DEATH(indexer.offset(3, 0), "extents_");
  EXPECT_DEATH(indexer.indices(12), "size_");
  EXPECT_DEATH((umem::Indexer<2, std::int32_t>(Extents{65536, 65536})), "fits");
}

/* ---- what the messages name ---- */

TEST(AssertsDeathTest, a_message_names_all_indices_and_the_shape) {
  int memory[60] = {};
  View<int, 3> view(memory, {3, 4, 5});
  EXPECT_DEATH(view(2, 4, 1) = 1,
               "the check 'view.contains.*' of umem failed: index \\(2, 4, 1\\) is "
               "outside of a view of shape \\(3, 4, 5\\)");
  EXPECT_DEATH(view[60] = 1, "index \\(60,\\) is outside of a view of shape \\(60,\\)");
  auto ghosts = View<int, 2>::with_ghosts_from(memory, {4, 5}, {{1, 0}, {2, 1}});
  EXPECT_DEATH(ghosts(-1, 6) = 1,
               "index \\(-1, 6\\) is outside of a view of shape \\(4, 5\\) with \\(1, 0\\) ghost "
               "cells before and \\(2, 1\\) after");
  umem::Indexer<2> indexer(Extents{3, 4});
  EXPECT_DEATH(indexer.offset(2, 4), "index \\(2, 4\\) is outside of shape \\(3, 4\\)");
  EXPECT_DEATH(indexer.offset(Extents{3, 0}), "index \\(3, 0\\) is outside of shape \\(3, 4\\)");
}

TEST(AssertsDeathTest, a_message_names_the_array_and_its_place) {
  umem::Track place{umem::Host()};
  umem_set_label(place.c_context(), "grid");
  umem::Array<int, 2> array({3, 4}, place);
  auto guard = array.host(umem::write);
  auto address = reinterpret_cast<umem::address>(guard->data);
  umem_set_block_label(place.c_context(), address, "pressure");
  EXPECT_DEATH(guard(0, 4) = 1,
               "which is in the array \"pressure\" of shape \\(3, 4\\) on Track \"grid\"");
  EXPECT_DEATH(guard->select(0, 1)(4) = 1,
               "index \\(4,\\) is outside of a view of shape \\(4,\\), which is in the "
               "array \"pressure\" of shape \\(3, 4\\)");
  umem::Buffer buffer(place, 12);
  EXPECT_DEATH((View<char, 1>(static_cast<char *>(buffer.data()), {12})(12) = 1),
               "of shape \\(12,\\), which is in the block on Track \"grid\"");
}

/* ---- views and guards that are used too late ---- */

TEST(AssertsDeathTest, a_view_ends_with_its_guard) {
  umem::Host place;
  umem_set_label(place.c_context(), "grid");
  umem::Array<int, 2> array({3, 4}, place);
  View<int, 2> view, column;
  {
    auto guard = array.host(umem::write);
    view = *guard;
    column = guard->slice(1, 2, 3);
    view(1, 1) = 5;
    column(0, 0) = 6;
  }
  EXPECT_DEATH(
      view(1, 1) = 1,
      "the check 'a guard lives' of umem failed: a view is used after its guard has ended; it "
      "is of the array of shape \\(3, 4\\) on Host \"grid\": no guard of the host side lives");
  EXPECT_DEATH(view[1] = 1, "its guard has ended");
  EXPECT_DEATH(view(Extents{0, 0}) = 1, "its guard has ended");
  EXPECT_DEATH(column(0, 0) = 1, "its guard has ended");
  auto guard = array.host(umem::read); /* gives the access back */
  EXPECT_EQ(view(1, 1), 5);
  EXPECT_EQ(column(0, 0), 6);
  guard.release();
  EXPECT_DEATH(static_cast<void>(view(1, 1)), "its guard has ended");
  EXPECT_DEATH(std::thread([&] { view(1, 1) = 1; }).join(), "its guard has ended");
}

TEST(AssertsDeathTest, a_view_of_one_side_does_not_live_by_guards_of_the_other) {
  umem::Array<int, 1> array({10}, umem::Guarded(umem::Host()));
  View<int, 1> host = *array.host(umem::discard), device = *array.device(umem::discard);
  auto guard = array.device(umem::write);
  device(3) = 1;
  EXPECT_DEATH(host(3) = 1, "on Guarded \"host side of Guarded\": no guard of the host side lives");
  guard.release();
  auto reader = array.host(umem::read);
  EXPECT_EQ(host(3), 1);
  EXPECT_DEATH(device(3) = 1, "on Guarded: no guard of the device side lives");
  reader.release();
  array.release_host();
  EXPECT_DEATH(device(3) = 1, "no guard of the device side lives");
}

TEST(AssertsDeathTest, a_guard_must_not_outlive_its_array) {
  auto array = std::make_unique<umem::Array<int, 2>>(Extents{3, 4});
  auto guard = array->host(umem::write);
  guard(1, 1) = 5;
  umem::Array<int, 2> moved = std::move(*array);
  array.reset();
  EXPECT_EQ(guard(1, 1), 5); /* the array has moved only */
  auto lock_of = [](umem::Array<int, 2> &of) { return of.lock(); };
  guard.release();
  {
    umem::Array<int, 2> other({3, 4});
    auto lock = lock_of(other);
    umem::Array<int, 2>().swap(other);
    lock.host(umem::write)(1, 1) = 1; /* the lock keeps it */
  }
  auto late = umem::Array<int, 2>::zeros({3, 4}).host(umem::write);
  char const *words = "the check 'the array lives' of umem failed: a guard of shape \\(3, 4\\) is "
                      "used after the end of "
                      "its array, the array of shape \\(3, 4\\) on Host: what it writes is lost";
  EXPECT_DEATH(late(1, 1) = 1, words);
  EXPECT_DEATH(late[1] = 1, words);
  EXPECT_DEATH((*late)(1, 1) = 1, words);
  EXPECT_DEATH(static_cast<void>(late->data), words);
  EXPECT_DEATH((View<int const, 2>(late)(0, 0)), words);
  auto device = umem::Array<int, 1>::zeros({3}).device(umem::write);
  EXPECT_DEATH(device(1) = 1, "used after the end of its array");
}

/* What programs do without guards, and may. */
TEST(Asserts, memory_that_the_program_has_asked_for_is_not_watched) {
  umem::Array<int, 1> array({10});
  View<int, 1> view = *array.host(umem::discard);
  View<int, 1> plain(reinterpret_cast<int *>(array.adr()), {10});
  plain(3) = 4;
  EXPECT_EQ(view(3), 4);
  int memory[10] = {};
  auto wrapped = umem::Array<int, 1>::wrap_unowned(memory, {10});
  wrapped.host(umem::write)(1) = 2;
  View<int, 1> own(memory, {10});
  EXPECT_EQ(own(1), 2);
}

/* The memory of an array that has ended belongs to others. */
TEST(Asserts, memory_is_watched_as_long_as_its_array) {
  int storage[10] = {};
  View<int, 1> own(storage, {10});
  for (int round = 0; round < 100; round++) {
    umem::Array<int, 1> array({10});
    array.host(umem::discard)(0) = 1;
    array = umem::Array<int, 1>();
    std::unique_ptr<int[]> others(new int[10]());
    View<int, 1> view(others.get(), {10});
    view(0) = 1;
    own(1) = view(0);
  }
}

TEST(Asserts, ghost_cells_can_change) {
  umem::Array<int, 1> array({10}, umem::Host(), {{1}});
  array.host(umem::discard)(-1) = 1;
  array.set_ghosts({2});
  array.host(umem::write)(-2) = 1;
  EXPECT_EQ(array.extent(0), 8);
}

/* ---- operands that overlap ---- */

TEST(Operands, that_share_elements_are_refused) {
  umem::Array<double, 2> a({6, 6});
  umem::iota(a, 0);
  auto const low = a.part(umem::range(0, 5), umem::full_extent),
             high = a.part(umem::range(1, 6), umem::full_extent);
  auto const set = [](double &x, double y) { x = y; };
  std::string const of_for_each = "for_each: operands 1 and 2",
                    of_transform = "transform: operands 0 and 1";
  EXPECT_NE(thrown_by<umem::value_error>([&] { umem::for_each(set, high, low); }).find(of_for_each),
            std::string::npos);
  EXPECT_NE(thrown_by<umem::value_error>([&] {
              umem::transform(low, high, [](double x) { return x; });
            }).find(of_transform),
            std::string::npos);
  EXPECT_NE(thrown_by<umem::value_error>([&] { umem::for_each(set, a, a.part().transpose()); }),
            "");
  EXPECT_NE(thrown_by<umem::value_error>([&] {
              umem::for_each_indexed([](double &x, double y, auto...) { x = y; }, low, high);
            }),
            "");
  EXPECT_NE(thrown_by<umem::value_error>([&] {
              umem::for_each(set, umem::Range<2>({0, 0}, {5, 6}), a, high);
            }),
            "");
  umem::Array<double, 2> model({6, 6});
  umem::iota(model, 0);
  EXPECT_TRUE(umem::all_equal(a, model));
}

TEST(Operands, that_are_apart_or_the_same_are_taken) {
  umem::Array<double, 2> a({6, 6});
  umem::iota(a, 0);
  auto const set = [](double &x, double y) { x = y; };
  auto const add = [](double x, double y) { return x + y; };
  EXPECT_EQ(thrown_by<umem::value_error>([&] { umem::for_each(set, a, a); }), "");
  EXPECT_EQ(thrown_by<umem::value_error>([&] {
              umem::for_each(set, a.part(umem::range(0, 3), umem::full_extent),
                             a.part(umem::range(3, 6), umem::full_extent));
            }),
            "");
  EXPECT_EQ(thrown_by<umem::value_error>([&] {
              umem::for_each(set, a.part(umem::full_extent, umem::range(0, 3)),
                             a.part(umem::full_extent, umem::range(3, 6)));
            }),
            "");
  umem::Array<double, 2> const &read = a;
  umem::Array<double, 2> sum({6, 6});
  EXPECT_EQ(thrown_by<umem::value_error>(
                [&] { umem::transform(read, read.part().transpose(), sum, add); }),
            "");
  EXPECT_EQ(thrown_by<umem::value_error>([&] { umem::transform(a, sum, a, add); }), "");
}

/* A view that is used in constant expressions. */
static constexpr int element_of_a_constant() {
  int memory[2] = {1, 2};
  return View<int, 1>(memory, {2})(1);
}
static_assert(element_of_a_constant() == 2);
