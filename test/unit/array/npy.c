/* npy.c - umem/npy.h: what it reads of headers, on every kind of context, and what it refuses.
 * python/tests/test_npy.py compares with NumPy. */
#include "array_help.h"

#include "unit/each_backend.h"

enum { file_size = 1 << 17 };

/* Writes a file of this version with this text and room for data; returns where the data begin. */
static size_t write_file(char *file, int version, char const *text, size_t length) {
  size_t first = version == 1 ? 10 : 12;
  memset(file, 0, file_size);
  memcpy(file, "\x93NUMPY", 6);
  file[6] = (char)version;
  for (size_t k = 0; k < first - 8; k++) file[8 + k] = (char)(length >> 8 * k);
  memcpy(file + first, text, length);
  return first + length;
}

/* Reads a header from memory that is exactly as long as the file: what reads further, reads no
 * memory of the file. */
static umemStatusType read_file(char const *file, size_t size, umemNpyHeader *header) {
  SCOPED(free_bytes) char *exact = malloc(size + !size);
  memcpy(exact, file, size);
  return umem_npy_read_header(&host, (uintptr_t)exact, size, header);
}

static umemStatusType read_text(int version, char const *text, umemNpyHeader *header) {
  static char file[file_size];
  size_t first = write_file(file, version, text, strlen(text));
  return read_file(file, first + 192, header);
}

#define TEXT(descr, order, shape)                                                                  \
  "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

TEST(fields_are_read) {
  for (int version = 1; version <= 3; version++) {
    umemNpyHeader header = UMEM_NPY_HEADER_INIT;
    char const *text = TEXT("'<f4'", "True", "(2, 3, 0)");
    assert_ok(read_text(version, text, &header));
    assert_int_equal(header.type, umemFloat32);
    assert_true(header.fortran_order);
    assert_int_equal(header.rank, 3);
    assert_memory_equal(header.shape, ((int64_t[]){2, 3, 0}), 3 * sizeof(int64_t));
    assert_memory_equal(header.strides, ((int64_t[]){4, 8, 24}), 3 * sizeof(int64_t));
    assert_int_equal(header.offset, (version == 1 ? 10 : 12) + strlen(text));
    assert_int_equal(header.nbytes, 0);
    assert_string_equal(header.descr, "<f4");
    assert_ok(read_text(version, TEXT("'c8'", "False", "(2, 3)"), &header));
    assert_memory_equal(header.strides, ((int64_t[]){24, 8}), 2 * sizeof(int64_t));
    assert_int_equal(header.nbytes, 48);
  }
}

TEST(types_have_many_names) {
  static struct {
    char const *name, *descr;
    umemElementType type;
  } const names[] = {
      {"<f8", "<f8", umemFloat64},
      {"f8", "<f8", umemFloat64},
      {"=f8", "<f8", umemFloat64},
      {"|f8", "<f8", umemFloat64},
      {"d", "<f8", umemFloat64},
      {"float64", "<f8", umemFloat64},
      {"?", "|b1", umemBool},
      {"b1", "|b1", umemBool},
      {"<b1", "|b1", umemBool},
      {"b", "|i1", umemInt8},
      {">u1", "|u1", umemUInt8},
      {"q", "<i8", umemInt64},
      {"e", "<f2", umemFloat16},
      {"F", "<c8", umemComplex64},
      {"complex128", "<c16", umemComplex128},
      {"uint16", "<u2", umemUInt16},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char text[200];
    umemNpyHeader header = UMEM_NPY_HEADER_INIT;
    snprintf(text, sizeof text, TEXT("'%s'", "False", "(3,)"), names[i].name);
    assert_ok(read_text(1, text, &header));
    assert_string_equal(header.descr, names[i].descr);
    assert_int_equal(header.type, names[i].type);
  }
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  assert_ok(read_text(1, TEXT("'g'", "False", "(3,)"), &header));
  assert_int_equal(header.type, 0);
  assert_int_equal(header.nbytes, 3 * sizeof(long double));
}

TEST(big_endian_elements_are_described_where_they_are_wanted) {
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  header.big_endian = true;
  assert_ok(read_text(1, TEXT("'>c16'", "False", "(3,)"), &header));
  assert_string_equal(header.descr, ">c16");
  assert_true(header.big_endian && header.type == umemComplex128 && header.nbytes == 48);
  assert_ok(read_text(1, TEXT("'<f8'", "False", "(3,)"), &header));
  assert_true(!header.big_endian && header.type == umemFloat64);
  header.size = offsetof(umemNpyHeader, big_endian); /* of a program that does not know it */
  header.big_endian = true;
  assert_int_equal(read_text(1, TEXT("'>f8'", "False", "(3,)"), &header), umemTypeError);
  umem_thread_clear();
  assert_ok(read_text(1, TEXT("'>u1'", "False", "(3,)"), &header));
  assert_true(header.big_endian);
}

