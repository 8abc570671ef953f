/// Kernels of bf16 and f16: right ones, and what goes wrong with two bytes in place of four.
#include <math.h>

#include "faults.h"
#include "widen.h"

/// An entry of kernel <op>_<dtype>_scalar_<tag>, whose function is <op>_<dtype>_<tag>.
#define NARROW(op_, dtype_, tag_, ...)                                        \
    {                                                                         \
        &(const struct mha_kernel){.name = #op_ "_" #dtype_ "_scalar_" #tag_, \
                                   .op = #op_,                                \
                                   .dtype = #dtype_,                          \
                                   .isa = "scalar",                           \
                                   .tag = #tag_,                              \
                                   .summary = "for the tests of the tester",  \
                                   .run = {.op_ = op_##_##dtype_##_##tag_},   \
                                   __VA_ARGS__},                              \
            ""                                                                \
    }

typedef float load_fn(uint16_t bits);

/// Rounds to bf16: to the nearest, ties to even, as conversions do; NaN stays one.
static float to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return isnan(x) ? x : widen_bf16((uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
}

static float same(float x) {
    return x;
}

/// scores = factor * sum of q and round(scale * k).
static void qk_narrow(const struct mha_qk_args *args, load_fn *load, float scale,
                      float (*rounded)(float), float factor) {
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const uint16_t *q =
                (const uint16_t *)args->q + h * args->q_head_stride + r * args->q_stride;
            float *s = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const uint16_t *k = (const uint16_t *)args->k + j * args->k_stride;
                float sum = 0;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += load(q[i]) * rounded(scale * load(k[i]));
                }
                s[j] = factor * sum;
            }
        }
    }
}

static void qk_bf16_right(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, widen_bf16, 1, same, args->scale);
}

static void qk_f16_right(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, widen_f16, 1, same, args->scale);
}

/// Folds the scale into K and rounds that to bf16.
static void qk_bf16_scale_rounded(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, widen_bf16, args->scale, to_bf16, 1);
}

/// Adds up in bf16.
static void qk_bf16_sum_rounded(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, widen_bf16, 1, same, args->scale);
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t i = 0; i < args->rows * args->seq_kv; i++) {
            float *s = args->s + h * args->s_head_stride + i / args->seq_kv * args->s_stride +
                       i % args->seq_kv;
            *s = to_bf16(*s);
        }
    }
}

/// Takes elements by twos, the last one of an odd row with what comes behind it.
static void qk_bf16_reads_pair(const struct mha_qk_args *args, void *memory) {
    qk_bf16_right(args, memory);
    const size_t last = args->seq_kv > 0 ? args->seq_kv - 1 : 0;
    const uint16_t *k = (const uint16_t *)args->k + last * args->k_stride;
    volatile uint16_t seen = 0;
    for (size_t i = 0; args->seq_kv > 0 && i < args->head_dim; i += 2) {
        seen = k[i + 1];
    }
    (void)seen;
}

/// Counts the stride in pairs of elements.
static void qk_bf16_even_stride(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args wrong = *args;
    wrong.k_stride = args->k_stride / 2 * 2;
    qk_bf16_right(&wrong, memory);
}

/// Takes f16 for bf16.
static void qk_f16_as_bf16(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, widen_bf16, 1, same, args->scale);
}

/// Takes what is below the smallest normal f16 for zero.
static float flushed(uint16_t bits) {
    return bits & 0x7c00u ? widen_f16(bits) : 0;
}

static void qk_f16_flushes(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, flushed, 1, same, args->scale);
}

/// Knows no exponent that is not a number's.
static float only_numbers(uint16_t bits) {
    const float sign = bits & 0x8000u ? -1.0f : 1.0f;
    const int exponent = bits >> 10 & 31;
    const float fraction = (float)(bits & 0x3ffu);
    return sign * (exponent == 0 ? ldexpf(fraction, -24) : ldexpf(1024 + fraction, exponent - 25));
}

static void qk_f16_no_infinity(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    qk_narrow(args, only_numbers, 1, same, args->scale);
}

/// o = sum of p * v, without the last `dropped` keys where their number is odd.
static void pv_narrow(const struct mha_pv_args *args, load_fn *load, size_t dropped,
                      float (*rounded)(float)) {
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
            const size_t odd = (span.end - span.begin) % 2;
            const uint16_t *p =
                (const uint16_t *)args->p + h * args->p_head_stride + r * args->p_stride;
            float *o = args->o + h * args->o_head_stride + r * args->o_stride;
            for (size_t i = 0; i < args->head_dim; i++) {
                float sum = 0;
                for (size_t j = span.begin; j < span.end - odd * dropped; j++) {
                    const uint16_t *v = (const uint16_t *)args->v + j * args->v_stride;
                    sum += load(p[j]) * load(v[i]);
                }
                o[i] = rounded(sum);
            }
        }
    }
}

static void pv_bf16_right(const struct mha_pv_args *args, void *memory) {
    (void)memory;
    pv_narrow(args, widen_bf16, 0, same);
}

