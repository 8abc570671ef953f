/// The table of presets. Axes that an option gives explicitly replace those of every block; see
/// select.c.
///
/// Where the models' figures are from:
///   BERT-base     12 heads of 64 (hidden size 768), at most 512 positions: Devlin et al. 2018,
///                 arXiv:1810.04805, section 3 and appendix A.2.
///   GPT-2 small   12 heads of 64 (d_model 768), context 1024: Radford et al. 2019, "Language
///                 Models are Unsupervised Multitask Learners", section 2.3 and table 2; the number
///                 of heads is in the released model's hparams.json.
///   GPT-3 175B    96 heads of 128 (d_model 12288), context 2048: Brown et al. 2020,
///                 arXiv:2005.14165, section 2.1 and table 2.1.
///   Llama 3 8B    32 heads of 128 (model dimension 4096), 8 key/value heads: Dubey et al. 2024,
///                 arXiv:2407.21783, table 3; context 8192: the model card of Meta-Llama-3-8B.
#include "presets.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off

static const struct preset_block quick[] = {
    // batch, heads, kv_heads, head_dim, seq_q, seq_kv, ops
    {"1", "12", NULL, "64",  "128", NULL, NULL},                      // BERT-base: the whole layer
    {"1", "32", "8",  "128", "128", NULL, "rope,qk,sdpa"},            // Llama 3 8B: what it differs in
    {"1", "96", NULL, "128", "128", NULL, "qk,softmax,sdpa,concat"},  // GPT-3
};

// The models' presets share their lengths, so that models compare; 2048 is past the context that BERT and
// GPT-2 were trained with, which matters to no kernel.
static const struct preset_block bert[] = {{"1", "12", NULL, "64", "128,512,2048", NULL, NULL}};
static const struct preset_block gpt2[] = {{"1", "12", NULL, "64", "128,512,2048", NULL, NULL}};
static const struct preset_block gpt3[] = {{"1", "96", NULL, "128", "128,512,2048", NULL, NULL}};
static const struct preset_block llama3[] = {{"1", "32", "8", "128", "128,512,2048", NULL, NULL}};

// Where libraries are compared: in cache and out of it, whole tiles and none, and decoding against a cache.
static const struct preset_block peers[] = {
    {"1", "1", NULL, "64,128", "512", NULL, "qk,softmax,pv,sdpa,qkv_proj,out_proj"},
    {"1", "1", NULL, "64", "128", "128,512,1024", "softmax"},  // rows in L2, short and long
    {"1", "1", NULL, "64", "8", "4096,12288", "softmax"},
    {"1", "12", NULL, "64", "512", NULL, NULL},
    {"1", "12", NULL, "40,80,96,100", "301", NULL, "qk,pv,sdpa"},
    {"1", "32", "8", "128", "1", "4096", "qk,pv,sdpa"},
    {"1", "32", NULL, "128", "1024", NULL, "sdpa"},
    {"1", "96", NULL, "128", "128,512", NULL, "qk,softmax,pv,sdpa,concat,split,rope,bias"},
};

// From one head to GPT-3's 96 and beyond, over the head sizes of published models.
static const struct preset_block grid[] = {
    {"1", "1:64:x2,96,128", NULL, "16:256:x2", "128", NULL, NULL},
};

// Powers of two and their odd neighbours: where vector tails and tile edges show.
static const struct preset_block lengths[] = {
    {"1", "12", NULL, "64",
     "1,2,3,4,5,7,8,9,15,16,17,31,32,33,63,64,65,127,128,129,255,256,257,511,512,513,"
     "1023,1024,1025,2047,2048,2049,4095,4096,4097,8191,8192",
     NULL, NULL},
};

