/* element.c - umem/element.h: sizes and names of element types. */
#include "array_help.h"

static struct {
  char const *name;
  umemElementType type;
  size_t size;
  bool floating, complex;
} const named[] = {
    {"bool", umemBool, 1, false, false},
    {"int8", umemInt8, 1, false, false},
    {"int16", umemInt16, 2, false, false},
    {"int32", umemInt32, 4, false, false},
    {"int64", umemInt64, 8, false, false},
    {"uint8", umemUInt8, 1, false, false},
    {"uint16", umemUInt16, 2, false, false},
    {"uint32", umemUInt32, 4, false, false},
    {"uint64", umemUInt64, 8, false, false},
    {"float16", umemFloat16, 2, true, false},
    {"float32", umemFloat32, 4, true, false},
    {"float64", umemFloat64, 8, true, false},
    {"float128", UMEM_ELEMENT(umemCodeFloat, 128, 1), 16, true, false},
    {"bfloat16", umemBfloat16, 2, true, false},
    {"complex64", umemComplex64, 8, true, true},
    {"complex128", umemComplex128, 16, true, true},
    {"handle64", UMEM_ELEMENT(umemCodeHandle, 64, 1), 8, false, false},
    {"float8_e3m4", UMEM_ELEMENT(umemCodeFloat8_e3m4, 8, 1), 1, true, false},
    {"float8_e4m3", UMEM_ELEMENT(umemCodeFloat8_e4m3, 8, 1), 1, true, false},
    {"float8_e4m3b11fnuz", UMEM_ELEMENT(umemCodeFloat8_e4m3b11fnuz, 8, 1), 1, true, false},
    {"float8_e4m3fn", UMEM_ELEMENT(umemCodeFloat8_e4m3fn, 8, 1), 1, true, false},
    {"float8_e4m3fnuz", UMEM_ELEMENT(umemCodeFloat8_e4m3fnuz, 8, 1), 1, true, false},
    {"float8_e5m2", UMEM_ELEMENT(umemCodeFloat8_e5m2, 8, 1), 1, true, false},
    {"float8_e5m2fnuz", UMEM_ELEMENT(umemCodeFloat8_e5m2fnuz, 8, 1), 1, true, false},
    {"float8_e8m0fnu", UMEM_ELEMENT(umemCodeFloat8_e8m0fnu, 8, 1), 1, true, false},
    {"float6_e2m3fn", UMEM_ELEMENT(umemCodeFloat6_e2m3fn, 6, 1), 1, true, false},
    {"float6_e3m2fn", UMEM_ELEMENT(umemCodeFloat6_e3m2fn, 6, 1), 1, true, false},
    {"float6_e3m2fnx4", UMEM_ELEMENT(umemCodeFloat6_e3m2fn, 6, 4), 3, true, false},
    {"float4_e2m1fn", UMEM_ELEMENT(umemCodeFloat4_e2m1fn, 4, 1), 1, true, false},
    {"float4_e2m1fnx2", UMEM_ELEMENT(umemCodeFloat4_e2m1fn, 4, 2), 1, true, false},
    {"float32x4", UMEM_ELEMENT(umemCodeFloat, 32, 4), 16, true, false},
    {"uint8x65535", UMEM_ELEMENT(umemCodeUInt, 8, 65535), 65535, false, false},
    {"boolx8", UMEM_ELEMENT(umemCodeBool, 8, 8), 8, false, false},
    {"bfloat16x2", UMEM_ELEMENT(umemCodeBfloat, 16, 2), 4, true, false},
};
enum { named_count = sizeof named / sizeof *named };

TEST_CASE(types_have_sizes_and_names) {
  for (size_t i = 0; i < named_count; i++) {
    char text[40];
    umemElementType type = named[i].type;
    assert_int_equal(umem_element_size(type), named[i].size);
    assert_int_equal(umem_element_name(type, text, sizeof text), strlen(named[i].name));
    assert_string_equal(text, named[i].name);
    assert_true(umem_element_by_name(named[i].name) == type);
    assert_int_equal(umem_element_is_floating_point(type), named[i].floating);
    assert_int_equal(umem_element_is_complex(type), named[i].complex);
  }
}

TEST_CASE(names_of_c_are_types) {
  assert_true(umem_element_by_name("char") == umemInt8);
  assert_true(umem_element_by_name("int") == umemInt32);
  assert_true(umem_element_by_name("float") == umemFloat32);
  assert_true(umem_element_by_name("double") == umemFloat64);
  assert_true(umem_element_by_name("complex float") == umemComplex64);
  assert_true(umem_element_by_name("complex double") == umemComplex128);
  assert_true(umem_element_by_name("float32x1") == 0); /* a name of nothing */
}

/* Every code, number of bits and a few numbers of lanes: what has a size has a name, and the name
 * means the type. */
TEST_CASE(a_size_and_a_name_go_together) {
  unsigned const lanes[] = {0, 1, 2, 7, 8, 65535};
  unsigned valid = 0;
  for (unsigned code = 0; code < 256; code++)
    for (unsigned bits = 0; bits < 256; bits++)
      for (size_t l = 0; l < sizeof lanes / sizeof *lanes; l++) {
        char text[40];
        umemElementType type = UMEM_ELEMENT(code, bits, lanes[l]);
        umem_element_name(type, text, sizeof text);
        if (umem_element_size(type)) {
          assert_int_equal(umem_element_size(type), (bits * lanes[l] + 7) / 8);
          assert_true(umem_element_by_name(text) == type);
          valid++;
        } else {
          assert_string_equal(text, "none");
          assert_false(umem_element_is_floating_point(type));
        }
      }
  /* int, uint, handle: 4; float: 4; complex: 3; bfloat, bool: 1; float8: 8, each with 5 numbers of
   * lanes. float6: 2, with 1 and 8 lanes; float4: with 1, 2 and 8 */
  assert_int_equal(valid, (4 * 3 + 4 + 3 + 2 + 8) * 5 + 2 * 2 + 3);
}

TEST_CASE(a_name_is_cut_as_by_snprintf) {
  char text[8] = "1234567";
  assert_int_equal(umem_element_name(umemComplex128, text, 5), 10);
  assert_string_equal(text, "comp");
  assert_int_equal(umem_element_name(umemComplex128, NULL, 0), 10);
}

TEST_CASE(other_names_are_refused) {
  char const *const bad[] = {"",
                             "none",
                             "int7",
                             "int128",
                             "int08",
                             "int32x",
                             "int32x0",
                             "int32x65536",
                             "int32 ",
                             "Int32",
                             "bool8",
                             "complex",
                             "complex256",
                             "float8",
                             "float8_e4m3f",
                             "uint99999999999",
                             "int8x99999999999",
                             "bfloat32",
                             "float4_e2m1fnx3",
                             "float6_e2m3fnx2",
                             NULL};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    umem_thread_clear();
    assert_true(umem_element_by_name(bad[i]) == 0);
    assert_int_equal(umem_thread_status(), umemValueError);
    assert_non_null(strstr(umem_thread_message(), bad[i] ? bad[i] : "NULL"));
  }
}

/* The four bytes of a DLDataType, on machines where the library is tested: little-endian ones. */
TEST_CASE(a_type_has_the_bytes_of_dlpack) {
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dl = {2, 64, 3};
  umemElementType type = UMEM_ELEMENT(umemCodeFloat, 64, 3);
  assert_memory_equal(&type, &dl, sizeof dl);
}
