#include "new_text.hpp"

#include "failure.hpp"
#include "place.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>

namespace umem::tool {

/* Blocks follow one another in the file without gaps if their sizes are multiples of its
 * alignment. */
static constexpr std::size_t chunk = std::size_t(1) << 20;

NewText::NewText(std::string const &path) : path_(path) {
  if (umemHost_ctor(&ram_) != umemOK) throw Failure(reason());
  if (umemFile_replace(&file_, path.c_str()) != umemOK) {
    why_ = reason();
    umem_dtor(&file_);
  } else {
    cookie_io_functions_t const calls = {nullptr, write, nullptr, nullptr};
    stream_ = fopencookie(this, "w", calls);
    if (stream_) return;
    why_ = std::strerror(errno);
    umem_dtor(&file_);
  }
  umem_dtor(&ram_);
  throw Failure("cannot write " + path_ + ": " + why_);
}

NewText::~NewText() {
  if (stream_) std::fclose(stream_);
  umem_dtor(&file_);
  umem_dtor(&ram_);
}

bool NewText::write_pending(std::size_t nbytes) {
  if (!nbytes) return true;
  std::uintptr_t const adr = umem_alloc(&file_, nbytes);
  if (adr == umem_null(&file_) ||
      umem_copy_to(&ram_, reinterpret_cast<std::uintptr_t>(pending_.data()), &file_, adr, nbytes) !=
          umemOK) {
    why_ = reason();
    return false;
  }
  pending_.erase(0, nbytes);
  return true;
}

/* As fopencookie wants it: 0 is a failure, and nothing is thrown. */
ssize_t NewText::write(void *self, char const *bytes, std::size_t nbytes) {
  auto &text = *static_cast<NewText *>(self);
  if (!text.why_.empty() || Interrupt::signal()) return 0;
  try {
    text.pending_.append(bytes, nbytes);
    bool const is_written = text.write_pending(text.pending_.size() / chunk * chunk);
    return is_written ? static_cast<ssize_t>(nbytes) : 0;
  } catch (std::exception const &why) {
    text.why_ = "out of memory";
    return 0;
  }
}

void NewText::fail() {
  Interrupt::check();
  throw Failure("cannot write " + path_ + ": " + (why_.empty() ? std::strerror(errno) : why_));
}

void NewText::commit() {
  bool const is_well = !std::ferror(stream_);
  errno = 0;
  if (std::fclose(std::exchange(stream_, nullptr)) != 0 || !is_well ||
      !write_pending(pending_.size()))
    fail();
  Interrupt::check();
  if (umemFile_commit(&file_) != umemOK) {
    why_ = reason();
    fail();
  }
}

} // namespace umem::tool
