/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_conv2d_s8_mve_rows.h"

GM_KERNEL void gm_conv2d_s8_mve_rows(const gm_conv2d_s8_mve_t *p, int8_t *y, int32_t oy,
                                     const void *const *rows, const int32_t *w, void *scratch)
{
    gm_conv2d_s8_mve_rows_core(p, y, oy, rows, w, scratch);
}
