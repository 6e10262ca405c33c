/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv_transpose2d_s8.h"

GM_KERNEL void gm_conv_transpose2d_s8(const gm_conv_transpose2d_s8_t *p, int8_t *GM_RESTRICT y,
                                      const int8_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                                      const int32_t *GM_RESTRICT bias,
                                      const int32_t *GM_RESTRICT multiplier,
                                      void *GM_RESTRICT scratch)
{
    gm_conv_transpose2d_s8_core(p, y, x, w, bias, multiplier, scratch);
}
