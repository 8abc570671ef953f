#include "word_table.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "data.h"

/// What words are about: a direction each.
enum topic {
    NOTHING,
    ARTICLE,
    PRONOUN,
    PERSON,
    ANIMAL,
    BINDING,
    TIME,
    RELATION,
    PLACE,
    MOTION,
    AUXILIARY,
    NEGATION,
    HOME,
    NATURE,
    WATER,
    FOOD,
    FEELING,
    MIND,
    BODY,
    SIGHT,
    STREET,
    WEATHER,
    MONEY,
    FATIGUE,
    SHOW,
    SPEECH,
    FIGHT,
    SIZE,
    HEAT,
    COLOUR,
    NUMBER,
    MACHINE,
    MARK,
    TOPICS_END,
};

/// Coordinates that topics have, and most topics of one word.
enum { TOPICS = WORD_VECTOR_LENGTH / 2, WORD_TOPICS = 3 };
_Static_assert(TOPICS_END - 1 <= TOPICS, "a coordinate for every topic");

/// A word counts in its first topic three times, in its second twice, in its third once.
static const struct {
    const char *word;
    enum topic topics[WORD_TOPICS];
} table[] = {
    // Lines hold one first topic each.
    // clang-format off
    {"the", {ARTICLE}}, {"a", {ARTICLE}}, {"an", {ARTICLE}}, {"this", {ARTICLE, PRONOUN}},
    {"that", {ARTICLE, PRONOUN}}, {"these", {ARTICLE, PRONOUN}},
    {"i", {PRONOUN, PERSON}}, {"you", {PRONOUN, PERSON}}, {"he", {PRONOUN, PERSON}},
    {"she", {PRONOUN, PERSON}}, {"we", {PRONOUN, PERSON}}, {"they", {PRONOUN, PERSON}},
    {"it", {PRONOUN, ANIMAL}}, {"him", {PRONOUN, PERSON}}, {"her", {PRONOUN, PERSON}},
    {"them", {PRONOUN, PERSON}}, {"his", {PRONOUN, PERSON}}, {"its", {PRONOUN, ANIMAL}},
    {"who", {PRONOUN, PERSON}}, {"what", {PRONOUN}}, {"which", {PRONOUN}},
    {"and", {BINDING}}, {"or", {BINDING}}, {"but", {BINDING}}, {"because", {BINDING}},
    {"while", {BINDING, TIME}}, {"if", {BINDING}}, {"so", {BINDING}}, {"when", {BINDING, TIME}},
    {"in", {RELATION, PLACE}}, {"on", {RELATION, PLACE}}, {"at", {RELATION, PLACE}},
    {"of", {RELATION}}, {"to", {RELATION, MOTION}}, {"from", {RELATION, MOTION}},
    {"near", {RELATION, PLACE}}, {"after", {RELATION, TIME}}, {"before", {RELATION, TIME}},
    {"over", {RELATION, PLACE}}, {"under", {RELATION, PLACE}}, {"with", {RELATION}},
    {"by", {RELATION}}, {"for", {RELATION}}, {"across", {RELATION, MOTION}},
    {"into", {RELATION, MOTION}}, {"through", {RELATION, MOTION}},
    {"is", {AUXILIARY}}, {"are", {AUXILIARY}}, {"was", {AUXILIARY}}, {"were", {AUXILIARY}},
    {"be", {AUXILIARY}}, {"been", {AUXILIARY}}, {"has", {AUXILIARY}}, {"have", {AUXILIARY}},
    {"had", {AUXILIARY}}, {"do", {AUXILIARY}}, {"does", {AUXILIARY}}, {"did", {AUXILIARY}},
    {"will", {AUXILIARY, TIME}}, {"can", {AUXILIARY}}, {"could", {AUXILIARY}},
    {"would", {AUXILIARY}},
    {"not", {NEGATION}}, {"no", {NEGATION}}, {"never", {NEGATION, TIME}},
    {"didn't", {AUXILIARY, NEGATION}}, {"don't", {AUXILIARY, NEGATION}},
    {"isn't", {AUXILIARY, NEGATION}},
    {"animal", {ANIMAL}}, {"cat", {ANIMAL, HOME}}, {"dog", {ANIMAL, HOME}},
    {"fox", {ANIMAL, NATURE}}, {"bird", {ANIMAL, NATURE}}, {"fish", {ANIMAL, WATER, FOOD}},
    {"horse", {ANIMAL, MOTION}}, {"mouse", {ANIMAL}}, {"wolf", {ANIMAL, NATURE}},
    {"cow", {ANIMAL, FOOD}},
    {"man", {PERSON}}, {"woman", {PERSON}}, {"child", {PERSON}}, {"boy", {PERSON}},
    {"girl", {PERSON}}, {"people", {PERSON}}, {"friend", {PERSON, FEELING}},
    {"mother", {PERSON, HOME}}, {"father", {PERSON, HOME}}, {"teacher", {PERSON, MIND}},
    {"king", {PERSON}}, {"queen", {PERSON}}, {"doctor", {PERSON, BODY}},
    {"head", {BODY, MIND}}, {"hand", {BODY}}, {"eye", {BODY, SIGHT}}, {"heart", {BODY, FEELING}},
    {"foot", {BODY, MOTION}},
    {"city", {PLACE, STREET}}, {"town", {PLACE, STREET}}, {"country", {PLACE}}, {"world", {PLACE}},
    {"school", {PLACE, MIND}}, {"park", {PLACE, NATURE}}, {"france", {PLACE}},
    {"paris", {PLACE, STREET}}, {"london", {PLACE, STREET}}, {"england", {PLACE}},
    {"tree", {NATURE}}, {"forest", {NATURE, PLACE}}, {"mountain", {NATURE, PLACE}},
    {"flower", {NATURE}}, {"grass", {NATURE}}, {"sun", {NATURE, WEATHER}}, {"moon", {NATURE, TIME}},
    {"river", {WATER, NATURE}}, {"bank", {WATER, MONEY}}, {"sea", {WATER, NATURE}},
    {"lake", {WATER, NATURE}}, {"water", {WATER}}, {"flood", {WATER, WEATHER}},
    {"flooded", {WATER, WEATHER}}, {"boat", {WATER, MOTION}}, {"swam", {WATER, MOTION}},
    {"storm", {WEATHER}}, {"rain", {WEATHER, WATER}}, {"wind", {WEATHER}}, {"snow", {WEATHER}},
    {"cloud", {WEATHER}},
    {"house", {HOME, PLACE}}, {"home", {HOME, PLACE}}, {"room", {HOME}}, {"door", {HOME}},
    {"mat", {HOME}}, {"bed", {HOME, FATIGUE}}, {"table", {HOME}}, {"chair", {HOME}},
    {"sofa", {HOME, FATIGUE}},
    {"food", {FOOD}}, {"bread", {FOOD}}, {"milk", {FOOD}}, {"apple", {FOOD}},
    {"fruit", {FOOD, NATURE}}, {"ate", {FOOD}}, {"eat", {FOOD}}, {"eats", {FOOD}},
    {"drank", {FOOD, WATER}},
    {"money", {MONEY}}, {"loan", {MONEY}}, {"coin", {MONEY}}, {"gold", {MONEY}}, {"paid", {MONEY}},
    {"bought", {MONEY}}, {"price", {MONEY}},
    {"day", {TIME}}, {"night", {TIME, FATIGUE}}, {"year", {TIME}}, {"yesterday", {TIME}},
    {"today", {TIME}}, {"tomorrow", {TIME}}, {"now", {TIME}}, {"then", {TIME}},
    {"run", {MOTION}}, {"ran", {MOTION}}, {"walk", {MOTION}}, {"walked", {MOTION}},
    {"jump", {MOTION}}, {"jumps", {MOTION}}, {"jumped", {MOTION}}, {"go", {MOTION}},
    {"went", {MOTION}}, {"cross", {MOTION, STREET}}, {"crossed", {MOTION, STREET}},
    {"came", {MOTION}}, {"fell", {MOTION}}, {"flew", {MOTION, ANIMAL}},
    {"sat", {FATIGUE, HOME}}, {"slept", {FATIGUE, HOME}}, {"tired", {FATIGUE, FEELING}},
    {"lazy", {FATIGUE}}, {"rest", {FATIGUE}},
    {"street", {STREET, PLACE}}, {"road", {STREET, MOTION}}, {"car", {STREET, MOTION}},
    {"train", {STREET, MOTION}}, {"bridge", {STREET, WATER}},
    {"see", {SIGHT}}, {"saw", {SIGHT}}, {"looked", {SIGHT}}, {"watched", {SIGHT, SHOW}},
    {"movie", {SHOW, SIGHT}}, {"film", {SHOW, SIGHT}}, {"theatre", {SHOW, PLACE}},
    {"music", {SHOW, FEELING}}, {"song", {SHOW, FEELING}}, {"picture", {SHOW, SIGHT}},
    {"said", {SPEECH}}, {"say", {SPEECH}}, {"told", {SPEECH}}, {"asked", {SPEECH}},
    {"word", {SPEECH, MIND}}, {"language", {SPEECH, MIND}}, {"story", {SPEECH, SHOW}},
    {"think", {MIND}}, {"thought", {MIND}}, {"know", {MIND}}, {"knew", {MIND}}, {"clever", {MIND}},
    {"smart", {MIND}},
    {"quick", {MOTION, MIND}},
    {"book", {MIND, SPEECH}}, {"read", {MIND, SPEECH}},
    {"love", {FEELING}}, {"loved", {FEELING}}, {"happy", {FEELING}}, {"sad", {FEELING}},
    {"afraid", {FEELING}}, {"angry", {FEELING, FIGHT}},
    {"big", {SIZE}}, {"small", {SIZE}}, {"little", {SIZE}}, {"large", {SIZE}}, {"long", {SIZE}},
    {"short", {SIZE}}, {"tall", {SIZE}},
    {"hot", {HEAT, WEATHER}}, {"cold", {HEAT, WEATHER}}, {"warm", {HEAT, WEATHER}},
    {"fire", {HEAT}}, {"ice", {HEAT, WATER}},
    {"bite", {FIGHT, ANIMAL}}, {"bites", {FIGHT, ANIMAL}}, {"bit", {FIGHT, ANIMAL}},
    {"fight", {FIGHT}}, {"war", {FIGHT}}, {"caught", {FIGHT}},
    {"red", {COLOUR}}, {"green", {COLOUR}}, {"blue", {COLOUR}}, {"white", {COLOUR}},
    {"black", {COLOUR}}, {"brown", {COLOUR}},
    {"one", {NUMBER}}, {"two", {NUMBER}}, {"three", {NUMBER}}, {"four", {NUMBER}},
    {"many", {NUMBER, SIZE}}, {"all", {NUMBER}},
    {"computer", {MACHINE}}, {"machine", {MACHINE}}, {"model", {MACHINE, MIND}},
    {"attention", {MIND, MACHINE}},
    {"network", {MACHINE}}, {"kernel", {MACHINE}},
    {".", {MARK}}, {",", {MARK}}, {";", {MARK}}, {"!", {MARK}}, {"?", {MARK}}, {":", {MARK}},
    // clang-format on
};

