/* bw_nvbandwidth.cpp - umem bw in the JSON of NVIDIA's nvbandwidth 0.8
 * (github.com/NVIDIA/nvbandwidth, README.md and json_output.cpp): for scripts that read it. */
#include "bw.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "place.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

using Show = std::function<void(std::string const &, std::size_t, std::size_t)>;

namespace {

/* A test of nvbandwidth whose copies umem does, too. */
struct Test {
  char const *name, *description;
  bool has_rows; /* a row for each GPU; else one row */
  std::string (*from)(int row, int column);
  std::string (*to)(int row, int column);
};

std::string pinned(int, int) { return "cuda-host:"; }
std::string gpu_of_row(int row, int) { return "cuda:" + std::to_string(row); }
std::string gpu_of_column(int, int column) { return "cuda:" + std::to_string(column); }

/* Copies in a GPU are so short that they wait in a stream for each other, as in nvbandwidth, and
 * not for the program. */
std::string queued(int, int column) { return "cuda-async:" + std::to_string(column); }

constexpr Test tests[] = {
    {"host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", false,
     pinned, gpu_of_column},
    {"device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", false,
     gpu_of_column, pinned},
    {"device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", true,
     gpu_of_column, gpu_of_row},
    {"device_to_device_memcpy_write_ce", "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)", true,
     gpu_of_row, gpu_of_column},
    {"device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)", false, queued, queued},
};

} // namespace

/* Six digits, as a stream of C++ writes them, in a string: so has nvbandwidth. */
static std::string digits(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/* "0: NVIDIA H100 (00000000:65:00): (name of the machine)": so has nvbandwidth. */
static std::string device_text(int ordinal) {
  Gpu const one = gpu(ordinal);
  std::string pci = one.pci.substr(0, one.pci.find('.')); /* without the function */
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::size_t const domain = std::min(pci.find(':'), std::size_t(8));
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  return std::to_string(ordinal) + ": " + one.name + " (" + std::string(8 - domain, '0') + pci +
         "): (" + host.data() + ")";
}

/* nvbandwidth waives tests between GPUs where there is only one. */
static bool is_waived(Test const &test) { return test.has_rows && gpu_count() < 2; }

static Json test_json(Test const &test, BwSettings const &settings, Show const &show) {
  Json json;
  json["name"] = test.name;
  if (is_waived(test)) {
    json["status"] = "Waived";
    return json;
  }
  double sum = 0;
  Json matrix = Json::array();
  for (int row = 0; row < (test.has_rows ? gpu_count() : 1); row++) {
    Json line = Json::array();
    for (int column = 0; column < gpu_count(); column++) {
      BwCell cell;
      if (!test.has_rows || row != column) {
        show(test.name, static_cast<std::size_t>(&test - tests), std::size(tests));
        cell = measure(test.from(row, column), test.to(row, column), settings);
      }
      if (!cell.reason.empty()) {
        json["status"] = "Error";
        json["error"] = pair_text(cell) + ": " + cell.reason;
        return json;
      }
      double const speed = cell.seconds ? bytes_per_second(cell, settings) / 1e9 : 0;
      line.push_back(cell.seconds ? digits(speed) : "N/A");
      sum += speed;
    }
    matrix.push_back(line);
  }
  json["status"] = "Passed";
  json["bandwidth_description"] = test.description;
  json["bandwidth_matrix"] = matrix;
  json["sum"] = sum;
  return json;
}

std::string nvbandwidth_json(BwSettings const &settings, Show const &show) {
  Json root;
  Json &json = root["nvbandwidth"];
  json["version"] = "umem " UMEM_VERSION;
  json["git_version"] = "";
  json["CUDA Runtime Version"] = gpu(0).driver_version;
  json["Driver Version"] = first_line("/sys/module/nvidia/version");
  if (gpu_count() == 0) {
    try {
      Context const first("cuda:0");
    } catch (Failure const &why) {
      json["error"] = why.what();
    }
  }
  json["GPU Device list"] = Json::array();
  for (int i = 0; i < gpu_count(); i++) json["GPU Device list"].push_back(device_text(i));
  json["testcases"] = Json::array();
  for (Test const &test : tests) {
    if (gpu_count() == 0) break;
    json["testcases"].push_back(test_json(test, settings, show));
  }
  return root.dump() + '\n';
}

} // namespace umem::tool
