/* help.hpp - what the command line has, and the text of --help. */
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace umem::tool {

std::vector<CLI::App const *> commands_of(CLI::App const &app);

/* Options that --help shows; those without a group are hidden. */
std::vector<CLI::Option const *> options_of(CLI::App const &app, bool positional);

/* "-o", "--output" */
std::vector<std::string> spellings(CLI::Option const &option);

/* "-o, --output", and the name of a positional one. */
std::string words_of(CLI::Option const &option);

/* The name of the value; "" for a flag and for a positional option. */
std::string value_of(CLI::Option const &option);

/* What it is, with its default and the option that it needs. */
std::string help_of(CLI::Option const &option);

/* What may stand behind the command: "[OPTIONS] SRC DST". */
std::string arguments_of(CLI::App const &app);

/* The help of the command that was parsed last, in lines of at most columns. */
std::string help_text(CLI::App const &app, std::size_t columns);

} // namespace umem::tool
