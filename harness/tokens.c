#include "tokens.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/// What a character is to the splitter.
enum kind { KIND_WORD, KIND_SPACE, KIND_JOINER, KIND_MARK, KIND_IDEOGRAPH, KIND_CONTROL };

/// A range of code points, both ends included.
struct range {
    uint32_t first, last;
};

/// Decodes one character strictly (RFC 3629: no overlong form, no surrogate, nothing above
/// U+10FFFF). Returns its bytes, or 0 when there is none.
static size_t decode(const char *text, uint32_t *code) {
    const unsigned char *at = (const unsigned char *)text;
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t length = 1; length <= 4; length++) {
        if ((at[0] & forms[length - 1].mask) != forms[length - 1].lead) {
            continue;
        }
        *code = at[0] & (unsigned char)~forms[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                return 0;  // the final zero as well: nothing behind it is read
            }
            *code = *code << 6 | (at[i] & 0x3fu);
        }
        const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
        return *code >= forms[length - 1].least && *code <= 0x10ffff && !surrogate ? length : 0;
    }
    return 0;
}

static bool within(uint32_t code, const struct range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

#define WITHIN(code, ranges) within(code, ranges, sizeof(ranges) / sizeof((ranges)[0]))

static enum kind kind_of(uint32_t code) {
    // Blocks of the Unicode Standard, version 15: white space, directional controls, punctuation.
    static const struct range spaces[] = {
        {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200b},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    static const struct range controls[] = {
        {0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}};
    static const struct range joiners[] = {
        {'\'', '\''}, {'-', '-'}, {0x2010, 0x2011}, {0x2019, 0x2019}};
    static const struct range marks[] = {
        {'!', '/'},       {':', '@'},       {'[', '^'},       {'`', '`'},       {'{', '~'},
        {0xa1, 0xa1},     {0xa7, 0xa7},     {0xab, 0xab},     {0xb6, 0xb7},     {0xbb, 0xbb},
        {0xbf, 0xbf},     {0x2012, 0x2027}, {0x2030, 0x205e}, {0x3001, 0x3003}, {0x3008, 0x3011},
        {0x3014, 0x301f}, {0xff01, 0xff0f}, {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65}};
    static const struct range ideographs[] = {
        {0x3040, 0x30ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x3ffff}};
    return WITHIN(code, spaces)       ? KIND_SPACE
           : WITHIN(code, controls)   ? KIND_CONTROL
           : WITHIN(code, joiners)    ? KIND_JOINER
           : WITHIN(code, marks)      ? KIND_MARK
           : WITHIN(code, ideographs) ? KIND_IDEOGRAPH
                                      : KIND_WORD;
}

static size_t columns_of(uint32_t code) {
    // Combining marks, joiners and variation selectors take none; East Asian wide characters and
    // pictographs take two (Unicode Standard Annex 11).
    static const struct range none[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                        {0x64b, 0x65f},   {0x200c, 0x200d}, {0x20d0, 0x20ff},
                                        {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
    static const struct range two[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0x4dbf},
                                       {0x4e00, 0xa4cf},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
                                       {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
                                       {0x1f300, 0x1faff}, {0x20000, 0x3ffff}};
    return WITHIN(code, none) ? 0 : WITHIN(code, two) ? 2 : 1;
}

/// Gets the bytes of the token that starts at `text`, whose first character is no space.
static size_t token_length(const char *text) {
    uint32_t code = 0;
    size_t length = decode(text, &code);
    if (kind_of(code) != KIND_WORD) {
        return length;
    }
    for (;;) {
        const size_t next = decode(text + length, &code);
        enum kind kind = next > 0 && code != 0 ? kind_of(code) : KIND_SPACE;
        size_t joined = 0;
        if (kind == KIND_JOINER) {
            joined = next;
            const size_t behind = decode(text + length + next, &code);
            kind = behind > 0 && code != 0 ? kind_of(code) : KIND_SPACE;
        }
        if (kind != KIND_WORD) {
            return length;
        }
        length += joined > 0 ? joined : next;
    }
}

bool tokens_split(struct string_list *tokens, const char *text, char why[WHY_BYTES]) {
    for (size_t at = 0; text[at] != '\0';) {
        uint32_t code = 0;
        const size_t length = decode(text + at, &code);
        const enum kind kind = length > 0 ? kind_of(code) : KIND_CONTROL;
        if (kind == KIND_CONTROL) {
            snprintf(why, WHY_BYTES,
                     length > 0 ? "byte %zu begins a control character" : "byte %zu is no UTF-8",
                     at);
            return false;
        }
        if (kind == KIND_SPACE) {
            at += length;
            continue;
        }
        if (tokens->count == TOKENS_MAX) {
            snprintf(why, WHY_BYTES, "it has more than %d words and marks; give a shorter text",
                     TOKENS_MAX);
            return false;
        }
        const size_t token = token_length(text + at);
        string_list_add(tokens, text + at, token);
        at += token;
    }
    if (tokens->count == 0) {
        snprintf(why, WHY_BYTES, "it holds no word");
    }
    return tokens->count > 0;
}

size_t tokens_cut(const char *token, size_t columns) {
    size_t at = 0;
    for (size_t used = 0; token[at] != '\0';) {
        uint32_t code = 0;
        const size_t length = decode(token + at, &code);
        used += length > 0 ? columns_of(code) : 1;
        if (used > columns) {
            break;
        }
        at += length > 0 ? length : 1;
    }
    return at;
}

size_t tokens_columns(const char *token) {
    size_t columns = 0;
    for (size_t at = 0; token[at] != '\0';) {
        uint32_t code = 0;
        const size_t length = decode(token + at, &code);
        columns += length > 0 ? columns_of(code) : 1;
        at += length > 0 ? length : 1;
    }
    return columns;
}
