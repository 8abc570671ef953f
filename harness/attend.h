/// What parent and worker know of `mhabench attend` alike.
#ifndef MHA_ATTEND_H
#define MHA_ATTEND_H

/// The ops that turn a text's X into what a head looks at, in this order.
enum { ATTEND_STEPS = 3 };
extern const char *const attend_ops[ATTEND_STEPS];

#endif
