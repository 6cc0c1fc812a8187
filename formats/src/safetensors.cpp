/* safetensors.cpp - the format of the library safetensors: eight bytes with the length of a header,
 * the header, and the elements without gaps, all in little endian.
 *
 *     {"__metadata__": {TEXT: TEXT, ...},
 *      NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Source: github.com/huggingface/safetensors, README.md and version 0.8.0 of the library. */
#include "archive.hpp"
#include "json.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "umem-formats reads and writes the bytes of numbers as they are, for little endian machines"
#endif

namespace umem_formats {
namespace {

/* ---- types ---- */

struct Type {
  std::string_view name;
  umemElementType type;
};

constexpr Type one(char const *name, unsigned code, unsigned bits) {
  return {name, UMEM_ELEMENT(code, bits, 1)};
}

/* In the order of the library, which writes those at the end first. What has less than 8 bits is
 * packed: the type has so many lanes that they fill bytes. */
constexpr Type types[] = {
    one("BOOL", umemCodeBool, 8),
    {"F4", UMEM_ELEMENT(umemCodeFloat4_e2m1fn, 4, 2)},
    {"F6_E2M3", UMEM_ELEMENT(umemCodeFloat6_e2m3fn, 6, 4)},
    {"F6_E3M2", UMEM_ELEMENT(umemCodeFloat6_e3m2fn, 6, 4)},
    one("U8", umemCodeUInt, 8),
    one("I8", umemCodeInt, 8),
    one("F8_E5M2", umemCodeFloat8_e5m2, 8),
    one("F8_E4M3", umemCodeFloat8_e4m3fn, 8),
    one("F8_E8M0", umemCodeFloat8_e8m0fnu, 8),
    one("F8_E4M3FNUZ", umemCodeFloat8_e4m3fnuz, 8),
    one("F8_E5M2FNUZ", umemCodeFloat8_e5m2fnuz, 8),
    one("I16", umemCodeInt, 16),
    one("U16", umemCodeUInt, 16),
    one("F16", umemCodeFloat, 16),
    one("BF16", umemCodeBfloat, 16),
    one("I32", umemCodeInt, 32),
    one("U32", umemCodeUInt, 32),
    one("F32", umemCodeFloat, 32),
    one("C64", umemCodeComplex, 64),
    one("F64", umemCodeFloat, 64),
    one("I64", umemCodeInt, 64),
    one("U64", umemCodeUInt, 64),
};

Type const &type_of(umemArray *array, std::string const &name) {
  umemElementType const held = umemArray_type(array);
  bool const has_rows = umem_element_lanes(held) == 1 || umemArray_rank(array) > 0;
  for (Type const &type : types)
    if (held == type.type && has_rows) return type;
  char text[64];
  umem_element_name(held, text, sizeof text);
  fail(umemTypeError, "%s: safetensors files have no %s%s", quoted(name).c_str(), text,
       has_rows ? "" : " without a dimension");
}

/* ---- headers ---- */

/* Arrays as the header describes them: until all are checked, their offsets count from the first
 * element of the file, nbytes is where they end, and shapes are those of the format. */
class HeaderVisitor final : public JsonVisitor {
public:
  HeaderVisitor(Source const &source, std::vector<Member> &members)
      : source_(source), members_(members) {}

  Metadata metadata;

  void begin(int level, bool object) override {
    if (level <= 2 ? !object : level > 3 || object || in_metadata_ || field_ == Field::type)
      unexpected();
  }

  void end(int level) override {
    if (level != 2 || in_metadata_) return;
    if (!array_->type) lacks("dtype");
    if (!has_shape_) lacks("shape");
    if (offset_count_ != 2) lacks("two data_offsets");
  }

  bool key(int level, std::string &key) override {
    if (level == 1) {
      in_metadata_ = key == "__metadata__";
      if (!in_metadata_) return begin_array(key), true;
      if (has_metadata_) refuse("its header has \"__metadata__\" twice");
      return has_metadata_ = true;
    }
    if (in_metadata_) {
      text_ = metadata.try_emplace(std::move(key));
      if (!text_.second) refuse("its metadata have %s twice", quoted(text_.first->first).c_str());
      return true;
    }
    std::string_view const field = key; /* compares lengths first */
    if (field == "dtype") return once(Field::type, array_->type != 0);
    if (field == "shape") return once(Field::shape, std::exchange(has_shape_, true));
    return field == "data_offsets" && once(Field::offsets, std::exchange(has_offsets_, true));
  }

