/* SPDX-License-Identifier: Apache-2.0
 * Product of two int16 tensors, see gm_mul_s8.h: (a - a_zero) * (b - b_zero) * 2^shift fits 32
 * bits. */
#ifndef GM_MUL_S16_H
#define GM_MUL_S16_H

#include "gm_mul_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_mul_s8_t gm_mul_s16_t;

/* y may be a, and b where b is read once. */
GM_INLINE void gm_mul_s16_core(const gm_mul_s16_t *p, int16_t *y, const int16_t *a,
                               const int16_t *b)
{
    gm_mul_stored(p, 2, y, a, b);
}

void gm_mul_s16(const gm_mul_s16_t *p, int16_t *y, const int16_t *a, const int16_t *b);

#ifdef __cplusplus
}
#endif

#endif
