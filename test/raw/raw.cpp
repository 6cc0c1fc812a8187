/* raw.cpp - raw.c in C++: prints the elements of an array over bytes of a file, or the name of
 * umem's status.
 *
 * Usage: raw_cpp file|mmap PATH OFFSET TYPE SHAPE STRIDES LEFT, numbers with commas; "-": none */
#include <umem.hpp>
#include <umem/c_array.hpp>
#include <umem/element.hpp>

#include <complex>
#include <cstdio>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers(std::string const &text) {
  Numbers found;
  std::istringstream words(text == "-" ? "" : text);
  for (std::string word; std::getline(words, word, ',');) found.push_back(std::stoll(word));
  return found;
}

struct Raw {
  umem::address adr;
  std::string type;
  Numbers shape, strides;

  std::int64_t size() const { return std::stoll(type.substr(2)); }

  void add(std::int64_t extent, std::int64_t stride) {
    shape.push_back(extent);
    strides.push_back(stride);
  }

  void in_c_order() {
    std::uint64_t step = static_cast<std::uint64_t>(size()); /* which may overflow */
    strides.resize(shape.size());
    for (std::size_t k = shape.size(); k-- > 0; step *= static_cast<std::uint64_t>(shape[k]))
      strides[k] = static_cast<std::int64_t>(step);
  }

  /* Numbers of the other order are rows of bytes from the last to the first. */
  void turn() {
    std::int64_t const number = type[1] == 'c' ? size() / 2 : size();
    adr += static_cast<umem::address>(number) - 1;
    if (type[1] == 'c') add(2, number);
    add(number, -1);
    type = "<u1";
  }

  umemElementType element() const {
    if (type == "<i2") return umem::element_type<std::int16_t>;
    if (type == "<i4") return umem::element_type<std::int32_t>;
    if (type == "<i8") return umem::element_type<std::int64_t>;
    if (type == "<c8") return umem::element_type<std::complex<float>>;
    return umem::element_type<std::uint8_t>;
  }
};

void print_bytes(void const *data, std::size_t count) {
  auto const *bytes = static_cast<unsigned char const *>(data);
  for (std::size_t i = 0; i < count; i++) std::printf("%02x", bytes[i]);
}

/* What has strides is one of C here, too. */
void print_strided(Raw const &raw, umem::Context const &place, Numbers const &left,
                   char const *path) {
  umem::Host const ram;
  auto const array = umem::CArray(umem::detail::status_call(
      umemArray_borrow, place.c_context(), raw.adr, raw.element(),
      static_cast<int>(raw.shape.size()), raw.shape.data(), raw.strides.data()));
  if (!left.empty() && truncate(path, left[0])) std::exit(2);
  auto const copy = umem::CArray(
      umem::detail::status_call(umemArray_copy, array.get(), ram.c_context(), umemOrderC));
  if (umemArray_nbytes(copy.get()) > 0)
    print_bytes(umem::detail::status_call(umemArray_host_pointer, copy.get(), false),
                umemArray_nbytes(copy.get()));
}

template <class Type, int Rank>
void print_run(Raw const &raw, umem::Context const &place, Numbers const &left, char const *path) {
  umem::Extents<Rank> extents;
  for (int k = 0; k < Rank; k++) extents.at[k] = raw.shape[static_cast<std::size_t>(k)];
  auto const array = umem::Array<Type const, Rank>::wrap_unowned(raw.adr, extents, place);
  if (!left.empty() && truncate(path, left[0])) std::exit(2);
  umem::Array<Type, Rank> const copy(array, umem::Host());
  if (copy.size() > 0)
    print_bytes(copy.host(umem::read)->data, sizeof(Type) * static_cast<std::size_t>(copy.size()));
}

void print(Raw &raw, bool is_run, umem::Context const &place, Numbers const &left,
           char const *path) {
  bool const one = raw.shape.size() == 1, two = raw.shape.size() == 2;
  if (is_run && raw.type == "<i4" && one) return print_run<std::int32_t, 1>(raw, place, left, path);
  if (is_run && raw.type == "<i4" && two) return print_run<std::int32_t, 2>(raw, place, left, path);
  if (is_run && raw.type == "<i8" && one) return print_run<std::int64_t, 1>(raw, place, left, path);
  if (is_run && raw.type == "<u1" && one) return print_run<std::uint8_t, 1>(raw, place, left, path);
  print_strided(raw, place, left, path);
}

} // namespace

int main(int count, char **words) {
  if (count != 8) return 2;
  std::string const kind = words[1];
  Raw raw = {std::stoull(words[3]), words[4], numbers(words[5]), numbers(words[6])};
  bool is_run = raw.strides.empty() && raw.type[0] == '<';
  if (raw.strides.empty()) raw.in_c_order();
  if (raw.type[0] == '>') raw.turn();
  try {
    umem::Context const place =
        kind == "mmap" ? umem::Context(umem::MMap(words[2], "r")) : umem::File(words[2], "r");
    if (kind == "mmap")
      raw.adr += umemMMap_address(reinterpret_cast<umemMMap *>(place.c_context()), 0);
    is_run = is_run && (kind == "file" || raw.adr % static_cast<umem::address>(raw.size()) ==
                                              0); /* an Array is aligned */
    print(raw, is_run, place, numbers(words[7]), words[2]);
    std::puts("");
  } catch (umem::error const &error) {
    std::puts(umem_get_status_name(error.status()));
  }
}
