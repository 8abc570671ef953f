/// The worker's side of `mhabench attend`: X and W of a head through the kernels of qkv_proj, qk
/// and softmax, by the ops' own drivers and judged by their oracles.
///
/// Job:    "tokens": [...], "causal", "heads": [name, ...], "kernels": [name of each step]
/// Events: {"event": "start", "head", "step", "what"} before a kernel runs;
///         {"event": "step", "head", "step", "verdict", "reason"} when it has;
///         {"event": "weights", "head", "weights": [[...], ...]} when all have.
#include "attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_guard.h"
#include "attend_heads.h"
#include "buffers.h"
#include "data.h"
#include "diag.h"
#include "oracle.h"
#include "protocol.h"
#include "team.h"
#include "worker.h"

const char *const attend_ops[ATTEND_STEPS] = {"qkv_proj", "qk", "softmax"};

/// One head under way.
struct attending {
    const struct worker *worker;
    const struct attend_head *head;
    json_int_t index;  ///< Of the head in the job.
    struct problem problem;
    struct buffer x, w, projected, scores, weights;
};

static void send_error(const char *text) {
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:s}", "event", "error", "text", text));
    _exit(EXIT_USAGE);
}

/// Maps what a step writes, poisoned.
static struct tensor *make_output(struct buffer *buffer, const struct tensor_shape *shape) {
    if (!buffer_make(buffer, shape, &layout_dense)) {
        send_error("no memory for the tensors of a head");
    }
    buffer_poison(buffer);
    return &buffer->tensor;
}

/// Runs one step's kernel over `tensors`, the last of which is that of `out`, and judges what it
/// wrote.
static void run_step(struct attending *a, size_t step, const struct tensor *tensors,
                     struct buffer *out) {
    const char *name =
        json_string_value(json_array_get(json_object_get(a->worker->job, "kernels"), step));
    const struct loaded_kernel *loaded = library_find(&a->worker->table, name);
    const struct op_driver *driver = op_find(attend_ops[step]);
    const struct tensor *copies[1] = {tensors};
    struct team_case c;
    struct oracle oracle;
    struct judgement j = {0};
    char text[600];
    const struct mha_mask mask = problem_mask(&a->problem, 0);
    const char *why = "the kernel does not take this shape";
    a->problem.op = attend_ops[step];
    if (loaded->kernel->supports && !loaded->kernel->supports(&a->problem.shape, &mask, &why)) {
        snprintf(text, sizeof(text), "%s: %s; take another with --with %s=KERNEL", name, why,
                 attend_ops[step]);
        send_error(text);
    }
    snprintf(text, sizeof(text), "%s: %s", a->head->name, name);
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:I, s:I, s:s}", "event", "start", "head",
                                             a->index, "step", (json_int_t)step, "what", text));
    if (!team_case_make(&c, driver, loaded->kernel, &a->problem, 1, 1, copies, 0, true, text,
                        sizeof(text))) {
        send_error(text);
    }
    c.watched = true;
    abi_guard_open_heap();
    team_case_call(&c, 0);
    abi_guard_check_heap();
    team_case_inspect(&c);
    if (!oracle_make(&oracle, driver, &a->problem, tensors, data_class_find("normal"),
                     a->worker->seed, 1)) {
        send_error("no memory for the oracle");
    }
    oracle_judge(&oracle, &out->tensor, 1, &j);
    oracle_free(&oracle);
    // A constant may well be right here: a text of one word has one weight.
    const bool wrong = j.verdict == VERDICT_FAILED;
    const bool stray = c.stray[0] != '\0' || !buffer_intact(out, c.stray, sizeof(c.stray));
    protocol_send(
        WORKER_EVENT_FD,
        json_pack("{s:s, s:I, s:I, s:s, s:s}", "event", "step", "head", a->index, "step",
                  (json_int_t)step, "verdict",
                  verdict_text(wrong || stray ? VERDICT_FAILED : VERDICT_PASSED), "reason",
                  stray   ? c.stray
                  : wrong ? j.reason
                          : ""));
    team_case_free(&c);
}

static void send_weights(const struct attending *a) {
    const struct tensor *t = &a->weights.tensor;
    json_t *rows = json_array();
    for (size_t r = 0; r < t->shape.rows; r++) {
        json_t *row = json_array();
        for (size_t c = 0; c < t->shape.cols; c++) {
            json_array_append_new(row, protocol_real((double)tensor_row(t, 0, r)[c]));
        }
        json_array_append_new(rows, row);
    }
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:I, s:o}", "event", "weights", "head",
                                             a->index, "weights", rows));
}

static void do_head(struct attending *a, const struct string_list *tokens) {
    struct tensor_shape project[OP_TENSORS_MAX], score[OP_TENSORS_MAX], weigh[OP_TENSORS_MAX];
    const size_t width = a->head->width;
    a->problem.shape = (struct mha_shape){1, 1, 1, tokens->count, tokens->count, width};
    op_find(attend_ops[0])->tensors(&a->problem, project);
    op_find(attend_ops[1])->tensors(&a->problem, score);
    op_find(attend_ops[2])->tensors(&a->problem, weigh);
    struct tensor projection[3] = {*make_output(&a->x, &project[0]),
                                   *make_output(&a->w, &project[1]),
                                   *make_output(&a->projected, &project[2])};
    attend_head_fill(a->head, tokens, &projection[0], &projection[1]);
    buffer_protect(&a->x, true);
    buffer_protect(&a->w, true);
    run_step(a, 0, projection, &a->projected);
    buffer_protect(&a->projected, true);
    // Q and K are the first columns of what the projection wrote; of one head, a plane each.
    struct tensor scoring[3] = {projection[2], projection[2], *make_output(&a->scores, &score[2])};
    scoring[0].shape = score[0];
    scoring[1].shape = score[1];
    scoring[1].data = (float *)scoring[1].data + width;
    run_step(a, 1, scoring, &a->scores);
    buffer_protect(&a->scores, true);
    struct tensor weighing[2] = {scoring[2], *make_output(&a->weights, &weigh[1])};
    weighing[0].shape = weigh[0];
    run_step(a, 2, weighing, &a->weights);
    send_weights(a);
    struct buffer *const all[] = {&a->x, &a->w, &a->projected, &a->scores, &a->weights};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        buffer_free(all[i]);
    }
}

void worker_attend(struct worker *worker) {
    const json_t *heads = json_object_get(worker->job, "heads");
    const json_t *words = json_object_get(worker->job, "tokens");
    struct string_list tokens = {0};
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        string_list_add(&tokens, word, strlen(word));
    }
    for (size_t i = 0; i < json_array_size(heads); i++) {
        struct attending a = {
            .worker = worker,
            .head = attend_head_find(json_string_value(json_array_get(heads, i))),
            .index = (json_int_t)i,
            .problem = {.dtype = "f32",
                        .mask = json_is_true(json_object_get(worker->job, "causal"))
                                    ? MHA_MASK_CAUSAL
                                    : MHA_MASK_NONE},
        };
        do_head(&a, &tokens);
    }
    string_list_free(&tokens);
}
