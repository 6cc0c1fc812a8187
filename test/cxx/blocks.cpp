/* blocks.cpp - umem/block.hpp and umem/blocks.hpp: blocks of arrays, loops over them, and stencils
 * across their borders. */
#include <umem/adaptors.hpp>
#include <umem/blocks.hpp>

#include "kernels_functors.hpp"
#include "places.h"

namespace {

using umem::BlocksOptions;
using umem::index_t;

BlocksOptions of_rows(index_t rows, index_t ghosts = 0) {
  BlocksOptions options;
  options.rows = rows;
  options.ghosts = ghosts;
  return options;
}

double value(index_t i, index_t j) { return std::sin(static_cast<double>(7 * i + 3 * j)); }

template <class A> void fill(A &&array) {
  auto u = array.host(umem::discard);
  for (index_t i = 0; i < u.extent(0); i++)
    for (index_t j = 0; j < u.extent(1); j++) u(i, j) = value(i, j);
}

struct MakeJacobi {
  Jacobi operator()(View<double const, 2> const &u) const { return {u}; }
};

/* ---- blocks ---- */

TEST(Blocks, hold_all_rows_in_order) {
  Array<double, 2> u({23, 5}, umem::File::scratch());
  fill(u);
  index_t rows = 0, number = 0;
  for (auto const &block : umem::blocks(u, umem::on_host, of_rows(4, 2))) {
    EXPECT_EQ(block.number(), number++);
    EXPECT_EQ(block.first(), rows);
    EXPECT_EQ(block.rows(), std::min<index_t>(4, 23 - rows));
    EXPECT_EQ(block->extents, (umem::Extents<2>{block.rows(), 5}));
    EXPECT_EQ(block->ghosts, (umem::Extents<2>{2, 0}));
    EXPECT_EQ(block.array_extents(), u.extents());
    View<double const, 2> view = block;
    for (index_t i = -2; i < block.rows() + 2; i++)
      for (index_t j = 0; j < 5; j++)
        if (rows + i >= 0 && rows + i < 23) {
          EXPECT_EQ(view.at(i, j), value(rows + i, j));
        }
    rows += block.rows();
  }
  EXPECT_EQ(rows, 23);
}

TEST(Blocks, repeat_the_edges_when_clamped) {
  Array<double, 1> u({10}, umem::File::scratch());
  umem::iota(u, 5);
  auto options = of_rows(4, 3);
  options.edges = umemGhostsClamped;
  std::vector<double> seen;
  for (auto const &block : umem::blocks(u, umem::on_host, options))
    for (index_t i = -3; i < block.rows() + 3; i++) seen.push_back(block.in().at(i));
  std::vector<double> expected = {5,  5,  5,  5,  6,  7,  8,  9,  10, 11, 6,  7,  8,  9,
                                  10, 11, 12, 13, 14, 14, 10, 11, 12, 13, 14, 14, 14, 14};
  EXPECT_EQ(seen, expected);
}

TEST(Blocks, change_an_array) {
  Array<double, 2> u({23, 5}, umem::File::scratch());
  fill(u);
  for (auto const &block : umem::blocks(u, umem::write, umem::on_host, of_rows(4))) {
    View<double, 2> view = *block;
    for (index_t i = 0; i < block.rows(); i++) view(i, 3) = static_cast<double>(block.first() + i);
  }
  for (index_t i = 0; i < 23; i++) {
    EXPECT_EQ(u.get(i, 3), static_cast<double>(i));
    EXPECT_EQ(u.get(i, 2), value(i, 2));
  }
}

TEST(Blocks, go_to_another_array_of_other_elements_and_rank) {
  Array<double, 2> u({23, 5}, umem::File::scratch());
  Array<float, 1> sums({23}, umem::File::scratch());
  fill(u);
  for (auto const &block : umem::blocks(u, sums, umem::on_host, of_rows(4))) {
    EXPECT_EQ(block.out().extents, (umem::Extents<1>{block.rows()}));
    for (index_t i = 0; i < block.rows(); i++) {
      block.out()(i) = 0;
      for (index_t j = 0; j < 5; j++) block.out()(i) += static_cast<float>(block.in()(i, j));
    }
  }
  for (index_t i = 0; i < 23; i++) {
    float sum = 0;
    for (index_t j = 0; j < 5; j++) sum += static_cast<float>(value(i, j));
    EXPECT_EQ(sums.get(i), sum);
  }
}

TEST(Blocks, take_parts_and_views) {
  Array<double, 2> u({24, 5});
  fill(u);
  double sum = 0, odd = 0, column = 0, columns = 0;
  for (index_t i = 0; i < 24; i++)
    for (index_t j = 0; j < 5; j++) {
      sum += value(i, j);
      if (i % 2) odd += value(i, j);
      if (j == 3) column += value(i, j);
      if (j < 3) columns += value(i, j);
    }
  auto view = *u.host(umem::read);
  Array<double, 2> const &fixed = u;
  EXPECT_NEAR(umem::sum(umem::blocks(fixed, umem::on_host, of_rows(5))), sum, 1e-12);
  EXPECT_NEAR(umem::sum(umem::blocks(view, umem::on_host, of_rows(5))), sum, 1e-12);
  EXPECT_NEAR(umem::sum(umem::blocks(u.part().slice(0, 1, 24, 2), umem::on_host, of_rows(5))), odd,
              1e-12);
  EXPECT_NEAR(umem::sum(umem::blocks(u.part().select(1, 3), umem::on_host, of_rows(5))), column,
              1e-12);
  EXPECT_NEAR(umem::sum(umem::blocks(u.part().slice(1, 0, 3), umem::on_host, of_rows(5))), columns,
              1e-12);
  EXPECT_THROW(umem::blocks(u.part().transpose(), umem::on_host), umem::value_error);
}

TEST(Blocks, leave_ghost_cells_of_the_array_alone) {
  Array<int, 2> u({10, 6}, umem::Host(), {{1, 2}, {}, 0});
  auto all = u.part().with_ghosts();
  umem::fill(umem::on_host, u.host(umem::write)->with_ghosts(), 5);
  umem::for_each(umem::blocks(u, umem::write, umem::on_host, of_rows(3)), [](int &x) { x = 1; });
  EXPECT_EQ(umem::sum(u), 60);
  EXPECT_EQ(umem::sum(umem::blocks(all, umem::on_host, of_rows(3))), 60 + 5 * (12 * 10 - 60));
}

TEST(Blocks, take_a_newer_host_side) {
  Array<double, 1> u({100}, umem::File::scratch());
  {
    auto host = u.host(umem::discard);
    for (index_t i = 0; i < 100; i++) host(i) = static_cast<double>(i);
  }
  EXPECT_EQ(umem::sum(umem::blocks(u, umem::on_host, of_rows(7))), 4950);
  umem::for_each(umem::blocks(u, umem::write, umem::on_host, of_rows(7)),
                 [](double &x) { x *= 2; });
  EXPECT_EQ(umem::sum(umem::blocks(u, umem::on_host, of_rows(7))), 9900);
  EXPECT_EQ((*u.host(umem::read))(99), 198);
}

TEST(Blocks, of_nothing) {
  Array<double, 2> none({0, 5}), thin({7, 0});
  for (auto const &block : umem::blocks(none, umem::on_host)) FAIL() << block.number();
  for (auto const &block : umem::blocks(thin, umem::on_host)) FAIL() << block.number();
  EXPECT_EQ(umem::sum(umem::blocks(none, umem::on_host)), 0);
  EXPECT_THROW(umem::max(umem::blocks(none, umem::on_host)), umem::value_error);
  EXPECT_THROW(umem::min(umem::blocks(none, umem::on_host)), umem::value_error);
}

TEST(Blocks, say_how_large_they_are) {
  Array<double, 2> u({1000, 8}, umem::File::scratch());
  umem::Stats stats{umem::Host()};
  BlocksOptions options;
  options.budget = 10000;
  auto blocks = umem::blocks(u, stats, options);
  EXPECT_EQ(blocks.rows(), 10000 / 3 / 64);
  EXPECT_EQ(blocks.depth(), 3);
  EXPECT_EQ(blocks.size(), (1000 + blocks.rows() - 1) / blocks.rows());
  EXPECT_LE(blocks.nbytes(), 10000u);
  EXPECT_EQ(blocks.extents(), u.extents());
  for (auto const &block : blocks) EXPECT_EQ(block.number(), block.first() / blocks.rows());
  EXPECT_EQ(blocks.size(), (1000 + blocks.rows() - 1) / blocks.rows()); /* also afterwards */
  EXPECT_THROW(blocks.begin(), umem::value_error);
  umem_thread_clear();
  EXPECT_EQ(stats.figures().current_bytes, 0);
  EXPECT_LE(stats.figures().peak_bytes, 10000);
  EXPECT_GT(stats.figures().peak_bytes, 9500);
}

/* ---- leaving early, and failures ---- */

TEST(Blocks, are_written_as_far_as_they_were_given_back) {
  Array<int, 1> u({100}, umem::File::scratch());
  umem::fill(u, 1);
  for (auto const &block : umem::blocks(u, umem::write, umem::on_host, of_rows(10))) {
    umem::fill(umem::on_host, block.in(), 2);
    if (block.number() == 3) break;
  }
  EXPECT_EQ(umem::sum(u), 130);
  auto throwing = [&] {
    for (auto const &block : umem::blocks(u, umem::write, umem::on_host, of_rows(10))) {
      umem::fill(umem::on_host, block.in(), 3);
      if (block.number() == 5) throw std::runtime_error("mine");
    }
  };
  EXPECT_THROW(throwing(), std::runtime_error);
  EXPECT_EQ(umem::sum(u), 3 * 50 + 50);
  auto blocks = umem::blocks(u, umem::write, umem::on_host, of_rows(10));
  auto it = blocks.begin();
  umem::fill(umem::on_host, it->in(), 7);
  ++it;
  blocks.finish();
  EXPECT_EQ(umem::sum(u), 3 * 50 + 50 + 40);
}

TEST(Blocks, throw_failures_of_reading_and_writing) {
  for (bool writes : {false, true}) {
    umem::Fault fault{umem::File::scratch()};
    Array<int, 1> u({100}, fault);
    umem::fill(u, 1);
    u.sync_to_device();
    umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
    plan.calls = writes ? umemFaultCopyFrom : umemFaultCopyTo;
    plan.status = umemIOError;
    plan.nth = 5;
    fault.set_plan(plan);
    index_t number = 0;
    auto loop = [&] {
      for (auto const &block : umem::blocks(u, umem::write, umem::on_host, of_rows(10))) {
        EXPECT_EQ(block.number(), number);
        number++;
      }
    };
    expect_words(thrown_by<umem::io_error>(loop),
                 writes ? "umemBlocks_next: writing block 4 of 10 (rows 40 to 49)"
                        : "umemBlocks_next: reading block 4 of 10 (rows 40 to 49)");
    EXPECT_LT(number, 10);
    umem_clear_status(fault.c_context());
    umem_clear_status(fault.upstream().c_context());
  }
}

TEST(Blocks, are_cancelled) {
  Array<int, 1> u({1000}, umem::File::scratch());
  umem::fill(u, 1);
  std::vector<std::uint64_t> calls;
  auto options = of_rows(10);
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 1000u);
    calls.push_back(done);
    return done < 200;
  };
  EXPECT_THROW(umem::sum(umem::blocks(u, umem::on_host, options)), umem::cancelled_error);
  EXPECT_EQ(calls.front(), 0u);
  EXPECT_EQ(calls.back(), 200u);
  options.progress = [&](std::uint64_t done, std::uint64_t) -> bool {
    if (done == 50) throw std::runtime_error("mine");
    return true;
  };
  EXPECT_THROW(umem::sum(umem::blocks(u, umem::on_host, options)), std::runtime_error);
  auto blocks = umem::blocks(u, umem::on_host, of_rows(10));
  auto loop = [&] {
    for (auto const &block : blocks)
      if (block.number() == 3) std::thread([&] { blocks.cancel(); }).join();
  };
  EXPECT_THROW(loop(), umem::cancelled_error);
  EXPECT_EQ(umem_thread_status(), umemOK);
}

