/* cp.cpp - umem cp: its command line, and the order of its steps. */
#include "cp.hpp"

#include "commands.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "output.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace umem::tool {

struct CpOptions {
  std::string src, dst, step = "64M";
  bool json = false, verify = false, direct = false, quiet = false;
  double interval = -1; /* seconds; negative: as umem chooses */
};

static double speed_of(Copied const &copied) {
  return copied.seconds > 0 ? static_cast<double>(copied.nbytes) / copied.seconds : 0;
}

static void print_json(CpOptions const &options, Copied const &copied) {
  Json result;
  result["source"] = options.src;
  result["destination"] = options.dst;
  result["bytes"] = copied.nbytes;
  result["seconds"] = copied.seconds;
  result["bytes_per_second"] = speed_of(copied);
  result["route"] = copied.route;
  result["verified"] = copied.verified;
  print(result.dump() + '\n');
}

static void print_line(Copied const &copied) {
  std::array<char, 80> text;
  std::snprintf(text.data(), text.size(), " in %.3f s, %.2f GB/s", copied.seconds,
                speed_of(copied) / 1e9);
  print(size_text(copied.nbytes) + text.data() + (copied.verified ? ", verified" : "") +
        (copied.route.empty() ? "" : ", " + copied.route) + '\n');
}

/* A number that is not negative; "nan" and "inf" are none. */
static bool is_seconds(std::string const &text) {
  char *end = nullptr;
  double const seconds = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && seconds >= 0 && std::isfinite(seconds);
}

static bool is_readable(End const &end) {
  return static_cast<umemVirtual const *>(end.ctx)->capabilities & umemReadable;
}

static void run_cp(CpOptions const &options) {
  Interrupt const interrupt;
  Copied copied;
  {
    auto const step = static_cast<std::size_t>(parse_size(options.step));
    if (!step) throw Failure("--step is at least one byte", misuse);
    auto const src = open_source(options.src, options.direct);
    auto const dst = open_destination(options.dst, *src, options.direct);
    if (options.direct && !src->is_file && !dst->is_file)
      throw Failure("--direct is for files, and neither end is one", misuse);
    if (options.verify && !is_readable(*dst))
      throw Failure("--verify reads both ends, but " + options.dst + " can only be written",
                    misuse);
    Interrupt::check();
    Progress progress(options.quiet, options.interval);
    copied = copy(*src, *dst, step, progress);
    if (options.verify) verify(*src, *dst, progress);
    copied.verified = options.verify;
    dst->finish();
  }
  if (options.json)
    print_json(options, copied);
  else if (!options.quiet)
    print_line(copied);
}

void add_cp(Command const &program) {
  auto const options = std::make_shared<CpOptions>();
  Command const cp =
      program.add_command("cp", "Copy bytes between any two contexts. SRC and DST are "
                                "paths of files, or names such as cuda:0 "
                                "and shm:NAME (umem info --schemes). FILE#NAME is an "
                                "array of a file of named arrays, such as "
                                "model.safetensors#layer.0 and x.npz#a; to a path "
                                "that ends in .npy it goes with its type and shape. A file that is "
                                "written gets its name when it is complete; "
                                "an interrupt leaves the old one as it was.");
  cp.add_option(
        "SRC", options->src,
        "what to copy, with @OFFSET or @OFFSET,LENGTH for a part; of memory, zeros: host:@0,1G")
      .required()
      .named("");
  cp.add_option("DST", options->dst,
                "where to; memory shows the speed, and ends with the program; shm:NAME stays")
      .required()
      .named("");
  cp.add_flag("--direct", options->direct,
              "around the page cache, in files of either end (O_DIRECT)");
  cp.add_flag("--verify", options->verify,
              "read both ends again and compare them, before the file gets its name");
  cp.add_flag("--json", options->json, "print the result as JSON");
  cp.add_flag("-q,--quiet", options->quiet, "no progress, and no result but that of --json");
  cp.add_option("--step", options->step, "bytes between two looks at progress and interrupts")
      .named("SIZE")
      .showing_default();
  cp.add_option("--interval", options->interval,
                "seconds between reports of progress; default: 0.1 on a terminal, else 10")
      .named("SECONDS")
      .checked([](std::string const &text) {
        return is_seconds(text) ? "" : "not a number of seconds: " + text;
      });
  cp.runs([options] { run_cp(*options); });
}

} // namespace umem::tool
