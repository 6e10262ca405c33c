/* SPDX-License-Identifier: Apache-2.0
 * Eight floats at once, in vectors of the compiler. */
#ifndef GM_VECTOR_H
#define GM_VECTOR_H

#include "gm_clamp_f32.h"
#include "gm_types.h"

#if !defined(__AVX2__)
#error "this kernel needs a processor with AVX2: compile with -mavx2"
#endif

typedef float gm_f32x8_t __attribute__((vector_size(32)));

GM_INLINE gm_f32x8_t gm_f32x8_load(const float *from)
{
    gm_f32x8_t found;
    memcpy(&found, from, sizeof found);
    return found;
}

/* Clamp eight values and store the first `count` of them. */
GM_INLINE void gm_f32x8_store(float *to, int32_t count, gm_f32x8_t value, float low, float high)
{
    float clamped[8];
    for (int32_t n = 0; n < 8; n++) {
        clamped[n] = gm_clamp_f32(value[n], low, high);
    }
    if (count >= 8) {
        memcpy(to, clamped, sizeof clamped);
    } else {
        memcpy(to, clamped, (size_t)count * sizeof(float));
    }
}

#endif
