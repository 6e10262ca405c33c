/* SPDX-License-Identifier: Apache-2.0
 * Transposed convolution, int16 with int8 weights, see gm_conv_transpose2d_s8.h. */
#ifndef GM_CONV_TRANSPOSE2D_S16_H
#define GM_CONV_TRANSPOSE2D_S16_H

#include "gm_conv_transpose2d_s8.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv_transpose2d_s8_t gm_conv_transpose2d_s16_t;

GM_INLINE void gm_conv_transpose2d_s16_core(const gm_conv_transpose2d_s16_t *p,
                                            int16_t *GM_RESTRICT y, const int16_t *GM_RESTRICT x,
                                            const int8_t *GM_RESTRICT w,
                                            const int32_t *GM_RESTRICT bias,
                                            const int32_t *GM_RESTRICT multiplier,
                                            void *GM_RESTRICT scratch)
{
    gm_conv_transpose2d_stored(p, 2, y, x, w, bias, multiplier, scratch);
}

void gm_conv_transpose2d_s16(const gm_conv_transpose2d_s16_t *p, int16_t *GM_RESTRICT y,
                             const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                             const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                             void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