/* Functions of the program that C calls may throw, too. */
TEST(Blocks, end_when_a_function_throws_through_c) {
  umemHost host;
  umemHost_ctor(&host);
  std::vector<int> u(100, 1);
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source =
      options.destination = {&host, reinterpret_cast<umem::address>(u.data()), sizeof(int), 0};
  options.count = 100;
  options.place = &host;
  options.rows = 10;
  auto body = [](void *, umemBlock const *block) -> int {
    for (std::size_t i = 0; i < block->rows; i++) reinterpret_cast<int *>(block->out)[i] = 5;
    if (block->number == 4) throw std::runtime_error("mine");
    return 0;
  };
  EXPECT_THROW(umemBlocks_run(&options, body, nullptr, nullptr), std::runtime_error);
  for (std::size_t i = 0; i < 100; i++) EXPECT_EQ(u[i], i < 40 ? 5 : 1);
  options.progress = [](void *, std::uint64_t done, std::uint64_t) -> bool {
    if (done >= 30) throw std::runtime_error("mine");
    return true;
  };
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  ASSERT_EQ(umemBlocks_ctor(&blocks, &options), umemOK);
  EXPECT_THROW(
      {
        while (umemBlocks_next(&blocks, &block)) continue;
      },
      std::runtime_error);
  EXPECT_EQ(umemBlocks_end(&blocks), umemOK);
  EXPECT_EQ(umem_thread_status(), umemOK);
  umem_dtor(&host);
}

