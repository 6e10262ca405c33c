/* SPDX-License-Identifier: Apache-2.0
 * The dense kernels: blocks of four outputs with a rest, and buffers of exactly their size. */
#include "check.h"
#include "gm_dense_f32.h"
#include "gm_dense_s8.h"

enum { ROWS = 2, MOST = 9 };

static void test_s8(int32_t inner, int32_t cols)
{
    const int32_t blocks = (cols + 3) / 4;
    /* on the heap, where the address sanitizer sees the first byte outside */
    int8_t *x = malloc((size_t)(ROWS * inner));
    int8_t *w = calloc((size_t)(blocks * inner * 4), 1);
    int8_t *y = malloc((size_t)(ROWS * cols));
    int32_t *bias = malloc(sizeof(int32_t) * (size_t)cols);
    int32_t *multiplier = malloc(sizeof(int32_t) * (size_t)cols);
    CHECK(x && w && y && bias && multiplier);
    for (int32_t i = 0; i < ROWS * inner; i++) {
        x[i] = (int8_t)(i * 37 % 256 - 128);
    }
    for (int32_t n = 0; n < cols; n++) {
        bias[n] = 1000 * (n - 3);
        multiplier[n] = (1 << 24) + 2 * n;
        for (int32_t k = 0; k < inner; k++) {
            w[(n / 4 * inner + k) * 4 + n % 4] = (int8_t)((n * 31 + k * 17) % 255 - 127);
        }
    }
    const gm_dense_s8_t p = {ROWS, inner, cols, 1, 5, -100, 90};
    gm_dense_s8(&p, y, x, w, bias, multiplier);
    for (int32_t r = 0; r < ROWS; r++) {
        for (int32_t n = 0; n < cols; n++) {
            int32_t acc = bias[n];
            for (int32_t k = 0; k < inner; k++) {
                acc += x[r * inner + k] * ((n * 31 + k * 17) % 255 - 127);
            }
            CHECK(y[r * cols + n] == gm_requant_s8(acc, multiplier[n], 1, 5, -100, 90));
        }
    }
    free(x);
    free(w);
    free(y);
    free(bias);
    free(multiplier);
}

static void test_f32(void)
{
    static const float x[2] = {1.0f, -2.0f};
    static const float w[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const float bias[5] = {0.5f, 0, 0, 0, -100.0f};
    static const float expected[5] = {-2.5f, -5.0f, -7.0f, -9.0f, -20.0f};
    float y[5];
    const gm_dense_f32_t p = {1, 2, 5, -20.0f, 0.0f};
    gm_dense_f32(&p, y, x, w, bias);
    CHECK(memcmp(y, expected, sizeof y) == 0);
    gm_dense_f32(&p, y, x, w, NULL);
    CHECK(y[0] >= -3.0f && y[0] <= -3.0f);
}

int main(void)
{
    for (int32_t inner = 1; inner <= MOST; inner++) {
        for (int32_t cols = 1; cols <= MOST; cols++) {
            test_s8(inner, cols);
        }
    }
    test_f32();
    return 0;
}
