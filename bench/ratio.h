/* ratio.h - a promise about the speed of umem beside something else, and whether it holds here. */
#ifndef UMEM_BENCH_RATIO_H
#define UMEM_BENCH_RATIO_H

#include "alternate.h"

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

enum class Measure {
  slowdown,    /* times the time of the other: at most the target */
  speedup,     /* times as fast as the other: at least the target */
  nanoseconds, /* more than the other: at most the target */
};

struct Ratio {
  std::string operation, against;
  Measure measure;
  double target;
  std::vector<double> ours, theirs; /* seconds of each round */

  /* The ratio (or difference) of each round. */
  std::vector<double> values() const;
  double median() const { return quantile(values(), 0.5); }
  bool met() const;
};

/* How long to measure. */
struct Effort {
  int short_rounds;               /* of what takes milliseconds */
  int long_rounds;                /* of what takes up to seconds */
  std::size_t block;              /* bytes of a fresh block of RAM */
  std::vector<std::size_t> sizes; /* bytes of the arrays that are copied */
};

/* Each measures its part of the rows. */
void measure_host(Effort const &effort, std::vector<Ratio> &rows);
void measure_files(Effort const &effort, std::vector<Ratio> &rows);
void measure_stage(Effort const &effort, std::vector<Ratio> &rows);
void measure_growth(Effort const &effort, std::vector<Ratio> &rows);

} // namespace bench

#endif
