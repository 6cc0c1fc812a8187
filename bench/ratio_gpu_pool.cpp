/* ratio_gpu_pool.cpp - umem's pools over a GPU, compared with cudaMallocAsync, RMM's pool and
 * cudaMalloc.
 *
 * The benchmark does not write to the blocks. If the free memory does not suffice, fewer blocks are
 * live. */
#include "ratio_gpu.h"

#include "heaps_gpu.h"
#include "patterns.h"
#include "sizes.h"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

constexpr std::size_t gibibyte = 1024 * mebibyte;
constexpr double most_memory = 60.0 * gibibyte; /* of both sides together */
constexpr double waste = 1.25; /* bytes that a heap may take for each byte of live blocks */
constexpr double round_seconds = 5e-3, warm_seconds = 1;
constexpr std::size_t drawn_steps = std::size_t{1} << 20;
constexpr std::size_t few = 4096;
constexpr std::size_t life_allocations = 4'000, life_cap = 4 * gibibyte;
constexpr std::size_t first_steps = 2000; /* in which the most that is live still grows */
constexpr std::uint64_t seeds = 4;

/* The heaps to compare umem's pools with, and the targets. */
struct Others {
  std::optional<double> ordered; /* the target for cudaMallocAsync */
  std::optional<double> rmm;     /* for RMM's pool, only for the first of umem's pools */
  /* Beside RMM and cudaMalloc at all: RMM looks at its free blocks one by one, cudaMalloc takes the
   * time of some thousand other calls, and with very many blocks either takes minutes. */
  bool slow;
};

/* Does so many operations and returns the seconds that they take. */
using Counted = std::function<double(std::size_t)>;

template <typename Owner, typename Work> double seconds_with(Owner const &owner, Work const &work) {
  return seconds_of([&] {
    work();
    owner.finish();
  });
}

/* ---- patterns: text() names it, bytes() are live of one side, and a call with the owner of a
 * heap, which outlives the answer, says how its operations are done ---- */

/* A block of one size, allocated and freed at once. */
class Pairs {
public:
  std::string text() const { return "256 B, at once"; }
  double bytes() const { return size; }

  template <typename Owner> Counted operator()(Owner const &owner) const {
    return [&owner](std::size_t count) {
      return seconds_with(owner, [&] { take_pairs(owner.heap(), size, count); });
    };
  }

private:
  static constexpr std::size_t size = 256;
};

std::string live_text(std::size_t live) {
  return live == 100'000 ? "1e5" : live == 1'000'000 ? "1e6" : std::to_string(live);
}

std::string replaced_text(Sizes const &sizes, std::size_t live, std::string const &note) {
  return size_text(sizes.least) + "-" + size_text(sizes.most) + ", " + live_text(live) + " live" +
         note;
}

/* Replaces a live block by another one of a random size. */
class Replaced {
public:
  Replaced(Effort const &effort, Sizes const &sizes, std::size_t live, std::string note = "",
           std::uint64_t seed = 1)
      : sizes_(sizes), note_(std::move(note)), live_(fitting(std::min(live, effort.gpu_live))),
        steps_(mixed_steps(drawn_steps, live_, sizes, seed)) {}

  std::string text() const { return replaced_text(sizes_, live_, note_); }
  double bytes() const { return sizes_.mean() * static_cast<double>(live_); }

  /* The first blocks are in the order of their allocation. Later ones are distributed as in a
   * program that has run for a while. */
  template <typename Owner> Counted operator()(Owner const &owner) const {
    auto blocks = std::make_shared<Replacing<decltype(owner.heap())>>(owner.heap(), live_, steps_);
    constexpr std::size_t part = 1024;
    double warm = 0;
    for (std::size_t i = 0; i < live_ && warm < warm_seconds; i += part)
      warm += seconds_with(owner, [&] { blocks->take(part); });
    return [&owner, blocks](std::size_t count) {
      return seconds_with(owner, [&] { blocks->take(count); });
    };
  }

private:
  /* At most half of what is free. */
  std::size_t fitting(std::size_t live) const {
    std::size_t left = 0, all = 0;
    by_hand::check_cuda(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
    double budget = std::min(most_memory, static_cast<double>(left) / 2) / 2 / waste;
    return std::min(live, static_cast<std::size_t>(budget / sizes_.mean()));
  }

  Sizes sizes_;
  std::string note_;
  std::size_t live_;
  std::vector<Step> steps_;
};

/* Random lifetimes, with a bound on live bytes. */
class Lifetimes {
public:
  Lifetimes() : lives_(random_lives(life_allocations, {256, 64 * mebibyte, true}, life_cap)) {}

