/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_f32_fpu_rows.h"

GM_KERNEL void gm_conv2d_f32_fpu_rows(const gm_conv2d_f32_fpu_t *p, float *y, int32_t oy,
                                      const void *const *rows, const float *w, const float *bias,
                                      void *scratch)
{
    gm_conv2d_f32_fpu_rows_core(p, y, oy, rows, w, bias, scratch);
}
