/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_matmul_s8.h"

GM_KERNEL void gm_matmul_s8(const gm_matmul_s8_t *p, int8_t *GM_RESTRICT y,
                            const int8_t *GM_RESTRICT a, const int8_t *GM_RESTRICT b)
{
    gm_matmul_s8_core(p, y, a, b);
}
