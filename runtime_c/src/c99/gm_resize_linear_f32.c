/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_resize_linear_f32.h"

GM_KERNEL void gm_resize_linear_f32(const gm_resize_linear_f32_t *p, float *GM_RESTRICT y,
                                    const float *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                                    const float *GM_RESTRICT row_weights,
                                    const int32_t *GM_RESTRICT cols,
                                    const float *GM_RESTRICT col_weights)
{
    gm_resize_linear_f32_core(p, y, x, rows, row_weights, cols, col_weights);
}
