/* SPDX-License-Identifier: Apache-2.0
 * What every startup does the same way: memory as C expects it, the stack painted, main called. */
#ifndef BOARD_STARTUP_H
#define BOARD_STARTUP_H

#include <stdint.h>

/* Exit status of a program that ended in a fault. */
enum { BOARD_FAULT_STATUS = 70 };

/* Symbols of the linker script. */
extern uint32_t board_stack_bottom[], board_paint_end[], board_stack_top[];
extern uint32_t board_data_start[], board_data_end[], board_data_load[];
extern uint32_t board_bss_start[], board_bss_end[];

/* Entry point, from the vector table or the boot ROM. */
void board_reset(void);

/* Called by board_reset with a valid stack: prepare the memory, run main, exit with its status. */
void board_start(void) __attribute__((noreturn));

/* Start the clock, and read it: ticks of the rate that board.toml says, modulo 2^32. */
void board_clock_start(void);
uint32_t board_clock(void);

/* Bytes of the stack that were ever used. */
uint32_t board_stack_used(void);

#endif
