/// What parent and worker agree on about checking the exponentials of softmax kernels (exp_f32)
/// float by float.
///
/// Job:    "exponentials": {"kernels": [name, ...], "exhaustive": bool}
/// Events: {"event": "start", "kernel", "what"} before each call's worth of floats;
///         {"event": "share", "share"} as the walk goes on, 0 ... 1;
///         {"event": "exponential", "kernel", "verdict", "max_ulp", "at", "floats", "reason"} once
///         per kernel.
#ifndef MHA_EXPONENTIAL_H
#define MHA_EXPONENTIAL_H

/// Largest error of a normal result, in units of the last place: what softmax's bound allows.
#define EXPONENTIAL_ULP_MAX 4.0

/// The walk covers [EXPONENTIAL_LOW, 0]: below it even the smallest denormal is more than the
/// exponential.
#define EXPONENTIAL_LOW (-104.0f)

/// A walk that is not exhaustive takes every so manyth float from a seeded start. A prime, so that
/// it keeps step with no table and no power of two.
#define EXPONENTIAL_STRIDE 997u

#endif
