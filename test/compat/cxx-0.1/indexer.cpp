/* Numbers for elements that do not follow each other in memory. */
#include <cstdio>
#include <vector>
#include <umem.hpp>

/* [flat] */
/* The elements in C order, whatever the strides. */
static std::vector<int> flat(umem::View<int const, 2> view) {
  std::vector<int> values(static_cast<std::size_t>(view.size()));
  umem::for_indexer(view, [&](auto indexer) {
    using Number = typename decltype(indexer)::integer; /* 32 bits if this is enough */
    for (Number n = 0; n < indexer.size(); ++n)
      values[static_cast<std::size_t>(n)] = view(indexer.indices(n));
  });
  return values;
}
/* [/flat] */

int main() {
  /* [call] */
  int const memory[] = {0, 1, 2, 3, 4, 5};
  umem::View<int const, 2> view(memory, {2, 3});
  for (int value : flat(view.transpose())) std::printf("%d ", value);

  umem::Indexer<2> indexer(view.extents);
  std::printf("\n%d\n", static_cast<int>(indexer.offset(1, 2)));
  /* [/call] */
}
