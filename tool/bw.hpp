/* bw.hpp - the parts of umem bw: one measurement, and what is printed of all. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace umem::tool {

/* How each pair is measured. */
struct BwSettings {
  std::uint64_t size = std::uint64_t(512) << 20; /* bytes of one copy */
  unsigned warmups = 4, copies = 16, repeats = 3;
  bool latency = false; /* wait for each copy */
  bool cold = false;    /* empty the caches of the CPU and the page cache before each copy */
  bool verify = false;
};

/* What was measured between two contexts. */
struct BwCell {
  std::string from, to;
  std::optional<double> seconds; /* of one copy, the median of samples; nothing: see reason */
  std::vector<double> samples;   /* seconds of one copy, the mean of each repeat */
  std::string route, reason;
  bool is_wrong = false; /* the copy has other bytes than the source */
};

/* Copies settings.size bytes from one context of umem_open to another and measures it. What cannot
 * be done is the reason of the result. Throws Failure only for an interrupt. */
BwCell measure(std::string const &from, std::string const &to, BwSettings const &settings);

/* All pairs of names; tells show what is measured, how many pairs are done, and how many there
 * are. */
std::vector<BwCell>
measure_all(std::vector<std::string> const &names, BwSettings const &settings,
            std::function<void(std::string const &, std::size_t, std::size_t)> const &show);

/* "FROM -> TO" */
std::string pair_text(BwCell const &cell);

/* Bytes that arrive each second. */
double bytes_per_second(BwCell const &cell, BwSettings const &settings);

/* ---- the end of a copy ---- */

/* A context with blocks for measurements. It changes no file and no segment of others: it makes its
 * own. Throws Failure with the reason. */
class BwEnd {
public:
  /* blocks: how many there will be, each of nbytes. */
  BwEnd(std::string const &name, std::uint64_t nbytes, unsigned blocks);
  ~BwEnd();
  BwEnd(BwEnd const &) = delete;
  BwEnd &operator=(BwEnd const &) = delete;

  void *get() const { return ctx_; }
  std::uintptr_t add_block(); /* freed at the end */

private:
  void *ctx_ = nullptr; /* owned */
  std::size_t nbytes_;
  std::vector<std::uintptr_t> blocks_; /* owned */
};

/* Bytes of RAM that a block of this context takes: nbytes or 0. */
std::uint64_t ram_of(std::string const &name, std::uint64_t nbytes);

/* ---- bytes ---- */

/* Writes bytes to a block that differ from one offset to the next, and finds the first byte of a
 * block that is not so. Both throw Failure. */
void fill_pattern(void *ctx, std::uintptr_t adr, std::uint64_t nbytes);
std::optional<std::uint64_t> wrong_byte(void *ctx, std::uintptr_t adr, std::uint64_t nbytes);

/* Empties the caches of the CPU, and the page cache of all files that this process has open. */
class ColdCaches {
public:
  static std::size_t room(); /* bytes of RAM that it takes */
  void empty();

private:
  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(room());
};

/* ---- the result ---- */

/* The JSON that NVIDIA's nvbandwidth prints, with what umem has measured for the tests that it has,
 * too. */
std::string
nvbandwidth_json(BwSettings const &settings,
                 std::function<void(std::string const &, std::size_t, std::size_t)> const &show);

} // namespace umem::tool
