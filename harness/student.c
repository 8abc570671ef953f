#include "student.h"

#include <math.h>
#include <stdbool.h>

/// Above so many degrees of freedom a tail is the normal one within t^4 / (4 df), the first term of
/// Abramowitz and Stegun 26.7.8: 0.4 % of it at p = 1e-9. The continued fraction gets slow there.
static const double df_normal = 1e5;

/// Evaluates the continued fraction of the incomplete beta function (NIST Digital Library of
/// Mathematical Functions, 8.17.22) by the modified Lentz algorithm (Thompson and Barnett, Coulomb
/// and Bessel functions of complex arguments and order, 1986).
static double beta_fraction(double x, double a, double b) {
    const double tiny = 1e-300;
    const double enough = 1e-15;
    // Converges within O(sqrt(max(a, b))) steps where x < (a + 1) / (a + b + 2): hundreds at most.
    enum { STEPS_MAX = 20000 };
    double c = 1.0;
    double d = 1.0 - (a + b) * x / (a + 1.0);
    d = 1.0 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= STEPS_MAX; m++) {
        const double k = m;
        const double terms[2] = {
            k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0)),
        };
        double change = 1.0;
        for (int i = 0; i < 2; i++) {
            d = 1.0 + terms[i] * d;
            d = 1.0 / (fabs(d) < tiny ? tiny : d);
            c = 1.0 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            change = c * d;
            result *= change;
        }
        if (fabs(change - 1.0) < enough) {
            break;
        }
    }
    return result;
}

/// Gets the logarithm of the gamma function, without lgamma()'s global sign.
static double log_gamma(double x) {
    int sign = 0;
    return lgamma_r(x, &sign);
}

/// Gets the regularised incomplete beta function I_x(a, b), with y = 1 - x.
static double beta_regular(double x, double y, double a, double b) {
    if (x <= 0.0) {
        return 0.0;
    }
    if (y <= 0.0) {
        return 1.0;
    }
    const double front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y);
    // The fraction converges fast on one side only; the other follows by symmetry.
    if (x < (a + 1.0) / (a + b + 2.0)) {
        return exp(front) * beta_fraction(x, a, b) / a;
    }
    return 1.0 - exp(front) * beta_fraction(y, b, a) / b;
}

double student_tail(double t, double df) {
    if (isnan(t) || isnan(df)) {
        return t + df;
    }
    if (isinf(t)) {
        return t > 0.0 ? 0.0 : 1.0;
    }
    if (df > df_normal) {
        return 0.5 * erfc(t / sqrt(2.0));
    }
    // P(|T| >= t) = I_x(df / 2, 1 / 2) at x = df / (df + t^2): DLMF 8.17, and Abramowitz and Stegun
    // 26.7.1.
    const double square = t * t;
    const double both = beta_regular(df / (df + square), square / (df + square), df / 2.0, 0.5);
    return t >= 0.0 ? both / 2.0 : 1.0 - both / 2.0;
}

/// Gets the density at t.
static double density(double t, double df) {
    if (df > df_normal) {
        return exp(-t * t / 2.0) / sqrt(2.0 * M_PI);
    }
    return exp(log_gamma((df + 1.0) / 2.0) - log_gamma(df / 2.0) -
               (df + 1.0) / 2.0 * log1p(t * t / df)) /
           sqrt(df * M_PI);
}

double student_quantile(double p, double df) {
    if (!(p > 0.0 && p <= 0.5) || isnan(df)) {
        return p <= 0.0 ? (double)INFINITY : (double)NAN;
    }
    double low = 0.0;
    double high = 1.0;
    while (student_tail(high, df) > p && high < 1e300) {
        low = high;
        high *= 2.0;
    }
    // Newton's method on the logarithm of the tail, which is nearly straight; a step that leaves
    // the bracket is replaced by halving it. Either ends after far fewer steps than that.
    double t = low + (high - low) / 2.0;
    for (int i = 0; i < 200; i++) {
        const double tail = student_tail(t, df);
        if (tail > p) {
            low = t;
        } else {
            high = t;
        }
        double next = t + log(tail / p) * tail / density(t, df);
        if (!(next > low && next < high)) {
            next = low + (high - low) / 2.0;
        }
        const bool done = fabs(next - t) <= 1e-14 * t;
        t = next;
        if (done) {
            break;
        }
    }
    return t;
}