/// Share of a table's word in its topics; by itself it has the rest of its length of 1.
static const float topic_share = 0.9f;

/// Writes `length` to the Euclidean norm of `count` coordinates that are not all zero.
static void scale_to(float *vector, size_t count, float length) {
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        squares += (double)vector[i] * (double)vector[i];
    }
    for (size_t i = 0; i < count; i++) {
        vector[i] = (float)((double)vector[i] * (double)length / sqrt(squares));
    }
}

/// Independent of the locale; other letters than ASCII's have no upper case here.
static unsigned char lower(char c) {
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/// Hash of a word in lower case: FNV-1a (Fowler, Noll, Vo), 64 bits.
static uint64_t hash_of(const char *word) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *word != '\0'; word++) {
        hash = (hash ^ lower(*word)) * 0x100000001b3u;
    }
    return hash;
}

static bool same_word(const char *a, const char *b) {
    while (*a != '\0' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

bool word_vector(const char *word, float vector[WORD_VECTOR_LENGTH]) {
    const uint64_t hash = hash_of(word);
    bool known = false;
    for (size_t i = 0; i < TOPICS; i++) {
        vector[i] = 0.0f;
        // The upper 24 bits, as a float of [-1, 1).
        vector[TOPICS + i] = (float)(data_mix(hash, i) >> 40) * 0x1p-23f - 1.0f;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !known; i++) {
        known = same_word(table[i].word, word);
        for (size_t t = 0; known && t < WORD_TOPICS && table[i].topics[t] != NOTHING; t++) {
            vector[table[i].topics[t] - 1] = (float)(WORD_TOPICS - t);
        }
    }
    if (known) {
        scale_to(vector, TOPICS, topic_share);
    }
    scale_to(vector + TOPICS, TOPICS, known ? sqrtf(1.0f - topic_share * topic_share) : 1.0f);
    return known;
}
