/* micro_strided.cpp - the three faces of a three-dimensional array, copied to an array without
 * gaps, between all ordered pairs of contexts. */
#include "micro.h"

#include "array.h"

#include <array>
#include <cstring>

namespace bench {
namespace {

constexpr std::size_t edge = 128; /* items */
constexpr std::size_t item = sizeof(double);
constexpr std::size_t volume = edge * edge * edge * item, area = edge * edge * item;

/* A face normal to one axis: the strides, in bytes, of the two axes that are left. */
struct Face {
  char const *name;
  std::array<std::ptrdiff_t, 2> strides;
};

constexpr std::ptrdiff_t stride_z = item, stride_y = edge * stride_z, stride_x = edge * stride_y;
constexpr Face faces[] = {{"contiguous", {stride_y, stride_z}},
                          {"rows", {stride_x, stride_z}},
                          {"single-items", {stride_x, stride_y}}};

void run_umem(benchmark::State &state, Backend const &from, Backend const &to, Face const &face) {
  Place source(from), destination(to);
  Block src(source.context(), volume), dst(destination.context(), area);
  std::size_t const extents[] = {edge, edge};
  umemLayout layout = {sizeof layout, item, 2, extents, face.strides.data(), nullptr};
  auto copy = [&] {
    check(umem_copy_strided(source.context(), src, destination.context(), dst, &layout));
    source.finish(), destination.finish();
  };
  copy();
  for (auto _ : state) copy();
}

/* By hand: loops over the runs of the face; what comes from a file is read run by run, and what
 * goes to a file is packed first. */
void copy_by_hand(Array const &from, Kind from_kind, Array const &to, Kind to_kind,
                  Face const &face, char *packed) {
  bool rows = face.strides[1] == stride_z;
  std::size_t run = rows ? edge * item : item, runs = rows ? 1 : edge;
  char *out = to_kind == Kind::file ? packed : to.bytes();
  for (std::size_t i = 0; i < edge; i++) {
    for (std::size_t j = 0; j < runs; j++) {
      auto at = static_cast<std::ptrdiff_t>(i) * face.strides[0] +
                static_cast<std::ptrdiff_t>(j) * face.strides[1];
      if (from_kind == Kind::file)
        by_hand::read(from.fd(), out, run, at);
      else
        std::memcpy(out, from.bytes() + at, run);
      out += run;
    }
  }
  if (to_kind == Kind::file) by_hand::write(to.fd(), packed, area, 0);
}

void run_by_hand(benchmark::State &state, Kind from, Kind to, Face const &face) {
  Array source(from, volume), destination(to, area);
  by_hand::Memory packed = by_hand::allocate(area);
  for (auto _ : state) {
    copy_by_hand(source, from, destination, to, face, packed.get());
    benchmark::ClobberMemory();
  }
}

std::string name_for(char const *from, char const *to, char const *method, Face const &face) {
  return std::string("strided-") + face.name + "/" + from + "/" + to + "/" + method;
}

} // namespace

void register_strided() {
  for (Face const &face : faces) {
    for (MeasuredRow const &from : measured_rows())
      for (MeasuredRow const &to : measured_rows())
        add(name_for(from.backend->name, to.backend->name, "umem", face),
            [&](benchmark::State &state) { run_umem(state, *from.backend, *to.backend, face); });
    for (Kind from : kinds)
      for (Kind to : kinds)
        add(name_for(name_of(from), name_of(to), "loops", face),
            [&face, from, to](benchmark::State &state) { run_by_hand(state, from, to, face); });
  }
}

} // namespace bench
