/* npy.cpp - .npy files: written and read on every context, and files that are not what they
 * seem. */
#include "arrays.hpp"
#include "npy_files.hpp"

#include <umem/npy.hpp>
#include <umem/npy_c_array.hpp>

namespace {

using umem::load_npy;
using umem::save_npy;

/* ---- there and back ---- */

struct Npy : testing::Test {
  TempFile file;
};
struct NpyTest : EachPlace {
  TempFile file;
};
FOR_EACH_PLACE(NpyTest);

TEST_P(NpyTest, comes_back_as_it_was) {
  for_each_type([&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (!std::is_same_v<T, Item>)
      for_each_rank([&](auto rank) {
        constexpr int N = rank.value;
        umem::ArrayOptions<N> ghosts{first_of<N>(1, 0, 2, 1, 0)};
        Array<T, N> array(first_of<N>(2, 3, 4, 1, 2), place, ghosts);
        number(array);
        save_npy(file.path, array);
        auto back = load_npy<T, N>(file.path, place, ghosts);
        EXPECT_EQ(back.context(), place);
        EXPECT_EQ(back.ghosts(), ghosts.ghosts);
        ASSERT_EQ(back.extents(), array.extents());
        for_each_indices({}, array.extents(),
                         [&](auto const &at) { EXPECT_EQ(back.get(at), array.get(at)); });
      });
  });
}

TEST_P(NpyTest, comes_back_from_big_endian_bytes) {
  for_each_type([&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (!std::is_same_v<T, Item>) {
      Array<T, 2> array({3, 4}, place), whole({6, 4}, place);
      number(array);
      for (bool turned : {false, true}) { /* the second one in Fortran order */
        auto const part = turned ? array.part().transpose() : array.part();
        save_npy(file.path, part, umemOrderBig);
        EXPECT_EQ(bytes_of(file.path).find("'>") == std::string::npos, sizeof(T) == 1);
        auto const back = load_npy<T, 2>(file.path, place);
        umem::load_npy_into(file.path, turned ? whole.part().slice(0, 0, 6, 2).transpose()
                                              : whole.part().slice(0, 1, 6, 2));
        for_each_indices({}, array.extents(), [&](auto const &at) {
          EXPECT_EQ(turned ? back.get(at[1], at[0]) : back.get(at), array.get(at));
          EXPECT_EQ(whole.get(2 * at[0] + !turned, at[1]), array.get(at));
        });
      }
    }
  });
}

TEST_F(Npy, has_the_bytes_of_big_endian_numbers) {
  Array<std::complex<float>, 1> array({2});
  umem::fill(array, std::complex<float>(1, -2));
  save_npy(file.path, array, umemOrderBig);
  std::string const bytes = bytes_of(file.path);
  EXPECT_NE(bytes.find("'>c8'"), std::string::npos);
  EXPECT_EQ(bytes.substr(bytes.size() - 8), std::string("\x3f\x80\0\0\xc0\0\0\0", 8));
  EXPECT_THROW((umem::map_npy<std::complex<float> const, 1>(file.path)), umem::type_error);
  umem_thread_clear();
  umem::CArray const loaded = load_npy(file.path);
  EXPECT_EQ((umem::view<std::complex<float> const, 1>(loaded)(1)), (std::complex<float>(1, -2)));
  save_npy(file.path, loaded, umemOrderBig);
  EXPECT_EQ(bytes_of(file.path), bytes);
  Array<std::complex<double>, 1> converted({2});
  umem::load_npy_converted(file.path, converted);
  EXPECT_EQ(converted.get(1), (std::complex<double>(1, -2)));
}

TEST_F(Npy, of_big_endian_numbers_is_turned_in_pieces) {
  Array<double, 2> long_rows({2, 200001}), many_rows({100003, 3});
  number(long_rows);
  number(many_rows);
  save_npy(file.path, long_rows, umemOrderBig);
  expect_numbered(load_npy<double, 2>(file.path));
  save_npy(file.path, many_rows.part().transpose(), umemOrderBig);
  auto const back = load_npy<double, 2>(file.path);
  for (umem::index_t i = 0; i < 100003; i += 7) EXPECT_EQ(back.get(2, i), many_rows.get(i, 2));
}

TEST_P(NpyTest, holds_parts_and_views) {
  Array<int, 2> array({3, 4}, place);
  number(array);
  save_npy(file.path, array.part().transpose().slice(0, 1, 3));
  auto back = load_npy<int, 2>(file.path);
  EXPECT_EQ(back.extents(), (Extents<2>{2, 3}));
  EXPECT_EQ(back.get(1, 2), array.get(2, 2));
  save_npy(file.path, *array.host(umem::read));
  expect_numbered(load_npy<int, 2>(file.path, place));
}

TEST_P(NpyTest, of_what_cannot_be_read_leaves_the_file_alone) {
  Array<int, 2> array({3, 4}, place), other({5, 6}, place);
  number(array);
  number(other);
  save_npy(file.path, array);
  std::string const before = bytes_of(file.path);
  {
    auto lock = other.lock();
    EXPECT_THROW(save_npy(file.path, other), umem::locked_error);
    EXPECT_THROW(save_npy(file.path, other.part().slice(0, 1, 2)), umem::locked_error);
  }
  Array<int, 2> const empty;
  EXPECT_THROW(save_npy(file.path, empty), umem::moved_from_error);
  EXPECT_EQ(bytes_of(file.path), before);
}

TEST_F(Npy, of_what_fails_in_its_queue_leaves_the_file_alone) {
  umem::Context device = open_place(*backend_by_name("fake-async"));
  Array<int, 2> array({3, 4}, device);
  number(array);
  save_npy(file.path, array);
  std::string const before = bytes_of(file.path);
  number(array, 50);
  fake_async_fail_next(reinterpret_cast<FakeAsync *>(device.c_context()), umemRuntimeError);
  array.start_sync_to_device();
  EXPECT_THROW(save_npy(file.path, array), umem::runtime_error);
  EXPECT_EQ(bytes_of(file.path), before);
  save_npy(file.path, array);
  expect_numbered(load_npy<int, 2>(file.path), 50);
  umem_clear_status(device.c_context());
}

TEST_P(NpyTest, reads_fortran_order) {
  write_bytes(file.path, file_of(1, dictionary("<i4", "True", "(2, 3)"), numbers<std::int32_t>(6)));
  auto array = load_npy<std::int32_t, 2>(file.path, place);
  EXPECT_EQ(memory_of(array), (std::vector<std::int32_t>{1, 3, 5, 2, 4, 6}));
}

TEST_P(NpyTest, reads_bools) {
  write_bytes(file.path,
              file_of(1, dictionary("|b1", "False", "(4,)"), std::string("\0\1\2\377", 4)));
  auto array = load_npy<bool, 1>(file.path, place);
  EXPECT_FALSE(array.get(0));
  for (int i = 1; i < 4; i++) EXPECT_TRUE(array.get(i));
  save_npy(file.path, array);
  EXPECT_EQ(bytes_of(file.path).substr(128), std::string("\0\1\1\1", 4));
}

/* ---- the format ---- */

TEST_F(Npy, has_the_header_that_numpy_writes) {
  save_npy(file.path, Array<double, 2>::full({2, 3}, 1));
  std::string bytes = bytes_of(file.path);
  EXPECT_EQ(bytes.size(), 128 + 48u);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\1\0v\0", 10));
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(bytes.substr(126, 2), " \n");
}

template <class T> std::string type_written() {
  TempFile file;
  save_npy(file.path, Array<T, 0>::zeros({}));
  std::string bytes = bytes_of(file.path);
  EXPECT_NE(bytes.find("'shape': ()"), std::string::npos);
  return bytes.substr(21, bytes.find('\'', 21) - 21);
}

TEST_F(Npy, names_types_as_numpy_does) {
  EXPECT_EQ(type_written<bool>(), "|b1");
  EXPECT_EQ(type_written<signed char>(), "|i1");
  EXPECT_EQ(type_written<unsigned char>(), "|u1");
  EXPECT_EQ(type_written<short>(), "<i2");
  EXPECT_EQ(type_written<std::uint16_t>(), "<u2");
  EXPECT_EQ(type_written<int>(), "<i4");
  EXPECT_EQ(type_written<std::uint32_t>(), "<u4");
  EXPECT_EQ(type_written<long long>(), "<i8");
  EXPECT_EQ(type_written<std::uint64_t>(), "<u8");
  EXPECT_EQ(type_written<float>(), "<f4");
  EXPECT_EQ(type_written<double>(), "<f8");
  EXPECT_EQ(type_written<std::complex<float>>(), "<c8");
  EXPECT_EQ(type_written<std::complex<double>>(), "<c16");
}

/* ---- padding ---- */

/* Elements of two numbers each, 1, 2, ..., in memory whose other bytes are all this one. */
template <class T> std::vector<T> in_dirty_memory(std::size_t count, int byte) {
  std::vector<T> elements(count);
  std::memset(static_cast<void *>(elements.data()), byte, count * sizeof(T));
  constexpr std::size_t in_use = std::numeric_limits<long double>::digits == 64 ? 10 : 16;
  auto *bytes = reinterpret_cast<unsigned char *>(elements.data());
  for (std::size_t i = 0; i < count * sizeof(T) / sizeof(long double); i++) {
    long double value = static_cast<long double>(i + 1);
    std::memcpy(bytes + i * sizeof value, &value, in_use);
  }
  return elements;
}

/* The bytes of the file of 3 * count elements, transposed, that a device has as they are. */
template <class T> std::string saved(umem::Context const &device, umem::index_t count, int byte) {
  TempFile file;
  auto const elements = in_dirty_memory<T>(static_cast<std::size_t>(3 * count), byte);
  umem::Buffer buffer(device, elements.size() * sizeof(T));
  umem::copy(elements.data(), device, buffer.adr(), buffer.size());
  umem::Part<T const, 2> part(device, buffer.adr(), {count, 3});
  save_npy(file.path, part.transpose());
  auto back = load_npy<T, 2>(file.path);
  for (umem::index_t i = 0; i < 3; i++)
    for (umem::index_t j = 0; j < count; j += count - 1)
      EXPECT_EQ(back.get(i, j), elements[static_cast<std::size_t>(3 * j + i)]);
  return bytes_of(file.path);
}

template <class T> void expect_zero_padding(umem::Context const &device, umem::index_t count) {
  std::string const bytes = saved<T>(device, count, 0xa5);
  EXPECT_TRUE(bytes == saved<T>(device, count, 0x5a)) << "files of equal arrays are equal";
  std::size_t const numbers = static_cast<std::size_t>(3 * count) * sizeof(T) / sizeof(long double);
  ASSERT_EQ(bytes.size(), 128 + numbers * sizeof(long double));
  if (std::numeric_limits<long double>::digits != 64) return;
  std::size_t padded = 0;
  for (std::size_t i = 0; i < numbers; i++)
    for (std::size_t k = 10; k < sizeof(long double); k++)
      padded += bytes[128 + i * sizeof(long double) + k] == 0;
  EXPECT_EQ(padded, numbers * (sizeof(long double) - 10));
}

TEST_P(NpyTest, writes_zeros_as_padding) {
  for (umem::index_t count : {2, 7}) {
    expect_zero_padding<long double>(place, count);
    expect_zero_padding<std::complex<long double>>(place, count);
  }
}

TEST_F(Npy, writes_zeros_as_padding_of_large_arrays) {
  if (setting_qemu()) GTEST_SKIP() << "long double takes long there";
  expect_zero_padding<long double>(umem::Host(), 70000);
  expect_zero_padding<std::complex<long double>>(umem::Host(), 20000);
  save_npy(file.path, Array<long double, 2>::zeros({0, 5}));
  EXPECT_EQ(bytes_of(file.path).size(), 128u);
  save_npy(file.path, Array<long double, 0>::full({}, 7.0L));
  EXPECT_EQ((load_npy<long double, 0>(file.path).get()), 7.0L);
}

/* ---- what is refused ---- */

/* Loads a file of these bytes as int32 in two dimensions; what the exception says behind the name
 * of the file. */
template <class Error> std::string refusal_of(std::string const &bytes) {
  TempFile file;
  write_bytes(file.path, bytes);
  std::string const start = "\"" + std::string(file.path) + "\": ",
                    text = thrown_by<Error>([&] { load_npy<std::int32_t, 2>(file.path); });
  umem_thread_clear();
  EXPECT_EQ(text.substr(0, start.size()), start);
  return text.empty() ? "nothing is refused" : text.substr(start.size());
}

std::string refused_text(std::string const &text) {
  return refusal_of<umem::value_error>(file_of(1, text, numbers<std::int32_t>(6)));
}

/* What is wrong with headers and how they may be written is tested in test/unit/array/npy.c. */
TEST_F(Npy, refuses_headers_that_c_refuses) {
  EXPECT_EQ(refusal_of<umem::value_error>("hello, this is text"),
            "it is no .npy file: it does not start with \\x93NUMPY");
  EXPECT_EQ(refused_text("{}"), "its header lacks descr, fortran_order or shape");
  EXPECT_THROW((load_npy<int, 1>("/nonexistent/file")), umem::io_error);
  EXPECT_THROW(save_npy("/nonexistent/file", Array<int, 1>(1)), umem::io_error);
  umem_thread_clear();
  std::string const bytes =
      file_of(2, dictionary("<i4", "False", "(2, 3)"), numbers<std::int32_t>(6));
  write_bytes(file.path, bytes + "what follows is left alone, as by NumPy");
  expect_numbered(load_npy<std::int32_t, 2>(file.path));
  write_bytes(file.path, file_of(1, dictionary("<i4", "True", "()"), numbers<std::int32_t>(1)));
  EXPECT_EQ((load_npy<std::int32_t, 0>(file.path).get()), 1);
  write_bytes(file.path, file_of(1, dictionary("<i4", "True", "(0, 5)"), ""));
  EXPECT_EQ((load_npy<std::int32_t, 2>(file.path).extents()), (Extents<2>{0, 5}));
}

TEST_F(Npy, refuses_other_types) {
  auto refusal = [](char const *type, char const *shape = "(2, 3)") {
    return refusal_of<umem::type_error>(
        file_of(1, dictionary(type, "False", shape), numbers<std::int32_t>(6)));
  };
  EXPECT_EQ(refusal(">f4"), "its type is '>f4', that of the array '<i4'");
  EXPECT_EQ(refusal("<f4"), "its type is '<f4', that of the array '<i4'");
  EXPECT_EQ(refusal("<u4"), "its type is '<u4', that of the array '<i4'");
  EXPECT_EQ(refusal("|O"), "umem has no elements of its type '|O'");
  EXPECT_EQ(refused_text(dictionary("", "False", "(2, 3)")), "its descr '' is no type of NumPy");
  EXPECT_EQ(refusal("<i4", "(6,)"), "the shape (6,) has 1 dimensions, not 2");
  EXPECT_EQ(refusal("<i4", "()"), "the shape () has 0 dimensions, not 2");
  EXPECT_EQ(refusal_of<umem::type_error>(file_of(
                1, "{'descr': [('x', '<i4')], 'fortran_order': False, 'shape': (2, 3)}", "")),
            "its elements are records, which umem does not have");
}

/* ---- Fortran order ---- */

TEST_P(NpyTest, writes_fortran_order_as_numpy_does) {
  Array<std::int32_t, 2> array({3, 2}, place);
  number(array);
  save_npy(file.path, array.part().transpose());
  EXPECT_EQ(bytes_of(file.path).substr(128), numbers<std::int32_t>(6)) << "no element moves";
  expect_words(bytes_of(file.path), "'fortran_order': True, 'shape': (2, 3), }");
  auto back = load_npy<std::int32_t, 2>(file.path, place);
  EXPECT_EQ(memory_of(back), (std::vector<std::int32_t>{1, 3, 5, 2, 4, 6}));
}

TEST_F(Npy, is_in_c_order_where_a_part_has_gaps_or_both_orders) {
  Array<std::int32_t, 2> array({3, 2});
  number(array);
  for (auto const &part : {array.part().transpose().slice(0, 0, 1), array.part().slice(1, 0, 1),
                           array.part().transpose().reversed(1), array.part()}) {
    save_npy(file.path, part);
    EXPECT_NE(bytes_of(file.path).find("'fortran_order': False"), std::string::npos);
  }
}

/* ---- into elements that exist ---- */

TEST_P(NpyTest, is_loaded_into_elements_that_exist) {
  for (char const *order : {"False", "True"}) {
    bool const is_c = order[0] == 'F';
    write_bytes(file.path,
                file_of(1, dictionary("<i4", order, "(2, 3)"), numbers<std::int32_t>(6)));
    umem::ArrayOptions<2> ghosts{{1, 1}};
    auto array = Array<std::int32_t, 2>::full({4, 3}, -1, place, ghosts);
    umem::load_npy_into(file.path, array.part().slice(0, 0, 4, 2));
    EXPECT_EQ(array.get(2, 0), is_c ? 4 : 2);
    EXPECT_EQ(array.get(0, 2), is_c ? 3 : 5);
    EXPECT_EQ(array.get(1, 0), -1);
    EXPECT_EQ(array.get(-1, 0), -1);
    Array<std::int32_t, 2> whole({2, 3}, place);
    umem::load_npy_into(file.path, whole);
    EXPECT_EQ(whole.get(1, 2), 6);
    umem::load_npy_into(file.path, *whole.host(umem::write));
    EXPECT_EQ(whole.get(1, 0), is_c ? 4 : 2);
  }
  write_bytes(file.path, file_of(1, dictionary("|b1", "False", "(3,)"), std::string("\0\2\1", 3)));
  Array<bool, 1> flags({3}, place);
  umem::load_npy_into(file.path, flags);
  EXPECT_FALSE(flags.get(0));
  EXPECT_TRUE(flags.get(1));
}

TEST_P(NpyTest, that_does_not_fit_leaves_the_elements_alone) {
  auto array = Array<std::int32_t, 2>::full({3, 2}, -1, place);
  auto const refusal = [&](std::string const &bytes) {
    write_bytes(file.path, bytes);
    std::string const said = thrown_by([&] { umem::load_npy_into(file.path, array); });
    umem_thread_clear();
    EXPECT_EQ(memory_of(array), std::vector<std::int32_t>(6, -1));
    return said.substr(said.find("\": ") + 3);
  };
  std::string const six = numbers<std::int32_t>(6);
  EXPECT_EQ(refusal(file_of(1, dictionary("<i4", "False", "(2, 3)"), six)),
            "its shape is (2, 3), that of the elements (3, 2)");
  EXPECT_EQ(refusal(file_of(1, dictionary("<i4", "False", "(6,)"), six)),
            "the shape (6,) has 1 dimensions, not 2");
  EXPECT_EQ(refusal(file_of(1, dictionary("<f4", "False", "(3, 2)"), six)),
            "its type is '<f4', that of the array '<i4'");
  EXPECT_EQ(refusal(file_of(1, dictionary("<i4", "False", "(3, 2)"), six.substr(1))),
            "it is truncated: its header says 24 bytes of data, it holds 23");
  write_bytes(file.path, file_of(1, dictionary("<i4", "False", "(3, 2)"), six));
  auto lock = array.lock();
  EXPECT_THROW(umem::load_npy_into(file.path, array), umem::locked_error);
}

/* ---- types and ranks that are known at run time ---- */

TEST_F(Npy, of_any_type_and_rank_is_loaded) {
  TempFile copy;
  int types = 0;
  for_each_type([&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (!std::is_same_v<T, Item>) {
      Array<T, 2> array({2, 3});
      number(array);
      for (bool transposed : {false, true}) {
        auto const part = transposed ? array.part().transpose() : array.part();
        save_npy(file.path, part);
        umem::CArray const loaded = umem::load_npy(file.path);
        ASSERT_EQ(umemArray_type(loaded.get()), umem::element_type<T>);
        EXPECT_EQ(umemArray_is_c_contiguous(loaded.get()), !transposed);
        umem::save_npy(copy.path, loaded);
        EXPECT_EQ(bytes_of(copy.path), bytes_of(file.path));
        umem::visit(loaded, umem::read, [&](auto const &view) {
          using U = typename std::decay_t<decltype(view)>::value_type;
          if constexpr (std::is_same_v<U, T>) {
            types++;
            auto const elements = view.template to<2>();
            EXPECT_EQ(elements.extents, part.extents());
            EXPECT_EQ(elements(1, 0), transposed ? array.get(0, 1) : array.get(1, 0));
          }
        });
      }
    }
  });
  EXPECT_GT(types, 0);
}

TEST_P(NpyTest, of_any_type_is_loaded_on_any_context) {
  auto const expect = [&](umem::CArray const &loaded, std::vector<unsigned char> const &bytes) {
    EXPECT_EQ(umemArray_context(loaded.get()), place.c_context());
    std::vector<unsigned char> there(bytes.size());
    umem::copy(place, umemArray_address(loaded.get()), there.data(), there.size());
    place.synchronize();
    EXPECT_EQ(there, bytes);
  };
  write_bytes(file.path, file_of(1, dictionary("|b1", "False", "(3,)"), std::string("\0\2\1", 3)));
  expect(umem::load_npy(file.path, place), {0, 1, 1});
  write_bytes(file.path, file_of(1, dictionary("|u1", "True", "(2, 2)"), "\1\2\3\4"));
  expect(umem::load_npy(file.path, place), {1, 2, 3, 4});
}

TEST_P(NpyTest, is_converted_where_that_is_asked_for) {
  write_bytes(file.path, file_of(1, dictionary("<f4", "True", "(2, 3)"), numbers<float>(6)));
  auto array = Array<std::int16_t, 2>::full({2, 3}, -1, place);
  umem::load_npy_converted(file.path, array);
  EXPECT_EQ(memory_of(array), (std::vector<std::int16_t>{1, 3, 5, 2, 4, 6}));
  auto wide = Array<double, 2>::full({2, 6}, -1, place);
  umem::load_npy_converted(file.path, wide.part().slice(1, 0, 6, 2));
  EXPECT_EQ(wide.get(1, 4), 6);
  EXPECT_EQ(wide.get(1, 5), -1);
  auto other = Array<double, 2>::full({3, 2}, -1, place);
  EXPECT_THROWS(
      umem::load_npy_converted(file.path, other), umem::value_error,
      ("\"" + std::string(file.path) + "\": its shape is (2, 3), that of the elements (3, 2)")
          .c_str());
  EXPECT_EQ(memory_of(other), std::vector<double>(6, -1));
}

} // namespace
