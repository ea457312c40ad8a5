/* Looks at a belt through a camera that brings lines, and says what lies on it: no picture is ever in RAM.

   The camera is a film in flash, of which an interrupt brings a line at a time, as a DMA would, whether the network is
   ready for it or not. Some rows of a picture take long, others nothing, so a few rows may wait; a line that finds no room
   is lost, and the program ends with 1. Otherwise it prints the class and the scores of every picture, and ends with 0,
   whatever it saw; run.py compares the scores with the interpreter's. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "film.h"
#include "parts.h"

enum {
    LINES = 120, /* of a picture, as the camera gives them */
    COLUMNS = 160,
    SIDE = PARTS_FEED_ROWS, /* that the network sees, in the middle */
    TOP = (LINES - SIDE) / 2,
    LEFT = (COLUMNS - SIDE) / 2,
    WAITING = 4, /* rows at most, a power of 2 */
    CLASSES = PARTS_OUTPUT_SCORES_ELEMENTS
};

#ifndef LINE_MICROSECONDS
#define LINE_MICROSECONDS 555 /* from line to line: 15 pictures a second */
#endif

static const char *const names[CLASSES] = {"nothing", "a nut", "a washer", "a screw"};

static PARTS_DEFINE_ARENA(arena);

/* All that exists of a picture: the line that comes in, and the rows that wait for the network. */
static uint8_t line[COLUMNS];
static int8_t rows[WAITING][PARTS_INPUT_PIXELS_ROW_ELEMENTS];
static volatile unsigned came, taken, lost; /* rows; the interrupt writes the first and the last */

static const uint8_t *film;
static int at; /* the line that comes next */

/* The camera's: a line is there. */
void clock_interrupt(void)
{
    if (film_end - film < COLUMNS) {
        return;
    }
    memcpy(line, film, sizeof line); /* what a DMA does by itself */
    film += sizeof line;
    if (at >= TOP && at < TOP + SIDE) {
        if (came - taken == WAITING) {
            ++lost;
        } else {
            for (int x = 0; x < SIDE; ++x) {
                rows[came % WAITING][x] = (int8_t)(line[LEFT + x] - 128); /* scale 1/255, zero point 0 */
            }
            ++came;
        }
    }
    at = (at + 1) % LINES;
}

/* The first pixel of a PGM file, that is behind four words: P5, width, height, 255. */
static const uint8_t *first_pixel(const uint8_t *file)
{
    for (int words = 0; words < 4; ++words) {
        while (*file > ' ') {
            ++file;
        }
        ++file;
    }
    return file;
}

/* Feeds the rows of a picture as they come, up to the first that is lost; PARTS_OK or an error. `longest`: microseconds
   that a row took, the end of the inference with the last one. */
static int look(uint32_t *longest)
{
    int status = parts_begin(arena);

    for (int y = 0; y < SIDE && status == PARTS_OK; ++y) {
        while (came == taken) {
            if (lost != 0) {
                return status; /* of what comes now it isn't known which row it is */
            }
            clock_sleep();
        }
        const uint32_t start = clock_now();

        status = parts_feed_rows(arena, rows[taken % WAITING], 1);
        ++taken;
        if (status == PARTS_OK && y == SIDE - 1) {
            status = parts_finish(arena);
        }
        const uint32_t took = clock_now() - start;

        *longest = took > *longest ? took : *longest;
    }
    return status;
}

int main(void)
{
    int status = parts_init(arena, sizeof arena);
    uint32_t longest = 0;

    film = first_pixel(film_begin);
    const int pictures = (int)(film_end - film) / (LINES * COLUMNS);

    clock_start(LINE_MICROSECONDS);
    for (int i = 0; i < pictures && status == PARTS_OK && lost == 0; ++i) {
        status = look(&longest);
        if (status == PARTS_OK && lost == 0) {
            const int8_t *scores = parts_output_scores(arena);

            printf("picture %d: %s\nscores %d", i, names[parts_argmax_scores(scores)], i);
            for (int c = 0; c < CLASSES; ++c) {
                printf(" %d", scores[c] + 128);
            }
            printf("\n");
        }
    }
    if (status != PARTS_OK) {
        printf("parts: %s\n", parts_strerror(status));
        return 1;
    }
    if (lost != 0) {
        printf("a line was lost: with a line every %d us, %d waited for the network\n", LINE_MICROSECONDS, WAITING);
        return 1;
    }
    printf("arena %u bytes, lines %u bytes; a line every %d us, the longest row took %u us\n", (unsigned)sizeof arena,
           (unsigned)(sizeof line + sizeof rows), LINE_MICROSECONDS, (unsigned)longest);
    return 0;
}
