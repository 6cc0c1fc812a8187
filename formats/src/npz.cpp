/* npz.cpp - NumPy's format of named arrays: a zip file of .npy files, stored or compressed.
 *
 *     local header, file name, .npy header, elements        of each array
 *     entry of the directory                                of each array
 *     [end of the directory of 64 bits, where that is]      with more than 65535 arrays or 4 GiB
 *     end of the directory
 *
 * The directory, the local headers and the .npy headers say some things twice; what they do not
 * agree on is refused, as programs that look at one of them would see another file.
 * Source: PKWARE's APPNOTE.TXT 6.3.10; NumPy's numpy/lib/_npyio_impl.py. */
#include "archive.hpp"
#include "inflate.hpp"
#include "json.hpp"

#include <umem/npy.h>
#include <umem/npy_c_array.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace umem_formats {
namespace {

enum : std::uint32_t {
  local_mark = 0x04034b50,
  entry_mark = 0x02014b50,
  end_mark = 0x06054b50,
  end64_mark = 0x06064b50,
  locator_mark = 0x07064b50
};
enum : std::size_t {
  local_size = 30,
  entry_size = 46,
  end_size = 22,
  end64_size = 56,
  locator_size = 20
};
enum : unsigned {
  encrypted = 1 | 1 << 6 | 1 << 13,
  sizes_behind = 1 << 3,
  patched = 1 << 5,
  utf8 = 1 << 11
};
constexpr unsigned last_version = 63; /* 6.3 of the format; later ones may mean something else */
enum : unsigned { stored = 0, deflated = 8 };
enum : unsigned { id_zip64 = 1, id_alignment = 0xD935 };
constexpr std::uint32_t most32 = 0xFFFFFFFF; /* stands for a number in the field of 64 bits */
constexpr std::uint64_t most_ratio = 1032;   /* of bytes that deflate makes of one */
constexpr std::size_t most_npy = 12 + 10000; /* bytes of a header that umem_npy_read_header reads */

/* Numbers and texts, one after the other. */
class Fields {
public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  template <class Number> Number take() {
    Number number;
    std::memcpy(&number, text(sizeof number).data(), sizeof number);
    return number;
  }
  std::uint16_t two() { return take<std::uint16_t>(); }
  std::uint32_t four() { return take<std::uint32_t>(); }
  std::uint64_t eight() { return take<std::uint64_t>(); }

  std::string_view text(std::size_t count) {
    if (bytes_.size() < count) refuse("a header of the zip file is cut off");
    std::string_view const found = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return found;
  }
  std::size_t left() const { return bytes_.size(); }

private:
  std::string_view bytes_;
};

/* ---- the directory ---- */

struct Directory {
  std::uint64_t offset, size, count;
  std::uint64_t end; /* offset of what follows it */
};

/* Replaces what the end of 64 bits says better; where: of the locator. */
void read_end64(Source const &source, std::uint64_t where, Directory &directory) {
  std::string const locator_text = source.read_text(where, locator_size);
  Fields locator(locator_text);
  locator.four();
  std::uint32_t const disk = locator.four();
  std::uint64_t const at = locator.eight();
  if (disk || locator.four() > 1) refuse("it is a part of a zip file of several files");
  if (where < end64_size || at > where - end64_size)
    refuse("the end of its directory is not where the zip file says");
  std::string const text = source.read_text(at, end64_size);
  Fields end(text);
  bool const is_end = end.four() == end64_mark;
  std::uint64_t const size = end.eight();
  if (!is_end || size < end64_size - 12 || size != where - at - 12)
    refuse("the end of its directory is not where the zip file says");
  end.four(); /* versions */
  std::uint64_t const disks = end.eight(), here = end.eight(), count = end.eight();
  if (disks || here != count) refuse("it is a part of a zip file of several files");
  std::uint64_t const length = end.eight(), offset = end.eight();
  if ((directory.count != 0xFFFF && directory.count != count) ||
      (directory.size != most32 && directory.size != length) ||
      (directory.offset != most32 && directory.offset != offset))
    refuse("both ends of its directory contradict each other");
  directory = {offset, length, count, at};
}

Directory find_directory(Source const &source) {
  std::uint64_t const length = std::min<std::uint64_t>(source.size, end_size + 0xFFFF);
  std::string const tail = source.read_text(source.size - length, length);
  for (std::size_t at = tail.size() < end_size ? 0 : tail.size() - end_size + 1; at-- > 0;) {
    Fields end(std::string_view(tail).substr(at));
    if (end.four() != end_mark) continue;
    unsigned const disks = end.two() + end.two();
    std::uint16_t const here = end.two(), count = end.two();
    std::uint32_t const size = end.four(), offset = end.four();
    if (end.two() != end.left()) continue; /* in a comment, perhaps */
    if (disks || here != count) refuse("it is a part of a zip file of several files");
    std::uint64_t const where = source.size - tail.size() + at;
    Directory directory = {offset, size, count, where};
    if (where >= locator_size &&
        Fields(source.read_text(where - locator_size, 4)).four() == locator_mark)
      read_end64(source, where - locator_size, directory);
    if (directory.size > directory.end || directory.offset != directory.end - directory.size)
      refuse("its directory is not where the zip file says");
    if (directory.size > most_header)
      refuse("its directory has more than %llu bytes",
             static_cast<unsigned long long>(most_header));
    return directory;
  }
  refuse("it is cut off, or no zip file: it has no end of a directory");
}

/* A file in the zip file. */
struct Entry {
  std::string name;     /* as it is stored */
  unsigned version = 0; /* that a reader must know, times 10 */
  unsigned flags = 0, method = 0;
  std::uint32_t checksum = 0;
  std::uint64_t packed = 0, size = 0; /* bytes, compressed and not */
  std::uint64_t local = 0;            /* offset of the local header */
  std::uint64_t begin = 0;            /* and of the bytes */

