/// The GEMM of the autovec variants: C that compilers vectorise well, the same source for every ISA
/// level. Includers define the block, GEMM_ROWS by GEMM_COLS, so that its accumulators fit the
/// registers. They may define GEMM_ELEMENT, the type of the operands' elements, and GEMM_LOAD,
/// which makes a float of one: then packers convert, and A goes through gemm_autovec_widen().
///
/// Algorithm: B is packed into panels of GEMM_COLS columns as gemm.h has it. A block accumulates
/// over depth in an array of constant bounds, which compilers unroll, vectorise along the columns
/// and keep in registers.
///
/// Tail: the last block of rows overlaps the one before it and computes the same sums again, of
/// which only the new rows are stored; fewer rows than a block go one by one. Panels are padded
/// with zeros, and the block of a partial one goes through a buffer.
#include <stdbool.h>
#include <stddef.h>

#include "gemm.h"

#ifdef GEMM_ELEMENT
enum { GEMM_NARROW = 1 };
#else
#define GEMM_ELEMENT float
#define GEMM_LOAD(x) (x)
enum { GEMM_NARROW = 0 };
#endif

/// Converts `rows` rows of `count` elements.
static inline void gemm_autovec_widen(size_t rows, size_t count, const GEMM_ELEMENT *from,
                                      size_t from_stride, float *to, size_t to_stride) {
    for (size_t r = 0; r < rows; r++) {
        const GEMM_ELEMENT *restrict row = from + r * from_stride;
        float *restrict out = to + r * to_stride;
        for (size_t i = 0; i < count; i++) {
            out[i] = GEMM_LOAD(row[i]);
        }
    }
}

/// A block against a whole panel. Not inlined, so that its registers are its own: GCC 12 otherwise
/// keeps sums in memory in some callers.
__attribute__((noinline)) static void gemm_block_of_rows(size_t depth, const float *restrict a,
                                                         size_t a_stride,
                                                         const float *restrict panel,
                                                         float *restrict c, size_t c_stride) {
    float sum[GEMM_ROWS][GEMM_COLS];
    for (size_t r = 0; r < GEMM_ROWS; r++) {
        for (size_t j = 0; j < GEMM_COLS; j++) {
            sum[r][j] = 0.0f;
        }
    }
    for (size_t i = 0; i < depth; i++) {
        for (size_t r = 0; r < GEMM_ROWS; r++) {
            const float factor = a[r * a_stride + i];
#pragma omp simd
            for (size_t j = 0; j < GEMM_COLS; j++) {
                sum[r][j] += factor * panel[i * GEMM_COLS + j];
            }
        }
    }
    for (size_t r = 0; r < GEMM_ROWS; r++) {
        for (size_t j = 0; j < GEMM_COLS; j++) {
            c[r * c_stride + j] = sum[r][j];
        }
    }
}

/// One row against a whole panel.
static void gemm_one_row(size_t depth, const float *restrict a, const float *restrict panel,
                         float *restrict c) {
    float sum[GEMM_COLS] = {0.0f};
    for (size_t i = 0; i < depth; i++) {
#pragma omp simd
        for (size_t j = 0; j < GEMM_COLS; j++) {
            sum[j] += a[i] * panel[i * GEMM_COLS + j];
        }
    }
    for (size_t j = 0; j < GEMM_COLS; j++) {
        c[j] = sum[j];
    }
}

/// Computes C [rows, cols] = A * panel, or C += that with `add`, cols <= GEMM_COLS.
static void gemm_rows_by_panel(size_t rows, size_t cols, size_t depth, const float *a,
                               size_t a_stride, const float *panel, bool add, float *c,
                               size_t c_stride) {
    float buffer[GEMM_ROWS * GEMM_COLS];
    const bool direct = cols == GEMM_COLS && !add;
    const size_t height = rows >= GEMM_ROWS ? GEMM_ROWS : 1;
    for (size_t row = 0; row < rows; row += height) {
        const size_t first = row + height > rows ? rows - height : row;
        float *to = direct ? c + first * c_stride : buffer;
        const size_t to_stride = direct ? c_stride : GEMM_COLS;
        if (height == GEMM_ROWS) {
            gemm_block_of_rows(depth, a + first * a_stride, a_stride, panel, to, to_stride);
        } else {
            gemm_one_row(depth, a + first * a_stride, panel, to);
        }
        for (size_t r = row; !direct && r < first + height; r++) {
            const float *sum = buffer + (r - first) * GEMM_COLS;
            for (size_t j = 0; j < cols; j++) {
                c[r * c_stride + j] = sum[j] + (add ? c[r * c_stride + j] : 0.0f);
            }
        }
    }
}

/// Packs B [depth, cols].
static inline void gemm_autovec_pack(const GEMM_ELEMENT *b, size_t b_stride, size_t cols,
                                     size_t depth, float *packed) {
    for (size_t first = 0; first < cols; first += GEMM_COLS) {
        const size_t width = cols - first < GEMM_COLS ? cols - first : GEMM_COLS;
        for (size_t i = 0; i < depth; i++) {
            const GEMM_ELEMENT *restrict from = b + i * b_stride + first;
            float *restrict to = packed + first * depth + i * GEMM_COLS;
            for (size_t j = 0; j < GEMM_COLS; j++) {
                to[j] = j < width ? GEMM_LOAD(from[j]) : 0.0f;
            }
        }
    }
}

/// Packs B = alpha * transpose(bt), bt [cols, depth]: what S = Q * K^T asks for.
static inline void gemm_autovec_pack_transposed(const GEMM_ELEMENT *bt, size_t bt_stride,
                                                size_t cols, size_t depth, float alpha,
                                                float *packed) {
    for (size_t first = 0; first < cols; first += GEMM_COLS) {
        const size_t width = cols - first < GEMM_COLS ? cols - first : GEMM_COLS;
        const GEMM_ELEMENT *restrict from = bt + first * bt_stride;
        float *restrict to = packed + first * depth;
        for (size_t j = 0; j < width; j++) {
            for (size_t i = 0; i < depth; i++) {
                to[i * GEMM_COLS + j] = alpha * GEMM_LOAD(from[j * bt_stride + i]);
            }
        }
        for (size_t j = width; j < GEMM_COLS; j++) {
            for (size_t i = 0; i < depth; i++) {
                to[i * GEMM_COLS + j] = 0.0f;
            }
        }
    }
}
