/* new_file.h - a new file that gets its name when it is complete.
 *
 * Until then it has none where the file system allows that (O_TMPFILE, and /proc to name it later), so that
 * nothing stays when the process is killed; elsewhere it has a hidden one, ".umem-..." and a random number. Other
 * users cannot open the file before it is complete.
 *
 * Functions return 0 or an errno. Calls that a signal interrupts are made again. */
#ifndef UMEM_NEW_FILE_H
#define UMEM_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct umemNewFile {
  int fd;                  /* the owner of this struct closes it */
  int folder;              /* owned; negative for none */
  pid_t process;           /* that created the file */
  mode_t permissions;      /* of the complete file; until then 0600 */
  bool named;              /* it has its name */
  char name[NAME_MAX + 1]; /* in folder: what the file is to be called */
  char hidden[64];         /* in folder: what it is called now; empty while it has no name */
} umemNewFile;

/* Creates the file in file->folder, open for reading and writing, as file->fd, which is -1 after a failure.
 * folder and name are the caller's to set, and file->permissions to change; they are those that open would give. */
int umemNewFile_create(umemNewFile *file);

/* Gives a file without a name a hidden one, so that other processes of this user can open it. */
int umemNewFile_show(umemNewFile *file);

/* Sets the permissions of the complete file. The two functions below do so, too: call it before, to make them durable. */
int umemNewFile_complete(umemNewFile const *file);

/* Takes all permissions from others until then: for whoever has changed the access list of the file. */
int umemNewFile_protect(umemNewFile const *file);

/* Gives the file its name. EEXIST, with nothing changed, where something has that name. */
int umemNewFile_publish(umemNewFile *file);

/* Gives the file its name, which it takes from another file at one instant if there is one. After a failure
 * the file has no name. */
int umemNewFile_replace(umemNewFile *file);

/* Removes the name of umemNewFile_publish, if the file still has it, and this length. The name stays where the
 * file system cannot rename without replacing (RENAME_NOREPLACE). */
void umemNewFile_withdraw(umemNewFile *file, uint64_t length);

/* Removes a file that has got no name, and closes the folder. A forked child leaves the file of its parent
 * alone. The caller closes fd. */
void umemNewFile_end(umemNewFile *file);

#endif
