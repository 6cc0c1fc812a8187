/* trace.cpp - umem trace. */
#include "commands.hpp"

#include <CLI/CLI.hpp>

namespace umem::tool {

void add_trace(CLI::App &) {}

}  // namespace umem::tool
