/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s16_direct.h"

GM_KERNEL void gm_conv2d_s16_direct(const gm_conv2d_s16_direct_t *p, int16_t *GM_RESTRICT y,
                                    const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                    const int64_t *GM_RESTRICT bias,
                                    const int32_t *GM_RESTRICT multiplier)
{
    gm_conv2d_s16_direct_core(p, y, x, w, bias, multiplier);
}
