/* SPDX-License-Identifier: Apache-2.0
 * Fully connected layer, int16 with int8 weights, see gm_dense_s8.h. */
#ifndef GM_DENSE_S16_H
#define GM_DENSE_S16_H

#include "gm_dense_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_dense_s8_t gm_dense_s16_t;

GM_INLINE void gm_dense_s16_core(const gm_dense_s16_t *p, int16_t *GM_RESTRICT y,
                                 const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                 const int32_t *GM_RESTRICT bias,
                                 const int32_t *GM_RESTRICT multiplier)
{
    gm_dense_stored(p, 2, y, x, w, bias, multiplier);
}

void gm_dense_s16(const gm_dense_s16_t *p, int16_t *GM_RESTRICT y, const int16_t *GM_RESTRICT x,
                  const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                  const int32_t *GM_RESTRICT multiplier);

#ifdef __cplusplus
}
#endif

#endif
