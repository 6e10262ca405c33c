/* SPDX-License-Identifier: Apache-2.0
 * A function from int16 to int8 by table, see gm_lut_s16.h. */
#ifndef GM_LUT_S16_S8_H
#define GM_LUT_S16_S8_H

#include "gm_lut_s16.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_lut_s16_t gm_lut_s16_s8_t;

/* y may begin where x does. */
GM_INLINE void gm_lut_s16_s8_core(const gm_lut_s16_s8_t *p, int8_t *y, const int16_t *x,
                                  const int16_t *GM_RESTRICT table)
{
    gm_lut_s16_stored(p, 1, y, x, table);
}

void gm_lut_s16_s8(const gm_lut_s16_s8_t *p, int8_t *y, const int16_t *x,
                   const int16_t *GM_RESTRICT table);

#ifdef __cplusplus
}
#endif

#endif
