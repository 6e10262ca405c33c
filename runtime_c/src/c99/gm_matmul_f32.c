/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_matmul_f32.h"

GM_KERNEL void gm_matmul_f32(const gm_matmul_f32_t *p, float *GM_RESTRICT y,
                             const float *GM_RESTRICT a, const float *GM_RESTRICT b)
{
    gm_matmul_f32_core(p, y, a, b);
}
