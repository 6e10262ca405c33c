/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_dense_s8_mve.h"

GM_KERNEL void gm_dense_s8_mve(const gm_dense_s8_mve_t *p, int8_t *GM_RESTRICT y,
                               const int8_t *GM_RESTRICT x, const int32_t *GM_RESTRICT w)
{
    gm_dense_s8_mve_core(p, y, x, w);
}