  void text(int level, std::string &value) override {
    if (level == 2 && in_metadata_)
      text_.first->second.swap(value);
    else if (level == 2 && field_ == Field::type)
      array_->type = type_named(value);
    else
      unexpected();
  }

  void number(int level, std::uint64_t value) override {
    if (level != 3) unexpected();
    if (field_ == Field::shape) return add_extent(value);
    if (offset_count_ == 2) lacks("two data_offsets");
    (offset_count_++ ? array_->nbytes : array_->offset) = value;
  }

  void other(int level, bool null) override {
    if (level != 1 || !in_metadata_ || !null) unexpected();
  }

private:
  enum class Field { type, shape, offsets };

  void begin_array(std::string &name) {
    array_ = &members_.emplace_back();
    array_->name.swap(name);
    array_->source = &source_;
    has_shape_ = has_offsets_ = false;
    offset_count_ = 0;
  }

  umemElementType type_named(std::string_view name) {
    if (name == type_->name) return type_->type; /* most are as the one before */
    for (Type const &type : types)
      if (name == type.name) return (type_ = &type)->type;
    refuse("%s has type %s, which the format does not have", shown().c_str(), quoted(name).c_str());
  }

  void add_extent(std::uint64_t extent) {
    Shape &shape = array_->shape;
    if (shape.size() == UMEM_MAX_RANK)
      refuse("%s has more than %d dimensions", shown().c_str(), UMEM_MAX_RANK);
    if (extent > INT64_MAX) refuse("%s has an extent above 2^63 - 1", shown().c_str());
    if (shape.empty()) shape.reserve(4); /* most have less dimensions */
    shape.push_back(static_cast<std::int64_t>(extent));
  }

  bool once(Field field, bool before) {
    field_ = field;
    if (before) refuse("%s is described twice in one part", shown().c_str());
    return true;
  }

  std::string shown() const { return quoted(array_->name); }
  [[noreturn]] void lacks(char const *what) const { refuse("%s has no %s", shown().c_str(), what); }
  [[noreturn]] void unexpected() const {
    if (in_metadata_) refuse("its metadata are not texts");
    if (!array_) refuse("its header is no object of JSON");
    refuse("%s is described by a value that the format does not have", shown().c_str());
  }

  Source const &source_;
  std::vector<Member> &members_;
  Member *array_ = nullptr; /* the last one */
  bool has_shape_ = false, has_offsets_ = false;
  int offset_count_ = 0;
  Type const *type_ = types;
  bool in_metadata_ = false, has_metadata_ = false;
  Field field_ = Field::type;
  std::pair<Metadata::iterator, bool> text_;
};

/* The bytes of an array with this type and shape. */
std::uint64_t count_bytes(Member const &array) {
  std::uint64_t bits = 1;
  bool overflows = false;
  for (std::int64_t extent : array.shape)
    overflows |= __builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits);
  overflows |= __builtin_mul_overflow(bits, umem_element_bits(array.type), &bits);
  if (overflows) refuse("%s has more bytes than 64 bits can count", quoted(array.name).c_str());
  if (bits % 8) refuse("the elements of %s do not fill bytes", quoted(array.name).c_str());
  return bits / 8;
}

/* Counts the last extent in elements of several lanes, if the type has them. */
void count_lanes(Member &array) {
  std::int64_t const lanes = umem_element_lanes(array.type);
  if (lanes == 1) return;
  if (array.shape.empty() || array.shape.back() % lanes)
    refuse("the rows of %s do not fill bytes", quoted(array.name).c_str());
  array.shape.back() /= lanes;
}

/* The length of the header. */
std::uint64_t header_length(Source const &source) {
  std::uint64_t length;
  if (source.size < sizeof length) refuse("it is too short for a file of safetensors or .npz");
  source.read(0, &length, sizeof length);
  if (length > most_header || length > source.size - sizeof length)
    refuse("it is no file of safetensors or .npz, or its header is cut off or has more than %llu "
           "bytes",
           static_cast<unsigned long long>(most_header));
  return length;
}

/* ---- indices ---- */

/* {"metadata": ..., "weight_map": {NAME: FILE, ...}} */
class IndexVisitor final : public JsonVisitor {
public:
  std::map<std::string, std::string> files;
  bool has_map = false;

