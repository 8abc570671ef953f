/// `mhabench plot RESULT.json --out DIR`: images of a result file, drawn by gnuplot.
#ifndef MHA_CMD_PLOT_H
#define MHA_CMD_PLOT_H

#include "options.h"

/// Draws <kind>-*.svg and .png into options->out (the current folder when NULL) and prints their
/// paths on stdout, one per line. Tells on stderr which kind of image has nothing to show and why.
/// Returns EXIT_USAGE when the file cannot be read, gnuplot is lacking or fails, the folder cannot
/// be written, or no image was drawn at all.
int cmd_plot(const struct options *options);

#endif
