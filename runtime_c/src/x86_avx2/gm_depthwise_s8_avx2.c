/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_s8_avx2.h"

GM_KERNEL void gm_depthwise_s8_avx2(const gm_depthwise_s8_avx2_t *p, int8_t *y, const int8_t *x,
                                    const int32_t *w, void *scratch)
{
    gm_depthwise_s8_avx2_core(p, y, x, w, scratch);
}
