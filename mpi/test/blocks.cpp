/* blocks.cpp - tests of umem/mpi.hpp and umem/mpi_blocks.hpp, for any number of ranks. A check that
 * fails ends all. */
#include "end.h"
#include "jacobi.hpp"

#include <umem/adaptors.hpp>
#include <umem/buffer.hpp>
#include <umem/mpi_blocks.hpp>
#include <umem/npy.hpp>
#include <umem/pool.hpp>
#include <umem/print.hpp>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

using umem::index_t;
using umem::mpi::Blocks;

static int rank, ranks; /* of MPI_COMM_WORLD */

#define CHECK(...)                                                                                 \
  do {                                                                                             \
    if (!(__VA_ARGS__)) check_failed(__LINE__, #__VA_ARGS__);                                      \
  } while (0)

[[noreturn]] static void check_failed(int line, char const *condition) {
  std::fprintf(stderr, "blocks.cpp:%d: rank %d: not %s\n", line, rank, condition);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/* What f throws, as text. */
template <class Error, class F> static std::string thrown(F const &f) {
  try {
    f();
  } catch (Error const &error) {
    return error.message();
  }
  return "";
}

static bool has(std::string const &text, char const *words) {
  return text.find(words) != std::string::npos;
}

/* Lets other processes run: with more ranks than processors, MPICH's own takes seconds. */
static void barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  umem::mpi::detail::wait(request, "MPI_Ibarrier");
}

/* ---- contexts ---- */

static void contexts_are_handles() {
  auto const none = thrown<umem::value_error>([] { umem::mpi::Context(MPI_COMM_WORLD, 0); });
  CHECK(has(none, "has no window"));
  umem::mpi::Window window(MPI_COMM_WORLD, 1 << 20);
  int const next = (rank + 1) % ranks;
  umem::mpi::Context context(MPI_COMM_WORLD, next);
  CHECK(context.rank() == next && context.ranks() == ranks);
  CHECK(
      has(thrown<umem::value_error>([] { umem::mpi::Context(MPI_COMM_WORLD, 99); }), "no rank 99"));
  {
    umem::Buffer block(context, 800);
    CHECK(block.size() == 800);
    umem::Array<double, 2> u({10, 10}, context), v({10, 10});
    umem::fill(u, 1.5 + rank);
    umem::copy(u, v);
    CHECK(umem::sum(v) == 100 * (1.5 + rank));
    umem::Pool pool{context};
    umem::Array<int, 1> w({100}, pool);
    umem::fill(w, 7);
    CHECK(umem::sum(w) == 700);
    CHECK(umem::mpi::Context::of(pool).rank() == next);
  }
  umem::mpi::Context own(MPI_COMM_WORLD, rank);
  umem::Buffer number(own, sizeof(int));
  *static_cast<int *>(own.pointer(number.adr())) = 42;
  own.sync();
  int seen = 0;
  umem::copy(own, number.adr(), &seen, sizeof seen);
  CHECK(seen == 42);
  barrier();
}

/* ---- blocks ---- */

/* A value for each index of the whole array. */
template <int N> static double value_at(umem::Extents<N> const &at) {
  double value = 0;
  for (int k = 0; k < N; k++) value = 100 * value + static_cast<double>(at[k]);
  return value;
}

/* Calls f for all indices from low on, below high. */
template <int N, class F>
static void for_all(umem::Extents<N> const &low, umem::Extents<N> const &high, F const &f) {
  umem::Extents<N> at = low;
  for (;;) {
    f(at);
    int k = N - 1;
    for (; k >= 0 && ++at.at[k] == high[k]; k--) at.at[k] = low[k];
    if (k < 0) return;
  }
}

/* Elements are those of the whole array, ghost cells those of the neighbours, or -1 outside. */
template <int N>
static void
ghosts_come_from_neighbours(umem::Extents<N> const &extents, umem::Ghosts<N> const &ghosts,
                            umem::Extents<N> const &wraps, umem::Context const &context) {
  Blocks<double, N> blocks(MPI_COMM_WORLD, extents, ghosts, context, wraps);
  umem::Range<N> const box = blocks.box();
  umem::Extents<N> const count = blocks.array().extents();
  umem::Extents<N> low, high;
  for (int k = 0; k < N; k++) {
    low.at[k] = -ghosts.below[k];
    high.at[k] = count[k] + ghosts.above[k];
  }
  auto in_whole = [&](umem::Extents<N> at, bool &inside) {
    inside = true;
    for (int k = 0; k < N; k++) {
      at.at[k] += box.begin[k];
      if (wraps[k]) at.at[k] = (at[k] % extents[k] + extents[k]) % extents[k];
      inside = inside && at[k] >= 0 && at[k] < extents[k];
    }
    return at;
  };
  {
    auto view = blocks.array().host(umem::write);
    for_all<N>(low, high, [&](umem::Extents<N> const &at) { view(at) = -1; });
    for_all<N>({}, count, [&](umem::Extents<N> const &at) {
      bool inside;
      view(at) = value_at<N>(in_whole(at, inside));
    });
  }
  blocks.exchange();
  auto view = blocks.array().host(umem::read);
  for_all<N>(low, high, [&](umem::Extents<N> const &at) {
    bool inside;
    auto const whole = in_whole(at, inside);
    CHECK(view(at) == (inside ? value_at<N>(whole) : -1));
  });
}

static void ghosts_are_exchanged() {
  umem::Host host;
  ghosts_come_from_neighbours<1>({17}, {umem::Extents<1>(2), umem::Extents<1>(1)}, {}, host);
  ghosts_come_from_neighbours<2>({12, 9}, {{1, 1}}, {}, host);
  ghosts_come_from_neighbours<2>({12, 9}, {umem::Extents<2>(2, 1), umem::Extents<2>(1, 3)}, {1, 1},
                                 host);
  ghosts_come_from_neighbours<3>({5, 8, 6}, {{1, 1, 1}}, {0, 1, 0}, host);
  ghosts_come_from_neighbours<2>({12, 9}, {{1, 1}}, {1, 0}, umem::File::scratch());
  umem::mpi::Window window(MPI_COMM_WORLD, 1 << 20);
  ghosts_come_from_neighbours<2>({12, 9}, {{1, 1}}, {1, 0},
                                 umem::mpi::Context(MPI_COMM_WORLD, rank));
  barrier();
}

static void reductions_are_of_all_ranks() {
  Blocks<float, 1> u(MPI_COMM_WORLD, {1000});
  CHECK(u.rank() == rank && u.ranks() == ranks && u.extents() == umem::Extents<1>(1000));
  index_t const first = u.box().begin[0];
  umem::for_each_indexed(umem::on_host, u.array().host(umem::write),
                         [=](float &x, index_t i) { x = static_cast<float>(first + i); });
  CHECK(u.sum() == 499500);
  CHECK(u.max() == 999 && u.min() == 0);
  if (rank == ranks - 1) u.array().host(umem::write)(0) = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(u.max()) && std::isnan(u.min()));
  CHECK(u.reduce(rank, umem::plus()) == ranks * (ranks - 1) / 2);

  Blocks<int, 1> one(MPI_COMM_WORLD, {1}); /* most ranks have no element */
  umem::fill(one.array(), -5);
  CHECK(one.max() == -5 && one.min() == -5 && one.sum() == -5);
  Blocks<int, 1> none(MPI_COMM_WORLD, {0});
  CHECK(none.sum() == 0);
  CHECK(has(thrown<umem::value_error>([&] { none.max(); }), "max of no elements"));
}

