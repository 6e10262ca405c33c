/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_s8_rows.h"

GM_KERNEL void gm_depthwise_s8_rows(const gm_depthwise_s8_t *p, int8_t *y, int32_t oy,
                                    const void *const *rows, const int8_t *GM_RESTRICT w,
                                    const int32_t *GM_RESTRICT bias,
                                    const int32_t *GM_RESTRICT multiplier)
{
    gm_depthwise_s8_rows_core(p, y, oy, rows, w, bias, multiplier);
}
