/* place.cpp - contexts by name; see place.hpp. */
#include "place.hpp"

#include "failure.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <umem.h>

namespace umem::tool {

/* "umem_open: why" -> "why" */
std::string reason() {
  std::string const text = umem_thread_message();
  std::size_t const colon = text.find(": ");
  bool const names_function =
      text.compare(0, 4, "umem") == 0 && colon != std::string::npos && text.find(' ') == colon + 1;
  return names_function ? text.substr(colon + 2) : text;
}

Context::Context(std::string const &name) : ctx_(umem_open(name.c_str())) {
  if (!ctx_) throw Failure(reason());
}

/* Nothing depends on the end of what was opened to look at it, or to measure. */
Context::~Context() { umem_close(ctx_); }

/* ---- what there is ---- */

int gpu_count() {
  static int const count = [] {
    int n = 0;
    while (void *ctx = umem_open(("cuda:" + std::to_string(n)).c_str())) {
      umem_close(ctx);
      n++;
    }
    return n;
  }();
  return count;
}

std::string first_line(std::string const &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/* "0-1,4" */
static std::vector<int> numbers_in(std::string const &text) {
  std::vector<int> numbers;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    char dash = 0;
    std::istringstream ends(range);
    if (!(ends >> first)) continue;
    if (!(ends >> dash >> last)) last = first;
    for (int n = first; n <= last; n++) numbers.push_back(n);
  }
  return numbers;
}

std::vector<int> numa_nodes() {
  std::vector<int> nodes = numbers_in(first_line("/sys/devices/system/node/has_memory"));
  return nodes.empty() ? std::vector<int>{0} : nodes;
}

static bool takes_device(umemScheme const &scheme) {
  return scheme.place && scheme.place->kind == umemDeviceOption;
}

std::vector<std::string> all_places() {
  std::vector<std::string> names;
  for (std::size_t i = 0; umemScheme const *scheme = umem_scheme(i); i++) {
    if (scheme->decorates) continue;
    std::string const name = scheme->name + std::string(":");
    for (int n = 0; n < (takes_device(*scheme) ? std::max(gpu_count(), 1) : 0); n++)
      names.push_back(name + std::to_string(n));
    if (!takes_device(*scheme)) names.push_back(name);
    if (name == "host:" && numa_nodes().size() > 1)
      for (int const node : numa_nodes()) names.push_back("host:?nodes=" + std::to_string(node));
  }
  return names;
}

bool is_stream(std::string const &path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool is_same_file(std::string const &path, std::string const &other) {
  struct stat one = {}, two = {};
  return stat(path.c_str(), &one) == 0 && stat(other.c_str(), &two) == 0 &&
         one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

std::string scratch_folder() {
  char const *folder = secure_getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

bool is_in_ram(std::string const &folder) {
  constexpr unsigned long tmpfs = 0x01021994, ramfs = 0x858458f6;
  struct statfs system = {};
  if (statfs(folder.c_str(), &system) != 0) return false;
  auto const type = static_cast<unsigned long>(system.f_type) & 0xFFFFFFFF;
  return type == tmpfs || type == ramfs;
}

/* ---- RAM ---- */

/* A number in a file of the kernel, after key if there is one; otherwise the value of none. */
static std::uint64_t number_in(std::string const &path, std::string const &key,
                               std::uint64_t none) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (key.empty()) return file >> number ? number : none;
  for (std::string word; file >> word;)
    if (word == key) return file >> number ? number : none;
  return none;
}

/* What a control group leaves; its cached files can go. */
static std::uint64_t left_in_group(std::string const &folder) {
  std::uint64_t const limit = number_in(folder + "/memory.max", "", UMEM_UNKNOWN);
  if (limit == UMEM_UNKNOWN) return limit;
  std::uint64_t const used = number_in(folder + "/memory.current", "", 0);
  std::uint64_t const files = number_in(folder + "/memory.stat", "inactive_file", 0) +
                              number_in(folder + "/memory.stat", "active_file", 0);
  std::uint64_t const fixed = used > files ? used - files : 0;
  return limit > fixed ? limit - fixed : 0;
}

/* Groups of version 2 are in a tree: each bounds those below it. */
static std::uint64_t left_in_groups() {
  std::string path;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 3, "0::") == 0) path = line.substr(3);
  std::uint64_t least = UMEM_UNKNOWN;
  for (;; path.erase(path.find_last_of('/'))) {
    least = std::min(least, left_in_group("/sys/fs/cgroup" + path));
    if (path.find('/') == std::string::npos) break;
  }
  std::string const one = "/sys/fs/cgroup/memory"; /* version 1, as a container sees it */
  std::uint64_t const limit = number_in(one + "/memory.limit_in_bytes", "", UMEM_UNKNOWN);
  std::uint64_t const used = number_in(one + "/memory.usage_in_bytes", "", 0);
  return std::min(least, limit > used ? limit - used : 0);
}

std::uint64_t available_ram() {
  std::uint64_t const kib = number_in("/proc/meminfo", "MemAvailable:", UMEM_UNKNOWN >> 10);
  return std::min(kib << 10, left_in_groups());
}

} // namespace umem::tool
