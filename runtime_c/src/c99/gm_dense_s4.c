/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s4.h"

GM_KERNEL void gm_dense_s4(const gm_dense_s4_t *p, int8_t *GM_RESTRICT y,
                           const int8_t *GM_RESTRICT x, const uint8_t *GM_RESTRICT w,
                           const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier)
{
    gm_dense_s4_core(p, y, x, w, bias, multiplier);
}
