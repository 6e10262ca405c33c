/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s8_avx2.h"

GM_KERNEL void gm_dense_s8_avx2(const gm_dense_s8_avx2_t *p, int8_t *GM_RESTRICT y,
                                const int8_t *GM_RESTRICT x, const int16_t *GM_RESTRICT w,
                                const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier, void *scratch)
{
    gm_dense_s8_avx2_core(p, y, x, w, bias, multiplier, scratch);
}
