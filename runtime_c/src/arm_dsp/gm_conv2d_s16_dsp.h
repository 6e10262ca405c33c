/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int16 with int8 weights, two pixels times four channels, see gm_pair_product.h. */
#ifndef GM_CONV2D_S16_DSP_H
#define GM_CONV2D_S16_DSP_H

#include "gm_conv2d_s16.h"
#include "gm_pair_product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_conv2d_s8_t gm_conv2d_s16_dsp_t;

/* Steps of a window's product, an even number. */
GM_INLINE int32_t gm_conv2d_s16_dsp_steps(const gm_conv2d_s8_t *p)
{
    return (p->kernel_height * p->kernel_width * p->channels + 3) / 4 * 2;
}

/* The windows of two pixels, `offset` and `second` elements into the rows, one after the other. */
GM_INLINE void gm_conv2d_s16_dsp_gather(const gm_conv2d_s8_t *p, int16_t *pair,
                                        const void *const *rows, int32_t offset, int32_t second)
{
    const int whole = p->groups == 1 && p->dilation_width == 1;
    const int32_t runs = whole ? 1 : p->kernel_width;
    const int32_t run = whole ? p->kernel_width * p->channels : p->channels;
    int32_t at = 0;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int16_t *a = (const int16_t *)rows[i] + offset;
        for (int32_t j = 0; j < runs; j++) {
            gm_pair_gather(pair, at, a, a + second, run);
            a += p->dilation_width * p->groups * p->channels;
            at += run;
        }
    }
}

/* `count` neighbouring pixels of the output from rows that are padded left and right. */
GM_INLINE void gm_conv2d_s16_dsp_row(const gm_conv2d_s8_t *p, int32_t count, int16_t *y,
                                     const void *const *rows, const int32_t *stream, int16_t *pair)
{
    const int32_t in = p->groups * p->channels;
    const int32_t out = p->groups * p->out_channels;
    const int32_t steps = gm_conv2d_s16_dsp_steps(p);
    const int32_t groups = (p->out_channels + 3) / 4;
    int32_t at = p->descending ? (count - 1) / 2 * 2 : 0;
    for (int32_t left = count; left > 0; left -= 2) {
        const int32_t both = count - at > 1;
        for (int32_t g = 0; g < p->groups; g++) {
            gm_pair_run_t run = {pair,
                                 steps / 4 * 32,
                                 steps * 8,
                                 stream + g * groups * (8 + 2 * steps),
                                 y + at * out + g * p->out_channels,
                                 both ? 2 * out : 0,
                                 p->zero_point,
                                 gm_twice_s16(p->low),
                                 gm_twice_s16(p->high),
                                 groups,
                                 p->shift,
                                 p->out_channels - 4 * (groups - 1)};
            gm_conv2d_s16_dsp_gather(p, pair, rows, at * p->stride_width * in + g * p->channels,
                                     both ? p->stride_width * in : 0);
            gm_pair_product(&run);
        }
        at += p->descending ? -2 : 2;
    }
}

/* stream: per group and four output channels biases, weights and multipliers.
 * scratch: 8 bytes for each step, then the ring of gm_conv2d_s16.
 * y may be x as for gm_conv2d_s16. */
GM_INLINE void gm_conv2d_s16_dsp_core(const gm_conv2d_s16_dsp_t *p, int16_t *y, const int16_t *x,
                                      const int32_t *GM_RESTRICT w, void *GM_RESTRICT scratch)
{
    const int pointwise = gm_conv2d_is_pointwise(p);
    const int32_t batch = pointwise ? 1 : p->batch;
    const int32_t out_height = pointwise ? 1 : p->out_height;
    const int32_t out_width = p->out_width * (pointwise ? p->batch * p->out_height : 1);
    gm_ring_t ring = gm_conv2d_ring(p, 2, gm_to(scratch, gm_conv2d_s16_dsp_steps(p), 8));
    for (int32_t n = 0; n < batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            gm_conv2d_rows(p, 2, &ring, x, oy, rows);
            gm_conv2d_s16_dsp_row(p, out_width, y, rows, w, (int16_t *)scratch);
            y += p->out_width * p->groups * p->out_channels;
        }
        x += p->height * p->width * p->groups * p->channels;
    }
}

void gm_conv2d_s16_dsp(const gm_conv2d_s16_dsp_t *p, int16_t *y, const int16_t *x,
                       const int32_t *GM_RESTRICT w, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
