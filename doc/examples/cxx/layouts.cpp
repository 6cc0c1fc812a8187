/* Views whose type knows strides. */
#include <cstdio>
#include <umem.hpp>

/* [functions] */
/* Any array whose last index runs through neighbours, with ghost cells or without. */
static void scale(umem::View<double, 2, umem::UnitStride> const &u, double factor) {
  for (umem::index_t i = 0; i < u.extent(0); i++)
    for (umem::index_t j = 0; j < u.extent(1); j++) u(i, j) *= factor;
}

/* Three colours a pixel. */
using Picture = umem::View<float, 3, umem::FixedExtents<umem::dynamic, umem::dynamic, 3>>;

static void brighten(Picture const &rgb) {
  for (umem::index_t i = 0; i < rgb.extent(0); i++)
    for (umem::index_t j = 0; j < rgb.extent(1); j++)
      for (umem::index_t c = 0; c < rgb.extent(2); c++) rgb(i, j, c) += 1;
}
/* [/functions] */

int main() {
  /* [calls] */
  auto u = umem::Array<double, 2>::full({3, 4}, 1.5);
  auto picture = umem::Array<float, 3>::zeros({480, 640, 3});
  scale(u.host(umem::write), 2);
  brighten(picture.host(umem::write));

  auto const rows = u.host<umem::RowMajor>(umem::read);
  auto const row = rows.part(1, umem::full_extent); /* a View<double const, 1, RowMajor> */
  std::printf("%g %g %td\n", row(2), picture.get(10, 20, 2), row.stride(0));
  /* [/calls] */

  /* [refused] */
  auto const columns = umem::Array<double, 2>::full({3, 4}, 1.5, umem::column_major);
  try {
    umem::View<double const, 2, umem::UnitStride> const view = columns.host(umem::read);
    std::printf("%g\n", view(0, 0));
  } catch (umem::value_error const &error) {
    std::printf("%s\n", error.what());
  }
  /* [/refused] */
}