  std::string shown() const { return quoted(name); }
  bool is_folder() const { return !size && !name.empty() && name.back() == '/'; }
};

/* Takes numbers that do not fit 32 bits from the field for those of 64. */
void read_zip64(std::string_view extra, std::string const &shown,
                std::initializer_list<std::uint64_t *> numbers) {
  bool const wanted = std::any_of(numbers.begin(), numbers.end(),
                                  [](std::uint64_t *number) { return *number == most32; });
  for (Fields fields(extra); wanted && fields.left() > 0;) {
    unsigned const id = fields.two();
    Fields field(fields.text(fields.two()));
    if (id != id_zip64) continue;
    for (std::uint64_t *number : numbers)
      if (*number == most32) *number = field.eight();
    return;
  }
  if (wanted && std::none_of(numbers.begin(), numbers.end(),
                             [](std::uint64_t *number) { return *number == most32; }))
    refuse("%s has no sizes of 64 bits", shown.c_str());
}

Entry read_entry(Fields &fields) {
  Entry entry;
  if (fields.four() != entry_mark) refuse("its directory has an entry that is none");
  fields.two(); /* of the writer */
  entry.version = fields.two() & 0xFF;
  entry.flags = fields.two();
  entry.method = fields.two();
  fields.four(); /* time */
  entry.checksum = fields.four();
  entry.packed = fields.four();
  entry.size = fields.four();
  std::uint16_t const name = fields.two(), extra = fields.two(), comment = fields.two();
  unsigned const disk = fields.two();
  fields.text(6); /* attributes */
  entry.local = fields.four();
  entry.name = fields.text(name);
  if (disk && disk != 0xFFFF) refuse("it is a part of a zip file of several files");
  read_zip64(fields.text(extra), entry.shown(), {&entry.size, &entry.packed, &entry.local});
  fields.text(comment);
  return entry;
}

/* Finds where the bytes of an entry begin, and compares what its local header says. */
void read_local(Source const &source, std::uint64_t end, Entry &entry) {
  if (end < local_size || entry.local > end - local_size)
    refuse("%s has no local header in the zip file", entry.shown().c_str());
  std::string const header = source.read_text(entry.local, local_size);
  Fields fields(header);
  bool const is_local = fields.four() == local_mark;
  fields.two(); /* version */
  unsigned const flags = fields.two(), method = fields.two();
  fields.four(); /* time */
  std::uint32_t const checksum = fields.four();
  std::uint64_t packed = fields.four(), size = fields.four();
  std::uint64_t const name = fields.two(), extra = fields.two();
  entry.begin = entry.local + local_size + name + extra;
  if (!is_local || entry.begin > end || entry.packed > end - entry.begin)
    refuse("%s is not where the zip file says, or is cut off", entry.shown().c_str());
  std::string const rest = source.read_text(entry.local + local_size, name + extra);
  read_zip64(std::string_view(rest).substr(name), entry.shown(), {&size, &packed});
  bool const later = flags & sizes_behind;
  if (rest.compare(0, name, entry.name) != 0 || name != entry.name.size() ||
      method != entry.method || (flags ^ entry.flags) & (encrypted | patched | utf8) ||
      (!later && (checksum != entry.checksum || packed != entry.packed || size != entry.size)))
    refuse("both headers of %s in the zip file contradict each other", entry.shown().c_str());
}

void check_sizes(Entry const &entry) {
  if (entry.method == stored && entry.packed != entry.size)
    refuse("%s is stored, and has two different sizes", entry.shown().c_str());
  if (entry.method == deflated && entry.size / most_ratio > entry.packed)
    refuse("%s cannot have so many bytes: %llu of %llu compressed ones", entry.shown().c_str(),
           static_cast<unsigned long long>(entry.size),
           static_cast<unsigned long long>(entry.packed));
}

/* The entries in the order of their bytes. */
std::vector<Entry> read_entries(Source const &source) {
  Directory const directory = find_directory(source);
  std::string const text = source.read_text(directory.offset, directory.size);
  std::vector<Entry> entries;
  Fields fields(text);
  if (directory.count > directory.size / entry_size) refuse("its directory is cut off");
  entries.reserve(directory.count);
  for (std::uint64_t i = 0; i < directory.count; i++) {
    entries.push_back(read_entry(fields));
    read_local(source, directory.offset, entries.back());
    check_sizes(entries.back());
  }
  if (fields.left()) refuse("its directory has more entries than it says");
  std::sort(entries.begin(), entries.end(),
            [](Entry const &a, Entry const &b) { return a.local < b.local; });
  for (std::size_t i = 1; i < entries.size(); i++)
    if (entries[i].local < entries[i - 1].begin + entries[i - 1].packed)
      refuse("%s overlaps %s in the zip file", entries[i].shown().c_str(),
             entries[i - 1].shown().c_str());
  return entries;
}

/* ---- arrays ---- */

/* A name that is not flagged as UTF-8 is in the first character set of MS-DOS, code page 437. */
std::string from_cp437(std::string const &name) {
  static constexpr char16_t upper[] = u"ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║"
                                      u"╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
                                      u"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0";
  static_assert(sizeof upper / sizeof *upper == 128 + 1);
  std::string text;
  for (char const c : name) {
    unsigned const byte = static_cast<unsigned char>(c),
                   code = byte < 128 ? byte : upper[byte - 128];
    if (code < 0x80) {
      text += c;
    } else {
      if (code >= 0x800) text += static_cast<char>(0xE0 | code >> 12);
      text += static_cast<char>(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

constexpr std::string_view ending = ".npy";

/* The name of an array: without the ending of its file. */
std::string name_of(Entry const &entry) {
  bool const is_utf8 = entry.flags & utf8;
  if (is_utf8) json_string(entry.name); /* throws if it is none */
  std::string name = is_utf8 ? entry.name : from_cp437(entry.name);
  if (name.size() >= ending.size() &&
      name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
    name.erase(name.size() - ending.size());
  return name;
}

/* Why there is no header of an array; "": there is. */
std::string read_header(void *ctx, std::uintptr_t adr, std::uint64_t size, umemNpyHeader &header) {
  umemAttempt attempt; /* its failure is not one of this call */
  umemAttempt_begin(&attempt);
  umemStatusType const status = umem_npy_read_header(ctx, adr, size, &header);
  umemAttempt_end(&attempt);
  if (status == umemOK)
    return header.type ? "" : "umem has no elements of its type " + quoted(header.descr);
  if (status != umemValueError && status != umemTypeError)
    throw Recorded{umemAttempt_record(&attempt)};
  std::string const text = attempt.text, function = "umem_npy_read_header: ";
  return text.substr(text.compare(0, function.size(), function) == 0 ? function.size() : 0);
}

std::string read_stored_header(Source const &source, Packed const &packed, umemNpyHeader &header) {
  return read_header(source.ctx, source.begin + packed.offset, packed.size, header);
}

/* Inflates as much as a header can have, and reads it. */
std::string read_compressed_header(Source const &source, Packed const &packed,
                                   umemNpyHeader &header) {
  need_zlib();
  std::array<unsigned char, most_npy> bytes = {};
  Inflater inflater(source, packed);
  auto const most = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), packed.size));
  std::size_t have = std::min<std::size_t>(most, 12);
  inflater.read(bytes.data(), have);
  std::size_t const is_long = bytes[6] > 1;
  std::size_t length = bytes[8] | std::size_t(bytes[9]) << 8;
  if (is_long) length |= std::size_t(bytes[10]) << 16 | std::size_t(bytes[11]) << 24;
  std::size_t const wanted = std::min(most, 10 + 2 * is_long + length);
  if (wanted > have) inflater.read(bytes.data() + have, wanted - have);
  Host host;
  return read_header(host.get(), reinterpret_cast<std::uintptr_t>(bytes.data()), packed.size,
                     header);
}

void read_array(Member &member) {
  Packed &packed = *member.packed;
  Source const &source = *member.source;
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  header.big_endian = true; /* is read, too */
  member.offset = packed.offset;
  member.problem =
      (packed.compressed ? read_compressed_header : read_stored_header)(source, packed, header);
  if (!member.problem.empty()) return;
  member.big_endian = header.big_endian;
  member.type = header.type;
  member.shape.assign(header.shape, header.shape + header.rank);
  member.fortran_order = header.fortran_order && header.rank > 1;
  member.nbytes = header.nbytes;
  packed.header_bytes = header.offset;
  if (!packed.compressed) member.offset += header.offset;
}

Member member_of(Source const &source, Entry const &entry) {
  Member member;
  member.name = name_of(entry);
  member.source = &source;
  member.offset = entry.begin;
  if (entry.flags & encrypted)
    member.problem = "it is encrypted";
  else if (entry.flags & patched)
    member.problem = "it is a patch of other bytes";
  else if (entry.version > last_version)
    member.problem = "it needs version " + std::to_string(entry.version / 10) + "." +
                     std::to_string(entry.version % 10) + " of zip files";
  else if (entry.method != stored && entry.method != deflated)
    member.problem = "it is compressed by method " + std::to_string(entry.method) +
                     " of zip files; known are 0 (stored) and 8 (deflated)";
  if (!member.problem.empty()) return member;
  member.packed =
      Packed{entry.method == deflated, entry.begin, entry.packed, entry.size, entry.checksum, 0};
  try {
    read_array(member);
  } catch (Failure const &failure) {
    member.problem = failure.text;
  }
  return member;
}

/* ---- new files ---- */

template <class Number> void append(std::string &text, Number number) {
  static_assert(std::is_unsigned_v<Number>);
  text.append(reinterpret_cast<char const *>(&number), sizeof number);
}

template <class... Numbers> void append_two(std::string &text, Numbers... numbers) {
  (append(text, static_cast<std::uint16_t>(numbers)), ...);
}

/* A number of 32 bits, or what says that it is elsewhere. */
void append_four(std::string &text, std::uint64_t number) {
  append(text, static_cast<std::uint32_t>(std::min<std::uint64_t>(number, most32)));
}

bool is_ascii(std::string const &text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return !(c & 0x80); });
}

std::string npy_header(NewMember const &member) {
  umemArray *const array = member.array;
  int64_t const *const shape = umemArray_shape(array);
  try {
    std::string const type =
        umem::detail::npy_type_in(member.file_is_big ? umemOrderBig : umemOrderLittle,
                                  umem::detail::npy_type_of(umemArray_type(array)));
    return umem::detail::make_npy_header(type, umem::Shape(shape, shape + umemArray_rank(array)));
  } catch (umem::type_error const &failure) {
    fail(umemTypeError, "%s: %s", quoted(member.name).c_str(), failure.what());
  }
}

/* What both headers of a file have in common, from the version on. */
void append_common(std::string &text, NewMember const &member) {
  constexpr unsigned first_of_january_1980 = 1 << 5 | 1;
  append_two(text, member.size >= most32 ? 45u : 20u, is_ascii(member.name) ? 0u : unsigned(utf8),
             unsigned(stored), 0u, first_of_january_1980);
  append(text, member.checksum);
  append_four(text, member.size);
  append_four(text, member.size);
  append_two(text, member.name.size() + ending.size());
}

constexpr std::size_t checksum_at = 14; /* in a local header */

/* The local header of a file, which begins at this byte: its own bytes begin at a multiple of 64,
 * where they can be mapped. */
std::string local_header(NewMember const &member, std::uint64_t at) {
  std::string header, extra;
  append(header, std::uint32_t(local_mark));
  append_common(header, member);
  if (member.size >= most32) {
    append_two(extra, unsigned(id_zip64), 16u);
    append(extra, member.size);
    append(extra, member.size);
  }
  std::uint64_t const before = at + local_size + member.name.size() + ending.size();
  std::size_t const zeros = static_cast<std::size_t>(-(before + extra.size() + 6) % 64);
  append_two(extra, unsigned(id_alignment), 2 + zeros, 64u);
  extra.append(zeros, '\0');
  append_two(header, extra.size());
  return header.append(member.name).append(ending).append(extra);
}

/* Offset of the local header of a member that is laid out. */
std::uint64_t begin_of(NewMember const &member) { return member.offset - member.header.size(); }

void append_entry(std::string &directory, NewMember const &member) {
  std::string extra;
  std::uint64_t const begin = begin_of(member);
  if (member.size >= most32) append(extra, member.size), append(extra, member.size);
  if (begin >= most32) append(extra, begin);
  append(directory, std::uint32_t(entry_mark));
  append_two(directory, 3u << 8 | 45u); /* made by a system of kind 3, Unix */
  append_common(directory, member);
  append_two(directory, extra.empty() ? 0u : extra.size() + 4, 0u, 0u, 0u);
  append(directory, std::uint32_t(0600) << 16);
  append_four(directory, begin);
  directory.append(member.name).append(ending);
  if (!extra.empty()) append_two(directory, unsigned(id_zip64), extra.size());
  directory += extra;
}

void append_end(std::string &directory, std::uint64_t begin, std::uint64_t count) {
  std::uint64_t const size = directory.size();
  if (count >= 0xFFFF || begin >= most32 || size >= most32) {
    append(directory, std::uint32_t(end64_mark));
    append(directory, std::uint64_t(end64_size - 12));
    append_two(directory, 3u << 8 | 45u, 45u, 0u, 0u, 0u, 0u);
    append(directory, count);
    append(directory, count);
    append(directory, size);
    append(directory, begin);
    append(directory, std::uint32_t(locator_mark));
    append(directory, std::uint32_t(0));
    append(directory, begin + size);
    append(directory, std::uint32_t(1));
  }
  auto const short_count = static_cast<unsigned>(std::min<std::uint64_t>(count, 0xFFFF));
  append(directory, std::uint32_t(end_mark));
  append_two(directory, 0u, 0u, short_count, short_count);
  append_four(directory, size);
  append_four(directory, begin);
  append_two(directory, 0u);
}

} // namespace

