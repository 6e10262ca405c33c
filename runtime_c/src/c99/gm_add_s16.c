/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_add_s16.h"

GM_KERNEL void gm_add_s16(const gm_add_s16_t *p, int16_t *y, const int16_t *a, const int16_t *b)
{
    gm_add_s16_core(p, y, a, b);
}
