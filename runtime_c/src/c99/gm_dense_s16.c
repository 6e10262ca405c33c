/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s16.h"

GM_KERNEL void gm_dense_s16(const gm_dense_s16_t *p, int16_t *GM_RESTRICT y,
                            const int16_t *GM_RESTRICT x, const int8_t *GM_RESTRICT w,
                            const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier)
{
    gm_dense_s16_core(p, y, x, w, bias, multiplier);
}
