/* SPDX-License-Identifier: Apache-2.0
 * Convolution, int8, NHWC: y = requantize(bias + sum x * w), padding is the zero point of x.
 * Its functions serve int16 as well: `size` is the bytes of an element of x and y. */
#ifndef GM_CONV2D_S8_H
#define GM_CONV2D_S8_H

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
    int32_t groups;
    int32_t channels;     /* input channels of one group */
    int32_t out_channels; /* output channels of one group */
    int32_t fill;         /* the zero point of x */
    int32_t shift;        /* left shift of the accumulator, 0..15 */
    int32_t zero_point;   /* of y */
    int32_t low;          /* clamp of y, -128 <= low <= high <= 127 */
    int32_t high;
    int32_t descending; /* 1: from the last pixel of a row to the first */
} gm_conv2d_s8_t;

/* Requantize up to four channels of a pixel. */
GM_INLINE void gm_conv2d_store(const gm_conv2d_s8_t *p, int32_t size, void *GM_RESTRICT y,
                               int32_t last, const int32_t acc[4],
                               const int32_t *GM_RESTRICT multiplier)
{
    const int32_t s = p->shift;
    const int32_t z = p->zero_point;
    gm_put(y, 0, size, gm_requant(acc[0], multiplier[0], s, z, p->low, p->high));
    if (last > 1) {
        gm_put(y, 1, size, gm_requant(acc[1], multiplier[1], s, z, p->low, p->high));
    }
    if (last > 2) {
        gm_put(y, 2, size, gm_requant(acc[2], multiplier[2], s, z, p->low, p->high));
    }
    if (last > 3) {
        gm_put(y, 3, size, gm_requant(acc[3], multiplier[3], s, z, p->low, p->high));
    }
}

/* One value of each of two pixels times the weights of four channels. */
GM_INLINE void gm_conv2d_step(int32_t a[4], int32_t b[4], int32_t u, int32_t v,
                              const int8_t *GM_RESTRICT w)
{
    a[0] += u * w[0];
    b[0] += v * w[0];
    a[1] += u * w[1];
    b[1] += v * w[1];
    a[2] += u * w[2];
    b[2] += v * w[2];
    a[3] += u * w[3];
    b[3] += v * w[3];
}

/* All channels of one pixel, or of two neighbours (pixels is 1 or 2, a constant at every call).
 * The window starts `offset` elements into the rows. */
GM_INLINE void gm_conv2d_pixels(const gm_conv2d_s8_t *p, int32_t size, int32_t pixels, void *y,
                                const void *const *rows, int32_t offset,
                                const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier)
{
    const int32_t pitch = p->groups * p->channels;
    /* without groups and dilation, the window's pixels in a row are one run of values */
    const int whole = p->groups == 1 && p->dilation_width == 1;
    const int32_t runs = whole ? 1 : p->kernel_width;
    const int32_t run = whole ? p->kernel_width * p->channels : p->channels;
    const int32_t second = pixels == 2 ? p->stride_width * pitch : 0;
    for (int32_t g = 0; g < p->groups; g++) {
        for (int32_t n = 0; n < p->out_channels; n += 4) {
            const int32_t last = p->out_channels - n;
            int32_t a[4] = {bias[0], bias[1], bias[2], bias[3]};
            int32_t b[4] = {bias[0], bias[1], bias[2], bias[3]};
            for (int32_t i = 0; i < p->kernel_height; i++) {
                const void *u = gm_from(rows[i], offset, size);
                for (int32_t j = 0; j < runs; j++) {
                    const void *v = gm_from(u, second, size);
                    for (int32_t k = 0; k < run; k++) {
                        gm_conv2d_step(a, b, gm_get(u, k, size), gm_get(v, k, size), w);
                        w += 4;
                    }
                    u = gm_from(u, p->dilation_width * pitch, size);
                }
            }
            gm_conv2d_store(p, size, y, last, a, multiplier);
            if (pixels == 2) {
                void *next = gm_to(y, p->groups * p->out_channels, size);
                gm_conv2d_store(p, size, next, last, b, multiplier);
            }
            y = gm_to(y, last < 4 ? last : 4, size);
            bias += 4;
            multiplier += 4;
        }
        offset += p->channels;
    }
}

/* `count` neighbouring pixels of the output from kernel_height rows of the input, padded left and
 * right: a row. With `pair` (1x1 only), pixels are moved there before y is written, as y may lie on
 * them. */
