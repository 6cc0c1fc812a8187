/* help.hpp - the text of --help. */
#pragma once

#include "command.hpp"

#include <cstddef>
#include <string>

namespace umem::tool {

/* The help of the command that was parsed last, in lines of at most columns. */
std::string help_text(Command const &program, std::size_t columns);

} // namespace umem::tool
