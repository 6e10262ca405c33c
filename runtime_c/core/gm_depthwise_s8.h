/* SPDX-License-Identifier: Apache-2.0
 * Depthwise convolution, int8, NHWC: every channel has a window of its own,
 * y[c] = requantize(bias[c] + sum x[c] * w[c]); padding is the zero point of x.
 * Its functions serve int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_DEPTHWISE_S8_H
#define GM_DEPTHWISE_S8_H

#include "gm_requant.h"
#include "gm_stored.h"
#include "gm_window.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t batch;
    int32_t height; /* of x */
    int32_t width;
    int32_t out_height;
    int32_t out_width;
    int32_t kernel_height; /* up to GM_WINDOW_ROWS */
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_top;
    int32_t pad_left;
    int32_t padded_width; /* pixels of a padded row; 0: no padding, rows are read where they lie */
    int32_t channels;
    int32_t fill;       /* the zero point of x */
    int32_t shift;      /* left shift of the accumulator, 0..15 */
    int32_t zero_point; /* of y */
    int32_t low;        /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
} gm_depthwise_s8_t;

/* One tap of `pixels` neighbours, `step` elements apart; the other sums are not used. */
GM_INLINE void gm_depthwise_tap(int32_t acc[4], int32_t size, int32_t pixels, const void *u,
                                int32_t step, int32_t w)
{
    acc[0] += gm_get(u, 0, size) * w;
    acc[1] += gm_get(u, pixels > 1 ? step : 0, size) * w;
    acc[2] += gm_get(u, pixels > 2 ? 2 * step : 0, size) * w;
    acc[3] += gm_get(u, pixels > 3 ? 3 * step : 0, size) * w;
}

/* One row of the window. Three taps in a line share most of what they read at stride 1. */
GM_INLINE void gm_depthwise_line(const gm_depthwise_s8_t *p, int32_t acc[4], int32_t size,
                                 int32_t pixels, const void *u, int32_t step, const int8_t *w)
{
    const int32_t n = p->channels;
    const int32_t next = p->dilation_width * n;
    if (GM_IS_CONSTANT(p->kernel_width) && p->kernel_width == 3) {
        gm_depthwise_tap(acc, size, pixels, u, step, w[0]);
        gm_depthwise_tap(acc, size, pixels, gm_from(u, next, size), step, w[n]);
        gm_depthwise_tap(acc, size, pixels, gm_from(u, 2 * next, size), step, w[2 * n]);
        return;
    }
    for (int32_t j = 0; j < p->kernel_width; j++) {
        gm_depthwise_tap(acc, size, pixels, u, step, *w);
        u = gm_from(u, next, size);
        w += n;
    }
}

/* At larger strides the compiler would load all three lines first, and spill them. */
GM_INLINE void gm_depthwise_apart(const gm_depthwise_s8_t *p)
{
    if (p->stride_width > 1) {
        GM_FENCE();
    }
}

/* One to four neighbouring pixels (a constant at every call). The window starts `offset` elements
 * into the rows. */
GM_INLINE void gm_depthwise_pixels(const gm_depthwise_s8_t *p, int32_t size, int32_t pixels,
                                   void *y, const void *const *rows, int32_t offset,
                                   const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                   const int32_t *GM_RESTRICT multiplier)
{
    const int32_t channels = p->channels;
    const int32_t step = p->stride_width * channels;
    const int32_t line = p->kernel_width * channels;
    for (int32_t c = 0; c < channels; c++) {
        const int32_t at = offset + c;
        int32_t acc[4] = {bias[c], bias[c], bias[c], bias[c]};
        if (GM_IS_CONSTANT(p->kernel_height) && p->kernel_height == 3) {
            gm_depthwise_line(p, acc, size, pixels, gm_from(rows[0], at, size), step, w + c);
            gm_depthwise_apart(p);
            gm_depthwise_line(p, acc, size, pixels, gm_from(rows[1], at, size), step, w + c + line);
            gm_depthwise_apart(p);
            gm_depthwise_line(p, acc, size, pixels, gm_from(rows[2], at, size), step,
                              w + c + 2 * line);
        } else {
            for (int32_t i = 0; i < p->kernel_height; i++) {
                gm_depthwise_line(p, acc, size, pixels, gm_from(rows[i], at, size), step,
                                  w + c + i * line);
            }
        }
        const int32_t m = multiplier[c];
        const int32_t z = p->zero_point;
        gm_put(y, c, size, gm_requant(acc[0], m, p->shift, z, p->low, p->high));
        if (pixels > 1) {
            gm_put(y, channels + c, size, gm_requant(acc[1], m, p->shift, z, p->low, p->high));
        }
        if (pixels > 2) {
            gm_put(y, 2 * channels + c, size, gm_requant(acc[2], m, p->shift, z, p->low, p->high));
        }
        if (pixels > 3) {
            gm_put(y, 3 * channels + c, size, gm_requant(acc[3], m, p->shift, z, p->low, p->high));
        }
    }
}

