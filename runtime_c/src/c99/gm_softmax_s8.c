/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_softmax_s8.h"

GM_KERNEL void gm_softmax_s8(const gm_softmax_s8_t *p, int8_t *y, const int8_t *x,
                             const uint32_t *GM_RESTRICT table)
{
    gm_softmax_s8_core(p, y, x, table);
}
