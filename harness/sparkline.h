/// A row of small bars: the shape of a series in one line of text.
#ifndef MHA_SPARKLINE_H
#define MHA_SPARKLINE_H

#include <stdbool.h>
#include <stddef.h>

/// Draws one bar per value between the least and the greatest one; a value that is not finite
/// leaves a gap. `unicode`: block elements (U+2581 to U+2588) in UTF-8, else ASCII. To be freed.
char *sparkline(const double *values, size_t count, bool unicode);

/// Tells whether `fd` is a terminal and the environment's locale says that it shows UTF-8.
bool sparkline_unicode(int fd);

#endif
