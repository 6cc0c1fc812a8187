/* json.hpp - walks through JSON text without making a tree of it. */
#ifndef UMEM_FORMATS_JSON_HPP
#define UMEM_FORMATS_JSON_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace umem_formats {

/* What a text means, in its order. The contents of the outermost object have level 1. Functions
 * throw a Failure for what they do not expect. */
class JsonVisitor {
public:
  JsonVisitor() = default;
  JsonVisitor(JsonVisitor const &) = delete;
  JsonVisitor &operator=(JsonVisitor const &) = delete;
  virtual ~JsonVisitor() = default;

  virtual void begin(int level, bool object) = 0; /* contents of this level begin */
  virtual void end(int level) = 0;                /* and end */
  /* Returns whether the value of a key is wanted; one that is not is checked and left out. */
  virtual bool key(int level, std::string &key) = 0;
  virtual void text(int level, std::string &value) = 0;
  virtual void number(int level, std::uint64_t value) = 0;
  /* null, true, false, and numbers that are negative, have a fraction, or are too large. */
  virtual void other(int level, bool null) = 0;
};

/* Throws a Failure if text is no JSON in UTF-8, or deeper than 127 levels. */
void walk_json(std::string_view text, JsonVisitor &visitor);

/* A string of JSON, with its quotes. Throws a Failure if text is not UTF-8. */
std::string json_string(std::string_view text);

/* A text of any bytes for a message: in quotes, in printable ASCII, and cut if it is long. */
std::string quoted(std::string_view text);

} // namespace umem_formats

#endif
