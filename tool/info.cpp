/* info.cpp - umem info: its command line, and its text for people. */
#include "info.hpp"

#include "archive.hpp"
#include "commands.hpp"
#include "failure.hpp"
#include "output.hpp"
#include "place.hpp"

#include <memory>
#include <unistd.h>
#include <vector>

namespace umem::tool {

struct InfoOptions {
  std::vector<std::string> names;
  bool json = false, schemes = false;
};

/* ---- text ---- */

/* A line that is wrapped on a terminal. */
static void print_line(std::string const &text, std::size_t indent) {
  print(wrapped(text, indent, columns_of(STDOUT_FILENO)));
}

static void line(std::string const &head, std::string const &text) {
  if (text.empty()) return;
  print(entry("    " + head, text, 23, columns_of(STDOUT_FILENO)));
}

static std::string size_of(Json const &number) {
  return number.is_null() ? "" : size_text(number.number());
}

/* "a, b" */
static std::string list_of(Json const &items) {
  std::string text;
  for (Json const &item : items)
    text += (text.empty() ? "" : ", ") + (item.is_text() ? item.text() : item.dump());
  return text;
}

static void print_gpu(Json const &gpu) {
  line("GPU", gpu["model"].text());
  if (!gpu["pci"].is_null()) line("PCI", gpu["pci"].text());
  if (!gpu["numa_node"].is_null()) line("NUMA node", gpu["numa_node"].dump());
  if (!gpu["gpudirect_rdma"].is_null())
    line("GPUDirect RDMA",
         gpu["gpudirect_rdma"].is_true() ? "yes" : "no: the GPU does not support it");
}

static void print_context(Json const &context) {
  std::string const name = plain(context["name"].text());
  if (!context["opens"].is_true()) {
    print_line(name + "  no: " + plain(context["reason"].text()), 4);
    return;
  }
  print(name + "  yes\n");
  line("kind", context["kind"].text());
  line("over", list_of(context["over"]));
  line("capacity", size_of(context["capacity"]));
  line("available", size_of(context["available"]));
  line("page size", size_of(context["page_size"]));
  line("alignment", size_of(context["alignment"]));
  line("capabilities", list_of(context["capabilities"]));
  if (!context["numa_nodes"].is_null()) line("NUMA nodes", list_of(context["numa_nodes"]));
  if (!context["path"].is_null()) line("path", plain(context["path"].text()));
  if (!context["gpu"].is_null()) print_gpu(context["gpu"]);
}

static std::string shape_text(Json const &shape) {
  std::string text = "(";
  std::size_t count = 0;
  for (Json const &extent : shape) text += (count++ ? ", " : "") + extent.dump();
  return text + (count == 1 ? ",)" : ")");
}

static void print_file(Json const &file) {
  std::string const name = plain(file["name"].text());
  if (!file["opens"].is_true()) {
    print_line(name + "  no: " + plain(file["reason"].text()), 4);
    return;
  }
  print(name + "  " + file["format"].text() + '\n');
  for (Json const &pair : file["metadata"])
    line(plain(pair["key"].text()), plain(pair["text"].text()));
  using Align = Table::Align;
  Table table({{"array"}, {"type"}, {"shape"}, {"size", Align::right}, {""}});
  for (Json const &array : file["arrays"]) {
    bool const known = array["problem"].is_null();
    table.add({plain(array["name"].text()), known ? array["type"].text() : "none",
               known ? shape_text(array["shape"]) : "", known ? size_of(array["bytes"]) : "",
               known ? (array["big_endian"].is_true()   ? "big endian"
                        : array["compressed"].is_true() ? "compressed"
                                                        : "")
                     : plain(array["problem"].text())});
  }
  table.print();
}

static std::string answer(Json const &fact) {
  if (!fact["available"].is_true()) return "no: " + fact["reason"].text();
  std::string const &detail = fact["detail"].text();
  return detail.empty() ? "yes" : "yes: " + detail;
}

static std::string cuda_answer(Json const &cuda) {
  std::string text = answer(cuda);
  if (!cuda["available"].is_true() || cuda["driver_version"].is_null()) return text;
  std::uint64_t const version = cuda["driver_version"].number();
  text += ", CUDA " + std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
  if (!cuda["driver_release"].is_null()) text += ", driver " + cuda["driver_release"].text();
  return text;
}

static void print_machine(Json const &machine) {
  print("umem " + machine["version"].text() + '\n');
  line("processors", machine["processors"].dump());
  line("threads", machine["threads"].dump() + " for one copy");
  line("available RAM", size_of(machine["available_ram"]));
  for (Json const &node : machine["numa"])
    line("NUMA node " + node["node"].dump(),
         node["processors"].text().empty() ? "" : "processors " + node["processors"].text());
  line("locked memory", machine["pinned_limit"].is_null()
                            ? "no limit"
                            : "at most " + size_of(machine["pinned_limit"]));
  line("direct I/O", plain(answer(machine["direct_io"])));
  line("CUDA", cuda_answer(machine["cuda"]));
  line("GPUDirect Storage", answer(machine["gpudirect_storage"]));
  line("MPI", answer(machine["mpi"]));
}

static void print_scheme(Json const &scheme) {
  std::string head = scheme["name"].text() + (scheme["adaptor"].is_true() ? "+...:" : ":");
  Json const &place = scheme["place"];
  if (!place.is_null()) head += '[' + upper(place["kind"].text()) + ']';
  print_line(head + "  " + scheme["help"].text(), 4);
  for (Json const &option : scheme["options"]) {
    std::string const value =
        option.contains("words") ? list_of(option["words"]) : upper(option["kind"].text());
    print_line("    " + option["name"].text() + '=' + value, 8);
    print_line("        " + option["help"].text(), 8);
  }
}

/* ---- the command ---- */

static Json gather(InfoOptions const &options) {
  Json all;
  if (options.schemes) {
    all["schemes"] = schemes_json();
    return all;
  }
  if (options.names.empty()) all["machine"] = machine_json();
  all["contexts"] = Json::array();
  if (!options.names.empty()) all["files"] = Json::array();
  for (std::string const &name : options.names.empty() ? all_places() : options.names)
    if (!names_file(name))
      all["contexts"].push_back(context_json(name));
    else
      all["files"].push_back(file_json(name));
  if (options.names.empty()) all["schemes"] = schemes_json();
  return all;
}

static void print_text(Json const &all, bool with_schemes) {
  if (all.contains("machine")) {
    print_machine(all["machine"]);
    print("\n");
  }
  if (all.contains("contexts"))
    for (Json const &context : all["contexts"]) print_context(context);
  if (all.contains("files"))
    for (Json const &file : all["files"]) print_file(file);
  if (with_schemes)
    for (Json const &scheme : all["schemes"]) print_scheme(scheme);
  else if (all.contains("schemes")) {
    std::string names;
    for (Json const &scheme : all["schemes"])
      names += (names.empty() ? "" : " ") + scheme["name"].text();
    print("\n");
    print_line("schemes (umem info --schemes lists their options)", 0);
    print_line("    " + names, 4);
  }
}

static void run_info(InfoOptions const &options) {
  if (options.schemes && !options.names.empty())
    throw Failure("--schemes lists all schemes, and takes no names", misuse);
  Json const all = gather(options);
  if (options.json)
    print(all.dump() + '\n');
  else
    print_text(all, options.schemes);
  if (options.names.empty()) return;
  for (char const *key : {"contexts", "files"})
    for (Json const &one : all[key])
      if (!one["opens"].is_true()) throw Failure(one["name"].text() + " cannot be opened");
}

void add_info(Command const &program) {
  auto const options = std::make_shared<InfoOptions>();
  Command const info = program.add_command(
      "info",
      "Show which contexts this machine and build can open, and what they are, or the arrays "
      "of files. Without a name it shows all contexts, and the machine. It changes no file "
      "and no segment.");
  info.add_option("NAME", options->names,
                  "contexts, as for umem_open, and files of arrays (safetensors, .npz, .npy); 1 is "
                  "the exit code if one cannot be opened")
      .named("");
  info.add_flag("--schemes", options->schemes, "the schemes of names, with their options");
  info.add_flag("--json", options->json, "print all of it as JSON; sizes in bytes");
  info.runs([options] { run_info(*options); });
}

} // namespace umem::tool