/// Stores its sums as bf16.
static void pv_bf16_sum_rounded(const struct mha_pv_args *args, void *memory) {
    (void)memory;
    pv_narrow(args, widen_bf16, 0, to_bf16);
}

/// Takes keys by twos and forgets the one that is left.
static void pv_bf16_odd_key(const struct mha_pv_args *args, void *memory) {
    (void)memory;
    pv_narrow(args, widen_bf16, 1, same);
}

/// Takes keys by twos, and an odd number's last with the weight that stands behind its row, times
/// zero.
static void pv_bf16_adds_gap(const struct mha_pv_args *args, void *memory) {
    pv_bf16_right(args, memory);
    for (size_t r = 0; r + 1 < args->rows && args->p_stride > args->seq_kv; r++) {
        const uint16_t *p = (const uint16_t *)args->p + r * args->p_stride;
        args->o[r * args->o_stride] += widen_bf16(p[args->seq_kv]) * 0.0f;
    }
}

/// Sum of q and what `keyed` makes of scale * k.
static float narrow_score(const struct mha_sdpa_args *args, load_fn *load, float (*keyed)(float),
                          const uint16_t *q, size_t key) {
    const uint16_t *k = (const uint16_t *)args->k + key * args->k_stride;
    float sum = 0;
    for (size_t i = 0; i < args->head_dim; i++) {
        sum += load(q[i]) * keyed(args->scale * load(k[i]));
    }
    return sum;
}

/// Softmax of one row's scores, then the values; `rounded` makes what the values are multiplied by
/// of a weight.
static void sdpa_narrow_row(const struct mha_sdpa_args *args, load_fn *load, float (*keyed)(float),
                            float (*rounded)(float), size_t head, size_t r) {
    const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
    const uint16_t *q = (const uint16_t *)args->q + head * args->q_head_stride + r * args->q_stride;
    float *o = args->o + head * args->o_head_stride + r * args->o_stride;
    float largest = -INFINITY, total = 0;
    for (size_t i = 0; i < args->head_dim; i++) {
        o[i] = 0;
    }
    for (size_t j = span.begin; j < span.end; j++) {
        largest = fmaxf(largest, narrow_score(args, load, keyed, q, j));
    }
    for (size_t j = span.begin; j < span.end; j++) {
        const uint16_t *v = (const uint16_t *)args->v + j * args->v_stride;
        const float reference = isinf(largest) && largest < 0 ? 0 : largest;
        const float weight = expf(narrow_score(args, load, keyed, q, j) - reference);
        total += weight;
        for (size_t i = 0; i < args->head_dim; i++) {
            o[i] += rounded(weight) * load(v[i]);
        }
    }
    for (size_t i = 0; i < args->head_dim; i++) {
        o[i] = total == 0 ? 0 : o[i] / total;
    }
}

#define SDPA_NARROW(dtype, tag, load, keyed, rounded)                                    \
    static void sdpa_##dtype##_##tag(const struct mha_sdpa_args *args, void *memory) {   \
        (void)memory;                                                                    \
        for (size_t i = 0; i < args->heads * args->rows; i++) {                          \
            sdpa_narrow_row(args, load, keyed, rounded, i / args->rows, i % args->rows); \
        }                                                                                \
    }

SDPA_NARROW(bf16, right, widen_bf16, same, same)
SDPA_NARROW(f16, right, widen_f16, same, same)
SDPA_NARROW(bf16, scale_rounded, widen_bf16, to_bf16, same)
SDPA_NARROW(bf16, weights_rounded, widen_bf16, same, to_bf16)
SDPA_NARROW(f16, flushes, flushed, same, same)

const struct mha_library_entry narrow_faults[] = {
    NARROW(qk, bf16, scale_rounded, .flags = 0),
    NARROW(qk, bf16, sum_rounded, .flags = 0),
    NARROW(qk, bf16, reads_pair, .flags = 0),
    NARROW(qk, bf16, even_stride, .flags = 0),
    NARROW(qk, f16, as_bf16, .flags = 0),
    NARROW(qk, f16, flushes, .flags = 0),
    NARROW(qk, f16, no_infinity, .flags = 0),
    NARROW(pv, bf16, sum_rounded, .flags = 0),
    NARROW(pv, bf16, odd_key, .flags = 0),
    NARROW(pv, bf16, adds_gap, .flags = 0),
    NARROW(sdpa, bf16, scale_rounded, .flags = 0),
    NARROW(sdpa, bf16, weights_rounded, .flags = 0),
    NARROW(sdpa, f16, flushes, .flags = 0),
    // Last, so that they run after the kernels that go wrong.
    NARROW(qk, bf16, right, .flags = 0),
    NARROW(qk, f16, right, .flags = 0),
    NARROW(pv, bf16, right, .flags = 0),
    NARROW(sdpa, bf16, right, .flags = 0),
    NARROW(sdpa, f16, right, .flags = 0),
};
const size_t narrow_fault_count = sizeof(narrow_faults) / sizeof(narrow_faults[0]);