static void blocks_must_be_as_many_as_ranks() {
  umem::Decomposition<1> grid({10}, {ranks + 1});
  auto const text = thrown<umem::value_error>([&] { Blocks<int, 1>(MPI_COMM_WORLD, grid); });
  CHECK(text == std::to_string(ranks + 1) + " blocks for " + std::to_string(ranks) + " ranks");
  auto rows = umem::Decomposition<2>({10, 4}, {ranks, 1});
  Blocks<int, 2> blocks(MPI_COMM_WORLD, rows);
  CHECK(blocks.array().extents() == rows.extents(rank));
}

/* Without memory in one rank no rank has blocks, and none waits for the others in its next call. */
static void blocks_are_made_in_all_ranks_or_in_none() {
  int const failing = ranks - 1;
  umem::Context place = umem::Host();
  if (rank == failing) place = umem::Limit(place, 1);
  auto const make = [&] { Blocks<int, 1>(MPI_COMM_WORLD, {100 * ranks}, {}, place); };
  if (rank == failing)
    CHECK(!thrown<umem::memory_error>(make).empty());
  else
    CHECK(thrown<umem::runtime_error>(make) ==
          "Blocks: rank " + std::to_string(failing) + " has no block, and knows why");
  Blocks<int, 1> blocks(MPI_COMM_WORLD, {100 * ranks});
  umem::fill(blocks.array(), 1);
  CHECK(blocks.sum() == 100 * ranks);
}

