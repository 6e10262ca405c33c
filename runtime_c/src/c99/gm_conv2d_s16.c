/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s16.h"

GM_KERNEL void gm_conv2d_s16(const gm_conv2d_s16_t *p, int16_t *y, const int16_t *x,
                             const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                             const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    gm_conv2d_s16_core(p, y, x, w, bias, multiplier, scratch);
}