/* One row of the output from kernel_height rows of the input, padded left and right. */
GM_INLINE void gm_depthwise_row(const gm_depthwise_s8_t *p, int32_t size, void *y,
                                const void *const *rows, const int8_t *GM_RESTRICT w,
                                const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier)
{
    const int32_t step = p->stride_width * p->channels;
    int32_t offset = 0;
    int32_t ox = 0;
    for (; ox <= p->out_width - 4; ox += 4) {
        gm_depthwise_pixels(p, size, 4, y, rows, offset, w, bias, multiplier);
        offset += 4 * step;
        y = gm_to(y, 4 * p->channels, size);
    }
    if (GM_IS_CONSTANT(p->out_width) && p->out_width % 4 == 3) {
        gm_depthwise_pixels(p, size, 3, y, rows, offset, w, bias, multiplier);
        return;
    }
    if (GM_IS_CONSTANT(p->out_width) && p->out_width % 4 == 2) {
        gm_depthwise_pixels(p, size, 2, y, rows, offset, w, bias, multiplier);
        return;
    }
    for (; ox < p->out_width; ox++) {
        gm_depthwise_pixels(p, size, 1, y, rows, offset, w, bias, multiplier);
        offset += step;
        y = gm_to(y, p->channels, size);
    }
}

/* The ring of padded rows. */
GM_INLINE gm_ring_t gm_depthwise_ring(const gm_depthwise_s8_t *p, int32_t size, void *scratch)
{
    const int32_t pixel = p->channels * size;
    const int32_t room = p->padded_width - p->pad_left;
    gm_ring_t ring = {(unsigned char *)scratch,
                      (p->kernel_height - 1) * p->dilation_height + 1,
                      p->padded_width * pixel,
                      p->pad_left * pixel,
                      (room < p->width ? room : p->width) * pixel,
                      p->height,
                      p->fill,
                      0,
                      0};
    return ring;
}

/* Point to the rows that row oy of the output sees: in the ring, or in x where nothing is padded.
 */
GM_INLINE void gm_depthwise_rows(const gm_depthwise_s8_t *p, int32_t size, gm_ring_t *ring,
                                 const void *x, int32_t oy, const void **rows)
{
    const int32_t row = p->width * p->channels * size;
    const int32_t first = oy * p->stride_height - p->pad_top;
    if (p->padded_width > 0) {
        gm_ring_rows(ring, x, row, first, p->kernel_height, p->dilation_height, rows);
        return;
    }
    for (int32_t i = 0; i < p->kernel_height; i++) {
        rows[i] = gm_from(x, first + i * p->dilation_height, row);
    }
}

/* w: [kernel_height][kernel_width][channels]; bias and multiplier: [channels].
 * scratch: with padding, (kernel_height - 1) * dilation_height + 1 rows of padded_width pixels;
 * without it NULL. y may be x where there is padding and each output row ends before the first
 * input row that is not yet in scratch. */
GM_INLINE void gm_depthwise_stored(const gm_depthwise_s8_t *p, int32_t size, void *y, const void *x,
                                   const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                   const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    gm_ring_t ring = gm_depthwise_ring(p, size, scratch);
    for (int32_t n = 0; n < p->batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < p->out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            gm_depthwise_rows(p, size, &ring, x, oy, rows);
            gm_depthwise_row(p, size, y, rows, w, bias, multiplier);
            y = gm_to(y, p->out_width * p->channels, size);
        }
        x = gm_from(x, p->height * p->width * p->channels, size);
    }
}

GM_INLINE void gm_depthwise_s8_core(const gm_depthwise_s8_t *p, int8_t *y, const int8_t *x,
                                    const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                    const int32_t *GM_RESTRICT multiplier,
                                    void *GM_RESTRICT scratch)
{
    gm_depthwise_stored(p, 1, y, x, w, bias, multiplier, scratch);
}

void gm_depthwise_s8(const gm_depthwise_s8_t *p, int8_t *y, const int8_t *x,
                     const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                     const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
