/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_f32_rows.h"

GM_KERNEL void gm_conv2d_f32_rows(const gm_conv2d_f32_t *p, float *y, int32_t oy,
                                  const void *const *rows, const float *GM_RESTRICT w,
                                  const float *GM_RESTRICT bias)
{
    gm_conv2d_f32_rows_core(p, y, oy, rows, w, bias);
}
