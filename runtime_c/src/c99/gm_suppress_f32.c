/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_suppress_f32.h"

GM_KERNEL void gm_suppress_f32(const gm_suppress_f32_t *p, int64_t *GM_RESTRICT selected,
                               int32_t *GM_RESTRICT extent, const float *GM_RESTRICT boxes,
                               const float *GM_RESTRICT scores, void *GM_RESTRICT scratch)
{
    gm_suppress_f32_core(p, selected, extent, boxes, scores, scratch);
}