GM_INLINE void gm_conv2d_row(const gm_conv2d_s8_t *p, int32_t size, int32_t count, void *y,
                             const void *const *rows, const int8_t *GM_RESTRICT w,
                             const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                             void *pair)
{
    const int32_t in = p->groups * p->channels;
    const int32_t out = p->groups * p->out_channels;
    const void *const moved[1] = {pair};
    int32_t at = p->descending ? (count - 1) / 2 * 2 : 0;
    for (int32_t left = count; left > 0; left -= 2) {
        const int32_t offset = at * p->stride_width * in;
        if (pair) {
            const int32_t moved_bytes = (count - at > 1 ? 2 : 1) * in * size;
            memcpy(pair, gm_from(rows[0], offset, size), (size_t)moved_bytes);
        }
        if (count % 2 == 0 || count - at > 1) {
            gm_conv2d_pixels(p, size, 2, gm_to(y, at * out, size), pair ? moved : rows,
                             pair ? 0 : offset, w, bias, multiplier);
        } else {
            gm_conv2d_pixels(p, size, 1, gm_to(y, at * out, size), pair ? moved : rows,
                             pair ? 0 : offset, w, bias, multiplier);
        }
        at += p->descending ? -2 : 2;
    }
}

/* True for a 1x1 convolution of stride 1, which sees the whole batch as one row. */
GM_INLINE int gm_conv2d_is_pointwise(const gm_conv2d_s8_t *p)
{
    return p->kernel_height == 1 && p->kernel_width == 1 && p->stride_height == 1 &&
           p->stride_width == 1 && p->padded_width == 0;
}

/* The ring of padded rows. */
GM_INLINE gm_ring_t gm_conv2d_ring(const gm_conv2d_s8_t *p, int32_t size, void *scratch)
{
    const int32_t pixel = p->groups * p->channels * size;
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
GM_INLINE void gm_conv2d_rows(const gm_conv2d_s8_t *p, int32_t size, gm_ring_t *ring, const void *x,
                              int32_t oy, const void **rows)
{
    const int32_t row = p->width * p->groups * p->channels * size;
    const int32_t first = oy * p->stride_height - p->pad_top;
    if (p->padded_width > 0) {
        gm_ring_rows(ring, x, row, first, p->kernel_height, p->dilation_height, rows);
        return;
    }
    for (int32_t i = 0; i < p->kernel_height; i++) {
        rows[i] = gm_from(x, first + i * p->dilation_height, row);
    }
}

/* w: per group [ceil(out_channels / 4)][kernel_height][kernel_width][channels][4], missing channels
 * as zeros; bias and multiplier: per group, padded to a multiple of four.
 * scratch: a 1x1 convolution of stride 1 that does not widen, two pixels of x; with padding,
 * (kernel_height - 1) * dilation_height + 1 rows of padded_width pixels; else NULL.
 * y may be x where each output row ends before the first input row that is not yet in the ring. */
GM_INLINE void gm_conv2d_stored(const gm_conv2d_s8_t *p, int32_t size, void *y, const void *x,
                                const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    const int pointwise = gm_conv2d_is_pointwise(p);
    const int32_t batch = pointwise ? 1 : p->batch;
    const int32_t out_height = pointwise ? 1 : p->out_height;
    const int32_t out_width = p->out_width * (pointwise ? p->batch * p->out_height : 1);
    void *pair = pointwise && p->out_channels <= p->channels ? scratch : NULL;
    gm_ring_t ring = gm_conv2d_ring(p, size, scratch);
    for (int32_t n = 0; n < batch; n++) {
        if (p->padded_width > 0) {
            gm_ring_start(&ring, p->pad_top);
        }
        for (int32_t oy = 0; oy < out_height; oy++) {
            const void *rows[GM_WINDOW_ROWS];
            gm_conv2d_rows(p, size, &ring, x, oy, rows);
            gm_conv2d_row(p, size, out_width, y, rows, w, bias, multiplier, pair);
            y = gm_to(y, p->out_width * p->groups * p->out_channels, size);
        }
        x = gm_from(x, p->height * p->width * p->groups * p->channels, size);
    }
}

GM_INLINE void gm_conv2d_s8_core(const gm_conv2d_s8_t *p, int8_t *y, const int8_t *x,
                                 const int8_t *GM_RESTRICT w, const int32_t *GM_RESTRICT bias,
                                 const int32_t *GM_RESTRICT multiplier, void *GM_RESTRICT scratch)
{
    gm_conv2d_stored(p, 1, y, x, w, bias, multiplier, scratch);
}

void gm_conv2d_s8(const gm_conv2d_s8_t *p, int8_t *y, const int8_t *x, const int8_t *GM_RESTRICT w,
                  const int32_t *GM_RESTRICT bias, const int32_t *GM_RESTRICT multiplier,
                  void *GM_RESTRICT scratch);

#ifdef __cplusplus
}
#endif

#endif
