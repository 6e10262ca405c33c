/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, int16 with int8 weights as int16, for the DSP extension: two channels,
 * which are a word of x and of the weights, of two pixels at once. */
#ifndef GM_DEPTHWISE_S16_DSP_H
#define GM_DEPTHWISE_S16_DSP_H

#include "gm_depthwise_s16.h"
#include "gm_pair_product.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef gm_depthwise_s8_t gm_depthwise_s16_dsp_t;

/* acc[0] += low half of x * low half of w; acc[1] likewise with the high halves. */
GM_INLINE void gm_depthwise_s16_dsp_halves(int32_t acc[2], uint32_t x, uint32_t w)
{
#if GM_ASM
    /* one statement: apart, the compiler would bring all of one kind together, and spill */
    __asm__("smlabb %0, %2, %3, %0\n\tsmlatt %1, %2, %3, %1"
            : "+r"(acc[0]), "+r"(acc[1])
            : "r"(x), "r"(w));
#else
    acc[0] = __smlabb((int32_t)x, (int32_t)w, acc[0]);
    acc[1] = __smlatt((int32_t)x, (int32_t)w, acc[1]);
#endif
}

/* One tap of `pixels` neighbours, `step` elements apart. */
GM_INLINE void gm_depthwise_s16_dsp_tap(int32_t acc[4], int32_t pixels, const int16_t *u,
                                        int32_t step, uint32_t w)
{
    gm_depthwise_s16_dsp_halves(acc, gm_load_u32(u), w);
    if (pixels > 1) {
        gm_depthwise_s16_dsp_halves(acc + 2, gm_load_u32(u + step), w);
    }
}

/* One row of the window. */
GM_INLINE void gm_depthwise_s16_dsp_line(const gm_depthwise_s8_t *p, int32_t acc[4], int32_t pixels,
                                         const int16_t *u, int32_t step, const int16_t *w)
{
    const int32_t n = p->channels;
    const int32_t next = p->dilation_width * n;
    if (GM_IS_CONSTANT(p->kernel_width) && p->kernel_width == 3) {
        gm_depthwise_s16_dsp_tap(acc, pixels, u, step, gm_load_u32(w));
        gm_depthwise_s16_dsp_tap(acc, pixels, u + next, step, gm_load_u32(w + n));
        gm_depthwise_s16_dsp_tap(acc, pixels, u + 2 * next, step, gm_load_u32(w + 2 * n));
        GM_FENCE();
        return;
    }
    for (int32_t j = 0; j < p->kernel_width; j++) {
        gm_depthwise_s16_dsp_tap(acc, pixels, u, step, gm_load_u32(w));
        u += next;
        w += n;
    }
}

/* Both channels of one pixel: (acc * multiplier + 2^31) >> 32, zero point, clamp. */
GM_INLINE void gm_depthwise_s16_dsp_store(const gm_depthwise_s8_t *p, int16_t *y,
                                          const int32_t acc[2], const int32_t *multiplier)
{
    const int32_t a = gm_requant_dsp(acc[0], multiplier[0], p->shift, p->zero_point);
    const int32_t b = gm_requant_dsp(acc[1], multiplier[1], p->shift, p->zero_point);
    gm_store_u32(y, gm_clamp_two(a, b, gm_twice_s16(p->low), gm_twice_s16(p->high)));
}

/* One or two neighbouring pixels (a constant at every call). The window starts `offset`
 * elements into the rows. */
GM_INLINE void gm_depthwise_s16_dsp_pixels(const gm_depthwise_s8_t *p, int32_t pixels, int16_t *y,
                                           const void *const *rows, int32_t offset,
                                           const int16_t *GM_RESTRICT w,
                                           const int32_t *GM_RESTRICT bias,
                                           const int32_t *GM_RESTRICT multiplier)
{
    const int32_t channels = p->channels;
    const int32_t step = p->stride_width * channels;
    const int32_t line = p->kernel_width * channels;
    for (int32_t c = 0; c < channels; c += 2) {
        const int32_t at = offset + c;
        int32_t acc[4] = {bias[c], bias[c + 1], bias[c], bias[c + 1]};
        for (int32_t i = 0; i < p->kernel_height; i++) {
            gm_depthwise_s16_dsp_line(p, acc, pixels, (const int16_t *)rows[i] + at, step,
                                      w + c + i * line);
        }
        gm_depthwise_s16_dsp_store(p, y + c, acc, multiplier + c);
        if (pixels > 1) {
            gm_depthwise_s16_dsp_store(p, y + channels + c, acc + 2, multiplier + c);
        }
    }
}

/* One row of the output from kernel_height rows of the input, padded left and right. */
GM_INLINE void gm_depthwise_s16_dsp_row(const gm_depthwise_s8_t *p, int16_t *y,
                                        const void *const *rows, const int16_t *GM_RESTRICT w,
                                        const int32_t *GM_RESTRICT bias,
                                        const int32_t *GM_RESTRICT multiplier)
{
    const int32_t step = p->stride_width * p->channels;
    int32_t offset = 0;
    int32_t left = p->out_width;
    for (; left >= 2; left -= 2) {
        gm_depthwise_s16_dsp_pixels(p, 2, y, rows, offset, w, bias, multiplier);
        offset += 2 * step;
        y += 2 * p->channels;
    }
    if (left > 0) {
        gm_depthwise_s16_dsp_pixels(p, 1, y, rows, offset, w, bias, multiplier);
    }
}

/* w: [kernel_height][kernel_width][channels], an even number of channels. scratch: the ring of
 * gm_depthwise_s16; y may be x as there. */
GM_INLINE void gm_depthwise_s16_dsp_core(const gm_depthwise_s16_dsp_t *p, int16_t *y,
                                         const int16_t *x, const int16_t *GM_RESTRICT w,
                                         const int32_t *GM_RESTRICT bias,
                                         const int32_t *GM_RESTRICT multiplier,
                                         void *GM_RESTRICT scratch)
{
    gm_ring_t ring = gm_depthwise_ring(p, 2, scratch);
    for (int32_t n = 0; n < p->batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            gm_depthwise_rows(p, 2, &ring, x, oy, rows);
            gm_depthwise_s16_dsp_row(p, y, rows, w, bias, multiplier);
            y += p->out_width * p->channels;
        }
        x += p->height * p->width * p->channels;
    }
}

void gm_depthwise_s16_dsp(const gm_depthwise_s16_dsp_t *p, int16_t *y, const int16_t *x,
                          const int16_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                          const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
