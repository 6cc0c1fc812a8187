/* debuggers.cpp - what debuggers.py looks at in GDB, where stop() is called. */
#include <umem.hpp>

void stop();
void stop() {}

int main() {
  umem::Host host;
  umem::File file = umem::File::scratch();
  umem::Context empty;
  umem::Context failed = umem::File::scratch();
  umem_set_status(failed.c_context(), umemValueError, "an example");

  umem::Array<int, 2> array({2, 3}, host, {{1, 0}});
  int next = 1;
  for (int &x : umem::elements(array.host(umem::discard))) x = next++;
  auto on_file = umem::Array<double, 1>::full({3}, 0.5, file);
  auto mirrored = umem::Array<double, 1>::full({3}, 0.5, file);
  mirrored.sync_to_host();
  umem::Array<int, 2> columns({2, 2}, umem::column_major, host, {{0, 1}});
  int other = 1;
  for (int &x : umem::elements(columns.host(umem::discard))) x = other++;
  umem::Array<int, 1> none;

  auto guard = array.host(umem::write);
  umem::View<int, 2> view = *guard;
  umem::View<int, 2> turned = guard->transpose();
  umem::View<int const, 1> row = guard->select(0, 1);
  umem::View<int, 3> cube = guard->reshape(umem::Extents<3>{1, 2, 3});
  umem::View<int, 0> element(&view(1, 1), {});
  umem::View<double, 1> nowhere(reinterpret_cast<double *>(16), {4});
  umem::View<int, 1> no_elements;
  umem::Extents<1> extents{5};
  umem::Extents<4> four{1, 2, 3, 4};
  stop();
  return row.size() + cube.size() + turned.size() + element.size() + nowhere.size() +
                     no_elements.size() + extents[0] + four[0] + none.size() +
                     static_cast<umem::index_t>(empty.alignment()) >
                 0
             ? 0
             : 1;
}
