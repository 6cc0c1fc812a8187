#include "trace.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>

namespace bench {
namespace {

constexpr double mebi = 1 << 20;

/* Writes a trace. Sizes are in MiB of the full trace. */
class Writer {
public:
  using Block = std::uint32_t;
  using Blocks = std::vector<Block>;

  Writer(std::string name, std::uint64_t divisor, std::size_t count, std::uint64_t seed = 1)
      : divisor_(static_cast<double>(divisor)), count_(count), random_(seed) {
    trace_.name = std::move(name);
  }

  bool goes_on() const { return allocations_ < count_; }

  Block alloc(double size) {
    Block block = trace_.blocks;
    if (unused_.empty()) {
      trace_.blocks++;
      sizes_.push_back(0);
    } else {
      block = unused_.back();
      unused_.pop_back();
    }
    /* Tensors have a multiple of 512 bytes. */
    sizes_[block] =
        static_cast<std::uint64_t>(std::max(1.0, std::round(size * mebi / divisor_ / 512))) * 512;
    live_ += sizes_[block];
    trace_.live_peak = std::max(trace_.live_peak, live_);
    trace_.largest = std::max(trace_.largest, sizes_[block]);
    trace_.steps.push_back({block, sizes_[block]});
    allocations_++;
    return block;
  }

  void free(Block block) {
    live_ -= sizes_[block];
    sizes_[block] = 0;
    trace_.steps.push_back({block, 0});
    unused_.push_back(block);
  }

  void free_all(Blocks &blocks) {
    for (Block block : blocks) free(block);
    blocks.clear();
  }

  void free_backwards(Blocks &blocks) {
    std::reverse(blocks.begin(), blocks.end());
    free_all(blocks);
  }

  double uniform(double from, double to) { return from + (to - from) * unit(); }
  double log_uniform(double from, double to) { return from * std::pow(to / from, unit()); }
  std::size_t below(std::size_t count) { return random_() % count; }

