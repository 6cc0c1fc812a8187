#include "sections.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

namespace bench {

std::size_t Section::count() const {
  return std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>());
}

umemLayout Section::layout() const {
  return {sizeof(umemLayout), item_size,  static_cast<int>(extents.size()),
          extents.data(),     src.data(), dst.data()};
}

namespace {

template <std::size_t Item> struct Bytes { char bytes[Item]; };

template <std::size_t Item>
void copy_row(char const *from, std::ptrdiff_t from_stride, char *to, std::ptrdiff_t to_stride,
              std::size_t n) {
  for (std::size_t i = 0; i < n; i++) {
    std::memcpy(to, from, Item);
    from += from_stride, to += to_stride;
  }
}

template <std::size_t Item>
void copy_dimension(Section const &section, std::size_t axis, char const *from, char *to) {
  if (axis + 1 == section.extents.size()) {
    copy_row<Item>(from, section.src[axis], to, section.dst[axis], section.extents[axis]);
    return;
  }
  for (std::size_t i = 0; i < section.extents[axis]; i++) {
    copy_dimension<Item>(section, axis + 1, from, to);
    from += section.src[axis], to += section.dst[axis];
  }
}

} // namespace

void Section::copy_by_hand(char const *from, char *to) const {
  bool whole_rows = src.back() == static_cast<std::ptrdiff_t>(item_size) &&
                    dst.back() == static_cast<std::ptrdiff_t>(item_size);
  if (whole_rows) {
    std::size_t row = extents.back() * item_size, rows = count() / extents.back();
    Section outer = *this;
    outer.extents.pop_back(), outer.src.pop_back(), outer.dst.pop_back();
    for (std::size_t i = 0; i < rows; i++) {
      std::ptrdiff_t src_at = 0, dst_at = 0;
      std::size_t rest = i;
      for (std::size_t k = outer.extents.size(); k-- > 0; rest /= outer.extents[k]) {
        auto index = static_cast<std::ptrdiff_t>(rest % outer.extents[k]);
        src_at += index * outer.src[k], dst_at += index * outer.dst[k];
      }
      std::memcpy(to + dst_at, from + src_at, row);
    }
  } else if (item_size == 4) {
    copy_dimension<4>(*this, 0, from, to);
  } else {
    copy_dimension<8>(*this, 0, from, to);
  }
}

std::vector<Section> all_sections(std::size_t edge) {
  using Strides = std::vector<std::ptrdiff_t>;
  constexpr std::ptrdiff_t d = 8, f = 4; /* bytes of a double and of a float */
  auto root = [edge](double rank) {
    auto value = std::pow(static_cast<double>(edge), 2 / rank) + 1e-9;
    return static_cast<std::ptrdiff_t>(value);
  };
  auto size = [](std::ptrdiff_t value) { return static_cast<std::size_t>(value); };
  std::ptrdiff_t n = static_cast<std::ptrdiff_t>(edge), m = root(3), q = root(4);
  std::ptrdiff_t z = d, y = m * z, x = m * y; /* of m^3 doubles */
  std::size_t all2 = size(n * n * d), all3 = size(m * x), all4 = size(q * q * q * q * d);
  std::size_t area = size(m * m * d), M = size(m), N = size(n), Q = size(q);
  Strides const dense2 = {m * d, d}, dense3 = {x, y, z};
  Strides const dense4 = {q * q * q * d, q * q * d, q * d, d};
  std::string square = " of " + std::to_string(n) + "^2", cube = " of " + std::to_string(m) + "^3",
              fourth = " of " + std::to_string(q) + "^4";
  std::ptrdiff_t inside = m - 2, block = std::min<std::ptrdiff_t>(n / 2, 512);
  return {
      {"face x" + cube, 8, {M, M}, {y, z}, dense2, all3, area},
      {"face y" + cube, 8, {M, M}, {x, z}, dense2, all3, area},
      {"face z" + cube, 8, {M, M}, {x, y}, dense2, all3, area},
      {"to face y" + cube, 8, {M, M}, dense2, {x, z}, area, all3},
      {"to face z" + cube, 8, {M, M}, dense2, {x, y}, area, all3},
      {"face z to face z" + cube, 8, {M, M}, {x, y}, {x, y}, all3, all3},
      {"column" + square, 8, {N}, {n * d}, {d}, all2, N * 8},
      {"column to column" + square, 8, {N}, {n * d}, {n * d}, all2, all2},
      {"every 2nd" + square, 8, {N * N / 2}, {2 * d}, {d}, all2, all2 / 2},
      {"to every 2nd" + square, 8, {N * N / 2}, {d}, {2 * d}, all2 / 2, all2},
      {"every 16th" + square, 8, {N * N / 16}, {16 * d}, {d}, all2, all2 / 16},
      {"reversed" + square, 8, {N * N}, {-d}, {d}, all2, all2, all2 - 8, 0},
      {"rows reversed" + square,
       8,
       {N, N},
       {-n * d, d},
       {n * d, d},
       all2,
       all2,
       size((n - 1) * n * d),
       0},
      {"transposed" + square, 8, {N, N}, {d, n * d}, {n * d, d}, all2, all2},
      {"transposed floats" + square, 4, {N, N}, {f, n * f}, {n * f, f}, all2 / 2, all2 / 2},
      {"permuted 2 1 0" + cube, 8, {M, M, M}, {z, y, x}, dense3, all3, all3},
      {"permuted 1 0 2" + cube, 8, {M, M, M}, {y, x, z}, dense3, all3, all3},
      {"permuted 0 2 1" + cube, 8, {M, M, M}, {x, z, y}, dense3, all3, all3},
      {"permuted 3 2 1 0" + fourth,
       8,
       {Q, Q, Q, Q},
       {d, q * d, q * q * d, q * q * q * d},
       dense4,
       all4,
       all4},
      {"inside" + cube,
       8,
       {size(inside), size(inside), size(inside)},
       dense3,
       dense3,
       all3,
       all3,
       size(x + y + z),
       size(x + y + z)},
      {"block" + square,
       8,
       {size(block), size(block)},
       {n * d, d},
       {block * d, d},
       all2,
       size(block * block * d),
       size(n * d * 7 + 40),
       0},
      {"three fields of structs" + square,
       4,
       {3, N * N / 3},
       {f, 3 * f},
       {n * n / 3 * f, f},
       all2 / 2,
       all2 / 2},
  };
}

} // namespace bench
