/* json.cpp - JSON by the library nlohmann-json, which reads and writes the words. */
#include "json.hpp"
#include "archive.hpp"

#include <nlohmann/json.hpp>

namespace umem_formats {
namespace {

using Json = nlohmann::json;

constexpr int most_levels = 127;
constexpr std::size_t most_quoted = 100; /* bytes of a text in a message */

/* Hands the events of the library to a visitor, but for values that it does not want. */
class Events final : public nlohmann::json_sax<Json> {
public:
  explicit Events(JsonVisitor &visitor) : visitor_(visitor) {}

  bool null() override {
    return value([&] { visitor_.other(level_, true); });
  }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_float(number_float_t, string_t const &) override { return other(); }
  bool binary(binary_t &) override { return other(); }
  bool number_unsigned(number_unsigned_t number) override {
    return value([&] { visitor_.number(level_, number); });
  }
  bool string(string_t &text) override {
    return value([&] { visitor_.text(level_, text); });
  }
  bool key(string_t &key) override {
    if (skipped_ < 0 && !visitor_.key(level_, key)) skipped_ = level_;
    return true;
  }
  bool start_object(std::size_t) override { return begin(true); }
  bool start_array(std::size_t) override { return begin(false); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool parse_error(std::size_t, std::string const &,
                   nlohmann::detail::exception const &why) override {
    std::string_view text = why.what();
    std::size_t const kind = text.find("] "); /* before it: the library's number of the error */
    refuse("it has no JSON: %s", quoted(text.substr(kind == text.npos ? 0 : kind + 2)).c_str());
  }

private:
  template <class F> bool value(F const &visit) {
    if (skipped_ < 0)
      visit();
    else if (skipped_ == level_)
      skipped_ = -1;
    return true;
  }
  bool other() {
    return value([&] { visitor_.other(level_, false); });
  }
  bool begin(bool object) {
    if (++level_ > most_levels) refuse("its JSON has more than %d levels", most_levels);
    if (skipped_ < 0) visitor_.begin(level_, object);
    return true;
  }
  bool end() {
    if (skipped_ < 0) visitor_.end(level_);
    if (--level_ == skipped_) skipped_ = -1;
    return true;
  }

  JsonVisitor &visitor_;
  int level_ = 0;
  int skipped_ = -1; /* the level of a key whose value is left out */
};

} // namespace

void walk_json(std::string_view text, JsonVisitor &visitor) {
  /* The library skips a byte order mark, and takes a zero for the end. */
  if (text.substr(0, 3) == "\xEF\xBB\xBF") refuse("its JSON begins with a byte order mark");
  if (text.find('\0') != text.npos) refuse("its JSON has a zero byte");
  Events events(visitor);
  Json::sax_parse(text.begin(), text.end(), &events);
}

std::string json_string(std::string_view text) {
  try {
    return Json(text).dump();
  } catch (Json::type_error const &) {
    refuse("%s is not UTF-8", quoted(text).c_str());
  }
}

std::string quoted(std::string_view text) {
  bool const cut = text.size() > most_quoted;
  std::string result =
      Json(text.substr(0, most_quoted)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return cut ? result + "..." : result;
}

} // namespace umem_formats
