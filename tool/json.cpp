#include "json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace umem::tool {

using Tree = nlohmann::ordered_json;

/* This value for nlohmann-json, which writes it. */
struct JsonTree {
  static Tree of(Json const &json) {
    if (json.kind_ == Json::Kind::scalar)
      return std::visit([](auto const &value) { return Tree(value); }, json.value_);
    Tree tree = json.kind_ == Json::Kind::array ? Tree::array() : Tree::object();
    for (std::size_t i = 0; i < json.items_.size(); i++)
      if (json.kind_ == Json::Kind::array)
        tree.push_back(of(json.items_[i]));
      else
        tree[json.keys_[i]] = of(json.items_[i]);
    return tree;
  }
};

Json Json::array(std::vector<double> const &numbers) {
  Json json;
  json.kind_ = Kind::array;
  json.items_.assign(numbers.begin(), numbers.end());
  return json;
}

void Json::push_back(Json item) { items_.push_back(std::move(item)); }

std::size_t Json::find(std::string const &key) const {
  return static_cast<std::size_t>(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
}

Json &Json::operator[](std::string const &key) {
  kind_ = Kind::object;
  std::size_t const at = find(key);
  if (at < items_.size()) return items_[at];
  keys_.push_back(key);
  return items_.emplace_back();
}

Json const &Json::operator[](std::string const &key) const {
  std::size_t const at = find(key);
  if (at == items_.size()) throw std::out_of_range("JSON without the member " + key);
  return items_[at];
}

bool Json::contains(std::string const &key) const { return find(key) < keys_.size(); }

std::uint64_t Json::number() const {
  if (auto const *const number = std::get_if<std::int64_t>(&value_))
    return static_cast<std::uint64_t>(*number);
  return std::get<std::uint64_t>(value_);
}

std::string Json::dump() const {
  return JsonTree::of(*this).dump(2, ' ', false, Tree::error_handler_t::replace);
}

} // namespace umem::tool
