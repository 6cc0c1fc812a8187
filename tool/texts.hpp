/* texts.hpp - manual pages and completions, made of the command line that the program knows
 * itself. */
#pragma once

#include "command.hpp"

#include <string>

namespace umem::tool {

/* Writes man1/umem.1 and a page for each command, bash/umem and zsh/_umem below folder. Throws
 * Failure. */
void write_texts(Command const &program, std::string const &folder);

std::string man_page(Command const &program,
                     Command const *command); /* NULL: that of the program */
std::string bash_completion(Command const &program);
std::string zsh_completion(Command const &program);

} // namespace umem::tool
