/// Words as vectors: a small table, made by hand, in which related words are near. It is there to
/// show what a head does with such vectors; nothing in it is learned.
#ifndef MHA_WORD_TABLE_H
#define MHA_WORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/// Length of a vector: the topics, and as many coordinates again in which every word is by itself.
enum { WORD_VECTOR_LENGTH = 64 };

/// Writes a word's vector, of length 1; upper and lower case are alike. A word of the table has 0.9
/// in the directions of its topics and the rest in a random one of its own, so that words of one
/// topic are near and each is nearest to itself. Returns false for a word that the table does not
/// have: all of its vector is random, the same every time, and near to no other.
bool word_vector(const char *word, float vector[WORD_VECTOR_LENGTH]);

#endif
