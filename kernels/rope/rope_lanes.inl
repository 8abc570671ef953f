/// rope, f32, over the vector of one ISA. Includers define MHA_ISA_NAME, MHA_KERNEL_SYMBOL and what
/// lanes.h asks for.
///
/// Algorithm: interleaved pairs stay in their lanes; each cosine and sine is loaded into both lanes
/// of its pair, and the neighbours change places for the second product. The halves of a split row
/// are two rows, of which one vector each is loaded before either is stored, as in place demands.
///
/// Past the caches x is fetched ahead. Where a cache has it that took up to 26 % longer (Zen 4).
///
/// Error: a product, and a fused multiply-add: gamma_2 of the products' magnitudes. Tail: see
/// lanes.h; the last element of an odd row is copied. Registers: 12 vectors at most.
#include "fetch.h"
#include "lanes.h"
#include "mha_kernel.h"

struct inputs {
    const float *x;
    const float *cosines;
    const float *sines;
};

static inline lanes rotate(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    const struct inputs *in = inputs;
    return lanes_rotate(lanes_load(in->x + i, n), lanes_load_twice(in->cosines + i / 2, n / 2),
                        lanes_load_twice(in->sines + i / 2, n / 2));
}

/// One vector of either half.
struct halves {
    lanes first;
    lanes second;
};

__attribute__((always_inline)) static inline struct halves rotate_halves(const struct inputs *in,
                                                                         size_t pairs, size_t i,
                                                                         size_t n) {
    const lanes a = lanes_hold(lanes_load(in->x + i, n));
    const lanes b = lanes_hold(lanes_load(in->x + pairs + i, n));
    const lanes c = lanes_hold(lanes_load(in->cosines + i, n));
    const lanes s = lanes_hold(lanes_load(in->sines + i, n));
    return (struct halves){lanes_fnma(b, s, lanes_mul(a, c)), lanes_fma(b, c, lanes_mul(a, s))};
}

__attribute__((always_inline)) static inline void store_halves(struct halves v, float *y,
                                                               size_t pairs, size_t i, size_t n) {
    lanes_store(y + i, v.first, n);
    lanes_store(y + pairs + i, v.second, n);
}

__attribute__((always_inline)) static inline void split_row(size_t pairs, const struct inputs *in,
                                                            float *y) {
    if (pairs < LANES) {
        if (pairs > 0) {
            store_halves(rotate_halves(in, pairs, 0, pairs), y, pairs, 0, pairs);
        }
        return;
    }
    struct halves last = {lanes_set(0), lanes_set(0)};
    if (pairs % LANES != 0) {
        last = rotate_halves(in, pairs, pairs - LANES, LANES);
    }
    size_t i = 0;
    for (; pairs - i >= 2 * LANES; i += 2 * LANES) {
        const struct halves v0 = rotate_halves(in, pairs, i, LANES);
        const struct halves v1 = rotate_halves(in, pairs, i + LANES, LANES);
        store_halves(v0, y, pairs, i, LANES);
        store_halves(v1, y, pairs, i + LANES, LANES);
    }
    if (pairs - i >= LANES) {
        store_halves(rotate_halves(in, pairs, i, LANES), y, pairs, i, LANES);
        i += LANES;
    }
    if (i < pairs) {
        store_halves(last, y, pairs, pairs - LANES, LANES);
    }
}

__attribute__((always_inline)) static inline void rotate_row(bool half, size_t dim,
                                                             const struct inputs *in, float *y) {
    const size_t pairs = dim / 2;
    if (half) {
        split_row(pairs, in, y);
    } else {
        lanes_span(rotate, in, 0, 2 * pairs, y);
    }
    if (dim % 2 != 0) {
        y[dim - 1] = in->x[dim - 1];
    }
}

#ifdef LANES_PAST_CACHES
/// Longest row that is put together in L1 where lines hold parts of others, too.
enum { ROOM = 1024 };

/// The halves of a row whose halves are whole lines.
__attribute__((always_inline)) static inline void split_lines(size_t pairs, const struct inputs *in,
                                                              float *y) {
    for (size_t i = 0; i < pairs; i += LANES_LINE) {
        lanes first[LANES_LINE / LANES], second[LANES_LINE / LANES];
        for (size_t j = 0; j < LANES_LINE / LANES; j++) {
            const struct halves v = rotate_halves(in, pairs, i + j * LANES, LANES);
            first[j] = v.first;
            second[j] = v.second;
        }
        lanes_stream_line(y + i, first);
        lanes_stream_line(y + pairs + i, second);
    }
}

static inline lanes take(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    return lanes_load((const float *)inputs + i, n);
}

/// rotate_row(), past the caches.
__attribute__((always_inline)) static inline void stream_row(bool half, size_t dim,
                                                             const struct inputs *in, float *y,
                                                             struct lanes_out *out) {
    const bool lines = dim % ((half ? 2 : 1) * (size_t)LANES_LINE) == 0 &&
                       (uintptr_t)y % (LANES_LINE * sizeof(*y)) == 0;
    if (lines && half) {
        split_lines(dim / 2, in, y);
    } else if (lines) {
        lanes_row(rotate, in, 0, dim, y, out);
    } else if (dim <= ROOM) {
        float room[ROOM];
        rotate_row(half, dim, in, room);
        lanes_row(take, room, 0, dim, y, out);
    } else {
        rotate_row(half, dim, in, y);
    }
}

/// Fetches the row of x, `dim` >= 1 wide, that is `bytes` behind this one; of rows longer than that
/// none. There need be none.
__attribute__((always_inline)) static inline void fetch_row(const enum fetch_into into,
                                                            size_t bytes, const float *x,
                                                            size_t stride, size_t dim) {
    const size_t rows = bytes / sizeof(*x) / dim;
    if (rows > 0) {
        fetch_bytes(into, dim * sizeof(*x),
                    (const void *)((uintptr_t)x + rows * stride * sizeof(*x)));
    }
}
#endif

static void run(const struct mha_rope_args *args, void *workspace) {
    (void)workspace;
    struct lanes_out out = {0};
    for (size_t r = 0; r < args->rows; r++) {
        const struct inputs in = {(const float *)args->x + r * args->x_stride,
                                  args->cos + r * args->angle_stride,
                                  args->sin + r * args->angle_stride};
        float *y = args->y + r * args->y_stride;
#ifdef LANES_PAST_CACHES
        fetch_row(FETCH_INTO_L2, FETCH_FAR_BYTES, in.x, args->x_stride, args->head_dim);
        fetch_row(FETCH_INTO_L1, FETCH_SOON_BYTES, in.x, args->x_stride, args->head_dim);
        stream_row(args->half, args->head_dim, &in, y, &out);
#else
        rotate_row(args->half, args->head_dim, &in, y);
#endif
    }
    lanes_done(&out);
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "rope_f32_" MHA_ISA_NAME "_" LANES_TAG,
    .op = "rope",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = LANES_TAG,
    .summary = LANES_SUMMARY,
    .run = {.rope = run},
    .step = LANES_STEP,
    .flags = MHA_FLAG_IN_PLACE,
};
