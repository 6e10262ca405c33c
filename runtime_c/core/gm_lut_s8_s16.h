/* SPDX-License-Identifier: Apache-2.0
 * A function from int8 to int16 by table: y[i] = table[(uint8_t)x[i]]. */
#ifndef GM_LUT_S8_S16_H
#define GM_LUT_S8_S16_H

#include "gm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t count; /* 0 or more */
} gm_lut_s8_s16_t;

/* table: 256 elements. y must not overlap x. */
GM_INLINE void gm_lut_s8_s16_core(const gm_lut_s8_s16_t *p, int16_t *GM_RESTRICT y,
                                  const int8_t *GM_RESTRICT x, const int16_t *GM_RESTRICT table)
{
    for (int32_t i = 0; i < p->count; i++) {
        y[i] = table[(uint8_t)x[i]];
    }
}

void gm_lut_s8_s16(const gm_lut_s8_s16_t *p, int16_t *GM_RESTRICT y, const int8_t *GM_RESTRICT x,
                   const int16_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
