/// A problem: what is computed, on which shape. A case: a problem, a kernel and a thread count.
#ifndef MHA_PROBLEM_H
#define MHA_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

#include "element.h"
#include "mha_kernel.h"

enum cache_state {
    CACHE_HOT,   ///< The same buffers in every iteration.
    CACHE_COLD,  ///< Rotates through copies larger than the last-level cache.
};

/// How a layer tells its tokens' places.
enum position_kind {
    POSITION_NONE,
    POSITION_SINUSOID,  ///< Added to the embeddings.
    POSITION_LEARNED,   ///< Added to the embeddings.
    POSITION_ROPE,      ///< Queries and keys are rotated.
    POSITION_ALIBI,     ///< Added to the scores.
    POSITION_T5,        ///< Added to the scores.
};

struct position {
    enum position_kind kind;
    bool half;    ///< POSITION_ROPE: pairs are i and i + head_dim/2, not 2i and 2i + 1.
    double base;  ///< POSITION_ROPE: > 1, else 0.
    bool causal;  ///< POSITION_T5: buckets look back only.
};

/// The base of RoPE where none is given: Su et al. 2021, section 3.4.2.
#define ROPE_BASE 10000.0

/// Largest base that an option takes; models' are below 10^9.
#define ROPE_BASE_MAX 1000000000000u

/// One problem. All variants of a problem share its inputs and its oracle result.
struct problem {
    const char *op;     ///< The driver's name; points to static storage.
    const char *dtype;  ///< "f32", "bf16", "f16"; static storage.
    struct mha_shape shape;
    enum mha_mask_kind mask;
    size_t window;  ///< MHA_MASK_WINDOW only, else 0.
    enum cache_state cache;
    struct position position;
    /// Class of the input data; static storage. NULL: what the command takes by itself: run and ab
    /// the op's first one, check all that the op has.
    const char *data;
};

/// Longest case name, with its final zero.
enum { CASE_NAME_BYTES = 320 };

/// Writes the case name:
/// op/dtype/isa_tag/batch:1/heads:12[/kv_heads:4]/head_dim:64/seq_q:128/seq_kv:128[/mask:causal]
/// [/position:rope:half][/cache:cold][/data:jump]/threads:2, every axis that is not at its default
/// in this fixed order.
void problem_case_name(char name[CASE_NAME_BYTES], const struct problem *problem, const char *isa,
                       const char *tag, int threads);

/// Gets the mask of one sequence of the batch, as kernels take it. Under MHA_MASK_LENGTHS sequence
/// b of n has seq_kv (2 b + 1) / (2 n) valid keys: every batch has short and long ones, always the
/// same.
struct mha_mask problem_mask(const struct problem *problem, size_t batch);

/// Gets the mask as an option spells it ("none", "causal", "lengths", "window:128").
void problem_mask_text(char text[32], const struct problem *problem);

/// Largest window that a mask may have: as long as the longest sequence that an option takes.
enum { WINDOW_MAX = 1 << 24 };

/// Sets mask and window from what problem_mask_text() writes; false when it is no mask.
bool problem_mask_parse(struct problem *problem, const char *text);

/// Gets the position encoding as an option spells it: none, sinusoid, learned, rope[:half][:BASE],
/// alibi, t5[:causal].
void problem_position_text(char text[32], const struct problem *problem);

/// Sets the position encoding from what problem_position_text() writes; false when it is none.
bool problem_position_parse(struct problem *problem, const char *text);

/// Gets "hot" or "cold".
const char *problem_cache_text(enum cache_state cache);

/// Sets the cache state from "hot" or "cold"; false when it is neither.
bool problem_cache_parse(struct problem *problem, const char *text);

/// Gets the type of the problem's inputs; its results are floats whatever they are.
enum element problem_element(const struct problem *problem);

/// Writes the selection options that name exactly this problem, e.g.
/// "--op qk --batch 1 --heads 12 --kv-heads 12 --head-dim 64 --seq-q 128 --seq-kv 128 --mask none".
void problem_options(char *text, size_t size, const struct problem *problem);

/// Writes them without those of the shape.
void problem_options_unshaped(char *text, size_t size, const struct problem *problem);

/// Compares the data classes as strcmp() does; the default comes first.
int problem_compare_data(const struct problem *a, const struct problem *b);

bool problem_equal(const struct problem *a, const struct problem *b);

#endif
