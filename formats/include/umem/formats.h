/* umem/formats.h - files of named arrays that others write and read: safetensors, and NumPy's .npz.
 * Part of the library umem-formats; the library umem does not know these formats.
 *
 *     umemStatusType status = umemOK;
 *     umemArchive *model = umemArchive_open("model.safetensors", &status);
 *     umemArray *table = umemArchive_get(model, "embed.weight", &status);  // no copy: it is mapped
 *     umemArchive_load(model, 2, (char const *[]){"w", "b"}, &gpu, arrays, NULL, &status);
 *     umemArchive_release(model);                  // table, and what was loaded, can be used on
 *     ...
 *     umemArchive_save("new.safetensors", 2, names, arrays, NULL, &status);
 *
 *   archive    A file, or a set of files, with arrays that have names. umemArchive_get shows one
 *              where its bytes are; umem_copy_to, umemArray_copy and umemArray_slice then copy it,
 *              or a part of it, to any context. umemArchive_load copies any number in one call.
 *   formats    safetensors, and sets of such files by their index, "*.safetensors.index.json";
 *              .npz, a zip file of .npy files, whose arrays are stored or compressed (deflate). A
 *              stored array is used where it is, a compressed one is inflated when it is copied.
 *   trust      Files can come from anywhere. Every part of a header is checked before it is used:
 *              see umemArchive_open for what is refused.
 *   ownership  An archive counts its references, and each array that umemArchive_get returns has
 *              one. What umemArchive_load returns has memory of its own.
 *   status     As in umem/array.h: the first failure of a sequence of calls is stored in *status;
 *              later calls with that status do nothing. The failure is also that of the thread, and
 *              of the context that has failed.
 *   threads    Many threads may use one archive.
 *
 * Errors of all functions with a status: umemValueError for an archive that is NULL. */
#ifndef UMEM_FORMATS_H
#define UMEM_FORMATS_H

#include <umem/array.h>
#include <umem/base.h>
#include <umem/npy.h>

struct umemFileOptions; /* umem/file.h */

/* Arrays with names, in a file that was opened. Opaque. */
typedef struct umemArchive umemArchive;

/* ---- open and end ---- */

/* Opens the file at path to read. The format is what the file begins with; if path ends in
 * ".index.json", it is the index of a set of safetensors files in the same folder. The files are
 * mapped (umemMMap, mode "r"): only headers are read. Release the archive with umemArchive_release.
 *
 * Of a .npz file umem refuses all whose directory, local headers and sizes do not fit each other:
 * bytes that overlap, sizes that the compression cannot reach, two arrays of one name, more than
 * 100000000 bytes of directory, a zip file in several parts or behind other bytes. What is wrong
 * with one array alone, such as a type that umem does not have, a broken .npy header, encryption,
 * an unknown compression or a later version than 6.3, only refuses its use: see
 * umemArchiveInfo.problem. Names that are not marked as UTF-8 are in code page 437. The name of an
 * array is that of its file without ".npy".
 *
 * NULL on errors: those of umemMMap_ctor; umemMemoryError; umemValueError for a file that is in no
 * format that umem knows, and for all that the library safetensors refuses: a header of more than
 * 100000000 bytes, that is no JSON in UTF-8, deeper than 127 levels, or with other values than the
 * format has; arrays that overlap or leave holes, or whose bytes are not those of type and shape; a
 * file that ends too early or too late. Also for what that library accepts, but its format does not
 * have, or umem has not: two arrays of one name, a name with a zero byte, more than UMEM_MAX_RANK
 * dimensions, an extent above INT64_MAX, and rows of F4 or F6 that do not fill bytes. In an index:
 * a file in another folder, and an array that its file does not have; arrays that the index does
 * not name are left out. */
UMEM_EXTERN umemArchive *umemArchive_open(char const *path, umemStatusType *status);

/* Opens, as umemArchive_open does, a file of size bytes, the first of which is at adr of ctx: of a
 * umemFile or umemMMap, or of memory that holds such a file. ctx must live, and the bytes must not
 * change, until the archive and its arrays are released. No index: its files are elsewhere. */
UMEM_EXTERN umemArchive *umemArchive_read(void *ctx, uintptr_t adr, uint64_t size,
                                          umemStatusType *status);

/* One user more: returns archive. Each retain needs a release. NULL for NULL. */
UMEM_EXTERN umemArchive *umemArchive_retain(umemArchive *archive);

/* One user less. The last one, an array perhaps, ends the archive. Ignores NULL. */
UMEM_EXTERN void umemArchive_release(umemArchive *archive);

/* ---- what it holds ---- */