  void begin(int level, bool object) override {
    if (!object || level > 2) unexpected();
  }
  void end(int) override {}
  bool key(int level, std::string &key) override {
    if (level == 1) {
      bool const wanted = key == "weight_map";
      if (wanted && std::exchange(has_map, true)) refuse("its index has \"weight_map\" twice");
      return wanted;
    }
    file_ = files.try_emplace(std::move(key));
    if (!file_.second) refuse("its index names %s twice", quoted(file_.first->first).c_str());
    return true;
  }
  void text(int level, std::string &value) override {
    if (level != 2) unexpected();
    if (value.empty() || value[0] == '.' || value.find('/') != value.npos ||
        value.find('\0') != value.npos)
      refuse("its index names the file %s, and only files in its folder are opened",
             quoted(value).c_str());
    file_.first->second.swap(value);
  }
  void number(int, std::uint64_t) override { unexpected(); }
  void other(int, bool) override { unexpected(); }

private:
  [[noreturn]] static void unexpected() { refuse("it is no index with a \"weight_map\""); }

  std::pair<std::map<std::string, std::string>::iterator, bool> file_;
};

/* ---- new headers ---- */

void append_shape(std::string &header, umemArray *array) {
  unsigned const lanes = umem_element_lanes(umemArray_type(array));
  int const rank = umemArray_rank(array);
  for (int k = 0; k < rank; k++)
    header +=
        (k ? "," : "") + std::to_string(umemArray_extent(array, k) * (k == rank - 1 ? lanes : 1));
}

} // namespace

void read_safetensors(Source const &source, std::vector<Member> &members, Metadata &metadata) {
  std::uint64_t const length = header_length(source), data = sizeof length + length;
  HeaderVisitor header(source, members);
  walk_json(source.read_text(sizeof length, length), header);
  auto const is_before = [](Member const &a, Member const &b) {
    return std::tie(a.offset, a.nbytes, a.name) < std::tie(b.offset, b.nbytes, b.name);
  };
  if (!std::is_sorted(members.begin(), members.end(), is_before)) /* most are */
    std::sort(members.begin(), members.end(), is_before);
  std::uint64_t end = 0;
  for (Member &array : members) {
    if (array.offset != end || array.nbytes < end)
      refuse("%s overlaps another array or leaves a hole", quoted(array.name).c_str());
    end = array.nbytes;
    array.nbytes -= array.offset;
    array.offset += data;
    if (array.nbytes != count_bytes(array))
      refuse("%s has other bytes than its type and shape", quoted(array.name).c_str());
    count_lanes(array);
  }
  if (end != source.size - data) refuse("its arrays do not end where it ends");
  metadata.swap(header.metadata);
}

std::map<std::string, std::string> read_index(Source const &index) {
  if (index.size > most_header) refuse("it is too long for an index");
  IndexVisitor visitor;
  walk_json(index.read_text(0, index.size), visitor);
  if (!visitor.has_map) refuse("it is no index with a \"weight_map\"");
  return std::move(visitor.files);
}

std::string make_safetensors(std::vector<NewMember> &members, Metadata const &metadata) {
  std::sort(members.begin(), members.end(), [](NewMember const &a, NewMember const &b) {
    Type const *const of_a = &type_of(a.array, a.name), *const of_b = &type_of(b.array, b.name);
    return of_a != of_b ? of_a > of_b : a.name < b.name;
  });
  std::string header(sizeof(std::uint64_t), '\0');
  header += '{';
  for (auto const &[key, text] : metadata)
    header += (header.size() > 9 ? "," : "\"__metadata__\":{") + json_string(key) + ":" +
              json_string(text);
  if (!metadata.empty()) header += '}';
  std::uint64_t end = 0;
  for (NewMember &member : members) {
    if (member.name == "__metadata__") refuse("\"__metadata__\" is no name of an array");
    member.offset = end;
    header += (header.size() > 9 ? "," : "") + json_string(member.name) + ":{\"dtype\":\"";
    header += type_of(member.array, member.name).name;
    header += "\",\"shape\":[";
    append_shape(header, member.array);
    header += "],\"data_offsets\":[" + std::to_string(end);
    if (__builtin_add_overflow(end, umemArray_nbytes(member.array), &end))
      refuse("the arrays have more bytes than 64 bits can count");
    header += "," + std::to_string(end) + "]}";
  }
  header += '}';
  header.append(-header.size() % 8, ' ');
  std::uint64_t const length = header.size() - sizeof length;
  if (length > most_header)
    refuse("the header would have %llu bytes, and at most %llu are allowed",
           static_cast<unsigned long long>(length), static_cast<unsigned long long>(most_header));
  header.replace(0, sizeof length, reinterpret_cast<char const *>(&length), sizeof length);
  for (NewMember &member : members) member.offset += header.size();
  return header;
}

} // namespace umem_formats
