/* npy_map.cpp - .npy files that are mapped in place. */
#include "arrays.hpp"
#include "npy_files.hpp"

#include <umem/npy.hpp>
#include <umem/npy_c_array.hpp>

namespace {

using umem::load_npy;
using umem::save_npy;

struct NpyMap : testing::Test {
  TempFile file;
};

TEST_F(NpyMap, is_in_place) {
  for (int text : {54, 55, 118}) { /* the data begin at a multiple of 64, and at one of 1 */
    std::string words = dictionary("<i2", "False", "(2, 3)");
    words.insert(words.size() - 1, static_cast<std::size_t>(text), ' ');
    std::string const bytes = file_of(1, words, numbers<std::int16_t>(6));
    write_bytes(file.path, bytes);
    std::size_t const offset = bytes.size() - 12;
    if (offset % 2 != 0) {
      EXPECT_THROWS((umem::map_npy<std::int16_t const, 2>(file.path)), umem::value_error,
                    ("\"" + std::string(file.path) + "\": its elements begin at byte " +
                     std::to_string(offset) + ", which is no multiple of 2: load the file instead")
                        .c_str());
      continue;
    }
    auto const array = umem::map_npy<std::int16_t const, 2>(file.path);
    EXPECT_EQ(array.get(1, 2), 6);
    auto const guard = array.host(umem::read);
    umem::MMap const mapping = umem::MMap::of(array.context());
    EXPECT_EQ(mapping.offset(reinterpret_cast<umem::address>(guard->data)), offset)
        << "these are the bytes of the file";
    EXPECT_THROW(umem::copy(numbers<std::int16_t>(1).data(), array.context(), array.adr(), 2),
                 umem::error);
    EXPECT_EQ(bytes_of(file.path), bytes);
  }
  umem_thread_clear();
}

TEST_F(NpyMap, is_in_fortran_order) {
  write_bytes(file.path, file_of(1, dictionary("|u1", "True", "(2, 3)"), "\1\2\3\4\5\6"));
  auto const array = umem::map_npy<unsigned char const, 2>(file.path);
  EXPECT_EQ(array.order(), umem::column_major);
  EXPECT_EQ(array.get(1, 0), 2);
  EXPECT_EQ(array.get(0, 2), 5);
  Array<unsigned char, 2> columns({2, 3}, umem::column_major);
  umem::load_npy_into(file.path, columns);
  EXPECT_EQ(memory_of(columns), (std::vector<unsigned char>{1, 2, 3, 4, 5, 6}));
  std::string const before = bytes_of(file.path);
  save_npy(file.path, columns);
  EXPECT_EQ(bytes_of(file.path).substr(128), before.substr(before.size() - 6));
}

TEST_F(NpyMap, is_written_to) {
  std::string bytes =
      file_of(1, dictionary("<i2", "False", "(3,)") + " ", numbers<std::int16_t>(3));
  if (bytes.size() % 2 != 0)
    bytes = file_of(1, dictionary("<i2", "False", "(3,)"), numbers<std::int16_t>(3));
  write_bytes(file.path, bytes);
  {
    auto array = umem::map_npy<std::int16_t, 1>(file.path);
    array.host(umem::write)[1] = 77;
    umem::Array<std::int16_t, 1> one({1});
    one.set(5, 0);
    umem::copy(one.part(), array.part().slice(0, 2, 3));
    EXPECT_THROW((umem::map_npy<std::int16_t, 1>(file.path)), umem::io_error) << "it is in use";
    umem_thread_clear();
    array.flush();
  }
  EXPECT_EQ(bytes_of(file.path).size(), bytes.size()) << "the file does not grow";
  auto back = load_npy<std::int16_t, 1>(file.path);
  EXPECT_EQ(memory_of(back), (std::vector<std::int16_t>{1, 77, 5}));
}

template <class T, int N> std::string map_refusal(std::string const &bytes) {
  TempFile file;
  write_bytes(file.path, bytes);
  std::string const said = thrown_by([&] { umem::map_npy<T const, N>(file.path); });
  EXPECT_EQ(said, thrown_by([&] { umem::map_npy<T, N>(file.path); }));
  umem_thread_clear();
  EXPECT_EQ(bytes_of(file.path), bytes) << "nothing of it is written";
  return said.empty() ? "" : said.substr(said.find("\": ") + 3);
}

TEST_F(NpyMap, of_what_cannot_be_mapped_is_refused) {
  std::string const bytes = file_of(1, dictionary("|i1", "False", "(3,)"), "abc");
  EXPECT_EQ((map_refusal<signed char, 1>(bytes)), "");
  EXPECT_EQ((map_refusal<float, 1>(bytes)), "its type is '|i1', that of the array '<f4'");
  EXPECT_EQ((map_refusal<signed char, 1>(bytes.substr(0, bytes.size() - 1))),
            "it is truncated: its header says 3 bytes of data, it holds 2");
  EXPECT_EQ((map_refusal<signed char, 1>(bytes.substr(0, 40))),
            "it is truncated: it ends inside of its header");
  EXPECT_EQ((map_refusal<signed char, 1>("no array")),
            "it is no .npy file: it does not start with \\x93NUMPY");
  EXPECT_EQ((map_refusal<signed char, 2>(file_of(1, dictionary("|i1", "True", "(2, 2)"), "abcd"))),
            "");
  EXPECT_EQ((map_refusal<signed char, 2>(file_of(1, dictionary("|i1", "True", "(1, 3)"), "abc"))),
            "");
  EXPECT_EQ((map_refusal<unsigned char, 1>(file_of(1, dictionary("|b1", "False", "(3,)"), "abc"))),
            "");
}

TEST_F(NpyMap, is_of_any_type_and_rank) {
  std::string const bytes =
      file_of(1, dictionary("<i2", "True", "(3, 1, 2)") + " ", numbers<std::int16_t>(6));
  for (std::string const &each :
       {bytes, file_of(1, dictionary("<i2", "True", "(3, 1, 2)"), numbers<std::int16_t>(6))}) {
    write_bytes(file.path, each);
    if (each.size() % 2 != 0) {
      EXPECT_THROW(static_cast<void>(umem::map_npy(file.path, umem::read)), umem::value_error);
      continue;
    }
    umem::CArray const mapped = umem::map_npy(file.path, umem::read);
    auto const view = umem::view<std::int16_t const, 3>(mapped);
    EXPECT_EQ(view(2, 0, 1), 6);
    EXPECT_EQ(view(1, 0, 0), 2);
    EXPECT_THROW((umem::view<std::int16_t, 3>(mapped)), umem::not_supported_error);
  }
  write_bytes(file.path, file_of(1, dictionary("|u1", "False", "()"), "a"));
  {
    umem::CArray const mapped = umem::map_npy(file.path, umem::write);
    umem::view<unsigned char, 0>(mapped)() = 'b';
  }
  EXPECT_EQ(bytes_of(file.path).back(), 'b');
}

TEST_F(NpyMap, of_types_that_the_arrays_of_c_lack_is_refused_as_loading_is) {
  auto const refusal = [&](char const *type) {
    write_bytes(file.path, file_of(1, dictionary(type, "False", "(3,)"), std::string(48, 'a')));
    auto const message = [](auto const &f) { return thrown_by<umem::type_error>(f); };
    auto const loaded = message([&] { static_cast<void>(umem::load_npy(file.path)); });
    auto const mapped = message([&] { static_cast<void>(umem::map_npy(file.path, umem::read)); });
    EXPECT_TRUE(loaded == mapped || type[0] == '>'); /* which is loaded */
    return mapped.substr(mapped.find("\": ") + 3);
  };
  EXPECT_EQ(refusal(">i4"), "its type '>i4' is big endian");
  EXPECT_EQ(refusal("|O"), "umem has no elements of its type '|O'");
  EXPECT_EQ(refusal("<f16"), "its type is '<f16', which umemArray does not have");
  EXPECT_EQ(refusal("<U3"), "umem has no elements of its type '<U3'");
  std::int64_t const shape = 2;
  umemStatusType status = umemOK;
  umem::Host host;
  umem::CArray const brain(
      umemArray_create(host.c_context(), umemBfloat16, 1, &shape, nullptr, &status));
  EXPECT_THROWS(umem::save_npy(file.path, brain), umem::type_error,
                ".npy files have no elements of type bfloat16");
  EXPECT_THROW(umem::save_npy(file.path, umem::CArray()), umem::value_error);
  umem_thread_clear();
}

} // namespace