/* What umemArchive_info fills in. Texts are borrowed until the archive is released. */
typedef struct umemArchiveInfo {
  size_t size;      /* sizeof(umemArchiveInfo) as the caller was compiled; set it before the call */
  char const *name; /* UTF-8 */
  /* F4 and F6 are packed: their type has 2 or 4 lanes, and the last extent counts groups of them */
  umemElementType type;
  int rank;                       /* 0 ... UMEM_MAX_RANK */
  int64_t shape[UMEM_MAX_RANK];   /* [rank] numbers of elements */
  int64_t strides[UMEM_MAX_RANK]; /* [rank] bytes from element to element */
  /* of the first element, in bytes from the first byte of its file; compressed: of the first
   * compressed byte */
  uint64_t offset;
  uint64_t nbytes;     /* of all elements */
  char const *file;    /* the path of the file; "" after umemArchive_read */
  bool compressed;     /* or big endian: umemArchive_get makes a copy, in this machine's order */
  bool big_endian;     /* in the file */
  char const *problem; /* why umem has no array of it, and type is 0; NULL: it has one */
} umemArchiveInfo;

/* What a umemArchiveInfo starts as. */
#define UMEM_ARCHIVE_INFO_INIT                                                                     \
  { sizeof(umemArchiveInfo), NULL, 0, 0, {0}, {0}, 0, 0, NULL, false, false, NULL }

/* The number of arrays; 0 for NULL. */
UMEM_EXTERN size_t umemArchive_count(umemArchive const *archive);

/* The number of the array with this name, of 0 ... count - 1: they are numbered in the order of
 * their bytes. SIZE_MAX on errors: umemIndexError if there is none. */
UMEM_EXTERN size_t umemArchive_find(umemArchive const *archive, char const *name,
                                    umemStatusType *status);

/* Describes array i. Returns false, with info unchanged, on errors: umemIndexError if there is no
 * such array; umemValueError for an info whose size is too small to be true. */
UMEM_EXTERN bool umemArchive_info(umemArchive const *archive, size_t i, umemArchiveInfo *info,
                                  umemStatusType *status);

/* The texts about the whole file, its "__metadata__", in the order of their keys: returns the key
 * of text i and writes the text to *value; both are borrowed until the archive is released. NULL if
 * there is no text i, which is no error. A set of files has those of its first file, a .npz file
 * has none. */
UMEM_EXTERN char const *umemArchive_metadata(umemArchive const *archive, size_t i,
                                             char const **value);

/* ---- arrays ---- */

/* The array with this name where its bytes are, on the context of the file: nothing is copied or
 * read. It is in C order, or in Fortran order if its .npy header says so, and read-only if the
 * context is. Its first byte may be at any address in old files and in .npz files of NumPy; new
 * ones have elements at multiples of their size. A compressed array is inflated into RAM, one of
 * the other byte order is copied there, and both can be written. Release it with umemArray_release.
 * NULL on errors: umemIndexError if there is none; umemTypeError for one with a problem; those of
 * umemArray_take; of a compressed one those of umemArchive_load. */
UMEM_EXTERN umemArray *umemArchive_get(umemArchive *archive, char const *name,
                                       umemStatusType *status);

/* Options of umemArchive_load, umemArchive_load_into and umemArchive_check. Start from
 * UMEM_ARCHIVE_OPTIONS_INIT. */
typedef struct umemArchiveOptions {
  size_t size; /* sizeof(umemArchiveOptions) as the caller was compiled */
  /* As in umemCopyManyOptions: done and total are bytes of elements. false cancels what is left
   * (umemCancelledError). Strided arrays are reported every 64 MiB, compressed ones every MiB. */
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user;
  size_t step;
} umemArchiveOptions;

/* What umemArchiveOptions start as. */
#define UMEM_ARCHIVE_OPTIONS_INIT                                                                  \
  { sizeof(umemArchiveOptions), NULL, NULL, 0 }

/* Copies count arrays to ctx in one umem_copy_many, and writes to arrays[k] the new array of
 * names[k], in the order of the file, to be released. names NULL: of all arrays, count being their
 * number. On a umemOrdered context the copies are queued, and the archive must live until they are
 * complete, unless options has progress. Compressed arrays are inflated one after the other,
 * through a buffer of 1 MiB. options: NULL for the defaults. After an error every arrays[k] is
 * NULL. Errors: umemIndexError if there is none of that name; umemTypeError for one with a problem;
 * those of umemArray_create and umem_copy_many. Of compressed arrays: umemValueError for damaged
 * bytes, a length or a checksum that is wrong; umemNotSupportedError if the component was built
 * without zlib. The checksums of stored arrays are not looked at: see umemArchive_check. */
UMEM_EXTERN void umemArchive_load(umemArchive *archive, size_t count, char const *const *names,
                                  void *ctx, umemArray **arrays, umemArchiveOptions const *options,
                                  umemStatusType *status);