// Hostile shapes: every one is there for a fault that kernels have had.
static const struct preset_block edge[] = {
    // batch, heads, kv_heads, head_dim, seq_q, seq_kv, ops
    {"1", "1", NULL, "1",   "1",   NULL, NULL},   // everything is a tail
    {"1", "1", NULL, "64",  "1",   NULL, NULL},   // one key: every probability is 1
    {"1", "1", NULL, "16",  "64",  NULL, NULL},   // whole tiles and nothing else
    {"1", "1", NULL, "64",  "128", NULL, NULL},
    {"1", "2", NULL, "64",  "31",  "63", NULL},   // one short of a tile
    {"1", "2", NULL, "64",  "33",  "65", NULL},   // one more than a tile
    {"1", "1", NULL, "64",  "2",   "288", NULL},  // 32 behind a multiple of 256: hoisted bounds checks
    {"1", "1", NULL, "3",   "5",   "17", NULL},   // shorter than any vector
    {"1", "1", NULL, "1",   "33",  NULL, NULL},
    {"1", "3", NULL, "37",  "17",  NULL, NULL},   // head sizes that are no multiple of a vector
    {"1", "2", NULL, "40",  "17",  "33", NULL},
    {"1", "2", NULL, "80",  "2",   "127", NULL},
    {"1", "2", NULL, "96",  "5",   NULL, NULL},
    {"1", "1", NULL, "100", "127", NULL, NULL},
    {"1", "2", NULL, "256", "9",   NULL, NULL},
    {"2", "3", NULL, "128", "33",  NULL, NULL},   // several sequences
    {"3", "2", "1",  "16",  "5",   "17", NULL},
    {"1", "2", "1",  "64",  "33",  NULL, NULL},   // grouped queries: 2, 3, 8 heads share one
    {"1", "3", "1",  "40",  "17",  "33", NULL},
    {"1", "8", "1",  "64",  "3",   "40", NULL},
    {"2", "4", "2",  "37",  "7",   "19", NULL},
    {"1", "12", NULL, "64", "5",   NULL, NULL},   // a d_model that projections cut into blocks
    {"1", "9", NULL, "64",  "67",  NULL, "qkv_proj,out_proj"},  // and rows that they cut as well
    {"1", "2", NULL, "16",  "1",   "17", NULL},   // decoding: one query against a cache
    {"1", "2", "1",  "128", "1",   "33", NULL},
    {"1", "4", "2",  "64",  "1",   "127", NULL},
    {"1", "1", NULL, "16",  "17",  "5", NULL},    // more queries than keys: causal hides whole rows
    {"1", "2", "1",  "64",  "33",  "17", NULL},
    {"2", "2", NULL, "100", "127", "2", NULL},
    {"1", "2", NULL, "64",  "5",   "0", NULL},    // no keys at all
    {"2", "2", "1",  "37",  "1",   "0", NULL},
    {"1", "1", NULL, "16",  "600", NULL, NULL},   // a narrow window leaves whole blocks of keys hidden
    {"1", "1", NULL, "16",  "2",   "4099", NULL}, // long rows of a prime length
};

static const struct preset presets[] = {
    {"quick", "BERT-base's layer, and parts of Llama 3 8B's and GPT-3's, at seq 128", "none,causal",
     COUNT(quick), quick},
    {"bert", "BERT-base: 12 heads of 64, seq 128 to 2048", "none,lengths", COUNT(bert), bert},
    {"gpt2", "GPT-2 small: 12 heads of 64, seq 128 to 2048", "none,causal",
     COUNT(gpt2), gpt2},
    {"gpt3", "GPT-3 175B: 96 heads of 128, seq 128 to its context of 2048", "none,causal",
     COUNT(gpt3), gpt3},
    {"llama3", "Llama 3 8B: 32 heads of 128 on 8 kv heads, seq 128 to 2048", "none,causal",
     COUNT(llama3), llama3},
    {"peers", "where libraries meet: seq 512, ragged head sizes, decoding", "none,causal",
     COUNT(peers), peers},
    {"grid", "heads 1 to 128 times head_dim 16 to 256, seq 128", "none", COUNT(grid), grid},
    {"lengths", "seq 1 to 8192, powers of two and their neighbours, 12 heads of 64", "none",
     COUNT(lengths), lengths},
    {"edge", "shapes that break kernels: tails, GQA, decoding, masked-out rows",
     "none,causal,lengths,window:10", COUNT(edge), edge},
};

// clang-format on

const struct preset *preset_get(size_t index) {
    return index < COUNT(presets) ? &presets[index] : NULL;
}

const struct preset *preset_find(const char *name) {
    for (size_t i = 0; i < COUNT(presets); i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}
