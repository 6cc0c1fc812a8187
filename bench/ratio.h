/* ratio.h - a promise about the speed of umem compared with something else, and whether umem keeps
 * it here. */
#ifndef UMEM_BENCH_RATIO_H
#define UMEM_BENCH_RATIO_H

#include "alternate.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class Measure {
  slowdown,    /* times the time of the other: at most the target */
  speedup,     /* times as fast as the other: at least the target */
  nanoseconds, /* more than the other: at most the target */
  memory,      /* times the memory of the other: at most the target; samples are no seconds */
};

struct Ratio {
  std::string operation, against;
  Measure measure;
  std::optional<double> target; /* none: umem promises nothing, the report only shows the figure */
  std::vector<double> ours, theirs; /* seconds of each round, but for memory */
  std::size_t bytes = 0;            /* moved each time, if the row shows GB/s */

  /* The ratio (or difference) of each round. */
  std::vector<double> values() const;
  double median() const { return quantile(values(), 0.5); }
  bool met() const; /* true without a target */
};

/* Adds the row of the first candidate against the one of the others that is fastest; candidate i +
 * 1 has counts[i] threads. */
void add_best(std::vector<Ratio> &rows, Ratio row, Samples const &samples,
              std::vector<unsigned> const &counts);

/* How long to measure. */
struct Effort {
  int short_rounds;               /* of what takes milliseconds */
  int long_rounds;                /* of what takes up to seconds */
  std::size_t block;              /* bytes of a fresh block of RAM */
  std::vector<std::size_t> sizes; /* bytes of the arrays that are copied */
  double gpu_seconds;             /* for each row of a GPU, which has 5 rounds at least */
  std::size_t gpu_live;           /* blocks of a pool over a GPU, at most */
};

/* Each measures its part of the rows. */
void measure_host(Effort const &effort, std::vector<Ratio> &rows);
void measure_arrays(Effort const &effort, std::vector<Ratio> &rows);
void measure_indexed(Effort const &effort, std::vector<Ratio> &rows);
void measure_layouts(Effort const &effort, std::vector<Ratio> &rows);    /* a part of loops */
void measure_orders(Effort const &effort, std::vector<Ratio> &rows);     /* a part of loops */
void measure_reductions(Effort const &effort, std::vector<Ratio> &rows); /* a part of loops */
void measure_files(Effort const &effort, std::vector<Ratio> &rows);
void measure_npy(Effort const &effort, std::vector<Ratio> &rows);
void measure_routes(Effort const &effort, std::vector<Ratio> &rows);
void measure_ram(Effort const &effort, std::vector<Ratio> &rows);
void measure_blocks(Effort const &effort, std::vector<Ratio> &rows);
void measure_overlap(Effort const &effort, std::vector<Ratio> &rows); /* a part of blocks */
void measure_stage(Effort const &effort, std::vector<Ratio> &rows);
void measure_strided(Effort const &effort, std::vector<Ratio> &rows);
void measure_steps(Effort const &effort, std::vector<Ratio> &rows);
void measure_strided_cold(Effort const &effort, std::vector<Ratio> &rows);
void measure_transfers(Effort const &effort, std::vector<Ratio> &rows);
void measure_growth(Effort const &effort, std::vector<Ratio> &rows);
void measure_pool(Effort const &effort, std::vector<Ratio> &rows);
void measure_pool_sizes(Effort const &effort, std::vector<Ratio> &rows);
void measure_fixed(Effort const &effort, std::vector<Ratio> &rows);
void measure_typed(Effort const &effort, std::vector<Ratio> &rows);
void measure_converted(Effort const &effort, std::vector<Ratio> &rows); /* a part of typed */
void measure_log(Effort const &effort, std::vector<Ratio> &rows);
void measure_many(Effort const &effort, std::vector<Ratio> &rows);

/* Several groups may have one name: they are chosen together. */
struct Group {
  char const *name;
  void (*measure)(Effort const &, std::vector<Ratio> &);
};

/* The groups of GPUs, "gpu", "gpu-file" and "gpu-pool", in the order in which they must run; none
 * in a build without CUDA. */
std::vector<Group> gpu_groups();

/* Why there is no GPU to measure; empty when there is one. */
std::string why_no_gpu();

/* A copy between two named contexts of the table, compared with the slower of its halves through
 * the host. */
Ratio staged_ratio(char const *from, char const *to, std::size_t size, int rounds);

} // namespace bench

#endif