TEST(Blocks, refuse_what_cannot_be) {
  Array<int, 1> u({1000}), shorter({999});
  Array<int, 3> with_gaps({10, 10, 10}, umem::Host(), {{0, 0, 1}, {}, 0});
  BlocksOptions options;
  options.budget = 3;
  EXPECT_THROW(umem::blocks(u, umem::on_host, options), umem::memory_error);
  EXPECT_THROW(umem::blocks(u, umem::on_host, of_rows(-1)), umem::value_error);
  EXPECT_THROW(umem::blocks(u, umem::on_host, of_rows(1, -1)), umem::value_error);
  EXPECT_THROW(umem::blocks(u, shorter, umem::on_host), umem::value_error);
  EXPECT_THROW(umem::blocks(with_gaps, umem::on_host), umem::value_error);
  EXPECT_THROW(umem::blocks(u, umem::File::scratch()), umem::not_supported_error);
  EXPECT_THROW(umem::transform_reduce(umem::blocks(u, umem::on_host, of_rows(10)),
                                      umem::blocks(u, umem::on_host, of_rows(11)), 0, umem::plus(),
                                      umem::multiplies()),
               umem::value_error);
}

/* ---- loops ---- */

TEST(BlockLoops, do_what_loops_over_arrays_do) {
  Array<double, 2> u({101, 7}, umem::File::scratch()), v({101, 7}, umem::File::scratch());
  Array<double, 2> x({101, 7}), y({101, 7});
  auto options = of_rows(9);
  auto set = [](double &a, index_t i, index_t j) { a = value(i, j); };
  umem::for_each_indexed(umem::blocks(u, umem::write, umem::on_host_threads(2), options), set);
  umem::for_each_indexed(x, set);
  auto scale = [](double &a) { a *= 3; };
  umem::for_each(umem::blocks(u, umem::write, umem::on_host, options), scale);
  umem::for_each(x, scale);
  auto square = [](double a) { return a * a; };
  umem::transform(umem::blocks(u, v, umem::on_host, options), square);
  umem::transform(x, y, square);
  for (index_t i = 0; i < 101; i++)
    for (index_t j = 0; j < 7; j++) {
      EXPECT_EQ(u.get(i, j), x.get(i, j));
      EXPECT_EQ(v.get(i, j), y.get(i, j));
    }
  EXPECT_NEAR(umem::sum(umem::blocks(v, umem::on_host, options)), umem::sum(y), 1e-10);
  EXPECT_EQ(umem::min(umem::blocks(v, umem::on_host, options)), umem::min(y));
  EXPECT_EQ(umem::max(umem::blocks(v, umem::on_host, options)), umem::max(y));
  double dot = umem::transform_reduce(umem::blocks(u, umem::on_host, options),
                                      umem::blocks(v, umem::on_host, options), 0.0, umem::plus(),
                                      umem::multiplies());
  EXPECT_NEAR(dot,
              umem::transform_reduce(umem::on_host, x, y, 0.0, umem::plus(), umem::multiplies()),
              1e-10);
}

