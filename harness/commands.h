/// The commands. Each takes parsed options and returns the program's exit code.
#ifndef MHA_COMMANDS_H
#define MHA_COMMANDS_H

#include "machine.h"
#include "options.h"

int cmd_list(const struct options *options, const struct machine *machine);
int cmd_check(const struct options *options, const struct machine *machine);
int cmd_run(const struct options *options, const struct machine *machine);
int cmd_machine(const struct options *options, const struct machine *machine);

int cmd_ab(const struct options *options, const struct machine *machine);
int cmd_compare(const struct options *options);
int cmd_report(const struct options *options);
int cmd_history(const struct options *options);
int cmd_attend(const struct options *options, const struct machine *machine);
int cmd_study(const struct options *options, const struct machine *machine);

/// Tells whether escape codes may be written to `fd` (--color, NO_COLOR, a terminal).
bool commands_color(const struct options *options, int fd);

#endif
