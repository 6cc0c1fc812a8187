/* npy_folder.hpp - what the tests of save_npy share: a folder of their own with one file in it. */
#pragma once

#include "npy_files.hpp"
#include "../temporary.h"

#include <umem/npy.hpp>

#include <set>

/* Its name, in $TMPDIR or /tmp; removed with the files in it, which are no folders. */
class Folder {
public:
  explicit Folder(std::string const &parent = "") : path_(parent) {
    char path[512];
    temporary_name_in(parent.empty() ? temporary_parent() : parent.c_str(), path, sizeof path);
    path_ = path;
    if (mkdir(path, 0700) != 0) throw std::runtime_error("no folder for the test: " + path_);
  }
  Folder(Folder const &) = delete;
  Folder &operator=(Folder const &) = delete;
  ~Folder() {
    chmod(path_.c_str(), 0700);
    for (std::string const &name : names()) unlink((path_ + "/" + name).c_str());
    rmdir(path_.c_str());
  }

  std::string const &path() const { return path_; }
  std::string operator/(char const *name) const { return path_ + "/" + name; }

  std::set<std::string> names() const {
    std::set<std::string> found;
    DIR *folder = opendir(path_.c_str());
    if (!folder) return found;
    while (dirent const *entry = readdir(folder))
      if (std::string(entry->d_name) != "." && std::string(entry->d_name) != "..")
        found.insert(entry->d_name);
    closedir(folder);
    return found;
  }

private:
  std::string path_;
};

using Names = std::set<std::string>;

/* An array whose elements are all this number. */
inline umem::Array<double, 1> full_of(double value, umem::index_t size = 1000) {
  return umem::Array<double, 1>::full({size}, value);
}

/* The number that all elements of a file are; throws what load_npy throws. */
inline double value_in(std::string const &path, umem::index_t size = 1000) {
  auto array = umem::load_npy<double, 1>(path);
  if (array.extent(0) != size) throw std::runtime_error("the array has another size");
  auto guard = array.host(umem::read);
  double const *elements = guard->data, value = elements[0];
  for (umem::index_t i = 0; i < size; i++)
    if (elements[i] != value) throw std::runtime_error("the array is a mixture");
  return value;
}
