/* bw.cpp - umem bw: its command line, and its output. */
#include "bw.hpp"

#include "commands.hpp"
#include "cp.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "json.hpp"
#include "output.hpp"
#include "place.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <umem.h>
#include <unistd.h>

namespace umem::tool {

struct BwOptions {
  std::string from, to;
  std::optional<std::string> size;
  unsigned threads = 0;
  bool all = false, latency = false, cold = false, verify = false, json = false,
       nvbandwidth = false;
};

/* ---- progress ---- */

/* A line on a terminal, which the next one replaces; "" removes it. */
static void show(std::string const &what, std::size_t done, std::size_t total) {
  if (!is_terminal(STDERR_FILENO)) return;
  std::string const line =
      what.empty() ? ""
                   : std::to_string(done + 1) + " of " + std::to_string(total) + ": " + plain(what);
  std::fprintf(stderr, "\r\033[K%s", clipped(line, columns_of(STDERR_FILENO) - 1).c_str());
  std::fflush(stderr); /* the measurement goes on without a reader */
}

namespace {
struct ProgressLine {
  ~ProgressLine() { show("", 0, 0); }
};
} // namespace

/* ---- text ---- */

static std::string number(char const *format, double value) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

static std::string value_of(BwCell const &cell, BwSettings const &settings) {
  if (!cell.seconds) return "N/A";
  return settings.latency ? number("%.2f", *cell.seconds * 1e6)
                          : number("%.2f", bytes_per_second(cell, settings) / 1e9);
}

static char const *unit_of(BwSettings const &settings) { return settings.latency ? "us" : "GB/s"; }

/* The source has a row, the destination a column. */
static void print_matrix(std::vector<std::string> const &names, std::vector<BwCell> const &cells,
                         BwSettings const &settings) {
  std::vector<Table::Column> columns = {{std::string(unit_of(settings)) + " from"}};
  for (std::string const &name : names) columns.push_back({"to " + name, Table::Align::right});
  Table table(columns);
  for (std::size_t row = 0; row < names.size(); row++) {
    std::vector<std::string> line = {names[row]};
    for (std::size_t i = 0; i < names.size(); i++)
      line.push_back(value_of(cells[row * names.size() + i], settings));
    table.add(line);
  }
  table.print();
  print("\n");
}

static void print_cells(std::vector<BwCell> const &cells, BwSettings const &settings,
                        bool with_absent) {
  Table table({{"from"}, {"to"}, {unit_of(settings), Table::Align::right}, {"route"}});
  for (BwCell const &cell : cells)
    if (cell.seconds || with_absent)
      table.add({plain(cell.from), plain(cell.to), value_of(cell, settings),
                 plain(cell.seconds ? cell.route : cell.reason)});
  table.print();
}

/* Each reason once: a context that cannot be opened has a row and a column of them. */
static void print_reasons(std::vector<BwCell> const &cells) {
  std::set<std::string> known;
  for (BwCell const &cell : cells)
    if (!cell.seconds && known.insert(cell.reason).second)
      print((known.size() == 1 ? "\nN/A  " : "N/A  ") + plain(cell.reason) + '\n');
}

/* ---- JSON ---- */

static Json cell_json(BwCell const &cell, BwSettings const &settings) {
  Json json;
  json["source"] = cell.from;
  json["destination"] = cell.to;
  json["seconds"] = nullptr;
  json["bytes_per_second"] = nullptr;
  if (cell.seconds) {
    json["seconds"] = *cell.seconds;
    json["bytes_per_second"] = bytes_per_second(cell, settings);
  }
  json["samples"] = Json::array(cell.samples);
  json["route"] = cell.route;
  json["reason"] = cell.reason;
  return json;
}

static void print_json(std::vector<BwCell> const &cells, BwSettings const &settings) {
  Json json;
  json["version"] = UMEM_VERSION;
  json["size"] = settings.size;
  json["warmups"] = settings.warmups;
  json["copies"] = settings.copies;
  json["repeats"] = settings.repeats;
  json["threads"] = umem_get_threads();
  json["latency"] = settings.latency;
  json["cold"] = settings.cold;
  json["verified"] = settings.verify;
  json["cells"] = Json::array();
  for (BwCell const &cell : cells) json["cells"].push_back(cell_json(cell, settings));
  print(json.dump() + '\n');
}

/* ---- the command ---- */

static void check_use(BwOptions const &options) {
  bool const has_names = !options.from.empty() || !options.to.empty();
  if (options.nvbandwidth && (has_names || options.latency || options.cold))
    throw Failure(
        "--nvbandwidth measures what that program does: give neither names, nor --latency, "
        "nor --cold",
        misuse);
  if (options.all && has_names) throw Failure("give FROM and TO, or --all", misuse);
  if (!options.all && !options.nvbandwidth && options.to.empty())
    throw Failure("give FROM and TO, or --all", misuse);
}

static BwSettings settings_of(BwOptions const &options) {
  BwSettings settings;
  settings.latency = options.latency;
  settings.cold = options.cold;
  settings.verify = options.verify;
  if (options.latency) {
    settings.size = 8;
    settings.warmups = 16;
    settings.copies = 256;
  }
  if (options.size) settings.size = parse_size(*options.size);
  if (settings.size == 0) throw Failure("a copy has at least one byte", misuse);
  return settings;
}

/* A pair that cannot be measured is a failure, a cell of the matrix is not; wrong bytes always
 * are. */
static void check_cells(std::vector<BwCell> const &cells, bool all) {
  for (BwCell const &cell : cells)
    if (cell.is_wrong || (!all && !cell.seconds))
      throw Failure(pair_text(cell) + ": " + cell.reason);
}

static std::vector<BwCell> cells_of(BwOptions const &options, std::vector<std::string> const &names,
                                    BwSettings const &settings) {
  ProgressLine const line;
  if (options.all) return measure_all(names, settings, show);
  show(options.from + " -> " + options.to, 0, 1);
  return {measure(options.from, options.to, settings)};
}

static void run_bw(BwOptions const &options) {
  check_use(options);
  BwSettings const settings = settings_of(options);
  if (umem_set_threads(options.threads) != umemOK) throw Failure(reason(), misuse);
  Interrupt const interrupt;
  if (options.nvbandwidth) {
    std::string text;
    {
      ProgressLine const line;
      text = nvbandwidth_json(settings, show);
    }
    print(text);
    return;
  }
  std::vector<std::string> const names = options.all ? all_places() : std::vector<std::string>();
  std::vector<BwCell> const cells = cells_of(options, names, settings);
  if (options.json)
    print_json(cells, settings);
  else {
    if (options.all) print_matrix(names, cells, settings);
    print_cells(cells, settings, !options.all);
    if (options.all) print_reasons(cells);
  }
  check_cells(cells, options.all);
}

static void add_bw_options(Command const &bw, BwOptions &options) {
  bw.add_option("FROM", options.from, "the source, a name of umem_open").named("");
  bw.add_option("TO", options.to,
                "the destination; the path of a file must be new, or a folder for one")
      .named("");
  bw.add_flag("--all", options.all, "all pairs of contexts that umem info lists");
  bw.add_option("--size", options.size, "bytes of a copy; default: 512M, with --latency 8")
      .named("SIZE");
  bw.add_option("--threads", options.threads,
                "threads of umem for one copy, the calling one too; default: 0, umem chooses")
      .named("NUMBER")
      .checked(
          [](std::string const &text) { return text.empty() ? "not a number of threads" : ""; });
  bw.add_flag("--latency", options.latency,
              "microseconds of one short copy until it is complete; median of 3 of 256");
  bw.add_flag("--cold", options.cold, "empty the CPU's caches and the page cache before each copy");
  bw.add_flag("--verify", options.verify,
              "compare the bytes at the end; 1 is the exit code if one differs");
  bw.add_flag("--json", options.json, "print the result as JSON: seconds and bytes a second");
  bw.add_flag("--nvbandwidth", options.nvbandwidth,
              "copies between pinned memory and GPUs, in the JSON of NVIDIA's nvbandwidth");
}

void add_bw(Command const &program) {
  auto const options = std::make_shared<BwOptions>();
  Command const bw = program.add_command(
      "bw", "Measure copies between two contexts, or between all. Prints GB/s (1e9 bytes), the "
            "median of 3 times 16 copies after 4 others, and the route; or N/A and the reason.");
  add_bw_options(bw, *options);
  bw.runs([options] { run_bw(*options); });
}

} // namespace umem::tool
