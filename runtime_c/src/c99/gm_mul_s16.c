/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_mul_s16.h"

GM_KERNEL void gm_mul_s16(const gm_mul_s16_t *p, int16_t *y, const int16_t *a, const int16_t *b)
{
    gm_mul_s16_core(p, y, a, b);
}
