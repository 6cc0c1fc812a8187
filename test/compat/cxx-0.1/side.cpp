/* Which side of an array is current. */
#include <cstdio>
#include <umem.hpp>

static void print(umem::Array<double, 1> const &array) {
  char const *names[] = {"host", "device", "both"};
  std::printf("%s\n", names[static_cast<int>(array.current())]);
}

int main() {
  /* [sides] */
  auto u = umem::Array<double, 1>::zeros({4}, umem::File::scratch());
  print(u); /* device: the elements are only in the file */
  double first = u.host(umem::read)(0);
  print(u); /* both: they were copied to the CPU */
  u.host(umem::write)(0) = first + 1;
  print(u); /* host: the file has old elements */
  u.sync_to_device();
  print(u);    /* both */
  u.set(2, 1); /* writes to all current sides */
  print(u);    /* both */
  u.release_host();
  print(u); /* device: the CPU's copy is freed */
  /* [/sides] */
}
