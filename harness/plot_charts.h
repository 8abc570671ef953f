/// The images that `mhabench plot` makes: what is in them. How they look stands in plots/*.gp.
#ifndef MHA_PLOT_CHARTS_H
#define MHA_PLOT_CHARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "results.h"

/// Width of every image in pixels: what a page or a review shows without scaling.
enum { PLOT_WIDTH = 800 };

/// One run of the command.
struct plot {
    const struct result *result;
    const char *out;      ///< Folder of the images.
    char work[PATH_MAX];  ///< Private folder inside `out`, of data files and unfinished images.
    char scripts[PATH_MAX];
    char subtitle[256];  ///< Machine and date.
    size_t drawn;        ///< Images finished, each in both formats.
    int code;            ///< Set when something failed; nothing more is drawn then.
};

/// Opens a file for gnuplot in the private folder; NULL after a message, with `code` set.
FILE *plot_open(struct plot *plot, const char *name);

/// Closes it; when anything could not be written, prints a line and sets `code`.
void plot_close(struct plot *plot, FILE *file);

/// Writes `name = '<text>'` with the quotes that gnuplot wants.
void plot_set_text(FILE *parameters, const char *name, const char *text);

/// Writes a column of text in a data file, in quotes.
void plot_column_text(FILE *data, const char *text);

/// Runs a script over the private folder's "parameters.gp", and moves the images into place as
/// <name>.svg and <name>.png. Prints their paths.
void plot_render(struct plot *plot, const char *script, const char *name);

/// Draws measured ceilings as roofs and cases as points, for each number of threads.
void plot_rooflines(struct plot *plot);

/// Draws a kernel's rate over heads and head_dim, for each kernel with a grid of at least 2 x 2.
void plot_heat_maps(struct plot *plot);

/// Draws the kernels of a problem side by side, for each problem with at least two.
void plot_bars(struct plot *plot);

#endif
