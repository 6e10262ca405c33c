/* SPDX-License-Identifier: Apache-2.0 */
#include "board_startup.h"

#include "board_semihosting.h"

int main(void);

static const uint32_t paint = 0xA5A5A5A5u;

void board_start(void)
{
    const uint32_t *from = board_data_load;
    for (uint32_t *to = board_data_start; to != board_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = board_bss_start; to != board_bss_end; to++) {
        *to = 0;
    }
    /* this function's own frame lies above board_paint_end */
    for (volatile uint32_t *to = board_stack_bottom; to != board_paint_end; to++) {
        *to = paint;
    }
    board_exit(main());
}

uint32_t board_stack_used(void)
{
    const volatile uint32_t *word = board_stack_bottom;
    while (word != board_stack_top && *word == paint) {
        word++;
    }
    return (uint32_t)((uintptr_t)board_stack_top - (uintptr_t)word);
}
