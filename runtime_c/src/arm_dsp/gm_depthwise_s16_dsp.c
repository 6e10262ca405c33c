/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_depthwise_s16_dsp.h"

GM_KERNEL void gm_depthwise_s16_dsp(const gm_depthwise_s16_dsp_t *p, int16_t *y, const int16_t *x,
                                    const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                    const int32_t *GM_RESTRICT multiplier,
                                    void *GM_RESTRICT scratch)
{
    gm_depthwise_s16_dsp_core(p, y, x, w, bias, multiplier, scratch);
}