  std::string text() const { return "lifetimes, 256 B-64 MiB, up to 4 GiB"; }
  double bytes() const { return life_cap; }

  template <typename Owner> Counted operator()(Owner const &owner) const {
    return [this, &owner](std::size_t count) {
      std::size_t times = (count + life_allocations - 1) / life_allocations;
      double seconds = seconds_with(owner, [&] {
        for (std::size_t i = 0; i < times; i++) play_lives(owner.heap(), lives_, false);
      });
      return seconds * static_cast<double>(count) / static_cast<double>(times * life_allocations);
    };
  }

private:
  Lives lives_;
};

/* One thread allocates, another frees. */
class Passed {
public:
  Passed() : steps_(mixed_steps(drawn_steps, 1, {256, 64 * kibibyte})) {}

  std::string text() const { return "256 B-64 KiB, freed by another thread"; }
  double bytes() const { return 64.0 * mebibyte; }

  template <typename Owner> Counted operator()(Owner const &owner) const {
    return [this, &owner](std::size_t count) {
      return seconds_with(owner, [&] { pass_blocks(owner.heap(), 1, count, steps_, false); });
    };
  }

private:
  std::vector<Step> steps_;
};

/* ---- comparison with others ---- */

/* How many operations fill a round, so that neither the clock nor a synchronisation counts. Of two
 * tries the shorter one counts: a pool may get memory from CUDA in the other. */
std::size_t operations_per_round(Counted const &work) {
  std::size_t count = 1;
  auto try_it = [&] { return seconds_of([&] { work(count); }); };
  while (count < drawn_steps && std::min(try_it(), try_it()) < round_seconds) count *= 2;
  return count;
}

/* The two sides take turns, each with as many operations as fill a round; the samples are of
 * one. */
void add_pair(Effort const &effort, std::vector<Ratio> &rows, Ratio row, Counted const &ours,
              Counted const &theirs) {
  auto timed = [](Counted const &work) -> Timed {
    return [&work, count = operations_per_round(work)] {
      return work(count) / static_cast<double>(count);
    };
  };
  Timed our_round = timed(ours), their_round = timed(theirs);
  double both = seconds_of(our_round) + seconds_of(their_round);
  double rounds = std::clamp(effort.gpu_seconds / both, 5.0, 31.0);
  Samples samples = alternate(static_cast<int>(rounds), {our_round, their_round});
  add_row(rows, std::move(row), samples[0], samples[1]);
}

template <typename Pattern, typename Pool, typename Owner>
void measure_beside(Effort const &effort, std::vector<Ratio> &rows, Pattern const &pattern,
                    Pool const &pool, Owner const &other, std::optional<double> target) {
  add_pair(effort, rows,
           {pool.name() + ", " + pattern.text(), other.name(), Measure::speedup, target, {}, {}},
           pattern(pool), pattern(other));
}

template <typename Pattern>
void measure_pattern(Effort const &effort, std::vector<Ratio> &rows, Pattern const &pattern,
                     Others const &others) {
  for (char const *row : {"pool(cuda)", "pool(cuda-async)", "pool-on(cuda)"}) {
    GpuPool pool(row);
    measure_beside(effort, rows, pattern, pool, OrderedGpu(), others.ordered);
    if (others.slow) measure_beside(effort, rows, pattern, pool, PlainGpu(), {});
  }
#ifdef UMEM_BENCH_RMM
  if (!others.slow) return;
  GpuPool pool("pool(cuda)");
  RmmPool rmm(static_cast<std::size_t>(waste * pattern.bytes()));
  measure_beside(effort, rows, pattern, pool, rmm, others.rmm);
#endif
}

/* ---- memory of the driver ---- */

/* A pool that grows by a block, and gives all of it back. */
Work growing(NamedPool const &pool, std::size_t size) {
  return [&pool, size] {
    std::uintptr_t address = umem_alloc(pool.heap().context, size);
    check(umem_get_status(pool.heap().context));
    umem_free(pool.heap().context, address);
    check(umem_trim(pool.heap().context, 0));
  };
}

Work growing(OrderedGpu const &gpu, std::size_t size) {
  return [heap = gpu.heap(), size] {
    heap.free(heap.alloc(size), size);
    by_hand::check_cuda(cudaStreamSynchronize(heap.stream), "cudaStreamSynchronize");
    by_hand::check_cuda(cudaMemPoolTrimTo(heap.pool, 0), "cudaMemPoolTrimTo");
  };
}

/* Sizes that vary, as many of each power of two: the default, without options, has no cliff for
 * large blocks. RMM's pool begins with 12 GiB, so that it never grows. */
void measure_varying(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr double no_cliff = 1 / 1.5;
  std::string const note = " of each power of two";
  for (Replaced const &pattern : {Replaced(effort, {256, 64 * kibibyte, true}, 1000, note),
                                  Replaced(effort, {64 * kibibyte, mebibyte, true}, few, note),
                                  Replaced(effort, {256, 64 * mebibyte, true}, 256, note),
                                  Replaced(effort, {mebibyte, 64 * mebibyte, true}, 64, note)}) {
    GpuPool pool("pool(cuda)");
    measure_beside(effort, rows, pattern, pool, OrderedGpu(), no_cliff);
#ifdef UMEM_BENCH_RMM
    RmmPool rmm(12 * gibibyte);
    measure_beside(effort, rows, pattern, pool, rmm, no_cliff);
#endif
  }
}

/* Seconds of a step, of the first ones of a heap that begins with no memory, after all blocks were
 * allocated once. Each call makes such a heap, and has the next seed. */
template <typename Make> Timed beginning(Sizes const &sizes, std::size_t live, Make make) {
  return [=, seed = std::uint64_t{0}]() mutable {
    std::vector<Step> const steps = mixed_steps(first_steps, live, sizes, 1 + seed++ % seeds);
    auto const owner = make();
    Replacing<decltype(owner.heap())> blocks(owner.heap(), live, steps);
    return seconds_with(owner, [&] { blocks.take(first_steps); }) /
           static_cast<double>(first_steps);
  };
}

/* While the most that is live grows the driver maps memory: spare bounds how much, and so how much
 * of what is free must move first. */
void measure_first(Effort const &effort, std::vector<Ratio> &rows) {
  int const rounds = effort.short_rounds == 1 ? 1 : 2 * static_cast<int>(seeds);
  for (auto [sizes, live] : {std::pair(Sizes{256, 64 * mebibyte, true}, std::size_t{256}),
                             std::pair(Sizes{mebibyte, 64 * mebibyte, true}, std::size_t{64})})
    for (char const *name : {"pool+cuda:0", "pool+cuda:0?spare=15", "pool+cuda:0?spare=20"}) {
      Samples samples =
          alternate(rounds, {beginning(sizes, live, [name] { return NamedPool(name); }),
                             beginning(sizes, live, [] { return OrderedGpu(); })});
      add_row(rows,
              {name + (", " + replaced_text(sizes, live, ", first 2000 steps")),
               OrderedGpu::name(),
               Measure::speedup,
               1 / 1.5,
               {},
               {}},
              samples[0], samples[1]);
    }
}

/* ---- pinned RAM ---- */

#ifdef UMEM_BENCH_RMM
/* Bytes reserved after some thousand operations, by a pool that begins with none, over the mean of
 * those that are live. */
template <typename Owner> double reserved_over_live(Replaced const &pattern, Owner const &owner) {
  pattern(owner)(3000);
  return static_cast<double>(owner.reserved_bytes()) / pattern.bytes();
}

/* Of both, for each seed: RMM's pool doubles, so that the steps decide whether it has much more
 * than it needs. */
void measure_pinned_memory(Effort const &effort, std::vector<Ratio> &rows, Sizes const &sizes,
                           std::size_t live, std::string const &note) {
  std::vector<double> ours, theirs;
  std::string text;
  for (std::uint64_t seed = 1; seed <= seeds; seed++) {
    Replaced const pattern(effort, sizes, live, note, seed);
    ours.push_back(reserved_over_live(pattern, NamedPool("pool+cuda-host:")));
    theirs.push_back(reserved_over_live(pattern, RmmPool(0, true)));
    text = pattern.text();
  }
  add_row(rows,
          {"pool+cuda-host:, " + text + ", memory",
           RmmPool::name() + ", pinned",
           Measure::memory,
           1.0,
           {},
           {}},
          ours, theirs);
}

/* Time: RMM's pool begins with all that it needs. */
void measure_pinned(Effort const &effort, std::vector<Ratio> &rows) {
  std::string const note = " of each power of two";
  for (auto [sizes, live] : {std::pair(Sizes{256, 64 * kibibyte, true}, std::size_t{1000}),
                             std::pair(Sizes{64 * kibibyte, mebibyte, true}, few),
                             std::pair(Sizes{256, 64 * mebibyte, true}, std::size_t{256}),
                             std::pair(Sizes{mebibyte, 64 * mebibyte, true}, std::size_t{64})}) {
    measure_pinned_memory(effort, rows, sizes, live, note);
    Replaced const pattern(effort, sizes, live, note);
    NamedPool pool("pool+cuda-host:");
    RmmPool rmm(static_cast<std::size_t>(2 * pattern.bytes()), true);
    add_pair(effort, rows,
             {pool.name() + ", " + pattern.text(),
              RmmPool::name() + ", pinned",
              Measure::speedup,
              1 / 1.5,
              {},
              {}},
             pattern(pool), pattern(rmm));
  }
}
#endif

void measure_driver(Effort const &effort, std::vector<Ratio> &rows) {
  std::size_t const size = gibibyte;
  OrderedGpu ordered;
  PlainGpu plain;
  Work by_cuda = [heap = plain.heap(), size] { heap.free(heap.alloc(size), size); };
  for (char const *name : {"pool+cuda:0", "pool+cuda:0?growth=32M", "pool+cuda:0?memory=chunks"}) {
    NamedPool pool(name);
    std::string const text = pool.name() + ", 1 GiB of the driver, and back";
    add_row(effort, rows, {text, OrderedGpu::name(), Measure::slowdown, {}, {}, {}},
            growing(pool, size), growing(ordered, size));
    add_row(effort, rows, {text, PlainGpu::name(), Measure::slowdown, {}, {}, {}},
            growing(pool, size), by_cuda);
  }
}

} // namespace

