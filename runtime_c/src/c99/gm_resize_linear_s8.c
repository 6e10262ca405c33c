/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_resize_linear_s8.h"

GM_KERNEL void gm_resize_linear_s8(const gm_resize_linear_s8_t *p, int8_t *GM_RESTRICT y,
                                   const int8_t *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                                   const int16_t *GM_RESTRICT row_weights,
                                   const int32_t *GM_RESTRICT cols,
                                   const int16_t *GM_RESTRICT col_weights)
{
    gm_resize_linear_s8_core(p, y, x, rows, row_weights, cols, col_weights);
}
