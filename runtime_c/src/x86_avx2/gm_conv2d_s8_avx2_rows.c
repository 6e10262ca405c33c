/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s8_avx2_rows.h"

GM_KERNEL void gm_conv2d_s8_avx2_rows(const gm_conv2d_s8_avx2_t *p, int8_t *y, int32_t oy,
                                      const void *const *rows, const int16_t *GM_RESTRICT w,
                                      const int32_t *GM_RESTRICT bias,
                                      const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    gm_conv2d_s8_avx2_rows_core(p, y, oy, rows, w, bias, multiplier, scratch);
}
