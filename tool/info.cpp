/* info.cpp - umem info. */
#include "commands.hpp"

#include <CLI/CLI.hpp>

namespace umem::tool {

void add_info(CLI::App &) {}

} // namespace umem::tool
