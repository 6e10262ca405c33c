/* SPDX-License-Identifier: Apache-2.0
 * Rows of padded input for kernels that slide a window over an image: a ring of the last rows, each
 * with its padding left and right; rows above and below the image are rows of padding. */
#ifndef GM_WINDOW_H
#define GM_WINDOW_H

#include "gm_types.h"

/* The tallest window of a kernel that works on row pointers. */
#define GM_WINDOW_ROWS 16

/* True where the compiler knows the value: code that pays only with constant parameters. */
#if defined(__GNUC__) || defined(__clang__)
#define GM_IS_CONSTANT(value) __builtin_constant_p(value)
#else
#define GM_IS_CONSTANT(value) 0
#endif

/* The taps `first + k * dilation` of a window that lie in [low, high) are those with from <= k <
 * to. */
GM_INLINE int32_t gm_window_from(int32_t first, int32_t kernel, int32_t dilation, int32_t low)
{
    int32_t k = 0;
    while (k < kernel && first + k * dilation < low) {
        k++;
    }
    return k;
}

GM_INLINE int32_t gm_window_to(int32_t first, int32_t kernel, int32_t dilation, int32_t high)
{
    int32_t k = kernel;
    while (k > 0 && first + (k - 1) * dilation >= high) {
        k--;
    }
    return k;
}

typedef struct {
    unsigned char *ring;
    int32_t count;     /* rows in the ring: (kernel height - 1) * dilation + 1 */
    int32_t pitch;     /* bytes of a padded row */
    int32_t pad_bytes; /* of these, padding on the left */
    int32_t row_bytes; /* bytes of a row of the image that are copied */
    int32_t height;    /* rows of the image */
    int32_t fill;      /* byte that padding consists of */
    int32_t next;      /* the row of the image that is loaded next, negative above it */
    int32_t slot;      /* byte offset in the ring where it goes */
} gm_ring_t;

/* Start at row -pad_top of the next image. The padding on both sides is written here, once. */
GM_INLINE void gm_ring_start(gm_ring_t *r, int32_t pad_top)
{
    r->next = -pad_top;
    r->slot = 0;
    memset(r->ring, r->fill, (size_t)(r->count * r->pitch));
}

/* Point rows[k] to row first + k * dilation of the image, for k < kernel. `first` never decreases
 * between calls. x: the image, read before this call returns and only up to the last of these rows.
 */
GM_INLINE void gm_ring_rows(gm_ring_t *r, const void *x, int32_t image_row_bytes, int32_t first,
                            int32_t kernel, int32_t dilation, const void **rows)
{
    r->next = r->next < first ? first : r->next;
    while (r->next < first + r->count) {
        unsigned char *to = r->ring + r->slot + r->pad_bytes;
        if (r->next >= 0 && r->next < r->height) {
            memcpy(to, (const unsigned char *)x + r->next * image_row_bytes, (size_t)r->row_bytes);
        } else {
            memset(to, r->fill, (size_t)r->row_bytes);
        }
        r->next++;
        r->slot = r->slot + r->pitch == r->count * r->pitch ? 0 : r->slot + r->pitch;
    }
    /* the ring is full: where the next row goes lies the oldest, `first` */
    int32_t slot = r->slot;
    for (int32_t k = 0; k < kernel; k++) {
        rows[k] = r->ring + slot;
        slot += dilation * r->pitch;
        slot = slot >= r->count * r->pitch ? slot - r->count * r->pitch : slot;
    }
}

#endif
