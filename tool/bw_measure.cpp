/* bw_measure.cpp - measures copies from one context to another. */
#include "bw.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "place.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <umem.h>

namespace umem::tool {

namespace {

using Clock = std::chrono::steady_clock;

/* Both ends, and the copies between them. */
class Pair {
public:
  Pair(BwCell &cell, BwSettings const &settings);

  void measure();

private:
  void fill();
  void warm_up();
  double repeat();
  void copy(umemCopyOptions const *options = nullptr);
  void wait();

  BwCell &cell_;
  BwSettings const &settings_;
  std::unique_ptr<ColdCaches> caches_;
  std::unique_ptr<BwEnd> from_, other_;
  BwEnd *to_ = nullptr;
  std::uintptr_t src_ = 0, dst_ = 0;
};

void check(umemStatusType status) {
  if (status != umemOK) throw Failure(reason());
}

/* Linux gives out more memory than there is, and ends a process that uses it. */
void check_ram(BwCell const &cell, BwSettings const &settings) {
  std::uint64_t const size = settings.size;
  if (size > std::numeric_limits<std::size_t>::max() / 4)
    throw Failure("so many bytes cannot be addressed");
  std::uint64_t const needed =
      ram_of(cell.from, size) + ram_of(cell.to, size) + (settings.cold ? ColdCaches::room() : 0);
  std::uint64_t const available = available_ram();
  /* A sixteenth stays for all else. */
  if (needed > available - available / 16)
    throw Failure("it takes " + size_text(needed) + " of RAM, and " + size_text(available) +
                  " are available: use --size");
}

Pair::Pair(BwCell &cell, BwSettings const &settings) : cell_(cell), settings_(settings) {
  check_ram(cell, settings);
  bool const is_one = cell.from == cell.to;
  from_ = std::make_unique<BwEnd>(cell.from, settings.size, is_one ? 2 : 1);
  if (!is_one) other_ = std::make_unique<BwEnd>(cell.to, settings.size, 1);
  to_ = is_one ? from_.get() : other_.get();
  src_ = from_->add_block();
  dst_ = to_->add_block();
  if (settings.cold) caches_ = std::make_unique<ColdCaches>();
}

/* Each page is there before the first copy. */
void Pair::fill() {
  auto const nbytes = static_cast<std::size_t>(settings_.size);
  if (settings_.verify)
    fill_pattern(from_->get(), src_, nbytes);
  else
    check(umem_set(from_->get(), src_, 0x5A, nbytes));
  check(umem_set(to_->get(), dst_, 0, nbytes));
  wait();
}

void Pair::copy(umemCopyOptions const *options) {
  Interrupt::check();
  check(umem_copy_to_with(from_->get(), src_, to_->get(), dst_,
                          static_cast<std::size_t>(settings_.size), options));
}

void Pair::wait() {
  check(umem_synchronize(from_->get()));
  check(umem_synchronize(to_->get()));
}

/* The first copy tells its route; those that are measured ask for none. */
void Pair::warm_up() {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  for (unsigned i = 0; i < settings_.warmups; i++) copy(i ? nullptr : &options);
  wait();
  cell_.route.resize(umemRoute_text(&route, nullptr, 0));
  umemRoute_text(&route, cell_.route.data(), cell_.route.size() + 1);
}

/* The mean seconds of one copy. */
double Pair::repeat() {
  bool const is_each = settings_.cold || settings_.latency;
  Clock::duration sum{};
  for (unsigned done = 0; done < settings_.copies;) {
    if (caches_) caches_->empty();
    auto const begin = Clock::now();
    do copy();
    while (++done < settings_.copies && !is_each);
    wait();
    sum += Clock::now() - begin;
  }
  return std::chrono::duration<double>(sum).count() / settings_.copies;
}

void Pair::measure() {
  fill();
  warm_up();
  for (unsigned i = 0; i < settings_.repeats; i++) cell_.samples.push_back(repeat());
  if (settings_.verify)
    if (std::optional<std::uint64_t> const at = wrong_byte(to_->get(), dst_, settings_.size)) {
      cell_.is_wrong = true;
      throw Failure("verification failed: byte " + std::to_string(*at) + " of the copy differs");
    }
  std::vector<double> sorted = cell_.samples;
  std::sort(sorted.begin(), sorted.end());
  cell_.seconds = sorted[sorted.size() / 2];
}

} // namespace

BwCell measure(std::string const &from, std::string const &to, BwSettings const &settings) {
  BwCell cell;
  cell.from = from;
  cell.to = to;
  try {
    Pair(cell, settings).measure();
  } catch (Failure const &why) {
    Interrupt::check();
    cell.reason = why.what();
  } catch (std::bad_alloc const &) {
    cell.reason = "out of memory";
  }
  if (!cell.seconds) cell.samples.clear();
  return cell;
}

/* Why a context cannot be opened, with its name; "" if it can. */
static std::string absence(std::string const &name) {
  try {
    BwEnd const end(name, 4096, 1);
    return "";
  } catch (Failure const &why) {
    return name + ": " + why.what();
  }
}

std::vector<BwCell>
measure_all(std::vector<std::string> const &names, BwSettings const &settings,
            std::function<void(std::string const &, std::size_t, std::size_t)> const &show) {
  std::vector<BwCell> cells;
  std::map<std::string, std::string> absent;
  for (std::string const &name : names) absent[name] = absence(name);
  for (std::string const &from : names)
    for (std::string const &to : names) {
      BwCell cell;
      cell.from = from;
      cell.to = to;
      show(pair_text(cell), cells.size(), names.size() * names.size());
      cell.reason = absent[from].empty() ? absent[to] : absent[from];
      cells.push_back(cell.reason.empty() ? measure(from, to, settings) : cell);
    }
  return cells;
}

std::string pair_text(BwCell const &cell) { return cell.from + " -> " + cell.to; }

double bytes_per_second(BwCell const &cell, BwSettings const &settings) {
  /* A clock that has not moved says nothing. */
  return static_cast<double>(settings.size) / std::max(cell.seconds.value_or(0), 1e-12);
}

} // namespace umem::tool
