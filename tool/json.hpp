/* json.hpp - what the commands print as JSON. nlohmann-json is in json.cpp alone: its headers take
 * seconds to compile. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace umem::tool {

/* A value of JSON. The members of an object keep the order in which they were added. */
class Json {
public:
  Json(std::nullptr_t = nullptr) {}
  Json(char const *text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Json(Number number) : value_(static_cast<Wide<Number>>(number)) {}

  /* An empty array, or one of numbers. */
  static Json array(std::vector<double> const &numbers = {});

  void push_back(Json item); /* to an array */

  /* Of an array: what is in it. */
  std::vector<Json>::const_iterator begin() const { return items_.begin(); }
  std::vector<Json>::const_iterator end() const { return items_.end(); }

  /* Of an object: the value of a member. The first adds one that is not there, as null, and makes
   * null an object; the second throws. */
  Json &operator[](std::string const &key);
  Json const &operator[](std::string const &key) const;
  bool contains(std::string const &key) const;

  bool is_null() const { return kind_ == Kind::scalar && value_.index() == 0; }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  bool is_true() const { return std::get<bool>(value_); }
  std::string const &text() const { return std::get<std::string>(value_); }
  std::uint64_t number() const; /* one that is not negative */

  /* As JSON: an object or an array in lines that are indented. Bytes that are no UTF-8 become
   * U+FFFD. */
  std::string dump() const;

private:
  template <typename Number>
  using Wide =
      std::conditional_t<std::is_same_v<Number, bool>, bool,
                         std::conditional_t<std::is_floating_point_v<Number>, double,
                                            std::conditional_t<std::is_signed_v<Number>,
                                                               std::int64_t, std::uint64_t>>>;
  enum class Kind { scalar, array, object };
  friend struct JsonTree;

  std::size_t find(std::string const &key) const; /* its number; keys_.size() if it is not there */

  Kind kind_ = Kind::scalar;
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string> value_;
  std::vector<std::string> keys_; /* of an object, one for each item */
  std::vector<Json> items_;
};

} // namespace umem::tool
