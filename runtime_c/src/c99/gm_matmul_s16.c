/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_matmul_s16.h"

GM_KERNEL void gm_matmul_s16(const gm_matmul_s16_t *p, int16_t *GM_RESTRICT y,
                             const int16_t *GM_RESTRICT a, const int16_t *GM_RESTRICT b)
{
    gm_matmul_s16_core(p, y, a, b);
}