static void one_file_gets_all_blocks(std::string const &folder) {
  std::string const path = folder + "/umem-test-blocks-" + std::to_string(ranks) + ".npy";
  umem::Extents<3> const extents(7, 6, 5);
  Blocks<double, 3> u(MPI_COMM_WORLD, extents, {{1, 1, 1}});
  auto const box = u.box();
  {
    auto view = u.array().host(umem::write);
    for_all<3>({}, u.array().extents(), [&](umem::Extents<3> const &at) {
      view(at) = value_at<3>({at[0] + box.begin[0], at[1] + box.begin[1], at[2] + box.begin[2]});
    });
  }
  for (int turn = 0; turn < 2; turn++) { /* the second replaces the first */
    u.save_npy(path);
    barrier();
    auto const held = umem::load_npy<double, 3>(path);
    CHECK(held.extents() == extents);
    auto view = held.host(umem::read);
    for_all<3>({}, extents,
               [&](umem::Extents<3> const &at) { CHECK(view(at) == value_at<3>(at)); });
    barrier();
  }
  if (rank == 0) std::remove(path.c_str());
  barrier();
  Blocks<char, 1> small(MPI_COMM_WORLD, {1});
  umem::fill(small.array(), 'x');
  small.save_npy(path);
  barrier();
  CHECK((umem::load_npy<char, 1>(path).get(0)) == 'x');
  barrier();
  if (rank == 0) std::remove(path.c_str());
  auto const text = thrown<umem::io_error>([&] { small.save_npy("/nonexistent/x.npy"); });
  CHECK(has(text, rank ? "rank 0 failed, which knows why" : "No such file or directory"));
}

/* MPI counts along a dimension by int. An array without elements has no blocks to describe. */
static void dimensions_beyond_int_are_not_saved(std::string const &folder) {
  umem::index_t const most = std::numeric_limits<int>::max();
  umem::mpi::detail::check_savable<2>({most, most});
  auto const text = thrown<umem::value_error>([&] {
    umem::mpi::detail::check_savable<3>({4, most + 1, 1});
  });
  CHECK(has(text, "save_npy: dimension 1 of the array has 2147483648 elements"));
  CHECK(has(text, "at most 2147483647"));
  std::string const path = folder + "/umem-test-long-" + std::to_string(ranks) + ".npy";
  Blocks<char, 2> empty(MPI_COMM_WORLD, {most + 1, 0});
  empty.save_npy(path);
  barrier();
  CHECK((umem::load_npy<char, 2>(path).extents() == umem::Extents<2>(most + 1, 0)));
  barrier();
  if (rank == 0) std::remove(path.c_str());
  barrier();
}

/* The file that is there keeps its permissions, and the one that replaces it has no others. */
static void a_save_keeps_permissions(std::string const &parent) {
  std::string const folder = parent + "/umem-test-mode-" + std::to_string(ranks);
  std::string const path = folder + "/u.npy";
  if (rank == 0) CHECK(mkdir(folder.c_str(), 0700) == 0);
  Blocks<double, 1> u(MPI_COMM_WORLD, {20000});
  for (unsigned mode : {0600u, 0640u, 0604u}) {
    umem::fill(u.array(), double(mode));
    if (rank == 0) {
      std::ofstream(path) << "older";
      CHECK(chmod(path.c_str(), mode) == 0);
      if (geteuid() == 0) CHECK(chown(path.c_str(), 4711, 4712) == 0);
    }
    barrier();
    u.save_npy(path);
    struct stat about;
    CHECK(stat(path.c_str(), &about) == 0 && (about.st_mode & 07777) == mode);
    if (geteuid() == 0) CHECK(about.st_uid == 4711 && about.st_gid == 4712);
    CHECK(umem::sum(umem::load_npy<double, 1>(path)) == 20000.0 * mode);
    barrier();
  }
  if (rank == 0) CHECK(std::remove(path.c_str()) == 0 && rmdir(folder.c_str()) == 0);
  barrier();
}

