/* ratio_gpu.h - what the groups of GPUs share. They are compiled in builds with CUDA only. */
#ifndef UMEM_BENCH_RATIO_GPU_H
#define UMEM_BENCH_RATIO_GPU_H

#include "ratio.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

using Work = std::function<void()>;

/* Times ours and theirs in turns and adds row with the samples. Work that takes microseconds is
 * done many times in each round; there are as many rounds, 5 at least, as fill
 * effort.gpu_seconds. */
void add_row(Effort const &effort, std::vector<Ratio> &rows, Ratio row, Work const &ours,
             Work const &theirs);

/* Adds row with samples that were taken in a way of its own. */
void add_row(std::vector<Ratio> &rows, Ratio row, std::vector<double> const &ours,
             std::vector<double> const &theirs);

/* Those of the sizes that are not larger than what effort copies at most. */
std::vector<std::size_t> wanted(Effort const &effort, std::vector<std::size_t> sizes);

constexpr std::size_t kibibyte = std::size_t{1} << 10, mebibyte = kibibyte << 10;

/* Each measures its part of the rows. */
void measure_gpu_alloc(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_ordered(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_copy(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_file(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_peer(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_pool(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_pool_large(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_pool_many(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_set(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_small(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_stage(Effort const &effort, std::vector<Ratio> &rows);
void measure_gpu_strided(Effort const &effort, std::vector<Ratio> &rows);

} // namespace bench

#endif
