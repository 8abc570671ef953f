#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "data.h"
#include "diag.h"

/// A pipeline; the table points to its descriptor.
struct pipeline {
    struct mha_kernel kernel;
    const struct op_pipeline *form;
    int isa;
    size_t count;
    struct loaded_kernel parts[OP_PARTS_MAX];  ///< [count], in the order of the form's.
    char name[64], hash[20];
};

static const struct pipeline *of(const struct mha_kernel *kernel) {
    return (const struct pipeline *)kernel;  // its first member
}

static bool is_composed(const struct mha_kernel *kernel) {
    return op_find(kernel->op)->pipelines != NULL;
}

/// Finds the first kernel of an op at an ISA that is hand-written, or the compiler's own.
static const struct loaded_kernel *find_kernel(const struct kernel_table *table, const char *op,
                                               const char *isa, bool autovec) {
    for (size_t i = 0; i < table->count; i++) {
        const struct mha_kernel *k = table->kernels[i].kernel;
        const bool is_autovec = strncmp(k->tag, "autovec", strlen("autovec")) == 0;
        if (strcmp(k->op, op) == 0 && strcmp(k->isa, isa) == 0 && !(k->flags & MHA_FLAG_PEER) &&
            is_autovec == autovec && strcmp(k->dtype, element_word(ELEMENT_F32)) == 0) {
            return &table->kernels[i];
        }
    }
    return NULL;
}

/// Finds the kernel of a step: at the pipeline's ISA or the next lower one, which stand before it
/// in the list. Nothing is vectorised for the lowest.
static const struct loaded_kernel *pick(const struct kernel_table *table, const char *op, int isa,
                                        bool autovec) {
    for (int i = isa; i >= 0; i--) {
        const char *word = mha_isa_status((size_t)i, NULL).isa;
        const struct loaded_kernel *found =
            mha_isa_within(i, isa) ? find_kernel(table, op, word, autovec && i > 0) : NULL;
        if (found) {
            return found;
        }
    }
    return NULL;
}

/// Fills a pipeline's parts; false when the table lacks one, or has none at the ISA itself.
static bool fill(struct pipeline *p, const struct kernel_table *table, const char *isa) {
    bool own = false;
    for (p->count = 0; p->form->parts[p->count]; p->count++) {
        const struct loaded_kernel *part =
            pick(table, p->form->parts[p->count], p->isa, p->form->autovec);
        if (!part) {
            return false;
        }
        p->parts[p->count] = *part;
        own = own || strcmp(part->kernel->isa, isa) == 0;
    }
    return own && !(p->form->autovec && p->isa == 0);
}

/// Puts a kernel in the place of a step's. Returns whether the pipeline has the step and the ISA.
static bool replace(struct pipeline *p, const struct loaded_kernel *kernel) {
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->form->parts[i], kernel->kernel->op) == 0 &&
            mha_isa_within(mha_isa_find(kernel->kernel->isa), p->isa)) {
            p->parts[i] = *kernel;
            return true;
        }
    }
    return false;
}

/// The hash of a pipeline's code: over its parts' hashes, "" when one of them is not known.
static void make_hash(struct pipeline *p) {
    uint64_t hash = 0;
    for (size_t i = 0; i < p->count; i++) {
        const char *of_part = p->parts[i].code_hash;
        if (of_part[0] == '\0') {
            p->hash[0] = '\0';
            return;
        }
        for (const char *c = of_part; *c; c++) {
            hash = data_mix(hash, (unsigned char)*c);
        }
    }
    snprintf(p->hash, sizeof(p->hash), "%016llx", (unsigned long long)hash);
}

static void add(struct kernel_table *table, struct pipeline *p, const char *op, const char *isa) {
    snprintf(p->name, sizeof(p->name), "%s_f32_%s_%s", op, isa, p->form->tag);
    p->kernel = (struct mha_kernel){
        .name = p->name,
        .op = op,
        .dtype = "f32",
        .isa = isa,
        .tag = p->form->tag,
        .summary = p->form->summary,
    };
    const char *plugin = NULL;
    for (size_t i = 0; i < p->count; i++) {
        p->kernel.flags |= p->parts[i].kernel->flags & MHA_FLAG_NONDETERMINISTIC;
        plugin = plugin ? plugin : p->parts[i].plugin;
    }
    make_hash(p);
    table->kernels =
        diag_alloc(realloc(table->kernels, (table->count + 1) * sizeof(*table->kernels)));
    table->kernels[table->count++] =
        (struct loaded_kernel){&p->kernel, p->hash, "mhabench", "", plugin};
}