static std::size_t count_files(std::string const &folder) {
  std::filesystem::directory_iterator const files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

/* One rank cannot write, or the file cannot be replaced: all ranks throw, no draft is left, and the
 * old file stays. */
static void a_save_that_fails_leaves_no_draft(std::string const &parent) {
  std::string const folder = parent + "/umem-test-save-" + std::to_string(ranks);
  std::string const path = folder + "/u.npy";
  if (rank == 0) CHECK(mkdir(folder.c_str(), 0700) == 0);
  barrier();
  Blocks<double, 1> u(MPI_COMM_WORLD, {20000});
  umem::fill(u.array(), 1.0);
  u.save_npy(path);
  umem::fill(u.array(), 2.0);
  rlimit before, few;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  few = before;
  few.rlim_cur = 4096;
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  for (int failing : {0, ranks - 1}) {
    if (rank == failing) CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
    auto const text = thrown<umem::io_error>([&] { u.save_npy(path); });
    if (rank == failing) CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(!text.empty());
    if (rank != failing) CHECK(has(text, "failed, which knows why"));
    barrier();
    CHECK(count_files(folder) == 1);
    CHECK(umem::sum(umem::load_npy<double, 1>(path)) == 20000);
    barrier();
  }
  std::signal(SIGXFSZ, handler);
  if (rank == 0) CHECK(std::remove(path.c_str()) == 0 && mkdir(path.c_str(), 0700) == 0);
  auto const text = thrown<umem::io_error>([&] { u.save_npy(path); });
  CHECK(has(text, rank ? "rank 0 failed" : "is a directory") && has(text, path.c_str()));
  barrier();
  CHECK(count_files(folder) == 1);
  barrier();
  if (rank == 0) CHECK(rmdir(path.c_str()) == 0 && rmdir(folder.c_str()) == 0);
}

/* ---- Laplace ---- */

/* u(1, y) = sin(pi y). */
static double side(index_t j, index_t nx) {
  return std::sin(3.14159265358979323846 * (static_cast<double>(j) / static_cast<double>(nx - 1)));
}

static void solves_laplace_with_the_same_bits() {
  using Grid = Blocks<double, 2>;
  index_t const nx = 51;
  umem::Array<double, 2> whole = umem::Array<double, 2>::zeros({nx, nx});
  Grid u(MPI_COMM_WORLD, {nx, nx}, {{1, 1}}), next(MPI_COMM_WORLD, {nx, nx}, {{1, 1}});
  umem::fill(u.array(), 0.0);
  auto const last = u.own({{nx - 1, 0}, {nx, nx}});
  for (index_t i = last.begin[0]; i < last.end[0]; i++)
    for (index_t j = last.begin[1]; j < last.end[1]; j++)
      u.array().set(side(j + u.box().begin[1], nx), i, j);
  for (index_t j = 0; j < nx; j++) whole.set(side(j, nx), nx - 1, j);
  umem::copy(u.array(), next.array());
  umem::Array<double, 2> whole_next = whole;
  int steps = 0;
  double change, whole_change;
  do {
    u.exchange();
    change = jacobi_step(u.array(), next.array(), u.own({{1, 1}, {nx - 1, nx - 1}}));
    change = u.reduce(change, umem::maximum());
    whole_change = jacobi_step(whole, whole_next, umem::interior(whole));
    CHECK(change == whole_change);
    std::swap(u, next);
    std::swap(whole, whole_next);
    steps++;
  } while (change >= 1e-5);
  CHECK(steps == 2097);
  auto const box = u.box();
  auto view = u.array().host(umem::read);
  auto expected = whole.host(umem::read);
  for_all<2>({}, u.array().extents(), [&](umem::Extents<2> const &at) {
    void const *one = &view(at), *other = &expected(at[0] + box.begin[0], at[1] + box.begin[1]);
    CHECK(std::memcmp(one, other, sizeof(double)) == 0);
  });
}

int main(int argc, char **argv) {
  int level;
  bool const single = std::getenv("UMEM_TEST_MPI_SINGLE") != nullptr;
  MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char const *folder = std::getenv("TMPDIR");
  contexts_are_handles();
  ghosts_are_exchanged();
  reductions_are_of_all_ranks();
  blocks_must_be_as_many_as_ranks();
  blocks_are_made_in_all_ranks_or_in_none();
  one_file_gets_all_blocks(folder && *folder ? folder : "/tmp");
  dimensions_beyond_int_are_not_saved(folder && *folder ? folder : "/tmp");
  a_save_keeps_permissions(folder && *folder ? folder : "/tmp");
  a_save_that_fails_leaves_no_draft(folder && *folder ? folder : "/tmp");
  solves_laplace_with_the_same_bits();
  if (rank == 0) std::printf("ok\n");
  end_mpi();
  return 0;
}
