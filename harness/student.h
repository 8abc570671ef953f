/// Student's t distribution, with degrees of freedom that need not be whole and tails as thin as a
/// correction for many tests asks for.
#ifndef MHA_STUDENT_H
#define MHA_STUDENT_H

/// Gets P(T >= t). `df` > 0; INFINITY is the normal distribution. NAN when an argument is NAN.
double student_tail(double t, double df);

/// Gets the t with P(T >= t) = p, for p in (0, 0.5].
double student_quantile(double p, double df);

#endif