/// Finds the kernel that "OP=KERNEL" names.
static const struct loaded_kernel *find_with(const struct kernel_table *table, const char *with,
                                             char *error, size_t error_size) {
    const char *name = strchr(with, '=');
    const struct loaded_kernel *kernel = name ? library_find(table, name + 1) : NULL;
    if (!kernel) {
        snprintf(error, error_size, "--with '%.200s': there is no such kernel; see `mhabench list`",
                 with);
        return NULL;
    }
    if (strlen(kernel->kernel->op) != (size_t)(name - with) ||
        strncmp(kernel->kernel->op, with, (size_t)(name - with)) != 0) {
        snprintf(error, error_size, "--with '%.200s': that is a kernel of %s", with,
                 kernel->kernel->op);
        return NULL;
    }
    if (strcmp(kernel->kernel->dtype, element_word(ELEMENT_F32)) != 0) {
        snprintf(error, error_size, "--with '%.200s': that is a kernel of %s; the layer is of f32",
                 with, kernel->kernel->dtype);
        return NULL;
    }
    return kernel;
}

bool pipeline_add(struct kernel_table *table, size_t count, const char *const *with, char *error,
                  size_t error_size) {
    const size_t isas = mha_isa_count();
    struct pipeline **made = NULL;
    size_t made_count = 0;
    for (size_t o = 0; o < op_count(); o++) {
        const struct op_driver *driver = op_get(o);
        for (size_t i = 0; driver->pipelines && i < isas; i++) {
            for (const struct op_pipeline *form = driver->pipelines; form->tag; form++) {
                struct pipeline p = {.form = form, .isa = (int)i};
                if (fill(&p, table, mha_isa_status(i, NULL).isa)) {
                    // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is kept
                    made = diag_alloc(realloc(made, (made_count + 1) * sizeof(*made)));
                    made[made_count] = diag_alloc(malloc(sizeof(p)));
                    *made[made_count] = p;
                    made[made_count++]->kernel.op = driver->name;
                }
            }
        }
    }
    bool good = true;
    for (size_t w = 0; w < count && good; w++) {
        const struct loaded_kernel *kernel = find_with(table, with[w], error, error_size);
        bool used = false;
        for (size_t i = 0; kernel && i < made_count; i++) {
            used = replace(made[i], kernel) || used;
        }
        if (kernel && !used) {
            snprintf(error, error_size, "--with '%.200s': no pipeline of this build takes it",
                     with[w]);
        }
        good = used;
    }
    for (size_t i = 0; i < made_count; i++) {
        if (good) {
            add(table, made[i], made[i]->kernel.op, mha_isa_status((size_t)made[i]->isa, NULL).isa);
        } else {
            free(made[i]);
        }
    }
    free(made);
    return good;
}

const struct mha_kernel *pipeline_part(const struct mha_kernel *pipeline, const char *op) {
    const struct pipeline *p = of(pipeline);
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->form->parts[i], op) == 0) {
            return p->parts[i].kernel;
        }
    }
    return NULL;
}

const struct op_pipeline *pipeline_form(const struct mha_kernel *pipeline) {
    return of(pipeline)->form;
}

bool pipeline_has_peer(const struct mha_kernel *kernel) {
    bool peer = (kernel->flags & MHA_FLAG_PEER) != 0;
    for (size_t i = 0; is_composed(kernel) && i < of(kernel)->count; i++) {
        peer = peer || (of(kernel)->parts[i].kernel->flags & MHA_FLAG_PEER);
    }
    return peer;
}

bool pipeline_supports(const struct mha_kernel *kernel, const struct problem *problem, char *why,
                       size_t why_size) {
    if (is_composed(kernel)) {
        struct op_step steps[OP_STEPS_MAX];
        const size_t count =
            op_find(kernel->op)->compose(problem, pipeline_form(kernel), NULL, NULL, steps);
        for (size_t i = 0; i < count; i++) {
            const struct mha_kernel *part = pipeline_part(kernel, steps[i].driver->name);
            char text[200];
            if (!pipeline_supports(part, &steps[i].problem, text, sizeof(text))) {
                snprintf(why, why_size, "%s: %s", part->name, text);
                return false;
            }
        }
        return true;
    }
    const struct mha_mask mask = problem_mask(problem, 0);
    const char *phrase = "the kernel does not take this shape";
    const bool supported = !kernel->supports || kernel->supports(&problem->shape, &mask, &phrase);
    snprintf(why, why_size, "%s", supported ? "" : phrase);
    return supported;
}
