/* SPDX-License-Identifier: Apache-2.0
 * Bilinear resizing of NHWC, int8: weights in 1024ths, a sum in 2^20ths, requantized. */
#ifndef GM_RESIZE_LINEAR_S8_H
#define GM_RESIZE_LINEAR_S8_H

#include "gm_requant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t channels;
    int32_t out_height; /* of y */
    int32_t out_width;
    int32_t x_zero_point;
    int32_t multiplier; /* of sx / sy / 2^20 */
    int32_t zero_point; /* of y */
} gm_resize_linear_s8_t;

/* Row i of y lies between rows[i] and the row after it, row_weights[i] / 1024 of the way (0..1024);
 * the row after is not read where the weight is 0. Columns likewise. y must not overlap x. */
GM_INLINE void gm_resize_linear_s8_core(const gm_resize_linear_s8_t *p, int8_t *GM_RESTRICT y,
                                        const int8_t *GM_RESTRICT x,
                                        const int32_t *GM_RESTRICT rows,
                                        const int16_t *GM_RESTRICT row_weights,
                                        const int32_t *GM_RESTRICT cols,
                                        const int16_t *GM_RESTRICT col_weights)
{
    const int32_t pitch = p->width * p->channels;
    const int32_t bias = -p->x_zero_point * (INT32_C(1) << 20);
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t i = 0; i < p->out_height; i++) {
            const int32_t down = row_weights[i];
            const int8_t *top = x + rows[i] * pitch;
            const int8_t *bottom = down > 0 ? top + pitch : top;
            for (int32_t j = 0; j < p->out_width; j++) {
                const int32_t right = col_weights[j];
                const int32_t here = cols[j] * p->channels;
                const int32_t next = right > 0 ? here + p->channels : here;
                const int32_t w3 = right * down;
                const int32_t w2 = 1024 * down - w3;
                const int32_t w1 = right * 1024 - w3;
                const int32_t w0 = 1024 * 1024 - w1 - w2 - w3;
                for (int32_t c = 0; c < p->channels; c++) {
                    const int32_t sum = bias + top[here + c] * w0 + top[next + c] * w1 +
                                        bottom[here + c] * w2 + bottom[next + c] * w3;
                    y[c] = gm_requant_s8(sum, p->multiplier, 0, p->zero_point, -128, 127);
                }
                y += p->channels;
            }
        }
        x += p->height * pitch;
    }
}

void gm_resize_linear_s8(const gm_resize_linear_s8_t *p, int8_t *GM_RESTRICT y,
                         const int8_t *GM_RESTRICT x, const int32_t *GM_RESTRICT rows,
                         const int16_t *GM_RESTRICT row_weights, const int32_t *GM_RESTRICT cols,
                         const int16_t *GM_RESTRICT col_weights);

#ifdef __cplusplus
}
#endif

#endif
