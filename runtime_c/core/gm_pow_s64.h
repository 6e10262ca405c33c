/* SPDX-License-Identifier: Apache-2.0
 * Integer power, wrapping; a negative exponent gives the integer part of the inverse. */
#ifndef GM_POW_S64_H
#define GM_POW_S64_H

#include "gm_types.h"

GM_INLINE int64_t gm_pow_s64(int64_t base, int64_t exponent)
{
    uint64_t result = 1;
    uint64_t factor = (uint64_t)base;
    if (exponent < 0) {
        const int64_t odd = base == -1 && exponent % 2 != 0 ? -1 : 1;
        return base == 1 || base == -1 ? odd : 0;
    }
    while (exponent > 0) {
        if (exponent % 2 != 0) {
            result *= factor;
        }
        factor *= factor;
        exponent /= 2;
    }
    return (int64_t)result;
}

#endif