bool is_npz(Source const &source) {
  std::array<std::uint32_t, 2> first = {};
  if (source.size < sizeof first) return false;
  source.read(0, first.data(), sizeof first);
  /* The second number of a header of safetensors is 0, as that has less than 4 GiB. */
  return (first[0] == local_mark && first[1] != 0) || first[0] == end_mark;
}

void read_npz(Source const &source, std::vector<Member> &members) {
  for (Entry const &entry : read_entries(source))
    if (!entry.is_folder()) members.push_back(member_of(source, entry));
}

std::uint64_t lay_out_npz(std::vector<NewMember> &members) {
  need_zlib();
  std::uint64_t end = 0;
  for (NewMember &member : members) {
    json_string(member.name); /* throws if it is not UTF-8 */
    if (member.name.size() + ending.size() > 0xFFFF)
      refuse("the name %s has too many bytes", quoted(member.name).c_str());
    std::string const npy = npy_header(member);
    member.size = npy.size() + umemArray_nbytes(member.array);
    member.header = local_header(member, end) + npy;
    member.checksum = checksum_of(npy);
    member.offset = end + member.header.size();
    if (__builtin_add_overflow(member.offset, umemArray_nbytes(member.array), &end))
      refuse("the arrays have more bytes than 64 bits can count");
  }
  return end;
}

std::string finish_npz(std::vector<NewMember> &members, std::uint64_t begin) {
  std::string directory;
  for (NewMember &member : members) {
    member.header.replace(checksum_at, sizeof member.checksum,
                          reinterpret_cast<char const *>(&member.checksum), sizeof member.checksum);
    append_entry(directory, member);
  }
  append_end(directory, begin, members.size());
  return directory;
}

} // namespace umem_formats
