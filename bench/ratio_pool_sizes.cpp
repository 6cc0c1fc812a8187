/* ratio_pool_sizes.cpp - pools over RAM compared with malloc and other heaps: blocks of random
 * sizes up to 64 MiB, and large blocks of zeros; the time, and the memory that they take.
 *
 * Memory is measured in a child process for each heap, which writes to each page of each block. */
#include "ratio.h"

#include "heaps.h"
#include "patterns.h"
#include "sizes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t kibibyte = 1024, mebibyte = 1024 * kibibyte, gibibyte = 1024 * mebibyte;
constexpr std::size_t page = 4096;
constexpr std::size_t drawn_steps = std::size_t{1} << 16;

/* Blocks that replace each other. All heaps have their blocks at once, but for memory. A round
 * of written blocks up to 1 MiB takes about as long as a time slice of the system or longer: else
 * another process makes it ten times as long, or not. */
struct Pattern {
  Sizes sizes;
  std::size_t live, steps;
  std::size_t written_live, written_steps;
  std::size_t memory_live;

  std::string text(std::size_t count) const {
    return size_text(sizes.least) + "-" + size_text(sizes.most) + ", " + std::to_string(count) +
           " live";
  }
};

constexpr Pattern patterns[] = {{{256, 64 * kibibyte, true}, 1000, 100'000, 1000, 200'000, 8000},
                                {{64 * kibibyte, mebibyte, true}, 4096, 20'000, 512, 20'000, 1024},
                                {{256, 64 * mebibyte, true}, 256, 4'000, 48, 50, 128},
                                {{mebibyte, 64 * mebibyte, true}, 64, 4'000, 16, 20, 48}};

/* Writes to each page, as a program that fills the block. */
void touch(std::uintptr_t address, std::size_t size) {
  for (std::size_t i = 0; i < size; i += page) write_to(address + i);
}

/* As np.zeros, of which the program writes to one page in so many; 0: to none. */
void write_some(std::uintptr_t address, std::size_t size, std::size_t pages) {
  for (std::size_t i = 0; pages && i < size; i += pages * page) write_to(address + i);
}

/* A heap whose blocks are touched when they are new. */
template <typename Heap> struct Touched {
  static constexpr bool wants_sizes = Heap::wants_sizes;
  Heap heap;

  std::uintptr_t alloc(std::size_t size) const {
    std::uintptr_t address = heap.alloc(size);
    touch(address, size);
    return address;
  }
  void free(std::uintptr_t address, std::size_t size) const { heap.free(address, size); }
};

/* What NumPy does for its zeros: malloc with advice to use huge pages, as umem's RAM has it. */
struct NumPy {
  static constexpr bool wants_sizes = false;
  std::uintptr_t zeros(std::size_t size) const {
    std::uintptr_t address = Malloc().zeros(size), first = (address + page - 1) / page * page;
    madvise(reinterpret_cast<void *>(first), size - (first - address), MADV_HUGEPAGE);
    return address;
  }
  void free(std::uintptr_t address, std::size_t) const { Malloc().free(address); }
};

/* ---- heaps side by side ---- */

/* A pool, and what it is compared with. */
class Contest {
public:
  Contest(std::vector<Ratio> &rows, char const *name)
      : rows_(rows), others_(others()), pool_(name) {}

  /* Adds a row for each of the others. timed_for(heap) is a Timed. */
  template <typename TimedFor>
  void measure(std::string const &operation, int rounds, Ratio row, TimedFor timed_for) {
    std::vector<Timed> candidates = {timed_for(pool_.heap()), timed_for(Malloc{})};
    for (Other const &other : others_) candidates.push_back(timed_for(other));
    Samples samples = alternate(rounds, candidates);
    pool_.finish();
    row.operation = pool_.name() + " " + operation;
    row.ours = samples[0];
    for (std::size_t i = 1; i < samples.size(); i++) {
      row.against = i == 1 ? "malloc" : others_[i - 2].name;
      row.theirs = samples[i];
      rows_.push_back(row);
    }
  }

  NamedPool const &pool() const { return pool_; }
  std::vector<Ratio> &rows() const { return rows_; }

private:
  std::vector<Ratio> &rows_;
  std::vector<Other> others_;
  NamedPool pool_;
};

/* ---- memory ---- */

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  check_system(file && std::fscanf(file, "%zu %zu", &all, &resident) == 2, "statm");
  std::fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/* 0 if there are fewer. */
std::size_t resident_beyond(std::size_t before) {
  std::size_t const now = resident_bytes();
  return now > before ? now - before : 0;
}

/* What work returns in a child process, which ends with it. */
double in_child(std::function<double()> const &work) {
  int ends[2];
  check_system(pipe(ends) == 0, "pipe");
  pid_t child = fork();
  check_system(child >= 0, "fork");
  if (!child) {
    malloc_trim(0);
    double result = work();
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  double result = 0;
  bool whole = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!whole) throw std::runtime_error("a child process that measures memory has failed");
  return result;
}

/* Resident bytes over live bytes, the most of both. */
template <typename Heap>
double resident_over_live(Heap heap, std::size_t live, std::vector<Step> const &steps) {
  std::size_t const before = resident_bytes(), often = live / 64 + 1;
  std::size_t bytes = 0, most_live = 0, most_resident = 0;
  Slots<Touched<Heap>> blocks({heap}, live);
  std::vector<std::size_t> sizes(live);
  for (std::size_t i = 0; i < steps.size(); i++) {
    std::size_t slot = i < live ? i : steps[i].slot;
    if (sizes[slot]) blocks.free(slot);
    bytes += steps[i].size - sizes[slot];
    sizes[slot] = steps[i].size;
    blocks.alloc(slot, sizes[slot]);
    most_live = std::max(most_live, bytes);
    if (i % often == 0) most_resident = std::max(most_resident, resident_beyond(before));
  }
  return static_cast<double>(most_resident) / static_cast<double>(most_live);
}

/* Of a block of zeros, in place of one that was written as a whole before. */
template <typename Heap> double resident_over_written(Heap heap, std::size_t size) {
  constexpr std::size_t share = 64;
  std::size_t const before = resident_bytes();
  std::uintptr_t address = heap.zeros(size);
  touch(address, size);
  heap.free(address, size);
  write_some(heap.zeros(size), size, share);
  return static_cast<double>(resident_beyond(before) * share) / static_cast<double>(size);
}

/* ---- rows ---- */

Ratio const time_row = {"", "", Measure::slowdown, 1.5, {}, {}};
Ratio const memory_row = {"", "", Measure::memory, 1.1, {}, {}}; /* as the option spare says */

/* The first blocks are in the order of their allocation, and memory is new: some operations are not
 * measured. Time of the processor: other programs disturb what touches memory. */
template <typename Heap>
Timed replacing(Heap heap, std::size_t live, std::vector<Step> const &steps, std::size_t count) {
  auto blocks = std::make_shared<Replacing<Heap>>(heap, live, steps);
  blocks->take(std::max(8 * live, count));
  return [blocks, count] {
    return processor_seconds_of([&] { blocks->take(count); }) / static_cast<double>(count);
  };
}

bool is_once(Effort const &effort) { return effort.short_rounds == 1; }

void measure_time(Effort const &effort, Contest &contest, Pattern const &pattern) {
  std::size_t const live = is_once(effort) ? 16 : pattern.live;
  std::size_t const count = is_once(effort) ? 100 : pattern.steps;
  std::vector<Step> steps = mixed_steps(drawn_steps, live, pattern.sizes);
  contest.measure(pattern.text(live), effort.long_rounds, time_row,
                  [&](auto heap) { return replacing(heap, live, steps, count); });
}

void measure_written(Effort const &effort, Contest &contest, Pattern const &pattern) {
  std::size_t const live = is_once(effort) ? 4 : pattern.written_live;
  std::size_t const count = is_once(effort) ? 1 : pattern.written_steps;
  std::vector<Step> steps = mixed_steps(drawn_steps, live, pattern.sizes);
  contest.measure(pattern.text(live) + ", written", effort.long_rounds, time_row, [&](auto heap) {
    return replacing(Touched<decltype(heap)>{heap}, live, steps, count);
  });
}

void measure_memory(Effort const &effort, Contest &contest, Pattern const &pattern) {
  std::size_t const live = is_once(effort) ? 8 : pattern.memory_live;
  std::vector<Step> steps = mixed_steps(3 * live, live, pattern.sizes);
  contest.measure(pattern.text(live) + ", memory", 1, memory_row, [&](auto heap) -> Timed {
    return [&steps, heap, live] {
      return in_child([&] { return resident_over_live(heap, live, steps); });
    };
  });
}

/* Beside NumPy's zeros, because huge pages are what takes the time and the memory. */
void measure_zeros(Effort const &effort, Contest &contest) {
  std::size_t const size = is_once(effort) ? 64 * mebibyte : gibibyte;
  auto zeros = [size](auto heap, std::size_t pages) -> Timed {
    return [=] {
      return processor_seconds_of([&] {
        std::uintptr_t address = heap.zeros(size);
        write_some(address, size, pages);
        heap.free(address, size);
      });
    };
  };
  auto memory = [size](auto heap) -> Timed {
    return [=] { return in_child([&] { return resident_over_written(heap, size); }); };
  };
  auto add = [&](std::string const &note, int rounds, Ratio row, Timed ours, Timed theirs) {
    Samples samples = alternate(rounds, {std::move(ours), std::move(theirs)});
    row.operation = contest.pool().name() + " zeros of " + size_text(size) + note;
    row.against = "calloc, huge pages as NumPy";
    row.ours = samples[0];
    row.theirs = samples[1];
    contest.rows().push_back(row);
  };
  Umem const pool = contest.pool().heap();
  std::string const note = ", one page in 64 written";
  add(note + ", memory", 1, memory_row, memory(pool), memory(NumPy()));
  add("", effort.long_rounds, time_row, zeros(pool, 0), zeros(NumPy(), 0));
  add(note, effort.long_rounds, time_row, zeros(pool, 64), zeros(NumPy(), 64));
}

} // namespace

void measure_pool_sizes(Effort const &effort, std::vector<Ratio> &rows) {
  Contest ram(rows, "pool+host:");
  for (Pattern const &pattern : patterns) measure_memory(effort, ram, pattern);
  measure_zeros(effort, ram);
  for (Pattern const &pattern : patterns) measure_time(effort, ram, pattern);
  for (Pattern const &pattern : patterns) measure_written(effort, ram, pattern);
  Contest chunks(rows, "pool+host:?memory=chunks");
  measure_zeros(effort, chunks);
  Contest mapped(rows, "pool+mmap:");
  for (Pattern const &pattern : patterns) measure_time(effort, mapped, pattern);
}

} // namespace bench
