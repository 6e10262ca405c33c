/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_resize_linear_s16.h"

GM_KERNEL void gm_resize_linear_s16(const gm_resize_linear_s16_t *p, int16_t *GM_RESTRICT y,
                                    const int16_t *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                                    const int32_t *GM_RESTRICT row_weights,
                                    const int32_t *GM_RESTRICT cols,
                                    const int32_t *GM_RESTRICT col_weights)
{
    gm_resize_linear_s16_core(p, y, x, rows, row_weights, cols, col_weights);
}
