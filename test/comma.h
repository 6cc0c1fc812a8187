/* comma.h - a locale for tests: numbers have a comma for a point, and points between thousands, as
 * in German. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "temporary.h"

/* Sets the locale of the process. It need not be installed: localedef makes it in a folder of its
 * own. False where there is no localedef; the test is then left out. setlocale(LC_ALL, "C") ends
 * it. Only one thread calls it. */
static inline bool set_comma_locale(void) {
  char folder[512], command[4 * sizeof folder];
  temporary_name(folder, sizeof folder);
  snprintf(command, sizeof command,
           "mkdir '%s' && cd '%s' && printf 'LC_NUMERIC\\ndecimal_point \",\"\\n"
           "thousands_sep \".\"\\ngrouping 3;3\\nEND LC_NUMERIC\\n' >source && "
           "localedef -c -i ./source ./comma >log 2>&1; test -e comma/LC_NUMERIC",
           folder, folder);
  bool made = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 &&
              setlocale(LC_NUMERIC, "comma") != NULL;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  made = system(command) == 0 && made;
  unsetenv("LOCPATH");
  char text[16];
  snprintf(text, sizeof text, "%g", 1.5);
  return made && strcmp(text, "1,5") == 0;
}
