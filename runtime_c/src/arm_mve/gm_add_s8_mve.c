/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_add_s8_mve.h"

GM_KERNEL void gm_add_s8_mve(const gm_add_s8_mve_t *p, int8_t *y, const int8_t *a, const int8_t *b)
{
    gm_add_s8_mve_core(p, y, a, b);
}
