/* inflate.hpp - compressed bytes and checksums, as zip files have them, by zlib. */
#ifndef UMEM_FORMATS_INFLATE_HPP
#define UMEM_FORMATS_INFLATE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace umem_formats {

class Source;
struct Packed;

/* Throws a Failure if the component was built without zlib. */
void need_zlib();

/* The CRC-32 of bytes that follow others, whose own is before; 0 for none. */
std::uint32_t checksum_of(std::uint32_t before, void const *bytes, std::size_t nbytes);
inline std::uint32_t checksum_of(std::string_view text) {
  return checksum_of(0, text.data(), text.size());
}

/* The CRC-32 of bytes of which the second part has so many. */
std::uint32_t joined_checksums(std::uint32_t first, std::uint32_t second, std::uint64_t nbytes);

/* Compressed bytes of a source, one after the other. */
class Inflater {
public:
  Inflater(Source const &source, Packed const &packed);
  Inflater(Inflater const &) = delete;
  Inflater &operator=(Inflater const &) = delete;
  ~Inflater();

  /* The next count bytes, of which there are so many. Throws a Failure for damaged ones. */
  void read(void *to, std::size_t count);

  /* Reads what is left. Throws a Failure if that is not as long as packed says, or the checksum is
   * another one. */
  void finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace umem_formats

#endif
