/* cp_copy.cpp - the copy of umem cp, its progress and its check. */
#include "cp.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "place.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace umem::tool {

static double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/* ---- progress ---- */

Progress::Progress(bool quiet, double seconds)
    : quiet_(quiet), terminal_(is_terminal(STDERR_FILENO)),
      interval_(seconds < 0 ? (terminal_ ? 0.1 : 10) : seconds) {}

/* "1:05:09", "0:07". */
static std::string time_text(double seconds) {
  long long const whole = std::llround(seconds);
  std::array<char, 40> text;
  if (whole < 3600)
    std::snprintf(text.data(), text.size(), "%lld:%02lld", whole / 60, whole % 60);
  else
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  return text.data();
}

std::string Progress::text(char const *what, std::uint64_t done, std::uint64_t total,
                           double seconds) const {
  double const share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  double const speed = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::array<char, 40> number;
  std::vector<std::string> parts = {what + size_text(done) + " of " + size_text(total)};
  std::snprintf(number.data(), number.size(), "%.0f %%", std::floor(100 * share));
  parts.emplace_back(number.data());
  std::snprintf(number.data(), number.size(), "%.2f GB/s", speed / 1e9);
  parts.emplace_back(number.data());
  if (share > 0) parts.push_back(time_text(seconds / share - seconds) + " left");
  if (!route.empty()) parts.push_back(route);
  /* What does not fit a terminal goes, from the end. */
  std::size_t const limit = columns_of(STDERR_FILENO);
  std::string line;
  for (std::string const &part : parts) {
    std::string longer = line;
    longer.append(line.empty() ? "" : ", ").append(part);
    if (limit != no_limit && display_width(longer) >= limit) break;
    line = longer;
  }
  return line;
}

void Progress::show(char const *what, std::uint64_t done, std::uint64_t total) {
  if (quiet_) return;
  if (done == 0) begin_ = last_ = Clock::now();
  if (seconds_since(last_) < interval_ || done == 0 || done == total) return;
  last_ = Clock::now();
  std::string const line = text(what, done, total, seconds_since(begin_));
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stderr); /* the copy goes on without a reader */
  shown_ = true;
}

void Progress::clear() {
  if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

/* ---- the copy ---- */

struct Part {
  Progress &progress;
  std::uint64_t before, total; /* bytes of earlier parts, of all parts */
};

static bool go_on(void *user, std::uint64_t done, std::uint64_t) {
  auto const &part = *static_cast<Part *>(user);
  if (Interrupt::signal()) return false;
  if (done || !part.before) part.progress.show("", part.before + done, part.total);
  return true;
}

static std::string copy_part(End const &src, End const &dst, Part part, std::uint64_t nbytes,
                             std::size_t step) {
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = go_on;
  options.user = &part;
  options.step = step;
  options.route = &route;
  auto const before = static_cast<std::uintptr_t>(part.before);
  if (umem_copy_to_with(src.ctx, src.adr + before, dst.ctx, dst.adr + before,
                        static_cast<std::size_t>(nbytes), &options)) {
    Interrupt::check();
    throw Failure(reason());
  }
  std::string text(umemRoute_text(&route, nullptr, 0), '\0');
  umemRoute_text(&route, text.data(), text.size() + 1);
  return text;
}

static Copied unpack(End const &src, End const &dst, std::size_t step, Progress &progress) {
  Part part = {progress, 0, src.nbytes};
  auto const begin = std::chrono::steady_clock::now();
  Copied copied;
  copied.route = progress.route = src.is_turned ? "turned" : "inflated";
  src.unpack(dst, go_on, &part, step);
  copied.seconds = seconds_since(begin);
  copied.nbytes = src.nbytes;
  Interrupt::check();
  return copied;
}

/* The route of a copy is known when it has ended: the first part tells that of the others. */
Copied copy(End const &src, End const &dst, std::size_t step, Progress &progress) {
  if (src.is_packed) return unpack(src, dst, step, progress);
  std::uint64_t const first =
      std::min<std::uint64_t>(src.nbytes, std::max<std::uint64_t>(step, std::uint64_t(64) << 20));
  auto const begin = std::chrono::steady_clock::now();
  Copied copied;
  if (first)
    progress.route = copied.route = copy_part(src, dst, {progress, 0, src.nbytes}, first, step);
  if (src.nbytes > first)
    copied.route = copy_part(src, dst, {progress, first, src.nbytes}, src.nbytes - first, step);
  copied.seconds = seconds_since(begin);
  copied.nbytes = src.nbytes;
  Interrupt::check();
  return copied;
}

/* ---- the check ---- */

static void read_chunk(End const &end, std::uint64_t offset, umemHost &host,
                       std::vector<char> &bytes, std::size_t nbytes) {
  std::uintptr_t const from = end.adr + static_cast<std::uintptr_t>(offset);
  if (umem_copy_to(end.ctx, from, &host, reinterpret_cast<std::uintptr_t>(bytes.data()), nbytes) !=
          umemOK ||
      umem_synchronize(end.ctx) != umemOK) {
    Interrupt::check();
    throw Failure(reason());
  }
}

/* The bytes of a packed end in a file without a name. */
static std::unique_ptr<End> unpacked(End const &src, Progress &progress) {
  std::unique_ptr<End> file = open_destination("file:", src, false);
  unpack(src, *file, 0, progress);
  return file;
}

static void compare(End const &src, End const &dst, Progress &progress) {
  constexpr std::size_t chunk = std::size_t(16) << 20;
  auto const room = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, src.nbytes));
  std::vector<char> one(room), other(room);
  umemHost host;
  if (umemHost_ctor(&host) != umemOK) throw Failure(reason());
  std::unique_ptr<umemHost, void (*)(umemHost *)> const ends(&host,
                                                             [](umemHost *ctx) { umem_dtor(ctx); });
  for (std::uint64_t done = 0; done < src.nbytes; done += room) {
    auto const nbytes = static_cast<std::size_t>(std::min<std::uint64_t>(room, src.nbytes - done));
    progress.show("verified ", done, src.nbytes);
    Interrupt::check();
    read_chunk(src, done, host, one, nbytes);
    read_chunk(dst, done, host, other, nbytes);
    if (std::memcmp(one.data(), other.data(), nbytes) == 0) continue;
    auto const at =
        std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(nbytes), other.begin())
            .first;
    throw Failure("verification failed: byte " +
                  std::to_string(done + static_cast<std::uint64_t>(at - one.begin())) +
                  " of the copy differs");
  }
  Interrupt::check();
}

void verify(End const &src, End const &dst, Progress &progress) {
  compare(src.is_packed ? *unpacked(src, progress) : src, dst, progress);
}

} // namespace umem::tool
