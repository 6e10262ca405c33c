/* SPDX-License-Identifier: Apache-2.0
 * Remainders of real divisions with the sign of the divisor. */
#ifndef GM_MOD_H
#define GM_MOD_H

#include <math.h>

#include "gm_integer.h"

GM_INLINE float gm_modf(float a, float b)
{
    const float rest = fmodf(a, b);
    if (rest == 0.0f) {
        return copysignf(0.0f, b);
    }
    return (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}

GM_INLINE double gm_mod(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0.0) {
        return copysign(0.0, b);
    }
    return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

#endif
