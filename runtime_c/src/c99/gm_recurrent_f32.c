/* SPDX-License-Identifier: Apache-2.0 */
#include "gm_recurrent_f32.h"

GM_KERNEL void gm_recurrent_f32(const gm_recurrent_f32_t *p, float *y, float *yh, float *yc,
                                const float *x, const float *w, const float *r, const float *b,
                                const float *rb, const int32_t *lengths, const float *h0,
                                const float *c0, const float *peephole, float *gates)
{
    gm_recurrent_f32_core(p, y, yh, yc, x, w, r, b, rb, lengths, h0, c0, peephole, gates);
}
