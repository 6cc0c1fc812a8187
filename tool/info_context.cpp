/* info_context.cpp - one context and the schemes, for umem info. */
#include "failure.hpp"
#include "info.hpp"
#include "name.hpp"
#include "place.hpp"

#include <array>
#include <optional>
#include <sstream>
#include <umem.h>
#include <utility>

namespace umem::tool {

/* ---- a context ---- */

static constexpr std::array<std::pair<umemCapability, char const *>, 10> capability_names = {{
    {umemCpuReadable, "CPU reads"},
    {umemCpuWritable, "CPU writes"},
    {umemDeviceAccessible, "GPU access"},
    {umemReadable, "copies from"},
    {umemWritable, "copies to"},
    {umemOrdered, "ordered"},
    {umemConcurrent, "concurrent"},
    {umemOffsets, "offsets"},
    {umemFaultable, "may fault"},
    {umemDeviceShared, "shared with kernels"},
}};

static Json known(std::uint64_t number) {
  return number == UMEM_UNKNOWN ? Json(nullptr) : Json(number);
}

static Json capabilities_of(void *ctx) {
  Json names = Json::array();
  std::uint32_t const bits = static_cast<umemVirtual *>(ctx)->capabilities;
  for (auto const &[bit, name] : capability_names)
    if (bits & static_cast<std::uint32_t>(bit)) names.push_back(name);
  return names;
}

static Json nodes_in(std::uint64_t bits) {
  if (bits == UMEM_UNKNOWN) return nullptr;
  Json nodes = Json::array();
  for (int node = 0; node < 64; node++)
    if (bits >> node & 1) nodes.push_back(node);
  return nodes;
}

static Json gpu_json(int ordinal, char const *model) {
  Gpu const more = gpu(ordinal);
  Json json;
  json["number"] = ordinal;
  json["model"] = model;
  json["pci"] = more.pci.empty() ? Json(nullptr) : Json(more.pci);
  json["numa_node"] = more.node < 0 ? Json(nullptr) : Json(more.node);
  json["gpudirect_rdma"] = more.rdma < 0 ? Json(nullptr) : Json(more.rdma != 0);
  return json;
}

static void add_facts(Json &json, void *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  if (umem_get_info(ctx, &info) != umemOK) throw Failure(reason());
  json["kind"] = umem_get_device_name(ctx);
  Json layers = Json::array();
  for (void *below = umem_get_upstream(ctx); below; below = umem_get_upstream(below))
    layers.push_back(umem_get_device_name(below));
  json["over"] = layers;
  json["capacity"] = known(info.capacity);
  json["available"] = known(info.available);
  json["page_size"] = known(info.page_size);
  json["alignment"] = info.alignment;
  json["capabilities"] = capabilities_of(ctx);
  json["numa_nodes"] = nodes_in(info.nodes);
  json["gpu"] =
      info.ordinal < 0 ? Json(nullptr) : gpu_json(static_cast<int>(info.ordinal), info.name);
  json["path"] = info.ordinal < 0 && info.name[0] ? Json(info.name) : Json(nullptr);
}

/* A segment without a name is as large as its creator wants: RAM bounds it. */
static bool has_no_size(Name const &name) {
  return name.storage() == "shm" && name.place.empty() && !name.option("size");
}

/* A name that changes nothing: files are only read, and no segment is created. */
static std::string harmless(std::string const &text) {
  std::optional<Name> name = parse_name(text);
  if (!name) return text;
  for (std::string const &path : name->paths_of_layers())
    throw Failure("umem info changes no file, and a layer writes " + path);
  if (name->is_file() && name->option("mode").value_or("r") != "r")
    throw Failure("umem info only reads files, and needs mode=r");
  if (name->is_file() && !name->option("mode"))
    name->options.emplace_back(name->storage() + ".mode", "r");
  if (has_no_size(*name)) name->options.emplace_back("shm.size", "4K");
  if (name->storage() == "shm" && !name->place.empty()) {
    if (name->option("how").value_or("open") != "open")
      throw Failure("umem info only opens segments, and needs how=open");
    if (!name->option("how")) name->options.emplace_back("shm.how", "open");
  }
  return name->text();
}

Json context_json(std::string const &name) {
  Json json;
  json["name"] = shown(name);
  json["opens"] = true;
  try {
    Context const context(harmless(name));
    add_facts(json, context.get());
    std::optional<Name> const parts = parse_name(name);
    if (parts && has_no_size(*parts)) {
      json["capacity"] = nullptr;
      json["available"] = available_ram();
    }
  } catch (Failure const &why) {
    json["opens"] = false;
    json["reason"] = why.what();
  }
  return json;
}

/* ---- schemes ---- */

static char const *kind_of(umemOption const &option) {
  switch (option.kind) {
  case umemNumberOption:
  case umemDeviceOption:
    return "number";
  case umemSizeOption:
    return "size";
  case umemShareOption:
    return "share";
  case umemWordOption:
    return "word";
  case umemWordsOption:
    return "words";
  case umemPathOption:
    return "path";
  case umemUrlOption:
    return "url";
  default:
    return "text";
  }
}

static Json option_json(umemOption const &option) {
  Json json;
  json["name"] = option.name;
  json["kind"] = kind_of(option);
  json["required"] = option.required;
  if (option.words) {
    json["words"] = Json::array();
    std::istringstream words(option.words);
    for (std::string word; words >> word;) json["words"].push_back(word);
  }
  json["help"] = option.help ? option.help : "";
  return json;
}

Json schemes_json() {
  Json all = Json::array();
  for (std::size_t i = 0; umemScheme const *scheme = umem_scheme(i); i++) {
    Json json;
    json["name"] = scheme->name;
    json["help"] = scheme->help ? scheme->help : "";
    json["adaptor"] = scheme->decorates;
    json["place"] = scheme->place ? option_json(*scheme->place) : Json(nullptr);
    json["options"] = Json::array();
    for (std::size_t n = 0; n < scheme->option_count; n++)
      json["options"].push_back(option_json(scheme->options[n]));
    all.push_back(json);
  }
  return all;
}

} // namespace umem::tool