/* ---- stencils across the borders of blocks ---- */

/* Sweeps in one piece, from one array to the other and back. The last one is returned. */
Array<double, 2> in_one_piece(Array<double, 2> u, int sweeps, std::vector<double> &changes) {
  Array<double, 2> next(u);
  for (int k = 0; k < sweeps; k++) {
    changes.push_back(umem::sweep(umem::on_host, next, umem::interior(next), 0.0, umem::maximum(),
                                  Jacobi{*u.host(umem::read)}));
    swap(u, next);
  }
  return u;
}

void expect_equal(Array<double, 2> const &one, Array<double, 2> const &other) {
  auto a = one.host(umem::read), b = other.host(umem::read);
  for (index_t i = 0; i < a.extent(0); i++)
    for (index_t j = 0; j < a.extent(1); j++) ASSERT_EQ(a(i, j), b(i, j)) << i << ", " << j;
}

TEST(BlockStencils, give_the_bits_of_one_piece) {
  for (index_t rows : {1, 2, 7, 30, 31, 100}) {
    Array<double, 2> u({61, 17}, umem::File::scratch()), next({61, 17}, umem::File::scratch());
    Array<double, 2> whole({61, 17});
    fill(u);
    fill(whole);
    std::vector<double> expected, found;
    Array<double, 2> right = in_one_piece(std::move(whole), 10, expected);
    for (int k = 0; k < 10; k++) {
      found.push_back(umem::sweep(umem::blocks(u, next, umem::on_host, of_rows(rows, 1)), 1, 0.0,
                                  umem::maximum(), MakeJacobi()));
      swap(u, next);
    }
    EXPECT_EQ(found, expected);
    expect_equal(u, right);
  }
}

