#include "name.hpp"

#include "failure.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string_view>
#include <umem.h>

namespace umem::tool {

static std::vector<std::string> split(std::string const &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

static bool is_scheme(std::string const &word) {
  auto const fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !word.empty() && word[0] >= 'a' && word[0] <= 'z' &&
         std::all_of(word.begin(), word.end(), fits);
}

/* ---- schemes ---- */

/* NULL if there is none. */
static umemScheme const *scheme_of(std::string const &name) {
  for (std::size_t i = 0; umemScheme const *scheme = umem_scheme(i); i++)
    if (scheme->name == name) return scheme;
  return nullptr;
}

/* ---- names ---- */

std::optional<Name> parse_name(std::string const &text) {
  std::size_t const colon = text.find(':');
  if (colon == std::string::npos) return {};
  Name name;
  name.layers = split(text.substr(0, colon), '+');
  if (name.layers.empty() || !std::all_of(name.layers.begin(), name.layers.end(), is_scheme))
    return {};
  std::string const rest = text.substr(colon + 1);
  std::size_t const mark = rest.find(name.before_options());
  name.place = rest.substr(0, mark);
  if (mark == std::string::npos) return name;
  for (std::string const &option : split(rest.substr(mark + 1), '&')) {
    std::size_t const equals = option.find('=');
    name.options.emplace_back(option.substr(0, equals),
                              equals == std::string::npos ? "" : option.substr(equals + 1));
  }
  return name;
}

std::string Name::text() const {
  std::string text;
  for (std::string const &layer : layers) text += (text.empty() ? "" : "+") + layer;
  text += ':' + place;
  char before = before_options();
  for (auto const &[key, value] : options) {
    text.append(1, before).append(key).append(1, '=').append(value);
    before = '&';
  }
  return text;
}

bool Name::is_url() const {
  umemScheme const *scheme = scheme_of(storage());
  return scheme && scheme->place && scheme->place->kind == umemUrlOption;
}

std::string Name::shown() const {
  if (!is_url()) return text();
  std::size_t const begin = place.find_first_not_of('/');
  if (begin == std::string::npos) return storage() + ":...";
  std::string const rest = place.substr(begin, place.find('?') - begin);
  std::size_t const at = rest.substr(0, rest.find('/')).rfind('@');
  bool const has_query = place.find('?') != std::string::npos;
  return storage() + "://" + rest.substr(at == std::string::npos ? 0 : at + 1) +
         (has_query ? "?..." : "");
}

std::string shown(std::string const &word) {
  std::optional<Name> const name = parse_name(word);
  return name && name->is_url() ? name->shown() : word;
}

std::optional<std::string> Name::option(std::string const &key) const {
  for (auto const &[name, value] : options)
    if (name == key ||
        (name.size() > key.size() && name.substr(name.size() - key.size() - 1) == '.' + key))
      return value;
  return {};
}

/* ---- what is there ---- */

static bool has_option(std::string const &scheme_name, std::string const &key) {
  umemScheme const *scheme = scheme_of(scheme_name);
  auto const is_key = [&](umemOption const &option) { return option.name == key; };
  return scheme && std::any_of(scheme->options, scheme->options + scheme->option_count, is_key);
}

std::string Name::unknown_layer() const {
  auto const unknown = std::find_if_not(layers.begin(), layers.end(),
                                        [](auto const &one) { return scheme_of(one) != nullptr; });
  return unknown == layers.end() ? "" : *unknown;
}

void Name::put_over(std::string const &layer) {
  for (auto &[key, value] : options) {
    std::string const bare = key;
    auto const owner = std::find_if(layers.begin(), layers.end(),
                                    [&](auto const &one) { return has_option(one, bare); });
    if (owner != layers.end()) key = *owner + '.' + bare;
  }
  layers.insert(layers.begin(), layer);
}

std::string Name::unknown_part() const {
  std::string const layer = unknown_layer();
  if (!layer.empty()) return "scheme " + layer;
  for (auto const &[key, value] : options) {
    std::string const bare = key.substr(key.find_last_of('.') + 1);
    auto const has = [&](std::string const &one) { return has_option(one, bare); };
    if (std::none_of(layers.begin(), layers.end(), has)) return "option " + key;
  }
  return "";
}

std::vector<std::string> Name::paths_of_layers() const {
  std::vector<std::string> paths;
  for (std::string const &layer : layers) {
    umemScheme const *scheme = scheme_of(layer);
    if (!scheme || !scheme->decorates) continue;
    for (std::size_t i = 0; i < scheme->option_count; i++)
      if (scheme->options[i].kind == umemPathOption)
        if (std::optional<std::string> const path = option(scheme->options[i].name))
          paths.push_back(decoded(*path));
  }
  return paths;
}

void Name::size_segment(std::uint64_t nbytes, unsigned blocks) {
  if (option("size")) return;
  constexpr std::uint64_t slack = std::uint64_t(1) << 20;
  if (nbytes > std::numeric_limits<std::uint64_t>::max() / blocks - slack)
    throw Failure("so many bytes cannot be addressed");
  options.emplace_back("shm.size", std::to_string(blocks * (nbytes + slack)));
}

/* ---- percent signs ---- */

std::string encoded(std::string const &path) {
  std::string text;
  for (char const c : path)
    text += c == '%' ? "%25" : c == '?' ? "%3F" : c == '&' ? "%26" : std::string(1, c);
  return text;
}

std::string decoded(std::string const &text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    std::string const digits = text.substr(i + 1, 2);
    auto const is_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    if (digits.size() != 2 || !std::all_of(digits.begin(), digits.end(), is_digit) ||
        digits == "00")
      throw Failure("% begins a byte of two hexadecimal digits, in " + text, misuse);
    path += static_cast<char>(std::stoi(digits, nullptr, 16));
    i += 2;
  }
  return path;
}

} // namespace umem::tool