void measure_gpu_pool(Effort const &effort, std::vector<Ratio> &rows) {
  measure_pattern(effort, rows, Pairs(), {{}, {}, true});
  measure_pattern(effort, rows, Replaced(effort, {256, 64 * kibibyte}, few), {10, 5, true});
  measure_pattern(effort, rows, Passed(), {{}, {}, true});
  measure_pattern(effort, rows, Lifetimes(), {{}, {}, true});
  for (char const *name :
       {"pool+cuda:0?spare=0", "pool+cuda:0?spare=30", "pool+cuda:0?memory=chunks"})
    measure_beside(effort, rows, Lifetimes(), NamedPool(name), OrderedGpu(), {});
  measure_driver(effort, rows);
}

void measure_gpu_pool_large(Effort const &effort, std::vector<Ratio> &rows) {
  measure_pattern(effort, rows, Replaced(effort, {64 * kibibyte, mebibyte}, few), {4, 5, true});
  measure_pattern(effort, rows, Replaced(effort, {64 * kibibyte, 512 * kibibyte, true}, 100'000),
                  {4, {}, false});
  measure_varying(effort, rows);
  measure_first(effort, rows);
#ifdef UMEM_BENCH_RMM
  measure_pinned(effort, rows);
#endif
}

void measure_gpu_pool_many(Effort const &effort, std::vector<Ratio> &rows) {
  measure_pattern(effort, rows, Replaced(effort, {8, 4096}, 1'000'000), {1.3, {}, false});
}

} // namespace bench
