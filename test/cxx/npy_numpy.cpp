/* npy_numpy.cpp - loads each .npy file of the command line, and saves it as FILE.loaded, in big
 * endian as FILE.big, what is mapped, unless its name says that it is big endian, as FILE.mapped,
 * and of type double and rank 2 also as FILE.typed. For npy_numpy.py. */
#include <umem/npy_c_array.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int count, char **arguments) {
  try {
    for (int i = 1; i < count; i++) {
      std::string const path = arguments[i];
      umem::CArray const array = umem::load_npy(path);
      umem::save_npy(path + ".loaded", array);
      umem::save_npy(path + ".big", array, umemOrderBig);
      if (path.find("-big") != path.npos) continue;
      umem::save_npy(path + ".mapped", umem::map_npy(path, umem::read));
      if (umemArray_type(array.get()) == umemFloat64 && umemArray_rank(array.get()) == 2)
        umem::save_npy(path + ".typed", umem::map_npy<double const, 2>(path));
    }
  } catch (std::exception const &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
