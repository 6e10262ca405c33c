/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_mul_s8.h"

GM_KERNEL void gm_mul_s8(const gm_mul_s8_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    gm_mul_s8_core(p, y, a, b);
}