/* Copies as umemArchive_load does into arrays that exist, on any contexts, with any strides. Those
 * without gaps are copied in one umem_copy_many. Before the first byte is copied, all are checked.
 * Errors: also umemTypeError, umemValueError for an array of another type or shape;
 * umemNotSupportedError for a read-only one. */
UMEM_EXTERN void umemArchive_load_into(umemArchive *archive, size_t count, char const *const *names,
                                       umemArray *const *arrays, umemArchiveOptions const *options,
                                       umemStatusType *status);

/* Reads all bytes of count arrays, and compares them with the checksums (CRC-32) that a .npz file
 * has, by several threads; names and options as in umemArchive_load. Safetensors files have no
 * checksums: nothing is read. An array with a problem can be checked if it is not encrypted and its
 * compression known, else nothing is read of it. Errors: umemValueError if a checksum is wrong;
 * those of compressed arrays in umemArchive_load; umemIndexError; those of umem_copy_to. */
UMEM_EXTERN void umemArchive_check(umemArchive *archive, size_t count, char const *const *names,
                                   umemArchiveOptions const *options, umemStatusType *status);

/* ---- write ---- */

/* The format of a new file. */
typedef enum umemArchiveFormat {
  umemArchiveByName = 0, /* .npz if its path ends so, else safetensors */
  umemArchiveSafetensors,
  umemArchiveNpz
} umemArchiveFormat;

/* Options of umemArchive_save. Start from UMEM_ARCHIVE_SAVE_OPTIONS_INIT. All is borrowed for the
 * call. */
typedef struct umemArchiveSaveOptions {
  size_t size;                      /* sizeof(umemArchiveSaveOptions) as the caller was compiled */
  size_t metadata_count;            /* of texts about the whole file */
  char const *const *metadata_keys; /* [metadata_count] each once, UTF-8 */
  char const *const *metadata_values; /* [metadata_count] UTF-8 */
  struct umemFileOptions const *file; /* of umemFile_replace_with; NULL: the defaults */
  umemArchiveFormat format;
  umemByteOrder order; /* of numbers in a .npz file; safetensors files are little endian */
  /* As in umemArchiveOptions. A byte counts twice if the processor reads it, too: each of a .npz
   * file, for the checksum, and those of numbers whose order there is another one. */
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user;
  size_t step;
  bool const *big_endian; /* [count] whose numbers are big endian in memory; NULL: of no array */
} umemArchiveSaveOptions;

/* What umemArchiveSaveOptions start as. */
#define UMEM_ARCHIVE_SAVE_OPTIONS_INIT                                                             \
  {                                                                                                \
    sizeof(umemArchiveSaveOptions), 0, NULL, NULL, NULL, umemArchiveByName, umemOrderOfArray,      \
        NULL, NULL, 0, NULL                                                                        \
  }

/* Writes count arrays of any contexts to a new file: names[k] is the name of arrays[k].
 * The file replaces the one at path, if there is one, when it is complete (umemFile_replace).
 * Whatever fails or interrupts the call leaves the old one as it was; so arrays may be on a mapping
 * of it. Elements are written in C order, from where they are; of those that must be rearranged a
 * buffer of a few MiB holds a part. A safetensors file is, byte for byte, what its library writes,
 * if there is at most one text; keys of texts are sorted. In a .npz file arrays are stored in their
 * order, each at a multiple of 64 bytes; where there are more than 65535 or 4 GiB, it is one of 64
 * bits (zip64). Numbers whose order of bytes in the file is another one than in memory are turned
 * in the new file: a safetensors file is little endian, a .npz file has the order of each array, or
 * the one that options name.
 *
 * Errors: those of umemFile_replace_with, umem_alloc and umem_copy_many; umemValueError for two
 * arrays of one name, the name "__metadata__", names and texts that are not UTF-8, and a header of
 * more than 100000000 bytes, umemOrderBig for a safetensors file; umemTypeError for types that the
 * format does not have: it has bool, integers, float16 to float64, bfloat16, complex64,
 * float8_e4m3fn, e5m2, both with fnuz, e8m0fnu, and float4 (2 lanes) and float6 (4 lanes) in arrays
 * of at least one dimension. Of .npz files: umemValueError for texts, and names of more than 65531
 * bytes; umemTypeError for other types than bool, integers, float16 to float64, and complex
 * numbers; umemNotSupportedError if the component was built without zlib, which has the checksum.
 * */
UMEM_EXTERN void umemArchive_save(char const *path, size_t count, char const *const *names,
                                  umemArray *const *arrays, umemArchiveSaveOptions const *options,
                                  umemStatusType *status);

#endif
