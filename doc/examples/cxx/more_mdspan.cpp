/* An accessor of mdspan over an array of umem, if the compiler has mdspan. */
#include <cstdio>
#include <umem.hpp>
#include <umem/mdspan.hpp>

#if UMEM_HAS_MDSPAN
/* [mdspan] */
/* Elements are numbers of another unit when they are read. */
struct Scaled {
  using offset_policy = Scaled;
  using element_type = double const;
  using reference = double;
  using data_handle_type = double const *;
  double factor;
  constexpr reference access(data_handle_type first, std::size_t i) const {
    return factor * first[i];
  }
  constexpr data_handle_type offset(data_handle_type first, std::size_t i) const {
    return first + i;
  }
};

/* Takes mdspans of every library, layout and accessor; in C++23 an element is span[i, j]. */
template <class Span> double sum_of_column(Span const &span, umem::index_t j) {
  double sum = 0;
  for (umem::index_t i = 0; i < span.extent(0); i++)
    sum += span.accessor().access(span.data_handle(), std::size_t(span.mapping()(i, j)));
  return sum;
}

template <class T, class Extents, class Layout, class Accessor,
          template <class, class, class, class> class Mdspan>
auto scaled(Mdspan<T, Extents, Layout, Accessor> const &span, double factor) {
  return Mdspan<double const, Extents, Layout, Scaled>(span.data_handle(), span.mapping(),
                                                       Scaled{factor});
}
/* [/mdspan] */
#endif

int main() {
  auto metres = umem::Array<double, 2>::full({3, 4}, 2.5);
#if UMEM_HAS_MDSPAN
  /* [call] */
  auto guard = metres.host(umem::read);
  double const millimetres = sum_of_column(scaled(umem::to_mdspan(*guard), 1000), 2);
  /* [/call] */
#else
  double const millimetres = 7500;
#endif
  std::printf("%g\n", millimetres);
}
