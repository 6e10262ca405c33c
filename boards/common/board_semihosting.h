/* SPDX-License-Identifier: Apache-2.0
 * Files, text and exit by semihosting: the debugger or the emulator does them for the program. */
#ifndef BOARD_SEMIHOSTING_H
#define BOARD_SEMIHOSTING_H

#include <stddef.h>
#include <stdint.h>

/* Return a handle, or -1. */
int32_t board_open_read(const char *name);
int32_t board_open_write(const char *name);

/* Return the bytes read or written. */
size_t board_read(int32_t handle, void *data, size_t bytes);
size_t board_write(int32_t handle, const void *data, size_t bytes);

void board_close(int32_t handle);

void board_print(const char *text);
void board_print_hex(uint32_t value);

/* End the program; status 0 is success. */
void board_exit(int32_t status) __attribute__((noreturn));

#endif
