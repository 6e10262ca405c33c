/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_s8_avx2_rows.h"

GM_KERNEL void gm_depthwise_s8_avx2_rows(const gm_depthwise_s8_avx2_t *p, int8_t *y, int32_t oy,
                                         const void *const *rows, const int32_t *w, void *scratch)
{
    gm_depthwise_s8_avx2_rows_core(p, y, oy, rows, w, scratch);
}
