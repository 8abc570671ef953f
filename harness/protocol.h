/// What parent and worker say to each other: one JSON object a line, the job down, events up.
///
/// Job: {"mode": "catalogue" | "check" | "attend" | "measure", "plugins": [...], "seed": n, ...},
/// see worker.c.
///
/// Events: {"event": "start" | "verdict" | "samples" | ..., ...}, see check.c, attend.c and
/// measure.c. A "start" says what the worker is about to do, so that a crash has an address.
#ifndef MHA_PROTOCOL_H
#define MHA_PROTOCOL_H

#include <jansson.h>
#include <stdbool.h>

#include "problem.h"

/// Makes the JSON of a problem, or reads it back. op and dtype point to static storage afterwards.
/// Reading returns false when a member is missing or names nothing.
json_t *protocol_problem_to_json(const struct problem *problem);
bool protocol_problem_from_json(const json_t *json, struct problem *problem);

/// Sends one event from the worker, in one write, and frees it. A parent that is gone ends the
/// worker.
void protocol_send(int fd, json_t *event);

/// A JSON number, or null for a value that is not finite.
json_t *protocol_real(double value);

/// Reads a member that may be null: NAN then.
double protocol_get_real(const json_t *json, const char *key);

/// Reads a string member; "" when it is missing.
const char *protocol_get_string(const json_t *json, const char *key);

/// Reads an integer member; 0 when it is missing.
json_int_t protocol_get_integer(const json_t *json, const char *key);

#endif
