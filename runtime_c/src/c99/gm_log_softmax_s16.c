/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_log_softmax_s16.h"

GM_KERNEL void gm_log_softmax_s16(const gm_log_softmax_s16_t *p, int16_t *y, const int16_t *x,
                                  const int32_t *GM_RESTRICT table)
{
    gm_log_softmax_s16_core(p, y, x, table);
}
