/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, int16 with int8 weights, see gm_depthwise_s8.h. */
#ifndef GM_DEPTHWISE_S16_H
#define GM_DEPTHWISE_S16_H

#include "gm_depthwise_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_s8_t gm_depthwise_s16_t;

GM_INLINE void gm_depthwise_s16_core(const gm_depthwise_s16_t *p, int16_t *y, const int16_t *x,
                                     const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                     const int32_t *GM_RESTRICT multiplier,
                                     void *GM_RESTRICT scratch)
{
    gm_depthwise_stored(p, 2, y, x, w, bias, multiplier, scratch);
}

void gm_depthwise_s16(const gm_depthwise_s16_t *p, int16_t *y, const int16_t *x,
                      const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                      const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
