/* SPDX-License-Identifier: Apache-2.0
 * Clamp of a float: the activation at the end of the float kernels. */
#ifndef GM_CLAMP_F32_H
#define GM_CLAMP_F32_H

#include "gm_types.h"

/* NaN stays NaN. */
GM_INLINE float gm_clamp_f32(float value, float low, float high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

#endif