  Trace finish() {
    for (Block block = 0; block < trace_.blocks; block++)
      if (sizes_[block]) free(block);
    return std::move(trace_);
  }

private:
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  Trace trace_;
  double divisor_;
  std::size_t count_, allocations_ = 0;
  std::uint64_t live_ = 0;
  std::vector<std::uint64_t> sizes_;
  Blocks unused_;
  std::mt19937_64 random_; /* its numbers are the same in every library */
};

using Block = Writer::Block;
using Blocks = Writer::Blocks;

/* Weights and the optimizer's state stay; activations are as long as the step's sequence and live
 * until backward comes to their layer, which makes two temporary blocks and a gradient. */
void training(Writer &w) {
  constexpr int layers = 24;
  Blocks weights, gradients, activations;
  for (int i = 0; i < layers; i++)
    for (double share : {1.0, 4.0, 4.0}) weights.push_back(w.alloc(40 * share));
  while (w.goes_on()) {
    double length = w.uniform(0.25, 1);
    for (int i = 0; i < layers; i++)
      for (double share : {24.0, 96.0, 48.0, 24.0})
        activations.push_back(w.alloc(2.5 * share * length));
    for (int i = 0; i < layers; i++) {
      Block scratch = w.alloc(240 * length), other = w.alloc(60 * length);
      gradients.push_back(w.alloc(360));
      w.free(scratch);
      for (int k = 0; k < 4; k++) {
        w.free(activations.back());
        activations.pop_back();
      }
      w.free(other);
    }
    w.free_all(gradients);
  }
}

/* Columns of tables, which are made by operations on others and dropped with their table; sizes
 * over four decades. */
void data_frames(Writer &w) {
  std::vector<Blocks> tables;
  while (w.goes_on()) {
    Blocks table;
    double rows = w.log_uniform(0.064, 640);
    std::size_t columns = 2 + w.below(10);
    for (std::size_t i = 0; i < columns; i++) {
      Block mask = w.alloc(rows / 8);
      table.push_back(w.alloc(rows * (w.below(2) ? 1 : 0.5)));
      w.free(mask);
    }
    tables.push_back(std::move(table));
    while (tables.size() > 12) {
      std::size_t old = w.below(tables.size());
      w.free_all(tables[old]);
      tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(old));
    }
  }
}

/* Columns of a table, of so many bytes a row each. */
struct Frame {
  double rows; /* millions of them, nearly: a row of one byte takes as many MiB */
  Blocks columns;
};

Frame make_frame(Writer &w, double rows, std::size_t columns) {
  Frame frame{rows, {}};
  for (std::size_t i = 0; i < columns; i++) frame.columns.push_back(w.alloc(8 * rows));
  return frame;
}

/* Rows by 32-bit numbers: the result is a frame of so many rows. */
Frame gather(Writer &w, double rows, std::size_t columns) {
  Block map = w.alloc(4 * rows);
  Frame result = make_frame(w, rows, columns);
  w.free(map);
  return result;
}

/* A mask of a byte a row, numbers of the rows that are kept, and these. */
Frame filter_rows(Writer &w, Frame const &from) {
  Block mask = w.alloc(from.rows);
  Frame result = gather(w, from.rows * w.uniform(0.05, 0.9), from.columns.size());
  w.free(mask);
  return result;
}

/* A hash table of the smaller side, half full, and pairs of numbers: of the rows that match. */
Frame join_frames(Writer &w, Frame const &one, Frame const &other) {
  double small = std::min(one.rows, other.rows), large = std::max(one.rows, other.rows);
  double matches = large * w.uniform(0.2, 1.5);
  Block table = w.alloc(2 * 8 * small), left = w.alloc(4 * matches), right = w.alloc(4 * matches);
  w.free(table);
  Frame result = make_frame(w, matches, one.columns.size() + other.columns.size() - 1);
  w.free(left);
  w.free(right);
  return result;
}

/* A hash table of all rows, sums at the places of the table, and those of the groups alone. */
Frame group_rows(Writer &w, Frame const &from) {
  Block table = w.alloc(2 * 4 * from.rows);
  Frame sparse = make_frame(w, from.rows, from.columns.size() - 1);
  Frame result = gather(w, from.rows * w.log_uniform(0.0001, 0.5), from.columns.size());
  w.free_all(sparse.columns);
  w.free(table);
  return result;
}

/* Two buffers of keys and of numbers, by turns the source and the target of a digit. */
Frame sort_rows(Writer &w, Frame const &from) {
  Blocks buffers = {w.alloc(8 * from.rows), w.alloc(4 * from.rows), w.alloc(8 * from.rows),
                    w.alloc(4 * from.rows), w.alloc(2)};
  Frame result = make_frame(w, from.rows, from.columns.size());
  w.free_backwards(buffers);
  return result;
}

/* Queries over tables of 0.5 to 64 million rows: filter, join, group, sort, as cuDF does them. The
 * sizes are drawn from what each operation allocates. */
void queries(Writer &w) {
  std::vector<Frame> tables;
  for (int i = 0; i < 4; i++)
    tables.push_back(make_frame(w, w.log_uniform(0.5, 64), 3 + w.below(6)));
  while (w.goes_on()) {
    Frame filtered = filter_rows(w, tables[w.below(4)]);
    Frame joined = join_frames(w, filtered, tables[w.below(4)]);
    w.free_all(filtered.columns);
    Frame groups = group_rows(w, joined);
    if (w.below(2)) {
      Frame sorted = sort_rows(w, joined);
      w.free_all(sorted.columns);
    }
    w.free_all(joined.columns);
    w.free_all(groups.columns);
    if (w.below(8)) continue;
    Frame &old = tables[w.below(4)];
    Frame fresh = make_frame(w, w.log_uniform(0.5, 64), 3 + w.below(6));
    w.free_all(old.columns);
    old = std::move(fresh);
  }
}

/* Vectors that are appended to: the larger block is allocated before the smaller one is freed. */
void doubling_vectors(Writer &w) {
  struct Vector {
    Block block;
    double size, most;
  };
  std::vector<Vector> vectors;
  while (w.goes_on()) {
    if (vectors.size() < 24) {
      double size = w.uniform(1, 2);
      vectors.push_back({w.alloc(size), size, w.log_uniform(16, 2048)});
      continue;
    }
    Vector &vector = vectors[w.below(vectors.size())];
    if (vector.size < vector.most) {
      Block larger = w.alloc(2 * vector.size);
      w.free(vector.block);
      vector.block = larger;
      vector.size *= 2;
    } else {
      w.free(vector.block);
      vector = vectors.back();
      vectors.pop_back();
    }
  }
}

/* Sequences that grow by units of 2 MiB and end, and temporary blocks of a step, which depend on
 * how many there are. */
void inference_cache(Writer &w) {
  std::vector<Blocks> sequences;
  Blocks weights;
  for (int i = 0; i < 64; i++) weights.push_back(w.alloc(128));
  while (w.goes_on()) {
    if (sequences.size() < 96 && w.below(3) == 0) {
      sequences.emplace_back();
      std::size_t prompt = 1 + w.below(64);
      for (std::size_t i = 0; i < prompt; i++) sequences.back().push_back(w.alloc(2));
    }
    Block first = w.alloc(0.5 * static_cast<double>(1 + sequences.size())),
          second = w.alloc(3 * static_cast<double>(1 + sequences.size()));
    for (std::size_t i = 0; i < sequences.size(); i++) {
      if (w.below(8) == 0) sequences[i].push_back(w.alloc(2));
      if (w.below(160) == 0) {
        w.free_all(sequences[i]);
        std::swap(sequences[i], sequences.back());
        sequences.pop_back();
      }
    }
    w.free(first);
    w.free(second);
  }
}

/* Batches of graphs, whose sizes have a long tail; two batches are loaded ahead. */
void graph_batches(Writer &w) {
  std::deque<Blocks> batches;
  while (w.goes_on()) {
    double nodes = std::min(60.0, 4 / std::pow(w.uniform(0.001, 1), 0.6)),
           edges = nodes * w.uniform(2, 20);
    batches.push_back({w.alloc(nodes), w.alloc(nodes * 4), w.alloc(edges), w.alloc(edges / 2)});
    if (batches.size() < 3) continue;
    Blocks hidden;
    for (int layer = 0; layer < 3; layer++) {
      Block messages = w.alloc(edges * 4);
      hidden.push_back(w.alloc(nodes * 8));
      w.free(messages);
    }
    w.free_backwards(hidden);
    w.free_all(batches.front());
    batches.pop_front();
  }
}

/* Patches of a refined mesh. After some steps the new patches of a level are made one by one,
 * before all old ones end. */
void mesh_refinement(Writer &w) {
  std::vector<Blocks> levels(5);
  while (w.goes_on()) {
    std::size_t from = w.below(levels.size());
    for (std::size_t level = from; level < levels.size(); level++) {
      Blocks patches;
      std::size_t count = 4 + w.below(40);
      for (std::size_t i = 0; i < count; i++) {
        double edge = 8 * static_cast<double>(2 + w.below(12)),
               other = 8 * static_cast<double>(2 + w.below(12));
        patches.push_back(w.alloc(edge * edge * other * 8 * 5 / mebi));
      }
      w.free_all(levels[level]);
      levels[level] = std::move(patches);
    }
    Blocks ghosts;
    for (Blocks const &level : levels)
      for (std::size_t i = 0; i < level.size(); i += 4)
        ghosts.push_back(w.alloc(w.uniform(0.5, 6)));
    w.free_all(ghosts);
  }
}

/* Frames of a stream wait in a queue; each is decoded into blocks of other sizes. */
void streaming_windows(Writer &w) {
  std::deque<Block> window;
  while (w.goes_on()) {
    double frame = 32 * w.uniform(0.5, 1.5);
    window.push_back(w.alloc(frame));
    Block decoded = w.alloc(6 * frame), scaled = w.alloc(1.5 * frame);
    w.free(decoded);
    while (window.size() > 96 + w.below(32)) {
      w.free(window.front());
      window.pop_front();
    }
    w.free(scaled);
  }
}

/* Thousands of blocks of one size, freed in any order, and seldom a block of GiB. */
void tiles_and_giants(Writer &w) {
  Blocks tiles;
  Blocks giants;
  while (w.goes_on()) {
    std::size_t wanted = 500 + w.below(2000);
    while (tiles.size() < wanted) tiles.push_back(w.alloc(8));
    while (tiles.size() > wanted) {
      std::swap(tiles[w.below(tiles.size())], tiles.back());
      w.free(tiles.back());
      tiles.pop_back();
    }
    if (w.below(4) == 0) giants.push_back(w.alloc(w.uniform(1024, 6144)));
    if (giants.size() > 2) {
      w.free(giants.front());
      giants.erase(giants.begin());
    }
  }
}

/* Steps with steady blocks; at times all of the state is copied, sorted and packed. */
void checkpoints(Writer &w) {
  Blocks state;
  for (int i = 0; i < 120; i++) state.push_back(w.alloc(w.log_uniform(8, 512)));
  for (int step = 0; w.goes_on(); step++) {
    Blocks work;
    for (int i = 0; i < 20; i++) work.push_back(w.alloc(w.log_uniform(4, 256)));
    w.free_backwards(work);
    if (step % 25) continue;
    for (double part : {700.0, 900.0, 1800.0, 350.0, 2600.0})
      work.push_back(w.alloc(part * w.uniform(0.8, 1.2)));
    w.free_all(work);
  }
}

/* Results that stay are allocated between large temporary blocks, and keep these from being
 * joined. */
void slow_growth(Writer &w) {
  Blocks results;
  while (w.goes_on()) {
    Blocks temporary;
    std::size_t count = 3 + w.below(6);
    for (std::size_t i = 0; i < count; i++) {
      temporary.push_back(w.alloc(w.log_uniform(64, 1024)));
      results.push_back(w.alloc(w.log_uniform(0.25, 8)));
    }
    w.free_all(temporary);
    while (results.size() > 1500) {
      std::swap(results[w.below(results.size())], results.back());
      w.free(results.back());
      results.pop_back();
    }
  }
}

/* Random lifetimes: a block takes the place of one of so many, all the time. */
void replace_blocks(Writer &w, std::size_t live, double least, double most) {
  Blocks blocks;
  while (w.goes_on()) {
    if (blocks.size() == live) {
      std::swap(blocks[w.below(live)], blocks.back());
      w.free(blocks.back());
      blocks.pop_back();
    }
    blocks.push_back(w.alloc(w.log_uniform(least, most)));
  }
}

/* Sizes from 256 bytes to 64 KiB, to 1 MiB and to 64 MiB: the large ones from four seeds. */
void add_random(std::vector<Trace> &all, std::uint64_t divisor, std::size_t count) {
  struct Kind {
    char const *name;
    std::size_t live;
    double least, most;
    bool seeds;
  };
  for (Kind const &kind :
       {Kind{"small sizes", 1000, 256 / mebi, 1.0 / 16, false},
        Kind{"medium sizes", 4096, 1.0 / 16, 1, false},
        Kind{"random sizes", 256, 256 / mebi, 64, true}, Kind{"large sizes", 64, 1, 64, true}})
    for (std::uint64_t seed = 1; seed <= (kind.seeds ? 4 : 1); seed++) {
      std::string const number = kind.seeds ? " " + std::to_string(seed) : "";
      Writer writer(kind.name + number, divisor, count, seed);
      replace_blocks(writer, kind.live, kind.least, kind.most);
      all.push_back(writer.finish());
    }
}

/* A line of a recording: the size of an allocation in units, and how many later allocations come
 * before its free; "-" if none does. See record_traces.py. */
void replay(Writer &w, std::filesystem::path const &path) {
  constexpr double unit = 512;
  std::ifstream file(path);
  std::map<std::size_t, Blocks> ends; /* by the number of the last allocation before */
  std::size_t number = 0;
  std::string size, later;
  for (std::string comment; file.peek() == '#';) std::getline(file, comment);
  for (; w.goes_on() && file >> size >> later; number++) {
    Block block = w.alloc(std::stod(size) * unit / mebi);
    if (later != "-") ends[number + std::stoul(later)].push_back(block);
    if (auto now = ends.find(number); now != ends.end()) {
      w.free_all(now->second);
      ends.erase(now);
    }
  }
  if (!number) throw std::runtime_error("no allocations in " + path.string());
}

/* Those of real models, in the order of their names. */
void add_recorded(std::vector<Trace> &all, std::uint64_t divisor, std::size_t count) {
  std::map<std::string, std::filesystem::path> paths;
  for (auto const &entry : std::filesystem::directory_iterator(UMEM_BENCH_TRACES))
    if (entry.path().extension() == ".txt") paths[entry.path().stem().string()] = entry.path();
  for (auto const &[name, path] : paths) {
    Writer writer(name, divisor, count);
    replay(writer, path);
    all.push_back(writer.finish());
  }
}

} // namespace

std::vector<Trace> traces(std::uint64_t divisor, std::size_t count) {
  struct Named {
    char const *name;
    void (*write)(Writer &);
  };
  std::vector<Trace> all;
  for (Named kind :
       {Named{"training", training}, Named{"data frames", data_frames}, Named{"queries", queries},
        Named{"doubling vectors", doubling_vectors}, Named{"inference cache", inference_cache},
        Named{"graph batches", graph_batches}, Named{"mesh refinement", mesh_refinement},
        Named{"streaming windows", streaming_windows}, Named{"tiles and giants", tiles_and_giants},
        Named{"checkpoints", checkpoints}, Named{"slow growth", slow_growth}}) {
    Writer writer(kind.name, divisor, count);
    kind.write(writer);
    all.push_back(writer.finish());
  }
  add_recorded(all, divisor, count);
  add_random(all, divisor, count);
  return all;
}

} // namespace bench