TEST(BlockStencils, may_replace_the_array) {
  for (index_t rows : {1, 3, 20, 61}) {
    Array<double, 2> u({61, 17}, umem::MMap::scratch()), whole({61, 17});
    fill(u);
    fill(whole);
    std::vector<double> expected, found;
    Array<double, 2> right = in_one_piece(std::move(whole), 5, expected);
    for (int k = 0; k < 5; k++)
      found.push_back(umem::sweep(umem::blocks(u, u, umem::on_host, of_rows(rows, 1)), 1, 0.0,
                                  umem::maximum(), MakeJacobi()));
    EXPECT_EQ(found, expected);
    expect_equal(u, right);
  }
}

/* ---- every context ---- */

class BlocksOn : public EachPlace {};

TEST_P(BlocksOn, come_from_any_context) {
  Array<double, 2> u({40, 9}, place);
  fill(u);
  double sum = 0;
  for (index_t i = 0; i < 40; i++)
    for (index_t j = 0; j < 9; j++) sum += value(i, j);
  EXPECT_NEAR(umem::sum(umem::blocks(u, umem::on_host, of_rows(6))), sum, 1e-12);
}

TEST_P(BlocksOn, replace_arrays_on_any_context) {
  Array<double, 2> u({40, 9}, place), whole({40, 9});
  fill(u);
  fill(whole);
  std::vector<double> expected, found;
  Array<double, 2> right = in_one_piece(std::move(whole), 3, expected);
  for (int k = 0; k < 3; k++)
    found.push_back(umem::sweep(umem::blocks(u, u, umem::on_host, of_rows(6, 1)), 1, 0.0,
                                umem::maximum(), MakeJacobi()));
  EXPECT_EQ(found, expected);
  expect_equal(u, right);
}

/* Kernels need nvcc: the program's own work on the place does here. On the test's double of a GPU
 * nothing that is queued is done before somebody waits for it. */
TEST_P(BlocksOn, stand_on_any_context_with_pointers) {
  Array<int, 1> u({1000}, umem::File::scratch()), v({1000}, umem::File::scratch());
  umem::iota(u, 0);
  if (place.can(umemOffsets)) {
    EXPECT_THROW(umem::blocks(u, v, place), umem::not_supported_error);
    return;
  }
  std::vector<int> result(1000);
  for (auto const &block : umem::blocks(u, v, place, of_rows(70))) {
    auto n = static_cast<std::size_t>(block.rows()) * sizeof(int);
    int *here = result.data() + block.first();
    umem::copy(place, reinterpret_cast<umem::address>(block.in().data), here, n);
    for (index_t i = 0; i < block.rows(); i++) here[i] = 7 - here[i];
    umem_copy_from(place.c_context(), reinterpret_cast<umem::address>(block.out().data),
                   umem::detail::pointers().c_context(), reinterpret_cast<umem::address>(here), n);
  }
  for (index_t i = 0; i < 1000; i++) ASSERT_EQ(v.get(i), 7 - static_cast<int>(i));
}
FOR_EACH_PLACE(BlocksOn);

} // namespace