TEST(python_two_is_read_up_to_version_two) {
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  for (int version = 1; version <= 2; version++) {
    assert_ok(read_text(version, "{u'descr': u'<i2', 'fortran_order': False, 'shape': (3L, 4L)}",
                        &header));
    assert_memory_equal(header.shape, ((int64_t[]){3, 4}), 2 * sizeof(int64_t));
  }
  assert_int_equal(read_text(3, TEXT("'<i2'", "False", "(3L,)"), &header), umemValueError);
  umem_thread_clear();
}

static void expect_refusal(umemStatusType type, char const *text, char const *words) {
  umemNpyHeader header = UMEM_NPY_HEADER_INIT, before = header;
  status = read_text(2, text, &header);
  if (status != type) print_message("%s\n", text);
  expect_failure(type, words);
  assert_memory_equal(&header, &before, sizeof header);
}

/* 33 dimensions, and a word of 100 letters. */
#define ONES "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"
#define TEN "xxxxxxxxxx"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

TEST(what_is_wrong_is_said) {
  umemStatusType const value = umemValueError, other = umemTypeError;
  struct {
    umemStatusType type;
    char const *text, *words;
  } const rows[] = {
      {value, TEXT("'<f8'", "'False'", "(2,)"), "fortran_order is neither True nor False"},
      {value, TEXT("'<f8'", "False", "[2, 3]"), "its shape is no tuple"},
      {value, TEXT("'<f8'", "False", "(2)"), "its shape is a number, not a tuple"},
      {value, TEXT("'<f8'", "False", "(-2, 3)"), "not a tuple of whole numbers"},
      {value, TEXT("'<f8'", "False", "(100,)"), "its header says 800 bytes of data, it holds 192"},
      {value, TEXT("'<f8'", "False", "(9223372036854775807, 0)"), "larger than any array can be"},
      {value, TEXT("'<f8'", "False", "(92233720368547758080,)"), "a number that is too large"},
      {value, TEXT("'foo'", "False", "(2,)"), "its descr 'foo' is no type of NumPy"},
      {value, "{'descr': '<f8', 'descr': '<f8'}", "unknown or there twice"},
      {value, TEXT("'<f8'", "False", "(2,)") "x", "goes on after the dictionary"},
      {value, TEXT("[('a', [('b', 'f4']]", "False", "(2,)"), "')' is missing"},
      {other, TEXT("[('a', [('b', 'f4')], (2, 3))]", "False", "(2,)"), "its elements are records"},
      {other, TEXT("'>f8'", "False", "(2,)"), "its type '>f8' is big endian"},
      {other, TEXT("'<M8[ns]'", "False", "(2,)"), "no elements of its type '<M8[ns]'"},
      {value, TEXT("'<f8'", "False", "(2.5, 3)"), "not a tuple of whole numbers"},
      {value, TEXT("'<f8'", "False", "(02, 3)"), "not a tuple of whole numbers"},
      {value, TEXT("'<f8'", "False", "(2 3)"), "not a tuple of whole numbers"},
      {value, TEXT("'<f8'", "False", "(,)"), "not a tuple of whole numbers"},
      {value, TEXT("'<f8'", "False", "6"), "its shape is no tuple"},
      {value, TEXT("'<f8'", "False", "(9223372036854775807, 2)"), "larger than any array can be"},
      {value, TEXT("'<f8'", "False", "(4611686018427387904, 1)"), "larger than any array can be"},
      {value, TEXT("'<f8'", "False", "(" ONES ")"), "too many dimensions"},
      {value, "", "is no dictionary: '{' is missing"},
      {value, "{}", "lacks descr, fortran_order or shape"},
      {value, "{'descr': '<f8'", "is no dictionary: ',' is missing"},
      {value, "{'descr' '<f8'", "is no dictionary: ':' is missing"},
      {value, "{descr: '<f8'", "is no dictionary: a quoted word is missing"},
      {value, "{'descr: ", "has a word that is too long, not closed or not plain ASCII"},
      {value, "{'" LONG "': 1}", "has a word that is too long, not closed or not plain ASCII"},
      {value, "{'color': 1}", "has the key 'color', which is unknown or there twice"},
      {value, TEXT("'<f8'", "Maybe", "(2,)"), "fortran_order is neither True nor False"},
      {value, TEXT("''", "False", "(2,)"), "its descr '' is no type of NumPy"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    expect_refusal(rows[i].type, rows[i].text, rows[i].words);
}

TEST(texts_may_be_written_in_many_ways) {
  static char const *const texts[] = {
      "{'shape':(2,3),'fortran_order':False,'descr':'<i4'}",
      "{u'descr': u'i4', 'fortran_order': False, 'shape': (2, 3)}",
      " {\"descr\" : \"=i4\" ,\n\t'fortran_order' :False, 'shape' : ( 2 , 3, ) , } \n"};
  for (int version = 1; version <= 3; version++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
      umemNpyHeader header = UMEM_NPY_HEADER_INIT;
      assert_ok(read_text(version, texts[i], &header));
      assert_true(header.type == umemInt32 && header.rank == 2 && header.nbytes == 24);
    }
}

/* Whatever one changed byte makes of a file: it is an array no larger, or refused. */
TEST(changed_bytes_do_no_harm) {
  static char file[file_size];
  static int const changes[] = {0x01, 0x04, 0x20, 0x80, 0xff};
  char const *text = TEXT("'<i4'", "False", "(2, 3)");
  size_t size = write_file(file, 1, text, strlen(text)) + 24;
  int refused = 0;
  for (size_t i = 0; i < size - 24; i++)
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
      umemNpyHeader header = UMEM_NPY_HEADER_INIT;
      file[i] ^= (char)changes[k];
      refused += read_file(file, size, &header) != umemOK;
      assert_true(header.nbytes <= 24);
      file[i] ^= (char)changes[k];
    }
  umem_thread_clear();
  assert_true(refused > 250);
}

TEST(lists_in_lists_have_a_limit) {
  static char text[9000];
  for (int kind = 0; kind < 2; kind++) {
    strcpy(text, "{'descr': ");
    for (size_t i = 0; i < 800; i++) strcat(text, kind ? "(" : "[('a', ");
    expect_refusal(umemValueError, text, "its descr is nested too deeply");
  }
}

TEST(the_text_has_the_limit_of_numpy) {
  static char file[file_size], text[file_size];
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  memset(text, ' ', sizeof text);
  memcpy(text, TEXT("'<f8'", "False", "(2,)"), strlen(TEXT("'<f8'", "False", "(2,)")));
  assert_ok(read_file(file, write_file(file, 2, text, 10000) + 16, &header));
  status = read_file(file, write_file(file, 2, text, 10001) + 16, &header);
  expect_failure(umemValueError, "10001 bytes, more than the 10000 that are read");
  memset(file + 8, 0xff, 4);
  status = read_file(file, 100, &header);
  expect_failure(umemValueError, "it is truncated: it ends inside of its header");
}

TEST(a_file_may_end_anywhere) {
  static char file[file_size];
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  char const *text = TEXT("'<f8'", "False", "(2,)");
  size_t size = write_file(file, 2, text, strlen(text)) + 16;
  for (size_t n = 0; n < size; n++) {
    status = read_file(file, n, &header);
    expect_failure(umemValueError, n ? "it is truncated" : "it is empty");
  }
  assert_ok(read_file(file, size, &header));
  assert_ok(read_file(file, size + 100, &header));
  for (size_t k = 0; k < 8; k++) {
    file[k] ^= 0x50;
    status = read_file(file, size, &header);
    expect_failure(umemValueError, k < 6 ? "it is no .npy file" : "format version");
    file[k] ^= 0x50;
  }
}

static void read_on(Backend const *row, umemVirtual *ctx) {
  static char file[file_size];
  char const *text = TEXT("'<i4'", "False", "(5, 2)");
  size_t size = write_file(file, 1, text, strlen(text)) + 40;
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  uintptr_t adr = umem_alloc(ctx, size);
  assert_ok(umem_copy_from(ctx, adr, &host, (uintptr_t)file, size));
  if (umem_npy_read_header(ctx, adr, size, &header) != umemOK)
    fail_msg("%s: %s", row->name, umem_thread_message());
  assert_int_equal(header.nbytes, 40);
  umem_free(ctx, adr);
}

TEST(files_are_read_on_every_context) { assert_true(for_each_backend(read_on) > 0); }

TEST(wrong_arguments_are_refused) {
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  status = umem_npy_read_header(NULL, 0, 0, &header);
  expect_failure(umemValueError, "");
  status = umem_npy_read_header(&host, 0, 100, &header);
  expect_failure(umemValueError, "null");
  status = umem_npy_read_header(&host, 0, 100, NULL);
  expect_failure(umemValueError, "header");
  header.size = 8;
  status = umem_npy_read_header(&host, 0, 100, &header);
  expect_failure(umemValueError, "umemNpyHeader");
}
