/* Parts of this program are the examples of the component for files of named arrays in the reference
 * of C: a part stands at each function that the comment before it names. */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <umem.h>
#include <umem/formats.h>

static umemHost host;
static umemStatusType status = umemOK;

static void save(umemArray *w, umemArray *b) {
  /* [umemArchive_save] */
  char const *const names[] = {"w", "b"}, *const keys[] = {"made by"}, *const texts[] = {"me"};
  umemArray *const arrays[] = {w, b};
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.metadata_count = 1, options.metadata_keys = keys, options.metadata_values = texts;
  umemArchive_save("api.safetensors", 2, names, arrays, &options, &status);
  /* [/] */
  assert(status == umemOK);
}

static void list(umemArchive *archive) {
  /* [umemArchive_count umemArchive_info] */
  for (size_t i = 0; i < umemArchive_count(archive); i++) {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    if (umemArchive_info(archive, i, &info, &status))
      printf("%s: %d bytes at %d\n", info.name, (int)info.nbytes, (int)info.offset);
  }
  /* [/] */
  /* [umemArchive_find] */
  size_t number = umemArchive_find(archive, "w", &status);
  if (number == SIZE_MAX) puts(umem_thread_message());
  /* [/] */
  assert(number < umemArchive_count(archive));
  /* [umemArchive_metadata] */
  char const *key, *text;
  for (size_t i = 0; (key = umemArchive_metadata(archive, i, &text)); i++)
    printf("%s: %s\n", key, text);
  /* [/] */
}

static void read_all(umemArchive *archive, umemArray *mine) {
  /* [umemArchive_get] */
  umemArray *w = umemArchive_get(archive, "w", &status);
  float const *elements = umemArray_host_pointer(w, false, &status); /* in the mapped file */
  if (status == umemOK) printf("%g\n", elements[0]);
  umemArray_release(w);
  /* [/] */
  /* [umemArchive_load] */
  umemArray *loaded[2]; /* on any context: a GPU, another file, ... */
  umemArchive_load(archive, 2, (char const *[]){"w", "b"}, &host, loaded, NULL, &status);
  for (size_t k = 0; k < 2; k++) umemArray_release(loaded[k]);
  /* [/] */
  /* [umemArchive_check] */
  umemArchiveOptions options = UMEM_ARCHIVE_OPTIONS_INIT; /* with options.progress: see how far */
  umemArchive_check(archive, umemArchive_count(archive), NULL, &options, &status);
  if (status == umemValueError) puts(umem_thread_message()); /* the bytes have changed */
  /* [/] */
  /* [umemArchive_load_into] */
  umemArray *part = umemArray_slice(mine, 0, 2, 2, 1, &status); /* rows 2 and 3 of an array */
  umemArchive_load_into(archive, 1, (char const *[]){"w"}, &part, NULL, &status);
  umemArray_release(part);
  /* [/] */
  assert(status == umemOK);
}

int main(void) {
  assert(umemHost_ctor(&host) == umemOK);
  umemArray *w = umemArray_zeros(&host, umemFloat, 2, (int64_t[]){2, 3}, NULL, &status);
  umemArray *b = umemArray_zeros(&host, umemInt8, 1, (int64_t[]){5}, NULL, &status);
  umemArray *mine = umemArray_zeros(&host, umemFloat, 2, (int64_t[]){4, 3}, NULL, &status);
  save(w, b);
  /* [umemArchive_open umemArchive_release] */
  umemArchive *archive = umemArchive_open("api.safetensors", &status);
  if (!archive) return puts(umem_thread_message());
  umemArchive *other = umemArchive_retain(archive); /* for another part of the program */
  umemArchive_release(archive);
  /* [/] */
  list(other);
  read_all(other, mine);
  umemArchive_release(other);

  umemFile file;
  umemInfo info = UMEM_INFO_INIT;
  assert(umemFile_ctor(&file, "api.safetensors", "r") == umemOK);
  assert(umem_get_info(&file, &info) == umemOK);
  uint64_t size = info.capacity;
  /* [umemArchive_read] */
  archive = umemArchive_read(&file, 0, size, &status); /* of a umemFile; or of a file in memory */
  if (!archive) puts(umem_thread_message());
  /* [/] */
  /* [umemArchive_retain] */
  other = umemArchive_retain(archive); /* two umemArchive_release end it */
  /* [/] */
  umemArchive_release(archive);
  umemArchive_release(other);
  umem_dtor(&file);
  umemArray_release(w);
  umemArray_release(b);
  umemArray_release(mine);
  umem_dtor(&host);
  remove("api.safetensors");
  assert(status == umemOK && umem_thread_status() == umemOK);
  return 0;
}
